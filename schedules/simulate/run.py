"""From an answer to a trace."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from ...core.errors import InputError
from ...core.instance import Instance
from ...core.kernel import worth_compiling
from ...core.orbits import TreeOrbits, written_out
from ...core.ragged import offsets, ranges
from ...core.schedule import Floats, Ints, Schedule, Sends
from ...core.trace import SimulationMode, Trace
from ...core.translated import TranslatedTrees
from ...core.trees import TreePacking
from ..verify.translated import expand
from .compiled_levels import compiled_levels, compiled_totals
from .events import simulate_by_events, simulate_in_order
from .fair import simulate_flows
from .in_order import Played, compiled_in_order
from .levels import simulate_by_levels
from .network import Wires, wires
from .occupancy import link_totals, occupied_s, utilization_over_time
from .ticks import MOST_TICKS, Counted, counted
from .timing import Rules, Timeline, rules
from .transfers import Transfers, checked_columns, sends_of, transfers_of
from .windows import simulate_by_windows


def simulate(
    instance: Instance,
    answer: object,
    mode: SimulationMode = SimulationMode.CONGESTION_AWARE,
    *,
    barrier: bool = False,
    pieces: int = 1,
    hold_latency: bool = False,
) -> Trace:
    """Simulate a schedule on the network of its instance.

    A send begins when everything of its chunk that comes to its source earlier has arrived: in earlier steps, from the
    tree's other edges, or, for a schedule in time, by the given start. The given times of such a schedule count only
    for what depends on what, and for the order (starts, then ends) in which links serve its sends where they serve one
    at a time; everything else takes as long as the mode says.

    Parameters
    ----------
    instance : Instance
        The problem, with an explicit network.
    answer : StepSchedule, Schedule, TreePacking, TreeOrbits or TranslatedTrees
        What is simulated; it should have been verified. Of trees that stand for others all sends.
    mode : SimulationMode
        How time passes on links. In the cut-through mode the nodes on a send's path pass on what they receive while it
        comes; where a send ends, its chunk is whole before it is sent on. Shares are of trees alone.
    barrier : bool
        Whether a step starts when the whole step before has ended; for schedules in steps.
    pieces : int
        Number of pieces that the data of every tree is cut into; for trees. The trace has the sends of the first piece,
        then of the second, ..., see :func:`~cwb.schedules.simulate.transfers.sends_of`.
    hold_latency : bool
        Whether a chunk holds a link for its latency too, as in MTree's equation (2); otherwise the next chunk may
        follow at once.

    Returns
    -------
    Trace
        Times of all sends and hops in the order of the answer. A link is busy while a chunk holds it; where sends share
        links (alpha-beta and fair-share), for the seconds that their bytes take at full bandwidth.

    Raises
    ------
    InputError
        If the answer is no schedule of this instance, or an option does not fit it.
    """
    if isinstance(answer, TranslatedTrees):
        answer = expand(instance, answer)
    if isinstance(answer, TreeOrbits):
        answer = written_out(answer, instance.topology)
    if mode is SimulationMode.SHARES:
        if not isinstance(answer, TreePacking) or barrier:
            raise InputError("only trees have shares of links, and no barriers", place="mode")
        from .reserved import simulate_shares

        return simulate_shares(instance, answer, pieces, hold_latency=hold_latency)
    if hold_latency and mode not in (SimulationMode.CONGESTION_AWARE, SimulationMode.CUT_THROUGH):
        raise InputError(f"nothing holds a link in the mode {mode.value}", place="hold_latency")
    columns = wires(instance.topology, instance.timing)
    if isinstance(answer, Schedule) and not barrier and pieces == 1 and mode is not SimulationMode.FAIR_SHARE:
        found = _in_time(instance, answer, columns, rules(mode, hold_latency=hold_latency), keep=True)
        if found is not None:
            return trace_of(mode, answer.sends, answer.chunks.sizes_bytes, columns, found.timeline)
    transfers = transfers_of(instance, answer, barrier=barrier, pieces=pieces)
    timeline = timeline_of(transfers, columns, mode, hold_latency=hold_latency)
    return trace_of(mode, transfers.sends, transfers.chunk_bytes, columns, timeline, transfers.place)


@dataclass(frozen=True, eq=False)
class Totals:
    """What a congestion-aware trace adds up to.

    Parameters
    ----------
    completion_s : float
        When the last byte arrived.
    busy_s : array of float, shape (links,)
        Seconds that every link is busy.
    sends : int
        Number of sends.
    unaware_s : float or None
        When the last byte would arrive without congestion, if it was asked for.
    """

    completion_s: float
    busy_s: Floats
    sends: int
    unaware_s: float | None = None


def totals(instance: Instance, answer: object, *, unaware: bool = False) -> Totals:
    """Simulate a schedule, without keeping the times of every send where they are many.

    Parameters
    ----------
    instance, answer
        As :func:`simulate` takes them.
    unaware : bool
        Whether also without congestion.
    """
    if isinstance(answer, TranslatedTrees):
        answer = expand(instance, answer)
    columns = wires(instance.topology, instance.timing)
    if isinstance(answer, Schedule):
        played = _in_time(instance, answer, columns, rules(SimulationMode.CONGESTION_AWARE), unaware=unaware)
        if played is not None:
            return Totals(played.latest, played.busy, len(answer.sends), played.alone if unaware else None)
    transfers = transfers_of(instance, answer)
    completion_s, busy_s, alone_s = _total(transfers, columns, SimulationMode.CONGESTION_AWARE, unaware=unaware)
    if unaware and alone_s is None:
        alone_s = _total(transfers, columns, SimulationMode.ALPHA_BETA)[0]
    return Totals(completion_s, busy_s, len(transfers.sends), alone_s)


def _in_time(
    instance: Instance, answer: Schedule, columns: Wires, chosen: Rules, *, keep: bool = False, unaware: bool = False
) -> Played | None:
    """Simulate a schedule in time, compiled, in seconds; None where that is not worth while, or not exact."""
    if columns.varying or not worth_compiling(len(answer.sends)):
        return None
    checked_columns(instance, answer)
    links = counted(answer.chunks, len(answer.sends.path_links), columns, exact=False)
    if isinstance(links, Counted) and links.exact:
        return None
    nodes = len(instance.topology.nodes)
    played = compiled_in_order(answer, nodes, links, chosen, keep=keep, unaware=unaware)
    if played is None or not isinstance(links, Counted):
        return played
    timeline = links.in_seconds(played.timeline)
    if timeline is None or played.latest >= MOST_TICKS:
        return None
    latest, alone = (float(Fraction(ticks) * links.unit_s) for ticks in (played.latest, played.alone))
    return Played(latest, alone, played.busy * float(links.unit_s), timeline)


def _total(
    transfers: Transfers, columns: Wires, mode: SimulationMode, *, unaware: bool = False
) -> tuple[float, Floats, float | None]:
    """When the last byte arrived, how long every link was held, and perhaps when it would arrive without congestion."""
    if worth_compiling(len(transfers.sends)) and not transfers.fixed_order and not columns.varying:
        links = counted(transfers, len(transfers.sends.path_links), columns, exact=False)
        unit_s = links.unit_s if isinstance(links, Counted) else Fraction(1)
        one_by_one = isinstance(links, Counted) and links.exact
        found = None if one_by_one else compiled_totals(transfers, links, rules(mode), unaware=unaware)
        if found is not None and found[0] < MOST_TICKS:
            alone_s = float(Fraction(found[2]) * unit_s) if unaware else None
            return float(Fraction(found[0]) * unit_s), found[1] * float(unit_s), alone_s
    timeline = timeline_of(transfers, columns, mode, hold_latency=False)
    trace = trace_of(mode, transfers.sends, transfers.chunk_bytes, columns, timeline, transfers.place)
    return trace.completion_s, trace.link_busy_s, None


def utilization(
    instance: Instance, answer: object, trace: Trace, bins: int = 100, *, pieces: int = 1
) -> tuple[Floats, Floats]:
    """Return how busy every link is over time.

    Parameters
    ----------
    instance, answer, pieces
        What was simulated.
    trace : Trace
        What came out.
    bins : int
        Number of equal parts of the time until completion.

    Returns
    -------
    tuple of array
        Limits of the parts in seconds, and the utilization of every link in every part.
    """
    if bins < 1:
        raise InputError(f"{bins} parts of the time; expected at least 1", place="bins")
    sends, chunk_bytes = sends_of(instance, answer, pieces=pieces)
    columns = wires(instance.topology, instance.timing)
    seconds = occupied_s(trace.mode, sends, chunk_bytes, columns, trace.hop_end_s - trace.hop_start_s)
    return utilization_over_time(len(columns), sends.path_links, seconds, trace, bins)


def timeline_of(transfers: Transfers, columns: Wires, mode: SimulationMode, *, hold_latency: bool) -> Timeline:
    """Simulate in whole numbers of a common unit where there is one, see :mod:`.ticks`."""
    if mode is SimulationMode.FAIR_SHARE:
        return simulate_flows(transfers, columns)
    chosen = rules(mode, hold_latency=hold_latency)
    for exact in (False, True):
        wires = counted(transfers, len(transfers.sends.path_links), columns, exact=exact)
        timeline = _simulated(transfers, wires, chosen)
        if not isinstance(wires, Counted):
            return timeline
        if (found := wires.in_seconds(timeline)) is not None:
            return found
    raise AssertionError("integers of any size hold all times")


def _simulated(transfers: Transfers, columns: Wires, chosen: Rules) -> Timeline:
    """Choose the simulator: all of those that may be chosen give the same times."""
    one_by_one = isinstance(columns, Counted) and columns.exact
    if transfers.fixed_order or (one_by_one and not chosen.contended):
        return simulate_in_order(transfers, columns, chosen)
    if one_by_one:
        return simulate_by_events(transfers, columns, chosen)
    large = worth_compiling(len(transfers.sends)) and not columns.varying
    if (found := (compiled_levels if large else simulate_by_levels)(transfers, columns, chosen)) is not None:
        return found
    if not chosen.contended:
        return simulate_in_order(transfers, columns, chosen)
    if (found := simulate_by_windows(transfers, columns, chosen)) is not None:
        return found
    return simulate_by_events(transfers, columns, chosen)


def trace_of(
    mode: SimulationMode,
    sends: Sends,
    chunk_bytes: Floats,
    columns: Wires,
    timeline: Timeline,
    place: Ints | None = None,
) -> Trace:
    """Put the times of sends back into the order of the answer, where each has a place."""
    held = timeline.hop_end_s - timeline.hop_start_s
    seconds = occupied_s(mode, sends, chunk_bytes, columns, held)
    busy = link_totals(len(columns), sends.path_links, seconds)
    start_s, end_s = timeline.hop_start_s[sends.path_offset[:-1]], timeline.end_s
    hop_start_s, hop_end_s = timeline.hop_start_s, timeline.hop_end_s
    if place is not None:
        hop_start_s = _replaced(sends, place, hop_start_s)
        hop_end_s = _replaced(sends, place, hop_end_s)
        back = np.argsort(place)
        start_s, end_s = start_s[back], end_s[back]
    return Trace(mode, start_s, end_s, hop_start_s, hop_end_s, busy, float(end_s.max(initial=0.0)))


def _replaced(sends: Sends, place: Ints, column: Floats) -> Floats:
    """Put a column of hops back into the order of the answer."""
    hops = np.empty(len(sends), dtype=np.int64)
    hops[place] = sends.hops
    placed = np.empty_like(column)
    placed[ranges(offsets(hops)[place], sends.hops)] = column
    return placed
