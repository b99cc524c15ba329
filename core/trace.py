"""What a simulation of a schedule gives: when everything happened, and how busy the links were."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from .display import Shown
from .schedule import Floats


class SimulationMode(Enum):
    """How time passes on links."""

    #: Every send takes its latencies plus size over bandwidth, whatever else is sent (dissertation, section 3.4.2).
    ALPHA_BETA = "alpha-beta"
    #: Link by link, one chunk at a time on a link, first come first served, store and forward (section 3.4.2).
    CONGESTION_AWARE = "congestion-aware"
    #: As before, but a node passes a chunk on while it arrives; a path is as fast as its slowest link.
    CUT_THROUGH = "cut-through"
    #: Sends on a link share it, max-min fairly over their whole paths.
    FAIR_SHARE = "fair-share"
    #: Of trees: link by link, store and forward; every tree has its share of every link, by its data.
    SHARES = "shares"


@dataclass(frozen=True, eq=False, repr=False)
class Trace(Shown):
    """A simulated schedule.

    Parameters
    ----------
    mode : SimulationMode
        How time passed.
    start_s, end_s : array of float, shape (sends,)
        When each send began on its first link and when its last byte was at the target.
    hop_start_s, hop_end_s : array of float, shape (entries of path_links,)
        When each link of each send was occupied.
    link_busy_s : array of float, shape (links,)
        Seconds that each link was occupied.
    completion_s : float
        When the last byte arrived.
    """

    mode: SimulationMode
    start_s: Floats
    end_s: Floats
    hop_start_s: Floats
    hop_end_s: Floats
    link_busy_s: Floats
    completion_s: float

    def _facts(self) -> Mapping[str, object]:
        return {"mode": self.mode.value, "completion_s": self.completion_s, "sends": len(self.start_s)}
