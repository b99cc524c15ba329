"""Answers of any method: replayed schedules, trees followed link by link, recomputed times and all cuts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from fractions import Fraction
from itertools import pairwise
from random import Random
from typing import Any

from cwb.benchmarks.adversary import client, clock, networks
from cwb.benchmarks.adversary.fault import Campaign, Fault
from cwb.benchmarks.adversary.networks import Data, instance, rng
from cwb.benchmarks.adversary.replay import Send, faults_of_data, rows, sends_in_steps
from cwb.benchmarks.adversary.trees import subsets

#: Who holds, who needs, whether it is summed.
Condition = tuple[frozenset[int], frozenset[int], bool]

#: Methods with options that keep them short.
METHODS: tuple[tuple[str, Mapping[str, Any]], ...] = (
    *(
        (name, {})
        for name in (
            "ring",
            "direct",
            "rhd",
            "bruck",
            "dbt",
            "knomial",
            "bfb",
            "bfb-lp",
            "bfb-chunked",
            "bfb-heterogeneous",
        )
    ),
    *(
        (name, {})
        for name in (
            "forestcoll",
            "forestcoll-allreduce",
            "blink",
            "blink-switch",
            "multitree",
            "spff",
            "sccl",
            "taccl",
        )
    ),
    ("tacos", {"restarts": 2}),
    ("pccl", {"steps": 100}),
    ("teccl", {"timing": "store-and-forward"}),
    ("teccl-astar", {"timing": "store-and-forward", "epoch": "slow"}),
    ("teccl-milp", {"timing": "store-and-forward", "epoch": "slow"}),
    ("ten-ilp", {}),
)

KINDS = ("all_gather", "reduce_scatter", "all_reduce", "all_to_all", "broadcast", "reduce", "gather", "scatter")


def bytes_to_move(data: Data) -> dict[Condition, Fraction]:
    """Add up the bytes that a question asks to be moved."""
    count = sum(node.get("kind") != "switch" for node in data["network"]["nodes"])
    total: dict[Condition, Fraction] = defaultdict(Fraction)
    for demand in (data["collective"], *data.get("also", ())):
        group = list(demand.get("ranks", range(count)))
        size, kind = networks.exact(demand["size"]), demand["kind"]
        part, everyone, root = size / len(group), frozenset(group), frozenset(group[:1])
        found: Mapping[str, list[tuple[frozenset[int], frozenset[int], bool, Fraction]]] = {
            "all_gather": [(frozenset([r]), everyone, False, part) for r in group],
            "reduce_scatter": [(everyone, frozenset([r]), True, part) for r in group],
            "all_reduce": [(everyone, everyone, True, size)],
            "all_to_all": [(frozenset([s]), frozenset([t]), False, part) for s in group for t in group if s != t],
            "broadcast": [(root, everyone, False, size)],
            "reduce": [(everyone, root, True, size)],
            "gather": [(frozenset([r]), root, False, part) for r in group[1:]],
            "scatter": [(root, frozenset([r]), False, part) for r in group[1:]],
        }
        for held, needed, summed, amount in found[kind]:
            total[held, needed if summed else needed - held, summed] += amount
    return total


def question(random: Random) -> Data:
    """A network of any sort with one collective, or with two among groups."""
    count = random.choice((3, 4, 5, 6))
    kind = random.choice(KINDS)
    chunks = random.choice((1, 1, 2))
    if random.random() < 0.3:
        data = networks.star(random, count, kind=kind, chunks=chunks, high=1)
    elif random.random() < 0.3:
        data, _ = networks.directed_network(random, count, kind=kind, high=random.choice((1, 3)))
        data["collective"]["chunks"] = chunks
    else:
        data = networks.direct(random, count, kind=kind, chunks=chunks, high=random.choice((1, 3)))
    if random.random() < 0.3:
        order = list(range(count))
        random.shuffle(order)
        cut = random.randint(2, count)
        data["collective"]["ranks"] = order[:cut]
        if count - cut >= 2:
            other = {"kind": random.choice(KINDS), "size": data["collective"]["size"], "ranks": order[cut:]}
            data["also"] = [other]
    return data


def answer(seed: int) -> list[Fault]:
    """Ask a random method a random question."""
    random = rng("answers", seed)
    data = question(random)
    for name, options in random.sample(METHODS, 4):
        solved = client.solve(data, name, time_limit_s=10, **options)
        if solved.record is None or solved.record.status != "unsupported":
            break
    found = client.conduct(solved)
    if not solved.has_answer:
        return found
    for wrong in (*faults_of(data, solved), *times_of(data, solved)):
        found.append(Fault("wrong answer accepted", solved.question, solved.outcome_text, wrong, None))
        break
    return found


def faults_of(data: Data, solved: client.Reply) -> list[str]:
    """Return what is wrong with an answer."""
    made = solved.answer
    want = bytes_to_move(data)
    if hasattr(made, "edge_offset"):
        return _trees(solved.instance, made, want)
    if not hasattr(made, "chunks"):
        return []
    groups = [frozenset(group) for group in made.chunks.groups]
    given: dict[Condition, Fraction] = defaultdict(Fraction)
    for c in range(len(made.chunks)):
        held, needed = groups[made.chunks.held_by[c]], groups[made.chunks.needed_by[c]]
        summed = bool(made.chunks.reduced[c])
        given[held, needed if summed else needed - held, summed] += made.chunks.size_bytes(c)
    found = [f"{given.get(key, 0)} of {size} bytes of {key}" for key, size in want.items() if given.get(key) != size]
    sends = sends_in_steps(made) if hasattr(made, "step") else _in_ticks(made)
    nodes = solved.instance.network.nodes
    stored = any(nodes[s.target].kind.value == "switch" for s in sends)
    return found if stored else found + faults_of_data(solved.instance, made.chunks, sends, stores=False)


def _in_ticks(made: Any) -> list[Send]:
    """Read times as whole numbers of a part of the end that is finer than any difference that counts."""
    tick = max(made.end_s.tolist(), default=1.0) * 1e-8 or 1.0
    columns = zip(rows(made), made.start_s.tolist(), made.end_s.tolist(), strict=True)
    return [Send(*row, round(a / tick), round(b / tick)) for row, a, b in columns]


def _trees(posed: Any, packing: Any, want: Mapping[Condition, Fraction]) -> list[str]:
    """Follow every tree over its links, and add up what trees carry for whom."""
    found: list[str] = []
    group = set().union(*(held | needed for held, needed, _ in want))
    ends, rank_node = posed.network.link_ends, posed.network.rank_nodes
    carried: dict[int, Fraction] = defaultdict(Fraction)
    for part in packing.passes:
        inwards = part.kind.value == "in"
        for tree in range(len(part)):
            reached = {int(part.root[tree])}
            for edge in range(int(part.edge_offset[tree]), int(part.edge_offset[tree + 1])):
                parent, child = int(part.parent[edge]), int(part.child[edge])
                path = part.path_links[part.path_offset[edge] : part.path_offset[edge + 1]].tolist()
                here, there = (child, parent) if inwards else (parent, child)
                nodes = [ends[path[0]][0], *(ends[link][1] for link in path)]
                walks = all(ends[a][1] == ends[b][0] for a, b in pairwise(path))
                if parent not in reached or child in reached or not walks:
                    found.append(f"edge {parent}-{child} of tree {tree}")
                if (nodes[0], nodes[-1]) != (rank_node[here], rank_node[there]):
                    found.append(f"path {path} of edge {parent}-{child}")
                reached.add(child)
            if not reached >= group:
                found.append(f"tree {tree} does not reach {group - reached}")
            carried[int(part.root[tree])] += int(part.units[tree]) * part.unit_bytes / len(packing.passes)
    total = sum(want.values(), Fraction(0))
    if sum(carried.values(), Fraction(0)) != total:
        found.append(f"trees carry {sum(carried.values(), Fraction(0))} of {total} bytes")
    return found


def times_of(data: Data, solved: client.Reply) -> list[str]:
    """Compute the time of steps and the flow time of trees anew, and try every cut."""
    made, posed, told = solved.answer, solved.instance, solved.record.objective
    exact: Fraction | None = None
    if hasattr(made, "step"):
        exact = clock.completion(posed, made)
    elif hasattr(made, "edge_offset"):
        load: dict[int, Fraction] = defaultdict(Fraction)
        for part in made.passes:
            for tree in range(len(part)):
                for edge in range(int(part.edge_offset[tree]), int(part.edge_offset[tree + 1])):
                    for link in part.path_links[part.path_offset[edge] : part.path_offset[edge + 1]].tolist():
                        load[link] += int(part.units[tree]) * part.unit_bytes
        exact = max((b / posed.network.links[link].bandwidth_Bps for link, b in load.items()), default=Fraction(0))
    if exact is not None and abs(Fraction(told) - exact) > exact / 10**9:
        return [f"ends at {float(exact)!r}"]
    least = cut(posed, bytes_to_move(data))
    return [f"a cut: {float(least)!r}"] if told < float(least) * (1 - client.ROUNDING) else []


def cut(posed: Any, want: Mapping[Condition, Fraction]) -> Fraction:
    """Largest time of any set of nodes that bytes must leave."""
    network, best = posed.network, Fraction(0)
    rank = {node: r for r, node in enumerate(network.rank_nodes)}
    for inside in subsets(len(network.nodes)):
        ranks = frozenset(rank[node] for node in inside if node in rank)
        size = Fraction(0)
        for (held, needed, summed), amount in want.items():
            stems = bool(held & ranks) if summed else held <= ranks
            if stems and needed - ranks:
                size += amount
        ends = zip(network.links, network.link_ends, strict=True)
        rate = sum((link.bandwidth_Bps for link, (a, b) in ends if a in inside and b not in inside), Fraction(0))
        if size and rate:
            best = max(best, size / rate)
    return best


def expressions(seed: int) -> list[Fault]:
    """Check networks of any size by expressions for a method that refuses them, within a second of loading."""
    random = rng("sizes", seed)
    a, b = (round(10 ** random.uniform(0.5, 3.2)) for _ in range(2))
    spec = random.choice((f"torus({a},{b})", f"mesh({a},{b})", f"ring({a * b})", f"line({a * b})", f"star({a * b})"))
    words = (
        "solve",
        "--model",
        "libra",
        spec,
        "--collective",
        "all_gather",
        "--size",
        "1 MB",
        "--time-limit",
        "1 s",
        "--quiet",
    )
    status, _, err = client.command(*words)
    if status in client.WRONG_STATUS:
        return [
            Fault(
                client.WRONG_STATUS[status], client.command_text(words), err.strip()[-200:], "an answer or a reason", 14
            )
        ]
    return []


def small(seed: int) -> list[Fault]:
    """Ask the same of a fixed small question of every method, so that none is left out."""
    name, options = METHODS[seed % len(METHODS)]
    arcs = [
        arc
        for a, b in ((0, 1), (1, 2), (2, 3), (3, 0))
        for arc in ((str(a), str(b), "1 B/s"), (str(b), str(a), "1 B/s"))
    ]
    data = instance([*"0123"], arcs, KINDS[seed // len(METHODS) % 4], "4 B")
    solved = client.solve(data, name, time_limit_s=10, **options)
    wrong = [*faults_of(data, solved), *times_of(data, solved)] if solved.has_answer else []
    told = [Fault("wrong answer accepted", solved.question, solved.outcome_text, text, None) for text in wrong[:1]]
    return client.conduct(solved) + told


CAMPAIGNS = (
    Campaign("answers", "replay, sizes, times, every cut", answer, range(40), 4000, cpu_s=120, batch=10),
    Campaign(
        "every-method",
        "replay, sizes, times, every cut",
        small,
        range(len(METHODS)),
        4 * len(METHODS),
        cpu_s=120,
        batch=6,
    ),
    Campaign(
        "sizes", "a limit in processor seconds", expressions, range(3), 40, cpu_s=40, batch=2, endless=lambda _: 14
    ),
)
