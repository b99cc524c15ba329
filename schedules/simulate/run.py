"""Simulation of schedules: a trace of all sends, or totals alone.

Paths other than the schedule's are by a hash of the flow, or equal parts over all shortest ones. Only sends whose own
path has the fewest links between its ends are routed; a detour is the schedule's own choice.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from math import lcm
from typing import NamedTuple
from zlib import crc32

import numpy as np

from ...core.answers import Answer
from ...core.budget import require_schedulable
from ...core.errors import InputError
from ...core.instance import Instance
from ...core.kernel import worth_compiling
from ...core.schedule import Floats, Ints, Schedule, Sends, offsets
from ...core.topology import Topology
from ...core.trace import Routing, SimulationMode, Trace
from ...core.trees import TreePacking
from ..verify.answers import write_out
from .compiled_runs import CompiledResult, compiled_in_order, compiled_levels
from .network import Rules, TickWires, Wires, add_rank_links, rules, to_ticks, wires
from .pipeline import simulate_shares
from .timelines import timeline_of, trace_of
from .transfers import Transfers, columns_of, transfers_of


def simulate(
    instance: Instance,
    answer: Answer,
    mode: SimulationMode = SimulationMode.CONGESTION_AWARE,
    *,
    barrier: bool = False,
    in_step: bool = False,
    pieces: int = 1,
    hold_latency: bool = False,
    routing: Routing | None = None,
) -> Trace:
    """Simulate a schedule on the network of its instance; trees that represent others are expanded to all sends.

    A send starts when all data of its chunk that reaches its source earlier has arrived: in earlier steps, from the
    tree's other edges, or, in a timed schedule, by the given start. The given times of such a schedule determine only
    dependencies, and the order (starts, then ends) in which links serve its sends where they serve one at a time; all
    durations follow from the mode.

    Parameters
    ----------
    mode : SimulationMode
        Timing of chunks on links. In the cut-through mode the nodes on a send's path forward data as it arrives; at
        the send's target the whole chunk arrives before it is sent on. Shares are for trees only.
    barrier : bool
        A step starts when the whole previous step has ended; for schedules in steps.
    in_step : bool
        A rank starts a step when all that it receives in earlier steps has arrived, as programs that wait for their
        messages do; for schedules in steps.
    pieces : int
        Number of pieces per tree, whose sends the trace has one after the other.
    hold_latency : bool
        A chunk holds a link for its latency too, as in MTree's equation (2); else the next one may follow at once.
    routing : Routing, optional
        Paths of the schedule, or others as short as these (:func:`route`); the instance's by default, from which
        trees with shares of links are exempt.

    Returns
    -------
    Trace
        Times in the order of the answer; with another routing hops are those of the parts of sends. A link is busy
        while a chunk holds it; where sends share links, for the seconds of their bytes.
    """
    answer = write_out(answer, instance)
    if mode is SimulationMode.SHARES:
        if not isinstance(answer, TreePacking) or barrier or in_step:
            raise InputError("only trees have shares of links, and no barriers", place="mode")
        if routing not in (None, Routing.FIXED):
            raise InputError("trees with shares of links keep their paths", place="routing")
        return simulate_shares(instance, answer, pieces, hold_latency=hold_latency)
    if hold_latency and mode not in (SimulationMode.CONGESTION_AWARE, SimulationMode.CUT_THROUGH):
        raise InputError(f"links are never occupied in the mode {mode.value}", place="hold_latency")
    columns, routing = wires(instance.topology, instance.timing), routing or instance.routing
    plain = not (barrier or in_step) and pieces == 1 and mode is not SimulationMode.FAIR_SHARE
    if isinstance(answer, Schedule) and plain and instance.rank_costs is None and routing is Routing.FIXED:
        result = _simulate_timed(instance, answer, columns, rules(mode, hold_latency=hold_latency), keep=True)
        if result is not None:
            return trace_of(mode, answer.sends, answer.chunks.sizes_bytes, columns, result.timeline)
    transfers = transfers_of(instance, answer, barrier=barrier, in_step=in_step, pieces=pieces)
    routed = None if routing is Routing.FIXED else route(instance.topology, transfers, routing)
    if routed is not None:
        transfers = routed.transfers
    charged = add_rank_links(instance, transfers, columns)
    timeline = charged.on_network(timeline_of(charged.transfers, charged.wires, mode, hold_latency=hold_latency))
    trace = trace_of(mode, transfers.sends, transfers.chunk_bytes, columns, timeline, transfers.place)
    return trace if routed is None else routed.of_answer(trace)


class Totals(NamedTuple):
    """Totals of a simulation."""

    completion_s: float
    busy_s: Floats
    sends: int
    unaware_s: float | None = None  #: Arrival of the last byte without congestion; None if not requested.


def simulate_totals(
    instance: Instance, answer: Answer, mode: SimulationMode = SimulationMode.CONGESTION_AWARE, *, unaware: bool = False
) -> Totals:
    """Simulate a schedule in a mode in which sends queue at links; of many sends, keep no times."""
    answer = write_out(answer, instance)
    columns, routing = wires(instance.topology, instance.timing), instance.routing
    if isinstance(answer, Schedule) and instance.rank_costs is None and routing is Routing.FIXED:
        played = _simulate_timed(instance, answer, columns, rules(mode), unaware=unaware)
        if played is not None:
            return Totals(played.latest, played.busy, len(answer.sends), played.alone if unaware else None)
    return totals_of(instance, transfers_of(instance, answer), mode, unaware=unaware)


def totals_of(instance: Instance, transfers: Transfers, mode: SimulationMode, *, unaware: bool = False) -> Totals:
    """Simulate sends in a mode in which they queue at links."""
    columns, sends = wires(instance.topology, instance.timing), len(transfers.sends)
    if instance.routing is not Routing.FIXED:
        transfers = route(instance.topology, transfers, instance.routing).transfers
    completion_s, busy_s, alone_s = _simulate_totals(instance, transfers, columns, mode, unaware=unaware)
    if unaware and alone_s is None:
        alone_s = _simulate_totals(instance, transfers, columns, SimulationMode.ALPHA_BETA)[0]
    return Totals(completion_s, busy_s, sends, alone_s)


def _simulate_timed(
    instance: Instance, answer: Schedule, columns: Wires, how: Rules, *, keep: bool = False, unaware: bool = False
) -> CompiledResult | None:
    """Simulate a timed schedule by compiled loops; None if that is not worthwhile, or not exact in floats."""
    if columns.varying or not worth_compiling(len(answer.sends)):
        return None
    columns_of(instance, answer)  # rejects numbers out of range
    links = to_ticks(answer.chunks, len(answer.sends.path_links), columns, exact=False)
    if isinstance(links, TickWires) and links.exact:
        return None
    played = compiled_in_order(answer, len(instance.topology.nodes), links, how, keep=keep, unaware=unaware)
    return None if played is None else played.in_seconds(links)


def _simulate_totals(
    instance: Instance, transfers: Transfers, columns: Wires, mode: SimulationMode, *, unaware: bool = False
) -> tuple[float, Floats, float | None]:
    """Return last arrival, busy seconds of links, and, if compiled and asked, the last arrival without congestion."""
    played, own, _ = charged = add_rank_links(instance, transfers, columns)
    levels = True
    if worth_compiling(len(transfers.sends)) and not transfers.fixed_order and not columns.varying:
        links = to_ticks(played, len(played.sends.path_links), own, exact=False)
        if not (isinstance(links, TickWires) and links.exact):
            result = compiled_levels(played, links, rules(mode), keep=False, unaware=unaware)
            if result is not None and (result := result.in_seconds(links)) is not None:
                return result.latest, result.busy[: len(columns)], result.alone if unaware else None
        levels = False
    timeline = charged.on_network(timeline_of(played, own, mode, hold_latency=False, levels=levels))
    trace = trace_of(mode, transfers.sends, transfers.chunk_bytes, columns, timeline)
    return trace.completion_s, trace.link_busy_s, None


MOST_PATHS = 4096  #: Shortest paths between two nodes that are distinguished at most.


class RoutedTransfers(NamedTuple):
    """Transfers over other paths."""

    transfers: Transfers
    part_of: Ints  #: The send of the answer that each is a part of, itself or one of several; shape (sends,).
    sends: int

    def of_answer(self, trace: Trace) -> Trace:
        """Return the trace with one start and end for each send of the answer; hops are those of the parts."""
        start_s, end_s = np.full(self.sends, np.inf), np.zeros(self.sends)
        np.minimum.at(start_s, self.part_of, trace.start_s)
        np.maximum.at(end_s, self.part_of, trace.end_s)
        return replace(trace, start_s=start_s, end_s=end_s)


def route(topology: Topology, transfers: Transfers, routing: Routing) -> RoutedTransfers:
    """Move sends to other shortest paths of the network.

    An :class:`InputError` if more than :data:`MOST_PATHS` join two nodes among which data is to be sprayed.
    """
    sends, network = transfers.sends, _Distances(topology)
    ways: list[Sequence[Sequence[int]]] = []
    paths_of: dict[tuple[int, int], Sequence[Sequence[int]]] = {}
    for send, ends in enumerate(zip(sends.source.tolist(), sends.target.tolist(), strict=True)):
        own = sends.path(send)
        if len(own) > network.distance(ends[1])[ends[0]]:
            ways.append((own,))
            continue
        if ends not in paths_of:
            paths_of[ends] = network.paths(*ends) if routing is Routing.SPRAY else (network.hashed_path(*ends),)
        ways.append(paths_of[ends])
    parts = np.array([len(each) for each in ways], dtype=np.int64)
    require_schedulable(int(parts.sum()), sum(len(each) * len(each[0]) for each in ways))
    part_of = np.repeat(np.arange(len(sends)), parts)
    paths = [path for each in ways for path in each]
    pair = np.stack([sends.chunk[part_of], parts[part_of]])
    pairs, chunk = np.unique(pair, axis=1, return_inverse=True) if len(sends) else (pair, part_of)
    several = lcm(*np.unique(parts).tolist())
    units = transfers.units
    if units is not None:  # exact only while they are no larger than numbers may be
        fits = int(units.max(initial=0)) * several < 2**63
        units = units[pairs[0]] * (several // pairs[1]) if fits else None
    routed = Sends(
        chunk.ravel().astype(np.int64),
        sends.source[part_of],
        sends.target[part_of],
        sends.reduce[part_of],
        offsets(np.array([len(path) for path in paths], dtype=np.int64)),
        np.array([link for path in paths for link in path], dtype=np.int64),
    )
    place = part_of if transfers.place is None else transfers.place[part_of]
    detours = replace(
        transfers,
        sends=routed,
        chunk_bytes=transfers.chunk_bytes[pairs[0]] / pairs[1],
        leaves=transfers.leaves[part_of],
        arrives=transfers.arrives[part_of],
        place=None,
        units=units,
        unit_bytes=transfers.unit_bytes / several,
        data=sends.chunk[part_of],
        first_link=sends.path_links[sends.path_offset[:-1]][part_of],
    )
    return RoutedTransfers(detours, place, len(sends))


class _Distances:
    def __init__(self, topology: Topology) -> None:
        self._topology = topology
        self._to: dict[int, list[int]] = {}

    @cached_property
    def _links(self) -> tuple[list[list[tuple[int, int]]], list[list[int]]]:
        """Links that leave every node with their targets, and nodes with a link to every node."""
        leaving: list[list[tuple[int, int]]] = [[] for _ in self._topology.nodes]
        before: list[list[int]] = [[] for _ in self._topology.nodes]
        for link, (source, target) in enumerate(self._topology.link_ends):
            leaving[source].append((link, target))
            before[target].append(source)
        return leaving, before

    def distance(self, target: int) -> list[int]:
        """Return the fewest links from every node to one."""
        if target not in self._to:
            _, before = self._links
            far = len(before)
            hops = [far] * far
            hops[target] = 0
            waiting = deque([target])
            while waiting:
                node = waiting.popleft()
                for other in before[node]:
                    if hops[other] == far:
                        hops[other] = hops[node] + 1
                        waiting.append(other)
            self._to[target] = hops
        return self._to[target]

    def _onward(self, node: int, target: int) -> list[tuple[int, int]]:
        """Return links from a node that come nearer to the target, with their ends."""
        distance, (leaving, _) = self.distance(target), self._links
        return [(link, other) for link, other in leaving[node] if distance[other] < distance[node]]

    def paths(self, source: int, target: int) -> list[list[int]]:
        """Return all paths of the fewest links."""
        paths: list[list[int]] = []
        waiting: list[tuple[int, list[int]]] = [(source, [])]
        while waiting:
            node, path = waiting.pop()
            if node == target:
                paths.append(path)
                continue
            waiting += [(other, [*path, link]) for link, other in reversed(self._onward(node, target))]
            if len(paths) + len(waiting) > MOST_PATHS:
                names = [self._topology.nodes[end].name for end in (source, target)]
                problem = f"more than {MOST_PATHS:,} shortest paths from {names[0]} to {names[1]}"
                raise InputError(problem, place="routing")
        return paths

    def hashed_path(self, source: int, target: int) -> list[int]:
        """Return the path that every node on it chooses by a hash of the two ends and itself."""
        path, node = [], source
        while node != target:
            onward = self._onward(node, target)
            link, node = onward[crc32(f"{source} {target} {node}".encode()) % len(onward)]
            path.append(link)
        return path
