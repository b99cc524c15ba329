"""``bfb-chunked``: program (13), which cuts every shard into P pieces, or the relaxation rounded as in theorem 20.

P is the demand's number of chunks. The program is a transport, so that its optimum has a formula: the relaxation's, rounded up,
``W_{u,t} = ceil(P U_{u,t})``, which ``bfb`` attains. Hence T_B is less than ``D d / (P N)`` above that of the relaxation, where
theorem 20 has ``d (d^D - 1) / ((d - 1) P N)``.
"""

from __future__ import annotations

from fractions import Fraction

from ...core.budget import Budget
from ...core.instance import Instance
from ...core.method import Outcome
from ...core.solver import Solver
from ...core.topology import Topology
from .answer import networks, posed
from .choices import choices_of
from .fast import Balance, balance
from .formulation import build_chunked, build_lp
from .lp import read
from .options import ChunkedOptions
from .solved import Solve, Solved, run_each, step_time


def run(instance: Instance, solver: Solver, budget: Budget, options: ChunkedOptions) -> Outcome:
    """Solve program (13) of all nodes and steps, or round its relaxation (``Method.run``)."""
    pieces = posed(instance)[1].chunks

    def program(network: Topology, solve: Solve) -> Solved:
        with budget.clock.phase("build"):
            choices = choices_of(network)
            model = build_chunked(choices, pieces)
        solve(model)
        load = {index: Fraction(round(W.value), pieces) for index, W in model.W.items()}
        parts = {index: y.value / pieces for index, y in model.y.items()}
        return Solved(choices, parts, pieces, step_time(choices, load))

    def rounding(network: Topology, solve: Solve) -> Solved:
        with budget.clock.phase("build"):
            choices = choices_of(network)
            model = build_lp(choices)
        solve(model)
        relaxed = read(choices, model)
        return Solved(choices, relaxed.parts, pieces, relaxed.split(pieces).bandwidth_time())

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
