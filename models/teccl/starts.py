"""Greedy sends of A* rounds, each link's most useful in every epoch: a start, or a whole schedule."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Any

import numpy as np

from ...algorithms.epochs.problem import FAR
from ...algorithms.epochs.search import EpochSearch
from ...algorithms.epochs.symmetries import SymmetricSearch
from ...core.answers import Answer
from ...core.budget import Budget
from ...core.grouping import group_by_key
from ...core.schedule import Chunks, Schedule, StepSchedule
from .extract import EpochSend, finish, give_start, needed_sends, sends_of
from .formulations.astar import RoundIndexSets, RoundState, remaining, round_index_sets
from .index_sets import MAX_HOPS, IndexSets
from .problem import EpochProblem, network_of

SHORT = 4  #: Epochs of the shortest round that is taken without being asked for.
EFFORT = 20_000_000  #: Arcs that constructions look at before they end.
THERE = 2  #: What it is worth to bring a chunk to somebody who lacks it, where being nearer to somebody is worth 1.


class GreedyRound:
    """Sends of one round, chosen in the order of their starts.

    With ``beyond`` chunks may go to switches that they reach only after the round.
    """

    def __init__(self, sets: RoundIndexSets, *, beyond: bool) -> None:
        self.sets, self.problem, self.epochs, self.beyond = sets, sets.problem, sets.epochs, beyond
        self.sends: list[tuple[int, int, int]] = []
        self.at: dict[tuple[int, int], int] = dict.fromkeys(sets.state.stock, 0)
        self.passing: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for q, n, k in sorted(sets.state.coming):
            if self._keeps(n):
                self.at[q, n] = min(k, self.at.get((q, n), k))
            else:
                self.passing[k].append((q, n))
        self.lacking = [{t for t in c.targets if (q, t) not in self.at} for q, c in enumerate(self.problem.commodities)]
        self.chunks: list[list[int]] = [[] for _ in range(self.problem.nodes)]
        self.holders: list[list[int]] = [[] for _ in self.lacking]
        for q, n in sorted(self.at):
            self.chunks[n].append(q)
            self.holders[q].append(n)
        #: Distances to the nearest node that lacks a chunk: of every node, and the least of those that have it.
        self.rest = [self.problem.distance[:, 0]] * len(self.lacking)
        self.nearest = [0] * len(self.lacking)
        for q in range(len(self.lacking)):
            self._measure(q)
        self.starts = group_by_key((link, k) for link, k, _ in sets.state.started)

    def follow(self, hops: Iterable[tuple[int, int, int]]) -> bool:
        """Add feasible sends of a plan in the order of their starts; return True if all were feasible."""
        at_switch = Counter((q, n, k) for k, there in self.passing.items() for q, n in there)
        whole = True
        for q, link, k in sorted(hops, key=lambda hop: (hop[2], hop[1])):
            ends = self.problem.links[link]
            keeps, waiting = self._keeps(ends.source), (q, ends.source, k)
            there = self.at.get((q, ends.source), FAR) <= k if keeps else at_switch[waiting] > 0
            if not there or (q, ends.target) in self.at or not self._may_start(link, k):
                whole = False
                continue
            self._book(q, link, k)
            at_switch[q, ends.target, k + ends.delay] += 1
            if not keeps and not self.problem.copies[ends.source]:  # what has left such a switch is no longer there
                at_switch[waiting] -= 1
                if (q, ends.source) in self.passing[k]:
                    self.passing[k].remove((q, ends.source))
        return whole

    def run(self) -> list[tuple[int, int, int]]:
        """Choose further sends and return all."""
        for k in range(self.epochs):
            for q, n in self.passing.pop(k, ()):
                for link, _ in self._onwards(q, n, k, 0):
                    self._start(q, link, k)
            for link, ends in enumerate(self.problem.links):
                while self._keeps(ends.source) and self._may_start(link, k) and self._send_best(link, k):
                    pass
        return self.sends

    def _keeps(self, node: int) -> bool:
        return self.problem.holds[node] != 0

    def _measure(self, q: int) -> None:
        if self.lacking[q]:
            self.rest[q] = self.problem.distance[:, sorted(self.lacking[q])].min(axis=1)
            self.nearest[q] = int(self.rest[q][self.holders[q]].min(initial=self.rest[q].max()))

    def _may_start(self, link: int, epoch: int) -> bool:
        return may_start(self.sets, self.starts[link], link, epoch)

    def _send_best(self, link: int, epoch: int) -> bool:
        """Start the most useful send over a link, the rarest chunk on ties; False if there is none."""
        tail, count = self.problem.links[link].source, len(self.lacking)
        worth, *_, q = max(
            (
                (self._send_value(q, link, epoch), len(self.lacking[q]), (q + link) % count, q)
                for q in self.chunks[tail]
                if self.lacking[q] and self.at[q, tail] <= epoch and (q, link, epoch) not in self.sends[-1:]
            ),
            default=(0, 0, 0, -1),
        )
        if worth > 0:
            self._start(q, link, epoch)
        return worth > 0

    def _send_value(self, q: int, link: int, epoch: int) -> int:
        """Return the value of a send: destinations served, else progress toward one."""
        node, at = self.problem.links[link].target, epoch + self.problem.links[link].delay
        nearer = int(self.rest[q][node] < self.nearest[q])
        if self._keeps(node):
            return 0 if (q, node) in self.at else THERE if node in self.lacking[q] else nearer
        if at >= self.epochs:
            return nearer * self.beyond
        return sum(worth for _, worth in self._onwards(q, node, at, at - epoch))

    def _onwards(self, q: int, node: int, epoch: int, took: int, hops: int = 2) -> list[tuple[int, int]]:
        """Return the links over which a switch forwards a chunk, with the value of each.

        A switch that copies uses all links to nodes that lack the chunk and are no nearer to a holder than the path
        through the switch is long; any other uses one link.
        """
        ways: list[tuple[int, int]] = []
        holders = list(self.holders[q])
        for link in self.problem.leaving[node]:
            if not self._may_start(link, epoch):
                continue
            ends = self.problem.links[link]
            head, took_there = ends.target, took + ends.delay
            if self._keeps(head):
                near = int(self.problem.distance[holders, head].min(initial=FAR)) < took_there
                worth = 0 if near and head in self.lacking[q] else self._send_value(q, link, epoch)
            elif hops < MAX_HOPS and epoch + ends.delay < self.epochs:
                worth = sum(w for _, w in self._onwards(q, head, epoch + ends.delay, took_there, hops + 1))
            else:
                worth = int(self.rest[q][head] < self.nearest[q])
            if worth:
                holders.append(head)
                ways.append((link, worth))
        return ways if self.problem.copies[node] else sorted(ways, key=lambda each: -each[1])[:1]

    def _start(self, q: int, link: int, epoch: int) -> None:
        """Start a chunk over a link; a switch at its end sends it on at once."""
        self._book(q, link, epoch)
        node, at = self.problem.links[link].target, epoch + self.problem.links[link].delay
        if not self._keeps(node) and at < self.epochs:
            for onward, _ in self._onwards(q, node, at, at - epoch):
                self._start(q, onward, at)

    def _book(self, q: int, link: int, epoch: int) -> None:
        node, at = self.problem.links[link].target, epoch + self.problem.links[link].delay
        self.sends.append((q, link, epoch))
        self.starts[link].append(epoch)
        if self._keeps(node):
            self.at[q, node] = at
            self.chunks[node].append(q)
            self.holders[q].append(node)
            self.lacking[q].discard(node)
            self._measure(q)


def may_start(sets: IndexSets, starts: Sequence[int], link: int, epoch: int) -> bool:
    """Check that a chunk may start over a link, beside those taken, in every window that contains the epoch."""
    window = sets.problem.links[link].window
    return all(
        sum(first <= k < first + window for k in starts) < IndexSets.room(sets, link, first)
        for first in range(epoch - window + 1, epoch + 1)
    )


def greedy_sends(sets: RoundIndexSets, planned: Iterable[tuple[int, int, int]] = ()) -> list[tuple[int, int, int]]:
    """Choose sends greedily; those that reach a switch after the round only if there are no others.

    If all the planned (commodity, link, epoch) are still possible, only these are returned.
    """
    problem = sets.problem
    if any(hold is None and not copies for hold, copies in zip(problem.holds, problem.copies, strict=True)):
        return []  # what such a switch has in store is counted by the model alone
    for beyond in (False, True):
        greedy = GreedyRound(sets, beyond=beyond)
        if (greedy.follow(planned) and greedy.sends) or greedy.run():
            return greedy.sends
    return []


def initial_schedule(problem: EpochProblem, budget: Budget, enough: int) -> list[EpochSend] | None:
    """Return a schedule of ``teccl``'s constructions or, where these do not apply, of greedy rounds.

    None with sums, and with ranks or switches that can hold a limited number of chunks.
    """
    rooms = [room for room, switch in zip(problem.room, problem.switch, strict=True) if not switch]
    sums = any(commodity.summed or commodity.after for commodity in problem.commodities)
    if sums or any(problem.holds) or any(room is not None for room in rooms):
        return None
    with budget.clock.phase("construct"):
        if problem.timing.changes:
            return _by_rounds(problem, max(SHORT, *(link.delay for link in problem.links)), budget)
        search = EpochSearch(network_of(problem), enough, budget, EFFORT)
        symmetric = SymmetricSearch(search)
        symmetric.construct()
        search.construct(1)
        symmetric.improve()
        search.construct()
    plan = search.plan()
    return None if plan is None else sends_of(plan)


def _by_rounds(problem: EpochProblem, epochs: int, budget: Budget) -> list[EpochSend] | None:
    """Run greedy rounds of ``epochs`` epochs; None if they do not end, or not in time."""
    state, begin = RoundState.first(problem), 0
    sends: list[EpochSend] = []
    varies_until = max((change.last for change in problem.timing.changes), default=0)
    while any(commodity.targets for commodity in remaining(problem, state).commodities):
        sets = round_index_sets(replace(remaining(problem, state), begin=problem.begin + begin), epochs, state)
        new = [EpochSend(k, q, (e,)) for q, e, k in greedy_sends(sets)]
        after = state.advance(problem, new, epochs)
        idle = varies_until <= begin and after.stock == state.stock and after.coming <= state.coming
        if budget.is_exhausted or idle:
            return None
        sends += [replace(send, start=send.start + begin) for send in new]
        state, begin = after, begin + epochs
    return needed_sends(problem, sends)


def start(model: Any, sets: IndexSets, answer: Answer) -> str:
    """Set the model's sends to those of a schedule; return what does not fit (``Formulation.start``)."""
    if not isinstance(answer, Schedule | StepSchedule):
        return "it is no schedule of sends"
    if sets.hyper_edges or any(commodity.summed or commodity.after for commodity in sets.problem.commodities):
        return "a model with sums or hyper-edges takes none"
    sends = sends_of_schedule(sets, answer)
    if isinstance(sends, str):
        return sends
    if (epochs := finish(sets.problem, sends)) > sets.epochs:
        return f"it takes {epochs} epochs on the grid, and the model has {sets.epochs} (-O epochs={epochs})"
    return "" if give_start(sets, model, sends) else "the model leaves out one of its sends"


