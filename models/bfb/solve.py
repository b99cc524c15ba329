"""``bfb`` by theorem 19 without a linear program, and ``bfb-lp``, ``bfb-chunked``, ``bfb-heterogeneous`` with one.

Only the largest load of a step counts: shards are cut so that these loads are whole numbers of pieces, and every other
node carries its own load rounded up, which is not more.

The exact fractions, the optimum of program (13) and the loop over LP (14) are explained in docs/methods/bfb.md. Pyomo
is imported where a model is built: ``bfb`` needs none.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

from ...algorithms.breadth_first.broadcast import graph_of
from ...core.budget import Budget
from ...core.instance import Instance
from ...core.outcome import Outcome, Status
from ...core.solver import Solver, SolverResult
from ...core.topology import Topology
from .extract import AllGather, Balance, ShardParts, outcome, parts_of, read
from .method import BfbOptions, ChunkedOptions
from .problem import Choices, choices_of, networks, unit_of

Solve = Callable[[Any], None]  #: Has a model solved; the values are then in its variables.
SAME = 1e-7  #: Relative difference at which two times of a solver are the same, and part of a shard that is none.


def balance(topology: Topology) -> Balance:
    """Balance all nodes and steps of a network without switches, lazily."""
    return Balance(graph_of([node.name for node in topology.nodes], topology.link_ends))


def run_bfb(instance: Instance, solver: Solver, budget: Budget, options: BfbOptions) -> Outcome:
    """Balance every node and step by theorem 19 (``Method.run``)."""
    with budget.clock.phase("balance"):
        balances = [balance(network) for network in networks(instance)]
        budget.progress(" and ".join(f"T_L = {one.steps}, T_B = {one.time}" for one in balances))
    return outcome(instance, budget, balances, schedule=options.schedule)


def run_each(
    instance: Instance,
    solver: Solver,
    budget: Budget,
    broadcast: Callable[[Topology, Solve], AllGather],
    options: BfbOptions,
    metrics: Mapping[str, Any] | None = None,
) -> Outcome:
    """Solve for every part of a collective, and write the schedule.

    ``broadcast(network, solve)`` builds models, solves and reads them.
    """
    reports: list[SolverResult] = []

    def solve(model: Any) -> None:
        budget.progress(f"{model.name}: {model.nvariables():,} variables, {model.nconstraints():,} rows")
        reports.append(solver.solve(model, budget))
        if not reports[-1].has_solution:
            raise _NothingFoundError

    try:
        broadcasts = [broadcast(network, solve) for network in networks(instance)]
        result = outcome(instance, budget, broadcasts, schedule=options.schedule, metrics=metrics)
    except _NothingFoundError:
        result = Outcome(Status.LIMIT, message=reports[-1].message or reports[-1].termination.value)
    size = max((report.size for report in reports), key=lambda size: size.variables)
    iterations = sum(report.iterations or 0 for report in reports)
    return replace(result, reports=tuple(reports), size=size, iterations=iterations)


class _NothingFoundError(Exception):
    """Error of a solver that has found nothing within its limits."""


def solve_shares(network: Topology, solve: Solve, budget: Budget, pieces: int | None = None) -> ShardParts:
    """Solve program (13) of all nodes and steps; without a number of pieces, its relaxation, LP (1)."""
    from .formulation import build_chunked, build_lp

    with budget.clock.phase("build"):
        choices = choices_of(network, pieces=pieces)
        model = build_lp(choices) if pieces is None else build_chunked(choices)
    solve(model)
    return read(choices, model)


def run_lp(instance: Instance, solver: Solver, budget: Budget, options: BfbOptions) -> Outcome:
    """Solve LP (1) of all nodes and steps (``Method.run``)."""
    return run_each(instance, solver, budget, lambda network, solve: solve_shares(network, solve, budget), options)


def run_chunked(instance: Instance, solver: Solver, budget: Budget, options: ChunkedOptions) -> Outcome:
    """Solve program (13) of all nodes and steps, or round its relaxation (``Method.run``)."""
    pieces = instance.demands[0].chunks

    def broadcast(network: Topology, solve: Solve) -> ShardParts:
        if options.solution == "program":
            return solve_shares(network, solve, budget, pieces)
        relaxed = solve_shares(network, solve, budget)
        return replace(relaxed, pieces=pieces, time=relaxed.split(pieces).bandwidth_time())

    with budget.clock.phase("balance"):
        balances = [balance(network) for network in networks(instance)]
    metrics = {
        "T_B_relaxed": str(sum((part.time for part in balances), Fraction(0))),
        "T_B_rounding": str(sum((rounding_bound(part, pieces) for part in balances), Fraction(0))),
    }
    return run_each(instance, solver, budget, broadcast, options, metrics)


def rounding_bound(broadcast: Balance, pieces: int) -> Fraction:
    """Return the largest increase of T_B by rounding, ``d / (P N) sum_t d^(t - 1)`` (theorem 20)."""
    degree, nodes = broadcast.graph.degree, broadcast.graph.nodes
    return Fraction(degree * sum(degree**t for t in range(broadcast.steps)), pieces * nodes)


def run_heterogeneous(instance: Instance, solver: Solver, budget: Budget, options: BfbOptions) -> Outcome:
    """Solve LP (14) of all nodes and steps, without links that only add latency (``Method.run``)."""
    topology, demand = instance.topology, instance.demands[0]
    shard_bytes = demand.size_bytes / len(topology.nodes)

    def broadcast(network: Topology, solve: Solve) -> ShardParts:
        with budget.clock.phase("build"):
            choices = choices_of(network, shard_bytes=shard_bytes)
        parts, times = fastest(choices, solve, budget)
        longest = [max(U for (_, t), U in times.items() if t == step + 1) for step in range(choices.graph.steps)]
        return ShardParts(choices, parts, demand.chunks, Fraction(sum(longest)), links_differ=True)

    return run_each(instance, solver, budget, broadcast, options)


def fastest(
    choices: Choices, solve: Solve, budget: Budget
) -> tuple[dict[tuple[int, int], float], dict[tuple[int, int], float]]:
    """Solve LP (14), and again without useless links wherever there are any.

    Return the part of v's shard on e by (v, e), and U in seconds by (u, t).
    """
    from .formulation import build_heterogeneous

    parts = {(v, e): 0.0 for (v, _), links in choices.over.items() for e in links}
    times: dict[tuple[int, int], float] = {}
    unit_s = unit_of(choices.topology, choices.shard_bytes)
    while choices.carries:
        with budget.clock.phase("build"):
            model = build_heterogeneous(choices)
        solve(model)
        parts |= parts_of(choices, model)
        durations = {index: U.value * float(unit_s) for index, U in model.U.items()}
        times |= durations
        useless = unused_links(choices, parts, durations)
        again = {(choices.target(e), t) for e, t in useless}
        parts |= {(v, e): 0.0 for e, t in useless for v in choices.carries[e, t]}
        choices = choices.only(again, useless)
    return parts, times


def unused_links(
    choices: Choices, parts: Mapping[tuple[int, int], float], times: Mapping[tuple[int, int], float]
) -> set[tuple[int, int]]:
    """Find links without a load in a step whose latency alone is the step's time."""
    return {
        (e, t)
        for (e, t), shards in choices.carries.items()
        if (latency_s := float(choices.topology.links[e].latency_s)) > 0
        and latency_s >= times[choices.target(e), t] * (1 - SAME)
        and sum(parts[v, e] for v in shards) <= SAME * len(shards)
    }
