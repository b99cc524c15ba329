"""From the rates of the linear program to chunks with paths (section 4.1: "the same DFS-like solution")."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from fractions import Fraction
from itertools import pairwise

from .answer import PathFlow
from .epochs import EpochProblem
from .lp_formulation import FluidLayout

#: Parts of a chunk are multiples of this.
GRAIN = 2**40

#: Flow that is taken for a solver's dust.
DUST = 1e-9

#: A way from source to destination: links and epochs, in order.
Way = tuple[tuple[int, int], ...]

Rates = Mapping[tuple[int, int, int], float]


def path_flows(plan: FluidLayout, flow: Rates, kept: Rates, read: Rates) -> list[PathFlow]:
    """Cut every chunk into parts that take one way to each destination.

    What each destination reads is followed back to the source, over the largest rate first, until it is used up. The ways to one
    destination are laid end to end over the chunks that it needs of a source; where a chunk has several destinations, it is cut wherever one of
    them changes the way. A part goes once for each destination, also where two of its ways share a link and an epoch: nothing is copied on the way.

    Parameters
    ----------
    plan : FluidLayout
        Index sets.
    flow, kept, read : mapping
        Values of F, B and R.

    Returns
    -------
    list of PathFlow
        The amounts of each commodity sum to 1 exactly.
    """
    problem = plan.problem
    ways = _ways(plan, dict(flow), dict(kept), dict(read))
    cuts = {pair: _laid_out(found, plan.demand[pair[0]][pair[1]]) for pair, found in ways.items()}
    nth: dict[tuple[int, int], int] = {}
    flows: list[PathFlow] = []
    for q, commodity in enumerate(problem.commodities):
        begin: dict[int, int] = {}
        for target in commodity.targets:
            begin[target] = nth.get((commodity.source, target), 0) * GRAIN
            nth[commodity.source, target] = nth.get((commodity.source, target), 0) + 1
        edges = {0, GRAIN}
        for target, offset in begin.items():
            edges |= {e - offset for e, _ in cuts[commodity.source, target] if 0 < e - offset < GRAIN}
        grid = sorted(edges)
        for left, right in pairwise(grid):
            hops = [
                hop
                for target, offset in begin.items()
                for hop in _way_at(cuts[commodity.source, target], left + offset)
            ]
            flows.append(PathFlow(q, Fraction(right - left, GRAIN), tuple(hops)))
    return flows


def _laid_out(ways: list[tuple[float, Way]], chunks: int) -> list[tuple[int, Way]]:
    """Give the ways with the whole number of grains at which each begins; together they fill all chunks."""
    total, at = sum(amount for amount, _ in ways), 0.0
    found: list[tuple[int, Way]] = []
    for amount, way in ways:
        begin = round(at / total * chunks * GRAIN)
        if not found or begin > found[-1][0]:
            found.append((begin, way))
        else:
            found[-1] = (begin, way)  # the one before is less than a grain
        at += amount
    return found


def _way_at(ways: list[tuple[int, Way]], grain: int) -> Way:
    return ways[bisect_right(ways, grain, key=lambda each: each[0]) - 1][1]


def _ways(
    plan: FluidLayout, flow: dict[tuple[int, int, int], float], kept: dict[tuple[int, int, int], float], read: Rates
) -> dict[tuple[int, int], list[tuple[float, Way]]]:
    """Follow what is read back to the source; uses the rates up."""
    found: dict[tuple[int, int], list[tuple[float, Way]]] = {}
    for (s, d, k), amount in sorted(read.items()):
        left = amount
        while left > DUST:
            part, way = _trace(plan, flow, kept, (s, d, k), left)
            left -= part
            if part <= 0:
                break
            found.setdefault((s, d), []).append((part, way))
    return found


def _trace(
    plan: FluidLayout,
    flow: dict[tuple[int, int, int], float],
    kept: dict[tuple[int, int, int], float],
    end: tuple[int, int, int],
    most: float,
) -> tuple[float, Way]:
    """Find one way back from a destination, and use its smallest rate up."""
    problem: EpochProblem = plan.problem
    s, node, k = end
    steps: list[tuple[dict[tuple[int, int, int], float], tuple[int, int, int]]] = []
    while (node, k) != (s, 0):
        options = [(flow.get(key, 0.0), 1, key) for key in plan.arriving(s, node, k)]
        options.append((kept.get((s, node, k - 1), 0.0), 0, (s, node, k - 1)))
        rate, moves, key = max(options)
        if rate <= 0:
            return 0.0, ()
        steps.append((flow if moves else kept, key))
        node, k = (problem.links[key[1]].source, key[2]) if moves else (node, k - 1)
    part = min([most, *(table[key] for table, key in steps)])
    for table, key in steps:
        table[key] -= part
    return part, tuple((key[1], key[2]) for table, key in reversed(steps) if table is flow)
