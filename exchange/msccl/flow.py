"""Schedules of any kind as transfers between GPUs, in grains of one size (docs/exchange/msccl.md, "Out").

Sizes are exact fractions, so that there always is a grain of which all chunks and parts of buffers are multiples.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from itertools import chain
from typing import NamedTuple

import numpy as np

from ...core.collective import Collective, Demand
from ...core.errors import InputError
from ...core.files import without_collector
from ...core.instance import Instance
from ...core.schedule import Ints, Sends
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


class Hop(NamedTuple):
    """A message between GPUs in a simulation: its start, as place among all distinct ones, and its first link."""

    start: int
    link: int


class Transfer(NamedTuple):
    """Data sent from GPU to GPU."""

    chunk: int
    way: tuple[int, ...]  #: GPUs on the path, from the first to the last; those between forward.
    reduce: bool
    #: ``read`` and ``write``: order of the reading at the first and the writing at the last GPU. If they are equal, as
    #: within a step, all reading of the chunk comes before all writing of it.
    read: int
    write: int
    hops: tuple[Hop, ...] = ()  #: Messages from GPU to GPU; empty if not simulated.

    def hop(self, number: int) -> Hop:
        """Return a simulated message, or else one that starts in the order of reading."""
        return self.hops[number] if self.hops else _unsimulated_hop(self.read)


_unsimulated_hop = cache(lambda order: Hop(order, -1))


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
    transfers: tuple[Transfer, ...]
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
    transfers = _transfers(topology, sends, read, write, {node: r for r, node in enumerate(members)}, starts)
    numbers = {rank: r for r, rank in enumerate(sorted(members_ranks(instance)))}
    local = {
        one: (tuple(numbers[r] for r in one[0]), tuple(numbers[r] for r in one[1]), one[2]) for one in set(conditions)
    }
    flow = _lay_out_chunks(instance, kind, len(members), [local[one] for one in conditions], units, unit, transfers)
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


def _transfers(
    topology: Topology, sends: Sends, read: Ints, write: Ints, rank: Mapping[int, int], starts: Ints | None
) -> list[Transfer]:
    """Return sends from rank to rank; those through switches that store are joined."""
    compute = [node.kind is NodeKind.COMPUTE for node in topology.nodes]
    ends = topology.link_ends
    links, offset = sends.path_links.tolist(), np.asarray(sends.path_offset)
    messages = [] if starts is None else list(map(Hop, starts.tolist(), links))
    stored: dict[tuple[int, int], list[_Half]] = defaultdict(list)
    transfers: list[Transfer] = []
    ways: dict[tuple[int, ...], tuple[int, ...]] = {}  # of which many transfers share each
    columns = sends.chunk, sends.source, sends.target, sends.reduce, read, write, offset[:-1], offset[1:]
    parts = np.array_split(np.argsort(read, kind="stable"), len(read) // 2**16 + 1)
    rows = chain.from_iterable(zip(*(one[part].tolist() for one in columns), strict=True) for part in parts)
    for chunk, source, target, reduce, start, end, low, high in rows:
        begin, nodes = start, [source, *[ends[link][1] for link in links[low:high]]]
        way = [node for node in nodes if compute[node]]
        hops = [hop for hop, node in zip(messages[low:high], nodes, strict=False) if compute[node]]
        if not compute[source]:
            halves = stored[chunk, source]  # every arrival leaves once
            before = next((one for one in halves if one.end <= begin), None)
            if before is None:
                text = f"switch {topology.nodes[source].name} copies; programs of sends and receives send every copy"
                raise InputError(f"{text} from a GPU", place="sends")
            halves.remove(before)
            way, hops, begin = before.way + way, before.hops + hops, before.begin
        if not compute[target]:
            if reduce and stored[chunk, target]:
                text = f"switch {topology.nodes[target].name} adds; programs of sends and receives add on GPUs alone"
                raise InputError(text, place="sends")
            stored[chunk, target].append(_Half(way, hops, begin, end))
            continue
        ranks = tuple([rank.get(node, -1) for node in way])
        if -1 in ranks:
            name = topology.nodes[way[ranks.index(-1)]].name
            text = f"data goes over {name}, which is not in the group; a file is of one communicator"
            raise InputError(text, place="sends")
        transfers.append(Transfer(chunk, ways.setdefault(ranks, ranks), reduce, begin, max(begin, end), tuple(hops)))
    return transfers


class _Half(NamedTuple):
    """A send that ends in a switch: its GPUs, their messages, and the order of its ends."""

    way: list[int]
    hops: list[Hop]
    begin: int
    end: int


def _lay_out_chunks(
    instance: Instance,
    kind: Collective | None,
    ranks: int,
    kinds: list[Kind],
    units: list[int],
    unit: Fraction,
    transfers: list[Transfer],
) -> Flow:
    """Join chunks that are sent alike, count in grains, and give every chunk its place in the buffers."""
    ways: list[list[tuple[object, ...]]] = [[] for _ in kinds]
    count = Counter(kinds)
    joinable = [count[some] > 1 for some in kinds]
    for transfer in transfers:
        if joinable[transfer.chunk]:
            ways[transfer.chunk].append(transfer[1:])
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
    if any(chunk != joined for chunk, joined in number.items()) or len(number) < len(kinds):
        transfers = [one._replace(chunk=number[one.chunk]) for one in transfers if one.chunk in number]
    return Flow(kind, ranks, max(total, 1), grain, tuple(buffers), tuple(pieces), tuple(transfers))


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
