"""Collectives and the demand for one: which operation, how large, among which ranks."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from fractions import Fraction


class CollectiveKind(Enum):
    """The collective operations that cwb knows by name.

    The size of a collective is that of the full buffer: what every rank holds at the end of an
    all_gather, at the start of a reduce_scatter, and before and after an all_reduce; for an all_to_all what one
    rank sends in all, its own part included; for the others the message. A late_all_reduce is what is left of an
    all_reduce once all ranks but the first have reduced and scattered their data: each of them has one part of their
    sum, and the first rank, which is late, has its own contribution to all parts.
    """

    ALL_GATHER = "all_gather"
    REDUCE_SCATTER = "reduce_scatter"
    ALL_REDUCE = "all_reduce"
    LATE_ALL_REDUCE = "late_all_reduce"
    ALL_TO_ALL = "all_to_all"
    BROADCAST = "broadcast"
    REDUCE = "reduce"
    GATHER = "gather"
    SCATTER = "scatter"
    POINT_TO_POINT = "point_to_point"

    def busbw_factor(self, ranks: int) -> Fraction:
        """Factor from algbw to busbw, as nccl-tests defines it (its doc/PERFORMANCE.md)."""
        if self is CollectiveKind.ALL_REDUCE:
            return Fraction(2 * (ranks - 1), ranks)
        if self in (CollectiveKind.ALL_GATHER, CollectiveKind.REDUCE_SCATTER, CollectiveKind.ALL_TO_ALL):
            return Fraction(ranks - 1, ranks)
        return Fraction(1)


@dataclass(frozen=True)
class Demand:
    """One collective that an instance requires.

    Parameters
    ----------
    collective : CollectiveKind
        The operation.
    size_bytes : Fraction
        Size of the full buffer, see :class:`CollectiveKind`.
    chunks : int
        Number of equal chunks that each rank's part is cut into.
    ranks : tuple of int or None
        The process group; None is all ranks.
    """

    collective: CollectiveKind
    size_bytes: Fraction
    chunks: int = 1
    ranks: tuple[int, ...] | None = None

    def is_of_all(self, npus: int) -> bool:
        """Whether the process group is all of so many ranks."""
        return self.ranks is None or sorted(self.ranks) == list(range(npus))
