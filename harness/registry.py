"""Registry of methods, formulations and solvers, imported on demand, so that a broken one affects no other.

Others come from plugin files, from the entry points ``cwb.models`` and ``cwb.solvers`` of installed packages, and
from registration. Collectives have the same sources and are kept in :mod:`cwb.core.collective`.
"""

import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import TypeAlias, get_args
from warnings import warn

from .. import solvers
from ..core.collective import Collective, register_collective
from ..core.errors import InputError, locate_errors, one_of
from ..core.formulation import Formulation
from ..core.method import Method
from ..solvers.base import Adapter

PLUGINS = "CWB_PLUGINS"  #: Environment variable with the paths of plugin files, separated as those of ``PATH``.

#: Modules of plugin files by path; as in ``sys.modules``, a file that is still running is already here.
_modules: dict[str, ModuleType] = {}


def load_plugin(path: str | Path) -> None:
    """Register a plugin file in this process and in workers that it starts."""
    whole = str(Path(path).resolve())
    module_of(whole)
    paths = [other for other in os.environ.get(PLUGINS, "").split(os.pathsep) if other]
    if whole not in paths:
        os.environ[PLUGINS] = os.pathsep.join([*paths, whole])


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


#: Modules with the methods and, with a slash in their names, the declared models that they define.
_ENTRIES = (
    ("models.libra.method", "libra libra-equal libra-codesign libra/allocation"),
    ("heuristics.textbook.rings", "ring"),
    ("heuristics.textbook.exchanges", "direct rhd bruck bine"),
    ("heuristics.textbook.trees", "dbt knomial"),
    ("heuristics.textbook.rings", "torus-rings shifted-ring swing"),
    ("models.bfb.method", "bfb bfb-lp bfb-chunked bfb-heterogeneous bfb/lp bfb/chunked bfb/heterogeneous"),
    ("models.mcf.method", "all-to-all-mcf all-to-all-schedule mcf/flow mcf/classes"),
    ("heuristics.multirail", "blueconnect themis"),
    ("models.multirail.method", "themis-lp multirail/themis"),
    ("models.forestcoll.method", "forestcoll forestcoll-lp forestcoll-allreduce"),
    ("models.forestcoll.method", "forestcoll/optimum forestcoll/max-flow forestcoll/allreduce"),
    ("heuristics.blink", "blink blink-switch"),
    ("heuristics.multitree.method", "multitree"),
    ("heuristics.innetwork", "switch-trees"),
    ("heuristics.nccl.method", "nccl rccl"),
    ("heuristics.hierarchical.method", "hierarchical"),
    ("heuristics.ccube", "c-cube"),
    ("heuristics.tto", "tto"),
    ("models.ten.method", "ten-ilp ten/ilp"),
    ("heuristics.pccl.method", "pccl"),
    ("models.sccl.method", "sccl sccl/rounds"),
    ("models.fast.method", "fast fast/rails"),
    ("models.straggler.method", "straggler straggler/rounds"),
    ("models.experts.method", "expert-placement expert-placement/slots"),
    ("models.taccl.method", "taccl taccl/routing taccl/contiguity"),
    ("heuristics.spff", "spff"),
    ("heuristics.tacos.method", "tacos"),
    ("models.teccl.method", "teccl teccl-milp teccl-lp teccl-astar teccl-all-to-all"),
    ("models.teccl.method", "teccl/milp teccl/lp teccl/astar teccl/all-to-all"),
    ("models.mtree.method", "mtree"),
    ("heuristics.wan.method", "gost"),
    ("models.mtree.method", "mtree-repair"),
    ("models.mtree.method", "mtree/selection mtree/patterns mtree/rates mtree/restricted-master mtree/pricing"),
    ("models.mtree.method", "mtree/repair mtree/repair-patterns"),
    ("heuristics.wan.method", "topoadopt blink-wan single-tree wan-ring plink psld wan/blink-units wan/selection"),
)
METHODS = {name: module for module, names in _ENTRIES for name in names.split() if "/" not in name}

#: Declared models: ``cwb solve --formulation`` solves them as they are, ``cwb formulate`` writes them.
FORMULATIONS = {name: module for module, names in _ENTRIES for name in names.split() if "/" in name}

Entry: TypeAlias = Method | Formulation | Adapter | Collective  #: What can come from outside.

_registered: dict[str, Entry] = {}


