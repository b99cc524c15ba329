"""``plink`` and ``psld``: an all-reduce by whole messages.

Contributions go to one site for each part, and its sum comes back. Both are interpretations of one or two sentences of
the MTree paper; docs/methods/wan-baselines.md separates these from guesses.
"""

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from math import sqrt

import numpy as np

from ...algorithms.trees.network import Wan
from ...algorithms.trees.trees import ShortestPaths, shortest_paths
from ...core.budget import Budget
from ...core.instance import Instance
from ...core.outcome import Outcome
from ...core.schedule import Chunks, Floats, Ints, StepSchedule, sends_from_lists
from ...core.solver import Solver
from ...models.mtree.problem import WanProblem, wan_problem
from .answer import message_outcome
from .method import PlinkOptions, PsldOptions

Message = tuple[int, int, int, int, bool]  #: A message: step, part, source, target, and whether the target adds it.
_PARTS = 2**20  #: Parts that the data is cut into; shares are rounded to these.


def schedule(
    problem: WanProblem, ways: ShortestPaths, units: Sequence[int], messages: Sequence[Message]
) -> StepSchedule:
    """Return messages as a schedule in steps; each follows a shortest path.

    ``units`` are the sizes of the parts in proportion; steps without a message are left out.
    """
    everyone = tuple(range(problem.wan.nodes))
    none = np.zeros(len(units), dtype=np.int64)
    unit = problem.size_bytes / Fraction(sum(units))
    chunks = Chunks(np.array(units, dtype=np.int64), unit, (everyone,), none, none, np.ones(len(units), dtype=np.bool_))
    steps, parts, sources, targets, adds = zip(*sorted(messages), strict=True)
    paths = [path(problem, ways, *ends) for ends in zip(sources, targets, strict=True)]
    sends = sends_from_lists(parts, sources, targets, adds, paths)
    step = np.unique(steps, return_inverse=True)[1].astype(np.int64)
    return StepSchedule(problem.instance.sha256, chunks, sends, step)


def path(problem: WanProblem, ways: ShortestPaths, start: int, end: int) -> list[int]:
    """Return the directed links of the shortest path."""
    wan = problem.wan
    links = [(one, ways.link(one, other)) for one, other in pairwise(ways.sites(start, end))]
    return [int(wan.forth[e] if wan.tail[e] == one else wan.back[e]) for one, e in links]


def run_plink(instance: Instance, solver: Solver, budget: Budget, options: PlinkOptions) -> Outcome:
    """Make groups, choose leaders, send (``Method.run``)."""
    problem = wan_problem(instance, budget)
    wan = problem.wan
    with budget.clock.phase("build"):
        ways = shortest_paths(wan, wan.latency_ns)
        count = min(options.groups or max(1, round(sqrt(wan.nodes))), wan.nodes)
        groups = clusters(ways.reach, count)
        leaders = [median(ways.reach, group) for group in groups]
        top = median(ways.reach, leaders)
        messages = leader_messages(groups, leaders, top)
        answer = schedule(problem, ways, [1], messages)
    metrics = {"groups": len(groups), "leaders": [wan.names[site] for site in leaders], "root": wan.names[top]}
    return message_outcome(problem, answer, metrics)


def clusters(distance: Ints, count: int) -> list[list[int]]:
    """Group sites by complete linkage: the two groups whose farthest members are nearest are joined."""
    from scipy.cluster.hierarchy import cut_tree, linkage
    from scipy.spatial.distance import squareform

    if count == len(distance):
        return [[site] for site in range(count)]
    label = cut_tree(linkage(squareform(distance.astype(np.float64)), "complete"), n_clusters=[count]).ravel()
    return [np.flatnonzero(label == group).tolist() for group in range(count)]


def median(distance: Ints, sites: Sequence[int]) -> int:
    """Return the site with the least sum of distances to the others, the first of several."""
    among = np.array(sites)
    return int(among[distance[np.ix_(among, among)].sum(axis=0).argmin()])


def leader_messages(groups: Sequence[Sequence[int]], leaders: Sequence[int], top: int) -> list[Message]:
    """Members to leaders, leaders to their own leader, and back."""
    messages: list[Message] = []
    for group, leader in zip(groups, leaders, strict=True):
        members = [site for site in group if site != leader]
        messages += [(0, 0, site, leader, True) for site in members]
        messages += [(3, 0, leader, site, False) for site in members]
        if leader != top:
            messages += [(1, 0, leader, top, True), (2, 0, top, leader, False)]
    return messages


def run_psld(instance: Instance, solver: Solver, budget: Budget, options: PsldOptions) -> Outcome:
    """Measure, share, send (``Method.run``)."""
    problem = wan_problem(instance, budget)
    wan, sites = problem.wan, range(problem.wan.nodes)
    with budget.clock.phase("build"):
        ways = shortest_paths(wan, wan.latency_ns)
        units = shares(pair_bandwidth(wan, ways), options)
        pairs = [(one, other) for one in sites for other in sites if one != other]
        messages: list[Message] = [(0, server, worker, server, True) for worker, server in pairs]
        messages += [(1, server, server, worker, False) for worker, server in pairs]
        answer = schedule(problem, ways, units, messages)
    return message_outcome(problem, answer, {"largest_share": max(units) / sum(units)})


def pair_bandwidth(wan: Wan, ways: ShortestPaths) -> Floats:
    """Mean capacity along the path of least latency between all sites, in units; infinite from a site to itself."""
    table = np.full((wan.nodes, wan.nodes), np.inf)
    for one in range(wan.nodes):
        for other in range(one):
            sites = ways.sites(one, other)
            rates = [int(wan.capacity[ways.link(a, b)]) for a, b in pairwise(sites)]
            table[one, other] = table[other, one] = sum(rates) / len(rates)
    return table


def shares(bandwidth: Floats, options: PsldOptions) -> list[int]:
    """Return every site's share of the data, in whole parts, at least one."""
    sites = len(bandwidth)
    if options.share == "equal":
        return [1] * sites
    off = ~np.eye(sites, dtype=np.bool_)
    measured = bandwidth.min(axis=1) if options.share == "slowest" else (bandwidth.sum(axis=1, where=off) / (sites - 1))
    return [max(1, round(_PARTS * part)) for part in (measured / measured.sum()).tolist()]
