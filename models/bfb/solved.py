"""What a solver has found, as a broadcast whose parts are rounded to whole pieces."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import floor
from typing import Any

import numpy as np

from ...core.budget import Budget
from ...core.instance import Instance
from ...core.method import Outcome, Status
from ...core.solver import Solver, SolverResult
from ...core.topology import Topology
from ..common.breadth_first.shares import Shares
from .answer import Broadcast, networks, outcome
from .choices import Choices
from .options import Options

#: Has a model solved; the values are then in its variables.
Solve = Callable[[Any], None]

#: A number of pieces that a solver finds this close to a whole one is that one.
WHOLE = 1e-6


@dataclass(frozen=True, eq=False)
class Solved:
    """Parts of all shards over all links.

    Parameters
    ----------
    choices : Choices
        Who may send what to whom.
    parts : mapping of (v, e) to float
        Part of v's shard that link e carries.
    pieces : int
        Number of pieces of which the parts are multiples, or that the shards are to be cut into.
    time : Fraction
        What the solver's parts take: T_B in M/B.
    """

    choices: Choices
    parts: Mapping[tuple[int, int], float]
    pieces: int
    time: Fraction

    @property
    def steps(self) -> int:
        """T_L: number of steps."""
        return self.choices.graph.steps

    def split(self, pieces: int) -> Shares:
        """Round all parts to whole pieces, as theorem 20."""
        graph = self.choices.graph
        slot_of = {int(link): slot for row in graph.link for slot, link in enumerate(row.tolist()) if link >= 0}
        rows: list[tuple[int, int, int, int, int, int]] = []
        for (v, u), links in self.choices.over.items():
            step, start = int(graph.distance[u, v]) - 1, 0
            for e, count in zip(links, rounded([self.parts[v, e] for e in links], pieces), strict=True):
                if count:
                    rows.append((u, v, slot_of[e], step, start, start + count))
                    start += count
        return Shares(graph, pieces, *np.array(rows, dtype=np.int64).T)

    def time_of(self, shares: Shares) -> Fraction:
        """T_B of shares."""
        return shares.bandwidth_time()

    def metrics(self, time: Fraction, relaxed: Fraction) -> dict[str, Any]:
        """T_B as text, such as ``"14/15"``."""
        del relaxed
        return {"T_B": str(time)}


def step_time(choices: Choices, load: Mapping[tuple[int, int], Fraction]) -> Fraction:
    """T_B, equation (2), of the loads U of all (u, t)."""
    largest = [Fraction(0)] * choices.graph.steps
    for (_, t), value in load.items():
        largest[t - 1] = max(largest[t - 1], value)
    return Fraction(choices.graph.degree, choices.graph.nodes) * sum(largest)


def rounded(parts: Sequence[float], pieces: int) -> list[int]:
    """Round parts that sum to 1 to whole pieces, each up or down: down, and up those that lose most until none is missing."""
    exact = [part * pieces for part in parts]
    whole = [floor(amount + WHOLE) for amount in exact]
    by_loss = sorted(range(len(parts)), key=lambda i: whole[i] - exact[i])
    for i in by_loss[: pieces - sum(whole)]:
        whole[i] += 1
    return whole


def run_each(
    instance: Instance,
    solver: Solver,
    budget: Budget,
    broadcast: Callable[[Topology, Solve], Broadcast],
    options: Options,
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
