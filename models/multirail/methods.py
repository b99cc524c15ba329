"""The multi-rail methods, as the registry knows them. Pyomo is imported when ``themis-lp`` runs."""

from __future__ import annotations

from ...core.answers import ChunkOrders
from ...core.budget import Budget
from ...core.instance import Instance
from ...core.method import Kind, Method, Outcome
from ...core.solver import Solver
from .blueconnect import run as run_blueconnect
from .options import QueueOptions, ThemisOptions, pose, supports, supports_all_orders
from .themis import run as run_themis

THEMIS_PAPER = "Rashidi et al., Themis: A Network Bandwidth-Aware Collective Scheduling Policy, ISCA 2022"


def run_themis_lp(instance: Instance, solver: Solver, budget: Budget, options: ThemisOptions) -> Outcome:
    """Run :mod:`.themis_lp`."""
    from . import themis_lp

    return themis_lp.run(instance, solver, budget, options)


BLUECONNECT = Method(
    name="blueconnect",
    kind=Kind.HEURISTIC,
    summary="every chunk through the dimensions from the inside out, and back",
    paper="Cho et al., BlueConnect, SysML 2019; dissertation behind ASTRA-sim 2.0, section 4.2.2",
    answer_type=ChunkOrders,
    options=QueueOptions,
    run=run_blueconnect,
    supports=supports,
    pose=pose,
    needs_solver=False,
)

THEMIS = Method(
    name="themis",
    kind=Kind.HEURISTIC,
    summary="chunk after chunk in the order that evens out the dimensions' loads",
    paper=THEMIS_PAPER,
    answer_type=ChunkOrders,
    options=ThemisOptions,
    run=run_themis,
    supports=supports,
    pose=pose,
    needs_solver=False,
)

THEMIS_LP = Method(
    name="themis-lp",
    kind=Kind.RELAXATION,
    summary="the best shares of all chunk orders: a bound, and rounded to chunks",
    paper=THEMIS_PAPER,
    answer_type=ChunkOrders,
    options=ThemisOptions,
    run=run_themis_lp,
    supports=supports_all_orders,
    pose=pose,
)
