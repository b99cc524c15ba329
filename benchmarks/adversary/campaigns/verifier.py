"""The verifier alone: schedules that are right and wrong, and certificates that say too much."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from typing import Any

from cwb.benchmarks.adversary import certificates, client, clock, makers
from cwb.benchmarks.adversary.fault import Campaign, Fault
from cwb.benchmarks.adversary.networks import rng
from cwb.benchmarks.adversary.replay import faults_in_epochs
from cwb.core.instance import plain


def _schedule_text(made: makers.MadeSchedule, certificate: Any = None) -> str:
    """Write a schedule down, briefly."""
    network = plain(made.instance.network)
    links = [[a["source"], a["target"], a["bandwidth_Bps"], a["latency_s"]] for a in network["links"]]
    data = {
        "nodes": [n["name"] for n in network["nodes"]],
        "links": links,
        "demand": plain(made.instance.demand),
        "sends": [[s.chunk, s.source, s.target, int(s.adds), list(s.links), s.start, s.end] for s in made.sends],
        "certificate": certificate and certificate.to_json(),
    }
    return json.dumps(data, separators=(",", ":"))


def _is_undetermined(made: makers.MadeSchedule) -> bool:
    """Check if the rules leave open what is right, as for partial sums in switches that do not copy."""
    nodes = made.instance.network.nodes
    switches = {i for i, node in enumerate(nodes) if node.kind.value == "switch"}
    into = [s for s in made.sends if s.target in switches]
    if any(not nodes[i].multicast for i in switches) and any(made.chunks.reduced) and into:
        return True
    empty = {i for i in switches if nodes[i].buffer_bytes == 0}
    added: dict[tuple[int, int, int], int] = {}
    for s in into:
        if s.target in empty and s.adds:
            key = (s.target, s.chunk, s.end)
            added[key] = added.get(key, 0) + 1
    return 1 in added.values()


def schedules(seed: int) -> list[Fault]:  # noqa: PLR0911 (one for each way to differ)
    """Verify a schedule on a grid of epochs, changed in up to two places; hold the verdict against the replay."""
    random = rng("schedules", seed)
    inside = random.random() < 0.1
    made = makers.in_switch(random) if inside else makers.make(random)
    if not made.sends:
        return []
    for _ in range(random.randrange(3)):
        if made.sends:
            made = makers.mutate_send(random, made)
    if not made.chunks.reduced.any() and random.random() < 0.5:
        made = makers.limit_switches(random, made)
    if not made.sends or _is_undetermined(made):
        return []
    wrong = faults_in_epochs(made.instance, made.chunks, made.sends)
    verdict, crash = client.verdict(made.instance, made.to_schedule())
    defect = 8 if inside else None
    if crash:
        return [Fault("internal error", _schedule_text(made), crash, "a verdict", defect)]
    if verdict is None:
        return []
    if verdict.ok and wrong:
        return [Fault("wrong schedule accepted", _schedule_text(made), "right", wrong[0], defect)]
    if not verdict.ok and not wrong:
        return [
            Fault("right schedule refused", _schedule_text(made), verdict.violations[0], "nothing is wrong", defect)
        ]
    return []


def epoch_bounds(seed: int) -> list[Fault]:
    """Forge certificates on a grid of epochs; none may prove more than a schedule that is right takes."""
    random = rng("epoch-bounds", seed)
    fluid, fast = random.random() < 0.25, 0 if random.random() < 0.8 else random.randint(28, 36)
    made = makers.make(random, fluid=fluid, fast=fast)
    if not made.sends or (not fluid and faults_in_epochs(made.instance, made.chunks, made.sends)):
        return []
    topology = made.instance.network
    certificate = certificates.in_epochs(random, len(topology.nodes), len(topology.links), made.ends, fluid=fluid)
    if random.random() < 0.15:
        certificate = certificates.in_seconds(random, len(topology.nodes), len(topology.ranks), len(topology.links))
    return check_proof(
        made, made.to_schedule(), certificate, made.ends * made.unit_s, 9 if fluid else 10 if fast else None
    )


def network_bounds(seed: int) -> list[Fault]:
    """Forge cuts, distances, partitions and lengths for schedules in steps, timed here."""
    random = rng("network-bounds", seed)
    made = makers.make(random)
    if not made.sends or made.instance.timing is None or made.instance.timing.changes:
        return []
    made = replace(made, instance=made.instance.with_changes(timing=None))
    topology, answer = made.instance.network, made.in_steps()
    certificate = certificates.in_seconds(random, len(topology.nodes), len(topology.ranks), len(topology.links))
    time = clock.completion(made.instance, answer)
    found = check_proof(made, answer, certificate, time, None)
    verdict, crash = client.verdict(made.instance, answer)
    if not crash and verdict is not None and verdict.ok:
        off = abs(Fraction(verdict.objective) - time)
        if off > Fraction(1, 10**9) * time:
            found.append(Fault("another time", _schedule_text(made), repr(verdict.objective), repr(float(time)), 19))
    return found


def check_proof(
    made: makers.MadeSchedule, answer: Any, certificate: Any, time: Fraction, defect: int | None
) -> list[Fault]:
    """Verify a right schedule with a certificate."""
    verdict, crash = client.verdict(made.instance, answer, certificate)
    if crash:
        return [Fault("internal error", _schedule_text(made, certificate), crash, "a verdict", defect)]
    if verdict is None or verdict.bound is None:
        # A verifier that compares refuses a file whose certificate contradicts it: here the schedule is right, so the
        # arithmetic is not.
        text = next((v for v in verdict.violations if "contradict" in v), None) if verdict else None
        return (
            [Fault("contradiction", _schedule_text(made, certificate), text, f"ends at {float(time)!r} s", defect)]
            if text
            else []
        )
    if not verdict.bound <= float(time) * (1 + client.ROUNDING):
        known = f"a right schedule ends at {float(time)!r} s"
        return [
            Fault("proves too much", _schedule_text(made, certificate), f"proves {verdict.bound!r} s", known, defect)
        ]
    return []


CAMPAIGNS = (
    Campaign("schedules", "replay of whole chunks in epochs", schedules, range(1500), 40_000, batch=250),
    Campaign("epoch-bounds", "right schedules", epoch_bounds, range(1500), 40_000, batch=250),
    Campaign("network-bounds", "right schedules, exact clock", network_bounds, range(1000), 20_000, batch=250),
)
