"""Simulators of schedules on their networks, independent of the methods' time models.

===================  =====================================================================
``transfers``        all answers as sends with their dependencies
``network``          links, how a chunk passes one in each mode, and costs of ranks as links
``compiled_runs``    levels of millions of sends, and schedules that fix the order, compiled
``events``           hop by hop, or whole levels or windows of time at once with arrays
``timelines``        choice of the simulator, flows that share links, and link utilization over time
``run``              a trace or totals, on the schedule's paths or other shortest ones
``pipeline``         forests whose trees have shares of links: closed form, and piece by piece
===================  =====================================================================
"""

from __future__ import annotations

from ...core.trace import Routing, SimulationMode
from .run import simulate, totals
from .timelines import utilization

__all__ = ["Routing", "SimulationMode", "simulate", "totals", "utilization"]
