"""The verifier's own epochs: delays, windows and capacities of links with a timing.

Nothing here is shared with the methods, so that an error in their epochs is reported as a violation.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from math import ceil, floor
from sys import float_info

import numpy as np

from ...core.errors import InputError
from ...core.instance import Instance
from ...core.schedule import Chunks, Ints
from ...core.timing import Semantics, Timing
from ...core.topology import Link, NodeKind, Topology
from .answers import Findings, Violation
from .sizes import demanded_chunk

TE_CCL_IGNORED = Fraction(1, 10)  #: TE-CCL's published code ignores latencies of up to this fraction of an epoch.

#: Largest delay or window of a link in epochs, so that sums along any path in memory fit into 64 bits.
MAX_EPOCHS = 2**44

#: Times from this index on are reported as off the grid, so that four times an index fits into 64 bits.
INDEX_LIMIT = 2.0**58

MAX_CAPACITY = 2**60  #: Capacities are capped here; no schedule has as many chunks.

#: Stands for more than :data:`MAX_EPOCHS` ticks on a grid of circuits; a send with this duration is a violation.
TOO_LONG = 2 * MAX_EPOCHS


@dataclass(frozen=True, eq=False)
class Grid:
    """Links in whole epochs."""

    topology: Topology
    timing: Timing
    chunk_bytes: Fraction
    #: Ends of every link; shape (links,).
    source: Ints
    target: Ints
    #: Arrival index minus start index; shape (links,). With circuits, links to and from switches have the least delay
    #: that they add to a path, and values above :data:`MAX_EPOCHS` are :data:`TOO_LONG`.
    delay: Ints
    #: At most ``capacity`` whole chunks start in any ``window`` epochs; shape (links,). With circuits, this does not
    #: apply to links to and from switches.
    window: Ints
    capacity: Ints
    rate: tuple[Fraction, ...]  #: Chunks per epoch of every link.


def grid_of(instance: Instance, *, round_down: bool = False) -> Grid:
    """Count the epochs of every link; with ``round_down``, so that they bound any schedule from below."""
    topology, timing = instance.topology, instance.timing
    if timing is None:
        raise InputError("expected a timing", place="timing")
    chunk = demanded_chunk(instance)
    if not float_info.min <= timing.epoch_s <= float_info.max:
        raise InputError("expected an epoch within the range of floating-point numbers", place="timing.epoch_s")
    circuits = timing.semantics is Semantics.CIRCUIT
    if circuits and (timing.fluid or timing.changes):
        raise InputError("circuits carry whole chunks at constant bandwidths", place="timing")
    # Cached by identity, since links share their numbers and fractions are slow to compare.
    cached: dict[tuple[int, int, bool, bool], tuple[int, int, int, Fraction]] = {}
    rows: list[tuple[int, int, int, Fraction]] = []
    switch = [node.kind is NodeKind.SWITCH for node in topology.nodes]
    count = partial(_circuit_ticks, round_down=round_down) if circuits else _epochs
    for link, (a, b) in zip(topology.links, topology.link_ends, strict=True):
        key = id(link.bandwidth_Bps), id(link.latency_s), switch[a], switch[b]
        if key not in cached:
            cached[key] = count(link, timing, chunk, *key[2:])
        rows.append(cached[key])
        if not circuits and max(rows[-1][:2]) > MAX_EPOCHS:  # sums would overflow
            text = f"a chunk takes more than 2^44 epochs from {link.source} to {link.target}, which are not counted"
            raise InputError(text, place="timing.epoch_s")
    ends = np.array(topology.link_ends, dtype=np.int64).reshape(-1, 2).T
    columns = np.array([row[:3] for row in rows], dtype=np.int64).reshape(-1, 3).T
    source, target, delay, window, capacity = np.concatenate([ends, columns])
    rates = tuple(row[3] for row in rows)
    return Grid(topology, timing, chunk, source, target, delay, window, capacity, rates)


def _epochs(
    link: Link, timing: Timing, chunk: Fraction, after_switch: bool, before_switch: bool
) -> tuple[int, int, int, Fraction]:
    """Return delay, window, capacity and chunks per epoch; TE-CCL counts a transmission from a switch before it."""
    transmission_s, latency = chunk / link.bandwidth_Bps, link.latency_s / timing.epoch_s
    busy = ceil(transmission_s / timing.epoch_s)
    if timing.semantics is not Semantics.STORE_AND_FORWARD and latency <= TE_CCL_IGNORED:
        latency = Fraction(0)
    counted_before = timing.semantics is Semantics.TE_CCL and after_switch and not before_switch
    delay = ceil(latency) + (1 if timing.fluid else 0 if counted_before else busy)
    return delay, busy, min(int(busy * timing.epoch_s / transmission_s), MAX_CAPACITY), timing.epoch_s / transmission_s


def _circuit_ticks(
    link: Link, timing: Timing, chunk: Fraction, after_switch: bool, before_switch: bool, round_down: bool
) -> tuple[int, int, int, Fraction]:
    """Return delay, window, capacity and chunks per tick of a link that one chunk holds for latency and transmission.

    For links to and from switches, delays add up to a lower bound on a path: they are rounded down, and transmission
    counts only on the last link.
    """
    transmission_s = chunk / link.bandwidth_Bps
    duration = (link.latency_s + transmission_s) / timing.epoch_s
    least = (link.latency_s + (0 if before_switch else transmission_s)) // timing.epoch_s
    whole = floor(duration) if round_down else ceil(duration)
    window, least = (number if number <= MAX_EPOCHS else TOO_LONG for number in (whole, least))
    return (least if after_switch or before_switch else window), window, 1, timing.epoch_s / transmission_s


def check_whole_chunks(grid: Grid, chunks: Chunks, findings: Findings) -> None:
    """Check that all chunks have the size for which the epochs were counted."""
    units = grid.chunk_bytes / chunks.unit_bytes
    whole = units.numerator if units.denominator == 1 else 0
    for chunk in np.flatnonzero(chunks.units != whole)[:1].tolist():
        text = f"chunk {chunk} has {chunks.size_bytes(chunk)} bytes; expected {grid.chunk_bytes}"
        findings.add(Violation("size", text, chunk=chunk))


def ends_on_whole_ticks(instance: Instance) -> bool:
    """Return whether every schedule on a grid of circuits ends on a whole tick.

    That is the case if all durations are whole numbers of ticks, so that nothing is rounded. No schedule of whole
    chunks without the grid is shorter than the best one on it: rounding all its starts down to ticks preserves
    precedence, since all durations are whole, and the sends in progress during a tick are those in progress just before
    the end of that tick.
    """
    topology, timing = instance.network, instance.timing
    if not isinstance(topology, Topology) or timing is None or timing.semantics is not Semantics.CIRCUIT:
        return False
    chunk = demanded_chunk(instance)
    kinds = {(link.bandwidth_Bps, link.latency_s) for link in topology.links}
    if len(topology.ranks) < len(topology.nodes):  # paths over switches add latencies and transmissions separately
        parts = {part for rate, latency_s in kinds for part in (chunk / rate, latency_s)}
    else:
        parts = {chunk / rate + latency_s for rate, latency_s in kinds}
    return all(part % timing.epoch_s == 0 for part in parts)
