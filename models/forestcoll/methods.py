"""ForestColl's methods, as the registry knows them; Pyomo and compiled kernels are imported when a method runs."""

from __future__ import annotations

from ...core.budget import Budget
from ...core.collective import CollectiveKind
from ...core.instance import Instance
from ...core.method import Kind, Method, Outcome
from ...core.solver import Solver
from ...core.trees import TreePacking
from .options import AllReduceOptions, BlinkOptions, ForestOptions

PAPER = "Zhao et al., ForestColl: Efficient Collective Communications on Heterogeneous Network Fabrics"
BLINK_PAPER = "Wang et al., Blink: Fast and Generic Collectives for Distributed ML, MLSys 2020"


def supports(instance: Instance) -> str | None:
    """Ask :mod:`.problem`."""
    from . import problem

    return problem.supports(instance)


def run_forest(instance: Instance, solver: Solver, budget: Budget, options: ForestOptions) -> Outcome:
    """Run :mod:`.run`."""
    from . import run

    return run.run(instance, solver, budget, options)


def supports_direct(instance: Instance) -> str | None:
    """Ask :mod:`.blink_problem` about a network without switches."""
    from . import blink_problem

    return blink_problem.supports(instance)


def supports_switches(instance: Instance) -> str | None:
    """Ask :mod:`.blink_problem` about any network."""
    from . import blink_problem

    return blink_problem.supports_switches(instance)


def run_blink(instance: Instance, solver: Solver, budget: Budget, options: BlinkOptions) -> Outcome:
    """Run :mod:`.blink`."""
    from . import blink

    return blink.run(instance, solver, budget, options)


FORESTCOLL = Method(
    name="forestcoll",
    kind=Kind.EXACT,
    summary="throughput-optimal forests of spanning trees on any network, to a thousand ranks and more",
    paper=PAPER,
    answer_type=TreePacking,
    options=ForestOptions,
    run=run_forest,
    supports=supports,
    needs_solver=False,
)


def supports_program(instance: Instance) -> str | None:
    """Linear program (6) is about an all-reduce among all ranks."""
    if (reason := supports(instance)) is not None or instance.demand is None:
        return reason
    if instance.demand.collective is not CollectiveKind.ALL_REDUCE:
        return f"linear program (6) does not make {instance.demand.collective.value}, but all_reduce"
    if instance.demand.ranks is not None:
        return "linear program (6) is about all ranks, not a process group"
    return None


def run_all_reduce(instance: Instance, solver: Solver, budget: Budget, options: AllReduceOptions) -> Outcome:
    """Run :mod:`.allreduce`."""
    from . import allreduce

    return allreduce.run(instance, solver, budget, options)


FORESTCOLL_ALLREDUCE = Method(
    name="forestcoll-allreduce",
    kind=Kind.EXACT,
    summary="the best all-reduce by trees: two halves where that is proved best, else linear program (6)",
    paper=PAPER,
    answer_type=TreePacking,
    options=AllReduceOptions,
    run=run_all_reduce,
    supports=supports_program,
)

BLINK = Method(
    name="blink",
    kind=Kind.HEURISTIC,
    summary="the most spanning trees from one root: reduce along them, broadcast back; no switches",
    paper=BLINK_PAPER,
    answer_type=TreePacking,
    options=BlinkOptions,
    run=run_blink,
    supports=supports_direct,
    needs_solver=False,
)

BLINK_SWITCH = Method(
    name="blink-switch",
    kind=Kind.HEURISTIC,
    summary="Blink after ForestColl's removal of switches: trees from one root on any network",
    paper=f"{BLINK_PAPER}; {PAPER}",
    answer_type=TreePacking,
    options=BlinkOptions,
    run=run_blink,
    supports=supports_switches,
    needs_solver=False,
)
