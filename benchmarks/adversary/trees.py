"""Oracles of trees: all spanning trees, arborescences and cuts of a small network, and programs over them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cache
from itertools import combinations, product

from cwb.benchmarks.adversary.lp import Program

Pair = tuple[int, int]
Rates = Mapping[Pair, int | Fraction]


@cache
def spanning_trees(count: int, pairs: tuple[Pair, ...]) -> tuple[tuple[Pair, ...], ...]:
    """All spanning trees of an undirected network."""
    return tuple(tree for tree in combinations(pairs, count - 1) if _spans(count, tree))


def _spans(count: int, tree: Sequence[Pair]) -> bool:
    root = list(range(count))

    def find(a: int) -> int:
        while root[a] != a:
            a = root[a]
        return a

    for a, b in tree:
        if find(a) == find(b):
            return False
        root[find(a)] = find(b)
    return True


@cache
def arborescences(count: int, arcs: tuple[Pair, ...], root: int) -> tuple[tuple[Pair, ...], ...]:
    """All trees of directed links from a root to everybody."""
    into = [[arc for arc in arcs if arc[1] == node] for node in range(count) if node != root]
    return tuple(choice for choice in product(*into) if _reaches(count, root, choice))


def _reaches(count: int, root: int, tree: Sequence[Pair]) -> bool:
    seen = {root}
    for _ in range(count):
        seen |= {b for a, b in tree if a in seen}
    return len(seen) == count


def height(tree: Sequence[Pair], count: int, root: int) -> int:
    """Links from a root to the farthest leaf of an undirected tree."""
    depth = {root: 0}
    while len(depth) < count:
        for a, b in tree:
            for x, y in ((a, b), (b, a)):
                if x in depth and y not in depth:
                    depth[y] = depth[x] + 1
    return max(depth.values())


def plan(
    count: int, rates: Rates, *, most: int | None = None, high: int | None = None, floor: Fraction | int = 0
) -> Fraction | None:
    """Return the largest rate of at most ``most`` undirected trees of limited height and rate; None without any.

    The values of the program are rounded to fractions and checked, so that the rate can be reached whatever the solver
    says.
    """
    pairs = tuple(sorted(pair for pair in rates if pair[0] < pair[1]))
    room = {pair: min(Fraction(rates[pair]), Fraction(rates[pair[::-1]])) for pair in pairs}
    trees = [
        tree
        for tree in spanning_trees(count, pairs)
        if high is None or min(height(tree, count, root) for root in range(count)) <= high
    ]
    limited = most is not None or floor > 0
    program = Program()
    top = float(max(room.values()))
    rate = [program.variable(-1.0) for _ in trees]
    if limited:
        used = [program.variable(0.0, 0.0, 1.0, integer=True) for _ in trees]
        for r, u in zip(rate, used, strict=True):
            program.row({r: 1.0, u: -top}, high=0.0)
            program.row({r: 1.0, u: -float(floor)}, low=0.0)
        if most is not None:
            program.row(dict.fromkeys(used, 1.0), high=float(most))
    for pair in pairs:
        program.row({r: 1.0 for r, tree in zip(rate, trees, strict=True) if pair in tree}, high=float(room[pair]))
    solved = program.solve()
    if solved is None:
        return None
    values = [Fraction(solved[1][r]).limit_denominator(10**4) for r in rate]
    values = [value if value > Fraction(1, 10**6) else Fraction(0) for value in values]
    load_fits = all(
        sum((v for v, tree in zip(values, trees, strict=True) if pair in tree), Fraction(0)) <= room[pair]
        for pair in pairs
    )
    chosen = [value for value in values if value]
    allowed = all(value >= floor for value in chosen) and (most is None or len(chosen) <= most)
    total = sum(values, Fraction(0))
    return total if load_fits and allowed and total else None


def all_reduce_by_pairs(count: int, rates: Rates) -> float | None:
    """Largest rate of an all-reduce by any in-trees and out-trees of the same roots over directed links."""
    arcs = tuple(sorted(rates))
    back = tuple(sorted((b, a) for a, b in arcs))
    program = Program()
    load: dict[Pair, dict[int, float]] = {arc: {} for arc in arcs}
    total: dict[int, float] = {}
    for root in range(count):
        out, into = arborescences(count, arcs, root), arborescences(count, back, root)
        balance: dict[int, float] = {}
        for trees, sign in ((out, 1.0), (into, -1.0)):
            for tree in trees:
                v = program.variable(-1.0 if sign > 0 else 0.0)
                balance[v] = sign
                total[v] = 1.0
                for a, b in tree:
                    load[(a, b) if sign > 0 else (b, a)][v] = 1.0
        program.row(balance, 0.0, 0.0)
    for arc in arcs:
        program.row(load[arc], high=float(rates[arc]))
    solved = program.solve()
    return None if solved is None or solved[0] > -1e-12 else -solved[0]


def gather_rate(count: int, rates: Rates, roots: Mapping[int, Fraction]) -> float | None:
    """Largest x at which trees from every root carry x times its share."""
    arcs = tuple(sorted(rates))
    program = Program()
    x = program.variable(-1.0)
    load: dict[Pair, dict[int, float]] = {arc: {} for arc in arcs}
    for root, share in roots.items():
        carried = {x: -float(share)}
        for tree in arborescences(count, arcs, root):
            v = program.variable()
            carried[v] = 1.0
            for arc in tree:
                load[arc][v] = 1.0
        program.row(carried, 0.0, 0.0)
    for arc in arcs:
        program.row(load[arc], high=float(rates[arc]))
    solved = program.solve()
    return None if solved is None or solved[0] > -1e-12 else -solved[0]


def subsets(count: int) -> Iterator[frozenset[int]]:
    """All sets of nodes but the empty and the full one."""
    for bits in range(1, 2**count - 1):
        yield frozenset(i for i in range(count) if bits >> i & 1)


def gather_cut(count: int, rates: Rates, roots: Mapping[int, Fraction], ranks: Sequence[int]) -> Fraction | None:
    """Largest time that a cut proves of shares that all ranks need; None if one cannot be crossed."""
    best = Fraction(0)
    for inside in subsets(count):
        if all(rank in inside for rank in ranks):
            continue
        share = sum((s for root, s in roots.items() if root in inside), Fraction(0))
        rate = sum((Fraction(r) for (a, b), r in rates.items() if a in inside and b not in inside), Fraction(0))
        if share and not rate:
            return None
        if share:
            best = max(best, share / rate)
    return best
