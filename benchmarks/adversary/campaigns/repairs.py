"""Schedules on networks with switches, played again: repairs of a link slower, a link gone or a rank gone; sums."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from fractions import Fraction
from random import Random
from typing import Any

from cwb.benchmarks.adversary import client, networks
from cwb.benchmarks.adversary.fault import Campaign, Fault, count_comparisons
from cwb.benchmarks.adversary.networks import Data, rng
from cwb.benchmarks.adversary.replay import Send, faults_of_data, rows
from cwb.core.schedule import StepSchedule
from cwb.schedules.files import read_schedule

#: Methods with the collectives that they are asked for.
METHODS = {
    "teccl": ("all_gather", "all_to_all", "broadcast"),
    "teccl-lp": ("all_to_all", "all_gather", "scatter"),
    "teccl-milp": ("all_gather", "all_to_all", "broadcast"),
    "pccl": ("all_gather", "all_to_all", "broadcast", "reduce_scatter", "all_reduce"),
    "tacos": ("all_gather", "reduce_scatter", "all_reduce"),
    "ring": ("all_gather", "reduce_scatter", "all_reduce"),
}

#: Number of the defect.
DEFECT = 31


def network(random: Random, kind: str) -> Data:
    """Ranks at one switch, or in boxes with a switch each and a switch or rails between them."""
    if random.random() < 0.3:
        data = networks.star(random, random.choice((3, 4)), kind=kind)
        if random.random() < 0.3:
            data["network"]["nodes"][-1]["buffer"] = f"{random.choice((1, 2, 3))} B"
        return data
    boxes, each = random.choice(((2, 2), (2, 3), (3, 2)))
    rails = each if random.random() < 0.5 else 1
    ranks = [f"{b}.{g}" for b in range(boxes) for g in range(each)]
    sort: Data = {"multicast": random.random() < 0.3}
    if random.random() < 0.6:
        sort["buffer"] = "0 B"
    names = [*ranks, *(f"box{b}" for b in range(boxes)), *(f"rail{r}" for r in range(rails))]
    late = random.choice(("0 s", "0 s", "1 s"))
    arcs = []
    for rank in ranks:
        b, g = rank.split(".")
        for hub, rate in ((f"box{b}", random.choice((2, 4))), (f"rail{int(g) % rails}", random.choice((1, 2)))):
            arcs += [(rank, hub, f"{rate} B/s", late), (hub, rank, f"{rate} B/s", late)]
    size = networks.whole(kind, len(ranks), 1)
    return networks.instance(names, arcs, kind, size, {n: sort for n in names if n not in ranks})


def case(seed: int) -> list[Fault]:
    """Solve an instance with a method, and repair the schedule after three changes."""
    random = rng("repairs", seed)
    method = random.choice([*METHODS, "pccl", "teccl-lp"])
    data = network(random, random.choice(METHODS[method]))
    folder = client.folder()
    path, plan, out = (folder / name for name in ("instance.json", "plan.json", "repaired.json"))
    path.write_text(json.dumps(data))
    words = ["solve", "--model", method, str(path), "-o", str(plan), "--quiet", "--time-limit", "10"]
    if method.startswith("teccl") and random.random() < 0.5:
        words += ["-O", "timing=store-and-forward"]
    plan.unlink(missing_ok=True)
    if client.command(*words)[0] != 0 or not plan.exists():
        return []
    text = f"{client.command_text(tuple(words))} with {json.dumps(data, separators=(',', ':'))}; "
    ends = random.choice(data["network"]["links"])
    link = f"{ends['source']}:{ends['target']}"
    rank = random.choice([n["name"] for n in data["network"]["nodes"] if n.get("kind") != "switch"])
    changes = (("--link", f"{link}=0.5 B/s"), ("--without-link", link), ("--without-rank", rank))
    return list(itertools.chain.from_iterable(_repair(plan, out, text, change) for change in changes))


def _repair(plan: Any, out: Any, text: str, change: tuple[str, str]) -> Iterator[Fault]:
    out.unlink(missing_ok=True)
    status, told, errors = client.command("repair", str(plan), *change, "-o", str(out), "--json")
    question = text + "cwb repair " + " ".join(change)
    if status in (2, 7):
        if errors.count("\n") != 1:
            yield Fault("no clear reason", question, errors[:300], "one line", DEFECT)
        return
    if status != 0:
        yield Fault("exit status", question, f"{status}: {errors[:200]}", "exit status 0, 2 or 7", DEFECT)
        return
    read, claims = read_schedule(out), json.loads(told)
    count_comparisons()
    if claims["after_s"] < claims["bound_s"] * (1 - client.ROUNDING):
        yield Fault("below its bound", question, told[:300], "a bound is at most the time", DEFECT)
    if hasattr(read.answer, "sends"):
        count_comparisons()
        for wrong in itertools.islice(violations(read.instance, read.answer, claims["after_s"]), 1):
            yield Fault("wrong repair", question, wrong, "own replay", DEFECT)


def violations(instance: Any, answer: Any, told_s: float) -> Iterator[str]:
    """Yield faults of a schedule without a grid: paths, times, the load of links, switches and data."""
    topology = instance.network
    if isinstance(answer, StepSchedule):
        starts, ends = (2 * answer.step).tolist(), (2 * answer.step + 1).tolist()
        timed = False
    else:
        starts, ends = answer.start_s.tolist(), answer.end_s.tolist()
        timed = True
    slack = 1e-9 * max(ends, default=0)
    instants: dict[float, int] = {}
    last = None
    for time in sorted({*starts, *ends}):
        instants[time] = 0 if last is None else instants[last] + (time - last > slack)
        last = time
    sends = [Send(*row, instants[a], instants[b]) for row, a, b in zip(rows(answer), starts, ends, strict=True)]
    load = [Fraction(0)] * len(topology.links)
    for send, a, b in zip(sends, starts, ends, strict=True):
        size = answer.chunks.size_bytes(send.chunk)
        links = [topology.links[link] for link in send.links]
        wire = [size / link.bandwidth_Bps for link in links]
        for link, busy in zip(send.links, wire, strict=True):
            load[link] += busy
        nodes = [send.source, *(topology.link_ends[link][1] for link in send.links)]
        if nodes[:-1] != [topology.link_ends[link][0] for link in send.links] or nodes[-1] != send.target:
            yield f"{send} is no path"
        if timed and b - a < float(sum(link.latency_s for link in links) + max(wire)) - slack:
            yield f"{send} takes {b - a}, less than its path"
    kept = {n for n, x in enumerate(topology.nodes) if x.kind.value == "switch" and x.buffer_bytes == 0}
    yield from (f"{s} stays in a switch that cannot store" for s in sends if kept & {s.source, s.target})
    busiest = float(max(load, default=0))
    if timed and busiest > max(ends, default=0) + slack:
        yield "a link has more to carry than time"
    if told_s < busiest * (1 - client.ROUNDING):
        yield f"a link is busy for {busiest}, longer than the time that is told, {told_s}"
    yield from faults_of_data(instance, answer.chunks, sends, stores=True)


def sums(seed: int) -> list[Fault]:
    """Ask ``pccl`` for sums over switches with little room, most of which copy, and play them again."""
    random = rng("sums", seed)
    kind = random.choice(("reduce_scatter", "all_reduce", "reduce"))
    count = random.choice((3, 3, 4))
    hubs = random.choice((1, 1, 2))
    sort = {"multicast": random.random() < 0.8, "buffer": f"{random.choice((1, 1, 2, 3, 4))} B"}
    arcs = []
    for rank in range(count):
        for hub in range(hubs):
            for ends in ((f"{rank}", f"s{hub}"), (f"s{hub}", f"{rank}")):
                arcs.append((*ends, f"{random.choice((1, 2, 5))} B/s", random.choice(("0 s", "1 s"))))
    switches = {f"s{hub}": sort for hub in range(hubs)}
    each = random.choice((1, 1, 2))
    data = networks.instance(
        [*map(str, range(count)), *switches], arcs, kind, networks.whole(kind, count, each), switches, chunks=each
    )
    solved = client.solve(data, "pccl", steps=200, time_limit_s=10)
    found = client.conduct(solved, 33)
    if solved.has_answer and hasattr(solved.answer, "sends"):
        count_comparisons()
        told_s = solved.record.metrics.get("completion_time_s") or solved.record.objective
        wrong = itertools.islice(violations(solved.instance, solved.answer, told_s), 1)
        found += [Fault("wrong sums", solved.question, text, "own replay", 33) for text in wrong]
    return found


CAMPAIGNS = (
    Campaign("repairs", "own replay of the repaired schedule", case, range(6), 1500, cpu_s=120, batch=4),
    Campaign("sums", "own replay of sums over switches with little room", sums, range(4), 1500, cpu_s=120, batch=4),
)
