"""Tables by name."""

from collections.abc import Mapping

from ...core.errors import InputError, one_of
from ..table import TableSpec
from . import collective, libra, solvers

TABLES: Mapping[str, TableSpec] = {
    spec.name: spec
    for spec in (
        libra.SPEC,
        collective.FORESTCOLL,
        collective.BFB,
        collective.TECCL,
        collective.MTREE,
        collective.TEXTBOOK,
        collective.THEMIS,
        collective.ALL_TO_ALL,
        collective.SIZES,
        collective.EXACT_HEURISTIC,
        solvers.SOLVERS,
        solvers.SEEDS,
        collective.SUMMARY,
    )
}


def get(name: str) -> TableSpec:
    """Return a table's spec."""
    if name not in TABLES:
        raise InputError(f"unknown table {name!r}{one_of(name, TABLES)}")
    return TABLES[name]
