"""Links as columns, rules for chunks on them, and times of all hops, for the simulators."""

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
from ...core.trace import SimulationMode


@dataclass(frozen=True)
class Speeds:
    """Bandwidth of a link over time, relative to its nominal bandwidth.

    Parameters
    ----------
    begin_s : list of Fraction
        Start of each interval, the first at 0; the last one never ends.
    factor : list of Fraction
        Relative bandwidth in each interval; positive in the last one.
    """

    begin_s: list[Fraction]
    factor: list[Fraction]

    def end_s(self, begin_s: Any, seconds: Any) -> Any:
        """Return the end of a transmission by its start and its seconds at nominal bandwidth."""
        stretch = bisect_right(self.begin_s, begin_s) - 1
        now = begin_s
        while stretch + 1 < len(self.begin_s):
            done = (self.begin_s[stretch + 1] - now) * self.factor[stretch]
            if done >= seconds:
                break
            now, seconds, stretch = self.begin_s[stretch + 1], seconds - done, stretch + 1
        return now + seconds / self.factor[stretch] if seconds else now


@dataclass(frozen=True)
class RankLinks:
    """Links that stand for the costs of ranks, after those of the network; see :mod:`.charges`.

    Parameters
    ----------
    adders, senders : int
        First of the links on which nodes add, and of those on which they send, which come last.
    while_receiving : bool
        An adder begins when the first byte has arrived, in every mode; otherwise when the last one has.
    """

    adders: int
    senders: int
    while_receiving: bool = False


@dataclass(frozen=True, eq=False)
class Wires:
    """Columns of the links.

    Parameters
    ----------
    bandwidth_Bps, latency_s : array of float, shape (links,)
        Bytes per second, and seconds that the first byte takes.
    varying : mapping of int to Speeds
        Links whose bandwidth varies over time.
    links : sequence of Link
        The links with exact numbers; empty if only the columns are known.
    of_ranks : RankLinks or None
        The links at the end that stand for costs of ranks; None if nothing costs anything.
    """

    bandwidth_Bps: Floats
    latency_s: Floats
    varying: Mapping[int, Speeds] = field(default_factory=dict)
    links: Sequence[Link] = ()
    of_ranks: RankLinks | None = None

    @property
    def rank_links(self) -> RankLinks:
        """The links that stand for costs of ranks; none of the links if nothing costs anything."""
        return self.of_ranks or RankLinks(len(self), len(self))

    def passing_s(self, chunk_bytes: Floats, chunk: Ints, link: Ints) -> Floats:
        """Return the transmission times of chunks on links in seconds."""
        return chunk_bytes[chunk] / self.bandwidth_Bps[link]

    def __len__(self) -> int:
        return len(self.bandwidth_Bps)


def wires(topology: Topology, timing: Timing | None = None) -> Wires:
    """Return the columns of a topology's links, with the changes of bandwidth in a timing."""
    return Wires(
        np.array([float(link.bandwidth_Bps) for link in topology.links]),
        np.array([float(link.latency_s) for link in topology.links]),
        {} if timing is None else _speeds(timing),
        topology.links,
    )


def _speeds(timing: Timing) -> dict[int, Speeds]:
    """Divide time into intervals of constant bandwidth for every varying link."""
    found: dict[int, Speeds] = {}
    for link in {change.link for change in timing.changes}:
        mine = [change for change in timing.changes if change.link == link]
        ends = sorted({0, *(end for change in mine for end in (change.first, change.last))})
        found[link] = Speeds([end * timing.epoch_s for end in ends], [timing.factor(link, end) for end in ends])
    return found


@dataclass(frozen=True)
class Rules:
    """Timing of a chunk on the links of its path.

    A chunk that asks for a link at ``a`` begins at ``b = max(a, f)``, where f is the time from which the link is
    free, and its last byte leaves at ``e = max(b + size / bandwidth, t)``, where t is the time at which that byte
    has arrived. The link is free again at e.

    Parameters
    ----------
    streaming : bool
        A node asks for the next link when the first byte has arrived, ``b + latency``, instead of the last one, ``e
        + latency``.
    contended : bool
        A link serves one chunk at a time; otherwise f is 0.
    hold_latency : bool
        A chunk holds the link for the latency too.
    """

    streaming: bool
    contended: bool
    hold_latency: bool = False


def rules(mode: SimulationMode, *, hold_latency: bool = False) -> Rules:
    """Return the rules of a mode in which chunks pass links one by one.

    Without contention a path takes the sum of its latencies plus the size over its smallest bandwidth, the
    alpha-beta model.
    """
    return Rules(
        streaming=mode is not SimulationMode.CONGESTION_AWARE,
        contended=mode is not SimulationMode.ALPHA_BETA,
        hold_latency=hold_latency,
    )


@dataclass(frozen=True, eq=False)
class Timeline:
    """Times of all sends and hops, in the order of the transfers.

    Parameters
    ----------
    hop_start_s, hop_end_s : array of float, shape (entries of path_links,)
        Times at which each link is occupied and left.
    """

    end_s: Floats
    hop_start_s: Floats
    hop_end_s: Floats
