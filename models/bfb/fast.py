"""``bfb``: the best balance of every node and step by theorem 19, and its integer transports, without a linear program.

Only the largest load of a step counts: shards are cut so that these are whole numbers of pieces, and every other node carries the
next whole number of its own load, which is not more.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from ...core.budget import Budget
from ...core.instance import Instance
from ...core.method import Outcome
from ...core.solver import Solver
from ...core.topology import Topology
from ..common.breadth_first.broadcast import Broadcast
from ..common.breadth_first.graph import graph_of
from ..common.breadth_first.shares import Shares
from .answer import networks, outcome
from .options import Options


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


def run(instance: Instance, solver: Solver, budget: Budget, options: Options) -> Outcome:
    """Balance every node and step by theorem 19 (``Method.run``)."""
    del solver
    with budget.clock.phase("balance"):
        found = [balance(network) for network in networks(instance)]
        budget.progress(" and ".join(f"T_L = {one.steps}, T_B = {one.time}" for one in found))
    return outcome(instance, budget, found, schedule=options.schedule)
