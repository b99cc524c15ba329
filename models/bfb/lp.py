"""``bfb-lp``: LP (1) as it stands in the paper, for networks on which a solver can do it.

By theorem 19 every U is a number of shards over a number of links, so that the fraction next to the solver's number is exact. At a vertex of
the program all parts are multiples of 1 over its denominator: whole pieces if shards are cut by the least common multiple of all of them.
"""

from __future__ import annotations

from fractions import Fraction
from math import lcm
from typing import Any

import numpy as np

from ...core.budget import Budget
from ...core.instance import Instance
from ...core.method import Outcome
from ...core.solver import Solver
from ...core.topology import Topology
from .choices import Choices, choices_of
from .formulation import build_lp
from .options import Options
from .solved import Solve, Solved, run_each, step_time


def run(instance: Instance, solver: Solver, budget: Budget, options: Options) -> Outcome:
    """Solve LP (1) of all nodes and steps (``Method.run``)."""

    def broadcast(network: Topology, solve: Solve) -> Solved:
        with budget.clock.phase("build"):
            choices = choices_of(network)
            model = build_lp(choices)
        solve(model)
        return read(choices, model)

    return run_each(instance, solver, budget, broadcast, options)


def read(choices: Choices, model: Any) -> Solved:
    """Read a solved LP (1)."""
    links = np.count_nonzero(choices.graph.link >= 0, axis=1).tolist()
    load = {(u, t): Fraction(U.value).limit_denominator(links[u]) for (u, t), U in model.U.items()}
    parts = {index: x.value for index, x in model.x.items()}
    return Solved(choices, parts, lcm(*(value.denominator for value in load.values())), step_time(choices, load))
