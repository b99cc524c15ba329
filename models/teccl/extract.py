"""Conversion between sends in epochs and values of models."""

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from operator import itemgetter
from typing import Any

import numpy as np

from ...algorithms.epochs.search import EpochPlan
from ...algorithms.schedules.problem import chunks_of
from ...core.schedule import Chunks, Floats, Ints, Schedule, Sends, offsets
from .formulations.lp import LpIndexSets
from .index_sets import IndexSets
from .problem import MAX_COMMODITIES, EpochProblem

GRAIN = 2**40  #: Parts of a chunk are multiples of this.
DUST = 1e-9  #: Flow that is taken for a solver's dust.
Way = tuple[tuple[int, int], ...]  #: A way from source to destination: links and epochs, in order.
Key = tuple[int, int, int]  #: Source, link or node, epoch.
Rates = dict[Key, float]


@dataclass(frozen=True, order=True)
class EpochSend:
    """Transfer of a chunk over a link, or over several through nodes that forward at once.

    It starts over each further link at the index at which it arrives there.
    """

    start: int
    commodity: int  #: Position in the problem's commodities.
    path: tuple[int, ...]


@dataclass(frozen=True)
class PathFlow:
    """Part of a fluid commodity with its paths.

    Its hops are links and epochs, one path after the other; one path for each destination.
    """

    commodity: int  #: Position in the problem's commodities.
    amount: Fraction  #: Part of the commodity's chunk, above 0.
    hops: tuple[tuple[int, int], ...]


def hops(problem: EpochProblem, send: EpochSend) -> list[tuple[int, int]]:
    """Return the links of a send with the start index on each."""
    links, at = [], send.start
    for link in send.path:
        links.append((link, at))
        at += problem.links[link].delay
    return links


def arrival(problem: EpochProblem, send: EpochSend) -> int:
    """Return the index at which a send reaches the end of its path."""
    return send.start + sum(problem.links[link].delay for link in send.path)


def finish(problem: EpochProblem, sends: Iterable[EpochSend]) -> int:
    """Return a schedule's number of epochs: the index of its last arrival."""
    return max((arrival(problem, send) for send in sends), default=0)


def needed_sends(problem: EpochProblem, sends: Iterable[EpochSend]) -> list[EpochSend]:
    """Keep only sends by which destinations get their chunks: reverse depth-first search, section 3.1.

    From every destination the send that brought the chunk first is traced back, up to the source. At a node that cannot
    store, the predecessor is the send that arrived at the index at which the chunk left; at one with limited room, the
    last one before that; at one that cannot copy, a different one for every send: a duplicate to it counts twice.
    """
    every = sorted(sends)
    bringing = defaultdict[tuple[int, int], list[tuple[int, int]]](list)
    for at, index in sorted((arrival(problem, send), index) for index, send in enumerate(every)):
        bringing[every[index].commodity, problem.links[every[index].path[-1]].target].append((at, index))
    useful: set[int] = set()
    for q, commodity in enumerate(problem.commodities):
        stack = [bringing[q, target][0][1] for target in commodity.targets]
        while stack:
            if (index := stack.pop()) not in useful:
                useful.add(index)
                tail = problem.links[every[index].path[0]].source
                if tail != commodity.source:
                    stack.append(_before(problem, bringing[q, tail], q, tail, every[index].start))
    return [every[index] for index in sorted(useful)]


def _before(problem: EpochProblem, arrivals: list[tuple[int, int]], q: int, node: int, start: int) -> int:
    """Return the send that brought a node what it sends at ``start``, each once where nothing is copied."""
    stores = problem.stores(problem.commodities[q], node) and problem.room[node] != 0
    if problem.copies[node]:
        candidates = [send for at, send in arrivals if at == start or (stores and at < start)]
        return candidates[0 if problem.room[node] is None else -1]
    index = max(i for i, (at, _) in enumerate(arrivals) if at == start or (stores and at < start))
    return arrivals.pop(index)[1]


