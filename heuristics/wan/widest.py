"""``single-tree`` and ``wan-ring``: the tree, and the ring through all sites, whose slowest link is fastest.

The packing of trees that a ring is, and the search for it: docs/methods/wan-baselines.md.
"""

from dataclasses import replace
from fractions import Fraction
from random import Random
from typing import Any

import numpy as np

from ...algorithms.graphs.network import components
from ...algorithms.trees.helpers import relay_by_helpers
from ...algorithms.trees.network import Wan
from ...algorithms.trees.trees import RatedTrees, lowest_tree, measures_of_rate, widest_tree
from ...core.budget import Budget
from ...core.instance import Instance
from ...core.kernel import kernel
from ...core.outcome import Outcome, Status
from ...core.schedule import Ints
from ...core.solver import Solver
from ...core.trees import TreeKind, TreePacking
from ...models.mtree.problem import WanProblem, wan_problem
from .answer import bound_fields, tree_outcome
from .method import SingleTreeOptions, WanRingOptions

_EXACT = 20  #: Sites up to which every set of them is looked at.
_ROTATIONS = 50  #: Rotations of a path after which another start is tried, for each site.


@relay_by_helpers
def run_single_tree(instance: Instance, solver: Solver, budget: Budget, options: SingleTreeOptions) -> Outcome:
    """Find the tree (``Method.run``)."""
    problem = wan_problem(instance, budget)
    wan = problem.wan
    limit = wan.hops(options.height)
    with budget.clock.phase("one tree"):
        widest = widest_tree(wan, limit)
    if widest is None:
        least, _ = lowest_tree(wan, limit, wan.capacity > 0)
        message = f"no spanning tree has a height of at most {limit.format_height(limit.most)}"
        message += f"; the smallest feasible height is {limit.format_height(least)}"
        return Outcome(Status.INFEASIBLE, message=message)
    rate, tree = widest
    return tree_outcome(problem, RatedTrees(tree[None, :], (Fraction(rate),)))


def run_ring(instance: Instance, solver: Solver, budget: Budget, options: WanRingOptions) -> Outcome:
    """Find the ring (``Method.run``)."""
    problem = wan_problem(instance, budget)
    wan = problem.wan
    with budget.clock.phase("ring"):
        cut = cut_site(wan.nodes, wan.tail, wan.head)
        if cut is not None:
            message = f"no ring passes every site once: without {wan.names[cut]!r} the network falls apart"
            return Outcome(Status.UNSUPPORTED, message=message)
        ring, tests = widest_ring(wan, budget, options)
    if ring is None and wan.nodes <= _EXACT and not budget.is_exhausted:
        message = "no ring passes every site once; all sets of sites were looked at"
        return Outcome(Status.UNSUPPORTED, message=message, iterations=tests)
    if ring is None:
        message = "no ring through every site was found; there may be one, -O tries=... looks longer"
        return Outcome(Status.LIMIT, message=message, iterations=tests, **bound_fields(problem))
    return _ring_outcome(problem, ring, tests)


def widest_ring(wan: Wan, budget: Budget, options: WanRingOptions) -> tuple[list[int] | None, int]:
    """Find the widest ring by bisection; return its sites, and the number of capacities tried.

    On at most 20 sites the answer is exact.
    """
    source = Random(budget.seed)  # noqa: S311 (nothing is secret here)
    values = np.unique(wan.capacity)
    best: list[int] | None = None
    low, high, tests = 0, len(values) - 1, 0
    # All links first: where there is no ring at all, nothing else need be tried.
    middle = 0
    while low <= high and not (tests and budget.is_exhausted):
        tests += 1
        cycle = _ring(wan, wan.capacity >= values[middle], budget, options, source)
        if cycle is None and middle == 0:
            return None, tests
        if cycle is None:
            high = middle - 1
        else:
            best, low = cycle, middle + 1
        middle = (low + high) // 2
    return best, tests


def _ring(wan: Wan, usable: np.ndarray, budget: Budget, options: WanRingOptions, source: Random) -> list[int] | None:
    tail, head = wan.tail[usable], wan.head[usable]
    if np.bincount(np.concatenate([tail, head]), minlength=wan.nodes).min() < 2:
        return None
    if wan.nodes <= _EXACT:
        return exact_cycle(wan.nodes, tail, head)
    for _ in range(options.tries):
        if (cycle := random_cycle(wan.nodes, tail, head, source)) is not None or budget.is_exhausted:
            return cycle
    return None


