"""``spff``, shortest path first: chunks follow shortest paths, and those nearest to their goal go first.

TE-CCL (section 4.2) compares its rounds with such a schedule of an earlier work and gives no more than the name. The
rounds and trees here are an interpretation: docs/methods/spff.md.
"""

import heapq
from collections.abc import Sequence
from fractions import Fraction
from typing import Literal

from ..algorithms.bounds.schedule_bounds import best_bound
from ..algorithms.schedules import problem
from ..core.budget import Budget, require_schedulable
from ..core.errors import InputError
from ..core.fields import Strict
from ..core.grouping import group_by_key
from ..core.instance import Instance
from ..core.outcome import Outcome, Status
from ..core.schedule import StepSchedule
from ..core.solver import Solver
from ..core.topology import Topology
from . import heuristic


class SpffOptions(Strict):
    """Options of ``spff``."""

    first: Literal["shortest", "longest"] = "shortest"
    """Chunk that goes first of those that wait at a link, by the rest of its path."""


def trees(
    chunk: problem.Commodity, edges: Sequence[problem.RankEdge]
) -> tuple[dict[int, problem.RankEdge], dict[int, Fraction]]:
    """Shortest paths of a chunk: the last edge to each target and relay, and its distance to its farthest target."""
    leaving = group_by_key((edge.source, edge) for edge in edges)
    best: dict[int, Fraction] = {chunk.source: Fraction(0)}
    last: dict[int, problem.RankEdge] = {}
    settled_nodes: set[int] = set()
    heap = [(Fraction(0), chunk.source)]
    while heap:
        length, node = heapq.heappop(heap)
        if node in settled_nodes:
            continue
        settled_nodes.add(node)
        for edge in leaving.get(node, []):
            beyond = length + edge.latency_s + chunk.bytes / edge.bandwidth_Bps
            if edge.target not in best or beyond < best[edge.target]:
                best[edge.target], last[edge.target] = beyond, edge
                heapq.heappush(heap, (beyond, edge.target))
    edge_to: dict[int, problem.RankEdge] = {}
    rest: dict[int, Fraction] = {}
    for target in chunk.targets:
        if target not in last:
            raise InputError("a rank cannot be reached", place="network.links")
        node = target
        while node != chunk.source:
            edge_to[node] = last[node]
            rest[node] = max(rest.get(node, Fraction(0)), best[target] - best[node])
            node = last[node].source
    return edge_to, rest


def rounds(
    chunks: Sequence[problem.Commodity], topology: Topology, budget: Budget, *, longest: bool
) -> list[tuple[int, int, problem.RankEdge]] | None:
    """Send round by round; give (round, chunk, edge) of every send, or None if the budget ends first."""
    edges = problem.edges_of(topology)
    slowest = min(link.bandwidth_Bps for link in topology.links)
    room = [int(link.bandwidth_Bps / slowest) for link in topology.links]
    waiting: list[tuple[Fraction, int, int, problem.RankEdge]] = []
    for index, chunk in enumerate(chunks):
        edge_to, rest = trees(chunk, edges)
        waiting += [(-rest[node] if longest else rest[node], index, node, edge) for node, edge in edge_to.items()]
    waiting.sort(key=lambda row: row[:3])
    has = {(index, chunk.source) for index, chunk in enumerate(chunks)}
    sends: list[tuple[int, int, problem.RankEdge]] = []
    now = 0
    while waiting:
        if budget.is_exhausted:
            return None
        free, later = list(room), []
        for row in waiting:
            _, index, _, edge = row
            if (index, edge.source) in has and all(free[link] for link in edge.links):
                for link in edge.links:
                    free[link] -= 1
                sends.append((now, index, edge))
            else:
                later.append(row)
        has |= {(index, edge.target) for at, index, edge in sends if at == now}
        waiting, now = later, now + 1
    return sends


def run(instance: Instance, solver: Solver, budget: Budget, options: SpffOptions) -> Outcome:
    """Route and order (``Method.run``)."""
    topology = instance.topology
    with budget.clock.phase("build"):
        bound, certificate = best_bound(instance)
        budget.tell_bound(bound, certificate)
        require_schedulable(sum(map(problem.fewest_sends, problem.group_problems(instance))))
        chunks, columns = problem.commodities_of(instance), problem.chunks_of(instance)
        sends = rounds(chunks, topology, budget, longest=options.first == "longest")
    if sends is None:
        message = "the rounds were not complete in time"
        return Outcome(Status.LIMIT, bound=float(bound), certificate=certificate, message=message)
    schedule = problem.step_schedule(instance.sha256, columns, sends)
    return Outcome(Status.FEASIBLE, schedule, bound=float(bound), certificate=certificate)


METHOD = heuristic(
    name="spff",
    summary="shortest path first: chunks take the shortest paths, in rounds",
    paper="an interpretation of the baseline that TE-CCL names (Liu et al., SIGCOMM 2024, section 4.2)",
    answer_type=StepSchedule,
    options=SpffOptions,
    solve=run,
    supports=problem.supports_copies,
)
