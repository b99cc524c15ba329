"""Trees over wide-area networks with parallel links whose bandwidths, latencies and directions differ.

The oracle lists every spanning tree with every choice of a link there and a link back, as the page of ``mtree`` defines
it: as high as the slower one of the two, and no faster than either.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, product
from random import Random
from typing import Any

from cwb.benchmarks.adversary import client
from cwb.benchmarks.adversary.campaigns.wan import METHODS, SIZE
from cwb.benchmarks.adversary.fault import Campaign, Fault, count_comparisons
from cwb.benchmarks.adversary.lp import Program
from cwb.benchmarks.adversary.networks import Data, connected_pairs, instance, rng

#: Number of the defect that this campaign has found.
DEFECT = 29

#: Trees of the oracle; a network with more is left out.
MOST = 900


@dataclass(frozen=True)
class Link:
    """A directed link: its ends, MB/s, and milliseconds."""

    source: int
    target: int
    rate: int
    late: int


@dataclass(frozen=True)
class Tree:
    """A spanning tree: its directed links, its rate and its least height, in links and in milliseconds."""

    links: tuple[int, ...]
    rate: int
    hops: int
    late: int


def network(random: Random) -> tuple[int, list[Link]]:
    """Two to four sites; most pairs have one to three links each way."""
    count = random.choice((2, 2, 3, 3, 4))
    links = []
    for a, b in connected_pairs(random, count, random.randrange(2)):
        for one, other in ((a, b), (b, a)):
            for _ in range(random.choice((1, 1, 2, 3) if count < 4 else (1, 1, 2))):
                links.append(Link(one, other, random.randint(1, 9), random.randint(0, 30)))
    random.shuffle(links)
    return count, links


def data_of(count: int, links: Sequence[Link]) -> Data:
    """Data of the instance file."""
    arcs = [(str(e.source), str(e.target), f"{e.rate} MB/s", f"{e.late} ms") for e in links]
    return instance([str(i) for i in range(count)], arcs, "all_reduce", "1 GB")


def all_trees(count: int, links: Sequence[Link]) -> Iterator[Tree]:
    """Every choice of pairs of sites that joins all, of a link there and of one back."""
    between: dict[tuple[int, int], list[int]] = {}
    for index, link in enumerate(links):
        between.setdefault((link.source, link.target), []).append(index)
    joined = [(a, b) for a, b in between if a < b and (b, a) in between]
    for pairs in combinations(joined, count - 1):
        if _far(count, [(a, b, 1) for a, b in pairs]) is None:
            continue
        for choice in product(*(product(between[a, b], between[b, a]) for a, b in pairs)):
            edges = [(a, b, max(links[i].late, links[j].late)) for (a, b), (i, j) in zip(pairs, choice, strict=True)]
            used = tuple(e for both in choice for e in both)
            hops, late = _far(count, [(a, b, 1) for a, b in pairs]), _far(count, edges)
            yield Tree(used, min(links[e].rate for e in used), hops or 0, late or 0)


def _far(count: int, edges: Sequence[tuple[int, int, int]]) -> int | None:
    """The least over all roots of the longest way to a site; None if sites are apart."""
    best: int | None = None
    for root in range(count):
        far = {root: 0}
        for _ in range(count):
            for a, b, length in edges:
                for x, y in ((a, b), (b, a)):
                    if x in far and y not in far:
                        far[y] = far[x] + length
        if len(far) < count:
            return None
        best = max(far.values()) if best is None else min(best, max(far.values()))
    return best


def best_rate(links: Sequence[Link], trees: Sequence[Tree], most: int | None, floor: int) -> Fraction | None:
    """Largest sum of rates, checked exactly to fit; None if there is no tree, or the sum is no simple fraction."""
    program = Program()
    limited = most is not None or floor > 0
    rate = [program.variable(-1.0, 0.0, float(tree.rate)) for tree in trees]
    used = [program.variable(0.0, 0.0, 1.0, integer=True) for _ in trees] if limited else []
    for r, u, tree in zip(rate, used, trees, strict=False):
        program.row({r: 1.0, u: -float(tree.rate)}, high=0.0)
        program.row({r: 1.0, u: -float(floor)}, low=0.0)
    if most is not None:
        program.row(dict.fromkeys(used, 1.0), high=float(most))
    for index, link in enumerate(links):
        program.row({r: 1.0 for r, tree in zip(rate, trees, strict=True) if index in tree.links}, high=float(link.rate))
    solved = program.solve()
    if solved is None:
        return None
    values = [Fraction(solved[1][r]).limit_denominator(10**4) for r in rate]
    values = [value if value > Fraction(1, 10**6) else Fraction(0) for value in values]
    fits = all(
        sum((v for v, tree in zip(values, trees, strict=True) if e in tree.links), Fraction(0)) <= link.rate
        for e, link in enumerate(links)
    )
    chosen = [value for value in values if value]
    fits = fits and all(value >= floor for value in chosen) and (most is None or len(chosen) <= most)
    return sum(values, Fraction(0)) if fits and chosen else None


def check_method(
    data: Data, links: Sequence[Link], every: Sequence[Tree], name: str, /, *, exact: bool = False, **asked: Any
) -> list[Fault]:
    """Ask a method, and hold it against all trees that respect the limits."""
    height, floor, most = asked.get("height"), asked.get("min_rate"), asked.get("trees")
    least = 0 if floor is None else int(str(floor).split()[0]) if str(floor).endswith("MB/s") else 0
    low = [
        tree
        for tree in every
        if tree.rate >= least
        and (
            height is None or (tree.hops <= height if isinstance(height, int) else tree.late <= int(height.split()[0]))
        )
    ]
    solved = client.solve(data, name, **asked)
    found = client.conduct(solved, DEFECT)
    if solved.refused:
        return [*found, Fault("rejected", solved.question, solved.refused, "an answer", DEFECT)]
    if not low:
        return found + client.claims(solved, None, "no tree of all is low and fast enough", DEFECT)
    rate = best_rate(links, low, most, least)
    if rate is None:  # not a simple number
        return found
    best = Fraction(SIZE) / (rate * 10**6)
    found += client.claims(solved, best, "all trees with all links", DEFECT)
    if exact:
        count_comparisons(solved.has_answer)
        found += client.impossible(solved, best, "all trees with all links", DEFECT)
        if solved.has_answer and solved.record.objective > float(best) * (1 + 1e-5):
            known = f"{float(best)!r} by all trees with all links"
            found.append(Fault("tree is missed", solved.question, solved.outcome_text, known, DEFECT))
    return found


def case(seed: int) -> list[Fault]:
    """A random network, all limits of ``mtree`` and some of the others, and a repair of its plan."""
    random = rng("parallel", seed)
    count, links = network(random)
    trees = list(all_trees(count, links))
    if len(trees) > MOST:
        return []
    data, found = data_of(count, links), []
    for _ in range(2):
        limits: dict[str, Any] = {}
        if random.random() < 0.6:
            limits["height"] = random.choice((1, 2, *(f"{random.randint(1, 60)} ms" for _ in range(4))))
        if random.random() < 0.3:
            limits["min_rate"] = f"{random.randint(1, 9)} MB/s"
        if random.random() < 0.3:
            limits["trees"] = random.choice((1, 2, 3))
        found += check_method(data, links, trees, "mtree", exact=True, **limits)
    others = [name for name in METHODS if name not in ("mtree", "wan-ring", "gost")]
    name = random.choice(others)
    found += check_method(data, links, trees, name, **{k: v for k, v in METHODS[name].items() if k != "trees"})
    low = {"height": f"{random.randint(1, 60)} ms", "min_rate": f"{random.randint(1, 9)} MB/s"}
    found += check_method(data, links, trees, "gost", **low)
    found += check_method(data, links, trees, "single-tree", height=random.randint(1, 2))
    return found + check_repair(data, links, trees, random)


def check_repair(data: Data, links: Sequence[Link], trees: Sequence[Tree], random: Random) -> list[Fault]:
    """Repair a plan of a few trees, written with the links both ways, among which any of all trees may be added."""
    between: dict[tuple[int, int], list[int]] = {}
    for index, link in enumerate(links):
        between.setdefault((link.source, link.target), []).append(index)

    def tree_data(tree: Tree) -> dict[str, Any]:
        ways = zip(tree.links[::2], tree.links[1::2], strict=True)
        ends = [(links[i].source, links[i].target, i, j) for i, j in ways]
        rows = [[str(a), str(b), between[a, b].index(i), between[b, a].index(j)] for a, b, i, j in ends]
        return {"links": rows, "units": 1, "root": "0"}

    old = random.sample(trees, min(len(trees), random.randint(1, 3)))
    asked: dict[str, Any] = {"previous": [tree_data(tree) for tree in old], "new_trees": 0, "resolve": False}
    solved = client.solve(data, "mtree-repair", **asked)
    found = client.conduct(solved, DEFECT)
    if solved.refused:
        return [*found, Fault("rejected", solved.question, solved.refused, "an answer", DEFECT)]
    rate = best_rate(links, old, None, 0)
    if rate is not None:
        best = Fraction(SIZE) / (rate * 10**6)
        found += client.claims(solved, best, "the old trees", DEFECT)
        found += client.impossible(solved, best, "the old trees", DEFECT)
        count_comparisons()
        if not solved.has_answer or solved.record.objective > float(best) * (1 + 1e-5):
            found.append(Fault("tree is missed", solved.question, solved.outcome_text, repr(float(best)), DEFECT))
    return found


CAMPAIGNS = (
    Campaign("parallel", "all spanning trees with every choice of links", case, range(3), 400, cpu_s=120, batch=8),
)
