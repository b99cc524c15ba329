"""Plugin files: Python files of the user's own whose methods, formulations and solvers are known by name.

The environment variable :data:`PLUGINS` names them, so that worker processes know them too; ``--plugin`` on
the command line adds to it.
"""

from __future__ import annotations

import os
import sys
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

from ..core.errors import InputError

#: Environment variable with the paths of plugin files, separated as those of ``PATH``.
PLUGINS = "CWB_PLUGINS"


def plug_in(path: str | Path) -> None:
    """Make what a file declares known in this process and in workers that it starts.

    Raises
    ------
    InputError
        If the file does not exist or cannot be run.
    """
    whole = str(Path(path).resolve())
    module_of(whole)
    known = [other for other in os.environ.get(PLUGINS, "").split(os.pathsep) if other]
    if whole not in known:
        os.environ[PLUGINS] = os.pathsep.join([*known, whole])


@cache
def module_of(path: str) -> ModuleType:
    """Import a file as a module of its own, once.

    Raises
    ------
    InputError
        If the file does not exist or cannot be run.
    """
    if not Path(path).is_file():
        raise InputError("no such file; expected a Python file", source=path)
    name = f"cwb_plugin_{Path(path).stem}"
    spec = spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise InputError("expected a Python file (.py)", source=path)
    module = module_from_spec(spec)
    sys.modules[name] = module
    folder = str(Path(path).parent)
    if folder not in sys.path:  # a plugin may have more than one file
        sys.path.append(folder)
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise InputError(f"{type(error).__name__}: {error}", source=path) from error
    return module


def objects_of(path: str, types: tuple[type, ...]) -> list[Any]:
    """Objects of some types that a plugin file declares at its top, each once."""
    found = {id(value): value for value in vars(module_of(path)).values() if isinstance(value, types)}
    return list(found.values())
