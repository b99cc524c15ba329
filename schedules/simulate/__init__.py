"""Simulators: what a schedule takes on its network, by a clock that is not the method's.

===================  =====================================================================
``transfers``        one form of all answers: sends, and what each waits for
``timing``           how a chunk passes a link in each mode
``levels``           whole levels at once, where nobody overtakes
``compiled_levels``  the same for millions of sends, compiled
``in_order``         the same for schedules that fix the order
``windows``          whole windows of time at once, where much happens in them
``events``           hop by hop, for everything else, and for schedules that fix the order
``fair``             flows that share links, max-min fairly
``occupancy``        how busy the links are, over time
``timed``            schedules in steps and trees become schedules in time
``pipeline``         closed form of forests whose trees have shares of links, in pieces
``reserved``         trees with rates of their own, and those with shares, piece by piece
``translated``       one tree that is moved to all ranks, by its own edges alone
===================  =====================================================================
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...core.trace import SimulationMode

if TYPE_CHECKING:
    from ...core.instance import Instance
    from ...core.schedule import Floats
    from ...core.trace import Trace
    from .run import Totals

__all__ = ["SimulationMode", "simulate", "totals", "utilization"]


def simulate(
    instance: Instance,
    answer: object,
    mode: SimulationMode = SimulationMode.CONGESTION_AWARE,
    *,
    barrier: bool = False,
    pieces: int = 1,
    hold_latency: bool = False,
) -> Trace:
    """Simulate a schedule; see :func:`cwb.schedules.simulate.run.simulate`."""
    from .run import simulate as run

    return run(instance, answer, mode, barrier=barrier, pieces=pieces, hold_latency=hold_latency)


def totals(instance: Instance, answer: object, *, unaware: bool = False) -> Totals:
    """Simulate a schedule without keeping the times of every send; see :func:`cwb.schedules.simulate.run.totals`."""
    from .run import totals as run

    return run(instance, answer, unaware=unaware)


def utilization(
    instance: Instance, answer: object, trace: Trace, bins: int = 100, *, pieces: int = 1
) -> tuple[Floats, Floats]:
    """Return how busy links are over time; see :func:`cwb.schedules.simulate.run.utilization`."""
    from .run import utilization as run

    return run(instance, answer, trace, bins, pieces=pieces)
