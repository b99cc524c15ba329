"""MTree's methods, as the registry knows them; Pyomo and compiled loops are imported when a method runs."""

from __future__ import annotations

from ...core.budget import Budget
from ...core.instance import Instance
from ...core.method import Kind, Method, Outcome
from ...core.solver import Solver
from ...core.trees import TreePacking
from ..common.wan.network import supports
from .options import GostOptions, MtreeOptions, restricted_to

PAPER = "Luo et al., Efficient Inter-Datacenter AllReduce With Multiple Trees"


def run_mtree(instance: Instance, solver: Solver, budget: Budget, options: MtreeOptions) -> Outcome:
    """Run :mod:`.mtree`."""
    from . import mtree

    return mtree.run(instance, solver, budget, options)


def run_gost(instance: Instance, solver: Solver, budget: Budget, options: GostOptions) -> Outcome:
    """Run :mod:`.gost`."""
    from . import gost

    return gost.run(instance, solver, budget, options)


MTREE = Method(
    name="mtree",
    kind=Kind.EXACT,
    summary="the best all-reduce trees of a limited height and number over a wide-area network, with a proved bound",
    paper=PAPER,
    answer_type=TreePacking,
    options=MtreeOptions,
    run=run_mtree,
    supports=supports,
    restricted_to=lambda options: restricted_to(options.trees, options.height, options.min_rate),
)

GOST = Method(
    name="gost",
    kind=Kind.HEURISTIC,
    summary="MTree's own trees: greedy, one after the other, then a MILP that chooses among them",
    paper=PAPER,
    answer_type=TreePacking,
    options=GostOptions,
    run=run_gost,
    supports=supports,
)
