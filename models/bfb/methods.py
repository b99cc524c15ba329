"""The family's methods, as the registry knows them. Pyomo is imported when a method that needs it runs."""

from __future__ import annotations

from ...core.budget import Budget
from ...core.instance import Instance
from ...core.method import Kind, Method, Outcome
from ...core.schedule import StepSchedule
from ...core.solver import Solver
from .fast import run as run_fast
from .options import ChunkedOptions, Options, supports, supports_any_bandwidth

PAPER = "Zhao et al., Efficient Direct-Connect Topologies for Collective Communications, section 6 and appendix E"


def run_lp(instance: Instance, solver: Solver, budget: Budget, options: Options) -> Outcome:
    """Run :mod:`.lp`."""
    from . import lp

    return lp.run(instance, solver, budget, options)


def run_chunked(instance: Instance, solver: Solver, budget: Budget, options: ChunkedOptions) -> Outcome:
    """Run :mod:`.chunked`."""
    from . import chunked

    return chunked.run(instance, solver, budget, options)


def run_heterogeneous(instance: Instance, solver: Solver, budget: Budget, options: Options) -> Outcome:
    """Run :mod:`.heterogeneous`."""
    from . import heterogeneous

    return heterogeneous.run(instance, solver, budget, options)


BFB = Method(
    name="bfb",
    kind=Kind.HEURISTIC,
    summary="the best breadth-first broadcast of everybody's shard, in exact fractions without a solver",
    paper=PAPER,
    answer_type=StepSchedule,
    options=Options,
    run=run_fast,
    supports=supports,
    needs_solver=False,
)

BFB_LP = Method(
    name="bfb-lp",
    kind=Kind.HEURISTIC,
    summary="the best breadth-first broadcast, as one linear program for all nodes and steps",
    paper=PAPER,
    answer_type=StepSchedule,
    options=Options,
    run=run_lp,
    supports=supports,
)

BFB_CHUNKED = Method(
    name="bfb-chunked",
    kind=Kind.HEURISTIC,
    summary="the best breadth-first broadcast of shards in a given number of chunks",
    paper=PAPER,
    answer_type=StepSchedule,
    options=ChunkedOptions,
    run=run_chunked,
    supports=supports,
)

BFB_HETEROGENEOUS = Method(
    name="bfb-heterogeneous",
    kind=Kind.HEURISTIC,
    summary="breadth-first broadcast over links of different bandwidths and latencies",
    paper=PAPER,
    answer_type=StepSchedule,
    options=Options,
    run=run_heterogeneous,
    supports=supports_any_bandwidth,
)
