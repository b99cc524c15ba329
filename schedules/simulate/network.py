"""Links as columns, rules for chunks on them, and times of all hops, for the simulators.

Times are whole numbers of ticks, so that simultaneous requests for a link are exactly equal; as floats below 2^53
ticks, else as integers and fractions, or rounded for schedules too large for those (docs/schedules/simulators.md,
"Congestion-aware").

Costs of ranks are links too, so that the simulators count them: the *sender* before the first link of a message,
without bytes, and the *adder* after the last one, with the rate of adding (same page, "Costs of ranks"). Times of these
links do not appear in a trace.
"""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from ...core.instance import Instance
from ...core.schedule import Bools, Chunks, Floats, Ints, Sends, offsets
from ...core.timing import Timing
from ...core.topology import Link, NodeKind, Topology
from ...core.trace import SimulationMode
from ...core.trees import TreePacking, link_columns
from ...core.units import common_unit
from .transfers import Transfers


class Speeds(NamedTuple):
    """Bandwidth of a link over time, relative to its nominal bandwidth."""

    begin_s: list[Fraction]  #: Start of each interval, the first at 0; the last one never ends.
    factor: list[Fraction]  #: Relative bandwidth in each interval; positive in the last one.

    def end_s(self, begin_s: Any, seconds: Any) -> Any:
        """Return the end of a transmission by its start and its seconds at nominal bandwidth."""
        stretch = bisect_right(self.begin_s, begin_s) - 1
        now = begin_s
        while stretch + 1 < len(self.begin_s):
            part_s = (self.begin_s[stretch + 1] - now) * self.factor[stretch]
            if part_s >= seconds:
                break
            now, seconds, stretch = self.begin_s[stretch + 1], seconds - part_s, stretch + 1
        return now + seconds / self.factor[stretch] if seconds else now


class RankLinks(NamedTuple):
    """Links that stand for the costs of ranks, after those of the network."""

    #: First of the links on which nodes add, and of those on which they send, which come last.
    adders: int
    senders: int
    #: An adder begins when the first byte has arrived, in every mode; otherwise when the last one has.
    while_receiving: bool = False


@dataclass(frozen=True, eq=False)
class Wires:
    """Columns of the links."""

    bandwidth_Bps: Floats
    latency_s: Floats
    varying: Mapping[int, Speeds] = field(default_factory=dict)
    links: Sequence[Link] = ()  #: The links with exact numbers; empty if only the columns are known.
    #: The links at the end that stand for costs of ranks; None if nothing costs anything.
    of_ranks: RankLinks | None = None

    @property
    def rank_links(self) -> RankLinks:
        """The links that stand for costs of ranks; none of the links if nothing costs anything."""
        return self.of_ranks or RankLinks(len(self), len(self))

    def passing_s(self, chunk_bytes: Floats, chunk: Ints, link: Ints) -> Floats:
        """Return the transmission times of chunks on links in seconds."""
        return chunk_bytes[chunk] / self.bandwidth_Bps[link]

    def __len__(self) -> int:
        return len(self.bandwidth_Bps)


def wires(topology: Topology, timing: Timing | None = None) -> Wires:
    """Return the columns of a topology's links, with the changes of bandwidth in a timing."""
    return Wires(*link_columns(topology), {} if timing is None else _speeds(timing), topology.links)


def _speeds(timing: Timing) -> dict[int, Speeds]:
    speeds: dict[int, Speeds] = {}
    for link in {change.link for change in timing.changes}:
        mine = [change for change in timing.changes if change.link == link]
        ends = sorted({0, *(end for change in mine for end in (change.first, change.last))})
        speeds[link] = Speeds([end * timing.epoch_s for end in ends], [timing.factor(link, end) for end in ends])
    return speeds


class Rules(NamedTuple):
    """Timing of a chunk on the links of its path (docs/schedules/simulators.md, "How a chunk passes a path")."""

    #: A node asks for the next link when the first byte has arrived, ``b + latency``, instead of the last one, ``e +
    #: latency``.
    streaming: bool
    contended: bool  #: A link serves one chunk at a time; otherwise f is 0.
    hold_latency: bool = False


def rules(mode: SimulationMode, *, hold_latency: bool = False) -> Rules:
    """Return the rules of a mode in which chunks pass links one by one; without contention the alpha-beta model."""
    contended = mode is not SimulationMode.ALPHA_BETA
    return Rules(mode is not SimulationMode.CONGESTION_AWARE, contended, hold_latency)


class Timeline(NamedTuple):
    """Times of all sends and hops, in the order of the transfers."""

    end_s: Floats
    #: Times at which each link is occupied and left; shape (entries of path_links,).
    hop_start_s: Floats
    hop_end_s: Floats


