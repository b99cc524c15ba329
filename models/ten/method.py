"""``ten-ilp``: the method, as the registry knows it."""

from __future__ import annotations

from ...core.budget import Budget
from ...core.instance import Instance
from ...core.method import Kind, Method, Outcome
from ...core.schedule import Schedule
from ...core.solver import Solver
from .options import Options, pose, supports


def run(instance: Instance, solver: Solver, budget: Budget, options: Options) -> Outcome:
    """Solve; Pyomo is imported when it is needed (``Method.run``)."""
    from .run import run as run_it

    return run_it(instance, solver, budget, options)


METHOD = Method(
    name="ten-ilp",
    kind=Kind.EXACT,
    summary="a TACCL-like integer program over the time-expanded network",
    paper="Won, Software-Hardware Optimizations for Efficient Collective Communications, Georgia Institute of Technology, 2025, section 5.5.1",
    answer_type=Schedule,
    options=Options,
    run=run,
    supports=supports,
    pose=pose,
)