def build_sum_trees(problem: EpochProblem, sends: Sequence[EpochSend]) -> list[EpochSend]:
    """Turn the contributions to each sum into a tree: storing nodes add and send once.

    Of the sends of a node towards one sum, only the last is kept: all contributions that it forwards have arrived by
    then, and the last send of the next node does not start before they reach it. So nothing arrives later than
    before, and less is sent. A node without a contribution that no longer receives any sends nothing.
    """
    commodities = problem.commodities
    result: list[EpochSend] = []
    last: dict[tuple[int, int], EpochSend] = {}
    for send in sorted(_join_hops(problem, sends)):
        if commodities[send.commodity].summed:
            last[commodities[send.commodity].chunk, problem.links[send.path[0]].source] = send
        else:
            result.append(send)
    holds = {(c.chunk, c.source) for c in commodities if c.summed}
    for (chunk, source), send in sorted(last.items(), key=lambda each: (arrival(problem, each[1]), each[1].start)):
        if (chunk, source) in holds:
            holds.add((chunk, problem.links[send.path[-1]].target))
            result.append(send)
    return sorted(result)


def _join_hops(problem: EpochProblem, sends: Sequence[EpochSend]) -> list[EpochSend]:
    """Join the hops of sums through switches that forward once; no path repeats a send."""

    def passes(q: int, node: int) -> bool:
        commodity = problem.commodities[q]
        return bool(commodity.after) and not problem.copies[node] and not problem.stores(commodity, node)

    onwards = defaultdict[tuple[int, int, int], list[EpochSend]](list)
    joined: list[EpochSend] = []
    for send in sends:
        tail = problem.links[send.path[0]].source
        if passes(send.commodity, tail):
            onwards[send.commodity, tail, send.start].append(send)
        else:
            joined.append(send)
    for index, send in enumerate(joined):
        path, at = send.path, arrival(problem, send)
        while passes(send.commodity, node := problem.links[path[-1]].target):
            further = onwards[send.commodity, node, at].pop()
            path, at = path + further.path, arrival(problem, further)
        joined[index] = EpochSend(send.start, send.commodity, path)
    return joined


def sends_of_model(sets: IndexSets, model: Any) -> list[EpochSend]:
    """Return the needed sends of a solved model; contributions to sums are added up."""
    times = ((send, round(model.F[send].value)) for send in sets.sends)
    sends = [EpochSend(k, q, sets.arcs[a].links) for (q, a, k), count in times for _ in range(count)]
    return build_sum_trees(sets.problem, needed_sends(sets.problem, sends))


def give_start(sets: IndexSets, model: Any, sends: Sequence[EpochSend]) -> bool:
    """Set F to a schedule of whole chunks without sums; return False if the model lacks one of its sends."""
    problem = sets.problem
    arc = {ways.links: a for a, ways in enumerate(sets.arcs)}
    count = Counter[tuple[int, int, int]]()
    for send in sends:
        for link, at in hops(problem, send):
            count[send.commodity, arc[(link,)], at] += 1
    if not count.keys() <= set(sets.sends):
        return False
    for key in sets.sends:
        model.F[key].value = min(count[key], 1) if problem.copies[sets.arcs[key[1]].target] else count[key]
    return True


