"""Rows of the topology finder compared with breadth-first broadcasts and with circulants tried one by one."""

from __future__ import annotations

import json
from collections import defaultdict
from fractions import Fraction
from itertools import combinations
from typing import Any

from cwb.benchmarks.adversary import client
from cwb.benchmarks.adversary.fault import Campaign, Fault
from cwb.benchmarks.adversary.networks import rng
from cwb.benchmarks.adversary.replay import sends_in_steps
from cwb.core.collective import Collective, Demand
from cwb.core.instance import Instance
from cwb.core.topology import Link, Node, Topology
from cwb.harness import Request, run

#: 1 B/s a link and 1 s of latency, so that the metrics are those of the finder.
RATE, LATENCY = Fraction(1), Fraction(1)


def rows(seed: int) -> list[Fault]:
    """Compute the values of every row of a random size and degree anew."""
    random = rng("finder", seed)
    degree = random.randint(1, 6)
    return size(random.randint(degree + 1, 20), degree, circulants=False)


def circulants(seed: int) -> list[Fault]:
    """Try all directed circulants of a small size against the rows."""
    random = rng("circulants", seed)
    degree = random.randint(2, 4)
    return size(random.randint(degree + 2, 11), degree, circulants=True)


def size(nodes: int, degree: int, *, circulants: bool) -> list[Fault]:
    """Compare the rows of a size."""
    words = (
        "find-topology",
        "--nodes",
        str(nodes),
        "--degree",
        str(degree),
        "--all-to-all-limit",
        "0",
        "--no-schedule",
        "--json",
    )
    status, out, err = client.command(*words)
    if status:
        wrong = status in client.WRONG_STATUS
        return (
            [Fault("exit status", client.command_text(words), f"{status} {err.strip()[-200:]}", "a frontier", 20)]
            if wrong
            else []
        )
    found = json.loads(out)
    return _beaten(found, words, nodes, degree) if circulants else _wrong_assessments(found, words)


def _dominates(one: tuple[int, Fraction], other: tuple[int, Fraction]) -> bool:
    """Check if a pair is no worse in both values and better in one."""
    return one != other and one[0] <= other[0] and one[1] <= other[1]


def _wrong_assessments(found: dict[str, Any], words: tuple[str, ...]) -> list[Fault]:
    from cwb.studies.topology_finder.assessment import network_of
    from cwb.studies.topology_finder.finder import Job, find

    nodes, degree = found["nodes"], found["degree"]
    job = Job(
        nodes, degree, Fraction(found["alpha_s"]), Fraction(found["size_bytes"]), Fraction(found["bandwidth_Bps"])
    )
    faults = []
    for choice in find(job):
        row = next((row for row in found["frontier"] if row["topology"] == str(choice.candidate)), None)
        network = network_of(choice.candidate, RATE, LATENCY)
        value = steps_and_load_by_bfb(network)
        if row is None or value is None:
            continue
        told = row["T_L"], Fraction(row["T_B"])
        if told not in (value, steps_and_load_by_finder(choice.candidate, network)) or _dominates(value, told):
            text = f"{row['topology']} ({row['T_L']}, {row['T_B']})"
            faults.append(Fault("row misjudged", client.command_text(words), text, f"bfb: {value[0]}, {value[1]}", 20))
    return faults


def steps_and_load_by_finder(candidate: Any, network: Topology) -> tuple[int, Fraction]:
    """Return T_L and T_B of the finder's all-gather: its steps, and the fullest links of all of them."""
    from cwb.studies.topology_finder.build import schedule

    made = schedule(candidate, Instance("row", network, Demand(Collective.ALL_GATHER, Fraction(1))))
    load: dict[int, dict[int, Fraction]] = defaultdict(lambda: defaultdict(Fraction))
    for send in sends_in_steps(made):
        for link in send.links:
            load[send.start][link] += made.chunks.size_bytes(send.chunk)
    return len(load), sum((max(links.values()) for links in load.values()), Fraction(0)) * candidate.degree


def _beaten(found: dict[str, Any], words: tuple[str, ...], nodes: int, degree: int) -> list[Fault]:
    """Only where it is said that no other network is better."""
    text = client.command("find-topology", "--help")[1]
    if "no other one beats" not in " ".join(text.split()):
        return []
    best = min(row["all_reduce_s"] for row in found["frontier"])
    alpha, ratio = Fraction(found["alpha_s"]), Fraction(found["size_bytes"]) / Fraction(found["bandwidth_Bps"])
    for offsets in combinations(range(1, nodes), degree):
        if offsets[0] != 1:
            continue
        value = steps_and_load_by_bfb(circulant(nodes, offsets))
        if value is not None:
            time = 2 * (value[0] * alpha + value[1] * ratio)
            if float(time) < best * (1 - client.ROUNDING):
                told = f"directed circulant {list(offsets)}: {float(time)!r} s"
                return [Fault("frontier beaten", client.command_text(words), f"best {best!r} s", told, 20)]
    return []


def circulant(nodes: int, offsets: tuple[int, ...]) -> Topology:
    """Network in which everybody sends to those that are some offsets on."""
    links = [Link(str(u), str((u + o) % nodes), RATE, LATENCY) for u in range(nodes) for o in offsets]
    return Topology(tuple(Node(str(i)) for i in range(nodes)), tuple(links))


def steps_and_load_by_bfb(network: Topology) -> tuple[int, Fraction] | None:
    """T_L and T_B of an all-gather by ``bfb``."""
    instance = Instance("row", network, Demand(Collective.ALL_GATHER, Fraction(1)))
    record = run(instance, Request("bfb", options={"schedule": False})).record
    if "T_L" not in record.metrics:
        record = run(instance, Request("bfb")).record
    return (record.metrics["T_L"], Fraction(record.metrics["T_B"])) if "T_B" in record.metrics else None


CAMPAIGNS = (
    Campaign("finder", "bfb on the networks of the rows", rows, range(10), 200, cpu_s=200, batch=5),
    Campaign("circulants", "all directed circulants", circulants, range(4), 40, cpu_s=200, batch=2),
)
