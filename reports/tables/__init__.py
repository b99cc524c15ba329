"""Tables by name; each is a spec in a module of its own, imported on demand."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module

from ...core.errors import InputError, one_of
from ..spec import TableSpec

TABLES: Mapping[str, str] = {
    "libra-perf": "libra_perf:SPEC",
    "forestcoll": "forestcoll:SPEC",
    "bfb": "bfb:SPEC",
    "teccl": "teccl:SPEC",
    "mtree": "mtree:SPEC",
    "textbook": "textbook:SPEC",
    "themis": "themis:SPEC",
    "all-to-all": "alltoall:SPEC",
    "sizes": "sizes:SPEC",
    "exact-heuristic": "exact_heuristic:SPEC",
    "solvers": "solvers:SPEC",
    "seeds": "seeds:SPEC",
    "summary": "summary:SPEC",
}


def get(name: str) -> TableSpec:
    """Import a table's spec."""
    if name not in TABLES:
        raise InputError(f"unknown table {name!r}{one_of(name, TABLES)}")
    module, attribute = TABLES[name].split(":")
    spec = getattr(import_module(f".{module}", __package__), attribute)
    assert isinstance(spec, TableSpec)  # noqa: S101 (the registry is ours)
    return spec
