"""What the rounds of a late rank move, as a schedule in steps and as the sets of the declared model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from ...algorithms.graphs.distances import route
from ...algorithms.schedules.problem import GroupProblem, check_size, group_problems, supports_groups
from ...core.collective import CollectiveKind
from ...core.effort import require_buildable
from ...core.explanation import network_labels
from ...core.instance import Instance
from ...core.schedule import Chunks, Schedule, Sends
from ...core.timing import Semantics, Timing
from ...core.topology import NodeKind
from .rounds import Send, fewest_rounds


@dataclass(frozen=True)
class LateRounds:
    """Ranks, chunks and rounds of the model.

    Parameters
    ----------
    problem : GroupProblem
        The collective.
    rounds : int
        The most rounds.
    """

    problem: GroupProblem
    rounds: int

    @property
    def homes(self) -> list[int]:
        """For every chunk, who has the others' part of it, by positions in the group; the late rank is 0."""
        return [home for home in range(1, self.problem.n) for _ in range(self.problem.demand.chunks)]

    @property
    def ways(self) -> list[tuple[int, int, int]]:
        """Chunks with source and target of every send that can help: to those who do not have it at the start."""
        n = self.problem.n
        return [(c, i, j) for c in range(len(self.homes)) for i in range(n) for j in range(n) if i != j]


def supports(instance: Instance) -> str | None:
    """One late all-reduce of ranks at one switch, or all linked with one another (``Method.supports``)."""
    if instance.also:
        return "it schedules one collective, and the instance has several"
    if instance.timing is not None:
        return "it chooses the grid of its rounds, and the instance has one"
    return supports_groups(instance, (CollectiveKind.LATE_ALL_REDUCE,), _fits)


def _fits(problem: GroupProblem) -> str | None:
    if round_s(problem) is not None:
        return None
    return "two ranks are neither linked nor at one switch with all others; expected a network such as switch(12)"


def posed(instance: Instance) -> GroupProblem:
    """The collective of an instance that is supported."""
    return group_problems(instance)[0]


def pose(instance: Instance, options: Any) -> Instance:
    """The instance on a grid whose epochs are rounds, in which a chunk goes from rank to rank (``Method.pose``)."""
    del options
    epoch_s = round_s(posed(instance))
    assert epoch_s is not None  # noqa: S101 (it is supported)
    return instance.with_changes(timing=Timing(Semantics.CIRCUIT, epoch_s))


def round_s(problem: GroupProblem) -> Fraction | None:
    """Seconds that a chunk takes from any rank to any other one at most; None if ways are longer than over one switch."""
    topology, members = problem.topology, set(problem.nodes.tolist())
    ends = list(zip(topology.links, topology.link_ends, strict=True))
    linked = {(a, b) for _, (a, b) in ends}
    direct = [link for link, (a, b) in ends if a in members and b in members]
    if len({(a, b) for a, b in linked if a in members and b in members}) == problem.n * (problem.n - 1):
        return max(link.latency_s for link in direct) + chunk_bytes(problem) / min(
            link.bandwidth_Bps for link in direct
        )
    for hub in (index for index, node in enumerate(topology.nodes) if node.kind is NodeKind.SWITCH):
        if all((a, hub) in linked and (hub, a) in linked for a in members):
            up = [link for link, (a, b) in ends if b == hub and a in members]
            down = [link for link, (a, b) in ends if a == hub and b in members]
            slowest = min(link.bandwidth_Bps for link in (*up, *down))
            late = max(link.latency_s for link in up) + max(link.latency_s for link in down)
            return late + chunk_bytes(problem) / slowest
    return None


def index(instance: Instance, options: Any) -> LateRounds:
    """Ranks, chunks and rounds (``Formulation.index``).

    Raises
    ------
    OutOfTime
        If the model has too many columns.
    """
    problem = posed(instance)
    chunks = (problem.n - 1) * problem.demand.chunks
    rounds = options.rounds or fewest_rounds(problem.n, chunks)
    require_buildable(chunks * problem.n**2 * rounds, f"{rounds} rounds")
    return LateRounds(problem, rounds)


def chunk_bytes(problem: GroupProblem) -> Fraction:
    """Size of a chunk."""
    return problem.demand.size_bytes / ((problem.n - 1) * problem.demand.chunks)


def schedule_of(problem: GroupProblem, rounds: Sequence[Sequence[Send]]) -> Schedule:
    """The schedule of rounds of an instance that is posed; what a rank sends of a chunk before it has the full sum is added to the other part."""
    check_size(sum(map(len, rounds)))
    step = np.repeat(np.arange(len(rounds)), [len(several) for several in rounds])
    chunk, source, target = np.array([send for several in rounds for send in several], dtype=np.int64).T
    n, latest = problem.n, len(rounds)
    first = np.full((problem.n - 1) * problem.demand.chunks * n, latest, dtype=np.int64)
    first[(chunk * n + target)[::-1]] = step[::-1]  # of what is written several times the last stays, the first round
    adds = first[chunk * n + source] >= step
    each = problem.demand.chunks
    nodes, count = problem.nodes, (problem.n - 1) * each
    paths = route(problem.topology, nodes[source], nodes[target])
    pairs = tuple(tuple(sorted((problem.ranks[0], rank))) for rank in problem.ranks[1:])
    timing = problem.instance.timing
    assert timing is not None  # noqa: S101 (posed)
    epoch_s = float(timing.epoch_s)
    return Schedule(
        problem.instance.sha256,
        Chunks(
            np.ones(count, dtype=np.int64),
            chunk_bytes(problem),
            (*pairs, tuple(sorted(problem.ranks))),
            np.arange(count) // each,
            np.full(count, problem.n - 1),
            np.ones(count, dtype=np.bool_),
        ),
        Sends(chunk, nodes[source], nodes[target], adds, paths.offset, paths.links),
        np.asarray(step * epoch_s, dtype=np.float64),
        np.asarray((step + 1) * epoch_s, dtype=np.float64),
    )


def extract(model: Any, index: LateRounds) -> Schedule:
    """The schedule of a solved model (``Formulation.extract``)."""
    rounds: list[list[Send]] = [[] for _ in range(index.rounds)]
    for c, i, j, t in model.x:
        if model.x[c, i, j, t].value > 0.5:
            rounds[t].append((c, i, j))
    return schedule_of(index.problem, [sends for sends in rounds if sends])


def labels(index: LateRounds) -> Mapping[str, Callable[[Any], str]]:
    """Names of ranks, and of the chunks' homes (``Formulation.labels``)."""
    nodes = index.problem.nodes.tolist()
    return network_labels(index.problem.topology, i=nodes, j=nodes, c=[nodes[home] for home in index.homes])
