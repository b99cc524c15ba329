"""Simulation of schedules: a trace of all sends, or totals alone."""

from __future__ import annotations

from typing import NamedTuple

from ...core.answers import Answer
from ...core.errors import InputError
from ...core.instance import Instance
from ...core.kernel import worth_compiling
from ...core.schedule import Floats, Schedule
from ...core.trace import Routing, SimulationMode, Trace
from ...core.trees import TreePacking
from ..verify.answers import write_out
from .compiled_runs import CompiledResult, compiled_in_order, compiled_levels
from .network import Rules, TickWires, Wires, charge, rules, to_ticks, wires
from .pipeline import simulate_shares
from .routing import route
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
        Paths of the schedule, or others as short as these (:mod:`.routing`); the instance's by default, from which
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
        found = _simulate_timed(instance, answer, columns, rules(mode, hold_latency=hold_latency), keep=True)
        if found is not None:
            return trace_of(mode, answer.sends, answer.chunks.sizes_bytes, columns, found.timeline)
    transfers = transfers_of(instance, answer, barrier=barrier, in_step=in_step, pieces=pieces)
    routed = None if routing is Routing.FIXED else route(instance.topology, transfers, routing)
    if routed is not None:
        transfers = routed.transfers
    charged = charge(instance, transfers, columns)
    timeline = charged.on_network(timeline_of(charged.transfers, charged.wires, mode, hold_latency=hold_latency))
    trace = trace_of(mode, transfers.sends, transfers.chunk_bytes, columns, timeline, transfers.place)
    return trace if routed is None else routed.of_answer(trace)


class Totals(NamedTuple):
    """Totals of a simulation."""

    completion_s: float
    busy_s: Floats
    sends: int
    unaware_s: float | None = None  #: Arrival of the last byte without congestion; None if not requested.


def totals(
    instance: Instance, answer: Answer, mode: SimulationMode = SimulationMode.CONGESTION_AWARE, *, unaware: bool = False
) -> Totals:
    """Simulate a schedule in a mode in which sends queue at links; of many sends, keep no times."""
    answer = write_out(answer, instance)
    columns, routing = wires(instance.topology, instance.timing), instance.routing
    if isinstance(answer, Schedule) and instance.rank_costs is None and routing is Routing.FIXED:
        played = _simulate_timed(instance, answer, columns, rules(mode), unaware=unaware)
        if played is not None:
            return Totals(played.latest, played.busy, len(answer.sends), played.alone if unaware else None)
    transfers = transfers_of(instance, answer)
    sends = len(transfers.sends)
    if routing is not Routing.FIXED:
        transfers = route(instance.topology, transfers, routing).transfers
    completion_s, busy_s, alone_s = _simulate_totals(instance, transfers, columns, mode, unaware=unaware)
    if unaware and alone_s is None:
        alone_s = _simulate_totals(instance, transfers, columns, SimulationMode.ALPHA_BETA)[0]
    return Totals(completion_s, busy_s, sends, alone_s)


def _simulate_timed(
    instance: Instance, answer: Schedule, columns: Wires, chosen: Rules, *, keep: bool = False, unaware: bool = False
) -> CompiledResult | None:
    """Simulate a timed schedule by compiled loops; None if that is not worthwhile, or not exact in floats."""
    if columns.varying or not worth_compiling(len(answer.sends)):
        return None
    columns_of(instance, answer)  # rejects numbers out of range
    links = to_ticks(answer.chunks, len(answer.sends.path_links), columns, exact=False)
    if isinstance(links, TickWires) and links.exact:
        return None
    played = compiled_in_order(answer, len(instance.topology.nodes), links, chosen, keep=keep, unaware=unaware)
    return None if played is None else played.in_seconds(links)


def _simulate_totals(
    instance: Instance, transfers: Transfers, columns: Wires, mode: SimulationMode, *, unaware: bool = False
) -> tuple[float, Floats, float | None]:
    """Return last arrival, busy seconds of links, and, if compiled and asked, the last arrival without congestion."""
    played, own, _ = charged = charge(instance, transfers, columns)
    if worth_compiling(len(transfers.sends)) and not transfers.fixed_order and not columns.varying:
        links = to_ticks(played, len(played.sends.path_links), own, exact=False)
        if not (isinstance(links, TickWires) and links.exact):
            found = compiled_levels(played, links, rules(mode), keep=False, unaware=unaware)
            if found is not None and (found := found.in_seconds(links)) is not None:
                return found.latest, found.busy[: len(columns)], found.alone if unaware else None
    timeline = charged.on_network(timeline_of(played, own, mode, hold_latency=False))
    trace = trace_of(mode, transfers.sends, transfers.chunk_bytes, columns, timeline, transfers.place)
    return trace.completion_s, trace.link_busy_s, None
