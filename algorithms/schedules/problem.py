"""Instances as methods see them: collectives of one group each, or commodities, chunks with a source and receivers.

Also edges between ranks, which lead through switches, and step schedules of sends over them.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from ...core.budget import require_schedulable
from ...core.collective import Collective, Demand, conditions
from ...core.errors import InputError, Refusal, Unsupported
from ...core.explanation import network_labels
from ...core.instance import Instance
from ...core.refusals import refuse_unfit
from ...core.schedule import Chunks, Ints, StepSchedule, sends_from_lists
from ...core.topology import NodeKind, Topology
from ...core.units import common_unit
from ..graphs.network import links_out

#: A schedule with more sends is rejected before memory is taken for it: each takes some 50 bytes, more at first.
MAX_SENDS = 50_000_000


@dataclass(frozen=True, eq=False)
class GroupProblem:
    """Collective among ranks that are known by their position in the group."""

    instance: Instance  #: an instance with only this collective
    topology: Topology  #: explicit network of the instance
    demand: Demand
    #: the process group, in the order of the demand; the first is the root of a broadcast or reduce
    ranks: tuple[int, ...]

    @property
    def n(self) -> int:
        """Number of ranks."""
        return len(self.ranks)

    @property
    def collective(self) -> Collective:
        """Kind of the collective operation."""
        return self.demand.collective

    @property
    def part_bytes(self) -> Fraction:
        """Size of one rank's part in bytes."""
        return self.demand.size_bytes / self.n

    @property
    def nodes(self) -> Ints:
        """Positions of the group's ranks in the topology."""
        return np.array(self.topology.rank_nodes, dtype=np.int64)[list(self.ranks)]


def group_problems(instance: Instance) -> list[GroupProblem]:
    """List the collectives of an instance that :func:`supports_groups` accepts."""
    topology = instance.network
    if not isinstance(topology, Topology):
        raise Unsupported("expected an explicit network and a collective")
    return [
        GroupProblem(instance.with_single_demand(demand), topology, demand, demand.group(instance.npus))
        for demand in instance.demands
    ]


def supports_groups(
    instance: Instance,
    collectives: Sequence[Collective],
    fits: Callable[[GroupProblem], Refusal | None],
    *,
    single: bool = False,
) -> Refusal | None:
    """Return why a method for some collectives, each of which also ``fits``, does not support an instance."""
    if (reason := refuse_unfit(instance, collectives, single=single)) is not None:
        return reason
    return next((refusal for problem in group_problems(instance) if (refusal := fits(problem)) is not None), None)


def fewest_sends(problem: GroupProblem, parts: int | None = None) -> int:
    """Return the fewest sends of any algorithm that delivers chunks of ``parts`` of the data one by one."""
    n, kind = problem.n, problem.collective
    parts = parts or (1 if kind.rooted else n)
    return kind.passes * parts * (n - 1) * problem.demand.chunks


def check_size(sends: int, hops: int | None = None) -> None:
    """Reject a schedule with too many sends, or whose ``hops`` exceed the remaining time or memory (OutOfTime)."""
    if sends > MAX_SENDS:
        raise Unsupported(f"{sends:,} sends; expected at most {MAX_SENDS:,}; forestcoll has trees for gathers and sums")
    require_schedulable(sends, hops)


def equal_chunks(
    ranks: Sequence[int], size_bytes: Fraction, held_by: Ints, needed_by: Ints, *, reduced: bool
) -> Chunks:
    """Return chunks of one size, held and needed by positions in a group, whose size stands for everybody."""
    groups = (*((rank,) for rank in ranks), tuple(sorted(ranks)))
    ones, flags = np.ones(len(held_by), dtype=np.int64), np.full(len(held_by), reduced)
    return Chunks(ones, size_bytes, groups, held_by, needed_by, flags)


