"""Synthesizers that say optimal: extreme ratios of rates, ports of switches, equal chunks."""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from cwb.benchmarks.adversary import client, networks
from cwb.benchmarks.adversary.fault import Campaign, Fault
from cwb.benchmarks.adversary.networks import Data, instance, rng


def relay(data: Data) -> Fraction | None:
    """Return the time of an all-gather by a greedy algorithm: each chunk takes its fastest free links."""
    nodes = [node["name"] for node in data["network"]["nodes"]]
    shard = networks.exact(data["collective"]["size"]) / len(nodes)
    links = [
        (nodes.index(e["source"]), nodes.index(e["target"]), shard / Fraction(e["bandwidth"].split()[0]))
        for e in data["network"]["links"]
    ]
    free = [Fraction(0)] * len(links)
    last = Fraction(0)
    for root in range(len(nodes)):
        there: dict[int, Fraction] = {}
        came: dict[int, tuple[int, Fraction]] = {}
        heap = [(Fraction(0), root, -1)]
        while heap:
            time, node, over = heapq.heappop(heap)
            if node in there:
                continue
            there[node] = time
            if over >= 0:
                free[over] = time
                came[node] = (over, time)
            for e, (a, b, takes) in enumerate(links):
                if a == node and b not in there:
                    heapq.heappush(heap, (max(time, free[e]) + takes, b, e))
        if len(there) < len(nodes):
            return None
        last = max(last, *there.values())
    return last


def ratios(seed: int) -> list[Fault]:
    """All-gathers over links whose rates are up to 10^21 apart."""
    random = rng("ratios", seed)
    count = random.choice((2, 3, 3, 4))
    pairs = networks.connected_pairs(random, count, random.randrange(4))
    wide = random.choice((3, 9, 12))
    arcs = []
    for a, b in pairs:
        both = _decimal(Fraction(10) ** random.randint(-wide, wide)) if random.random() < 0.5 else None
        for x, y in ((a, b), (b, a)):
            rate = both or _decimal(Fraction(10) ** random.randint(-wide, wide))
            arcs.append((str(x), str(y), f"{rate} B/s"))
    data = instance([*map(str, range(count))], arcs, "all_gather", f"{count} B")
    return fastest(data, 12, {"restarts": 2})


def _decimal(value: Fraction) -> str:
    """Write a power of ten without an exponent."""
    return str(value) if value.denominator == 1 else f"0.{'0' * (len(str(value.denominator)) - 2)}1"


def fastest(data: Data, defect: int | None, options: Mapping[str, Any]) -> list[Fault]:
    """Ask ``tacos`` for an all-gather, and hold it against the relay."""
    solved = client.solve(data, "tacos", time_limit_s=10, **options)
    found = client.conduct(solved, defect)
    best = relay(data)
    return found + (client.claims(solved, best, "relay", defect) if best is not None else [])


def ports(seed: int) -> list[Fault]:
    """Stars for ``tacos``: what a rank receives passes its one port."""
    random = rng("ports", seed)
    count = random.randint(2, 5)
    rate = random.choice((1, 2, 5))
    arcs = [arc for i in range(count) for arc in ((str(i), "s", f"{rate} GB/s"), ("s", str(i), f"{rate} GB/s"))]
    sort = {"multicast": random.random() < 0.5, **({"buffer": "0 B"} if random.random() < 0.5 else {})}
    kind = random.choice(("all_gather", "reduce_scatter"))
    data = instance([*map(str, range(count)), "s"], arcs, kind, f"{count} MB", {"s": sort})
    options: dict[str, Any] = {"restarts": random.choice((1, 4)), "variant": random.choice(("paper", "portfolio"))}
    unwind = random.choice((None, 0, 0, 1, 2))
    if unwind is not None:
        options["unwind"] = unwind
    return through(data, Fraction(count - 1, 1000 * rate), options)


def through(data: Data, least: Fraction, options: Mapping[str, Any]) -> list[Fault]:
    """Compare ``tacos`` on a star with the time that a port takes; a time-out is a fault too."""
    solved = client.solve(data, "tacos", **options)
    found = client.conduct(solved, 18) + client.impossible(solved, least, "ingress of a rank", 18)
    record = solved.record
    if record is not None and record.status == "limit" and "time" in record.message:
        found.append(Fault("time-out without a limit", solved.question, record.message, "no limit was set", 18))
    return found


def equal(seed: int) -> list[Fault]:
    """Solve equal chunks with ``pccl``; with the bound a whole number of steps, a schedule of as many is optimal."""
    random = rng("equal-chunks", seed)
    count = random.randint(3, 6)
    arcs = [
        arc
        for a, b in networks.connected_pairs(random, count, random.randrange(4))
        for arc in ((str(a), str(b), "1 GB/s", "0 s"), (str(b), str(a), "1 GB/s", "0 s"))
    ]
    kind = random.choice(("all_gather", "all_to_all"))
    data = instance([*map(str, range(count))], arcs, kind, f"{count} GB")
    solved = client.solve(data, "pccl", steps=300, time_limit_s=20)
    return client.conduct(solved) + whole_steps(solved, Fraction(1))


def whole_steps(solved: client.Reply, step_s: Fraction) -> list[Fault]:
    """Hold status and bound against a bound that is rounded up to whole steps."""
    record = solved.record
    if not solved.has_answer or record.bound is None:
        return []
    steps = -int(-Fraction(record.bound * (1 - client.ROUNDING)) / step_s // 1)
    if record.status != "optimal" and record.objective <= float(steps * step_s) * (1 + client.ROUNDING):
        return [
            Fault("optimum not told", solved.question, solved.outcome_text, f"{steps} steps of {float(step_s)!r} s", 15)
        ]
    return []


CAMPAIGNS = (
    Campaign("ratios", "relay of our own", ratios, range(12), 600, cpu_s=120, batch=8),
    Campaign("ports", "ingress of a rank", ports, range(12), 600, cpu_s=120, batch=8),
    Campaign("equal-chunks", "whole steps", equal, range(4), 100, cpu_s=120, batch=4),
)
