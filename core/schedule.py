"""Schedules: the chunk, path and step or time of every send.

Columns are numpy arrays, since schedules have millions of sends. Nodes and links are numbered by their position in
the topology; ranks by the position among its compute nodes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .display import AnswerMixin, DisplayMixin
from .errors import InputError

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


def offsets(lengths: Ints | Sequence[int]) -> Ints:
    """Return the offsets of concatenated lists, and the end of the last one."""
    first = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, dtype=np.int64, out=first[1:])
    return first


def ranges(first: Ints, lengths: Ints) -> Ints:
    """Concatenate ranges of consecutive numbers, given by first numbers and lengths."""
    return np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths - first, lengths)


def number_within(group: Ints) -> Ints:
    """Return the number of each item within its group, from 0 and in order, given the groups of all."""
    sizes, number = np.bincount(group), np.empty(len(group), dtype=np.int64)
    number[np.argsort(group, kind="stable")] = ranges(np.zeros_like(sizes), sizes)
    return number


@dataclass(frozen=True, eq=False, repr=False)
class Chunks(DisplayMixin):
    """Chunks of a schedule: size, initial holders and final receivers of each."""

    units: Ints  #: Size of each chunk in multiples of ``unit_bytes``; shape (chunks,).
    unit_bytes: Fraction  #: Exact size of a unit; it may be a fraction of a byte.
    groups: tuple[tuple[int, ...], ...]  #: Sets of ranks, each sorted.
    #: The groups that have each chunk at the start, and need it at the end; shape (chunks,).
    held_by: Ints
    needed_by: Ints
    #: If the holders' contributions are summed: then every receiver needs each contribution exactly once; shape
    #: (chunks,).
    reduced: Bools

    def __post_init__(self) -> None:
        lengths = {len(column) for column in (self.units, self.held_by, self.needed_by, self.reduced)}
        if len(lengths) != 1:
            raise InputError("the columns differ in length", place="chunks")
        if len(self.units) and (self.units.min() <= 0 or self.unit_bytes <= 0):
            raise InputError("a chunk has no size", place="chunks.units")
        for name, column in (("held_by", self.held_by), ("needed_by", self.needed_by)):
            if len(column) and (column.min() < 0 or column.max() >= len(self.groups)):
                raise InputError("names a group that does not exist", place=f"chunks.{name}")

    def __len__(self) -> int:
        return len(self.units)

    def size_bytes(self, chunk: int) -> Fraction:
        """Return the exact size of a chunk."""
        return int(self.units[chunk]) * self.unit_bytes

    @cached_property
    def sizes_bytes(self) -> Floats:
        """Sizes of all chunks, rounded."""
        return np.asarray(self.units * float(self.unit_bytes), dtype=np.float64)

    def _facts(self) -> Mapping[str, object]:
        return {"chunks": len(self), "bytes": float(int(self.units.sum()) * self.unit_bytes)}


@dataclass(frozen=True, eq=False, repr=False)
class Sends(DisplayMixin):
    """Transfers of chunks between nodes."""

    #: The chunk and the nodes it leaves and reaches. A send between ranks that are not neighbours has a path through
    #: other nodes, which forward it without keeping it; a switch is a source or target only if it stores; shape
    #: (sends,).
    chunk: Ints
    source: Ints
    target: Ints
    reduce: Bools  #: If the target adds the chunk to its own; otherwise it stores a copy; shape (sends,).
    path_offset: Ints  #: Offset of each send's links in ``path_links``; shape (sends + 1,).
    path_links: Ints  #: Links of all sends, in order from source to target.

    def __post_init__(self) -> None:
        count = len(self.chunk)
        if {len(self.source), len(self.target), len(self.reduce)} != {count} or len(self.path_offset) != count + 1:
            raise InputError("the columns differ in length", place="sends")
        steps = np.diff(self.path_offset)
        if self.path_offset[0] != 0 or self.path_offset[-1] != len(self.path_links) or (steps < 1).any():
            raise InputError("every send needs a path of at least one link", place="sends.path_offset")

    def __len__(self) -> int:
        return len(self.chunk)

    def _facts(self) -> Mapping[str, object]:
        return {"sends": len(self), "hops": len(self.path_links)}

    @cached_property
    def hops(self) -> Ints:
        """Number of links of each send."""
        return np.diff(self.path_offset)

    @cached_property
    def hop_send(self) -> Ints:
        """Send that each entry of ``path_links`` belongs to."""
        return np.repeat(np.arange(len(self)), self.hops)

    def path(self, send: int) -> tuple[int, ...]:
        """Return the links of one send."""
        return tuple(self.path_links[self.path_offset[send] : self.path_offset[send + 1]].tolist())

    def take(self, index: Ints | Bools) -> "Sends":
        """Select sends, in the order of the index."""
        sends = np.flatnonzero(index) if index.dtype == np.bool_ else np.asarray(index, dtype=np.int64)
        hops = self.hops[sends]
        return Sends(
            self.chunk[sends],
            self.source[sends],
            self.target[sends],
            self.reduce[sends],
            offsets(hops),
            self.path_links[ranges(self.path_offset[sends], hops)],
        )


@dataclass(frozen=True, eq=False, repr=False)
class StepSchedule(AnswerMixin, name="step-schedule"):
    """Schedule in steps, in which a node sends only data it had before the step."""

    instance_sha256: str
    chunks: Chunks
    sends: Sends
    step: Ints  #: Step of each send, from 0; shape (sends,).

    def __post_init__(self) -> None:
        if len(self.step) != len(self.sends):
            raise InputError("expected a step for every send", place="step")
        if len(self.step) and self.step.min() < 0:
            raise InputError("a step is negative", place="step")

    @property
    def steps(self) -> int:
        """Number of steps."""
        return int(self.step.max()) + 1 if len(self.step) else 0

    def _size(self) -> dict[str, Any]:
        return {"chunks": len(self.chunks), "sends": len(self.sends), "steps": self.steps}

    def _facts(self) -> Mapping[str, object]:
        return {"steps": self.steps, "sends": len(self.sends), "chunks": len(self.chunks)}


@dataclass(frozen=True, eq=False, repr=False)
class Schedule(AnswerMixin, name="schedule"):
    """Schedule in continuous time."""

    instance_sha256: str
    chunks: Chunks
    sends: Sends
    #: Times at which the first byte leaves the source and the last one reaches the target; shape (sends,).
    start_s: Floats
    end_s: Floats

    def __post_init__(self) -> None:
        if len(self.start_s) != len(self.sends) or len(self.end_s) != len(self.sends):
            raise InputError("expected a start and an end for every send", place="start_s")
        if not (np.isfinite(self.start_s).all() and np.isfinite(self.end_s).all()):
            raise InputError("a time is not finite", place="start_s")
        if len(self.sends) and (self.start_s.min() < 0 or (self.end_s < self.start_s).any()):
            raise InputError("a send starts before 0 or ends before it starts", place="start_s")

    def _size(self) -> dict[str, Any]:
        return {"chunks": len(self.chunks), "sends": len(self.sends)}

    def _facts(self) -> Mapping[str, object]:
        return {"end_s": float(self.end_s.max(initial=0)), "sends": len(self.sends), "chunks": len(self.chunks)}


def sends_from_lists(
    chunk: Sequence[int],
    source: Sequence[int],
    target: Sequence[int],
    reduce: Sequence[bool] | bool,
    paths: Sequence[Sequence[int]],
) -> Sends:
    """Create sends from lists; ``reduce`` may be one bool for all."""
    count = len(chunk)
    hops = np.fromiter((len(path) for path in paths), dtype=np.int64, count=count)
    flat: Any = np.fromiter((link for path in paths for link in path), dtype=np.int64, count=int(hops.sum()))
    flags = np.full(count, reduce) if isinstance(reduce, bool) else np.asarray(reduce, dtype=np.bool_)
    return Sends(
        np.asarray(chunk, dtype=np.int64),
        np.asarray(source, dtype=np.int64),
        np.asarray(target, dtype=np.int64),
        flags,
        offsets(hops),
        flat,
    )
