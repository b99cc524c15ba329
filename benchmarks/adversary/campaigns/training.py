"""Changed certificates of LIBRA: multipliers, weights and shares; none may prove more than the time of a plan."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from math import isfinite
from random import Random
from typing import Any

import cwb
from cwb.benchmarks.adversary import client
from cwb.benchmarks.adversary.fault import Campaign, Fault
from cwb.benchmarks.adversary.networks import rng
from cwb.harness import Request, run

#: Instances and options whose plans are found once in a process.
QUESTIONS: tuple[tuple[str, dict[str, str]], ...] = (
    ("4d", {}),
    ("3d", {"total_bandwidth": "500 GB/s"}),
    ("gpt-3-3d", {"objective": "perf-per-cost", "total_bandwidth": "500 GB/s"}),
    ("dlrm-3d", {"objective": "perf-per-cost", "total_bandwidth": "400 GB/s"}),
)


@cache
def plan_with_certificate(index: int) -> Any:
    """A plan with its certificate."""
    name, options = QUESTIONS[index]
    return run(cwb.load(name), Request("libra", options=options))


def forge_certificate(seed: int) -> list[Fault]:
    """Change a certificate in up to three places, and verify the plan with it."""
    random = rng("multipliers", seed)
    index = random.randrange(len(QUESTIONS))
    done = plan_with_certificate(index)
    certificate = done.certificate
    if not getattr(certificate, "lines", None):
        return []
    changes = []
    if random.random() < 0.05:
        other = plan_with_certificate(random.randrange(len(QUESTIONS))).certificate
        certificate, changes = (other, ["swapped"]) if getattr(other, "lines", None) else (certificate, [])
    for _ in range(random.randint(1, 3)):
        certificate, told = _change_lines(random, certificate)
        changes.append(told)
    return proves(index, certificate, "; ".join(changes))


def proves(index: int, certificate: Any, changes: str) -> list[Fault]:
    """Verify a plan with a certificate, and hold what it proves against the plan."""
    name, options = QUESTIONS[index]
    done = plan_with_certificate(index)
    verdict, crash = client.verdict(done.instance, done.answer, certificate)
    question = f"cwb solve --model libra {name} {options}, certificate with {changes}"
    if crash:
        return [Fault("internal error", question, crash, "a verdict", 11)]
    if verdict is None or verdict.bound is None:
        text = next((v for v in verdict.violations if "contradict" in v), None) if verdict else None
        return [Fault("contradiction", question, text, f"a plan of {done.record.objective!r}", 11)] if text else []
    top = done.record.objective
    if not isfinite(verdict.bound) or verdict.bound > top * (1 + client.ROUNDING):
        return [Fault("proves too much", question, f"proves {verdict.bound!r}", f"a plan of {top!r}", 11)]
    return []


def scale_lines(certificate: Any, factor: float) -> Any:
    """Scale whole lines: what they prove stays what it is."""
    lines = tuple(
        replace(
            line,
            time_weight=line.time_weight * factor,
            cost_weight=line.cost_weight * factor,
            multipliers=tuple(m * factor for m in line.multipliers),
        )
        for line in certificate.lines
    )
    return replace(certificate, lines=lines)


def _factor(random: Random) -> float:
    return random.choice((random.uniform(0, 2), 10.0 ** random.uniform(-320, 300), 10.0 ** random.uniform(-165, -145)))


def _change_lines(random: Random, certificate: Any) -> tuple[Any, str]:
    factor = _factor(random)
    lines = list(certificate.lines)
    place = random.randrange(len(lines))
    line = lines[place]
    match random.randrange(8):
        case 0 | 1:
            return scale_lines(certificate, factor), f"all lines times {factor!r}"
        case 2:
            line, told = replace(line, time_weight=line.time_weight * factor), f"time weight {place} times {factor!r}"
        case 3:
            line, told = (
                replace(line, cost_weight=(line.cost_weight or 1.0) * factor),
                f"cost weight {place} times {factor!r}",
            )
        case 4 if line.multipliers:
            row = list(line.multipliers)
            which = random.randrange(len(row))
            row[which] = random.choice((row[which] * factor, -row[which], factor, float("nan"), float("inf"), 5e-324))
            line, told = replace(line, multipliers=tuple(row)), f"multiplier {place}.{which} = {row[which]!r}"
        case 5 if line.shares:
            shares = [list(share) for share in line.shares]
            which = random.randrange(len(shares))
            told_share = tuple(s * random.choice((1.0, 1 + 1e-9, factor)) for s in shares[which][4])
            shares[which][4] = told_share
            line, told = (
                replace(line, shares=tuple(tuple(s) for s in shares)),
                f"share {place}.{which} = {told_share!r}",
            )
        case 6:
            return replace(certificate, scale_free=not certificate.scale_free), "scale_free turned"
        case _:
            if len(lines) > 1:
                del lines[place]
                return replace(certificate, lines=tuple(lines)), f"without line {place}"
            return replace(certificate, lines=(line, line)), "a line twice"
    lines[place] = line
    return replace(certificate, lines=tuple(lines)), told


CAMPAIGNS = (
    Campaign("multipliers", "plans that were found", forge_certificate, range(1200), 20_000, cpu_s=120, batch=500),
)