def sends_of_schedule(sets: IndexSets, answer: Schedule | StepSchedule) -> list[EpochSend] | str:
    """Return the needed sends, each as early as links allow, in the schedule's order; or what does not fit."""
    problem = sets.problem
    if (commodity := _commodities(problem, answer.chunks)) is None:
        count, expected, demand = len(answer.chunks), len(problem.commodities), problem.instance.demands[0]
        chunks, rest = divmod(count * demand.chunks, expected)
        option = "" if rest or chunks in {0, demand.chunks} else f" (-O chunks={chunks})"
        return f"its {count} chunks are others than the model's {expected}{option}"
    order = np.argsort(answer.step if isinstance(answer, StepSchedule) else answer.start_s, kind="stable")
    there = {(q, each.source): 0 for q, each in enumerate(problem.commodities)}
    served = {(q, target) for q, each in enumerate(problem.commodities) for target in each.targets}
    starts: dict[int, list[int]] = defaultdict(list)
    sends: list[EpochSend] = []
    rows, names = answer.sends, [node.name for node in problem.topology.nodes]
    for row in order.tolist():
        q, tail, head = commodity[int(rows.chunk[row])], int(rows.source[row]), int(rows.target[row])
        path = rows.path_links[rows.path_offset[row] : rows.path_offset[row + 1]].tolist()
        if (q, head) in there:
            continue
        if (q, tail) not in there:
            return f"{names[tail]!r} sends a chunk that it does not have"
        begin = there[q, tail]
        waits = problem.holds[tail] != 0
        *offsets, length = accumulate((problem.links[e].delay for e in path), initial=0)
        hops = list(zip(path, offsets, strict=True))
        while not all(may_start(sets, starts[e], e, begin + after) for e, after in hops):
            begin += 1
            if not waits or begin > sets.epochs:
                return f"its sends from {names[tail]!r} do not fit into {sets.epochs} epochs"
        for e, after in hops:
            starts[e].append(begin + after)
            sends.append(EpochSend(begin + after, q, (e,)))
        there[q, head] = begin + length
    if missing := served - there.keys():
        return f"{names[min(missing)[1]]!r} does not get all its chunks"
    return needed_sends(problem, sends)


def _commodities(problem: EpochProblem, chunks: Chunks) -> list[int] | None:
    """Return the commodity of each chunk, by source and receivers; None if they differ."""
    numbers = group_by_key(((each.source, each.targets), q) for q, each in enumerate(problem.commodities))
    ranks, commodities = problem.topology.rank_nodes, []
    for holders, receivers, reduced in zip(chunks.held_by, chunks.needed_by, chunks.reduced, strict=True):
        sources = chunks.groups[holders]
        targets = tuple(sorted({ranks[rank] for rank in chunks.groups[receivers]} - {ranks[sources[0]]}))
        if reduced or len(sources) != 1 or not numbers[ranks[sources[0]], targets]:
            return None
        commodities.append(numbers[ranks[sources[0]], targets].pop(0))
    return None if any(numbers.values()) else commodities
