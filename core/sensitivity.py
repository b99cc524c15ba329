"""Sensitivity of an optimum to the bandwidth of links, dimensions and limits.

For an optimum T and a bandwidth B both one-sided derivatives are reported, since they may differ: if several cuts
are tight, more bandwidth on one of them gains nothing, and less costs.
"""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

#: How an optimum depends on a bandwidth B: not at all; as M / (p + q B); as p + q / B; in some other way; with a jump.
CONSTANT, FLOW, LOAD, SMOOTH, JUMP = LAWS = ("constant", "flow", "load", "smooth", "jump")


@dataclass(frozen=True)
class Side:
    """Behaviour of the optimum on one side of a bandwidth."""

    #: The one-sided derivative dT/dB, at most 0: also below, where less bandwidth takes longer. None for a jump.
    slope_s_per_GBps: float | None
    law: str  #: Law of the dependence, one of :data:`LAWS`.
    until_GBps: float | None  #: The bandwidth up to which, or down to which, the law holds; None if no end was found.
    seen_GBps: float  #: The farthest bandwidth at which the law was compared with a problem that was solved again.
    #: ``check_GBps``, ``check_s`` and ``expected_s``: A bandwidth in between, the optimum of the problem solved again
    #: with it, and the value of the law there; for a smooth dependence that of the curve through the other points. For
    #: a jump the optimum beside it.
    check_GBps: float | None = None
    check_s: float | None = None
    expected_s: float | None = None


@dataclass(frozen=True)
class Entry:
    """One bandwidth that can be changed, or several changed in the same proportion."""

    name: str  #: The link as ``a - b``, the dimension, or the limit of the design.
    #: Present bandwidth; of links, in the direction that has more. The other one changes in proportion.
    bandwidth_GBps: float
    count: int = 1  #: Number of bandwidths changed together, each in the same proportion.
    alike: int = 1  #: Number of those that a symmetry of the network exchanges with this one.
    members: tuple[tuple[str, str], ...] = ()  #: Ends of all of those; empty unless they are links.
    #: ``up`` and ``down``: effects of more and of less; None if the changed problem could not be solved.
    up: Side | None = None
    down: Side | None = None


@dataclass(frozen=True)
class Sensitivity:
    """Derivatives of an optimum by bandwidths."""

    model: str
    instance: str
    seconds: float  #: The optimum, or the proved bound, that is differentiated.
    optimal: bool
    entries: tuple[Entry, ...]  #: Entries by decreasing gain of more bandwidth.
    solves: int
    complete: bool = True  #: If the time sufficed for all entries.
    exact: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return plain data for a record."""
        return asdict(self)

    def text(self) -> str:
        """Return the lines of a table, with a heading and a summary of the solves."""
        what = "optimum" if self.optimal else "proved bound"
        lines = [f"sensitivity of the {what}, {self.seconds:.9g} s, in s per GB/s:"]
        rows = [("", "GB/s", "raised", "up to", "lowered", "down to")]
        for entry in self.entries:
            rows.append((_name(entry), f"{entry.bandwidth_GBps:.6g}", *_side(entry.up), *_side(entry.down)))
        widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
        for name, *numbers in rows:
            cells = [number.rjust(width) for number, width in zip(numbers, widths[1:], strict=True)]
            lines.append("  ".join([f"  {name.ljust(widths[0])}", *cells]).rstrip())
        how = "in exact arithmetic" if self.exact else "again"
        rest = "" if self.complete else "; the time was over before the rest"
        lines.append(f"  {self.solves} problems solved {how}; {self._check_text}{rest}")
        return "\n".join(lines)

    @property
    def _check_text(self) -> str:
        """Largest deviation of expected values from problems solved between the points, as text."""
        sides = [side for entry in self.entries for side in (entry.up, entry.down) if side is not None]
        pairs = [(side.check_s, side.expected_s) for side in sides]
        apart = [abs(actual - expected) / actual for actual, expected in pairs if actual and expected is not None]
        return f"{len(apart)} checked in between, off by at most {max(apart, default=0.0):.1g} of the time"


def _name(entry: Entry) -> str:
    if entry.count > 1:
        return f"{entry.name}: all {entry.count} alike, each"
    return f"{entry.name}: one of {entry.alike} alike" if entry.alike > 1 else entry.name


def _side(side: Side | None) -> tuple[str, str]:
    if side is None:
        return "not known", ""
    if side.slope_s_per_GBps is None:
        return "jumps", "" if side.check_s is None else f"to {side.check_s:.6g} s"
    slope = "0" if side.slope_s_per_GBps == 0 else f"{side.slope_s_per_GBps:.6g}"
    if side.law == SMOOTH:
        return slope, "here only"
    return slope, "no end" if side.until_GBps is None else f"{side.until_GBps:.6g}"


def sorted_entries(entries: Iterable[Entry]) -> tuple[Entry, ...]:
    """Sort entries, classes of links by the gain of raising all of them."""

    def gain(entry: Entry) -> float:
        return 0.0 if entry.up is None else entry.up.slope_s_per_GBps or 0.0

    best: dict[str, float] = {}
    all_entries = list(entries)
    for entry in all_entries:
        best[entry.name] = min(best.get(entry.name, 0.0), gain(entry))
    return tuple(sorted(all_entries, key=lambda entry: best[entry.name]))


def per_GBps(slope_s_per_Bps: float) -> float:
    """Convert seconds per B/s to seconds per GB/s."""
    return slope_s_per_Bps * 1e9 + 0.0  # no -0.0
