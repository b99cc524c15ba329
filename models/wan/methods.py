"""The baselines, as the registry knows them; Pyomo and compiled loops are imported when a method runs."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from ...core.budget import Budget
from ...core.instance import Instance
from ...core.method import Kind, Method, Outcome
from ...core.schedule import StepSchedule
from ...core.solver import Solver
from ...core.trees import TreePacking
from ..common.wan.network import supports
from .options import (
    BlinkWanOptions,
    PlinkOptions,
    PsldOptions,
    SingleTreeOptions,
    TopoAdoptOptions,
    WanRingOptions,
)

_READING = (
    "a reading of the baseline that MTree (Luo et al., Efficient Inter-Datacenter AllReduce With Multiple Trees) names"
)


def _runner(module: str) -> Callable[[Instance, Solver, Budget, Any], Outcome]:
    """Import a module when its method runs."""

    def run(instance: Instance, solver: Solver, budget: Budget, options: Any) -> Outcome:
        found: Callable[[Instance, Solver, Budget, Any], Outcome] = import_module(f".{module}", __package__).run
        return found(instance, solver, budget, options)

    return run


def fit_for_ring(instance: Instance) -> str | None:
    """Say why a ring does not fit an instance, if it does not (``Method.supports``)."""
    return supports(instance) or ("a ring needs at least three sites" if instance.npus < 3 else None)


TOPOADOPT = Method(
    name="topoadopt",
    kind=Kind.HEURISTIC,
    summary="an all-reduce over a wide-area network: K trees by simulated annealing",
    paper=_READING,
    answer_type=TreePacking,
    options=TopoAdoptOptions,
    run=_runner("topoadopt"),
    supports=supports,
)

BLINK_WAN = Method(
    name="blink-wan",
    kind=Kind.HEURISTIC,
    summary="an all-reduce over a wide-area network: Blink's packing by multiplicative weights, and its cut to few trees",
    paper=_READING,
    answer_type=TreePacking,
    options=BlinkWanOptions,
    run=_runner("blink"),
    supports=supports,
)

SINGLE_TREE = Method(
    name="single-tree",
    kind=Kind.HEURISTIC,
    summary="an all-reduce over a wide-area network: the one tree whose slowest link is fastest",
    paper="general knowledge",
    answer_type=TreePacking,
    options=SingleTreeOptions,
    run=_runner("single_tree"),
    supports=supports,
    needs_solver=False,
)

WAN_RING = Method(
    name="wan-ring",
    kind=Kind.HEURISTIC,
    summary="an all-reduce over a wide-area network: the ring through all sites whose slowest link is fastest",
    paper="general knowledge",
    answer_type=TreePacking,
    options=WanRingOptions,
    run=_runner("ring"),
    supports=fit_for_ring,
    needs_solver=False,
)

PLINK = Method(
    name="plink",
    kind=Kind.HEURISTIC,
    summary="an all-reduce over a wide-area network: clusters of near sites, their leaders, and a leader of these",
    paper=_READING,
    answer_type=StepSchedule,
    options=PlinkOptions,
    run=_runner("plink"),
    supports=supports,
    needs_solver=False,
)

PSLD = Method(
    name="psld",
    kind=Kind.HEURISTIC,
    summary="an all-reduce over a wide-area network: every site adds up a share as large as its bandwidth",
    paper=_READING,
    answer_type=StepSchedule,
    options=PsldOptions,
    run=_runner("psld"),
    supports=supports,
    needs_solver=False,
)
