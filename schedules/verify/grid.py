"""The verifier's own epochs: delays, windows and capacities of links with a timing.

Nothing here is shared with the methods, so that an error in their table is reported as a violation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from sys import float_info

import numpy as np

from ...core.errors import InputError
from ...core.instance import Instance
from ...core.schedule import Ints
from ...core.timing import Semantics, Timing
from ...core.topology import NodeKind, Topology
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
    """Links in whole epochs.

    Parameters
    ----------
    source, target, delay, window, capacity : array of int, shape (links,)
        Ends; arrival index less start index; at most ``capacity`` whole chunks start in any ``window`` epochs. For
        links to and from switches on a network of circuits, the delay is the least that they may add to a path, and
        the window does not hold. There values above :data:`MAX_EPOCHS` are :data:`NEVER`.
    rate : tuple of Fraction
        Chunks per epoch at the link's bandwidth.
    """

    topology: Topology
    timing: Timing
    chunk_bytes: Fraction
    source: Ints
    target: Ints
    delay: Ints
    window: Ints
    capacity: Ints
    rate: tuple[Fraction, ...]


def grid_of(instance: Instance, *, at_least: bool = False) -> Grid:
    """Count the epochs of every link.

    Parameters
    ----------
    at_least : bool
        Round ticks of circuits down, to a lower bound for any schedule, on this grid or without one.

    Raises
    ------
    InputError
        If the instance has no timing or no explicit network, or its chunks differ in size.
    """
    topology, timing = instance.network, instance.timing
    if not isinstance(topology, Topology) or timing is None:
        raise InputError("expected a network of nodes and links, and a timing", place="timing")
    chunk = demanded_chunk(instance)
    if not float_info.min <= timing.epoch_s <= float_info.max:
        raise InputError("expected an epoch within the range of floating-point numbers", place="timing.epoch_s")
    if timing.semantics is Semantics.CIRCUIT:
        return _circuits(topology, timing, chunk, at_least=at_least)
    # By identity, since links share their numbers and fractions are slow to compare.
    known: dict[tuple[int, int], tuple[int, int, int, Fraction]] = {}
    rows: list[tuple[int, int, int, Fraction]] = []
    for e, link in enumerate(topology.links):
        key = id(link.bandwidth_Bps), id(link.latency_s)
        if key not in known:
            time = chunk / link.bandwidth_Bps
            busy = _up(time / timing.epoch_s)
            late = _latency_epochs(link.latency_s / timing.epoch_s, timing)
            known[key] = late, busy, min(int(busy * timing.epoch_s / time), MAX_CAPACITY), timing.epoch_s / time
        late, busy, capacity, rate = known[key]
        rows.append(
            (late + (1 if timing.fluid else 0 if _is_free(topology, e, timing) else busy), busy, capacity, rate)
        )
    _require_countable(topology, [row[1] for row in rows], [row[0] for row in rows])
    ends = np.array(topology.link_ends, dtype=np.int64).reshape(-1, 2)
    columns = np.array([row[:3] for row in rows], dtype=np.int64).reshape(-1, 3).T.copy()
    rates = tuple(row[3] for row in rows)
    return Grid(
        topology, timing, chunk, ends[:, 0].copy(), ends[:, 1].copy(), columns[0], columns[1], columns[2], rates
    )


def _circuits(topology: Topology, timing: Timing, chunk: Fraction, *, at_least: bool) -> Grid:
    """Return the grid of a network of circuits: links are held for latency and transmission.

    Each link carries one chunk at a time. A chunk from rank to rank over switches takes no less than the delays
    here: latency alone towards a switch, all rounded down.
    """
    if timing.fluid or timing.changes:
        raise InputError("circuits are of whole chunks at constant bandwidths", place="timing")
    # By identity, since links share their numbers and fractions are slow to compare.
    known: dict[tuple[int, int, bool, bool], tuple[int, int, Fraction]] = {}
    rows: list[tuple[int, int, Fraction]] = []
    switch = [node.kind is NodeKind.SWITCH for node in topology.nodes]
    for link, (a, b) in zip(topology.links, topology.link_ends, strict=True):
        key = id(link.bandwidth_Bps), id(link.latency_s), switch[a], switch[b]
        if key not in known:
            wire = chunk / link.bandwidth_Bps
            taken = (link.latency_s + wire) / timing.epoch_s
            held = _clip_epochs(int(taken // 1) if at_least else _up(taken))
            least = _clip_epochs((link.latency_s + (0 if switch[b] else wire)) // timing.epoch_s)
            known[key] = (least if switch[a] or switch[b] else held), held, timing.epoch_s / wire
        rows.append(known[key])
    ends = np.array(topology.link_ends, dtype=np.int64).reshape(-1, 2)
    delay, window = (np.array([row[index] for row in rows], dtype=np.int64) for index in (0, 1))
    one, rate = np.ones(len(rows), dtype=np.int64), tuple(row[2] for row in rows)
    return Grid(topology, timing, chunk, ends[:, 0].copy(), ends[:, 1].copy(), delay, window, one, rate)


def _require_countable(topology: Topology, *columns: Sequence[int]) -> None:
    """Reject links with so many epochs that their sums overflow."""
    for column in columns:
        for link, epochs in zip(topology.links, column, strict=True):
            if epochs > MAX_EPOCHS:
                text = f"a chunk takes more than 2^44 epochs from {link.source} to {link.target}, which are not counted"
                raise InputError(text, place="timing.epoch_s")


def _clip_epochs(ticks: int) -> int:
    return ticks if ticks <= MAX_EPOCHS else NEVER


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


def _up(x: Fraction) -> int:
    return -int(-x // 1)


def _latency_epochs(latency: Fraction, timing: Timing) -> int:
    if timing.semantics is not Semantics.STORE_AND_FORWARD and latency <= TE_CCL_FREE:
        return 0
    return _up(latency)


def _is_free(topology: Topology, link: int, timing: Timing) -> bool:
    """Return whether the transmission time is not counted.

    That is so from a switch to a rank in TE-CCL, which counts it before the switch.
    """
    a, b = topology.link_ends[link]
    kinds = topology.nodes[a].kind, topology.nodes[b].kind
    return timing.semantics is Semantics.TE_CCL and kinds == (NodeKind.SWITCH, NodeKind.COMPUTE)
