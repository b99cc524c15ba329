"""``bfb``: the best balance of every node and step by theorem 19, and its integer transports, without a linear program.

Only the largest load of a step counts: shards are cut so that these are whole numbers of pieces, and every other node carries the
next whole number of its own load, which is not more.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import ceil, lcm
from typing import Any

import numpy as np

from ...core.budget import Budget
from ...core.instance import Instance
from ...core.method import Outcome
from ...core.schedule import Ints
from ...core.solver import Solver
from ...core.topology import Topology
from .answer import networks, outcome
from .balance import largest_load, loads, transport
from .graph import graph_of
from .jobs import Jobs, Problem, jobs_of
from .options import Options
from .plan import Plan


@dataclass(frozen=True, eq=False)
class Balance:
    """The best breadth-first broadcast of everybody's shard.

    Parameters
    ----------
    jobs : Jobs
        What has to be received.
    """

    jobs: Jobs

    @cached_property
    def load(self) -> list[Fraction]:
        """U of each of the different problems, in shards."""
        return loads(self.jobs.problems)

    @property
    def steps(self) -> int:
        """T_L: number of steps."""
        return self.jobs.steps

    @cached_property
    def step_loads(self) -> tuple[Fraction, ...]:
        """For every step, the largest load of a link, in shards."""
        per_step = self.jobs.problem.reshape(self.jobs.steps, -1)
        return tuple(largest_load([self.jobs.problems[place] for place in np.unique(row).tolist()]) for row in per_step)

    @property
    def time(self) -> Fraction:
        """T_B, equation (2), in M/B."""
        return Fraction(self.jobs.graph.degree, self.jobs.graph.nodes) * sum(self.step_loads)

    @property
    def pieces(self) -> int:
        """Fewest pieces of a shard with which nothing is lost: the least common multiple of the loads' denominators."""
        return lcm(*(load.denominator for load in self.step_loads))

    def plan(self, pieces: int) -> Plan:
        """Give every piece a link such that no link carries more than ``ceil(P U)`` pieces."""
        jobs = self.jobs
        spread = [
            _spread(problem, pieces, ceil(pieces * load))
            for problem, load in zip(jobs.problems, self.load, strict=True)
        ]
        slot = np.concatenate([spread[place] for place in jobs.problem.tolist()])
        return Plan(jobs.graph, pieces, jobs.step, jobs.target, jobs.shard, slot)

    def time_of(self, plan: Plan) -> Fraction:
        """T_B of a plan."""
        return plan.bandwidth_time()

    def metrics(self, time: Fraction, relaxed: Fraction) -> dict[str, Any]:
        """T_B as text, such as ``"14/15"``."""
        del relaxed
        return {"T_B": str(time)}


def balance(topology: Topology) -> Balance:
    """Balance all nodes and steps of a network.

    Parameters
    ----------
    topology : Topology
        Compute nodes alone, links of one bandwidth.

    Raises
    ------
    InputError
        If a node cannot be reached from another one.
    """
    return Balance(jobs_of(graph_of(topology)))


def _spread(problem: Problem, pieces: int, capacity: int) -> Ints:
    """Links of all pieces of a problem, one class of shards after the other."""
    sent, _ = transport(problem, pieces, capacity)
    links = [link for row in sent for link in row]
    return np.repeat(np.array(links, dtype=np.int64), [amount for row in sent for amount in row.values()])


def run(instance: Instance, solver: Solver, budget: Budget, options: Options) -> Outcome:
    """Balance every node and step by theorem 19 (``Method.run``)."""
    del solver
    with budget.clock.phase("balance"):
        found = [balance(network) for network in networks(instance)]
    return outcome(instance, budget, found, schedule=options.schedule)
