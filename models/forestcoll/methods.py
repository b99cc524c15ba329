"""ForestColl's methods, as the registry knows them; Pyomo and compiled kernels are imported when a method runs."""

from __future__ import annotations

from ...core.budget import Budget
from ...core.instance import Instance
from ...core.method import Kind, Method, Outcome
from ...core.solver import Solver
from ...core.trees import TreePacking
from .options import ForestOptions
from .problem import supports

PAPER = "Zhao et al., ForestColl: Efficient Collective Communications on Heterogeneous Network Fabrics"


def seconds(instance: Instance) -> str:
    """Forests are measured in seconds."""
    del instance
    return "s"


def run_forest(instance: Instance, solver: Solver, budget: Budget, options: ForestOptions) -> Outcome:
    """Run :mod:`.run`."""
    from . import run

    return run.run(instance, solver, budget, options)


FORESTCOLL = Method(
    name="forestcoll",
    kind=Kind.EXACT,
    summary="throughput-optimal forests of spanning trees on any network, to a thousand ranks and more",
    paper=PAPER,
    answer_type=TreePacking,
    options=ForestOptions,
    run=run_forest,
    objective_unit=seconds,
    supports=supports,
    needs_solver=False,
)
