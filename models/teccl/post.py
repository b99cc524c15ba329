"""What is done to a solution: sends that nobody needs are dropped, contributions to a sum are added up on the way."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from .answer import EpochSend, arrival
from .epochs import EpochProblem


def needed_sends(problem: EpochProblem, sends: Iterable[EpochSend]) -> list[EpochSend]:
    """Keep what the destinations' chunks came by: the reverse depth-first search of section 3.1.

    From every destination the send that brought the chunk first is followed back to where it came from, up to the source. At a node
    that cannot store, it is the one that arrived at the index at which the chunk left, at one with limited room the last one before that; at
    one that cannot copy, one for every send.

    Parameters
    ----------
    problem : EpochProblem
        The grid.
    sends : iterable of EpochSend
        Feasible ones; each over a link or a hyper-edge. A send that is there twice is two, to a node that cannot copy.
    """
    every = sorted(sends)
    bringing: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
    for index, send in enumerate(every):
        target = problem.links[send.path[-1]].target
        bringing[send.commodity, target].append((arrival(problem, send), index))
    for brought in bringing.values():
        brought.sort()
    kept: set[int] = set()
    for q, commodity in enumerate(problem.commodities):
        wanted = [bringing[q, target][0][1] for target in commodity.targets]
        while wanted:
            index = wanted.pop()
            if index in kept:
                continue
            kept.add(index)
            tail = problem.links[every[index].path[0]].source
            if tail != commodity.source:
                wanted.append(_before(problem, bringing[q, tail], q, tail, every[index].start))
    return [every[index] for index in sorted(kept)]


def _before(problem: EpochProblem, brought: list[tuple[int, int]], q: int, node: int, start: int) -> int:
    """Give the send that brought to a node what it sends on at an index; one that is given is not given again where nothing is copied."""
    stores = problem.stores(problem.commodities[q], node) and problem.room[node] != 0
    if problem.copies[node]:
        found = [send for at, send in brought if at == start or (stores and at < start)]
        return found[0 if problem.room[node] is None else -1]
    index = max(i for i, (at, _) in enumerate(brought) if at == start or (stores and at < start))
    return brought.pop(index)[1]


def summed_up(problem: EpochProblem, sends: Sequence[EpochSend]) -> list[EpochSend]:
    """Turn the contributions to each sum into a tree: whoever stores them adds up what it has received and sends it on once.

    Of what a node sends towards one sum, only the last send is kept: all contributions that it passes on have arrived by then, and where they go
    from the next node, that node's last send has not started before. So nothing arrives later than before, and less is sent. A node without a
    contribution to which nothing comes any more sends nothing.

    Parameters
    ----------
    problem : EpochProblem
        The grid.
    sends : sequence of EpochSend
        Without useless ones (:func:`needed_sends`).
    """
    joined, commodities = sorted(_joined(problem, sends)), problem.commodities
    last: dict[tuple[int, int], EpochSend] = {}
    for send in joined:
        if commodities[send.commodity].summed:
            last[commodities[send.commodity].chunk, problem.links[send.path[0]].source] = send
    holds = {(c.chunk, c.source) for c in commodities if c.summed}
    kept = [send for send in joined if not commodities[send.commodity].summed]
    for (chunk, source), send in sorted(last.items(), key=lambda each: (arrival(problem, each[1]), each[1].start)):
        if (chunk, source) in holds:
            holds.add((chunk, problem.links[send.path[-1]].target))
            kept.append(send)
    return sorted(kept)


def _joined(problem: EpochProblem, sends: Sequence[EpochSend]) -> list[EpochSend]:
    """Join the hops of sums through switches that pass them on once: on a path nothing is sent twice."""

    def passes(q: int, node: int) -> bool:
        commodity = problem.commodities[q]
        return bool(commodity.after) and not problem.copies[node] and not problem.stores(commodity, node)

    onwards: dict[tuple[int, int, int], list[EpochSend]] = defaultdict(list)
    for send in sends:
        onwards[send.commodity, problem.links[send.path[0]].source, send.start].append(send)
    joined: list[EpochSend] = []
    for send in sends:
        if passes(send.commodity, problem.links[send.path[0]].source):
            continue
        path, at = send.path, arrival(problem, send)
        while passes(send.commodity, node := problem.links[path[-1]].target):
            further = onwards[send.commodity, node, at].pop()
            path, at = path + further.path, arrival(problem, further)
        joined.append(EpochSend(send.start, send.commodity, path))
    return joined
