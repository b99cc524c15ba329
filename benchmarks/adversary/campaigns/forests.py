"""Forests over directed links, one-way ones too: programs over all arborescences, every cut."""

from __future__ import annotations

from fractions import Fraction
from random import Random
from typing import Any

from cwb.benchmarks.adversary import client, trees
from cwb.benchmarks.adversary.fault import Campaign, Fault
from cwb.benchmarks.adversary.networks import Data, directed_network, rng

#: Bytes of the collective of :func:`adversary.networks.directed`.
SIZE = 12


def forest(seed: int) -> list[Fault]:
    """Random networks of directed links for ForestColl's methods, with ratios up to 10^12 now and then."""
    random = rng("forests", seed)
    count = random.choice((2, 3, 3, 4))
    kind = random.choice(("all_gather", "reduce_scatter", "broadcast", "all_reduce"))
    high = random.choice((1, 3, 6, 10**6, 10**12))
    data, rates = directed_network(random, count, kind=kind, high=high)
    name = random.choice(("forestcoll", "forestcoll", "forestcoll-lp", "forestcoll-allreduce"))
    options: dict[str, Any] = {"k": random.randint(1, 4)} if name == "forestcoll" and random.random() < 0.2 else {}
    return ask_method(data, rates, kind, name, options)


def ask_method(data: Data, rates: trees.Rates, kind: str, name: str, options: dict[str, Any]) -> list[Fault]:
    """Ask a method, and hold it against all arborescences and all cuts."""
    count = len(data["network"]["nodes"])
    solved = client.solve(data, name, time_limit_s=20, **options)
    found = client.conduct(solved)
    if not solved.has_answer:
        return found
    if kind == "all_reduce":
        rate = trees.all_reduce_by_pairs(count, rates)
        return found + (client.claims(solved, SIZE / rate, "in-trees and out-trees") if rate else [])
    roots = {0: Fraction(SIZE)} if kind == "broadcast" else dict.fromkeys(range(count), Fraction(SIZE, count))
    seen = {(b, a): r for (a, b), r in rates.items()} if kind == "reduce_scatter" else rates
    x = trees.gather_rate(count, seen, roots)
    if x:
        found += client.claims(solved, 1 / x, "all arborescences")
    cut = trees.gather_cut(count, seen, roots, range(count))
    if cut is not None:
        found += client.impossible(solved, cut, "every cut")
    return found


def route_all_to_all(seed: int) -> list[Fault]:
    """Random all-to-alls for the maximum concurrent flow, against cuts and a flow of its own."""
    random = rng("all-to-all", seed)
    count = random.choice((2, 3, 4))
    data, rates = directed_network(random, count, kind="all_to_all", high=random.choice((1, 4, 10**6)))
    solved = client.solve(data, "all-to-all-mcf", time_limit_s=20)
    found = client.conduct(solved)
    best = concurrent_flow(random, count, rates)
    if best is None or solved.record is None or solved.record.bound is None:
        return found
    time = best * SIZE / count
    if abs(solved.record.bound - time) > 1e-6 * time:
        found.append(Fault("another bound", solved.question, solved.outcome_text, f"flow of our own: {time!r}", None))
    return found


def concurrent_flow(_: Random, count: int, rates: trees.Rates) -> float | None:
    """Least time of one byte between every pair, by arcs and sources."""
    from cwb.benchmarks.adversary.lp import Program

    program = Program()
    time = program.variable(1.0)
    load: dict[tuple[int, int], dict[int, float]] = {arc: {time: -float(rate)} for arc, rate in rates.items()}
    for source in range(count):
        balance: list[dict[int, float]] = [{} for _ in range(count)]
        for arc in rates:
            v = program.variable()
            load[arc][v] = 1.0
            balance[arc[0]][v] = balance[arc[0]].get(v, 0.0) - 1.0
            balance[arc[1]][v] = balance[arc[1]].get(v, 0.0) + 1.0
        for node in range(count):
            if node != source:
                program.row(balance[node], 1.0, 1.0)
    for row in load.values():
        program.row(row, high=0.0)
    solved = program.solve()
    return None if solved is None else solved[0]


CAMPAIGNS = (
    Campaign("forests", "program over all arborescences, every cut", forest, range(20), 1000, cpu_s=120, batch=10),
    Campaign("all-to-all", "maximum concurrent flow", route_all_to_all, range(10), 800, cpu_s=120, batch=10),
)
