"""What a demand means: who has which data at the start and who needs it at the end (dissertation, figure 2.1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from .collective import CollectiveKind, Demand
from .errors import InputError

#: Holders at the start, receivers at the end, whether contributions are summed.
Condition = tuple[tuple[int, ...], tuple[int, ...], bool]


class Everyone(tuple[int, ...]):
    """The ranks of a group, as a tuple that computes its hash once: every rank's data is for the same many others."""

    _hash: int

    def __hash__(self) -> int:
        if "_hash" not in self.__dict__:
            self._hash = super().__hash__()
        return self._hash


@dataclass(frozen=True)
class Conditions:
    """Bytes of every kind of data that a demand moves.

    Parameters
    ----------
    bytes_of : mapping of Condition to Fraction
        Total size of the data with these holders and receivers. Data that nobody lacks is left out.
    """

    bytes_of: Mapping[Condition, Fraction]


def conditions(demand: Demand, npus: int) -> Conditions:
    """Conditions of a demand.

    Parameters
    ----------
    demand : Demand
        One collective over a group of ranks; the first rank of the group is the root of a broadcast, reduce, gather or
        scatter, and the late one of a late_all_reduce.
    npus : int
        Number of ranks of the network.

    Raises
    ------
    InputError
        If the group has fewer than two ranks.
    """
    ranks = tuple(range(npus)) if demand.ranks is None else demand.ranks
    if len(ranks) < 2:
        raise InputError("a collective needs at least two ranks", place="collective.ranks")
    everyone = Everyone(sorted(ranks))
    root = ranks[0]
    part = demand.size_bytes / len(ranks)
    found: dict[Condition, Fraction]
    match demand.collective:
        case CollectiveKind.ALL_GATHER:
            found = {((r,), everyone, False): part for r in everyone}
        case CollectiveKind.REDUCE_SCATTER:
            found = {(everyone, (r,), True): part for r in everyone}
        case CollectiveKind.ALL_REDUCE:
            found = {(everyone, everyone, True): demand.size_bytes}
        case CollectiveKind.LATE_ALL_REDUCE:
            share = demand.size_bytes / (len(ranks) - 1)
            found = {(tuple(sorted((root, r))), everyone, True): share for r in everyone if r != root}
        case CollectiveKind.ALL_TO_ALL:
            found = {((s,), (t,), False): part for s in everyone for t in everyone if s != t}
        case CollectiveKind.BROADCAST:
            found = {((root,), everyone, False): demand.size_bytes}
        case CollectiveKind.REDUCE:
            found = {(everyone, (root,), True): demand.size_bytes}
        case CollectiveKind.GATHER:
            found = {((r,), (root,), False): part for r in everyone if r != root}
        case CollectiveKind.SCATTER:
            found = {((root,), (r,), False): part for r in everyone if r != root}
        case CollectiveKind.POINT_TO_POINT:
            if len(ranks) != 2:
                raise InputError("a point-to-point message has two ranks", place="collective.ranks")
            found = {((ranks[0],), (ranks[1],), False): demand.size_bytes}
    return Conditions(found)