MOST_TICKS = 2**53  #: Ticks that a float holds exactly.

#: Largest number of hops for integers of any size, and largest table of durations (chunk sizes times link rates).
MOST_EXACT, MOST_DURATIONS = 2_000_000, 1_000_000


@dataclass(frozen=True, eq=False)
class TickWires(Wires):
    """Links whose times are counted in their own unit instead of seconds."""

    unit_s: Fraction = Fraction(1)
    table: Any = None  #: Duration of every size of a chunk at every rate of a link; shape (sizes, rates).
    #: Table row of each chunk and table column of each link.
    size_of: Any = None
    rate_of: Any = None

    @property
    def exact(self) -> bool:
        """True if the numbers are integers of any size."""
        return bool(self.table.dtype == object)

    def passing_s(self, chunk_bytes: Floats, chunk: Ints, link: Ints) -> Floats:
        """Return the transmission times of chunks on links, in units."""
        del chunk_bytes
        seconds: Floats = self.table[self.size_of[chunk], self.rate_of[link]]
        return seconds

    def in_seconds(self, timeline: Timeline) -> Timeline | None:
        """Convert a timeline to seconds; None if floats cannot hold its ticks."""
        if self.exact:
            unit = self.unit_s
            return Timeline(*(np.array([float(t * unit) for t in column.tolist()], dtype=float) for column in timeline))
        if timeline.end_s.max(initial=0.0) >= MOST_TICKS:
            return None
        return Timeline(*(seconds_of(column, self.unit_s) for column in timeline))


def to_ticks(sized: Transfers | Chunks, hops: int, wires: Wires, *, exact: bool) -> TickWires | Wires:
    """Count durations in a common unit, as integers of any size if exact; keep links without exact numbers."""
    if sized.units is None or not wires.links:
        return wires
    rates, rate_of = _classes([link.bandwidth_Bps for link in wires.links])
    delays, delay_of = _classes([link.latency_s for link in wires.links])
    sizes, size_of = np.unique(sized.units, return_inverse=True)
    if len(sizes) * len(rates) > MOST_DURATIONS:
        return wires
    durations = [[size * sized.unit_bytes / rate if rate else Fraction(0) for rate in rates] for size in sizes.tolist()]
    times = [*delays, *(d for row in durations for d in row)]
    unit = common_unit(times) or Fraction(1)
    longest = max(times, default=Fraction(0)) or Fraction(1)
    many = exact or bool(wires.varying) or longest / unit >= MOST_TICKS
    if many and not wires.varying and hops > MOST_EXACT:
        many, unit = False, longest
    kind: Any = object if many else np.float64
    count: Any = int if many else float
    table, late = np.empty((len(sizes), len(rates)), dtype=kind), np.empty(len(delays), dtype=kind)
    for row, line in enumerate(durations):
        table[row] = [count(duration / unit) for duration in line]
    late[:] = [count(delay / unit) for delay in delays]
    varying = {e: Speeds([begin / unit for begin in each.begin_s], each.factor) for e, each in wires.varying.items()}
    columns = wires.bandwidth_Bps, late[delay_of], varying, wires.links, wires.of_ranks
    return TickWires(*columns, unit, table, size_of, rate_of)


def seconds_of(ticks: Floats, unit_s: Fraction) -> Floats:
    """Convert ticks to seconds with a single rounding, as for exact bounds, where floats permit."""
    top, bottom = unit_s.numerator, unit_s.denominator
    if max(float(ticks.max(initial=1.0)) * top, bottom) < MOST_TICKS:
        return ticks * top / bottom
    return ticks * float(unit_s)


def _classes(values: list[Fraction]) -> tuple[list[Fraction], Ints]:
    """Return the distinct values and the place of each among them; links share numbers, fractions compare slowly."""
    place: dict[Fraction, int] = {}
    number = {key: place.setdefault(value, len(place)) for key, value in {id(each): each for each in values}.items()}
    return list(place), np.array([number[id(value)] for value in values], dtype=np.int64)


class ChargedTransfers(NamedTuple):
    """Transfers over the links of ranks as well."""

    transfers: Transfers
    wires: Wires
    real: Bools | slice = slice(None)  #: Entries of paths that are links of the network.

    def on_network(self, timeline: Timeline) -> Timeline:
        """Return the times of the hops over links of the network."""
        return Timeline(timeline.end_s, timeline.hop_start_s[self.real], timeline.hop_end_s[self.real])


