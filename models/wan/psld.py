"""``psld``: every site adds up a part of the data, the larger the better its bandwidth.

Of PSLD the MTree paper says that it has many aggregators, whose load is as the measured performance, and that the bandwidth of a pair of sites is
the mean along the way of least latency. The rule for the shares is a guess.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from ...core.budget import Budget
from ...core.instance import Instance
from ...core.method import Outcome
from ...core.schedule import Floats
from ...core.solver import Solver
from ..common.wan.network import Wan
from ..common.wan.ways import Ways, shortest_ways
from .answer import ask, message_outcome
from .messages import Message, schedule
from .options import PsldOptions

#: Parts that the data is cut into; shares are rounded to these.
_PARTS = 2**20


def run(instance: Instance, solver: Solver, budget: Budget, options: PsldOptions) -> Outcome:
    """Measure, share, send (``Method.run``)."""
    del solver
    posed = ask(instance, budget)
    wan, sites = posed.wan, range(posed.wan.nodes)
    with budget.clock.phase("build"):
        ways = shortest_ways(wan, wan.latency_ns)
        units = shares(pair_bandwidth(wan, ways), options)
        pairs = [(one, other) for one in sites for other in sites if one != other]
        found: list[Message] = [(0, server, worker, server, True) for worker, server in pairs]
        found += [(1, server, server, worker, False) for worker, server in pairs]
        answer = schedule(posed, ways, units, found)
    return message_outcome(posed, answer, {"largest_share": max(units) / sum(units)})


def pair_bandwidth(wan: Wan, ways: Ways) -> Floats:
    """Give the mean capacity along the way of least latency between all sites, in units; infinite between a site and itself."""
    found = np.full((wan.nodes, wan.nodes), np.inf)
    for one in range(wan.nodes):
        for other in range(one):
            sites = ways.sites(one, other)
            rates = [int(wan.capacity[ways.link(a, b)]) for a, b in pairwise(sites)]
            found[one, other] = found[other, one] = sum(rates) / len(rates)
    return found


def shares(bandwidth: Floats, options: PsldOptions) -> list[int]:
    """Give every site's share of the data, in whole parts, at least one."""
    sites = len(bandwidth)
    if options.share == "equal":
        return [1] * sites
    off = ~np.eye(sites, dtype=np.bool_)
    measured = bandwidth.min(axis=1) if options.share == "slowest" else (bandwidth.sum(axis=1, where=off) / (sites - 1))
    return [max(1, round(_PARTS * part)) for part in (measured / measured.sum()).tolist()]
