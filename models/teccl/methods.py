"""The declarative TE-CCL methods, as the registry knows them. Pyomo is imported when one of them runs."""

from __future__ import annotations

from ...core.budget import Budget
from ...core.instance import Instance
from ...core.method import Kind, Method, Outcome
from ...core.schedule import Schedule
from ...core.solver import Solver
from .milp_options import AstarOptions, LpOptions, MilpOptions, pose_fluid, pose_model, supports_no_sums
from .options import supports

PAPER = (
    "Liu et al., Rethinking Machine Learning Collective Communication as a Multi-Commodity Flow Problem, SIGCOMM 2024"
)


def run_milp(instance: Instance, solver: Solver, budget: Budget, options: MilpOptions) -> Outcome:
    """Run :mod:`.milp`."""
    from . import milp

    return milp.run(instance, solver, budget, options)


def run_lp(instance: Instance, solver: Solver, budget: Budget, options: LpOptions) -> Outcome:
    """Run :mod:`.lp`."""
    from . import lp

    return lp.run(instance, solver, budget, options)


def run_astar(instance: Instance, solver: Solver, budget: Budget, options: AstarOptions) -> Outcome:
    """Run :mod:`.astar`."""
    from . import astar

    return astar.run(instance, solver, budget, options)


TECCL_MILP = Method(
    name="teccl-milp",
    kind=Kind.EXACT,
    summary="TE-CCL's general form: whole chunks in epochs, copied and stored on the way",
    paper=PAPER,
    answer_type=Schedule,
    options=MilpOptions,
    run=run_milp,
    supports=supports,
    pose=pose_model,
)

TECCL_LP = Method(
    name="teccl-lp",
    kind=Kind.EXACT,
    summary="TE-CCL's linear program: data without copies, in parts of chunks",
    paper=PAPER,
    answer_type=Schedule,
    options=LpOptions,
    run=run_lp,
    supports=supports_no_sums,
    pose=pose_fluid,
)

TECCL_ASTAR = Method(
    name="teccl-astar",
    kind=Kind.HEURISTIC,
    summary="TE-CCL round by round: the general form for a few epochs at a time",
    paper=PAPER,
    answer_type=Schedule,
    options=AstarOptions,
    run=run_astar,
    supports=supports_no_sums,
    pose=pose_model,
)