def add_rank_links(instance: Instance, transfers: Transfers, wires: Wires) -> ChargedTransfers:
    """Add the links of ranks to the paths if ranks have costs."""
    if (costs := instance.rank_costs) is None:
        return ChargedTransfers(transfers, wires)
    sends, nodes, links = transfers.sends, instance.topology.nodes, len(wires)
    rates = [costs.reduce_rate(node.kind) for node in nodes]
    adds = sends.reduce & np.array([rate is not None for rate in rates], dtype=np.bool_)[sends.target]
    sender = np.array([costs.overhead_s > 0 and node.kind is NodeKind.COMPUTE for node in nodes])
    calls = sender[sends.source]
    longer = _extend_paths(sends, calls, adds, links, len(nodes))
    real = longer.path_links < links
    virtual = [Link("", "", rate or Fraction(0)) for rate in rates]  # 0: takes no time, see ticks
    virtual += [Link("", "", Fraction(0), costs.overhead_s)] * len(nodes)
    own = Wires(
        np.concatenate([wires.bandwidth_Bps, [float(link.bandwidth_Bps) or np.inf for link in virtual]]),
        np.concatenate([wires.latency_s, [float(link.latency_s) for link in virtual]]),
        wires.varying,
        [*wires.links, *virtual] if wires.links else (),
        RankLinks(links, links + len(nodes), costs.while_receiving),
    )
    return ChargedTransfers(replace(transfers, sends=longer, pays=_first_of_messages(transfers, calls)), own, real)


def shared_charges(instance: Instance, transfers: Transfers, wires: Wires) -> ChargedTransfers:
    """Add the costs of ranks to trees that have shares of all links, where nothing waits for another tree.

    A message delays its first link by the overhead, as a copy of that link does; an adder that begins when data has
    arrived is one more link.
    """
    sends, costs, links = transfers.sends, instance.rank_costs, len(wires)
    if costs is None:
        return ChargedTransfers(transfers, wires)
    nodes = instance.topology.nodes
    rates = [None if costs.while_receiving else costs.reduce_rate(node.kind) for node in nodes]
    adds = sends.reduce & np.array([rate is not None for rate in rates], dtype=np.bool_)[sends.target]
    calls = np.array([node.kind is NodeKind.COMPUTE for node in nodes])[sends.source]
    copied = sends.path_links.copy()
    copied[sends.path_offset[:-1][calls]] += links
    longer = _extend_paths(replace(sends, path_links=copied), calls & False, adds, 2 * links, len(nodes))
    late = wires.latency_s + float(costs.overhead_s)
    own = Wires(
        np.concatenate([wires.bandwidth_Bps, wires.bandwidth_Bps, np.ones(len(nodes))]),
        np.concatenate([wires.latency_s, late, np.zeros(len(nodes))]),
    )
    return ChargedTransfers(replace(transfers, sends=longer), own, longer.path_links < 2 * links)


def most_messages(topology: Topology, sends: Sends) -> int:
    """Return the number of sends of the rank that sends most."""
    leaving = np.bincount(sends.source, minlength=len(topology.nodes))
    return int(leaving[list(topology.rank_nodes)].max(initial=0))


def longest_adding(instance: Instance, sends: Sends, packing: TreePacking) -> Fraction:
    """Return the seconds of the node that adds longest, where every chunk is the data of a tree."""
    assert instance.rank_costs is not None  # noqa: S101 (asked for instances with costs only)
    units = np.zeros(len(instance.topology.nodes), dtype=np.int64)
    np.add.at(units, sends.target[sends.reduce], packing.units[sends.chunk[sends.reduce]])
    rates = [instance.rank_costs.reduce_rate(node.kind) for node in instance.topology.nodes]
    loads = zip(units.tolist(), rates, strict=True)
    return max((unit * packing.unit_bytes / rate for unit, rate in loads if rate is not None), default=Fraction(0))


def _extend_paths(sends: Sends, calls: Bools, adds: Bools, links: int, nodes: int) -> Sends:
    """Return sends over their senders and adders, numbered after the links: adders first."""
    offset = offsets(sends.hops + calls.astype(np.int64) + adds)
    path_links = np.full(int(offset[-1]), -1, dtype=np.int64)
    path_links[offset[:-1][calls]] = links + nodes + sends.source[calls]
    path_links[offset[1:][adds] - 1] = links + sends.target[adds]
    path_links[path_links < 0] = sends.path_links
    return replace(sends, path_offset=offset, path_links=path_links)


def _first_of_messages(transfers: Transfers, calls: Bools) -> Floats:
    """Return 1 for sends that pay, the first of every message, and 0 for all others."""
    sends = transfers.sends
    first_link = sends.path_links[sends.path_offset[:-1]] if transfers.first_link is None else transfers.first_link
    width = int(sends.target.max(initial=0)) + 1, int(first_link.max(initial=0)) + 1
    message = (transfers.leaves * width[0] + sends.target) * width[1] + first_link  # the link tells the source
    pays = np.zeros(len(sends))
    pays[np.unique(message, return_index=True)[1]] = 1.0
    return pays * calls
