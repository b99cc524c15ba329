"""``plink``: two levels: sites that are near each other have a leader, and the leaders have one.

Of PLink the MTree paper says that it groups nodes by latency in two levels; the rest is a guess, and a harsh one: every member sends its
whole vector to its leader, where PLink itself is known to spread the work over the members of a group.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

import numpy as np

from ...core.budget import Budget
from ...core.instance import Instance
from ...core.method import Outcome
from ...core.schedule import Ints
from ...core.solver import Solver
from ..common.wan.ways import shortest_ways
from .answer import ask, message_outcome
from .messages import Message, schedule
from .options import PlinkOptions


def run(instance: Instance, solver: Solver, budget: Budget, options: PlinkOptions) -> Outcome:
    """Make groups, choose leaders, send (``Method.run``)."""
    del solver
    posed = ask(instance, budget)
    wan = posed.wan
    with budget.clock.phase("build"):
        ways = shortest_ways(wan, wan.latency_ns)
        count = min(options.groups or max(1, round(sqrt(wan.nodes))), wan.nodes)
        groups = clusters(ways.reach, count)
        leaders = [median(ways.reach, group) for group in groups]
        top = median(ways.reach, leaders)
        found = messages(groups, leaders, top)
        answer = schedule(posed, ways, [1], found)
    metrics = {
        "groups": len(groups),
        "leaders": [wan.names[site] for site in leaders],
        "root": wan.names[top],
    }
    return message_outcome(posed, answer, metrics)


def clusters(distance: Ints, count: int) -> list[list[int]]:
    """Group sites by complete linkage: always the two groups whose farthest members are nearest become one, until there are so many."""
    from scipy.cluster.hierarchy import cut_tree, linkage
    from scipy.spatial.distance import squareform

    if count == len(distance):
        return [[site] for site in range(count)]
    label = cut_tree(linkage(squareform(distance.astype(np.float64)), "complete"), n_clusters=[count]).ravel()
    return [np.flatnonzero(label == group).tolist() for group in range(count)]


def median(distance: Ints, sites: Sequence[int]) -> int:
    """Give the site with the least sum of distances to the others, the first of several."""
    among = np.array(sites)
    return int(among[distance[np.ix_(among, among)].sum(axis=0).argmin()])


def messages(groups: Sequence[Sequence[int]], leaders: Sequence[int], top: int) -> list[Message]:
    """Members to leaders, leaders to their own leader, and back."""
    found: list[Message] = []
    for group, leader in zip(groups, leaders, strict=True):
        members = [site for site in group if site != leader]
        found += [(0, 0, site, leader, True) for site in members]
        found += [(3, 0, leader, site, False) for site in members]
        if leader != top:
            found += [(1, 0, leader, top, True), (2, 0, top, leader, False)]
    return found
