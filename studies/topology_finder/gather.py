"""All-gathers as arrays, and their expansions to larger networks, or to more ports.

A shard consists of equal pieces, and is cut into chunks between pieces. Chunks are sorted by owner and place in the
shard; links and nodes are numbered. There are no units: sizes are in shards, times in steps. Nodes, degree, T_L and T_B
of every expansion, with their sources: docs/methods/topology-finder.md, "Expansions".
"""

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import lcm

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

    The new number of pieces is a multiple of the old one. A place is the owner of a shard, and the new piece before
    which to cut it.
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


def line_graph(base: Gather) -> Gather:
    """Expand to the line graph, where link (u, v) sends to link (v, w).

    Every node first forwards its shard, then sends as in the base.
    """
    d, links = base.degree, base.links
    into, out = _links_of(base, 1), _links_of(base, 0)
    count = base.chunks_of[links[:, 1]]
    owner, chunk = expand_ranges(base.first_of[links[:, 1]], count)
    first = np.cumsum(count) - count
    check_size(len(base.chunk) * d * d + len(owner) * d)
    head, tail = links[base.link, 1], base.owner[base.chunk]
    source = np.repeat(into[tail], d, axis=1)  # whose chunk: a link into the chunk's owner
    target = np.tile(out[head], (1, d))
    over = np.tile(base.link[:, None] * d + np.arange(d), (1, d))
    which = first[source] + (base.chunk - base.first_of[tail])[:, None]
    proper = source != target
    place, own = expand_ranges(first, count)
    begin = np.tile(np.arange(d), len(own))
    return Gather(
        len(links),
        d,
        np.stack([np.repeat(np.arange(len(links)), d), out[links[:, 1]].ravel()], axis=1),
        base.pieces,
        owner,
        base.start[chunk],
        base.size[chunk],
        np.concatenate([np.repeat(own, d), which[proper]]),
        np.concatenate([np.repeat(place, d) * d + begin, over[proper]]),
        np.concatenate([np.zeros(len(begin), dtype=np.int64), np.repeat(base.step + 1, d * d)[proper.ravel()]]),
    )


