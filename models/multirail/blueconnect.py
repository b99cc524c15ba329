"""``blueconnect``: every chunk through the dimensions from the inside out, and back (dissertation, section 4.2.2)."""

from __future__ import annotations

from ...core.answers import ChunkOrders
from ...core.budget import Budget
from ...core.instance import Instance
from ...core.method import Outcome, Status
from ...core.solver import Solver
from .options import QueueOptions, demand_of


def run(instance: Instance, solver: Solver, budget: Budget, options: QueueOptions) -> Outcome:
    """Give every chunk the order 1, 2, ..., N (``Method.run``)."""
    del solver, budget
    order = tuple(range(len(instance.fabric.dimensions)))
    answer = ChunkOrders((order,) * demand_of(instance).chunks, options.queue)
    return Outcome(Status.FEASIBLE, answer)