def names() -> tuple[str, ...]:
    """Return the names of all methods."""
    return (*METHODS, *(name for name, entry in foreign_entries().items() if isinstance(entry, Method)))


def family(name: str) -> str:
    """Return the folder or module of a method, common to those of one paper; ``plugin`` outside the package."""
    return METHODS[name].split(".")[1] if METHODS.get(name) else "plugin"


def formulation_names() -> tuple[str, ...]:
    """Return the names of all formulations."""
    return (*FORMULATIONS, *(name for name, entry in foreign_entries().items() if isinstance(entry, Formulation)))


def get(name: str) -> Method:
    """Return the method of a name; for a formulation, the method that solves it as declared."""
    if name in formulation_names():
        return Method.of(formulation(name))
    entry = _entry(name, METHODS, names, "model")
    assert isinstance(entry, Method)  # noqa: S101 (names tell methods)
    return entry


def formulation(name: str) -> Formulation:
    """Return the formulation of a name."""
    entry = _entry(name, FORMULATIONS, formulation_names, "formulation")
    assert isinstance(entry, Formulation)  # noqa: S101 (names tell formulations)
    return entry


def solver_names() -> tuple[str, ...]:
    """Return the names of all solvers, the default first, except those that Pyomo drives."""
    return (*solvers.names(), *(name for name, entry in foreign_entries().items() if isinstance(entry, Adapter)))


def solver(name: str) -> Adapter:
    """Return the solver of a name without importing its library."""
    entry = foreign_entries().get(name)
    if isinstance(entry, Adapter):
        return entry
    if name in solvers.names() or name.startswith("pyomo:"):
        return solvers.get(name)
    choices = (*solver_names(), "pyomo:NAME")
    raise InputError(f"unknown solver {name!r}{one_of(name, choices)}", source="--solver")


def register(entry: Entry) -> None:
    """Register a method, formulation, solver or collective by its name in this process."""
    _add(_registered, [entry], "register")


def _entry(name: str, places: Mapping[str, str], names_known: Callable[[], Sequence[str]], what: str) -> Entry:
    if name in places:
        return _own_entry(places[name], name)
    choices = names_known()
    if name in choices:
        return foreign_entries()[name]
    raise InputError(f"unknown {what} {name!r}{one_of(name, choices)}", source=f"--{what}")


def _own_entry(module: str, name: str) -> Entry:
    values = vars(import_module(f"..{module}", __package__)).values()
    return next(value for value in values if isinstance(value, Method | Formulation) and value.name == name)


def foreign_entries() -> dict[str, Entry]:
    """Return the entries of plugin files and of installed packages; register their collectives."""
    plugins: dict[str, Entry] = {}
    for path in filter(None, os.environ.get(PLUGINS, "").split(os.pathsep)):
        values = {id(value): value for value in vars(module_of(path)).values() if isinstance(value, get_args(Entry))}
        _add(plugins, values.values(), path)
    return {**_installed_entries(), **plugins, **_registered}


@cache
def _installed_entries() -> dict[str, Entry]:
    entries: dict[str, Entry] = {}
    for point in (point for group in ("cwb.models", "cwb.solvers") for point in entry_points(group=group)):
        try:
            _add(entries, [point.load()], f"entry point {point.value}")
        except Exception as error:
            warn(f"entry point {point.name} = {point.value} is left out: {type(error).__name__}: {error}", stacklevel=2)
    return entries


def _add(into: dict[str, Entry], entries: Iterable[Entry], source: str) -> None:
    """Add entries under new names; skip the package's own."""
    for entry in entries:
        if isinstance(entry, Collective):
            with locate_errors(source=source):
                register_collective(entry)
            continue
        if not isinstance(entry, Method | Formulation | Adapter):
            text = f"expected a Method, a Formulation, a solver's Adapter or a Collective, got {type(entry).__name__}"
            raise InputError(text, source=source)
        place = (FORMULATIONS if isinstance(entry, Formulation) else METHODS).get(entry.name)
        if place is not None and _own_entry(place, entry.name) is entry:
            continue
        is_own = entry.name in METHODS or entry.name in FORMULATIONS or entry.name in solvers.names()
        if is_own or into.get(entry.name, entry) is not entry:
            raise InputError(f"{entry.name!r} is the name of another method, formulation or solver", source=source)
        into[entry.name] = entry
