"""Simulators of schedules on their networks, independent of the methods' time models.

===================  =====================================================================
``transfers``        all answers as sends with their dependencies
``charges``          costs of ranks as links
``timing``           how a chunk passes a link in each mode
``levels``           whole levels at once, where no send overtakes another
``compiled_levels``  the same for millions of sends, compiled
``in_order``         the same for schedules that fix the order
``windows``          whole windows of time at once, where they hold many events
``events``           hop by hop, for everything else, and for schedules that fix the order
``fair``             flows that share links, max-min fairly
``occupancy``        link utilization over time
``timed``            schedules in steps and trees become schedules in time
``routing``           other shortest paths than those of the schedule
``pipeline``         closed form of forests whose trees have shares of links, in pieces
``reserved``         trees with reserved rates or shares of links, piece by piece
``translated``       one tree translated to all ranks, by its own edges alone
===================  =====================================================================
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...core.trace import Routing, SimulationMode

if TYPE_CHECKING:
    from ...core.answers import Answer
    from ...core.instance import Instance
    from ...core.schedule import Floats
    from ...core.trace import Trace
    from .run import Totals

__all__ = ["Routing", "SimulationMode", "simulate", "totals", "utilization"]


def simulate(
    instance: Instance,
    answer: Answer,
    mode: SimulationMode = SimulationMode.CONGESTION_AWARE,
    *,
    barrier: bool = False,
    in_step: bool = False,
    pieces: int = 1,
    hold_latency: bool = False,
    routing: Routing | None = None,
) -> Trace:
    """Simulate a schedule; see :func:`cwb.schedules.simulate.run.simulate`."""
    from .run import simulate as run

    return run(
        instance,
        answer,
        mode,
        barrier=barrier,
        in_step=in_step,
        pieces=pieces,
        hold_latency=hold_latency,
        routing=routing,
    )


def totals(
    instance: Instance,
    answer: Answer,
    mode: SimulationMode = SimulationMode.CONGESTION_AWARE,
    *,
    unaware: bool = False,
) -> Totals:
    """Simulate without keeping the times of every send; see :func:`cwb.schedules.simulate.run.totals`."""
    from .run import totals as run

    return run(instance, answer, mode, unaware=unaware)


def utilization(
    instance: Instance, answer: Answer, trace: Trace, bins: int = 100, *, pieces: int = 1
) -> tuple[Floats, Floats]:
    """Return link utilization over time; see :func:`cwb.schedules.simulate.run.utilization`."""
    from .run import utilization as run

    return run(instance, answer, trace, bins, pieces=pieces)
