"""Plugin files: the user's Python files with named methods, formulations, solvers and collectives.

The environment variable :data:`PLUGINS` lists them, so that worker processes know them too; ``--plugin`` on the
command line adds to it.
"""

from __future__ import annotations

import os
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

from ..core.errors import InputError

#: Environment variable with the paths of plugin files, separated as those of ``PATH``.
PLUGINS = "CWB_PLUGINS"

#: Modules of plugin files by path; as in ``sys.modules``, a file that is still running is already here.
_modules: dict[str, ModuleType] = {}


def load_plugin(path: str | Path) -> None:
    """Register a plugin file in this process and in workers that it starts."""
    whole = str(Path(path).resolve())
    module_of(whole)
    known = [other for other in os.environ.get(PLUGINS, "").split(os.pathsep) if other]
    if whole not in known:
        os.environ[PLUGINS] = os.pathsep.join([*known, whole])


def module_of(path: str) -> ModuleType:
    """Import a file as a separate module, once; return it unfinished while it is being imported."""
    if path in _modules:
        return _modules[path]
    if not Path(path).is_file():
        raise InputError("no such file; expected a Python file", source=path)
    name = f"cwb_plugin_{Path(path).stem}"
    spec = spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise InputError("expected a Python file (.py)", source=path)
    module = module_from_spec(spec)
    sys.modules[name] = _modules[path] = module
    folder = str(Path(path).parent)
    if folder not in sys.path:  # a plugin may have more than one file
        sys.path.append(folder)
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del _modules[path]
        sys.modules.pop(name, None)  # a file of the same name that this one asked for may have failed
        raise InputError(f"{type(error).__name__}: {error}", source=path) from error
    return module


def objects_of(path: str, types: tuple[type, ...]) -> list[Any]:
    """Return the objects of some types at the top level of a plugin file, each once."""
    found = {id(value): value for value in vars(module_of(path)).values() if isinstance(value, types)}
    return list(found.values())
