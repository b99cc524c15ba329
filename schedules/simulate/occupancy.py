"""Link utilization over time."""

from __future__ import annotations

import numpy as np

from ...core.schedule import Floats, Ints, Sends
from ...core.trace import SimulationMode, Trace
from .network import Wires


def occupied_s(mode: SimulationMode, sends: Sends, chunk_bytes: Floats, wires: Wires, held_s: Floats) -> Floats:
    """Compute the seconds of its link that every hop occupies.

    Parameters
    ----------
    held_s : array of float
        Seconds from start to end of every hop.

    Returns
    -------
    array of float, shape (entries of path_links,)
        Seconds that the hop holds its link; in modes where sends share a link, its seconds at full bandwidth.
    """
    if mode in (SimulationMode.CONGESTION_AWARE, SimulationMode.CUT_THROUGH):
        return held_s
    seconds: Floats = np.repeat(chunk_bytes[sends.chunk], sends.hops) / wires.bandwidth_Bps[sends.path_links]
    return seconds


def link_totals(links: int, path_links: Ints, seconds: Floats) -> Floats:
    """Add up the seconds of all hops of each link."""
    return np.bincount(path_links, seconds, minlength=links).astype(np.float64)


def utilization_over_time(
    links: int, path_links: Ints, seconds: Floats, trace: Trace, bins: int
) -> tuple[Floats, Floats]:
    """Compute the utilization of every link in equal intervals of time.

    Parameters
    ----------
    seconds : array of float
        Seconds of its link that every hop occupies, spread evenly over its duration.

    Returns
    -------
    edges : array of float, shape (bins + 1,)
        Limits of the intervals in seconds.
    utilization : array of float, shape (links, bins)
        At most 1 with contention; more shows the congestion that a congestion-unaware simulation ignores.
    """
    edges = np.linspace(0.0, trace.completion_s, bins + 1)
    if not len(path_links) or trace.completion_s == 0:
        return edges, np.zeros((links, bins))
    width = trace.completion_s / bins
    begin, end = trace.hop_start_s, trace.hop_end_s
    density = seconds / (end - begin)
    first = np.minimum((begin / width).astype(np.int64), bins - 1)
    last = np.minimum((end / width).astype(np.int64), bins - 1)
    cells = links * (bins + 1)
    at = path_links * (bins + 1)
    # A hop fills the bins between its first and its last one; at both ends, what is too much is taken away again.
    steps = np.bincount(at + first, density, cells) - np.bincount(at + last + 1, density, cells)
    full = np.cumsum(steps.reshape(links, bins + 1), axis=1) * width
    excess = np.bincount(at + first, density * (begin - first * width), cells)
    excess += np.bincount(at + last, density * ((last + 1) * width - end), cells)
    used = (full - excess.reshape(links, bins + 1))[:, :bins] / width
    return edges, np.maximum(used, 0.0).astype(np.float64)
