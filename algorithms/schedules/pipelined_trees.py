"""Pipelined all-reduce over trees that reduce and broadcast simultaneously.

Each tree has an equal share of the data, cut into pieces. Piece k + 1 follows piece k after a *period* of steps,
upwards and downwards, so that sums go up while earlier sums already come down. A link serves as many sends in a
period as it counts as parallel links, times the period.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import isqrt

import numpy as np

from ...core.errors import Unsupported
from ...core.instance import Instance
from ...core.outcome import Outcome, Status
from ...core.schedule import Chunks, Schedule, sends_from_lists
from ...core.topology import Topology
from ..bounds.schedule_bounds import best_bound
from .problem import check_size

MAX_PIECES = 4096  #: most pieces that a tree's share is cut into unasked


@dataclass(frozen=True)
class TreeEdge:
    """Edge between a node and its parent."""

    child: int  #: positions of the two nodes in the topology
    parent: int
    up: tuple[int, ...]  #: links from child to parent, and back, in order
    down: tuple[int, ...]


@dataclass(frozen=True)
class TreeSend:
    """Send of every piece of a tree."""

    tree: int
    source: int  #: positions of the nodes in the topology
    target: int
    reduce: bool  #: True for sends towards the root
    path: tuple[int, ...]
    step: int  #: Step of the first piece. On the j-th link of the path it is in step ``step + j``.


def tree_all_reduce(
    instance: Instance,
    topology: Topology,
    trees: Sequence[Sequence[TreeEdge]],
    uses: Sequence[int],
    period: int,
    pieces: int | None,
    metrics: Mapping[str, object] | None = None,
) -> Outcome:
    """Schedule an all-reduce by :func:`pipeline` and :func:`all_reduce`; add ``metrics`` of the trees."""
    bound, certificate = best_bound(instance)
    items = pipeline(trees, uses, period)
    schedule, count = all_reduce(instance, topology, len(trees), items, period, pieces)
    figures = {**(metrics or {}), "pieces": count, "piece_steps": length_of(items)}
    return Outcome(Status.FEASIBLE, schedule, bound=float(bound), certificate=certificate, metrics=figures)


def pipeline(trees: Sequence[Sequence[TreeEdge]], uses: Sequence[int], period: int) -> list[TreeSend]:
    """Schedule every edge, parents first, a step up and a later one down; a link serves ``uses`` sends in a step."""
    load = Counter(link for tree in trees for edge in tree for link in (*edge.up, *edge.down))
    if any(count > uses[link] * period for link, count in load.items()):
        raise Unsupported(f"the trees need a link more often than {period} steps allow")
    load_at: Counter[tuple[int, int]] = Counter()
    items: list[TreeSend] = []
    for number, tree in enumerate(trees):
        ready: Counter[int] = Counter()
        ways = [(True, edge.child, edge.parent, edge.up) for edge in reversed(tree)]
        ways += [(False, edge.parent, edge.child, edge.down) for edge in tree]
        for reduce, source, target, path in ways:
            step = _free_step(path, ready[source], uses, period, load_at)
            arrival = step + len(path)
            ready[target] = max(ready[target], arrival) if reduce else arrival
            items.append(TreeSend(number, source, target, reduce, path, step))
    return items


def _free_step(
    path: tuple[int, ...], ready: int, uses: Sequence[int], period: int, load_at: Counter[tuple[int, int]]
) -> int:
    """Reserve the earliest step in which all links of a path can serve another send per period."""
    for step in range(ready, ready + period):
        slots = [(link, (step + hop) % period) for hop, link in enumerate(path)]
        if all(load_at[slot] < uses[slot[0]] for slot in slots):
            load_at.update(slots)
            return step
    raise Unsupported("no step of a period has all links of a path free")


def length_of(items: Sequence[TreeSend]) -> int:
    """Return the steps from the first send of a piece to its last arrival."""
    return max((item.step + len(item.path) for item in items), default=0)


def best_pieces(length: int, period: int, latency_s: Fraction, wire_s: Fraction) -> int:
    """Return the number of pieces K that minimizes ``(L + p (K - 1)) (a + w / K)``.

    ``length`` L is the steps that one piece takes, ``period`` p those after which the next one follows, ``latency_s`` a
    that of a step, and ``wire_s`` w the time of a tree's whole share on a link.
    """
    if not latency_s or length <= period:
        return MAX_PIECES if length > period else 1
    near = isqrt(int(wire_s * (length - period) / (period * latency_s)))

    def seconds(pieces: int) -> Fraction:
        return (length + period * (pieces - 1)) * (latency_s + wire_s / pieces)

    return min((min(MAX_PIECES, max(1, pieces)) for pieces in (near, near + 1)), key=seconds)


def all_reduce(
    instance: Instance, topology: Topology, trees: int, items: Sequence[TreeSend], period: int, pieces: int | None
) -> tuple[Schedule, int]:
    """Build the schedule of all sends, and return it with the number K of pieces.

    Piece k of tree t is chunk ``t * K + k``. A step lasts as long as a piece on a link of the smallest bandwidth
    with the largest latency. ``pieces`` is K; None for the collective's number of chunks, or if that is 1, the best
    number by :func:`best_pieces`.
    """
    demand = instance.demands[0]
    latency = max(link.latency_s for link in topology.links)
    share = demand.size_bytes / trees / min(link.bandwidth_Bps for link in topology.links)
    if pieces is None:
        pieces = demand.chunks if demand.chunks > 1 else best_pieces(length_of(items), period, latency, share)
    check_size(len(items) * pieces)
    ends = [item.source for item in items], [item.target for item in items]
    reduces, paths = [item.reduce for item in items], [item.path for item in items]
    one = sends_from_lists([item.tree * pieces for item in items], *ends, reduces, paths)
    every = one.take(np.repeat(np.arange(len(items)), pieces))
    later = np.tile(np.arange(pieces), len(items))
    step = np.repeat(np.array([item.step for item in items], dtype=np.int64), pieces) + period * later
    step_s = float(latency + share / pieces)
    start, end = (np.asarray(column * step_s, dtype=np.float64) for column in (step, step + every.hops))
    # Equal sums of all ranks.
    units, everyone = np.ones(trees * pieces, dtype=np.int64), np.zeros(trees * pieces, dtype=np.int64)
    group, unit_bytes = tuple(range(instance.npus)), demand.size_bytes / (trees * pieces)
    chunks = Chunks(units, unit_bytes, (group,), everyone, everyone, units > 0)
    return Schedule(instance.sha256, chunks, replace(every, chunk=every.chunk + later), start, end), pieces
