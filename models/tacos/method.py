"""``tacos``: the method, as the registry knows it."""

from __future__ import annotations

from ...core.budget import Budget
from ...core.instance import Instance
from ...core.method import Kind, Method, Outcome
from ...core.schedule import Schedule
from ...core.solver import Solver
from .options import Options, pose, supports


def run(instance: Instance, solver: Solver, budget: Budget, options: Options) -> Outcome:
    """Synthesize; the engines are imported when they are needed (``Method.run``)."""
    del solver
    from .run import run as run_it

    return run_it(instance, budget, options)


METHOD = Method(
    name="tacos",
    kind=Kind.HEURISTIC,
    summary="link-chunk matching over the time-expanded network, with a proof where the bound is met",
    paper="Won et al., TACOS: Topology-Aware Collective Algorithm Synthesizer for Distributed Machine Learning, MICRO 2024; dissertation, chapter 5",
    answer_type=Schedule,
    options=Options,
    run=run,
    supports=supports,
    pose=pose,
    needs_solver=False,
)