def path_flows(sets: LpIndexSets, flow: Rates, stock: Rates, read: Rates) -> list[PathFlow]:
    """Cut every chunk into parts that take one path to each destination (docs/methods/teccl.md).

    ``flow``, ``stock`` and ``read`` are the values of F, B and R. The paths to one destination are laid end to end over
    the chunks that it needs of a source. The amounts of each commodity sum to 1 exactly.
    """
    flow, stock = dict(flow), dict(stock)
    ways = defaultdict[tuple[int, int], list[tuple[float, Way]]](list)
    for (s, d, k), amount in sorted(read.items()):
        rest = amount
        while rest > DUST:
            part, way = _trace(sets, flow, stock, (s, d, k), rest)
            rest -= part
            if part <= 0:
                break
            ways[s, d].append((part, way))
    cuts = {pair: _lay_out_ways(each, sets.demand[pair[0]][pair[1]]) for pair, each in ways.items()}
    nth = Counter[tuple[int, int]]()
    flows: list[PathFlow] = []
    for q, commodity in enumerate(sets.problem.commodities):
        pairs = [(commodity.source, target) for target in commodity.targets]
        begin = {pair: nth[pair] * GRAIN for pair in pairs}
        nth.update(pairs)
        edges = {e - offset for pair, offset in begin.items() for e, _ in cuts[pair] if 0 < e - offset < GRAIN}
        for low, high in pairwise(sorted(edges | {0, GRAIN})):
            hops: list[tuple[int, int]] = []
            for pair, offset in begin.items():
                hops += cuts[pair][bisect_right(cuts[pair], low + offset, key=itemgetter(0)) - 1][1]
            flows.append(PathFlow(q, Fraction(high - low, GRAIN), tuple(hops)))
    return flows


def _lay_out_ways(ways: list[tuple[float, Way]], chunks: int) -> list[tuple[int, Way]]:
    """Return the paths with the grain at which each begins; together they fill all chunks."""
    total, at = sum(amount for amount, _ in ways), 0.0
    layout: list[tuple[int, Way]] = []
    for amount, way in ways:
        begin = round(at / total * chunks * GRAIN)
        if not layout or begin > layout[-1][0]:
            layout.append((begin, way))
        else:
            layout[-1] = (begin, way)  # the one before is less than a grain
        at += amount
    return layout


def _trace(sets: LpIndexSets, flow: Rates, stock: Rates, end: Key, most: float) -> tuple[float, Way]:
    """Trace one path back from a destination and subtract its smallest rate."""
    (s, node, k), links = end, sets.problem.links
    steps: list[tuple[Rates, Key]] = []
    while (node, k) != (s, 0):
        came = [(s, e, k - links[e].delay) for e in sets.problem.entering[node]]
        options = [(flow.get(key, 0.0), 1, key) for key in came]
        options.append((stock.get((s, node, k - 1), 0.0), 0, (s, node, k - 1)))
        rate, moves, key = max(options)
        if rate <= 0:
            return 0.0, ()
        steps.append((flow if moves else stock, key))
        node, k = (links[key[1]].source, key[2]) if moves else (node, k - 1)
    part = min([most, *(table[key] for table, key in steps)])
    for table, key in steps:
        table[key] -= part
    return part, tuple((key[1], key[2]) for table, key in reversed(steps) if table is flow)


def plan_of(problem: EpochProblem, sends: Sequence[EpochSend]) -> EpochPlan:
    """Convert a list of sends to columns."""
    rows = [(send.commodity, send.start, len(send.path)) for send in sends]
    commodity, start, hops = np.array(rows, dtype=np.int64).reshape(-1, 3).T.copy()
    links = np.array([link for send in sends for link in send.path], dtype=np.int64)
    return EpochPlan(finish(problem, sends), commodity, start, offsets(hops), links)


def sends_of(plan: EpochPlan) -> list[EpochSend]:
    """Return a plan's sends, in order."""
    rows = zip(plan.start.tolist(), plan.chunk.tolist(), plan.paths, strict=True)
    return sorted(EpochSend(start, chunk, path) for start, chunk, path in rows)