def _ring_outcome(problem: WanProblem, ring: list[int], tests: int) -> Outcome:
    wan, n = problem.wan, problem.wan.nodes
    order = np.argsort(wan.capacity, kind="stable").tolist()  # the last link of a pair of sites is the fastest
    fastest = {frozenset((int(wan.tail[e]), int(wan.head[e]))): e for e in order}
    links = np.array([fastest[frozenset(pair)] for pair in zip(ring, ring[1:] + ring[:1], strict=True)])
    rate = Fraction(int(wan.capacity[links].min()) * n, n - 1)
    latency = wan.latency_ns[links]
    metrics = {
        **measures_of_rate(wan, rate, problem.ceiling),
        "mean_tree_height": n - 1,
        "max_tree_height": n - 1,
        "max_tree_latency_s": int(latency.sum() - latency.min()) / 1e9,
        "mean_max_fanout": 1,
        "max_fanout": 1,
        "ring": [wan.names[site] for site in ring],
    }
    return Outcome(
        Status.OPTIMAL if rate == problem.ceiling.rate else Status.FEASIBLE,
        ring_packing(problem, ring, links),
        objective=float(problem.seconds(rate)),
        metrics=metrics,
        iterations=tests,
        **bound_fields(problem),
    )


def ring_packing(problem: WanProblem, ring: list[int], links: Ints) -> TreePacking:
    """Return the parts of both directions as trees: paths to their roots, and on around the ring."""
    wan, n = problem.wan, problem.wan.nodes
    there = np.where(wan.tail[links] == ring, wan.forth[links], wan.back[links])
    back = np.where(wan.tail[links] == ring, wan.back[links], wan.forth[links])
    around = np.array(ring, dtype=np.int64)
    step, place = np.arange(n - 1), np.arange(n)[:, None]
    forward, backward = (place + step) % n, (place - step) % n  # of the part that ends at each place
    before, after = (place - step - 1) % n, (place + step + 1) % n
    # Clockwise parts come to their roots from those before them, over the links there, and leave to those after them.
    inward = TreePacking(
        problem.instance.sha256,
        TreeKind.IN,
        np.tile(around, 2),
        np.ones(2 * n, dtype=np.int64),
        problem.size_bytes / (2 * n),
        np.arange(2 * n + 1, dtype=np.int64) * (n - 1),
        around[np.concatenate([backward, forward]).ravel()],
        around[np.concatenate([before, after]).ravel()],
        np.arange(2 * n * (n - 1) + 1, dtype=np.int64),
        np.concatenate([there[before], back[forward]]).ravel(),
    )
    return replace(
        inward,
        kind=TreeKind.BOTH,
        parent=around[np.concatenate([forward, backward]).ravel()],
        child=around[np.concatenate([after, before]).ravel()],
        path_links=np.concatenate([there[forward], back[before]]).ravel(),
        reduction=inward,
    )


def exact_cycle(nodes: int, tail: Ints, head: Ints) -> list[int] | None:
    """Return a cycle through all sites, or None if there is none.

    Held and Karp's recursion: ``ends[S]`` are the sites at which a path can end that begins at site 0 and passes all
    of S, a set of the others.
    """
    near = np.zeros(nodes, dtype=np.int64)
    for a, b in ((tail, head), (head, tail)):
        np.bitwise_or.at(near, a, np.left_shift(1, b))
    ends = path_ends(nodes, near)
    rest = 2 ** (nodes - 1) - 1
    last = int(ends[rest]) << 1 & int(near[0])
    if not last:
        return None
    cycle = [0]
    while last:
        site = last.bit_length() - 1
        cycle.append(site)
        rest ^= 1 << (site - 1)
        last = int(ends[rest]) << 1 & int(near[site])
    return cycle


@kernel
def path_ends(nodes: int, near: Any) -> Any:
    """Return the last sites of paths from site 0 for every set of others (site v: bit v - 1)."""
    ends = np.zeros(2 ** (nodes - 1), np.int32)
    for subset in range(1, len(ends)):
        for v in range(nodes - 1):
            if subset >> v & 1:
                rest = subset ^ (1 << v)
                if ends[rest] & (near[v + 1] >> 1) if rest else near[0] >> (v + 1) & 1:
                    ends[subset] |= 1 << v
    return ends


def random_cycle(nodes: int, tail: Ints, head: Ints, source: Random) -> list[int] | None:
    """Look for a cycle through all sites from one random start (L. Pósa's rotations); None says nothing."""
    near: list[list[int]] = [[] for _ in range(nodes)]
    for a, b in zip(tail.tolist(), head.tolist(), strict=True):
        near[a].append(b)
        near[b].append(a)
    path = [source.randrange(nodes)]
    inside = set(path)
    for _ in range(_ROTATIONS * nodes):
        end = path[-1]
        if len(path) == nodes and path[0] in near[end]:
            return path
        fresh = [site for site in near[end] if site not in inside]
        if fresh:
            path.append(source.choice(fresh))
            inside.add(path[-1])
            continue
        turn = path.index(source.choice(near[end])) + 1
        path[turn:] = path[turn:][::-1]
    return None


def cut_site(nodes: int, tail: Ints, head: Ints) -> int | None:
    """Return a site whose loss disconnects the others, so that no cycle passes all; None if there is none."""
    for site in range(nodes):
        others = (tail != site) & (head != site)
        if (components(nodes, tail[others], head[others]) > 0).sum() > (1 if site else nodes - 1) and nodes > 2:
            return site
    return None
