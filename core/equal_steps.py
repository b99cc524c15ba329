"""Schedules of all ranks in steps of equal length: one tree that is translated, and steps that are generated.

On a network that looks the same from every rank, all ranks use translations of the first one's sends. Sends that are
regenerated step by step are not stored.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from math import prod
from typing import Any, NamedTuple

import numpy as np

from .display import AnswerMixin
from .errors import InputError
from .schedule import Ints
from .trees import OrbitMixin, Translation, TreeKind, least_images, orbit_of


@dataclass(frozen=True, eq=False, repr=False)
class TranslatedTrees(AnswerMixin, name="translated-trees"):
    """Trees of rank 0, whose translations are those of all other ranks, in steps of equal length.

    Ranks are the elements of the group ``Z_a x Z_b x ...``: with sizes (a, b, c), (x, y, z) is rank
    ``x + a y + a b z``. For every edge from parent u to child v, rank r has the edge from r + u to r + v in the
    same step, for the same chunk of its own data. The difference v - u is the edge's *generator*. If in no step two
    edges have the same generator, no link has two chunks in a step: the link from w to w + g then carries data of
    rank w - u, and of no other one.
    """

    instance_sha256: str
    #: ``out`` for an all-gather; ``in`` for a reduce-scatter, with data flowing from child to parent and the steps in
    #: reverse order; ``in-out`` for the latter and then the former.
    kind: TreeKind
    sizes: tuple[int, ...]  #: Orders of the cyclic groups, innermost first.
    copy: Ints  #: Chunk of the root that each edge carries, from 0; shape (edges,).
    parent: Ints
    child: Ints
    step: Ints  #: Step in which an all-gather uses the edge, from 0; shape (edges,).

    def __post_init__(self) -> None:
        if len({len(column) for column in (self.copy, self.parent, self.child, self.step)}) != 1:
            raise InputError("the columns differ in length", place="trees")
        if not self.sizes or min(self.sizes) < 2:
            raise InputError("expected sizes of at least 2", place="trees.sizes")
        if len(self.step) and int(self.step.min()) < 0:
            raise InputError("a step is negative", place="trees.step")

    @property
    def ranks(self) -> int:
        """Number of ranks."""
        return prod(self.sizes)

    @cached_property
    def steps(self) -> int:
        """Number of steps of the whole collective."""
        return len(self.kind.passes) * (int(self.step.max()) + 1 if len(self.step) else 0)

    @property
    def sends(self) -> int:
        """Number of sends of all ranks."""
        return len(self.kind.passes) * self.ranks * len(self.step)

    def _size(self) -> dict[str, Any]:
        return {"sizes": list(self.sizes), "edges": len(self.step), "sends": self.sends, "steps": self.steps}

    def _facts(self) -> Mapping[str, object]:
        return {"kind": self.kind.value, "sizes": self.sizes, "edges": len(self.step), "sends": self.sends}


def translate_ranks(sizes: tuple[int, ...], ranks: Ints, by: Ints, sign: int = 1) -> Ints:
    """Translate ranks by others, or back by them if the sign is -1; the two broadcast together."""
    images, stride = np.zeros(np.broadcast_shapes(ranks.shape, by.shape), dtype=np.int64), 1
    for size in sizes:
        images += (ranks // stride + sign * (by // stride)) % size * stride
        stride *= size
    return images


#: Makes the sends of a gather: arrays of shape (steps, links), one after the other, with the chunk that each link
#: takes in each step, -1 where it takes none.
Blocks = Callable[[], Iterator[Any]]


@dataclass(frozen=True, eq=False, repr=False)
class StreamedSteps(OrbitMixin, AnswerMixin, name="streamed-steps"):
    """All-gather of all ranks in steps, stored only as the number and a digest of the sends.

    In a step a link carries one chunk from its tail, which has it, to its head; chunk ``r c + j`` is chunk j of
    rank r. A reduce-scatter reverses the links and the order of the steps: the head adds the incoming chunk. An
    all-reduce is the reduce-scatter whose sends go over the opposite links, followed by the gather.

    Translations (:class:`~.trees.TreeOrbits`) move each send to others of the same step. Then blocks have only the
    links into the least rank of every orbit (for a reduce-scatter, out of it), in order.
    """

    instance_sha256: str
    kind: TreeKind  #: ``out`` for an all-gather, ``in`` for a reduce-scatter, ``in-out`` for both in reverse order.
    gather_steps: int
    gather_sends: int
    digest: str  #: Digest of the chunks of all blocks, see :class:`Digest`.
    #: Generates the blocks, the same ones at every call; a module-level function, so that it can be pickled.
    blocks: Blocks
    translations: tuple[Translation, ...] = ()

    @property
    def steps(self) -> int:
        """Number of steps of the whole collective."""
        return len(self.kind.passes) * self.gather_steps

    @property
    def sends(self) -> int:
        """Number of sends of the whole collective."""
        return len(self.kind.passes) * self.gather_sends

    def _size(self) -> dict[str, Any]:
        return {"kind": self.kind.value, "sends": self.sends, "steps": self.steps, "sha256": self.digest}

    def _facts(self) -> Mapping[str, object]:
        return {"kind": self.kind.value, "steps": self.steps, "sends": self.sends, "digest": self.digest[:12]}


class SendImages(NamedTuple):
    """Images of the sends of blocks under all motions."""

    link: Any  #: int32 (columns, motions) images of the link of each column of a block
    chunk: Any  #: int32 (chunks, motions) images of each chunk

    def expand(self, block: Any) -> tuple[Ints, Any, Any]:
        """Return step in the block, link and chunk of every send and its images, step by step."""
        step, column = np.nonzero(block >= 0)
        link, chunk = self.link[column], self.chunk[block[step, column]]
        return np.repeat(step, link.shape[1]), link.ravel(), chunk.ravel()


def send_images(motions: Sequence[tuple[Translation, Ints]], head: Ints, ranks: int, copies: int) -> SendImages:
    """Return the images of sends under translations, each with its image of every link.

    ``head`` has the rank that each link enters in the gather; every rank has so many copies.
    """
    orders = [translation.order for translation, _ in motions]
    nodes, links = [translation.image for translation, _ in motions], [link for _, link in motions]
    links_into_first = np.flatnonzero(least_images(orders, nodes, ranks)[head] == head)
    columns = orbit_of(links_into_first, orders, links).T, orbit_of(np.arange(ranks), orders, nodes).T
    link, rank = (column.astype(np.int32, order="C") for column in columns)
    chunk = rank[:, None] * np.int32(copies) + np.arange(copies, dtype=np.int32)[:, None]
    return SendImages(link, chunk.reshape(ranks * copies, -1))


class Digest:
    """SHA-256 of chunks, as 32-bit integers in little-endian order, step by step and link by link."""

    def __init__(self) -> None:
        self._sum = sha256()

    def add(self, block: Any) -> None:
        """Add a block to the digest."""
        self._sum.update(np.ascontiguousarray(block, dtype="<i4").data)

    def hex(self) -> str:
        """Return the present digest."""
        return self._sum.hexdigest()