def schedule_of(problem: EpochProblem, sends: Sequence[EpochSend] | EpochPlan) -> Schedule:
    """Build the schedule of whole chunks from sends in any order.

    Data that is copied is written from copying node to copying node, so that what a switch copies is on the link to it
    once, even if several sends name it. Through a switch that does not copy a send keeps its path, and a send that
    ends at one appears as often as it is sent. A contribution to a sum keeps its whole path, since switches on it do
    not add.
    """
    rows, start = _pieces(problem, sends if isinstance(sends, EpochPlan) else plan_of(problem, sends))
    rank = rows.path_links[rows.path_offset[:-1]]  # of the paths, in lexicographic order of their links
    for place in range(1, int(rows.hops.max(initial=0))):
        there = np.flatnonzero(rows.hops > place)
        link = np.zeros(len(rank), dtype=np.int64)
        link[there] = rows.path_links[rows.path_offset[there] + place] + 1
        rank = np.unique(rank * (int(link.max()) + 1) + link, return_inverse=True)[1].reshape(-1)
    order = np.lexsort((rows.reduce, rank, rows.chunk, start))
    keys = (start[order], rows.chunk[order], rank[order], rows.reduce[order])
    repeated = np.concatenate([[False], np.logical_and.reduce([key[1:] == key[:-1] for key in keys])])
    once = np.array(problem.copies, dtype=np.bool_)[rows.target[order]]
    keep = order[~(repeated & once)]
    return _schedule_in_seconds(problem, chunks_of(problem.instance, MAX_COMMODITIES), rows.take(keep), start[keep])


def _pieces(problem: EpochProblem, plan: EpochPlan) -> tuple[Sends, Ints]:
    """Cut all sends but contributions to sums at copying nodes; return pieces and start epochs."""
    tail, head, delay = problem.columns[:3]
    copies = np.array(problem.copies, dtype=np.bool_)
    summed = np.array([commodity.summed for commodity in problem.commodities], dtype=np.bool_)
    chunk = np.array([commodity.chunk for commodity in problem.commodities], dtype=np.int64)
    of = np.repeat(np.arange(len(plan.start)), np.diff(plan.offset))
    before = offsets(delay[plan.links])
    at = (plan.start - before[plan.offset[:-1]])[of] + before[:-1]
    ends = copies[head[plan.links]] & ~summed[plan.chunk][of]
    ends[plan.offset[1:] - 1] = True
    last = np.flatnonzero(ends)
    first = np.concatenate([[0], last[:-1] + 1])[: len(last)]
    commodity = plan.chunk[of[first]]
    source, target = tail[plan.links[first]], head[plan.links[last]]
    offset = np.concatenate([first, [len(of)]])
    return Sends(chunk[commodity], source, target, summed[commodity], offset, plan.links), at[first]


def fluid_schedule_of(problem: EpochProblem, flows: Sequence[PathFlow]) -> Schedule:
    """Build the schedule with a chunk for every flow; a commodity's amounts must sum to 1 exactly."""
    whole = chunks_of(problem.instance, MAX_COMMODITIES)
    unit = Fraction(1, int(np.lcm.reduce([flow.amount.denominator for flow in flows], dtype=object)))
    of = np.array([problem.commodities[flow.commodity].chunk for flow in flows], dtype=np.int64)
    units = np.array([int(flow.amount / unit) for flow in flows], dtype=np.int64)
    parts = (whole.held_by[of], whole.needed_by[of], whole.reduced[of])
    hops = sorted((k, index, e) for index, flow in enumerate(flows) for e, k in flow.hops)
    start, index, link = np.array(hops, dtype=np.int64).reshape(-1, 3).T
    tail, head = problem.columns[:2]
    summed = np.zeros(len(link), dtype=np.bool_)
    rows = Sends(index, tail[link], head[link], summed, np.arange(len(link) + 1), link)
    return _schedule_in_seconds(problem, Chunks(units, whole.unit_bytes * unit, whole.groups, *parts), rows, start)


def _schedule_in_seconds(problem: EpochProblem, chunks: Chunks, rows: Sends, start: Ints) -> Schedule:
    """Convert to seconds, as exactly as floats allow: each distinct number of epochs is multiplied once."""
    epoch_s, delay = problem.timing.epoch_s, problem.columns[2]
    before = offsets(delay[rows.path_links])
    end = start + before[rows.path_offset[1:]] - before[rows.path_offset[:-1]]

    def seconds(epochs: Ints) -> Floats:
        values, which = np.unique(epochs, return_inverse=True)
        return np.array([float(value * epoch_s) for value in values.tolist()], dtype=np.float64)[which.reshape(-1)]

    return Schedule(problem.instance.sha256, chunks, rows, seconds(start), seconds(end))