def degree_expansion(base: Gather, n: int) -> Gather:
    """Expand to n copies of every node with all copies of linked nodes linked.

    Copy i of node v is ``v n + i``. Shards travel among the copies with their own number and leave them with their last
    hop. In a further step, a node gets those of its other copies, in equal parts over all its links.
    """
    _at_least_two(n)
    d, parts = base.degree, n * base.degree
    into = _links_of(base, 1)
    pieces = lcm(base.pieces, parts)
    everybody = np.arange(base.nodes)
    fine = recut(base, pieces, np.repeat(everybody, parts), np.tile(np.arange(parts) * (pieces // parts), base.nodes))
    copy = np.arange(n)
    owner, chunk = expand_ranges(np.repeat(fine.first_of, n), np.repeat(fine.chunks_of, n))
    check_size(len(fine.chunk) * n * n + len(owner) * (n - 1))
    at, holder = copy[:, None], fine.owner[fine.chunk]
    which = n * fine.first_of[holder] + fine.chunk - fine.first_of[holder]
    which = which[:, None, None] + at * fine.chunks_of[holder][:, None, None]
    over = fine.link[:, None, None] * n * n + at * n + copy
    # Part a of a copy's shard comes to another copy over the a-th of its n d links.
    part = fine.start[chunk] // (pieces // parts)
    other = owner[:, None] // n * n + (owner[:, None] % n + copy[1:]) % n
    last = into[owner // n, part // n][:, None] * n * n + (part % n)[:, None] * n + other % n
    ends = base.links[:, None, None, :] * n + np.stack(np.broadcast_arrays(at, copy), axis=-1)
    return Gather(
        n * base.nodes,
        n * d,
        ends.reshape(-1, 2),
        pieces,
        owner,
        fine.start[chunk],
        fine.size[chunk],
        np.concatenate([np.repeat(which, n, axis=2).ravel(), np.repeat(np.arange(len(owner)), n - 1)]),
        np.concatenate([over.ravel(), last.ravel()]),
        np.concatenate([np.repeat(fine.step, n * n), np.full(len(owner) * (n - 1), fine.steps)]),
    )


def cartesian_power(base: Gather, n: int) -> Gather:
    """Combine n dimensions that each equal the base; node (x_0, x_1, ...) is ``x_0 + N x_1 + ...``.

    A shard is cut into n parts. Part i is gathered in dimension i, then from all these nodes in the next one, and so
    on: at any time every dimension serves one part.
    """
    _at_least_two(n)
    nodes, steps, edges = base.nodes, base.steps, len(base.links)
    starts = np.unique(base.start)
    even = recut(base, base.pieces, np.repeat(np.arange(nodes), len(starts)), np.tile(starts, nodes))
    per = len(starts)
    others = nodes ** (n - 1)
    check_size(n * len(even.chunk) * others * (nodes**n - 1) // (nodes - 1))
    chunk, link, step = [], [], []
    for part in range(n):
        for phase in range(n):
            k = (part + phase) % n
            before = [(part + earlier) % n for earlier in range(phase)]
            home, away = _pair_coordinates(nodes, n, k, before)
            at = even.owner[even.chunk]
            shard = _node(home, at[:, None], nodes, k)
            chunk.append((shard * n + part) * per + (even.chunk - per * at)[:, None])
            link.append((k * edges + even.link[:, None]) * others + away)
            step.append(np.repeat(even.step + phase * steps, len(home)))
    ends = [_node(np.arange(others), base.links.T[:, :, None], nodes, k).reshape(2, -1).T for k in range(n)]
    count = nodes**n
    shift = (np.arange(n) * base.pieces)[:, None]
    return Gather(
        count,
        n * base.degree,
        np.concatenate(ends),
        n * base.pieces,
        np.repeat(np.arange(count), n * per),
        np.tile((shift + starts).ravel(), count),
        np.tile(even.size[:per], n * count),
        np.concatenate([part.ravel() for part in chunk]),
        np.concatenate([part.ravel() for part in link]),
        np.concatenate(step),
    )


def both_directions(onward: Gather, back: Gather) -> Gather:
    """Combine all-gathers on a network and its transpose (its links reversed): each carries half of a shard."""
    if onward.nodes != back.nodes or onward.degree != back.degree:
        raise InputError("expected a network and its transpose", place="network")
    pieces = lcm(onward.pieces, back.pieces)
    owner = np.concatenate([onward.owner, back.owner])
    ups = (pieces // onward.pieces, pieces // back.pieces)
    start = np.concatenate([onward.start * ups[0], back.start * ups[1] + pieces])
    size = np.concatenate([onward.size * ups[0], back.size * ups[1]])
    order = np.lexsort((start, owner))
    rank = np.argsort(order)
    return Gather(
        onward.nodes,
        2 * onward.degree,
        np.concatenate([onward.links, back.links]),
        2 * pieces,
        owner[order],
        start[order],
        size[order],
        rank[np.concatenate([onward.chunk, back.chunk + len(onward.owner)])],
        np.concatenate([onward.link, back.link + len(onward.links)]),
        np.concatenate([onward.step, back.step]),
    )


def parallel_links(base: Gather, k: int) -> Gather:
    """Replace every link by k links, and every chunk by k equal parts, one for each of them."""
    _at_least_two(k)
    part = np.arange(k)
    size = np.repeat(base.size, k)
    return Gather(
        base.nodes,
        k * base.degree,
        np.repeat(base.links, k, axis=0),
        k * base.pieces,
        np.repeat(base.owner, k),
        (base.start[:, None] * k + part * base.size[:, None]).ravel(),
        size,
        (base.chunk[:, None] * k + part).ravel(),
        (base.link[:, None] * k + part).ravel(),
        np.repeat(base.step, k),
    )


def _links_of(base: Gather, end: int) -> Ints:
    """Return the d links that leave (0) or enter (1) every node."""
    count = np.bincount(base.links[:, end], minlength=base.nodes)
    if (count != base.degree).any():
        node = int(np.flatnonzero(count != base.degree)[0])
        way = "to" if end else "from"
        raise InputError(
            f"node {node} has {count[node]} links {way} it, not {base.degree}; expected a regular network without "
            "loops",
            place="network.links",
        )
    order: Ints = np.argsort(base.links[:, end], kind="stable").reshape(base.nodes, base.degree)
    return order


def _at_least_two(n: int) -> None:
    if n < 2:
        raise InputError(f"{n} is too few; expected at least 2", place="n")


def _node(others: Ints, digit: Ints, nodes: int, k: int) -> Ints:
    """Insert coordinate k of a node between the others, which are given as one number."""
    low = nodes**k
    node: Ints = others // low * low * nodes + digit * low + others % low
    return node


def _pair_coordinates(nodes: int, n: int, k: int, dimensions: list[int]) -> tuple[Ints, Ints]:
    """Pair an owner's coordinates, except the k-th, with those of all nodes that differ in dimensions done."""
    home = np.arange(nodes ** (n - 1))
    away = home
    for dimension in dimensions:
        stride = nodes ** (dimension - (dimension > k))
        digit = np.arange(nodes)
        home = np.repeat(home, nodes)
        away = (away[:, None] + (digit - away[:, None] // stride % nodes) * stride).ravel()
    return home, away
