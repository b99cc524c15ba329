"""``all-to-all-schedule``: pieces along the maximum concurrent flow, link by link (docs/methods/mcf.md)."""

from collections.abc import Callable
from fractions import Fraction
from math import ceil
from typing import Any

import numpy as np

from ...algorithms.bounds.schedule_bounds import group_of, joint_length, pairs_of
from ...algorithms.graphs.distances import Paths
from ...algorithms.graphs.network import edges_by
from ...algorithms.schedules.compose import join_sends_at_switches
from ...algorithms.schedules.replay import serve_pieces
from ...core.bounds import LengthCertificate
from ...core.budget import Budget, require_schedulable
from ...core.errors import Unsupported
from ...core.instance import Instance
from ...core.kernel import kernel
from ...core.outcome import Outcome, Status
from ...core.schedule import Chunks, Floats, Ints, Schedule, Sends, offsets
from ...core.solver import Solver
from ...core.topology import NodeKind, Topology
from .method import McfOptions
from .problem import Exchange, exchange_of
from .solve import bound, measures

_FEW = (0, 2)  #: Pieces of which a link that has fewer is served first; which is better depends on the network.
_TICKS = 2**24  #: Ticks of the longest window: times are rounded up to them.
_LEAST = 1e-4  #: Flows of less than this part of a piece are rounding.
_MOST = 0.5  #: Pieces by which a link's excess counts at most, so that no source leaves its flow by more than it must.


def run(instance: Instance, solver: Solver, budget: Budget, options: McfOptions) -> Outcome:
    """Solve LP (3) or search, cut the flows into pieces, and schedule these (``Method.run``)."""
    optimum = bound(instance, solver, budget, algorithm=options.algorithm)
    if optimum.seconds is None or optimum.flows is None:
        message = optimum.message or "the flows cannot be computed: links differ too much"
        bound_s = None if optimum.seconds is None else float(optimum.seconds)
        return Outcome(Status.LIMIT, bound=bound_s, certificate=optimum.certificate, message=message, **optimum.work)
    seconds, certificate = optimum.seconds, optimum.certificate
    if isinstance(certificate, LengthCertificate):
        seconds, certificate = joint_length(instance, pairs_of(instance), certificate.lengths, late=True)
    budget.tell_bound(float(seconds), certificate)
    with budget.clock.phase("ways"):
        exchange, pieces, flows = exchange_of(instance), instance.demands[0].chunks, optimum.flows
        sends = ceil(pieces * sum(float(flows(number).sum()) for number in range(len(exchange.sources))))
        require_schedulable(sends, sends)
        ways = ways_of(exchange, lambda number: pieces * flows(number), pieces, lambda: budget.is_exhausted)
    with budget.clock.phase("times"):
        plan = None if ways is None else schedule_pieces(instance, exchange, ways, budget)
    return Outcome(
        Status.LIMIT if plan is None else Status.FEASIBLE,
        plan,
        bound=float(seconds),
        certificate=certificate,
        message="the time is over" if plan is None else optimum.message,
        metrics=measures(instance, optimum) | ({} if plan is None or ways is None else {"sends": len(plan.sends)}),
        **optimum.work,
    )


