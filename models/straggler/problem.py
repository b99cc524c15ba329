"""Rounds of a late rank: their schedule in steps, and the sets of the declared model."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from ...algorithms.bounds.schedule_bounds import Bound
from ...algorithms.schedules.problem import GroupProblem, check_size, group_problems, supports_groups
from ...core.bounds import WholeChunks
from ...core.budget import require_buildable
from ...core.collective import Collective
from ...core.errors import Refusal
from ...core.explanation import network_labels
from ...core.instance import Instance
from ...core.schedule import Chunks, Schedule, sends_from_lists
from ...core.timing import Semantics, Timing
from ...core.topology import NodeKind
from .rounds import Send, fewest_rounds


@dataclass(frozen=True)
class LateRounds:
    """Ranks, chunks and rounds of the model."""

    problem: GroupProblem
    rounds: int

    @property
    def homes(self) -> list[int]:
        """Holder of the others' part of each chunk, by position in the group; the late rank is 0."""
        return [home for home in range(1, self.problem.n) for _ in range(self.problem.demand.chunks)]

    @property
    def ways(self) -> list[tuple[int, int, int]]:
        """Chunk, source and target of every useful send: to ranks that lack the chunk at the start."""
        n = self.problem.n
        return [(c, i, j) for c in range(len(self.homes)) for i in range(n) for j in range(n) if i != j]


def supports(instance: Instance) -> Refusal | None:
    """Refuse all but one late all-reduce at one switch or on a full mesh (``Method.supports``)."""
    if instance.timing is not None:
        return Refusal("timing", "it chooses its own grid of rounds, but the instance has one")
    return supports_groups(instance, (Collective.LATE_ALL_REDUCE,), _fits, single=True)


def _fits(problem: GroupProblem) -> Refusal | None:
    if round_links_of(problem) is not None:
        return None
    return Refusal(
        "network",
        "two ranks are neither linked nor at one switch with all others; expected a network such as switch(12)",
    )


def pose(instance: Instance, options: Any) -> Instance:
    """Return the instance on a grid with one round per epoch (``Method.pose``)."""
    links = round_links_of(group_problems(instance)[0])
    assert links is not None  # noqa: S101 (it is supported)
    return instance.with_changes(timing=Timing(Semantics.CIRCUIT, links.round_s))


@dataclass(frozen=True)
class RoundLinks:
    """Links that chunks take in a round, by positions of ranks in the group."""

    round_s: Fraction  #: Most seconds that a chunk takes from one rank to another.
    #: Link of every pair of ranks, ``(source, target)``; or of every rank to the switch, ``(rank, None)``, and from it,
    #: ``(None, rank)``.
    links: Mapping[tuple[int | None, int | None], int]

    def path(self, source: int, target: int) -> tuple[int, ...]:
        """Return the links from one rank to another."""
        if (source, target) in self.links:
            return (self.links[source, target],)
        return self.links[source, None], self.links[None, target]


def round_links_of(problem: GroupProblem) -> RoundLinks | None:
    """Find the links with the shortest rounds: a full mesh or one switch; None without either."""
    topology, size = problem.topology, chunk_bytes(problem)

    def link_s(link: int) -> Fraction:
        return topology.links[link].latency_s + size / topology.links[link].bandwidth_Bps

    def round_s(links: Mapping[tuple[int | None, int | None], int]) -> Fraction:
        # The longest latencies to and from the switch, and a chunk at the lowest bandwidth.
        latencies = [(source is None, topology.links[link].latency_s) for (source, _), link in links.items()]
        up, down = (max((s for from_switch, s in latencies if from_switch == side), default=0) for side in (0, 1))
        return up + down + size / min(topology.links[link].bandwidth_Bps for link in links.values())

    rank = {node: position for position, node in enumerate(problem.nodes.tolist())}
    hubs = [index for index, node in enumerate(topology.nodes) if node.kind is NodeKind.SWITCH]
    links: dict[int | None, dict[tuple[int | None, int | None], int]] = {hub: {} for hub in (None, *hubs)}
    for number, (tail, head) in enumerate(topology.link_ends):
        hub = next((node for node in (tail, head) if node not in rank), None)
        ends = rank.get(tail), rank.get(head)
        if hub in links and ends != (None, None):
            other = links[hub].get(ends)
            if other is None or link_s(number) < link_s(other):
                links[hub][ends] = number
    pairs = problem.n * (problem.n - 1)
    complete = [some for hub, some in links.items() if len(some) == (pairs if hub is None else 2 * problem.n)]
    return min((RoundLinks(round_s(some), some) for some in complete), key=lambda way: way.round_s, default=None)


