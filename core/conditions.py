"""Pre- and postconditions of a demand: initial holders and receivers of all data (dissertation, figure 2.1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from .collective import Demand
from .errors import InputError

#: Holders at the start, receivers at the end, whether contributions are summed.
Condition = tuple[tuple[int, ...], tuple[int, ...], bool]


class RankGroup(tuple[int, ...]):
    """Ranks of a group, as a tuple that computes its hash once.

    Otherwise the hash would be computed again for the data of every rank.
    """

    _hash: int

    def __hash__(self) -> int:
        if "_hash" not in self.__dict__:
            self._hash = super().__hash__()
        return self._hash


@dataclass(frozen=True, eq=False)
class Conditions:
    """Kinds of data that a demand moves, by columns; all have the same size, and none occurs twice."""

    groups: tuple[tuple[int, ...], ...]  #: Sets of ranks, each sorted.
    #: ``held`` and ``needed``: shape (kinds,): the groups that hold the data at the start, and need it in the end. Data
    #: that nobody lacks is left out.
    held: Any
    needed: Any
    reduced: bool
    size: Fraction  #: Bytes of the data of each kind.

    @cached_property
    def bytes_of(self) -> Mapping[Condition, Fraction]:
        """Bytes of every kind of data."""
        pairs = zip(self.held.tolist(), self.needed.tolist(), strict=True)
        return {(self.groups[held], self.groups[needed], self.reduced): self.size for held, needed in pairs}


def conditions(demand: Demand, npus: int) -> Conditions:
    """Return the conditions of a demand among at least two ranks; the first is the root of a rooted one."""
    ranks = tuple(range(npus)) if demand.ranks is None else demand.ranks
    count = len(ranks)
    if count < 2:
        raise InputError("a collective needs at least two ranks", place="collective.ranks")
    pieces = demand.collective.pieces_of(count)
    groups = [tuple(sorted(ranks[position] for position in group)) for group in pieces.groups]
    named = [RankGroup(group) if len(group) > 1 else group for group in groups]
    held, needed = np.asarray(pieces.held, dtype=np.int64), np.asarray(pieces.needed, dtype=np.int64)
    if list(ranks) != sorted(ranks):  # the order of pieces is that of ranks, not of positions
        order = sorted(range(len(named)), key=lambda index: (len(named[index]), named[index]))
        place = np.argsort(order)
        held, needed, named = place[held], place[needed], [named[index] for index in order]
        by_rank = np.lexsort((needed, held))
        held, needed = held[by_rank], needed[by_rank]
    return Conditions(tuple(named), held, needed, demand.collective.sums, demand.part_bytes(npus))
