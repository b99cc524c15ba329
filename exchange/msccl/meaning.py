"""Specification of the collectives of MSCCL files: buffer sizes, aliasing, expected results.

A *grain* is one chunk of a file. A contribution is a pair (rank, grain of its input).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ...core.collective import Collective, collective_named
from .dialects import DIALECTS
from .program import Algorithm

#: Collective by its name in files, of any dialect.
KINDS: dict[str, Collective | None] = {
    name: collective_named(kind)
    for dialect in DIALECTS.values()
    for kind, name in dialect.collectives.items()
    if kind != "point_to_point"
} | dict.fromkeys(("custom", "alltoallv", "send", "recv"))

#: Collectives with a root, which a file does not name.
ROOTED = frozenset({Collective.BROADCAST, Collective.REDUCE, Collective.GATHER, Collective.SCATTER})

#: Where each buffer begins in a GPU's memory, when they are different memory.
INPUT, OUTPUT, SCRATCH = 0, 1 << 40, 1 << 41


@dataclass(frozen=True)
class Meaning:
    """The buffers of a collective of so many ranks and grains."""

    kind: Collective | None  #: The collective; None where any movement of data is one.
    #: ``ranks`` and ``grains``: GPUs, and chunks that the data is cut into; of a gather and a scatter, one rank's part.
    ranks: int
    grains: int

    @property
    def part(self) -> int:
        """Grains of one rank's part."""
        if self.kind in (Collective.GATHER, Collective.SCATTER):
            return self.grains
        return self.grains // self.ranks

    @property
    def sizes(self) -> tuple[int, int]:
        """Grains of the input and of the output, of the ranks that have them."""
        match self.kind:
            case Collective.ALL_GATHER:
                return self.part, self.grains
            case Collective.REDUCE_SCATTER:
                return self.grains, self.part
            case Collective.GATHER:
                return self.part, self.part * self.ranks
            case Collective.SCATTER:
                return self.part * self.ranks, self.part
            case _:
                return self.grains, self.grains

    def bases(self, rank: int, *, inplace: bool) -> tuple[int, int, int]:
        """Addresses at which a rank's input, output and scratch begin."""
        if not inplace:
            return INPUT, OUTPUT, SCRATCH
        shift = rank * self.part
        if self.kind in (Collective.ALL_GATHER, Collective.GATHER):
            return shift, INPUT, SCRATCH
        if self.kind in (Collective.REDUCE_SCATTER, Collective.SCATTER):
            return INPUT, shift, SCRATCH
        return INPUT, INPUT, SCRATCH

    def required_grains(self, rank: int, root: int) -> Iterator[tuple[int, tuple[int, int] | None]]:
        """Grains of the output that a rank needs.

        Each with the contribution that it is a copy of, as (rank, grain); None is the sum of all ranks' grains of the
        same place, which :meth:`place` gives.
        """
        part, everyone = self.part, range(self.ranks)
        match self.kind:
            case Collective.ALL_REDUCE:
                yield from ((k, None) for k in range(self.grains))
            case Collective.REDUCE if rank == root:
                yield from ((k, None) for k in range(self.grains))
            case Collective.REDUCE_SCATTER:
                yield from ((k, None) for k in range(part))
            case Collective.ALL_GATHER:
                yield from ((r * part + k, (r, k)) for r in everyone for k in range(part))
            case Collective.GATHER if rank == root:
                yield from ((r * part + k, (r, k)) for r in everyone for k in range(part))
            case Collective.ALL_TO_ALL:
                yield from ((r * part + k, (r, rank * part + k)) for r in everyone for k in range(part))
            case Collective.SCATTER:
                yield from ((k, (root, rank * part + k)) for k in range(part))
            case Collective.BROADCAST:
                yield from ((k, (root, k)) for k in range(self.grains))

    def place(self, rank: int, grain: int) -> int:
        """Grain of every rank's input that a grain of the output is the sum of."""
        return rank * self.part + grain if self.kind is Collective.REDUCE_SCATTER else grain


def meaning_of(algorithm: Algorithm) -> Meaning:
    """Return the specification of an algorithm's collective; an unknown one is any movement of data."""
    return Meaning(KINDS.get(algorithm.coll), algorithm.ngpus, algorithm.nchunksperloop)
