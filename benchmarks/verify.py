"""Seconds and peak memory of the verifier on large schedules, and of verdicts on forests, each in a process of its own.

    python benchmarks/verify.py                 # everything
    python benchmarks/verify.py --case forest   # one of all-to-all, few-chunks, torus, ring, forest, leaf-spine

* all-to-all: direct among 256 ranks, 65,280 sends;
* few-chunks: all-reduce of 16 chunks round a ring of 4,096 NPUs of a 16x16x16 torus, 131,040 sends;
* torus: the same of 512 chunks, 4.2 million sends;
* ring: the textbook's one chunk a rank, 4,096 chunks and 33.5 million sends;
* forest: 1,024 chains of 1,023 edges on a ring of 1,024 ranks;
* leaf-spine: 1,024 trees of 1,023 edges on 32 leaves under a spine, 4.1 million links on all paths together.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
from collections.abc import Callable
from fractions import Fraction
from time import perf_counter

import numpy as np
from cwb.core.answers import Answer
from cwb.core.collective import Collective, Demand
from cwb.core.fabric import expand, parse_fabric
from cwb.core.instance import Instance
from cwb.core.schedule import Chunks, Sends, StepSchedule, offsets
from cwb.core.topology import Link, Node, NodeKind, Topology
from cwb.core.trees import TreeKind, TreePacking
from cwb.schedules import verdict_of
from cwb.schedules.verify import verify
from rich.console import Console
from rich.table import Table

SIZE = Fraction(2**30)


def all_to_all(n: int = 256) -> tuple[Instance, Answer]:
    """Every rank sends to every other over a link of its own."""
    pairs = [(a, b) for a in range(n) for b in range(n) if a != b]
    links = tuple(Link(f"n{a}", f"n{b}", Fraction(10**9)) for a, b in pairs)
    topology = Topology(tuple(Node(f"n{i}") for i in range(n)), links)
    instance = Instance("all-to-all", topology, Demand(Collective.ALL_TO_ALL, SIZE))
    source, target = np.array(pairs, dtype=np.int64).T
    count = len(pairs)
    no, index = np.zeros(count, dtype=np.bool_), np.arange(count)
    chunks = Chunks(np.ones(count, dtype=np.int64), SIZE / n, tuple((r,) for r in range(n)), source, target, no)
    sends = Sends(index, source, target, no, np.arange(count + 1), index)
    return instance, StepSchedule(instance.sha256, chunks, sends, np.zeros(count, dtype=np.int64))


def torus_ring(count: int) -> tuple[Instance, Answer]:
    """All-reduce round a Hamiltonian cycle of a 16x16x16 torus, in ``count`` chunks."""
    fabric = parse_fabric("RI(16)_RI(16)_RI(16)")
    topology = expand(fabric, [Fraction(10**9)] * 3, [Fraction(1, 10**6)] * 3)
    cycle = hamiltonian_cycle(16)
    n = len(cycle)
    link_of = {ends: i for i, ends in enumerate(topology.link_ends)}
    after = np.roll(cycle, -1)
    links = np.array([link_of[int(a), int(b)] for a, b in zip(cycle, after, strict=True)])
    instance = Instance("torus-ring", topology, Demand(Collective.ALL_REDUCE, SIZE))
    one_chunk = np.arange(2 * n - 2)
    chunk, step = np.repeat(np.arange(count), 2 * n - 2), np.tile(one_chunk, count)
    place = (chunk + 1 + step) % n
    zeros = np.zeros(count, dtype=np.int64)
    everyone = (tuple(range(n)),)
    chunks = Chunks(
        np.ones(count, dtype=np.int64), SIZE / count, everyone, zeros, zeros, np.ones(count, dtype=np.bool_)
    )
    offsets = np.arange(len(chunk) + 1)
    sends = Sends(chunk, cycle[place], after[place], step < n - 1, offsets, links[place])
    return instance, StepSchedule(instance.sha256, chunks, sends, step)


def hamiltonian_cycle(side: int) -> np.ndarray:
    """Return the ranks of a torus cube in a Hamiltonian cycle, walking every ring one step further back."""
    i = np.arange(side**3)
    z = i // side**2
    y = (i // side - z) % side
    x = (i - i // side) % side
    return x + side * (y + side * z)


def forest(n: int = 1024) -> tuple[Instance, Answer]:
    """All-gather by a chain from every rank, half of the ranks each way round a ring."""
    nodes = tuple(Node(f"n{i}") for i in range(n))
    pairs = [(i, (i + 1) % n) for i in range(n)] + [((i + 1) % n, i) for i in range(n)]
    topology = Topology(nodes, tuple(Link(f"n{a}", f"n{b}", Fraction(10**9)) for a, b in pairs))
    instance = Instance("forest", topology, Demand(Collective.ALL_GATHER, SIZE))
    root, hop = np.repeat(np.arange(n), n - 1), np.tile(np.arange(n - 1), n)
    way = np.where(root % 2 == 0, 1, -1)
    parent, child = (root + way * hop) % n, (root + way * (hop + 1)) % n
    links = np.where(way > 0, parent, n + child)
    offsets = np.arange(len(parent) + 1)
    packing = TreePacking(
        instance.sha256,
        TreeKind.OUT,
        np.arange(n),
        np.ones(n, dtype=np.int64),
        SIZE / n,
        np.arange(n + 1) * (n - 1),
        parent,
        child,
        offsets,
        links,
    )
    return instance, packing


def leaf_spine(n: int = 1024, leaves: int = 32) -> tuple[Instance, Answer]:
    """All-gather by an eight-ary tree from every rank, over leaf switches and a spine that never hold it up."""
    pairs = [pair for i in range(n) for pair in ((i, n + i % leaves), (n + i % leaves, i))]
    pairs += [pair for j in range(leaves) for pair in ((n + j, n + leaves), (n + leaves, n + j))]
    nodes = [Node(f"n{i}", NodeKind.COMPUTE if i < n else NodeKind.SWITCH) for i in range(n + leaves + 1)]
    rates = [Fraction(10**9)] * (2 * n) + [Fraction(n // leaves * 10**9)] * (2 * leaves)
    links = tuple(Link(f"n{a}", f"n{b}", rate) for (a, b), rate in zip(pairs, rates, strict=True))
    instance = Instance("leaf-spine", Topology(tuple(nodes), links), Demand(Collective.ALL_GATHER, SIZE))
    root, index = np.repeat(np.arange(n), n - 1), np.tile(np.arange(n - 1), n)
    parent, child = (root + index // 8) % n, (root + index + 1) % n
    apart = parent % leaves != child % leaves
    offset = offsets(np.where(apart, 4, 2))
    first, last = offset[:-1], offset[1:] - 1
    path = np.empty(offset[-1], dtype=np.int64)
    path[first], path[last] = 2 * parent, 2 * child + 1
    path[first[apart] + 1] = 2 * n + 2 * (parent[apart] % leaves)
    path[first[apart] + 2] = 2 * n + 2 * (child[apart] % leaves) + 1
    ones = np.ones(n, dtype=np.int64)
    trees = (np.arange(n), ones, SIZE / n, np.arange(n + 1) * (n - 1), parent, child, offset, path)
    return instance, TreePacking(instance.sha256, TreeKind.OUT, *trees)


CASES: dict[str, Callable[[], tuple[Instance, Answer]]] = {
    "all-to-all": all_to_all,
    "few-chunks": lambda: torus_ring(16),
    "torus": lambda: torus_ring(512),
    "ring": lambda: torus_ring(4096),
    "forest": forest,
    "leaf-spine": leaf_spine,
}


def measure(name: str) -> tuple[float, float, float, bool]:
    """Seconds to verify (of trees: to give the verdict), and peak GiB before and after."""
    instance, answer = CASES[name]()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    began = perf_counter()
    report = verdict_of(instance, answer) if isinstance(answer, TreePacking) else verify(instance, answer)
    seconds = perf_counter() - began
    return seconds, before, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, report.ok


def main() -> None:
    """Measure every case and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--case", choices=list(CASES))
    chosen = parser.parse_args().case
    table = Table(title="verify", title_justify="left")
    for heading in ("case", "seconds", "GiB with the schedule", "GiB at the peak", "right"):
        table.add_column(heading, justify="right")
    for name in [chosen] if chosen else CASES:
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            seconds, before, peak, ok = pool.apply(measure, (name,))
        table.add_row(name, f"{seconds:.2f}", f"{before:.2f}", f"{peak:.2f}", "yes" if ok else "NO")
    Console().print(table)


if __name__ == "__main__":
    main()
