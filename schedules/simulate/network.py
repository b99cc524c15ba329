"""The network as a simulator sees it: bandwidth and latency of every link."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from ...core.schedule import Floats, Ints
from ...core.timing import Timing
from ...core.topology import Link, Topology


@dataclass(frozen=True)
class Speeds:
    """The bandwidth of a link over time, in parts of its own.

    Parameters
    ----------
    begin_s : list of Fraction
        When each stretch begins, the first one at 0; the last one never ends.
    factor : list of Fraction
        Bandwidth in each stretch over the link's own; positive in the last one.
    """

    begin_s: list[Fraction]
    factor: list[Fraction]

    def end_s(self, begin_s: Any, seconds: Any) -> Any:
        """Return when bytes that need so many seconds at the link's own bandwidth have left, if they begin at a time."""
        stretch = bisect_right(self.begin_s, begin_s) - 1
        now = begin_s
        while stretch + 1 < len(self.begin_s):
            done = (self.begin_s[stretch + 1] - now) * self.factor[stretch]
            if done >= seconds:
                break
            now, seconds, stretch = self.begin_s[stretch + 1], seconds - done, stretch + 1
        return now + seconds / self.factor[stretch] if seconds else now


@dataclass(frozen=True, eq=False)
class Wires:
    """Columns of the links.

    Parameters
    ----------
    bandwidth_Bps, latency_s : array of float, shape (links,)
        Bytes per second, and seconds that the first byte takes.
    varying : mapping of int to Speeds
        The links whose bandwidth varies over time.
    links : sequence of Link
        The links themselves, for exact numbers; none where the columns are all there is.
    """

    bandwidth_Bps: Floats
    latency_s: Floats
    varying: Mapping[int, Speeds] = field(default_factory=dict)
    links: Sequence[Link] = ()

    def passing_s(self, chunk_bytes: Floats, chunk: Ints, link: Ints) -> Floats:
        """Seconds that the bytes of chunks take on links."""
        return chunk_bytes[chunk] / self.bandwidth_Bps[link]

    def __len__(self) -> int:
        return len(self.bandwidth_Bps)


def wires(topology: Topology, timing: Timing | None = None) -> Wires:
    """Columns of a topology's links, with the bandwidths that a timing changes."""
    return Wires(
        np.array([float(link.bandwidth_Bps) for link in topology.links]),
        np.array([float(link.latency_s) for link in topology.links]),
        {} if timing is None else _speeds(timing),
        topology.links,
    )


def _speeds(timing: Timing) -> dict[int, Speeds]:
    """Cut the time of every link that varies where its bandwidth changes."""
    found: dict[int, Speeds] = {}
    for link in {change.link for change in timing.changes}:
        mine = [change for change in timing.changes if change.link == link]
        ends = sorted({0, *(end for change in mine for end in (change.first, change.last))})
        found[link] = Speeds([end * timing.epoch_s for end in ends], [timing.factor(link, end) for end in ends])
    return found
