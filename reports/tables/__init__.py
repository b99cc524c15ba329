"""Tables by name."""

from collections.abc import Mapping

from ...core.errors import InputError, one_of
from ..table import TableSpec
from . import libra, methods, solvers

TABLES: Mapping[str, TableSpec] = {
    spec.name: spec
    for spec in (
        libra.SPEC,
        methods.FORESTCOLL,
        methods.BFB,
        methods.TECCL,
        methods.MTREE,
        methods.TEXTBOOK,
        methods.THEMIS,
        methods.ALL_TO_ALL,
        methods.SIZES,
        methods.EXACT_HEURISTIC,
        solvers.SOLVERS,
        solvers.SEEDS,
        methods.SUMMARY,
    )
}


def get(name: str) -> TableSpec:
    """Return a table's spec."""
    if name not in TABLES:
        raise InputError(f"unknown table {name!r}{one_of(name, TABLES)}")
    return TABLES[name]
