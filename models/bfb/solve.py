"""``bfb`` by theorem 19 without a linear program, and ``bfb-lp``, ``bfb-chunked``, ``bfb-heterogeneous`` with one.

Only the largest load of a step counts: shards are cut so that these are whole numbers of pieces, and every other node
carries the next whole number of its own load, which is not more.

By theorem 19 every U of LP (1) is a number of shards over a number of links, so that the fraction next to the solver's
number is exact. At a vertex of the program all parts are multiples of 1 over its denominator: whole pieces if shards
are cut by the least common multiple of all of them.

Program (13) cuts every shard into P pieces, P the demand's number of chunks; or the relaxation is rounded as in theorem
20. The program is a transport, so that its optimum has a formula: the relaxation's, rounded up, ``W_{u,t} = ceil(P
U_{u,t})``, which ``bfb`` attains. Hence T_B is less than ``D d / (P N)`` above that of the relaxation, where theorem 20
has ``d (d^D - 1) / ((d - 1) P N)``.

LP (14) counts the latency of every link, used or not. Where that of an unused link is all that a node waits for, the
link is removed there and the program solved again. When no such link is left, U is the smallest time in which the used
links, each with its latency, can bring everything: a removed link has a latency of at least U, so that it could bring
nothing in time.

Pyomo is imported where a model is built: ``bfb`` needs none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

from ...algorithms.breadth_first.broadcast import Broadcast, Shares
from ...algorithms.breadth_first.graph import graph_of
from ...core.budget import Budget
from ...core.instance import Instance
from ...core.method import Outcome, Status
from ...core.solver import Solver, SolverResult
from ...core.topology import Topology
from .extract import AllGather, ShardParts, TimedShardParts, outcome, read, read_chunked
from .method import BfbOptions, ChunkedOptions
from .problem import Choices, choices_of, networks, posed, unit_of

#: Has a model solved; the values are then in its variables.
Solve = Callable[[Any], None]

#: Relative difference at which two times of a solver are the same, and part of a shard that is none.
SAME = 1e-7


class Balance(Broadcast):
    """The best breadth-first broadcast of everybody's shard."""

    @property
    def time(self) -> Fraction:
        """T_B, equation (2), in M/B."""
        return self.bandwidth()

    def time_of(self, shares: Shares) -> Fraction:
        """T_B of shares."""
        return shares.bandwidth_time()

    def metrics(self, time: Fraction, relaxed: Fraction) -> dict[str, Any]:
        """T_B as text, such as ``"14/15"``."""
        del relaxed
        return {"T_B": str(time)}


def balance(topology: Topology) -> Balance:
    """Balance all nodes and steps of a network, when its values are asked for.

    Parameters
    ----------
    topology : Topology
        Compute nodes alone, links of one bandwidth.

    Raises
    ------
    InputError
        If a node has no link into it or out of it.
    """
    return Balance(graph_of([node.name for node in topology.nodes], topology.link_ends))


def run_bfb(instance: Instance, solver: Solver, budget: Budget, options: BfbOptions) -> Outcome:
    """Balance every node and step by theorem 19 (``Method.run``)."""
    del solver
    with budget.clock.phase("balance"):
        found = [balance(network) for network in networks(instance)]
        budget.progress(" and ".join(f"T_L = {one.steps}, T_B = {one.time}" for one in found))
    return outcome(instance, budget, found, schedule=options.schedule)


def run_each(
    instance: Instance,
    solver: Solver,
    budget: Budget,
    broadcast: Callable[[Topology, Solve], AllGather],
    options: BfbOptions,
    metrics: Mapping[str, Any] | None = None,
) -> Outcome:
    """Solve for every part of a collective, and write the schedule.

    Parameters
    ----------
    instance, solver, budget, options
        As in ``Method.run``.
    broadcast : callable
        ``broadcast(network, solve)``: makes models, has them solved, and reads what is in them.
    metrics : mapping, optional
        Further metrics.
    """
    reports: list[SolverResult] = []

    def solve(model: Any) -> None:
        budget.progress(f"{model.name}: {model.nvariables():,} variables, {model.nconstraints():,} rows")
        reports.append(solver.solve(model, budget))
        if not reports[-1].has_solution:
            raise _NothingFoundError

    try:
        found = [broadcast(network, solve) for network in networks(instance)]
        done = outcome(instance, budget, found, schedule=options.schedule, metrics=metrics)
    except _NothingFoundError:
        done = Outcome(Status.LIMIT, message=reports[-1].message or reports[-1].termination.value)
    size = max((report.size for report in reports), key=lambda size: size.variables)
    iterations = sum(report.iterations or 0 for report in reports)
    return replace(done, reports=tuple(reports), size=size, iterations=iterations)


