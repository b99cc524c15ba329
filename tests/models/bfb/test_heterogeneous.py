"""LP (14) on links that differ, and the loop that removes links which only cost latency."""

from __future__ import annotations

from fractions import Fraction
from random import Random

import pytest
from cwb import solvers
from cwb.core.budget import Budget
from cwb.core.topology import Link, Node, Topology
from cwb.harness import registry
from cwb.models.bfb.problem import choices_of
from cwb.schedules import verdict_of

GB = 10**9


def run(instance, **options):
    method = registry.get("bfb-heterogeneous")
    assert method.supports(instance) is None
    return method.run(instance, solvers.get("highs"), Budget(), method.options.model_validate(options))


def mixed_network(links):
    """Links as (source, target, GB/s, latency in s)."""
    names = sorted({name for link in links for name in link[:2]})
    wires = tuple(Link(a, b, Fraction(rate) * GB, Fraction(latency)) for a, b, rate, latency in links)
    return Topology(tuple(Node(name) for name in names), wires)


def smallest_time(choices, topology, shard_bytes, u, t):
    """The smallest time in which links with latencies can bring all shards, by trying every set of links and every set
    of shards' links.

    At time U link e brings ``max(0, U - latency) bandwidth`` bytes; Hall's condition must hold for all sets of links W.
    For each W the needed U is that of the cheapest subset of W that is used, so it is the minimum over prefixes of W by
    latency.
    """
    over = {
        v: set(chosen)
        for (v, to), chosen in choices.over.items()
        if to == u and v in choices.carries.get((chosen[0], t), [])
    }
    links = sorted({e for chosen in over.values() for e in chosen}, key=lambda e: topology.links[e].latency_s)
    best = Fraction(0)
    for code in range(1, 1 << len(links)):
        chosen = [e for i, e in enumerate(links) if code >> i & 1]
        count = sum(1 for f in over.values() if f <= set(chosen))
        if count:
            times = []
            for k in range(1, len(chosen) + 1):
                rate = sum(topology.links[e].bandwidth_Bps for e in chosen[:k])
                ahead = sum(topology.links[e].bandwidth_Bps * topology.links[e].latency_s for e in chosen[:k])
                time = (count * shard_bytes + ahead) / rate
                if time >= topology.links[chosen[k - 1]].latency_s:
                    times.append(time)
            best = max(best, min(times))
    return best


@pytest.mark.parametrize("seed", range(12))
def test_the_loop_ends_at_the_smallest_time(seed, pose, random_digraph):
    """On random links and latencies, the sum over the steps of the largest U is that of a formula that knows which
    links are worth their latency."""
    source = Random(seed)  # noqa: S311
    base = random_digraph(source.randint(3, 7), 3, source)
    links = [
        (link.source, link.target, source.choice([1, 2, 3]), source.choice([0, Fraction(1, 10), Fraction(2, 5), 2]))
        for link in base.links
    ]
    topology = mixed_network(links)
    shard = Fraction(GB, 2)
    outcome = run(pose(topology, size=shard * len(topology.nodes), chunks=8))
    choices = choices_of(topology)
    expected = sum(
        max(
            smallest_time(choices, topology, shard, u, t)
            for u in range(len(topology.nodes))
            if any(choices.target(e) == u and step == t for e, step in choices.carries)
        )
        for t in range(1, choices.graph.steps + 1)
    )
    assert outcome.metrics["step_time_relaxed_s"] == pytest.approx(float(expected), rel=1e-6)
    assert outcome.metrics["step_time_s"] >= outcome.metrics["step_time_relaxed_s"] * (1 - 1e-6)


def test_a_link_of_high_latency_is_not_paid_for(pose):
    """Node c gets a's shard over the fast link from b: the late one, which carries nothing, does not count, and the
    program was solved twice."""
    links = [
        ("a", "b", 1, 0),
        ("b", "c", 1, 0),
        ("a", "d", 1, 0),
        ("d", "c", 1, 100),
        ("c", "a", 1, 0),
        ("c", "d", 1, 0),
    ]
    topology = mixed_network([*links, ("b", "d", 1, 0)])
    instance = pose(topology, size=4 * GB)
    outcome = run(instance)
    assert verdict_of(instance, outcome.answer).violations == ()
    late = [link for link, wire in enumerate(topology.links) if wire.latency_s]
    second = outcome.answer.step == 1
    assert not set(outcome.answer.sends.path_links[second].tolist()) & set(late)
    assert len(outcome.reports) == 2


def test_unequal_bandwidths_are_used_in_proportion(pose):
    """Over two parallel links of 3 and 1 GB/s a shard of 1 GB takes a quarter of a second."""
    both = [("a", "b", 3, 0), ("a", "b", 1, 0), ("b", "a", 3, 0), ("b", "a", 1, 0)]
    outcome = run(pose(mixed_network(both), size=2 * GB, chunks=4))
    assert outcome.metrics["step_time_s"] == 0.25
    assert outcome.metrics["step_time_relaxed_s"] == pytest.approx(0.25)
    crude = run(pose(mixed_network(both), size=2 * GB))
    assert crude.metrics["step_time_s"] == pytest.approx(1 / 3)


@pytest.mark.parametrize("kind", ["all_gather", "reduce_scatter", "all_reduce"])
def test_schedules_of_other_collectives_are_right(kind, pose):
    """A network of mixed links has right schedules of all three collectives."""
    ring = [(str(i), str((i + 1) % 5), 1 + i % 2, Fraction(i, 1000)) for i in range(5)]
    chords = [(str(i), str((i + 2) % 5), 2, 0) for i in range(5)]
    instance = pose(mixed_network(ring + chords), kind, chunks=3)
    outcome = run(instance)
    verdict = verdict_of(instance, outcome.answer, outcome.certificate)
    assert verdict.violations == ()
    assert verdict.bound <= verdict.objective