def schedule_pieces(instance: Instance, exchange: Exchange, ways: Paths, budget: Budget) -> Schedule | None:
    """Schedule the pieces, those with the most links left first; None when the time is over.

    Times are rounded up to ticks of which the longest transmission has 2^24.
    """
    topology, pieces = instance.topology, instance.demands[0].chunks
    piece_bytes = group_of(instance).part_bytes / pieces
    times = [piece_bytes / link.bandwidth_Bps for link in topology.links]
    tick_s = max(times) / _TICKS
    window = np.array([-(-time // tick_s) for time in times], dtype=np.int64)
    ticks = [-(-link.latency_s // tick_s) for link in topology.links]
    if max(ticks) >= 2**53:
        raise Unsupported("latencies are too long for the time of a piece; expected at most 2^53 times as long")
    delay = window + np.array(ticks, dtype=np.int64)
    pairs = (len(ways.offset) - 1) // pieces
    turns, shift = _turns(topology, exchange)
    order = (turns * pieces + np.arange(pieces)[:, None]).ravel()  # a piece of every pair, then the next ones
    rest = window, delay, order, lambda: budget.is_exhausted
    attempts = (serve_pieces(ways, exchange.tails, *rest, few, shift) for few in _FEW)
    starts = [start for start in attempts if start is not None]
    if not starts:
        return None
    start = min(starts, key=lambda start: int((start + delay[ways.links]).max()))
    by_start = np.argsort(start, kind="stable")
    link = ways.links[by_start]
    schedule = Schedule(
        instance.sha256,
        _chunks(instance, exchange, pieces, piece_bytes),
        Sends(
            np.repeat(np.arange(pairs * pieces), np.diff(ways.offset))[by_start],
            exchange.tails[link],
            exchange.heads[link],
            np.zeros(len(link), dtype=np.bool_),
            np.arange(len(link) + 1),
            link,
        ),
        np.asarray(start[by_start] * float(tick_s), dtype=np.float64),
        np.asarray((start[by_start] + delay[link]) * float(tick_s), dtype=np.float64),
    )
    joined = join_sends_at_switches(topology, schedule, sums=False)
    assert isinstance(joined, Schedule)  # noqa: S101 (as was the one before)
    return joined


def _turns(topology: Topology, exchange: Exchange) -> tuple[Ints, Ints]:
    """Return the order of pairs, and for every link the place of the next link that it serves first.

    Ranks that share a switch begin with different targets, since all their pieces have equally far to go.
    """
    source, target = np.nonzero(exchange.weights)
    switches = np.array([node.kind is NodeKind.SWITCH for node in topology.nodes])
    if not switches.any():
        return np.arange(len(source)), np.zeros(len(exchange.tails), dtype=np.int64)
    place = np.zeros(exchange.points, dtype=np.int64)
    place[exchange.sources] = np.arange(len(exchange.sources))
    turns = np.argsort((place[target] - source) % len(exchange.sources), kind="stable")
    return turns, np.where(switches[exchange.heads], exchange.tails + 2, 0)


def _chunks(instance: Instance, exchange: Exchange, pieces: int, piece_bytes: Fraction) -> Chunks:
    """List pieces by source in the group's order, target in the network's order, and number."""
    ranks = np.array(group_of(instance).ranks, dtype=np.int64)
    by_rank = np.argsort(ranks)
    source, target = np.nonzero(exchange.weights[:, np.array(instance.topology.rank_nodes)[ranks[by_rank]]])
    each = np.ones(len(source) * pieces, dtype=np.int64)
    groups = tuple((int(rank),) for rank in ranks)
    return Chunks(each, piece_bytes, groups, np.repeat(source, pieces), np.repeat(by_rank[target], pieces), each < 0)


def ways_of(
    exchange: Exchange, flow_of: Callable[[int], Floats], pieces: int, exhausted: Callable[[], bool] = lambda: False
) -> Paths | None:
    """Return the paths of all pieces, by source, target and piece; None when the time is over.

    Weights are 0 and 1, and ``flow_of(source)`` is its flow over every link, in pieces.
    """
    first, order = edges_by(exchange.heads, exchange.points)
    excess = np.zeros(len(exchange.tails))
    hops, links = list[Ints](), list[Ints]()
    for number, source in enumerate(exchange.sources.tolist()):
        if exhausted():
            return None
        flow = flow_of(number)
        targets = np.flatnonzero(exchange.weights[number] > 0)
        count = np.zeros(len(targets) * pieces, dtype=np.int64)
        path = np.empty(len(targets) * pieces * exchange.points, dtype=np.int64)
        weight = np.where(flow > _LEAST, flow - np.clip(excess, -_MOST, _MOST), -np.inf)
        place = np.full(exchange.points, -1)
        size = _follow(source, targets, pieces, weight, exchange.tails, first, order, place, count, path)
        links.append(path[:size].copy())
        hops.append(count)
        excess += np.bincount(links[-1], minlength=len(excess)) - flow
    return Paths(offsets(np.concatenate(hops)), np.concatenate(links))


@kernel
def _follow(
    source: int,
    targets: Any,
    pieces: int,
    weight: Any,
    tails: Any,
    first: Any,
    entering: Any,
    place: Any,
    count: Any,
    path: Any,
) -> int:
    """Trace all pieces of a source back to it; return their total number of links.

    A path that returns to a node continues from its first visit there; the cycle has used up its links' flow.
    """
    size = 0
    for index in range(len(targets)):
        for piece in range(pieces):
            node, length = targets[index], 0
            while node != source:
                best = entering[first[node]]
                for at in range(first[node], first[node + 1]):
                    if weight[entering[at]] > weight[best]:
                        best = entering[at]
                weight[best] -= 1.0
                place[node] = length
                path[size + length] = best
                length += 1
                node = tails[best]
                if place[node] >= 0:
                    for back in range(place[node] + 1, length):
                        place[tails[path[size + back - 1]]] = -1
                    length = place[node]
            place[targets[index]] = -1
            way = path[size : size + length]
            place[tails[way]] = -1
            way[:] = way[::-1].copy()
            count[index * pieces + piece] = length
            size += length
    return size
