"""From an instance to a verified answer: random networks and published numbers."""

from __future__ import annotations

import csv
from collections import Counter
from fractions import Fraction

import oracle
import pytest
from cwb.core.collective import Collective, Demand
from cwb.core.instance import Instance
from cwb.core.topology import Link, Node, Topology
from cwb.harness import Request, run_one
from cwb.instances import load
from cwb.models.forestcoll.solve import busiest_s
from cwb.schedules.verify import heaviest_load
from draws import draws
from hypothesis import given, settings
from hypothesis import strategies as st
from networks import FAMILIES, random_cuts, random_network, random_unit, seeded_random
from oracle import Network
from posing import SIZE, forest, pose, star

pytestmark = pytest.mark.slow  # random networks, checked by brute force

KINDS = ("all_gather", "reduce_scatter", "all_reduce", "broadcast", "reduce")
COUNTS = ("optimal", "optimal", "smallest", 1, 2, 3, 4)


def transpose(network):
    return Network(network.compute, network.switches, {(v, u): c for (u, v), c in network.capacity.items()})


def needed_s(network, unit, root, k):
    """Seconds of the best trees one way by the oracle; None where whole trees leave a switch unbalanced."""
    one = {v: int(v == root) for v in network.compute} if root is not None else oracle.uniform(network)
    part = SIZE / sum(one.values())
    if isinstance(k, str):
        found = oracle.optimum(network, one)
        if len(network.nodes) <= 8:
            assert found == oracle.optimum_by_cuts(network, one)
        return part * found / unit
    scale = oracle.fixed_k(network, {v: k * w for v, w in one.items()})
    floored = oracle.floor_capacities(network, scale)
    if any(floored.into(v) != floored.out_of(v) for v in network.switches):
        return None
    return part * scale / k / unit


def check(rng, family):
    """Run one random case; assert all that is promised."""
    network = random_network(rng, family)
    topology = oracle.to_topology(network, random_unit(rng), random_cuts(rng, network))
    kind, k = rng.choice(KINDS), rng.choice(COUNTS)
    ranks = None
    if rng.random() < 0.5:
        ranks = tuple(rng.sample(range(len(network.compute)), rng.randint(2, len(network.compute))))
    instance = pose(topology, kind, ranks)
    found = forest(instance, rng.randrange(100), k=k, patterns=rng.random() < 0.5, repack=rng.choice((0, 1)))
    record = found.record

    whole, unit = oracle.from_topology(topology, separate=True)
    group = whole.compute if ranks is None else tuple(whole.compute[r] for r in ranks)
    seen = Network(group, tuple(v for v in whole.nodes if v not in group), whole.capacity)
    root = group[0] if kind in ("broadcast", "reduce") else None
    ways = [seen] if kind in ("all_gather", "broadcast") else [transpose(seen)]
    if kind == "all_reduce":
        ways.append(seen)
    times = [needed_s(way, unit, root, k) for way in ways]
    if record.status == "unsupported":
        assert record.exit_status == 7
        assert isinstance(k, int)
        assert "links there are one-way" in record.message
        assert None in times
        return record
    assert (record.exit_status, record.verified, record.violations) == (0, True, ())
    exact = heaviest_load(instance, found.answer)
    assert exact == busiest_s(instance, found.answer)
    assert record.objective == float(exact)
    if kind == "all_reduce":
        if None not in times:
            assert exact <= sum(times)
        assert record.bound <= record.objective * (1 + 1e-12)
        assert (record.status == "optimal") == (record.bound == record.objective)
    else:
        assert exact == times[0]
        least = needed_s(ways[0], unit, root, "optimal")
        assert record.bound == float(least)
        assert record.status == ("optimal" if exact == least else "feasible")
        assert record.gap == 0 or record.status == "feasible"
        if isinstance(k, str):
            assert (record.status, record.gap) == ("optimal", 0.0)
    return record


def test_random_networks():
    """On random networks of all families, collectives, groups and numbers of trees, the answer is verified and exactly
    as fast as the oracle's."""
    statuses: Counter[str] = Counter()
    count = draws(80)
    for seed in range(count):
        try:
            statuses[check(seeded_random(seed), FAMILIES[seed % 3]).status] += 1
        except Exception as error:
            raise AssertionError(f"seed {seed}, family {FAMILIES[seed % 3]}: {error!r}") from error
    assert statuses["optimal"] > count // 4
    assert statuses["feasible"] > count // 16
    assert 0 < statuses["unsupported"] < count // 2


@settings(max_examples=draws(20), deadline=None)
@given(st.randoms(use_true_random=False), st.sampled_from(FAMILIES))
def test_any_random_network(rng, family):
    """The same for what hypothesis draws; ``check`` asserts it."""
    check(rng, family)


def test_ranks_may_send_and_receive_at_different_rates():
    """Only what passes data on must be balanced: with further one-way links between ranks, both ways have the optimum
    of all cuts."""
    rng = seeded_random(54)
    for i in range(24):
        network = random_network(rng, FAMILIES[i % 3])
        if len(network.nodes) > 9:
            continue
        capacity = Counter(network.capacity)
        for _ in range(rng.randint(1, 4)):
            u, v = rng.sample(network.compute, 2)
            capacity[u, v] += rng.randint(1, 10)
        uneven = Network(network.compute, network.switches, dict(capacity))
        times = {}
        for kind, way in (("all_gather", uneven), ("reduce_scatter", transpose(uneven))):
            record = forest(pose(oracle.to_topology(uneven), kind), repack=0).record
            assert (record.status, record.gap, record.verified) == ("optimal", 0.0, True)
            times[kind] = SIZE / len(network.compute) * oracle.optimum_by_cuts(way)
            assert record.objective == float(times[kind])
        both = forest(pose(oracle.to_topology(uneven), "all_reduce"), k="smallest", repack=0).record
        if both.status != "unsupported":
            assert (both.exit_status, both.verified) == (0, True)
            assert both.bound <= both.objective <= float(sum(times.values())) * (1 + 1e-12)


