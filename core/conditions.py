"""What a demand means: who has which data at the start and who needs it at the end (dissertation, figure 2.1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

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


@dataclass(frozen=True, eq=False)
class Conditions:
    """Every kind of data that a demand moves, by columns; there is equally much of each, and each is named once.

    Parameters
    ----------
    groups : tuple of tuple of int
        Sets of ranks, each sorted.
    held, needed : array of int, shape (kinds,)
        The groups that hold the data at the start, and need it in the end. Data that nobody lacks is left out.
    reduced : bool
        Whether contributions are summed.
    size : Fraction
        Bytes of the data of each kind.
    """

    groups: tuple[tuple[int, ...], ...]
    held: Any
    needed: Any
    reduced: bool
    size: Fraction

    @cached_property
    def bytes_of(self) -> Mapping[Condition, Fraction]:
        """Bytes of every kind of data."""
        pairs = zip(self.held.tolist(), self.needed.tolist(), strict=True)
        return {(self.groups[held], self.groups[needed], self.reduced): self.size for held, needed in pairs}


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
    count = len(ranks)
    if count < 2:
        raise InputError("a collective needs at least two ranks", place="collective.ranks")
    everyone, root = Everyone(sorted(ranks)), ranks[0]
    part, each = demand.size_bytes / count, np.arange(count)
    # The rank at each position alone, and at position ``count`` all of them.
    groups: tuple[tuple[int, ...], ...] = (*((rank,) for rank in everyone), everyone)
    all_, first = np.full(count, count), np.full(count, everyone.index(root))
    others = each[each != first[0]]
    summed, size = False, part
    match demand.collective:
        case CollectiveKind.ALL_GATHER:
            held, needed = each, all_
        case CollectiveKind.REDUCE_SCATTER:
            held, needed, summed = all_, each, True
        case CollectiveKind.ALL_REDUCE:
            held, needed, summed, size = all_[:1], all_[:1], True, demand.size_bytes
        case CollectiveKind.LATE_ALL_REDUCE:
            groups = (*(tuple(sorted((root, rank))) for rank in everyone), everyone)
            held, needed, summed, size = others, all_[1:], True, demand.size_bytes / (count - 1)
        case CollectiveKind.ALL_TO_ALL:
            source, target = np.divmod(np.arange(count * count), count)
            held, needed = source[source != target], target[source != target]
        case CollectiveKind.BROADCAST:
            held, needed, size = first[:1], all_[:1], demand.size_bytes
        case CollectiveKind.REDUCE:
            held, needed, summed, size = all_[:1], first[:1], True, demand.size_bytes
        case CollectiveKind.GATHER:
            held, needed = others, first[1:]
        case CollectiveKind.SCATTER:
            held, needed = first[1:], others
        case CollectiveKind.POINT_TO_POINT:
            if count != 2:
                raise InputError("a point-to-point message has two ranks", place="collective.ranks")
            held, needed, size = first[:1], others, demand.size_bytes
    return Conditions(groups, held, needed, summed, size)
