"""The verifier's own epochs: delays, windows and capacities of links with a timing.

Nothing here is shared with the methods, so that an error in their table is reported as a violation.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor
from sys import float_info

import numpy as np

from ...core.errors import InputError
from ...core.instance import Instance
from ...core.schedule import Chunks, Ints
from ...core.timing import Semantics, Timing
from ...core.topology import Link, NodeKind, Topology
from .report import Findings, Violation
from .sizes import demanded_chunk

#: TE-CCL's published code takes latency of up to this part of an epoch for nothing.
TE_CCL_FREE = Fraction(1, 10)

#: The most epochs that a link may take, so that sums of them along any path that is in memory fit into 64 bits.
MAX_EPOCHS = 2**44

#: An index at which nothing may happen any more: four times an index fits into 64 bits.
LATEST = 2.0**58

#: Chunks that a window may take count up to here: as many are in no schedule.
MAX_CAPACITY = 2**60

#: Ticks of a link on a grid of circuits that takes more than :data:`MAX_EPOCHS`: no send does.
NEVER = 2 * MAX_EPOCHS


@dataclass(frozen=True, eq=False)
class Grid:
    """Links in whole epochs."""

    topology: Topology
    timing: Timing
    chunk_bytes: Fraction
    #: Ends; arrival index less start index; at most ``capacity`` whole chunks start in any ``window`` epochs. For links
    #: to and from switches on a network of circuits, the delay is the least that they may add to a path, and the window
    #: does not hold. There values above :data:`MAX_EPOCHS` are :data:`NEVER`; shape (links,).
    source: Ints
    target: Ints
    delay: Ints
    window: Ints
    capacity: Ints
    rate: tuple[Fraction, ...]


def grid_of(instance: Instance, *, at_least: bool = False) -> Grid:
    """Count the epochs of every link.

    At least: ticks of circuits rounded down, to a lower bound for any schedule, on this grid or without one.
    """
    topology, timing = instance.network, instance.timing
    if not isinstance(topology, Topology) or timing is None:
        raise InputError("expected a network of nodes and links, and a timing", place="timing")
    chunk = demanded_chunk(instance)
    if not float_info.min <= timing.epoch_s <= float_info.max:
        raise InputError("expected an epoch within the range of floating-point numbers", place="timing.epoch_s")
    circuits = timing.semantics is Semantics.CIRCUIT
    if circuits and (timing.fluid or timing.changes):
        raise InputError("circuits are of whole chunks at constant bandwidths", place="timing")
    # By identity, since links share their numbers and fractions are slow to compare.
    known: dict[tuple[int, int, bool, bool], tuple[int, int, int, Fraction]] = {}
    rows: list[tuple[int, int, int, Fraction]] = []
    switch = [node.kind is NodeKind.SWITCH for node in topology.nodes]
    for link, (a, b) in zip(topology.links, topology.link_ends, strict=True):
        key = id(link.bandwidth_Bps), id(link.latency_s), switch[a], switch[b]
        if key not in known:
            known[key] = (
                _ticks(link, timing, chunk, *key[2:], at_least) if circuits else _epochs(link, timing, chunk, *key[2:])
            )
        rows.append(known[key])
    for link, (delay, window, *_) in zip(topology.links, rows, strict=True):
        if not circuits and max(delay, window) > MAX_EPOCHS:  # sums would overflow
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
    """Return the delay, window and capacity of a link, and chunks per epoch.

    TE-CCL counts the transmission time from a switch to a rank before the switch.
    """
    time, late = chunk / link.bandwidth_Bps, link.latency_s / timing.epoch_s
    busy = ceil(time / timing.epoch_s)
    if timing.semantics is not Semantics.STORE_AND_FORWARD and late <= TE_CCL_FREE:
        late = Fraction(0)
    paid_before = timing.semantics is Semantics.TE_CCL and after_switch and not before_switch
    delay = ceil(late) + (1 if timing.fluid else 0 if paid_before else busy)
    return delay, busy, min(int(busy * timing.epoch_s / time), MAX_CAPACITY), timing.epoch_s / time


def _ticks(
    link: Link, timing: Timing, chunk: Fraction, after_switch: bool, before_switch: bool, at_least: bool
) -> tuple[int, int, int, Fraction]:
    """Return the same of a circuit, which is held for latency and transmission by one chunk at a time.

    A chunk from rank to rank over switches takes no less than the delays here: latency alone towards a switch, all
    rounded down.
    """
    wire = chunk / link.bandwidth_Bps
    taken = (link.latency_s + wire) / timing.epoch_s
    least = (link.latency_s + (0 if before_switch else wire)) // timing.epoch_s
    held, least = (n if n <= MAX_EPOCHS else NEVER for n in (floor(taken) if at_least else ceil(taken), least))
    return (least if after_switch or before_switch else held), held, 1, timing.epoch_s / wire


def check_whole_chunks(grid: Grid, chunks: Chunks, findings: Findings) -> None:
    """Check that all chunks have the size of the grid's."""
    units = grid.chunk_bytes / chunks.unit_bytes
    whole = units.numerator if units.denominator == 1 else 0
    for chunk in np.flatnonzero(chunks.units != whole)[:1].tolist():
        text = f"chunk {chunk} has {chunks.size_bytes(chunk)} bytes; expected {grid.chunk_bytes}"
        findings.add(Violation("size", text, chunk=chunk))


def whole_ticks(instance: Instance) -> bool:
    """Return whether every schedule on a grid of circuits ends at a whole tick.

    That holds if chunks are whole and nothing is rounded. No schedule of whole chunks without the grid is shorter
    than the best one on it: rounding all its starts down to ticks preserves precedence, since all durations are
    whole, and the sends in progress during a tick are those in progress just before the end of that tick.
    """
    topology, timing = instance.network, instance.timing
    if not isinstance(topology, Topology) or timing is None or timing.semantics is not Semantics.CIRCUIT:
        return False
    chunk = demanded_chunk(instance)
    kinds = {(link.bandwidth_Bps, link.latency_s) for link in topology.links}
    if len(topology.ranks) < len(topology.nodes):  # latencies and times on the wire come together in several ways
        parts = {part for rate, late in kinds for part in (chunk / rate, late)}
    else:
        parts = {chunk / rate + late for rate, late in kinds}
    return all(part % timing.epoch_s == 0 for part in parts)
