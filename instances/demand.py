"""Collectives requested by the user, which replace those of an instance."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from ..core.collective import Demand, collective_named
from ..core.errors import InputError, locate_errors
from ..core.instance import Instance
from ..core.units import UnitKind, parse
from .messages import is_messages, messages

#: Size of a collective where nobody says one.
DEFAULT_SIZE = Fraction(2**30)


def with_demand(instance: Instance, collective: str | None, size: str | None, chunks: int | None) -> Instance:
    """Instance with the collective that the command line asks for; without any size it is 1 GiB."""
    if collective is None and size is None and chunks is None:
        return instance
    known = instance.demand
    if known is not None and known.part_of is not None:
        if collective is None and size is None and chunks is not None:
            first, *others = (
                replace(demand, chunks=chunks) if demand.part_of else demand for demand in instance.demands
            )
            return instance.with_changes(demand=first, also=tuple(others))
        text = f"the {known.part_of.name} of the instance has sizes of its own; expected none"
        raise InputError(text, source="--size" if collective is None else "--collective")
    if isinstance(collective, str) and is_messages(collective):
        first, *others = messages(collective, instance.npus, _bytes(size, known), chunks or 1)
        return instance.with_changes(demand=first, also=tuple(others))
    with locate_errors(source="--collective"):
        kind = collective_named(collective) if collective is not None else known.collective if known else None
    if kind is None:
        raise InputError(
            "missing, and the instance has no collective; expected one such as all_reduce", source="--collective"
        )
    ranks = known.ranks if known else None
    demand = Demand(kind, _bytes(size, known), chunks or (known.chunks if known else 1), ranks)
    return instance.with_changes(demand=demand)


def _bytes(size: str | None, known: Demand | None) -> Fraction:
    """Return the size of the command line, else of the instance, else the default."""
    if size is None:
        return known.size_bytes if known else DEFAULT_SIZE
    with locate_errors(source="--size"):
        return parse(size, UnitKind.SIZE, allow_zero=False)
