"""Registry of methods, formulations and solvers, imported on demand, so that a broken one affects no other.

Others come from plugin files, from the entry points ``cwb.models`` and ``cwb.solvers`` of installed packages, and
from registration. Collectives have the same sources and are kept in :mod:`cwb.core.collective`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any, TypeAlias, get_args
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


METHODS: Mapping[str, str] = {
    "libra": "models.libra.method:LIBRA",
    "libra-equal": "models.libra.method:LIBRA_EQUAL",
    "libra-codesign": "models.libra.method:LIBRA_CODESIGN",
    "ring": "heuristics.textbook.rings:RING",
    "direct": "heuristics.textbook.exchanges:DIRECT",
    "rhd": "heuristics.textbook.exchanges:RHD",
    "bruck": "heuristics.textbook.exchanges:BRUCK",
    "bine": "heuristics.textbook.exchanges:BINE",
    "dbt": "heuristics.textbook.trees:DBT",
    "knomial": "heuristics.textbook.trees:KNOMIAL",
    "torus-rings": "heuristics.textbook.rings:TORUS_RINGS",
    "shifted-ring": "heuristics.textbook.rings:SHIFTED_RING",
    "swing": "heuristics.textbook.rings:SWING",
    "bfb": "models.bfb.method:BFB",
    "bfb-lp": "models.bfb.method:BFB_LP",
    "bfb-chunked": "models.bfb.method:BFB_CHUNKED",
    "bfb-heterogeneous": "models.bfb.method:BFB_HETEROGENEOUS",
    "all-to-all-mcf": "models.mcf.method:METHOD",
    "all-to-all-schedule": "models.mcf.method:SCHEDULE",
    "blueconnect": "heuristics.multirail:BLUECONNECT",
    "themis": "heuristics.multirail:THEMIS",
    "themis-lp": "models.multirail.method:THEMIS_LP",
    "forestcoll": "models.forestcoll.method:FORESTCOLL",
    "forestcoll-lp": "models.forestcoll.method:FORESTCOLL_LP",
    "forestcoll-allreduce": "models.forestcoll.method:FORESTCOLL_ALLREDUCE",
    "blink": "heuristics.blink.method:BLINK",
    "blink-switch": "heuristics.blink.method:BLINK_SWITCH",
    "multitree": "heuristics.multitree.method:METHOD",
    "switch-trees": "heuristics.innetwork:METHOD",
    "nccl": "heuristics.nccl.method:METHOD",
    "hierarchical": "heuristics.hierarchical.method:METHOD",
    "c-cube": "heuristics.ccube:METHOD",
    "tto": "heuristics.tto:METHOD",
    "ten-ilp": "models.ten.method:METHOD",
    "pccl": "heuristics.pccl.method:METHOD",
    "sccl": "models.sccl.method:METHOD",
    "fast": "models.fast.method:METHOD",
    "straggler": "models.straggler.method:METHOD",
    "expert-placement": "models.experts.method:METHOD",
    "taccl": "models.taccl.method:METHOD",
    "spff": "heuristics.spff:METHOD",
    "tacos": "heuristics.tacos.method:METHOD",
    "teccl": "models.teccl.method:TECCL",
    "teccl-milp": "models.teccl.method:TECCL_MILP",
    "teccl-lp": "models.teccl.method:TECCL_LP",
    "teccl-astar": "models.teccl.method:TECCL_ASTAR",
    "teccl-all-to-all": "models.teccl.method:TECCL_ALL_TO_ALL",
    "mtree": "models.mtree.method:MTREE",
    "gost": "heuristics.wan.method:GOST",
    "mtree-repair": "models.mtree.method:REPAIR",
    "topoadopt": "heuristics.wan.method:TOPOADOPT",
    "blink-wan": "heuristics.wan.method:BLINK_WAN",
    "single-tree": "heuristics.wan.method:SINGLE_TREE",
    "wan-ring": "heuristics.wan.method:WAN_RING",
    "plink": "heuristics.wan.method:PLINK",
    "psld": "heuristics.wan.method:PSLD",
}


#: Declared models: ``cwb solve --formulation`` solves them as they are, ``cwb formulate`` writes them.
FORMULATIONS: Mapping[str, str] = {
    "libra/allocation": "models.libra.method:ALLOCATION",
    "bfb/lp": "models.bfb.method:LP",
    "bfb/chunked": "models.bfb.method:CHUNKED",
    "bfb/heterogeneous": "models.bfb.method:TIMED",
    "mcf/flow": "models.mcf.method:FLOW",
    "mcf/classes": "models.mcf.method:CLASSES",
    "forestcoll/optimum": "models.forestcoll.method:OPTIMUM",
    "forestcoll/max-flow": "models.forestcoll.method:MAX_FLOW",
    "forestcoll/allreduce": "models.forestcoll.method:ALL_REDUCE",
    "taccl/routing": "models.taccl.method:ROUTING",
    "taccl/contiguity": "models.taccl.method:CONTIGUITY",
    "ten/ilp": "models.ten.method:ILP",
    "multirail/themis": "models.multirail.method:SHARES",
    "sccl/rounds": "models.sccl.method:ROUNDS",
    "expert-placement/slots": "models.experts.method:SLOTS",
    "fast/rails": "models.fast.method:RAILS",
    "straggler/rounds": "models.straggler.method:ROUNDS",
    "teccl/milp": "models.teccl.method:MILP",
    "teccl/lp": "models.teccl.method:LP",
    "teccl/astar": "models.teccl.method:ASTAR",
    "teccl/all-to-all": "models.teccl.method:ALL_TO_ALL",
    "mtree/selection": "models.mtree.method:SELECTION",
    "mtree/patterns": "models.mtree.method:PATTERNS",
    "mtree/rates": "models.mtree.method:RATES",
    "mtree/restricted-master": "models.mtree.method:RESTRICTED_MASTER",
    "mtree/pricing": "models.mtree.method:PRICING",
    "mtree/repair": "models.mtree.method:REPAIR_SELECTION",
    "mtree/repair-patterns": "models.mtree.method:REPAIR_PATTERNS",
    "wan/blink-units": "heuristics.wan.method:BLINK_UNITS",
}

Entry: TypeAlias = Method | Formulation | Adapter | Collective  #: What can come from outside.

_registered: dict[str, Entry] = {}


def names() -> tuple[str, ...]:
    """Return the names of all methods."""
    return (*METHODS, *(name for name, entry in _foreign_entries().items() if isinstance(entry, Method)))


def family(name: str) -> str:
    """Return the folder or module of a method, common to those of one paper; ``plugin`` outside the package."""
    return METHODS[name].partition(":")[0].split(".")[1] if METHODS.get(name) else "plugin"


def formulation_names() -> tuple[str, ...]:
    """Return the names of all formulations."""
    return (*FORMULATIONS, *(name for name, entry in _foreign_entries().items() if isinstance(entry, Formulation)))


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
    return (*solvers.names(), *(name for name, entry in _foreign_entries().items() if isinstance(entry, Adapter)))


def solver(name: str) -> Adapter:
    """Return the solver of a name without importing its library."""
    entry = _foreign_entries().get(name)
    if isinstance(entry, Adapter):
        return entry
    if name in solvers.names() or name.startswith("pyomo:"):
        return solvers.get(name)
    known = (*solver_names(), "pyomo:NAME")
    raise InputError(f"unknown solver {name!r}{one_of(name, known)}", source="--solver")


def register(entry: Entry) -> None:
    """Register a method, formulation, solver or collective by its name in this process."""
    _add(_registered, [entry], "register")


def load_collectives() -> None:
    """Register the collectives of plugin files and of installed packages."""
    _foreign_entries()


def _entry(name: str, places: Mapping[str, str], names_known: Callable[[], Sequence[str]], what: str) -> Entry:
    if name in places:
        return _own_entry(places[name])
    known = names_known()
    if name in known:
        return _foreign_entries()[name]
    raise InputError(f"unknown {what} {name!r}{one_of(name, known)}", source=f"--{what}")


def _own_entry(place: str) -> Entry:
    module, attribute = place.split(":")
    entry: Entry = getattr(import_module(f"..{module}", __package__), attribute)
    return entry


def _foreign_entries() -> dict[str, Entry]:
    """Return the entries from outside the package; register their collectives."""
    return {**_installed_entries(), **_plugin_entries(os.environ.get(PLUGINS, "")), **_registered}


@cache
def _installed_entries() -> dict[str, Entry]:
    found: dict[str, Entry] = {}
    for point in (point for group in ("cwb.models", "cwb.solvers") for point in entry_points(group=group)):
        try:
            _add(found, [point.load()], f"entry point {point.value}")
        except Exception as error:
            warn(f"entry point {point.name} = {point.value} is left out: {type(error).__name__}: {error}", stacklevel=2)
    return found


def _plugin_entries(paths: str) -> dict[str, Entry]:
    found: dict[str, Entry] = {}
    for path in filter(None, paths.split(os.pathsep)):
        _add(found, objects_of(path, get_args(Entry)), path)
    return found


def _add(found: dict[str, Entry], entries: Iterable[Entry], source: str) -> None:
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
        if place is not None and _own_entry(place) is entry:
            continue
        taken = entry.name in METHODS or entry.name in FORMULATIONS or entry.name in solvers.names()
        if taken or found.get(entry.name, entry) is not entry:
            raise InputError(f"{entry.name!r} is the name of another method, formulation or solver", source=source)
        found[entry.name] = entry
