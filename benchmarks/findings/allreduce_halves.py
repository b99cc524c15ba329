"""All-reduces against a reduce-scatter followed by an all-gather: formulas on all small graphs, and LP (6) on machines.

    python benchmarks/findings/allreduce_halves.py
    python benchmarks/findings/allreduce_halves.py --smoke

On graphs with equal links in both directions the best all-reduce is given by a partition, and the two halves by a set
of ranks. Both are computed by trying all partitions and sets, in fractions. Of the machines, cwb computes the halves by
forestcoll and the all-reduce by linear program (6), with verified trees and proved bounds.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations, permutations

from cwb.harness.run import Request, run
from cwb.instances import load
from cwb.instances.demand import with_demand
from rich.console import Console
from rich.table import Table

#: Machines and networks of cwb.
MACHINES = (
    "line(4)",
    "mesh(2,3)",
    "mesh(3,3)",
    "ring(5)",
    "hypercube(3)",
    "torus(3,3)",
    "dgx1()",
    "dgx_a100(boxes=1)",
    "dgx_a100(boxes=2)",
    "mi250(boxes=1)",
    "mi250_8(boxes=2)",
)

Edge = tuple[int, int]


def partitions(ranks: int) -> Iterator[list[int]]:
    """Yield all partitions as the number of the part of every rank."""

    def extend(parts: list[int]) -> Iterator[list[int]]:
        if len(parts) == ranks:
            yield parts
            return
        for part in range(max(parts) + 2):
            yield from extend([*parts, part])

    yield from extend([0])


def best_all_reduce(ranks: int, edges: list[Edge]) -> Fraction:
    """Return the time of the best all-reduce of one unit over links of one unit: the worst partition."""
    return max(
        Fraction(max(parts), sum(parts[a] != parts[b] for a, b in edges)) for parts in partitions(ranks) if max(parts)
    )


def two_halves(ranks: int, edges: list[Edge]) -> Fraction:
    """Return the time of a reduce-scatter and an all-gather, one after the other: twice the worst set."""
    return max(
        Fraction(2 * size, ranks * sum((a in some) != (b in some) for a, b in edges))
        for size in range(1, ranks)
        for some in combinations(range(ranks), size)
    )


def graphs(ranks: int) -> Iterator[list[Edge]]:
    """Yield one of each class of connected graphs."""
    pairs = list(combinations(range(ranks), 2))
    place = {pair: i for i, pair in enumerate(pairs)}
    moves = [[place[min(p[a], p[b]), max(p[a], p[b])] for a, b in pairs] for p in permutations(range(ranks))]
    seen = bytearray(1 << len(pairs))
    for mask in range(1 << len(pairs)):
        if seen[mask]:
            continue
        chosen = [i for i in range(len(pairs)) if mask >> i & 1]
        for move in moves:
            seen[sum(1 << move[i] for i in chosen)] = 1
        edges, near = [pairs[i] for i in chosen], {0}
        while more := {v for edge in edges if near & set(edge) for v in edge} - near:
            near |= more
        if len(near) == ranks:
            yield edges


def count_graphs(ranks: int) -> tuple[int, int, int, Fraction, list[Edge]]:
    """Count graphs, those where the halves lose, and those of them with equal degrees; find the largest loss."""
    tried = lost = regular = 0
    worst, graph = Fraction(1), list[Edge]()
    for edges in graphs(ranks):
        tried += 1
        loss = two_halves(ranks, edges) / best_all_reduce(ranks, edges)
        assert 1 <= loss <= Fraction(2 * (ranks - 1), ranks)
        lost += loss > 1
        degrees = {sum(v in edge for edge in edges) for v in range(ranks)}
        regular += loss > 1 and len(degrees) == 1
        if loss > worst:
            worst, graph = loss, edges
    return tried, lost, regular, worst, graph


def time_of(name: str, model: str, collective: str) -> tuple[float | None, float | None]:
    """Solve a collective of 1 GB by a method; return its time and the bound, in ms."""
    record = run(with_demand(load(name), collective, "1 GB", None), Request(model)).record
    assert record.verified
    return tuple(1000 * each if each is not None else None for each in (record.objective, record.bound))  # type: ignore[return-value]


def main() -> None:
    """Print the counts of graphs and the times of machines."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--smoke", action="store_true", help="graphs of 4 ranks and three networks")
    given = parser.parse_args()
    counts = Table(title="connected graphs with equal links", title_justify="left")
    for heading in ("ranks", "graphs", "halves lose", "with equal degrees", "largest loss", "2 (N-1)/N", "its links"):
        counts.add_column(heading)
    for ranks in (3, 4) if given.smoke else (3, 4, 5, 6):
        tried, lost, regular, worst, graph = count_graphs(ranks)
        most = Fraction(2 * (ranks - 1), ranks)
        cells = (ranks, tried, lost, regular, worst, most, " ".join(f"{a}-{b}" for a, b in graph))
        counts.add_row(*map(str, cells))
    machines = Table(title="an all-reduce of 1 GB, in ms", title_justify="left")
    for heading in ("network", "halves in turn", "halves at once", "LP (6)", "proved bound"):
        machines.add_column(heading)
    for name in MACHINES[:3] if given.smoke else MACHINES:
        gather, _ = time_of(name, "forestcoll", "all_gather")
        scatter, _ = time_of(name, "forestcoll", "reduce_scatter")
        once, _ = time_of(name, "forestcoll", "all_reduce")
        best, bound = time_of(name, "forestcoll-allreduce", "all_reduce")
        cells = ((gather or 0) + (scatter or 0), once, best, bound)
        machines.add_row(name, *(f"{each:.4f}" for each in cells))
    Console(width=140).print(counts, machines)


if __name__ == "__main__":
    main()
