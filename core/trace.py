"""Results of simulating a schedule: times of all sends and load of the links."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from .display import DisplayMixin
from .errors import InputError, one_of

if TYPE_CHECKING:
    from .schedule import Floats


class SimulationMode(Enum):
    """Time model of the links in a simulation."""

    #: Every send takes its latencies plus size over bandwidth, whatever else is sent (dissertation, section 3.4.2).
    ALPHA_BETA = "alpha-beta"
    #: Link by link, one chunk at a time on a link, first come first served, store and forward (section 3.4.2).
    CONGESTION_AWARE = "congestion-aware"
    #: As before, but a node passes a chunk on while it arrives; a path is as fast as its slowest link.
    CUT_THROUGH = "cut-through"
    FAIR_SHARE = "fair-share"  #: Sends on a link share it, max-min fairly over their whole paths.
    #: Of trees: link by link, store and forward; every tree has its share of every link, by its data.
    SHARES = "shares"


class Routing(Enum):
    """Paths of sends in a simulation."""

    FIXED = "fixed"  #: Those of the schedule.
    #: One of the shortest paths, by a hash of the two ends, as switches choose for a flow (equal-cost multi-path).
    ECMP = "ecmp"
    SPRAY = "spray"  #: All shortest paths, in equal parts, as networks do that spray packets.

    @property
    def in_words(self) -> str:
        """The routing with the remark on bounds; empty if it is fixed."""
        return "" if self is Routing.FIXED else f"routing {self.value}; bounds hold for any routing"


def routing_named(name: str) -> Routing:
    """Return the routing with a name; raise InputError if there is none."""
    names = [routing.value for routing in Routing]
    if name not in names:
        raise InputError(f"{name!r} is unknown{one_of(name, names)}", place="routing")
    return Routing(name)


@dataclass(frozen=True, eq=False, repr=False)
class Trace(DisplayMixin):
    """Simulated schedule."""

    mode: SimulationMode
    #: ``start_s`` and ``end_s``: shape (sends,): times at which each send began on its first link and its last byte
    #: reached the target.
    start_s: Floats
    end_s: Floats
    #: ``hop_start_s`` and ``hop_end_s``: shape (entries of path_links,): start and end of each send's occupation of
    #: each link.
    hop_start_s: Floats
    hop_end_s: Floats
    link_busy_s: Floats
    completion_s: float

    def _facts(self) -> Mapping[str, object]:
        return {"mode": self.mode.value, "completion_s": self.completion_s, "sends": len(self.start_s)}
