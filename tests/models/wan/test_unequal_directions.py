"""Networks whose links are faster one way than the other: what is claimed there holds for any schedule."""

from __future__ import annotations

from fractions import Fraction
from random import Random

import pytest
from cwb.bench import Request, run
from cwb.core.collective import CollectiveKind, Demand
from cwb.core.instance import Instance
from cwb.core.topology import Link, Node, Topology
from cwb.models.common.wan.ceiling import ceiling
from cwb.models.common.wan.network import pose
from cwb.schedules.collective import exact_bound

QUICK = {"topoadopt": {"moves": 5}, "blink-wan": {"steps": 100, "nodes": 5}}
METHODS = ("mtree", "gost", "single-tree", "topoadopt", "blink-wan", "wan-ring", "plink", "psld")


def network(nodes, links):
    """An all-reduce of 1 GB; links are (from, to, MB/s)."""
    topology = Topology(
        tuple(Node(str(v)) for v in range(nodes)),
        tuple(Link(str(a), str(b), Fraction(rate * 10**6), Fraction(1, 1000)) for a, b, rate in links),
    )
    return Instance("unequal", topology, Demand(CollectiveKind.ALL_REDUCE, Fraction(10**9)))


RING = network(3, [link for v in range(3) for link in ((v, (v + 1) % 3, 20), ((v + 1) % 3, v, 10))])


@pytest.mark.parametrize("model", METHODS)
def test_the_bound_holds_for_any_schedule(model):
    """On a ring that is twice as fast one way, the bound is the 44.44 s that another method attains, and nothing slower is called optimal."""
    assert run(RING, Request("forestcoll-allreduce")).record.objective == pytest.approx(400 / 9)
    record = run(RING, Request(model, options=QUICK.get(model, {}))).record
    assert (record.status, record.verified, record.exit_status) == ("feasible", True, 0)
    assert record.bound == pytest.approx(400 / 9)
    assert record.objective >= 66


@pytest.mark.parametrize("model", [model for model in METHODS if model != "wan-ring"])
def test_a_cut_may_be_the_bound(model):
    """Between two sites the slower direction limits any schedule: the cut proves what the partition does not, and the two meet."""
    record = run(network(2, [(0, 1, 3000), (1, 0, 4000)]), Request(model, options=QUICK.get(model, {}))).record
    assert (record.verified, record.exit_status) == (True, 0)
    assert record.certificate == {"certificate": "cut", "nodes": [0]}
    assert record.bound == pytest.approx(1 / 3)


@pytest.mark.parametrize("options", [{"trees": 1}, {"height": 1}, {"min_rate": "4 MB/s"}])
def test_limits_on_trees_claim_nothing_else(options):
    """With K, a height or a smallest rate the bound on such a network holds for any schedule, and says so; what trees can do is told beside it."""
    record = run(RING, Request("mtree", options=options)).record
    assert (record.status, record.verified) == ("feasible", True)
    assert record.metrics["bound_holds_for"] == "any schedule"
    assert record.certificate["certificate"] == "partition"
    assert record.metrics["exact_bound_Bps"] < record.metrics["strength_Bps"] == pytest.approx(22.5e6)


def partitions(sites):
    """All partitions of a list."""
    if not sites:
        yield []
        return
    first, *others = sites
    for parts in partitions(others):
        yield [[first], *parts]
        for i in range(len(parts)):
            yield [*parts[:i], [first, *parts[i]], *parts[i + 1 :]]


@pytest.mark.parametrize("seed", range(30))
def test_the_ceiling_is_the_least_of_all_partitions_and_cuts(seed):
    """On random networks, with links one way only, it is the least that any partition or any set of sites proves, and the judge finds the same."""
    source = Random(seed)  # noqa: S311
    nodes = source.randint(2, 5)
    links = [(a, b, source.randint(1, 20)) for v in range(1, nodes) for a, b in ((v - 1, v), (v, v - 1))]
    links += [(*source.sample(range(nodes), 2), source.randint(1, 20)) for _ in range(source.randint(0, 4))]
    instance = network(nodes, links)
    wan = pose(instance)
    found = ceiling(instance.network, wan)
    rates = []
    for parts in partitions(list(range(nodes))):
        part_of = {v: index for index, part in enumerate(parts) for v in part}
        crossing = sum(rate for a, b, rate in links if part_of[a] != part_of[b])
        rates += [Fraction(crossing, 2 * len(parts) - 2)] if len(parts) > 1 else []
        for inside in (set(part) for part in parts) if len(parts) == 2 else ():
            rates.append(Fraction(sum(rate for a, b, rate in links if a in inside and b not in inside)))
    assert found.rate * wan.unit_Bps == min(rates) * 10**6
    assert exact_bound(instance, found.certificate) == Fraction(1000) / min(rates)
