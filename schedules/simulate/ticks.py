"""Times as whole numbers of ticks, which makes simultaneous requests for a link exactly equal.

All latencies and transmission times are multiples of one fraction of a second, the tick. If all times stay below
2^53 ticks, which floats hold exactly, the simulators use floats, as for seconds. For longer times, and for varying
bandwidths, the event-driven simulators use integers and fractions of any size. For schedules too large for that,
times are floats in units of the longest duration. They do not depend on the unit of time either, but equal times may
differ by rounding.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import gcd, lcm
from typing import Any

import numpy as np

from ...core.schedule import Chunks, Floats, Ints
from .network import Speeds, Timeline, Wires
from .transfers import Transfers

#: Ticks that a float holds exactly.
MOST_TICKS = 2**53

#: Largest number of hops for integers of any size, and largest table of durations (chunk sizes times link rates).
MOST_EXACT, MOST_DURATIONS = 2_000_000, 1_000_000


@dataclass(frozen=True, eq=False)
class TickWires(Wires):
    """Links whose times are counted in their own unit instead of seconds.

    Parameters
    ----------
    unit_s : Fraction
        Length of the unit in seconds.
    table : array, shape (sizes, rates)
        Duration of every size of a chunk at every rate of a link.
    size_of, rate_of : array of int
        Table row of each chunk and table column of each link.
    """

    unit_s: Fraction = Fraction(1)
    table: Any = None
    size_of: Any = None
    rate_of: Any = None

    @property
    def exact(self) -> bool:
        """True if the numbers are integers of any size."""
        return bool(self.table.dtype == object)

    def passing_s(self, chunk_bytes: Floats, chunk: Ints, link: Ints) -> Floats:
        """Return the transmission times of chunks on links, in units."""
        del chunk_bytes
        found: Floats = self.table[self.size_of[chunk], self.rate_of[link]]
        return found

    def in_seconds(self, timeline: Timeline) -> Timeline | None:
        """Convert a timeline to seconds; None if floats cannot hold its ticks."""
        columns = timeline.end_s, timeline.hop_start_s, timeline.hop_end_s
        if self.exact:
            unit = self.unit_s
            return Timeline(*(np.array([float(t * unit) for t in column.tolist()], dtype=float) for column in columns))
        if timeline.end_s.max(initial=0.0) >= MOST_TICKS:
            return None
        return Timeline(*(seconds_of(column, self.unit_s) for column in columns))


def to_ticks(sized: Transfers | Chunks, hops: int, wires: Wires, *, exact: bool) -> TickWires | Wires:
    """Count the durations of a schedule in a common unit.

    Parameters
    ----------
    sized : Transfers or Chunks
        Sends or chunks with their sizes.
    exact : bool
        Use integers of any size, because floats cannot hold the times.

    Returns
    -------
    TickWires or Wires
        Links with times in ticks; the given ones if rates or sizes of chunks are not known exactly.
    """
    if sized.units is None or not wires.links:
        return wires
    rates, rate_of = _classes([link.bandwidth_Bps for link in wires.links])
    delays, delay_of = _classes([link.latency_s for link in wires.links])
    sizes, size_of = np.unique(sized.units, return_inverse=True)
    if len(sizes) * len(rates) > MOST_DURATIONS:
        return wires
    durations = [[size * sized.unit_bytes / rate if rate else Fraction(0) for rate in rates] for size in sizes.tolist()]
    longest = max([*delays, *(d for row in durations for d in row)], default=Fraction(0)) or Fraction(1)
    unit = _common([*delays, *(d for row in durations for d in row)])
    many = exact or bool(wires.varying) or longest / unit >= MOST_TICKS
    if many and not wires.varying and hops > MOST_EXACT:
        many, unit = False, longest
    kind: Any = object if many else np.float64

    def count(duration: Fraction) -> int | float:
        return int(duration / unit) if many else float(duration / unit)

    table = np.empty((len(sizes), len(rates)), dtype=kind)
    for row, line in enumerate(durations):
        table[row] = [count(duration) for duration in line]
    late = np.empty(len(delays), dtype=kind)
    late[:] = [count(delay) for delay in delays]
    varying = _in_units(wires.varying, unit)
    columns = wires.bandwidth_Bps, late[delay_of], varying, wires.links, wires.of_ranks
    return TickWires(*columns, unit, table, size_of, rate_of)


def seconds_of(ticks: Floats, unit_s: Fraction) -> Floats:
    """Convert ticks to seconds with a single rounding, as for exact bounds, where floats permit."""
    top, bottom = unit_s.numerator, unit_s.denominator
    if max(float(ticks.max(initial=0.0)) * top, bottom) < MOST_TICKS:
        return ticks * top / bottom
    return ticks * float(unit_s)


def _classes(values: list[Fraction]) -> tuple[list[Fraction], Ints]:
    """Return the distinct values and each number's position among them.

    Links share their numbers, and fractions are slow to compare.
    """
    place: dict[Fraction, int] = {}
    known = {key: place.setdefault(value, len(place)) for key, value in {id(each): each for each in values}.items()}
    return list(place), np.array([known[id(value)] for value in values], dtype=np.int64)


def _common(durations: list[Fraction]) -> Fraction:
    """Return the largest common divisor of all durations; 1 if all are 0."""
    whole = lcm(*(duration.denominator for duration in durations))
    return Fraction(gcd(*(int(duration * whole) for duration in durations)) or whole, whole)


def _in_units(varying: Mapping[int, Speeds], unit: Fraction) -> dict[int, Speeds]:
    """Return varying bandwidths with the times of their changes in units."""
    return {link: Speeds([begin / unit for begin in speeds.begin_s], speeds.factor) for link, speeds in varying.items()}