def index(instance: Instance, options: Any) -> LateRounds:
    """Return ranks, chunks and rounds (``Formulation.index``)."""
    problem = group_problems(instance)[0]
    chunks = (problem.n - 1) * problem.demand.chunks
    rounds = options.rounds or fewest_rounds(problem.n, chunks)
    require_buildable(chunks * problem.n**2 * rounds, f"{rounds} rounds")
    return LateRounds(problem, rounds)


def chunk_bytes(problem: GroupProblem) -> Fraction:
    """Return the size of a chunk."""
    return problem.demand.size_bytes / ((problem.n - 1) * problem.demand.chunks)


def whole_chunk_bound(problem: GroupProblem) -> Bound:
    """Return ``(C - 1 + ceil(log2 n))`` chunk times if all ranks are equally fast, see the certificate's proof."""
    leaving = [Fraction(0)] * len(problem.topology.nodes)
    for link, (tail, _) in zip(problem.topology.links, problem.topology.link_ends, strict=True):
        leaving[tail] += link.bandwidth_Bps
    chunk, doublings = chunk_bytes(problem), (problem.n - 1).bit_length() - 1
    fastest = max(leaving[node] for node in problem.topology.rank_nodes)
    seconds = problem.demand.size_bytes / leaving[problem.nodes[0]] + doublings * chunk / fastest
    return seconds, WholeChunks(problem.ranks[0], chunk)


def schedule_of(problem: GroupProblem, rounds: Sequence[Sequence[Send]]) -> Schedule:
    """Convert rounds to a schedule; a send without the full sum is added to the other part."""
    check_size(sum(map(len, rounds)))
    step = np.repeat(np.arange(len(rounds)), [len(several) for several in rounds])
    chunk, source, target = np.array([send for several in rounds for send in several], dtype=np.int64).T
    n, latest = problem.n, len(rounds)
    first = np.full((problem.n - 1) * problem.demand.chunks * n, latest, dtype=np.int64)
    first[(chunk * n + target)[::-1]] = step[::-1]  # of what is written several times the last stays, the first round
    adds = first[chunk * n + source] >= step
    each = problem.demand.chunks
    nodes, count = problem.nodes, (problem.n - 1) * each
    links = round_links_of(problem)
    assert links is not None  # noqa: S101 (it is supported)
    paths = [links.path(*ends) for ends in zip(source.tolist(), target.tolist(), strict=True)]
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
        sends_from_lists(chunk.tolist(), nodes[source].tolist(), nodes[target].tolist(), adds.tolist(), paths),
        np.asarray(step * epoch_s, dtype=np.float64),
        np.asarray((step + 1) * epoch_s, dtype=np.float64),
    )


def extract(model: Any, index: LateRounds) -> Schedule:
    """Return the schedule of a solved model (``Formulation.extract``)."""
    rounds: list[list[Send]] = [[] for _ in range(index.rounds)]
    for c, i, j, t in model.x:
        if model.x[c, i, j, t].value > 0.5:
            rounds[t].append((c, i, j))
    return schedule_of(index.problem, [sends for sends in rounds if sends])


def labels(index: LateRounds) -> Mapping[str, Callable[[Any], str]]:
    """Name ranks and the chunks' homes (``Formulation.labels``)."""
    nodes = index.problem.nodes.tolist()
    return network_labels(index.problem.topology, i=nodes, j=nodes, c=[nodes[home] for home in index.homes])
