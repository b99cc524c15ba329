"""One clock: the exact time of schedules in any unit, and the same time wherever it is told."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from random import Random
from typing import Any

import cwb
from cwb.benchmarks.adversary import client, clock
from cwb.benchmarks.adversary.fault import Campaign, Fault
from cwb.benchmarks.adversary.networks import rng
from cwb.core.collective import Demand, collective_named
from cwb.harness import Request, run

TEXTBOOK = ("ring", "direct", "rhd", "bruck", "bruck", "dbt", "knomial", "torus-rings")


def _network(random: Random) -> str:
    a, b = random.randint(2, 5), random.randint(2, 5)
    return random.choice((f"mesh({a},{b})", f"torus({a},{b})", f"ring({a + b})", f"line({a + 1})", f"star({a + 1})"))


def _scale_network(spec: str, kind: str, size: Fraction, scale: Fraction) -> Any:
    """Load a network with all rates times a number and all latencies over it."""
    loaded = cwb.load(spec)
    network = loaded.network
    links = [
        replace(link, bandwidth_Bps=link.bandwidth_Bps * scale, latency_s=link.latency_s / scale)
        for link in network.links
    ]
    return loaded.with_changes(
        network=replace(network, links=tuple(links)), demand=Demand(collective_named(kind), size)
    )


def order(seed: int) -> list[Fault]:
    """Time a textbook schedule on a random network in a random unit."""
    random = rng("order", seed)
    spec, kind = _network(random), random.choice(("all_reduce", "all_reduce", "all_gather", "all_to_all"))
    name = random.choice(TEXTBOOK)
    size = Fraction(random.choice((1, 10**3, 10**6, 2**20, 10**9 + 7)))
    scale = Fraction(random.randint(1, 10), random.randint(1, 10)) * Fraction(10) ** random.randint(-3, 3)
    return check_time(spec, kind, name, size, scale)


def check_time(spec: str, kind: str, name: str, size: Fraction, scale: Fraction) -> list[Fault]:
    """Hold the objective of a schedule in steps against the exact clock."""
    done = run(_scale_network(spec, kind, size, scale), Request(name))
    if done.record.objective is None or not hasattr(done.answer, "step"):
        return []
    exact = clock.completion(done.instance, done.answer)
    if abs(Fraction(done.record.objective) - exact) <= exact / 10**9:
        return []
    question = f"cwb solve --model {name} '{spec}' --collective {kind} --size '{size} B', rates times {scale}"
    return [Fault("another time", question, repr(done.record.objective), repr(float(exact)), 19)]


#: Methods of every kind of answer, with options that keep them short.
MAKERS: tuple[tuple[str, dict[str, Any], tuple[str, ...]], ...] = (
    ("forestcoll", {}, ("all_gather", "reduce_scatter", "all_reduce")),
    ("tacos", {"restarts": 4}, ("all_gather", "all_reduce")),
    ("ring", {}, ("all_gather", "all_reduce")),
    ("bfb", {}, ("all_gather", "all_reduce")),
    ("mtree", {}, ("all_reduce",)),
    ("multitree", {}, ("all_gather", "all_reduce")),
    ("blink", {}, ("all_reduce", "broadcast")),
    ("single-tree", {}, ("all_reduce",)),
    ("pccl", {"steps": 200}, ("all_gather", "all_to_all")),
    ("teccl", {"timing": "store-and-forward"}, ("all_gather", "broadcast")),
)


def one_clock(seed: int) -> list[Fault]:
    """Solve, write, simulate and check: the same completion time in all of them."""
    random = rng("one-clock", seed)
    name, options, kinds = random.choice(MAKERS)
    spec, kind = _network(random), random.choice(kinds)
    size = random.choice(("1 KiB", "1 MiB", "1 GiB"))
    file = client.folder() / "schedule.json"
    file.unlink(missing_ok=True)
    words = ["solve", "--model", name, spec, "--collective", kind, "--size", size, "--json", "-o", str(file), "--quiet"]
    words += [word for key, value in options.items() for word in ("-O", f"{key}={value}")]
    question = client.command_text(tuple(words))
    status, out, err = client.command(*words)
    if status in client.WRONG_STATUS:
        return [Fault(client.WRONG_STATUS[status], question, err.strip()[-300:], "exit status 0", None)]
    if status or not file.exists():
        return []
    record = json.loads(out)
    told = record["metrics"].get("completion_time_s")
    times = {
        "simulate": client.command("simulate", str(file), "--json"),
        "check": client.command("check", str(file), "--json"),
    }
    found = []
    for command, (code, text, error) in times.items():
        if code:
            found.append(Fault("exit status", question, f"{command}: {code} {error.strip()[-200:]}", "0", None))
            continue
        other = json.loads(text).get("completion_time_s")
        if other is not None and (told is None or abs(other - told) > 1e-9 * other):
            found.append(Fault("another clock", question, f"solve {told!r} s", f"{command} {other!r} s", None))
    if told is None:
        found.append(Fault("no clock", question, "no completion_time_s", "a time", None))
    return found


CAMPAIGNS = (
    Campaign("order", "exact clock", order, range(40), 4000, cpu_s=120, batch=25),
    Campaign("one-clock", "simulate and check of the file", one_clock, range(12), 120, cpu_s=180, batch=10),
)
