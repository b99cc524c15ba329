"""All-gathers as arrays, the form that expansions transform.

A shard consists of equal pieces, and is cut into chunks between pieces. Chunks are sorted by owner and place in the
shard; links and nodes are numbered. There are no units: sizes are in shards, times in steps.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np

from ...algorithms.breadth_first.broadcast import PieceRanges
from ...core.budget import require_schedulable
from ...core.errors import InputError, Unsupported
from ...core.instance import Instance
from ...core.schedule import Chunks, Ints, Sends, StepSchedule, ranges

MAX_SENDS = 30_000_000  #: More sends than this take more memory than a small machine has.


@dataclass(frozen=True, eq=False)
class Gather:
    """An all-gather in steps."""

    nodes: int
    degree: int  #: Ports of a node in each direction, d; a link has 1/d of a node's bandwidth.
    links: Ints  #: Source and target of every link.
    pieces: int  #: Number of pieces of every shard.
    #: Owner, first piece and number of pieces of every chunk; sorted by owner and start, without gaps.
    owner: Ints
    start: Ints
    size: Ints
    #: Chunk, link and step of every send; steps count from 0.
    chunk: Ints
    link: Ints
    step: Ints

    @property
    def steps(self) -> int:
        """Number of steps, T_L in units of alpha."""
        return int(self.step.max(initial=-1)) + 1

    @cached_property
    def loads(self) -> tuple[Fraction, ...]:
        """Load of the busiest link in every step, in shards."""
        carried = np.zeros((self.steps, len(self.links)), dtype=np.int64)
        np.add.at(carried, (self.step, self.link), self.size[self.chunk])
        return tuple(Fraction(int(most), self.pieces) for most in carried.max(axis=1, initial=0))

    @property
    def bandwidth(self) -> Fraction:
        """T_B in units of M/B."""
        return Fraction(self.degree, self.nodes) * sum(self.loads, Fraction(0))

    @cached_property
    def chunks_of(self) -> Ints:
        """Number of chunks of every node."""
        return np.bincount(self.owner, minlength=self.nodes)

    @cached_property
    def first_of(self) -> Ints:
        """First chunk of every node."""
        return np.cumsum(self.chunks_of) - self.chunks_of


def expand_ranges(first: Ints, count: Ints) -> tuple[Ints, Ints]:
    """Concatenate ranges; return the index of the range and the number of every entry."""
    return np.repeat(np.arange(len(first)), count), ranges(first, count)


def check_size(sends: int) -> None:
    """Reject a schedule that would not fit, before memory is allocated."""
    if sends > MAX_SENDS:
        raise Unsupported(f"the schedule has {sends:,} sends; expected at most {MAX_SENDS:,}")
    require_schedulable(sends)


def recut(gather: Gather, pieces: int, owner: Ints, start: Ints) -> Gather:
    """Cut shards into more pieces, and chunks at additional places.

    Parameters
    ----------
    pieces : int
        New number of pieces, a multiple of the old one.
    owner, start : ndarray
        Additional places: the owner of a shard, and the new piece before which to cut it.
    """
    scale, width = pieces // gather.pieces, pieces + 1
    begin = gather.owner * width + gather.start * scale
    end = begin + gather.size * scale
    bounds = np.unique(np.concatenate([begin, end, owner * width + start]))
    cut = bounds[bounds % width < pieces]
    new_owner, new_start = cut // width, cut % width
    stop = np.where(np.diff(new_owner, append=-1) == 0, np.append(new_start[1:], 0), pieces)
    first, last = np.searchsorted(cut, begin), np.searchsorted(cut, end)
    place, chunk = expand_ranges(first[gather.chunk], (last - first)[gather.chunk])
    finer = replace(gather, pieces=pieces, owner=new_owner, start=new_start, size=stop - new_start)
    return replace(finer, chunk=chunk, link=gather.link[place], step=gather.step[place])


def without_sends(nodes: int, degree: int, links: Ints, pieces: int = 1) -> Gather:
    """Return an all-gather before its first send: whole shards at their owners."""
    everybody, none = np.arange(nodes), np.zeros(0, dtype=np.int64)
    size = np.full_like(everybody, pieces)
    return Gather(nodes, degree, links, pieces, everybody, np.zeros_like(everybody), size, none, none, none)


def from_shares(degree: int, links: Ints, shares: PieceRanges) -> Gather:
    """Convert a breadth-first all-gather, given the shares of all nodes."""
    nodes = shares.graph.nodes
    whole = without_sends(nodes, degree, links, shares.pieces)
    ends_inside = shares.stop < shares.pieces
    cut = recut(
        whole,
        shares.pieces,
        np.concatenate([shares.source, shares.source[ends_inside]]),
        np.concatenate([shares.start, shares.stop[ends_inside]]),
    )
    width = shares.pieces + 1
    bounds = np.append(cut.owner * width + cut.start, nodes * width)
    first = np.searchsorted(bounds, shares.source * width + shares.start)
    last = np.searchsorted(bounds, shares.source * width + shares.stop)
    check_size(int((last - first).sum()))
    place, chunk = expand_ranges(first, last - first)
    return replace(cut, chunk=chunk, link=shares.link[place], step=shares.step[place])


def schedule_of(gather: Gather, instance: Instance) -> StepSchedule:
    """Convert an all-gather to a schedule of an instance with the same links in the same order."""
    if instance.demand is None or instance.npus != gather.nodes:
        raise InputError(f"expected a collective among {gather.nodes:,} ranks", source=instance.name)
    nodes, chunks, sends = gather.nodes, len(gather.owner), len(gather.chunk)
    return StepSchedule(
        instance.sha256,
        Chunks(
            gather.size,
            instance.demand.size_bytes / (nodes * gather.pieces),
            (*((rank,) for rank in range(nodes)), tuple(range(nodes))),
            gather.owner,
            np.full(chunks, nodes),
            np.zeros(chunks, dtype=np.bool_),
        ),
        Sends(
            gather.chunk,
            gather.links[gather.link, 0],
            gather.links[gather.link, 1],
            np.zeros(sends, dtype=np.bool_),
            np.arange(sends + 1),
            gather.link,
        ),
        gather.step,
    )