class _NothingFoundError(Exception):
    """The solver has found nothing in its limits."""


def run_lp(instance: Instance, solver: Solver, budget: Budget, options: BfbOptions) -> Outcome:
    """Solve LP (1) of all nodes and steps (``Method.run``)."""
    from .formulation import build_lp

    def broadcast(network: Topology, solve: Solve) -> ShardParts:
        with budget.clock.phase("build"):
            choices = choices_of(network)
            model = build_lp(choices)
        solve(model)
        return read(choices, model)

    return run_each(instance, solver, budget, broadcast, options)


def run_chunked(instance: Instance, solver: Solver, budget: Budget, options: ChunkedOptions) -> Outcome:
    """Solve program (13) of all nodes and steps, or round its relaxation (``Method.run``)."""
    from .formulation import build_chunked, build_lp

    pieces = posed(instance)[1].chunks

    def program(network: Topology, solve: Solve) -> ShardParts:
        with budget.clock.phase("build"):
            choices = choices_of(network)
            model = build_chunked(choices, pieces)
        solve(model)
        return read_chunked(choices, model, pieces)

    def rounding(network: Topology, solve: Solve) -> ShardParts:
        with budget.clock.phase("build"):
            choices = choices_of(network)
            model = build_lp(choices)
        solve(model)
        relaxed = read(choices, model)
        return ShardParts(choices, relaxed.parts, pieces, relaxed.split(pieces).bandwidth_time())

    with budget.clock.phase("balance"):
        found = [balance(network) for network in networks(instance)]
    metrics = {
        "T_B_relaxed": str(sum((part.time for part in found), Fraction(0))),
        "T_B_rounding": str(sum((rounding_bound(part, pieces) for part in found), Fraction(0))),
    }
    return run_each(instance, solver, budget, program if options.solution == "program" else rounding, options, metrics)


def rounding_bound(found: Balance, pieces: int) -> Fraction:
    """Theorem 20: the most by which rounding may raise T_B, ``d / (P N) sum_t d^(t - 1)``."""
    degree, nodes = found.graph.degree, found.graph.nodes
    return Fraction(degree * sum(degree**t for t in range(found.steps)), pieces * nodes)


def run_heterogeneous(instance: Instance, solver: Solver, budget: Budget, options: BfbOptions) -> Outcome:
    """Solve LP (14) of all nodes and steps, without the links that only cost latency (``Method.run``)."""
    topology, demand = posed(instance)
    shard_bytes = demand.size_bytes / len(topology.nodes)

    def broadcast(network: Topology, solve: Solve) -> TimedShardParts:
        parts, times = fastest(network, shard_bytes, solve, budget)
        choices = choices_of(network)
        longest = [max(U for (_, t), U in times.items() if t == step + 1) for step in range(choices.graph.steps)]
        return TimedShardParts(choices, parts, demand.chunks, Fraction(sum(longest)), network, shard_bytes)

    return run_each(instance, solver, budget, broadcast, options)


def fastest(
    network: Topology, shard_bytes: Fraction, solve: Solve, budget: Budget
) -> tuple[dict[tuple[int, int], float], dict[tuple[int, int], float]]:
    """Solve LP (14), and again without useless links wherever there are any.

    Returns
    -------
    dict of (v, e) to float
        Part of v's shard that link e carries.
    dict of (u, t) to float
        U in seconds.
    """
    from .formulation import build_heterogeneous

    with budget.clock.phase("build"):
        choices = choices_of(network)
    parts = {(v, e): 0.0 for (v, _), links in choices.over.items() for e in links}
    times: dict[tuple[int, int], float] = {}
    unit_s = unit_of(network, shard_bytes)
    while choices.carries:
        with budget.clock.phase("build"):
            model = build_heterogeneous(choices, network, shard_bytes, unit_s)
        solve(model)
        parts |= {index: x.value for index, x in model.x.items()}
        found = {index: U.value * float(unit_s) for index, U in model.U.items()}
        times |= found
        useless = unused(choices, network, parts, found)
        again = {(choices.target[e], t) for e, t in useless}
        parts |= {(v, e): 0.0 for e, t in useless for v in choices.carries[e, t]}
        choices = choices.only(again, useless)
    return parts, times


def unused(
    choices: Choices,
    network: Topology,
    parts: Mapping[tuple[int, int], float],
    times: Mapping[tuple[int, int], float],
) -> set[tuple[int, int]]:
    """Find the links that carry nothing in a step, and whose latency alone is the time of it."""
    return {
        (e, t)
        for (e, t), shards in choices.carries.items()
        if (latency_s := float(network.links[e].latency_s)) > 0
        and latency_s >= times[choices.target[e], t] * (1 - SAME)
        and sum(parts[v, e] for v in shards) <= SAME * len(shards)
    }
