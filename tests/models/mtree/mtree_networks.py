"""Small random networks, and answers found by trying everything."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from random import Random

from cwb.algorithms.trees.network import to_wan
from cwb.core.collective import Collective, Demand
from cwb.core.instance import Instance
from cwb.core.topology import Link, Node, Topology
from cwb.harness import Request, run
from cwb.instances import load


def instance(nodes, edges, size=10**9):
    """An all-reduce among sites; edges are (one, other, Mb/s, ms), the same both ways."""
    links = []
    for one, other, rate, latency in edges:
        for a, b in ((one, other), (other, one)):
            links.append(Link(str(a), str(b), Fraction(rate * 10**6, 8), Fraction(latency, 1000)))
    topology = Topology(tuple(Node(str(i)) for i in range(nodes)), tuple(links))
    return Instance("small", topology, Demand(Collective.ALL_REDUCE, Fraction(size)))


def random_edges(nodes, more, seed, largest=9):
    """A random tree and further links, some parallel."""
    source = Random(seed)  # noqa: S311
    edges = [(source.randrange(i), i, source.randint(1, largest), source.randint(1, 9)) for i in range(1, nodes)]
    for _ in range(more):
        one, other = source.sample(range(nodes), 2)
        edges.append((one, other, source.randint(1, largest), source.randint(1, 9)))
    return edges


def small(seed):
    """A random network of five or six sites, and what trees see of it."""
    nodes = 5 + seed % 2
    edges = random_edges(nodes, 3 + seed % 3, seed)
    return nodes, edges, to_wan(instance(nodes, edges))


def one_way_links(nodes, links):
    """An all-reduce of 1 GB; links are (from, to, MB/s)."""
    topology = Topology(
        tuple(Node(str(v)) for v in range(nodes)),
        tuple(Link(str(a), str(b), Fraction(rate * 10**6), Fraction(1, 1000)) for a, b, rate in links),
    )
    return Instance("unequal", topology, Demand(Collective.ALL_REDUCE, Fraction(10**9)))


def solve(asked, model="mtree", seed=0, **options):
    """Run a method on an instance or a named network, by default with an all-reduce of 1 GB."""
    loaded = load(asked) if isinstance(asked, str) else asked
    if loaded.demand is None:
        loaded = loaded.with_changes(demand=Demand(Collective.ALL_REDUCE, Fraction(10**9)))
    return run(loaded, Request(model, options=options, seed=seed))


def rate(done):
    """Rate of a run in Mb/s."""
    return done.record.metrics["allreduce_rate_Bps"] * 8e-6


def all_trees(nodes, edges):
    """Every spanning tree, as links."""
    return [chosen for chosen in combinations(range(len(edges)), nodes - 1) if spans(nodes, edges, chosen)]


def spans(nodes, edges, chosen):
    """Check if links connect all sites."""
    return len(site_distances(0, edges, chosen)) == nodes


def site_distances(start, edges, chosen, weights=None):
    """Distance of every site that some links of a tree lead to."""
    far, grew = {start: 0}, True
    while grew:
        grew = False
        for e in chosen:
            for a, b in (edges[e][:2], edges[e][1::-1]):
                if a in far and b not in far:
                    far[b], grew = far[a] + (1 if weights is None else weights[e]), True
    return far


def height(nodes, edges, tree, weights=None):
    """Height of a tree from its best root."""
    return min(max(site_distances(root, edges, tree, weights).values()) for root in range(nodes))


def best_rate(edges, trees):
    """Largest sum of rates of some trees, by a linear program of its own."""
    from scipy.optimize import linprog

    users = [[1.0 if e in tree else 0.0 for tree in trees] for e in range(len(edges))]
    found = linprog([-1.0] * len(trees), A_ub=users, b_ub=[edge[2] for edge in edges])
    return -found.fun


def best_few(edges, trees, most):
    """Largest sum of rates of at most so many trees: every choice is tried whose links let it be better."""
    alone = {tree: min(edges[e][2] for e in tree) for tree in trees}

    def at_most(chosen):
        """The rates of trees that have all links for themselves, and the capacity of a link that all of them need."""
        common = set.intersection(*map(set, chosen))
        return min([sum(alone[tree] for tree in chosen), *(edges[e][2] for e in common)])

    best = 0.0
    for bound, chosen in sorted(
        ((at_most(few), few) for few in combinations(trees, min(most, len(trees)))), reverse=True
    ):
        if bound <= best:
            break
        best = max(best, best_rate(edges, chosen))
    return best


def best_of_rates(edges, trees, most, floor):
    """Largest sum of rates of at most so many trees, each of at least a rate: a mixed-integer program of its own, of
    one row a link."""
    import numpy as np
    from scipy.optimize import Bounds, LinearConstraint, milp

    trees = [tree for tree in trees if min(edges[e][2] for e in tree) >= floor]
    count, one = len(trees), np.eye(len(trees))
    users = np.array([[1.0 if e in tree else 0.0 for tree in trees] for e in range(len(edges))]).reshape(-1, count)
    capacity = [edge[2] for edge in edges]
    rows = [
        LinearConstraint(np.hstack([users, 0 * users]), ub=capacity),
        LinearConstraint(np.hstack([one, -max(capacity) * one]), ub=0),
        LinearConstraint(np.hstack([-one, float(floor) * one]), ub=0),
        LinearConstraint(np.r_[np.zeros(count), np.ones(count)], ub=most or count),
    ]
    cost, integers = np.r_[-np.ones(count), np.zeros(count)], np.r_[np.zeros(count), np.ones(count)]
    bounds = Bounds(0, np.r_[np.full(count, np.inf), np.ones(count)])
    for presolve in (True, False):  # HiGHS's presolve fails on some of these programs
        found = milp(cost, constraints=rows, integrality=integers, bounds=bounds, options={"presolve": presolve})
        if found.status == 0:
            break
    return -found.fun
