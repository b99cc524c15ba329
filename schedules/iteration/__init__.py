"""Discrete-event simulation of a training iteration: computations and collectives on streams."""

from __future__ import annotations

from .passes import Iteration, Loop, Pipeline, Plan, Streams, simulate_iteration, tasks_of
from .tasks import COMPUTE, IDLE, Task, lower_bound, simulate

__all__ = [
    "COMPUTE",
    "IDLE",
    "Iteration",
    "Loop",
    "Pipeline",
    "Plan",
    "Streams",
    "Task",
    "lower_bound",
    "simulate",
    "simulate_iteration",
    "tasks_of",
]
