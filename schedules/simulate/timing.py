"""Common timing of the simulators: rules for links, and times of all hops."""

from __future__ import annotations

from dataclasses import dataclass

from ...core.schedule import Floats
from ...core.trace import SimulationMode


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
