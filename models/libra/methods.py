"""The methods of the LIBRA family, as the registry knows them. Pyomo is imported when one of them runs."""

from __future__ import annotations

from ...core.answers import BandwidthPlan
from ...core.budget import Budget
from ...core.design import Objective
from ...core.fabric import Fabric
from ...core.instance import Instance
from ...core.method import Kind, Method, Outcome
from ...core.solver import Solver
from .options import CodesignOptions, DesignOptions, LibraOptions, pose

PAPER = "dissertation behind ASTRA-sim 2.0, chapter 4 (LIBRA)"


def supports(instance: Instance) -> str | None:
    """Only fabrics with something to train have bandwidths to choose."""
    if not isinstance(instance.network, Fabric):
        return "it designs multi-dimensional networks such as RI(4)_SW(32), not explicit graphs"
    if not instance.workloads and not instance.transformers:
        return "the instance has no workload to design a network for"
    return None


def codesign_supports(instance: Instance) -> str | None:
    """What LIBRA supports, and of that only described transformers, which can be parallelized anew."""
    if (reason := supports(instance)) is not None:
        return reason
    if not instance.transformers or instance.workloads:
        return "the parallelization can be chosen only where every workload is described as a transformer"
    return None


def run_libra(instance: Instance, solver: Solver, budget: Budget, options: LibraOptions) -> Outcome:
    """Run :mod:`.solve`."""
    from . import solve

    return solve.run(instance, solver, budget, options)


def run_equal(instance: Instance, solver: Solver, budget: Budget, options: DesignOptions) -> Outcome:
    """Run :mod:`.equal`."""
    from . import equal

    return equal.run(instance, solver, budget, options)


def run_codesign(instance: Instance, solver: Solver, budget: Budget, options: CodesignOptions) -> Outcome:
    """Run :mod:`.codesign`."""
    from . import codesign

    return codesign.run(instance, solver, budget, options)


def objective_unit(instance: Instance) -> str:
    """Seconds, or seconds times dollars."""
    perf_per_cost = instance.design is not None and instance.design.objective is Objective.PERF_PER_COST
    return "s USD" if perf_per_cost else "s"


LIBRA = Method(
    name="libra",
    kind=Kind.EXACT,
    summary="bandwidth per dimension for the best iteration time, or time times cost",
    paper=PAPER,
    answer_type=BandwidthPlan,
    options=LibraOptions,
    run=run_libra,
    objective_unit=objective_unit,
    supports=supports,
    pose=pose,
)

LIBRA_EQUAL = Method(
    name="libra-equal",
    kind=Kind.HEURISTIC,
    summary="EqualBW, the same bandwidth in every dimension: the baseline",
    paper=PAPER,
    answer_type=BandwidthPlan,
    options=DesignOptions,
    run=run_equal,
    objective_unit=objective_unit,
    supports=supports,
    pose=pose,
    needs_solver=False,
)

LIBRA_CODESIGN = Method(
    name="libra-codesign",
    kind=Kind.EXACT,
    summary="TP and DP degree of a transformer together with the bandwidth per dimension",
    paper=PAPER,
    answer_type=BandwidthPlan,
    options=CodesignOptions,
    run=run_codesign,
    objective_unit=objective_unit,
    supports=codesign_supports,
    pose=pose,
)
