"""``find-topology`` against every digraph of few nodes in which each has two links out and two in, one by one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from itertools import combinations

from cwb.benchmarks.adversary import client
from cwb.benchmarks.adversary.fault import Campaign, Fault, count_comparisons
from cwb.benchmarks.adversary.networks import rng

#: Targets of every node.
Digraph = tuple[tuple[int, ...], ...]


def digraphs(nodes: int) -> Iterator[Digraph]:
    """Every one of degree 2, without loops and parallel links; 7,570 of six nodes, none left out for symmetry."""
    choices = [tuple(combinations([v for v in range(nodes) if v != u], 2)) for u in range(nodes)]
    entered = [0] * nodes
    rows: list[tuple[int, ...]] = []

    def grow() -> Iterator[Digraph]:
        if len(rows) == nodes:
            yield tuple(rows)
            return
        for row in choices[len(rows)]:
            if all(entered[v] < 2 for v in row):
                for v in row:
                    entered[v] += 1
                rows.append(row)
                yield from grow()
                rows.pop()
                for v in row:
                    entered[v] -= 1

    return grow()


def values(graph: Digraph) -> tuple[int, Fraction] | None:
    """T_L and T_B of breadth-first broadcasts from all nodes; None if some node does not reach another.

    At step t a node gets the shards of the nodes t away. Those that only one of its two neighbours has come from it;
    the others are split so that both links are as equal as can be.
    """
    nodes = len(graph)
    far = [[-1] * nodes for _ in range(nodes)]
    for source in range(nodes):
        far[source][source] = 0
        reached = [source]
        for u in reached:  # grows
            for v in graph[u]:
                if far[source][v] < 0:
                    far[source][v] = far[source][u] + 1
                    reached.append(v)
        if len(reached) < nodes:
            return None
    steps = max(map(max, far))
    before = [[u for u in range(nodes) if v in graph[u]] for v in range(nodes)]
    total = Fraction(0)
    for step in range(1, steps + 1):
        fullest = Fraction(0)
        for v in range(nodes):
            near = [[far[s][u] == step - 1 for u in before[v]] for s in range(nodes) if far[s][v] == step]
            alone = [near.count([True, False]), near.count([False, True])]
            fullest = max(fullest, *map(Fraction, alone), Fraction(len(near), 2))
        total += fullest
    return steps, total * 2 / nodes


@cache
def all_values(nodes: int) -> dict[tuple[int, Fraction], int]:
    """Values of all digraphs, and how many have them."""
    found: dict[tuple[int, Fraction], int] = {}
    for graph in digraphs(nodes):
        value = values(graph)
        if value is not None:
            found[value] = found.get(value, 0) + 1
    return found


def case(seed: int) -> list[Fault]:
    """Hold bounds, rows and the best network of a size, of a random share of latency, against all digraphs."""
    random = rng("small-digraphs", seed)
    nodes = (6, 3, 4, 5)[seed % 4]
    size = random.choice((1, 1024, 10**5, 10**6, 10**7, 10**9))
    words = ("find-topology", "--nodes", str(nodes), "--degree", "2", "--size", f"{size} B")
    words = (*words, "--all-to-all-limit", "0", "--no-schedule", "--json")
    status, out, err = client.command(*words)
    if status:
        return [Fault("exit status", client.command_text(words), f"{status} {err.strip()[-200:]}", "a frontier")]
    found = json.loads(out)
    alpha, ratio = Fraction(found["alpha_s"]), Fraction(found["size_bytes"]) / Fraction(found["bandwidth_Bps"])
    known, faults = all_values(nodes), []

    def fault(kind: str, claimed: object, value: object) -> None:
        faults.append(Fault(kind, client.command_text(words), str(claimed), str(value)))

    bound = found["lower_bound"]
    least = bound["T_L"], Fraction(bound["T_B"])
    count_comparisons(len(known))
    for steps, time in known:
        if steps < least[0] or time < least[1]:
            fault("bound beaten", bound, (steps, time))
        if float(2 * (steps * alpha + time * ratio)) < bound["all_reduce_s"] * (1 - client.ROUNDING):
            fault("bound beaten", bound["all_reduce_s"], (steps, time))
    for row in found["frontier"]:
        count_comparisons()
        value = row["T_L"], Fraction(row["T_B"])
        if row["degree"] == 2 and not any(steps <= value[0] and time <= value[1] for steps, time in known):
            fault("no digraph is as good", row, sorted(known)[:3])
    told = " ".join(client.command("find-topology", "--help")[1].split())
    if "no other one beats" in told:
        count_comparisons()
        best = min(row["all_reduce_s"] for row in found["frontier"])
        fastest = min(float(2 * (steps * alpha + time * ratio)) for steps, time in known)
        if fastest < best * (1 - client.ROUNDING):
            fault("frontier beaten", best, fastest)
    return faults


CAMPAIGNS = (
    Campaign(
        "small-digraphs",
        "breadth-first broadcasts on all digraphs of degree 2",
        case,
        range(4),
        40,
        cpu_s=200,
        batch=40,
    ),
)
