"""The least steps and bandwidth costs of breadth-first all-gathers on all small regular digraphs.

    python benchmarks/findings/digraphs.py            # some minutes
    python benchmarks/findings/digraphs.py --smoke

Every class of connected digraphs with d links out of and into each node is found from one by switches of two links.
The search is complete: classes times their labellings must add up to the number of labelled digraphs, which is
counted in another way, by the numbers of links that still enter the nodes. Loops and parallel links are left out.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from itertools import combinations, permutations
from math import comb, factorial

from cwb.algorithms.breadth_first.broadcast import Broadcast, graph_of
from cwb.studies.topology_finder.finder import Job, find

SIZES = ((2, range(3, 9)), (3, range(4, 8)), (4, range(5, 8)))
Code = tuple[tuple[int, ...], ...]  #: For every node, the nodes that its links lead to, in order.


def count_labelled(nodes: int, degree: int) -> int:
    """Count digraphs without loops, connected or not, by the links that still enter every node."""

    @cache
    def count(row: int, free: tuple[int, ...]) -> int:
        if row == nodes:
            return 1
        found = 0
        for chosen in combinations([v for v in range(nodes) if v != row and free[v]], degree):
            found += count(row + 1, tuple(free[v] - (v in chosen) for v in range(nodes)))
        return found

    return count(0, (degree,) * nodes)


def count_connected(nodes: int, degree: int) -> int:
    """Count the connected ones: all, less those whose part with node 0 is smaller."""
    parts = (
        comb(nodes - 1, k - 1) * count_connected(k, degree) * count_labelled(nodes - k, degree)
        for k in range(degree + 1, nodes - degree)
    )
    return count_labelled(nodes, degree) - sum(parts)


def canonical(graph: Code) -> tuple[Code, int]:
    """Return the least of all breadth-first codes of a connected digraph, and its number of automorphisms.

    A code numbers nodes in the order of a search, and the unnumbered ones that a node leads to in any order.
    """
    best: list[tuple[int, ...]] = []
    times = 0

    def extend(order: list[int], number: dict[int, int], rows: list[tuple[int, ...]]) -> None:
        nonlocal best, times
        at = len(rows)
        if at == len(graph):
            times = times + 1 if rows == best else 1
            best = rows
            return
        for chosen in permutations([v for v in graph[order[at]] if v not in number]):
            numbers = number | {v: len(order) + i for i, v in enumerate(chosen)}
            prefix = [*rows, tuple(sorted(numbers[v] for v in graph[order[at]]))]
            if not best or prefix <= best[: at + 1]:
                extend([*order, *chosen], numbers, prefix)

    for start in range(len(graph)):
        extend([start], {start: 0}, [])
    return tuple(best), times


def exchange_ends(graph: Code) -> Iterator[Code]:
    """Yield connected digraphs in which two links have exchanged their ends."""
    links = [(a, b) for a, ends in enumerate(graph) for b in ends]
    for (a, b), (c, d) in combinations(links, 2):
        if a != d and c != b and d not in graph[a] and b not in graph[c]:
            rows = list(graph)
            rows[a] = tuple(sorted([d, *(v for v in rows[a] if v != b)]))
            rows[c] = tuple(sorted([b, *(v for v in rows[c] if v != d)]))
            if is_connected(tuple(rows)):
                yield tuple(rows)


def is_connected(graph: Code) -> bool:
    """Check if node 0 reaches all others, and so, since links are balanced, all reach one another."""
    seen, waiting = {0}, [0]
    while waiting:
        new = set(graph[waiting.pop()]) - seen
        seen |= new
        waiting.extend(new)
    return len(seen) == len(graph)


def classes(nodes: int, degree: int) -> dict[Code, int]:
    """Return one digraph of every class, with its number of automorphisms."""
    start, times = canonical(tuple(tuple(sorted((v + k) % nodes for k in range(1, degree + 1))) for v in range(nodes)))
    found, waiting = {start: times}, [start]
    tried = set[Code]()
    while waiting:
        for other in exchange_ends(waiting.pop()):
            if other not in tried:
                tried.add(other)
                code, times = canonical(other)
                if code not in found:
                    found[code] = times
                    waiting.append(code)
    return found


def cost(graph: Code) -> tuple[int, Fraction]:
    """Return steps and bandwidth cost of the breadth-first all-gather."""
    links = [(a, b) for a, ends in enumerate(graph) for b in ends]
    found = Broadcast(graph_of(range(len(graph)), links))
    return found.steps, found.bandwidth(len(graph[0]))


def frontier(costs: set[tuple[int, Fraction]]) -> list[tuple[int, Fraction]]:
    """Return the costs that no other cost beats."""
    return sorted(one for one in costs if not any(o != one and o[0] <= one[0] and o[1] <= one[1] for o in costs))


def text(costs: list[tuple[int, Fraction]]) -> str:
    """Show steps and bandwidth costs."""
    return ", ".join(f"({steps}, {share})" for steps, share in costs)


def find_frontier(nodes: int, degree: int) -> list[tuple[int, Fraction]]:
    """Return steps and bandwidth costs of the networks that ``cwb find-topology`` lists, circulants by search too."""
    job = Job(nodes, degree, Fraction(1, 10**5), Fraction(2**20), Fraction(10**11, 8), searched=True)
    return [(choice.steps, choice.bandwidth) for choice in find(job)]


def row_of(nodes: int, degree: int) -> list[str]:
    """Return a row of the table; raise if a class is missing."""
    found = classes(nodes, degree)
    labelled = sum(factorial(nodes) // times for times in found.values())
    if labelled != count_connected(nodes, degree):
        raise RuntimeError(f"{labelled} labelled digraphs of {count_connected(nodes, degree)} are found")
    costs = Counter(cost(graph) for graph in found)
    best = frontier(set(costs))
    ours = find_frontier(nodes, degree)
    number = sum(costs[one] for one in best)
    counts = (f"{len(found):,}", f"{labelled:,}")
    return [str(nodes), str(degree), *counts, text(best), str(number), text(ours)]


def main() -> None:
    """Print the table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--smoke", action="store_true", help="up to 5 nodes")
    parser.add_argument("--nodes", type=int, help="this number of nodes alone")
    parser.add_argument("--degree", type=int, help="this degree alone")
    options = parser.parse_args()
    print("| N | d | classes | labelled | best of all | digraphs that have it | `find-topology` |")
    print("|---|---|---|---|---|---|---|")
    for degree, sizes in SIZES:
        for nodes in sizes:
            wanted = options.nodes in (None, nodes) and options.degree in (None, degree)
            if wanted and not (options.smoke and nodes > 5):
                print(f"| {' | '.join(row_of(nodes, degree))} |", flush=True)


if __name__ == "__main__":
    main()
