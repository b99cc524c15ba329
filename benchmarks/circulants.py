"""Counterexamples to Conjecture 1 of the direct-connect paper: circulant graphs whose schedules lose bandwidth.

    python benchmarks/circulants.py                          # degree 4 to 100 nodes, 6 to 40, 8 to 28
    python benchmarks/circulants.py --degree 6 --nodes 20

All sets of offsets below N / 2 that make a connected graph are counted, also those that differ by a multiplication of
the nodes only. Every counterexample that is printed names its certificate: links that alone can bring more shards than
fit.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations
from math import gcd

from cwb.core.topology import Topology
from cwb.instances import load
from cwb.models.bfb.solve import balance
from rich.console import Console
from rich.table import Table

#: Degree, and the largest number of nodes.
RANGES = {4: 100, 6: 40, 8: 28}

#: Counterexamples that are printed for a degree.
SHOWN = 6


def offsets(n: int, degree: int) -> Iterator[tuple[int, ...]]:
    """All sets of offsets of connected circulant graphs."""
    return (chosen for chosen in combinations(range(1, (n + 1) // 2), degree // 2) if gcd(n, *chosen) == 1)


def balanced_load(n: int, chosen: tuple[int, ...]) -> Fraction:
    """T_B of a circulant graph."""
    topology = load(f"circulant(n={n}, offsets={list(chosen)})").network
    assert isinstance(topology, Topology)
    return balance(topology).time


def certificate(n: int, chosen: tuple[int, ...]) -> str:
    """Find the first step in which links to node 0 are too few, by sets of numbers and without the method's code."""
    links = sorted({sign * a for a in chosen for sign in (1, -1)}, key=abs)
    near, seen, step = {0}, {0}, 1
    while far := {(v + a) % n for v in near for a in links} - seen:
        over = {v: frozenset(a for a in links if (v - a) % n in near) for v in far}
        for size in range(1, len(links)):
            for some in map(frozenset, combinations(links, size)):
                bound = {v for v in far if over[v] <= some}
                if len(bound) * len(links) > len(far) * size:
                    names = ", ".join(f"{a:+d}" for a in sorted(some, key=abs))
                    return f"step {step}: {len(bound)} of {len(far)} shards only over {names}"
        near, seen, step = far, seen | far, step + 1
    return "none"


def main() -> None:
    """Count, and print the smallest counterexamples."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--degree", type=int, choices=list(RANGES))
    parser.add_argument("--nodes", type=int, help="largest number of nodes")
    given = parser.parse_args()
    counts = Table(title="circulant graphs, connected sets of offsets", title_justify="left")
    smallest = Table(title="smallest counterexamples", title_justify="left")
    for table, headings in (
        (counts, ("degree", "nodes up to", "sets", "lose bandwidth")),
        (smallest, ("graph", "T_B", "(N-1)/N", "certificate")),
    ):
        for heading in headings:
            table.add_column(heading)
    for degree in [given.degree] if given.degree else RANGES:
        largest = given.nodes or RANGES[degree]
        tried, failing = 0, 0
        for n in range(degree + 1, largest + 1):
            for chosen in offsets(n, degree):
                tried += 1
                if (time := balanced_load(n, chosen)) == Fraction(n - 1, n):
                    continue
                failing += 1
                if failing <= SHOWN:
                    name = f"C({n}, {{{', '.join(map(str, chosen))}}})"
                    smallest.add_row(name, str(time), str(Fraction(n - 1, n)), certificate(n, chosen))
        counts.add_row(str(degree), str(largest), f"{tried:,}", f"{failing:,}")
    Console(width=150).print(counts, smallest)


if __name__ == "__main__":
    main()
