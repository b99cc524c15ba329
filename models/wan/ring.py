"""``wan-ring``: the ring through all sites whose slowest link is fastest.

A ring all-reduce is a packing of trees: of n parts for each of the two directions, part i is added up around the ring, ends at site i and
goes around once more. Every link carries ``(n - 1) / n`` of the data each way, so the rate is ``b n / (n - 1)`` where b is the slowest link's.
"""

from __future__ import annotations

from fractions import Fraction
from random import Random

import numpy as np

from ...core.budget import Budget
from ...core.instance import Instance
from ...core.method import Outcome, Status
from ...core.schedule import Ints
from ...core.solver import Solver
from ...core.trees import TreeKind, TreePacking
from ..common.wan.measures import measures_of_rate
from ..common.wan.network import Wan
from .answer import Posed, ask
from .cycles import EXACT, cut_site, exact_cycle, random_cycle
from .options import WanRingOptions


def run(instance: Instance, solver: Solver, budget: Budget, options: WanRingOptions) -> Outcome:
    """Find the ring (``Method.run``)."""
    del solver
    posed = ask(instance, budget)
    wan = posed.wan
    with budget.clock.phase("ring"):
        cut = cut_site(wan.nodes, wan.tail, wan.head)
        if cut is not None:
            message = f"no ring passes every site once: without {wan.names[cut]!r} the network falls apart"
            return Outcome(Status.UNSUPPORTED, message=message)
        ring, tests = widest_ring(wan, budget, options)
    if ring is None and wan.nodes <= EXACT and not budget.exhausted:
        message = "no ring passes every site once; all sets of sites were looked at"
        return Outcome(Status.UNSUPPORTED, message=message, iterations=tests)
    if ring is None:
        message = "no ring through every site was found; there may be one, -O tries=... looks longer"
        return Outcome(Status.LIMIT, message=message, iterations=tests, **posed.proved)
    return _outcome(posed, ring, tests)


def widest_ring(wan: Wan, budget: Budget, options: WanRingOptions) -> tuple[list[int] | None, int]:
    """Look for a ring among links of at least a capacity, by bisection; sites in order, and how many capacities were tried.

    On at most 20 sites the answer is exact.
    """
    source = Random(budget.seed)  # noqa: S311 (nothing is secret here)
    values = np.unique(wan.capacity)
    best: list[int] | None = None
    low, high, tests = 0, len(values) - 1, 0
    # All links first: where there is no ring at all, nothing else need be tried.
    middle = 0
    while low <= high and not (tests and budget.exhausted):
        tests += 1
        found = _ring(wan, wan.capacity >= values[middle], budget, options, source)
        if found is None and middle == 0:
            return None, tests
        if found is None:
            high = middle - 1
        else:
            best, low = found, middle + 1
        middle = (low + high) // 2
    return best, tests


def _ring(wan: Wan, usable: np.ndarray, budget: Budget, options: WanRingOptions, source: Random) -> list[int] | None:
    """Look for a ring among some links."""
    tail, head = wan.tail[usable], wan.head[usable]
    if np.bincount(np.concatenate([tail, head]), minlength=wan.nodes).min() < 2:
        return None
    if wan.nodes <= EXACT:
        return exact_cycle(wan.nodes, tail, head)
    for _ in range(options.tries):
        if (found := random_cycle(wan.nodes, tail, head, source)) is not None or budget.exhausted:
            return found
    return None


def _outcome(posed: Posed, ring: list[int], tests: int) -> Outcome:
    """Give the outcome of a run that has found a ring."""
    wan, n = posed.wan, posed.wan.nodes
    links = ring_links(wan, ring)
    rate = Fraction(int(wan.capacity[links].min()) * n, n - 1)
    latency = wan.latency_ns[links]
    metrics = {
        **measures_of_rate(wan, rate, posed.highest),
        "mean_tree_height": n - 1,
        "max_tree_height": n - 1,
        "max_tree_latency_s": int(latency.sum() - latency.min()) / 1e9,
        "mean_max_fanout": 1,
        "max_fanout": 1,
        "ring": [wan.names[site] for site in ring],
    }
    return Outcome(
        Status.OPTIMAL if rate == posed.highest.rate else Status.FEASIBLE,
        ring_packing(posed, ring, links),
        objective=float(posed.size_bytes / (rate * wan.unit_Bps)),
        metrics=metrics,
        iterations=tests,
        **posed.proved,
    )


def ring_links(wan: Wan, ring: list[int]) -> Ints:
    """Give the fastest link from each site of a ring to the next one."""
    fastest: dict[frozenset[int], int] = {}
    for e in np.argsort(wan.capacity, kind="stable").tolist():
        fastest[frozenset((int(wan.tail[e]), int(wan.head[e])))] = e
    return np.array([fastest[frozenset(pair)] for pair in zip(ring, ring[1:] + ring[:1], strict=True)])


def ring_packing(posed: Posed, ring: list[int], links: Ints) -> TreePacking:
    """Give the parts of both directions as trees: paths to their roots, and on around the ring."""
    wan, n = posed.wan, posed.wan.nodes
    there = np.where(wan.tail[links] == ring, wan.forth[links], wan.back[links])
    back = np.where(wan.tail[links] == ring, wan.back[links], wan.forth[links])
    around = np.array(ring, dtype=np.int64)
    step, place = np.arange(n - 1), np.arange(n)[:, None]
    forward, backward = (place + step) % n, (place - step) % n  # of the part that ends at each place
    before, after = (place - step - 1) % n, (place + step + 1) % n
    # Clockwise parts come to their roots from those before them, over the links there, and leave to those after them.
    out = _trees(around, [(forward, after), (backward, before)], [there[forward], back[before]])
    into = _trees(around, [(backward, before), (forward, after)], [there[before], back[forward]])
    size = posed.size_bytes / (2 * n)

    def packing(kind: TreeKind, edges: tuple[Ints, Ints, Ints], reduction: TreePacking | None) -> TreePacking:
        parent, child, path = edges
        return TreePacking(
            posed.instance.sha256,
            kind,
            np.tile(around, 2),
            np.ones(2 * n, dtype=np.int64),
            size,
            np.arange(2 * n + 1, dtype=np.int64) * (n - 1),
            parent,
            child,
            np.arange(len(parent) + 1, dtype=np.int64),
            path,
            reduction,
        )

    return packing(TreeKind.BOTH, out, packing(TreeKind.IN, into, None))


def _trees(around: Ints, places: list[tuple[Ints, Ints]], paths: list[Ints]) -> tuple[Ints, Ints, Ints]:
    """Put the edges of both directions together: parents, children and links."""
    parent = np.concatenate([around[one].ravel() for one, _ in places])
    child = np.concatenate([around[other].ravel() for _, other in places])
    return parent, child, np.concatenate([path.ravel() for path in paths]).astype(np.int64)
