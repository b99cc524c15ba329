"""Schedules in steps of equal length whose sends are not stored but regenerated step by step."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from .display import DisplayMixin
from .trees import TreeKind

#: Makes the sends of a gather: arrays of shape (steps, links), one after the other, with the chunk that each link
#: takes in each step, -1 where it takes none.
Blocks = Callable[[], Iterator[Any]]


@dataclass(frozen=True, eq=False, repr=False)
class StreamedSteps(DisplayMixin):
    """All-gather of all ranks in steps, stored only as the number and a digest of the sends.

    In a step a link carries one chunk from its tail, which has it, to its head; chunk ``r c + j`` is chunk j of
    rank r. A reduce-scatter reverses the links and the order of the steps: the head adds the incoming chunk. An
    all-reduce is the reduce-scatter whose sends go over the opposite links, followed by the gather.

    Parameters
    ----------
    kind : TreeKind
        ``out`` for an all-gather, ``in`` for a reduce-scatter, ``in-out`` for both in reverse order.
    digest : str
        Digest of the chunks of all blocks, see :func:`digest_of`.
    blocks : callable
        Generates the blocks, the same ones at every call; a module-level function, so that it can be pickled.
    """

    instance_sha256: str
    kind: TreeKind
    gather_steps: int
    gather_sends: int
    digest: str
    blocks: Blocks

    @property
    def phases(self) -> int:
        """Number of passes through the steps: two for an all-reduce."""
        return 2 if self.kind is TreeKind.BOTH else 1

    @property
    def steps(self) -> int:
        """Number of steps of the whole collective."""
        return self.phases * self.gather_steps

    @property
    def sends(self) -> int:
        """Number of sends of the whole collective."""
        return self.phases * self.gather_sends

    def to_json(self) -> dict[str, Any]:
        """Return the size of the answer as plain data for a record; sends may be millions."""
        return {
            "answer": "streamed-steps",
            "kind": self.kind.value,
            "sends": self.sends,
            "steps": self.steps,
            "sha256": self.digest,
        }

    def _facts(self) -> Mapping[str, object]:
        return {"kind": self.kind.value, "steps": self.steps, "sends": self.sends, "digest": self.digest[:12]}


class Digest:
    """SHA-256 of chunks, as 32-bit integers in little-endian order, step by step and link by link."""

    def __init__(self) -> None:
        self._sum = sha256()

    def add(self, block: Any) -> None:
        """Add a block to the digest."""
        self._sum.update(block.astype("<i4", copy=False).tobytes())

    def hex(self) -> str:
        """Return the present digest."""
        return self._sum.hexdigest()
