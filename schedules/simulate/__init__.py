"""Simulators of schedules on their networks, independent of the methods' time models."""

from ...core.trace import Routing, SimulationMode
from .run import simulate, totals
from .timelines import utilization

__all__ = ["Routing", "SimulationMode", "simulate", "totals", "utilization"]
