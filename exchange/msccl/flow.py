"""Schedules of any kind as transfers between GPUs, in grains of one size (docs/exchange/msccl.md, "Out").

Sizes are exact fractions, so that there always is a grain of which all chunks and parts of buffers are multiples.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from ...core.collective import Collective, Demand
from ...core.errors import InputError
from ...core.files import without_collector
from ...core.instance import Instance
from ...core.schedule import Bools, Ints, Sends, ranges
from ...core.timing import RankCosts
from ...core.topology import NodeKind, Topology
from ...core.trace import Routing, SimulationMode
from ...core.trees import TreePacking
from ...core.units import common_unit
from ...schedules.files import Written
from ...schedules.lowering import order_sends
from ...schedules.simulate import simulate
from ...schedules.simulate.transfers import rank_times
from ...schedules.verify.answers import write_out
from .outcome import Meaning

MAX_MESSAGES = 2**20  #: Messages of trees in pieces.
Kind = tuple[tuple[int, ...], tuple[int, ...], bool]  #: What a chunk is: who has it, who needs it, whether it is a sum.


class Hops(NamedTuple):
    """Messages between two GPUs, as columns; those of a transfer follow one another, since GPUs between forward."""

    chunk: Ints
    number: Ints  #: Number in its transfer.
    last: Bools
    reduce: Bools  #: Whether the last GPU of the transfer adds the chunk.
    #: ``read`` and ``write``: order of the reading at the first and the writing at the last GPU of the transfer. If
    #: they are equal, as within a step, all reading of the chunk comes before all writing of it.
    read: Ints
    write: Ints
    source: Ints
    target: Ints
    #: Start in a simulation, as place among all distinct ones, and first link; without one, ``read`` and -1.
    start: Ints
    link: Ints


class Piece(NamedTuple):
    """A chunk: what it is, its grains, and the grain at which it begins in inputs and in outputs."""

    kind: Kind
    grains: int
    input: int
    output: int


@dataclass(frozen=True)
class Flow:
    """A schedule as transfers between the ranks of one communicator."""

    kind: Collective | None  #: The collective; None if every pair of ranks has a message of its own size.
    ranks: int
    grains: int
    grain_bytes: Fraction
    sizes: tuple[tuple[int, int], ...]  #: Grains of each rank's input and output.
    chunks: tuple[Piece, ...]
    hops: Hops
    costs: RankCosts | None = None  #: Costs of the ranks of its instance, for formats that have some of them.
    routing: Routing = Routing.FIXED  #: Routing of its instance, which no format has.
    boxes: tuple[str, ...] | None = None  #: Box of every rank; None if the names of the network's nodes have none.

    def name_in(self, names: Mapping[str, str], reader: str, source: str | None = None) -> str:
        """Return the name of the collective, or of messages between pairs, in the files of a reader."""
        name = "point_to_point" if self.kind is None else self.kind.name
        if name not in names:
            raise InputError(f"{reader} has no {name}; it has {', '.join(sorted(names))}", source=source)
        return names[name]

    @property
    def left_out(self) -> str:
        """Return the remark on the routing that a file leaves out; empty if it is that of the schedule."""
        name = f"routing {self.routing.value}"
        return "" if self.routing is Routing.FIXED else f"; {name} is left out: the format has no routing"


@without_collector()
def flow_of(instance: Instance, answer: Written, mode: SimulationMode | None = None, pieces: int = 1) -> Flow:
    """Convert a correct schedule to transfers.

    A simulation mode gives the order of messages; then only chunks that are sent at once are joined. What MSCCL cannot
    express is an :class:`InputError`: several collectives at once, data that switches copy or add, GPUs outside of the
    group on paths, or more than :data:`MAX_MESSAGES`.
    """
    topology = instance.network
    if not isinstance(topology, Topology) or instance.demand is None:
        raise InputError("expected a network of nodes and links, and a collective", place="instance")
    kind, members = _collective(instance)
    whole = write_out(answer, instance)
    if isinstance(whole, TreePacking) and pieces * sum(len(part.child) for part in whole.passes) > MAX_MESSAGES:
        raise InputError(f"{pieces} pieces are more than {MAX_MESSAGES:,} messages", source="--pieces")
    sends, conditions, units, unit, read, write = order_sends(topology, instance, whole, pieces)
    starts = None
    if mode is not None:  # messages take the paths of the schedule
        played = simulate(instance, whole, mode, pieces=pieces, routing=Routing.FIXED)
        starts = rank_times(played.hop_start_s)
    hops = _hops_of(topology, sends, read, write, {node: r for r, node in enumerate(members)}, starts)
    numbers = {rank: r for r, rank in enumerate(sorted(members_ranks(instance)))}
    local = {
        one: (tuple(numbers[r] for r in one[0]), tuple(numbers[r] for r in one[1]), one[2]) for one in set(conditions)
    }
    flow = _lay_out_chunks(instance, kind, len(members), [local[one] for one in conditions], units, unit, hops)
    boxes = topology.box_names(members)
    return replace(flow, costs=instance.rank_costs, routing=instance.routing, boxes=boxes)


def members_ranks(instance: Instance) -> tuple[int, ...]:
    """Return the ranks of the communicator: those of the group, or all if pairs have their own messages."""
    demand = instance.demand
    if demand is None or demand.ranks is None or demand.collective is Collective.POINT_TO_POINT:
        return tuple(range(instance.npus))
    return tuple(sorted(demand.ranks))


def _collective(instance: Instance) -> tuple[Collective | None, list[int]]:
    topology = instance.topology
    kinds = {demand.collective for demand in instance.demands}
    if kinds == {Collective.POINT_TO_POINT}:
        return None, list(topology.rank_nodes)
    if len(instance.demands) > 1:
        several = f"{len(instance.demands)} collectives at once"
        if instance.demand is not None and instance.demand.part_of is not None:
            several = f"{instance.demand.part_of.name} is {len(instance.demands)} broadcasts at once"
        raise InputError(f"{several}; a file is one collective of one communicator", place="instance.also")
    (kind,) = kinds
    if kind is Collective.LATE_ALL_REDUCE:
        text = "late_all_reduce begins with partial sums, which these files cannot express"
        raise InputError(text, place="instance.demand")
    return kind, [topology.rank_nodes[rank] for rank in members_ranks(instance)]


def _hops_of(
    topology: Topology, sends: Sends, read: Ints, write: Ints, rank: Mapping[int, int], starts: Ints | None
) -> Hops:
    """Return sends from rank to rank; those through switches that store are joined."""
    compute = np.array([node.kind is NodeKind.COMPUTE for node in topology.nodes])
    gpu = np.array([rank.get(node, -1) for node in range(len(compute))])
    low, high, links = sends.path_offset[:-1], sends.path_offset[1:], sends.path_links
    nodes = np.insert(np.array(topology.link_ends, dtype=np.int64).reshape(-1, 2)[links, 1], low, sends.source)
    places = np.flatnonzero(compute[nodes])  # GPUs of every send
    owner, nodes = np.repeat(np.arange(len(read)), sends.hops + 1)[places], nodes[places]
    count = np.bincount(owner, minlength=len(read))
    first = np.cumsum(count) - count
    apart = ~(compute[sends.source] & compute[sends.target])
    outside = np.flatnonzero(gpu[nodes] < 0)[::-1]
    apart[owner[outside]] = True
    foreign = dict(zip(owner[outside].tolist(), nodes[outside].tolist(), strict=True))  # the first of every send
    order = np.argsort(read, kind="stable")
    final = _final_sends(topology, sends, read, write, order[apart[order]], foreign)
    parts = order[compute[sends.target[final[order]]]]
    parts = parts[np.argsort(np.argsort(order)[final[parts]], kind="stable")]
    begins = np.diff(final[parts], prepend=-1) != 0
    of, finals, begin = np.cumsum(begins) - 1, parts[final[parts] == parts], read[parts[begins]]
    rows, index = ranges(first[parts], count[parts]), np.repeat(of, count[parts])
    hop = np.flatnonzero(index[:-1] == index[1:])  # from these nodes to the next ones
    number, index = (np.arange(len(rows)) - np.searchsorted(index, index))[hop], index[hop]
    start, link = begin[index], np.full(len(hop), -1)
    if starts is not None:
        start, link = (np.insert(column, high, -1)[places][rows[hop]] for column in (starts, links))
    times = begin[index], np.maximum(begin, write[finals])[index]
    columns = sends.chunk[finals][index], number, np.diff(index, append=-1) != 0, sends.reduce[finals][index], *times
    return Hops(*columns, gpu[nodes[rows[hop]]], gpu[nodes[rows[hop + 1]]], start, link)


def _final_sends(
    topology: Topology, sends: Sends, read: Ints, write: Ints, order: Ints, foreign: Mapping[int, int]
) -> Ints:
    """Return for every send the one over which its data comes to a GPU; of ``order`` are those that are not alone."""
    stored: dict[tuple[int, int], list[list[int]]] = defaultdict(list)  # at switches: every arrival leaves once
    final = np.arange(len(sends))
    for send in order.tolist():
        chunk, source, target = int(sends.chunk[send]), int(sends.source[send]), int(sends.target[send])
        parts: list[int] = []
        if topology.nodes[source].kind is not NodeKind.COMPUTE:
            halves = stored[chunk, source]
            parts = next((one for one in halves if write[one[-1]] <= read[send]), parts)
            if not parts:
                text = f"switch {topology.nodes[source].name} copies; programs of sends and receives send every copy"
                raise InputError(f"{text} from a GPU", place="sends")
            halves.remove(parts)
        if topology.nodes[target].kind is NodeKind.COMPUTE:
            if strangers := [foreign[one] for one in (*parts, send) if one in foreign]:
                name = topology.nodes[strangers[0]].name
                text = f"data goes over {name}, which is not in the group; a file is of one communicator"
                raise InputError(text, place="sends")
            final[parts] = send
            continue
        if sends.reduce[send] and stored[chunk, target]:
            text = f"switch {topology.nodes[target].name} adds; programs of sends and receives add on GPUs alone"
            raise InputError(text, place="sends")
        stored[chunk, target].append([*parts, send])
    return final


def _lay_out_chunks(
    instance: Instance,
    kind: Collective | None,
    ranks: int,
    kinds: list[Kind],
    units: list[int],
    unit: Fraction,
    hops: Hops,
) -> Flow:
    """Join chunks that are sent alike, count in grains, and give every chunk its place in the buffers."""
    ways: list[list[tuple[object, ...]]] = [[] for _ in kinds]  # transfers of chunks that may be joined
    count = Counter(kinds)
    rows = np.flatnonzero(np.array([count[some] > 1 for some in kinds])[hops.chunk])
    for chunk, number, *row in zip(*(column[rows].tolist() for column in hops), strict=True):
        if number == 0:
            ways[chunk].append(())
        ways[chunk][-1] += (tuple(row),)
    alike: dict[object, list[int]] = defaultdict(list)
    for chunk, sends in enumerate(ways):
        alike[kinds[chunk], tuple(sorted(sends))].append(chunk)
    groups = [members for members in alike.values() if kinds[members[0]][1]]
    sizes = [sum(units[chunk] for chunk in members) * unit for members in groups]
    number = {members[0]: joined for joined, members in enumerate(groups)}
    demand = instance.demand
    assert demand is not None  # noqa: S101 (the caller has looked)
    whole = _whole_sizes(kind, demand, ranks)
    grain = common_unit((*sizes, *whole))
    counts = [int(size / grain) for size in sizes]
    pieces, buffers = _places(kind, ranks, [kinds[members[0]] for members in groups], counts, whole, grain)
    total = int(whole[-1] / grain) if kind is not None else max(map(max, buffers), default=1)
    joined = np.array([number.get(chunk, -1) for chunk in range(len(kinds))])[hops.chunk]
    hops = Hops._make(column[joined >= 0] for column in hops._replace(chunk=joined))
    return Flow(kind, ranks, max(total, 1), grain, tuple(buffers), tuple(pieces), hops)


def _whole_sizes(kind: Collective | None, demand: Demand, ranks: int) -> list[Fraction]:
    """Sizes that grains must divide; the last one is what ``nchunksperloop`` counts."""
    part = demand.size_bytes / ranks
    if kind is None:
        return []
    if kind in (Collective.GATHER, Collective.SCATTER):
        return [demand.size_bytes, part]
    if kind in (Collective.ALL_GATHER, Collective.REDUCE_SCATTER, Collective.ALL_TO_ALL):
        return [part, demand.size_bytes]
    return [demand.size_bytes]


def _places(
    kind: Collective | None, ranks: int, kinds: list[Kind], counts: list[int], whole: list[Fraction], grain: Fraction
) -> tuple[list[Piece], list[tuple[int, int]]]:
    """Return the place of every chunk, and the buffer sizes: parts of NCCL's collectives in order."""
    part = int(min(whole) / grain) if whole else 0
    filled: dict[object, int] = defaultdict(int)
    pieces: list[Piece] = []
    inputs, outputs = [0] * ranks, [0] * ranks
    for some, count in zip(kinds, counts, strict=True):
        holders, needers, _ = some
        key: object = (holders, needers)
        at, filled[key] = filled[key], filled[key] + count
        source, target = holders[0], needers[0]
        match kind:
            case Collective.ALL_GATHER | Collective.GATHER:
                place = at, source * part + at
            case Collective.REDUCE_SCATTER | Collective.SCATTER:
                place = target * part + at, at
            case Collective.ALL_TO_ALL:
                place = target * part + at, source * part + at
            case None:
                place = inputs[source], outputs[target]
                inputs[source] += count
                outputs[target] += count
            case _:
                place = at, at
        pieces.append(Piece(some, count, *place))
    if kind is None:
        return pieces, list(zip(inputs, outputs, strict=True))
    return pieces, [Meaning(kind, ranks, int(whole[-1] / grain)).sizes] * ranks
