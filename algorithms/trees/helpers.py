"""Process groups on networks of sites: methods of spanning trees, with sites outside the group that only relay.

A method joins all sites that it is given. So it is given the group alone, and the group with helpers: first all sites
that can be reached, then those through which its trees relay, until these stay the same. Trees lose what leads to
helpers alone, and the best packing is the answer. Its bound holds for any schedule of the group.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import wraps
from itertools import pairwise
from typing import Any

import numpy as np

from ...core.budget import Budget, ignore
from ...core.errors import InputError, Unsupported
from ...core.instance import Instance
from ...core.outcome import Outcome, Status
from ...core.schedule import offsets
from ...core.topology import Topology
from ...core.trees import TreeKind, TreePacking
from ..bounds.schedule_bounds import Bound, best_bound, partition_bound

Run = Callable[[Instance, Any, Budget, Any], Outcome]  #: ``Method.run``.
Edge = tuple[int, int, int, int]  #: Two sites, and the links from the first to the second and back.

_ROUNDS = 4  #: Sets of helpers that are tried.


def relay_by_helpers(run: Run) -> Run:
    """Let a method that joins all sites by trees serve a process group, for which other sites may relay."""

    @wraps(run)
    def run_group(instance: Instance, solver: Any, budget: Budget, options: Any) -> Outcome:
        demand = instance.demand
        if demand is None or demand.is_of_all(instance.npus):
            return run(instance, solver, budget, options)
        bound, certificate = group_bound(instance)
        budget.tell_bound(bound, certificate)
        group, best, last = set(demand.group(instance.npus)), None, Outcome(Status.LIMIT, message="the time is over")
        sites = group | _nearest(instance.topology, sorted(group)[:1]).keys()
        attempts, quiet = list[set[int]](), replace(budget, tell=ignore)  # incumbents would be trees of other networks
        for rounds in range(_ROUNDS, 0, -1):
            if sites in attempts or budget.is_exhausted:
                break
            attempts.append(sites)
            try:
                last = run(sites_alone(instance, sites), solver, quiet.part(1 / rounds), options)
            except (InputError, Unsupported) as error:  # not joined; the reason of all sites says more
                last = Outcome(Status.LIMIT, message=last.message if attempts[1:] else str(error))
            if isinstance(last.answer, TreePacking):
                answer = trees_of_group(instance, last.answer, sorted(sites))
                seconds, most = flow_time(instance.topology, answer), getattr(options, "height", None)
                if isinstance(most, int | Fraction) and height_of(instance.topology, answer, most) > most:
                    last = replace(last, message="with a root in the group, trees that were found are higher")
                elif best is None or seconds < best[0]:
                    best = seconds, answer
                sites = group | {*answer.parent.tolist(), *answer.child.tolist()}
            if sites in attempts:
                sites = group
        proof: dict[str, Any] = {"bound": float(bound), "certificate": certificate, "metrics": {}}
        if best is None:
            return replace(last, status=Status.LIMIT, objective=None, **proof)
        seconds, answer = best
        helpers = {*answer.parent.tolist(), *answer.child.tolist()} - group
        proof["metrics"] = {"allreduce_rate_Bps": float(demand.size_bytes / seconds), "helpers": len(helpers)}
        status = Status.OPTIMAL if seconds == bound else Status.FEASIBLE
        return replace(last, status=status, answer=answer, objective=float(seconds), message="", **proof)

    return run_group


def group_bound(instance: Instance) -> Bound:
    """Bound a group by single ranks, and by parts of a member and the helpers nearest to it."""
    topology, members = instance.topology, instance.demands[0].group(instance.npus)
    part_of = _nearest(topology, members)
    parts = [[site for site, member in part_of.items() if member == own] for own in members]
    parts += [[site] for site in range(instance.npus) if site not in part_of]
    return max(best_bound(instance, flow=True), partition_bound(instance, parts), key=lambda bound: bound[0])


def _nearest(topology: Topology, members: Sequence[int]) -> dict[int, int]:
    """Map sites that members reach by two-way links to the member with the fewest on the way."""
    near = defaultdict[int, list[int]](list)
    for a, b in set(topology.link_ends) & {(b, a) for a, b in topology.link_ends}:
        near[a].append(b)
    nearest, reached = {member: member for member in members}, list(members)
    for site in reached:  # grows
        for other in sorted(near[site]):
            if other not in nearest:
                nearest[other] = nearest[site]
                reached.append(other)
    return nearest


def sites_alone(instance: Instance, sites: Collection[int]) -> Instance:
    """Return the all-reduce of some sites on the network of these alone."""
    topology = instance.topology
    nodes = tuple(topology.nodes[site] for site in sorted(sites))
    links = tuple(topology.links[link] for link in _links_between(topology, sites))
    demand = replace(instance.demands[0], ranks=None)
    return instance.with_changes(network=Topology(nodes, links), demand=demand)


def _links_between(topology: Topology, sites: Collection[int]) -> list[int]:
    return [link for link, (a, b) in enumerate(topology.link_ends) if a in sites and b in sites]


def trees_of_group(instance: Instance, trees: TreePacking, sites: list[int]) -> TreePacking:
    """Return the trees of a network of some sites on the whole one, with helpers only where they relay.

    Every tree has the member of the group as its root from which it has the fewest levels.
    """
    group = set(instance.demands[0].group(instance.npus))
    links, (back, forth) = _links_between(instance.topology, set(sites)), trees.passes
    forest, roots = list[list[Edge]](), list[int]()
    for begin, end in pairwise(trees.edge_offset.tolist()):
        columns = forth.parent, forth.child, forth.path_links, back.path_links
        rows = zip(*(each[begin:end].tolist() for each in columns), strict=True)
        edges = [(sites[a], sites[b], links[there], links[here]) for a, b, there, here in rows]
        forest.append(_tree_from_member(edges, group))
        roots.append(forest[-1][0][0])
    parent, child, there, here = np.array([edge for tree in forest for edge in tree], dtype=np.int64).reshape(-1, 4).T
    spans: dict[str, Any] = {
        "instance_sha256": instance.sha256,
        "root": np.array(roots, dtype=np.int64),
        "edge_offset": offsets([len(tree) for tree in forest]),
        "parent": parent,
        "child": child,
        "path_offset": np.arange(len(parent) + 1),
    }
    reduction = replace(back, **spans, path_links=here, kind=TreeKind.IN)
    return replace(trees, **spans, path_links=there, reduction=reduction)


def _tree_from_member(edges: list[Edge], group: Collection[int]) -> list[Edge]:
    """Remove leaves outside the group from a tree; return its edges from the member on that makes it lowest."""
    near: dict[int, dict[int, tuple[int, int]]] = {}
    for a, b, there, here in edges:
        near.setdefault(a, {})[b] = there, here
        near.setdefault(b, {})[a] = here, there
    while idle := [site for site, others in near.items() if len(others) == 1 and site not in group]:
        for site in idle:
            for other in near.pop(site):
                del near[other][site]
    walks = [list(_walk(near, member)) for member in sorted(group)]
    lowest = min(walks, key=lambda walk: max(level for *_, level in walk))
    return [(above, site, *near[above][site]) for site, above, _ in lowest[1:]]


def _walk(near: dict[int, dict[int, tuple[int, int]]], root: int) -> Iterator[tuple[int, int, int]]:
    """Yield each site of a tree, the site above it and its level, by levels from the root."""
    reached = [(root, -1, 0)]
    for site, above, level in reached:  # grows
        yield site, above, level
        reached += [(other, site, level + 1) for other in near[site] if other != above]


def height_of(topology: Topology, trees: TreePacking, most: int | Fraction) -> Fraction:
    """Return the largest height, in links if the limit is an integer and in seconds if not."""
    (back, forth), depth = trees.passes, dict[tuple[int, int], Fraction]()
    tree = np.repeat(np.arange(len(trees.root)), np.diff(trees.edge_offset)).tolist()
    columns = (each.tolist() for each in (forth.parent, forth.child, forth.path_links, back.path_links))
    for number, above, site, *ways in zip(tree, *columns, strict=True):
        late = max(topology.links[way].latency_s for way in ways)
        depth[number, site] = depth.get((number, above), Fraction(0)) + (1 if isinstance(most, int) else late)
    return max(depth.values())


def flow_time(topology: Topology, trees: TreePacking) -> Fraction:
    """Return the seconds of the busiest link if all trees reduce and broadcast at once."""
    load = np.zeros(len(topology.links), dtype=object)
    for each in trees.passes:
        np.add.at(load, each.path_links, each.path_units.astype(object))
    links = zip(load.tolist(), topology.links, strict=True)
    return max((units * trees.unit_bytes / link.bandwidth_Bps for units, link in links), default=Fraction(0))
