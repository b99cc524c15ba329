"""Simulators of schedules on their networks, independent of the methods' time models."""

from ...core.trace import Routing, SimulationMode
from .run import simulate, simulate_totals
from .timelines import utilization

__all__ = ["Routing", "SimulationMode", "simulate", "simulate_totals", "utilization"]
