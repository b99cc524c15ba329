"""Circulants whose breadth-first schedules lose bandwidth: schedules that lose none, with as few steps as can be found.

    python benchmarks/findings/circulant_steps.py                       # degree 6 to 40 nodes, some minutes
    python benchmarks/findings/circulant_steps.py --degree 8 --nodes 20
    python benchmarks/findings/circulant_steps.py --smoke

In a breadth-first schedule a node at distance j receives a shard in step j. Here two programs look for others. In the
first a node may receive parts of a shard in step j and the rest in step j + 1, and sends it on once it has all. In the
second the shard is cut into pieces, each with a tree of its own. What they find is checked in integers and written as a
schedule, which cwb's verifier checks and times against a proved bound.
"""

from __future__ import annotations

import argparse
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import gcd, isclose, lcm

import numpy as np
from cwb.algorithms.bounds.schedule_bounds import best_bound
from cwb.algorithms.schedules.problem import equal_chunks
from cwb.benchmarks.adversary.lp import Program
from cwb.benchmarks.circulants import RANGES, balanced_load, offsets
from cwb.core.schedule import StepSchedule, sends_from_lists
from cwb.instances import load
from cwb.instances.demand import with_demand
from cwb.schedules import verdict_of
from cwb.schedules.simulate import simulate
from rich.console import Console
from rich.table import Table

#: Largest denominator of a part that is rounded.
DENOMINATOR = 720

#: Steps beyond the diameter that are tried.
MOST_MORE = 2

#: A piece of the shard of node 0 reaches a node over a link of an offset in a step.
Hop = tuple[int, int, int, int]

Circulant = tuple[int, tuple[int, ...]]


@dataclass(frozen=True)
class Trees:
    """Trees of all pieces of the shard of node 0; those of other nodes are the same, translated."""

    pieces: int
    hops: tuple[Hop, ...]


def losing(degree: int, most: int) -> Iterator[tuple[Circulant, int]]:
    """Yield the circulants that lose bandwidth, one of each class under multiplication, and the size of its class."""
    for n in range(degree + 1, most + 1):
        classes: dict[tuple[int, ...], set[tuple[int, ...]]] = defaultdict(set)
        for chosen in offsets(n, degree):
            units = (u for u in range(1, n) if gcd(u, n) == 1)
            images = {tuple(sorted(min(u * a % n, -u * a % n) for a in chosen)) for u in units}
            classes[min(images)] |= images
        for chosen, images in classes.items():
            if balanced_load(n, chosen) != Fraction(n - 1, n):
                yield (n, chosen), len(images)


def distances(n: int, links: list[int]) -> list[int]:
    """Return the distance of every node from node 0."""
    found, level = {0: 0}, [0]
    while level:
        after = {(v + a) % n for v in level for a in links} - found.keys()
        found |= dict.fromkeys(after, found[level[0]] + 1)
        level = list(after)
    return [found[v] for v in range(n)]


def balanced_parts(n: int, links: list[int], steps: int) -> Trees | None:
    """Find parts with which all links are busy equally long in every step, or None if this form has none."""
    distance, program = distances(n, links), Program()
    ready: dict[tuple[int, int], int] = {}  # by node and step: 1 if the node has all of the shard after the step
    for v in range(1, n):
        for step in range(distance[v], min(distance[v] + 1, steps) + 1):
            ready[v, step] = program.variable(0.0, 0.0, 1.0, integer=True)
        program.row({ready[v, t]: 1.0 for t in range(distance[v], steps + 1) if (v, t) in ready}, 1.0, 1.0)
    part: dict[tuple[int, int, int], int] = {}
    for v in range(1, n):
        for a in links:
            u = (v - a) % n
            for step in range(max(distance[v], distance[u] + 1), steps + 1):
                x = part[v, a, step] = program.variable(0.0, 0.0, 1.0)
                before = [ready[u, t] for t in range(step) if (u, t) in ready]
                if u:
                    program.row({x: 1.0} | dict.fromkeys(before, -1.0), high=0.0)
                later = [ready[v, t] for t in range(step, steps + 1) if (v, t) in ready]
                program.row({x: 1.0} | dict.fromkeys(later, -1.0), high=0.0)
        program.row({x: 1.0 for (node, _, _), x in part.items() if node == v}, 1.0, 1.0)
    for step in range(1, steps + 1):
        load_of_step = program.variable()
        for a in links:
            row = {x: 1.0 for (_, offset, at), x in part.items() if (offset, at) == (a, step)}
            program.row(row | {load_of_step: -1.0}, 0.0, 0.0)
    found = program.solve()
    if found is None:
        return None
    rounded = {key: Fraction(float(found[1][x])).limit_denominator(DENOMINATOR) for key, x in part.items()}
    pieces = lcm(*(amount.denominator for amount in rounded.values()))
    begin: dict[int, int] = defaultdict(int)
    hops: list[Hop] = []
    for (v, a, step), amount in rounded.items():
        count = int(amount * pieces)
        hops += [(piece, v, a, step) for piece in range(begin[v], begin[v] + count)]
        begin[v] += count
    return Trees(pieces, tuple(hops))