# --- options


@pytest.mark.parametrize("kind", KINDS)
def test_low_latency_takes_what_goes(kind):
    """The forest for low latency is verified on any network; numbers of trees that do not go through a switch are
    passed over."""
    rng = seeded_random(51)
    for i in range(draws(12)):
        network = random_network(rng, FAMILIES[i % 3])
        topology = oracle.to_topology(network, random_unit(rng), random_cuts(rng, network))
        record = forest(pose(topology, kind), prefer="latency", repack=1).record
        assert (record.exit_status, record.verified) == (0, True)
        assert record.metrics["k"] <= max(8, record.metrics["smallest_k"], record.metrics["optimal_k"])


def test_a_single_root_and_tree():
    """One tree from one root, on networks where it is taller than it need be at first, is packed, too."""
    rng = seeded_random(52)
    for i in range(20):
        network = random_network(rng, FAMILIES[i % 3])
        record = forest(pose(oracle.to_topology(network), "broadcast"), k=1, repack=2).record
        assert record.status in ("optimal", "feasible", "unsupported")


def test_the_two_halves_need_not_be_busy_at_the_same_links():
    """An all-reduce on a star of uneven links takes as long as its most loaded link, which is less than both halves
    after another."""
    instance = pose(star(5, 6, 7, 8), "all_reduce")
    found = forest(instance)
    assert (found.record.exit_status, found.record.verified) == (0, True)
    assert heaviest_load(instance, found.answer) < 2 * Fraction(SIZE, 4) * Fraction(3, 5)


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_seed_gives_the_same_trees(kind):
    """Two runs with the same seed give the same trees and paths."""
    runs = [forest(pose("mi250(boxes=1)", kind), seed=3, repack=5) for _ in range(2)]
    one, other = ([part.path_links.tolist() + part.units.tolist() for part in run.answer.passes] for run in runs)
    assert one == other


def test_a_limit_ends_with_the_bound():
    """Without time there is no forest, but the bound is proved; the exit status says that a limit was met."""
    best = forest(pose("mi250(boxes=2)"), repack=0).record
    for limit in (0.0, 1e-9):
        record = forest(pose("mi250(boxes=2)"), time_limit_s=limit).record
        assert (record.status, record.exit_status, record.objective) == ("limit", 4, None)
        assert record.bound == best.bound == best.objective
        assert "the bound holds" in record.message


# --- published and computed numbers


def rows(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_published_optima(reference):
    """Every published network has its 1/x, its number of trees by the oracle, and its bandwidth."""
    trees = {"dgx_a100(boxes=2)": 13, "mi250(boxes=1)": 3, "mi250(boxes=2)": 83, "mi250_8(boxes=2)": 13}
    for row in rows(reference / "forestcoll.csv"):
        record = forest(pose(row["expression"]), repack=1).record
        assert (record.status, record.gap, record.verified) == ("optimal", 0.0, True)
        assert record.metrics["inv_x"] == str(Fraction(row["inv_x"]))
        assert record.metrics["k"] == trees.get(row["expression"], record.metrics["k"])
        exact = int(row["gpus"]) / Fraction(row["inv_x"])
        rate = float(SIZE / 10**9) / record.objective
        assert rate == pytest.approx(float(exact), rel=1e-9)
        assert round(rate, 4) == float(row["algbw_GBps"])


def test_published_fixed_k(reference):
    """For 1 to 8 trees a root the bandwidth is that of the public code, and for 2 and 5 the oracle's exactly."""
    for row in rows(reference / "forestcoll_fixed_k.csv"):
        network, unit = oracle.from_topology(load(row["expression"]).network, separate=True)
        for k in range(1, 9):
            record = forest(pose(row["expression"]), k=k, repack=1).record
            rate = float(SIZE / 10**9) / record.objective
            assert record.verified
            assert round(rate, 2) == float(row[f"k{k}"])
            if len(network.compute) <= 16 and k in {2, 5}:
                exact = len(network.compute) * k / oracle.fixed_k(network, k) * unit / 10**9
                assert rate == pytest.approx(float(exact), rel=1e-9)


def test_trees_that_need_wider_numbers_than_links():
    """On a triangle of two prime rates and the inverse of a third, copies of trees do not fit 64 bits where capacities
    do: exact all the same."""
    rates = (Fraction(999_999_937), Fraction(999_999_929), Fraction(1, 999_999_893))
    ends = zip(((0, 1), (1, 2), (0, 2)), rates, strict=True)
    links = tuple(Link(str(a), str(b), rate, Fraction(0)) for (i, j), rate in ends for a, b in ((i, j), (j, i)))
    triangle = Topology(tuple(Node(str(rank)) for rank in range(3)), links)
    demand = Demand(Collective.ALL_GATHER, Fraction(3))
    record = run_one(Instance("primes", triangle, demand), Request("forestcoll"))
    assert (record.status, record.verified) == ("optimal", True)
    assert record.objective == float(2 / (rates[1] + rates[2]))
