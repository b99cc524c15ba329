"""Seconds and peak memory of the topology finder for all sizes, and the values of generalized Kautz graphs.

    python benchmarks/find_topology.py                    # all N <= 2,000 at degrees 2, 4, 8, 16; some single sizes
    python benchmarks/find_topology.py --kautz            # T_L and T_B of all generalized Kautz graphs; some minutes
    python benchmarks/find_topology.py --kautz --write FILE
    python benchmarks/find_topology.py --circulants       # circulants by search: every 111th N <= 2,000; minutes
    python benchmarks/find_topology.py --smoke            # all N <= 100

--write writes ``studies/topology_finder/generalized_kautz.json``. The paper says of its finder: under a minute for
all these sizes and degrees.
"""

from __future__ import annotations

import argparse
import json
import resource
from fractions import Fraction
from itertools import product
from pathlib import Path
from time import perf_counter

from cwb.algorithms.breadth_first.broadcast import Broadcast, graph_of
from cwb.studies.topology_finder.candidates import imase_itoh
from cwb.studies.topology_finder.circulants import search
from cwb.studies.topology_finder.finder import Closure, Job, find
from rich.console import Console
from rich.table import Table

DEGREES = (2, 4, 8, 16)
LARGEST = 2000


def moore(nodes: int, degree: int) -> int:
    """Fewest steps in which so many nodes can be reached."""
    steps, reached = 0, 1
    while reached < nodes:
        steps += 1
        reached += degree**steps
    return steps


def peak_mib() -> float:
    """Most memory that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def finder(largest: int) -> Table:
    """Time the closure of everything, then single sizes with their networks."""
    table = Table("what", "seconds", "networks", "peak MiB")
    start = perf_counter()
    closure = Closure(range(2, largest + 1), DEGREES)
    frontiers = [closure.frontier(n, d) for d in DEGREES for n in range(d + 1, largest + 1)]
    seconds = perf_counter() - start
    table.add_row(
        f"all N <= {largest:,}, d = 2, 4, 8, 16", f"{seconds:.2f}", f"{sum(map(len, frontiers)):,}", f"{peak_mib():.0f}"
    )
    for nodes, degree in ((64, 4), (1000, 4), (1024, 4), (2000, 16)):
        if nodes > largest:
            continue
        start = perf_counter()
        job = Job(nodes, degree, Fraction(1, 10**5), Fraction(2**20), Fraction(10**11, 8))
        choices = find(job)
        table.add_row(
            f"N = {nodes:,}, d = {degree}, with distances",
            f"{perf_counter() - start:.2f}",
            str(len(choices)),
            f"{peak_mib():.0f}",
        )
    return table


def by_search() -> Table:
    """Search for circulants: how far their steps are from the Moore bound, and how many are optimal in bandwidth."""
    table = Table(
        "degree", "way", "sizes", "seconds, at most", "optimal in bandwidth", "T_L, at most", "T_L / T_L*, at most"
    )
    sizes = range(112, LARGEST, 111)
    for degree, two_way in product((3, 6, 8, 12, 16, 20), (True, False)):
        longest, optimal, steps, ratio = 0.0, 0, 0, 0.0
        asked = [n for n in sizes if not (two_way and degree % 2 and n % 2)]
        for n in asked:
            start = perf_counter()
            last = search(n, degree, two_way=two_way)[-1]
            longest = max(longest, perf_counter() - start)
            optimal += last.bandwidth == Fraction(n - 1, n)
            steps, ratio = max(steps, last.steps), max(ratio, last.steps / moore(n, degree))
        values = (
            degree,
            "two-way" if two_way else "directed",
            len(asked),
            f"{longest:.2f}",
            optimal,
            steps,
            f"{ratio:.2f}",
        )
        table.add_row(*map(str, values))
    return table


def takes(d: int, n: int) -> tuple[int, Fraction]:
    """Compute T_L and T_B of a generalized Kautz graph."""
    found = Broadcast(graph_of(range(n), imase_itoh(d, n)))
    return found.steps, found.bandwidth(d)


def kautz() -> tuple[Table, dict[str, list[tuple[int, str]]]]:
    """Compute the values of all generalized Kautz graphs; T_L beyond the Moore bound, and the largest T_B."""
    table = Table("degree", "seconds", "graphs", "T_L - T_L*, at most", "T_B, at most", "T_B / T_B*, at most")
    values: dict[str, list[tuple[int, str]]] = {}
    for d in DEGREES:
        start = perf_counter()
        found = {n: takes(d, n) for n in range(d + 1, LARGEST + 1)}
        seconds = perf_counter() - start
        excess = max(steps - moore(n, d) for n, (steps, _) in found.items())
        most = max(bandwidth for _, bandwidth in found.values())
        ratio = max(bandwidth * Fraction(n, n - 1) for n, (_, bandwidth) in found.items())
        table.add_row(
            str(d), f"{seconds:.1f}", f"{len(found):,}", str(excess), f"{float(most):.4f}", f"{float(ratio):.4f}"
        )
        values[str(d)] = [(steps, str(bandwidth)) for steps, bandwidth in found.values()]
    return table, values


def main() -> None:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kautz", action="store_true")
    parser.add_argument("--circulants", action="store_true")
    parser.add_argument("--write", type=Path)
    parser.add_argument("--smoke", action="store_true")
    chosen = parser.parse_args()
    if chosen.circulants:
        Console(width=150).print(by_search())
        return
    if not chosen.kautz:
        Console().print(finder(100 if chosen.smoke else LARGEST))
        return
    table, values = kautz()
    Console().print(table)
    if chosen.write:
        chosen.write.write_text(json.dumps(values, separators=(",", ":")))


if __name__ == "__main__":
    main()