def parallel_uses(topology: Topology) -> list[int]:
    """Return the sends that every link serves in a step, ``floor(b_e / min b)``, exactly; the remainder is lost."""
    smallest = min(link.bandwidth_Bps for link in topology.links)
    return [int(link.bandwidth_Bps // smallest) for link in topology.links]


MAX_CHUNKS = 1_000_000  #: most chunks that are listed, unless a caller allows others


@dataclass(frozen=True)
class Commodity:
    """One chunk to be moved from one node to its receivers."""

    source: int  #: node that has it at the start
    targets: tuple[int, ...]  #: nodes that need it, sorted, without the source
    #: Its chunk in the schedule, see :func:`chunks_of`. A sum is one chunk and several commodities: a contribution from
    #: each rank to the owner, and the sum from the owner to all.
    chunk: int
    bytes: Fraction
    tenant: int = 0  #: index of its collective in the instance
    after: tuple[int, ...] = ()  #: earlier commodities that must have reached the source: the contributions of a sum
    summed: bool = False  #: True for a contribution, which any relay may add to its own


@dataclass(frozen=True)
class _Chunk:
    """Chunk of a collective, with its holders and receivers; ``owner`` is the rank that forms a sum."""

    holders: tuple[int, ...]
    receivers: tuple[int, ...]
    summed: bool
    bytes: Fraction
    tenant: int
    owner: int


def refuse_unequal_messages(instance: Instance) -> Refusal | None:
    """Refuse a collective whose sizes per rank or pair differ, for methods with chunks of one size."""
    if len({demand.size_bytes / demand.chunks for demand in instance.demands if demand.part_of is not None}) > 1:
        return Refusal("data", "it schedules chunks of one size")
    return None


def supports_copies(instance: Instance) -> Refusal | None:
    """Return why an instance needs more than copies of chunks, None if it does not (``Method.supports``)."""
    if (reason := refuse_unfit(instance, such_as="dgx1()")) is not None:
        return reason
    for demand in instance.demands:
        if any(summed or len(holders) > 1 for holders, _, summed in conditions(demand, instance.npus).bytes_of):
            return Refusal(
                "collective", f"it copies chunks but cannot sum them, as {demand.collective.name} would need"
            )
    return None


def commodities_of(instance: Instance, most: int = MAX_CHUNKS) -> tuple[Commodity, ...]:
    """List the commodities of an instance, collective by collective; without sums, one per chunk.

    Raise InputError for groups of fewer than two ranks, nothing to move, or more than ``most`` chunks.
    """
    topology = instance.topology
    node = topology.rank_nodes
    items: list[Commodity] = []
    nodes: dict[tuple[int, ...], tuple[int, ...]] = {}  # one for all chunks of a group, which may be large
    for index, chunk in enumerate(_chunks(instance, most)):
        before: list[int] = []
        if chunk.summed:
            to = (node[chunk.owner],)
            for rank in chunk.holders:
                if rank != chunk.owner:
                    before.append(len(items))
                    items.append(Commodity(node[rank], to, index, chunk.bytes, chunk.tenant, summed=True))
        if chunk.receivers not in nodes:
            nodes[chunk.receivers] = tuple(node[rank] for rank in chunk.receivers)
        needing, owner = nodes[chunk.receivers], node[chunk.owner]
        at = needing.index(owner) if owner in needing else len(needing)
        if targets := needing[:at] + needing[at + 1 :]:
            items.append(Commodity(owner, targets, index, chunk.bytes, chunk.tenant, tuple(before)))
    return tuple(items)


def chunk_sizes(instance: Instance, most: int = MAX_CHUNKS) -> set[Fraction]:
    """Return the sizes in bytes of the chunks of :func:`commodities_of`, with the same errors."""
    return {chunk.bytes for chunk in _chunks(instance, most)}


def chunks_of(instance: Instance, most: int = MAX_CHUNKS) -> Chunks:
    """Return the chunks of a schedule as arrays; :attr:`Commodity.chunk` is the position."""
    chunks = _chunks(instance, most)
    groups = tuple(dict.fromkeys(group for chunk in chunks for group in (chunk.holders, chunk.receivers)))
    index = {group: position for position, group in enumerate(groups)}
    sizes = {chunk.bytes for chunk in chunks}
    unit = common_unit(sizes)
    units = {size: int(size / unit) for size in sizes}
    return Chunks(
        np.array([units[chunk.bytes] for chunk in chunks], dtype=np.int64),
        unit,
        groups,
        np.array([index[chunk.holders] for chunk in chunks], dtype=np.int64),
        np.array([index[chunk.receivers] for chunk in chunks], dtype=np.int64),
        np.array([chunk.summed for chunk in chunks], dtype=np.bool_),
    )


def _chunks(instance: Instance, most: int) -> list[_Chunk]:
    items: list[_Chunk] = []
    for tenant, demand in enumerate(instance.demands):
        kinds = _conditions_with_owner(demand, instance.npus)
        if len(items) + len(kinds) * demand.chunks > most:
            raise InputError(f"more than {most:,} chunks to schedule", place="collective.chunks")
        for holders, receivers, summed, size, owner in kinds:
            items += [_Chunk(holders, receivers, summed, size / demand.chunks, tenant, owner)] * demand.chunks
    if not items or items[0].bytes <= 0:
        raise InputError("the collective has no data to move", place="collective")
    return items


def _conditions_with_owner(
    demand: Demand, npus: int
) -> list[tuple[tuple[int, ...], tuple[int, ...], bool, Fraction, int]]:
    """List conditions of a collective with the rank that has the data, or forms the sum."""
    kinds = conditions(demand, npus).bytes_of
    if demand.collective is Collective.ALL_REDUCE:  # TE-CCL, section 8: every rank sums its share and gives it to all
        ((holders, receivers, summed), size) = next(iter(kinds.items()))
        return [(holders, receivers, summed, size / len(holders), owner) for owner in holders]
    return [(*kind, size, (kind[1] if kind[2] else kind[0])[0]) for kind, size in kinds.items()]


@dataclass(frozen=True)
class RankEdge:
    """Link between two ranks, or path through switches."""

    source: int  #: positions of the ranks' nodes
    target: int
    links: tuple[int, ...]
    bandwidth_Bps: Fraction  #: the smallest bandwidth and the sum of the latencies of the links
    latency_s: Fraction


def step_schedule(sha256: str, chunks: Chunks, sends: Iterable[tuple[int, int, RankEdge]]) -> StepSchedule:
    """Build a schedule of sends ``(step, chunk, edge)``; empty steps are dropped."""
    rows = sorted(sends, key=lambda row: (row[0], row[1], row[2].links))
    number = {step: index for index, step in enumerate(sorted({step for step, _, _ in rows}))}
    edges = [edge for _, _, edge in rows]
    ends = [edge.source for edge in edges], [edge.target for edge in edges]
    moves = sends_from_lists([chunk for _, chunk, _ in rows], *ends, False, [edge.links for edge in edges])
    return StepSchedule(sha256, chunks, moves, np.array([number[step] for step, _, _ in rows], dtype=np.int64))


def needed_sends(
    source: int, targets: Iterable[int], sends: Iterable[tuple[int, RankEdge]]
) -> list[tuple[int, RankEdge]]:
    """Return the sends of one chunk on paths to its targets, traced back over first arrivals."""
    ordered = sorted(sends, key=lambda row: (row[0], row[1].links))
    first = {edge.target: (step, edge) for step, edge in reversed(ordered)}
    useful: dict[int, tuple[int, RankEdge]] = {}
    for target in targets:
        node = target
        while node != source and node not in useful:
            useful[node] = first[node]
            node = first[node][1].source
    return list(useful.values())


def edge_labels(
    topology: Topology, edges: Sequence[RankEdge], chunks: Sequence[Commodity]
) -> Mapping[str, Callable[[Any], str]]:
    """Name nodes n, edges e, links and, by their sources, chunks c in the constraints of a model of edges."""
    ends, sources = [(edge.source, edge.target) for edge in edges], [chunk.source for chunk in chunks]
    return network_labels(topology, n=range(len(topology.nodes)), e=ends, link=topology.link_ends, c=sources)


MAX_SWITCHES = 3  #: switches that an edge may lead through


def edges_of(topology: Topology) -> tuple[RankEdge, ...]:
    """Return links and switch paths between ranks, one shortest path per first and last link."""
    out, shortest = links_out(topology), dict[tuple[int, int], RankEdge]()
    ways: list[tuple[int, ...]] = [(link,) for rank in topology.rank_nodes for link, _ in out[rank]]
    for way in ways:
        source, at = topology.link_ends[way[0]][0], topology.link_ends[way[-1]][1]
        if topology.nodes[at].kind is NodeKind.COMPUTE:
            if at != source:
                links = [topology.links[link] for link in way]
                bandwidth_Bps = min(link.bandwidth_Bps for link in links)
                latency_s = sum((link.latency_s for link in links), Fraction(0))
                shortest.setdefault((way[0], way[-1]), RankEdge(source, at, way, bandwidth_Bps, latency_s))
        elif len(way) <= MAX_SWITCHES:
            passed = {topology.link_ends[link][1] for link in way}
            ways.extend((*way, link) for link, end in out[at] if end not in passed)
    return tuple(sorted(shortest.values(), key=lambda edge: (edge.source, edge.target, edge.links)))