def balanced_pieces(n: int, links: list[int], steps: int) -> Trees | None:
    """Find trees for as few pieces as can be balanced, each with its own way, or None without any."""
    distance, program = distances(n, links), Program()
    pieces = len(links) // gcd(len(links), n - 1)
    hop: dict[Hop, int] = {}
    into: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
    for piece in range(pieces):
        for v in range(1, n):
            for a in links:
                for step in range(max(distance[v], distance[(v - a) % n] + 1), steps + 1):
                    x = hop[piece, v, a, step] = program.variable(0.0, 0.0, 1.0, integer=True)
                    into[piece, v].append((step, x))
    for entries in into.values():
        program.row({x: 1.0 for _, x in entries}, 1.0, 1.0)
    for (piece, v, a, step), x in hop.items():
        if u := (v - a) % n:
            program.row({x: 1.0} | {y: -1.0 for before, y in into[piece, u] if before < step}, high=0.0)
    for step in range(1, steps + 1):
        load_of_step = program.variable()
        for a in links:
            row = {x: 1.0 for (_, _, offset, at), x in hop.items() if (offset, at) == (a, step)}
            program.row(row | {load_of_step: -1.0}, 0.0, 0.0)
    found = program.solve()
    if found is None:
        return None
    return Trees(pieces, tuple(key for key, x in hop.items() if round(found[1][x])))


def check(n: int, links: list[int], trees: Trees) -> None:
    """Check that every node gets each piece once, sends only what it has, and that links are balanced."""
    came = {(piece, 0): 0 for piece in range(trees.pieces)}
    loads: Counter[tuple[int, int]] = Counter()
    for piece, v, a, step in trees.hops:
        assert (piece, v) not in came
        came[piece, v] = step
        loads[step, a] += 1
    assert len(came) == n * trees.pieces
    assert all(came[piece, (v - a) % n] < step for piece, v, a, step in trees.hops)
    for step in {step for step, _ in loads}:
        assert len({loads[step, a] for a in links}) == 1


def find(n: int, links: list[int], steps: int) -> Trees | None:
    """Try both forms; what is found has been checked."""
    trees = balanced_parts(n, links, steps) or balanced_pieces(n, links, steps)
    if trees:
        check(n, links, trees)
    return trees


def verified_steps(n: int, chosen: tuple[int, ...], trees: Trees) -> int:
    """Write trees as an all-gather, and return its steps if cwb verifies it and proves that nothing is faster."""
    pieces = trees.pieces
    topology = load(f"circulant(n={n}, offsets={list(chosen)}, latency='0 us')")
    instance = with_demand(topology, "all_gather", f"{n * pieces} B", pieces)
    place = {ends: e for e, ends in enumerate(instance.topology.link_ends)}
    rows: list[tuple[int, int, int, int, int]] = []
    for piece, v, a, step in trees.hops:
        for root in range(n):
            ends = (root + v - a) % n, (root + v) % n
            rows.append((root * pieces + piece, *ends, step - 1, place[ends]))
    chunk, source, target, step_of, link = zip(*rows, strict=True)
    holders = np.repeat(np.arange(n), pieces)
    everybody = np.full(n * pieces, n)
    chunks = equal_chunks(range(n), Fraction(1), holders, everybody, reduced=False)
    sends = sends_from_lists(chunk, source, target, reduce=False, paths=[(e,) for e in link])
    schedule = StepSchedule(instance.sha256, chunks, sends, np.array(step_of, dtype=np.int64))
    _, certificate = best_bound(instance)
    verdict = verdict_of(instance, schedule, certificate)
    time_s = simulate(instance, schedule, barrier=True).completion_s
    assert verdict.ok and verdict.bound is not None
    assert isclose(time_s, verdict.bound, rel_tol=1e-9), (n, chosen, time_s, verdict)
    return schedule.steps


def main() -> None:
    """Repair every class, and print the least steps that were found."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--degree", type=int, choices=list(RANGES), default=6)
    parser.add_argument("--nodes", type=int, help="largest number of nodes")
    parser.add_argument("--smoke", action="store_true", help="degree 6 to 18 nodes")
    given = parser.parse_args()
    table = Table(title=f"circulants of degree {given.degree} that lose bandwidth, by class", title_justify="left")
    for heading in ("graph", "sets", "diameter", "steps without loss", "proved"):
        table.add_column(heading)
    counts: Counter[str] = Counter()
    for (n, chosen), size in losing(given.degree, 18 if given.smoke else given.nodes or RANGES[given.degree]):
        links = sorted({a * sign % n for a in chosen for sign in (1, -1)})
        diameter = max(distances(n, links))
        tried = ((more, find(n, links, diameter + more)) for more in range(MOST_MORE + 1))
        more, trees = next(((more, trees) for more, trees in tried if trees), (None, None))
        steps = verified_steps(n, chosen, trees) if trees else "none found"
        counts["none found" if more is None else f"{more} more steps"] += size
        name = f"C({n}, {{{', '.join(map(str, chosen))}}})"
        table.add_row(name, str(size), str(diameter), str(steps), "yes" if trees else "")
    console = Console(width=120)
    console.print(table)
    console.print("sets of offsets: " + ", ".join(f"{name} {count}" for name, count in sorted(counts.items())))


if __name__ == "__main__":
    main()
