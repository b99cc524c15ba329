"""``bfb`` on networks whose balance is known, its statuses, and what it refuses."""

from __future__ import annotations

from fractions import Fraction

import pytest
from cwb.core.budget import Budget
from cwb.core.collective import Collective, Demand
from cwb.core.errors import InputError
from cwb.core.outcome import Status
from cwb.harness import Request, registry, run_one
from cwb.instances import load
from cwb.models.bfb import extract
from cwb.models.bfb.solve import balance
from cwb.schedules import verdict_of

COLLECTIVES = ["all_gather", "reduce_scatter", "all_reduce"]


def run(instance, name="bfb", **options):
    method = registry.get(name)
    assert method.supports(instance) is None
    return method.run(instance, None, Budget(), method.options.model_validate(options))


@pytest.mark.parametrize("n", [3, 4, 5, 8, 9, 10, 33, 1001])
def test_rings_take_half_their_length_and_lose_no_bandwidth(n):
    """A ring of N nodes takes floor(N / 2) steps at T_B = (N - 1) / N (appendix F.1)."""
    found = balance(load(f"ring({n})").network)
    assert (found.steps, found.time) == (n // 2, Fraction(n - 1, n))


@pytest.mark.parametrize("sizes", [(3, 3), (5, 7), (13, 40), (2, 3, 4), (3, 3, 3, 2), (50, 50)])
def test_tori_lose_no_bandwidth(sizes):
    """Tori of any sizes take the sum of half the sizes at T_B = (N - 1) / N (theorem 13); a size of 2 has one link, so
    that it differs."""
    network = load(f"torus({','.join(map(str, sizes))})").network
    found = balance(network)
    n = len(network.nodes)
    assert (found.steps, found.time) == (sum(size // 2 for size in sizes), Fraction(n - 1, n))


@pytest.mark.parametrize(
    ("network", "steps", "time"),
    [
        ("circulant(n=15, offsets=[1,4,5])", 2, "1"),
        ("hypercube(dim=10)", 10, "1023/1024"),
        ("complete_bipartite(4,4)", 2, "7/8"),
        ("complete(9)", 1, "8/9"),
        ("complete(100)", 1, "99/100"),
        ("ring(5, bidirectional=false)", 4, "4/5"),
        ("line(3)", 2, "4/3"),
    ],
)
def test_networks_with_known_values(network, steps, time):
    """T_L is the diameter, and T_B as in the literature or by hand."""
    found = balance(load(network).network)
    assert (found.steps, str(found.time)) == (steps, time)


@pytest.mark.parametrize("kind", COLLECTIVES)
@pytest.mark.parametrize(
    "network",
    ["circulant(n=15, offsets=[1,4,5])", "complete_bipartite(4,4)", "torus(3,4)", "mesh(2,4)", "random_regular(12,3)"],
)
def test_schedules_are_right_and_measured_right(network, kind, pose):
    """Schedules are verified, have T_L steps, and as many sends of chunks as the metrics say; all_reduce is the sum of
    its parts."""
    instance = pose(network, kind)
    outcome = run(instance)
    verdict = verdict_of(instance, outcome.answer, outcome.certificate)
    assert verdict.violations == ()
    assert outcome.answer.steps == outcome.metrics["T_L"]
    assert len(outcome.answer.sends) == outcome.metrics["sends"]
    assert len(outcome.answer.chunks) == outcome.metrics["chunks"] * instance.npus
    parts = 2 if kind == "all_reduce" else 1
    # None of these networks has one-way links, so that both parts are alike.
    assert Fraction(outcome.metrics["T_B"]) == parts * balance(instance.network).time


@pytest.mark.parametrize("kind", COLLECTIVES)
def test_one_way_links_run_backwards_on_the_transposed_network(kind, pose, random_digraph):
    """On networks of one-way links reductions use the balance of the transposed network, and both parts of an
    all_reduce the same chunks."""
    from random import Random

    from cwb.algorithms.schedules.compose import transpose

    for seed in range(8):
        topology = random_digraph(9, 3, Random(seed))  # noqa: S311
        instance = pose(topology, kind)
        outcome = run(instance)
        assert verdict_of(instance, outcome.answer, outcome.certificate).violations == ()
        forwards, backwards = balance(topology).time, balance(transpose(topology)).time
        expected = {"all_gather": forwards, "reduce_scatter": backwards, "all_reduce": forwards + backwards}
        assert Fraction(outcome.metrics["T_B"]) == expected[kind]


@pytest.mark.parametrize("network", ["ring(9)", "torus(3,4)", "hypercube(4)", "circulant(n=12, offsets=[2,3])"])
def test_without_latency_no_loss_of_bandwidth_is_the_optimum(network, pose):
    """If T_B is (N - 1) / N and links have no latency, the simulated all_gather meets the bound."""
    instance = pose(network[:-1] + ", latency='0 s')")
    outcome = run(instance)
    assert outcome.status is Status.OPTIMAL
    verdict = verdict_of(instance, outcome.answer, outcome.certificate)
    assert verdict.objective == pytest.approx(outcome.bound, rel=1e-12)
    assert verdict.bound == pytest.approx(outcome.bound, rel=1e-12)


@pytest.mark.parametrize("network", ["ring(6)", "torus(4,4)", "hypercube(4)", "circulant(n=12, offsets=[2,3])"])
def test_with_latency_the_bound_is_met(network, pose):
    """In several pieces the simulated time of an all_gather is that of a rank's links and one latency, the bound."""
    instance = pose(network)
    outcome = run(instance)
    verdict = verdict_of(instance, outcome.answer, outcome.certificate)
    assert verdict.objective == verdict.bound == outcome.bound
    assert outcome.certificate.to_json()["certificate"] == "late-cut"


@pytest.mark.parametrize("network", ["ring(9)", "circulant(n=15, offsets=[1,4,5], latency='0 s')"])
def test_nothing_else_is_called_optimal(network, pose):
    """With latency, or with a larger T_B, a schedule is feasible with a bound below it."""
    instance = pose(network)
    outcome = run(instance)
    verdict = verdict_of(instance, outcome.answer, outcome.certificate)
    assert outcome.status is Status.FEASIBLE
    assert verdict.bound < verdict.objective


def test_the_demands_chunks_divide_those_of_the_schedule(pose):
    """Shards are cut by the least common multiple of what the demand asks for and what the balance needs."""
    assert run(pose("hypercube(3)")).metrics["chunks"] == 3
    assert run(pose("hypercube(3)", chunks=2)).metrics["chunks"] == 6


def test_without_a_schedule_there_are_metrics_alone(pose):
    """``schedule=false`` gives T_L and T_B of a network whose schedule would be large."""
    outcome = run(pose("torus(50,50)", "all_reduce"), schedule=False)
    assert (outcome.status, outcome.answer) == (Status.FEASIBLE, None)
    assert (outcome.metrics["T_L"], outcome.metrics["T_B"]) == (100, "2499/1250")


def test_a_large_schedule_is_made_if_it_is_asked_for(pose, monkeypatch):
    """A large schedule has to be asked for; else there are the metrics, with the number of sends as the reason."""
    monkeypatch.setattr(extract, "SENDS_UNASKED", 1000)
    outcome = run(pose("torus(8,8)"))
    assert (outcome.status, outcome.answer) == (Status.FEASIBLE, None)
    assert "the schedule has 16,128 sends; expected at most 1,000, or -O schedule=true" in outcome.message
    assert outcome.metrics["T_B"] == "63/64"
    assert len(run(pose("torus(8,8)"), schedule=True).answer.sends) == 16_128


def test_a_schedule_that_is_too_large_is_not_made(pose, monkeypatch):
    """Beyond the limit there are the metrics, and the status says that not all was done that was asked for."""
    monkeypatch.setattr(extract, "MAX_SENDS", 1000)
    outcome = run(pose("torus(8,8)"), schedule=True)
    assert (outcome.status, outcome.answer) == (Status.LIMIT, None)
    assert outcome.message.endswith("16,128 sends; expected at most 1,000")
    assert outcome.metrics["T_B"] == "63/64"


@pytest.mark.parametrize("name", ["bfb", "bfb-lp", "bfb-chunked", "bfb-heterogeneous"])
@pytest.mark.parametrize(
    ("network", "demand", "reason"),
    [
        ("switch(4)", Demand(Collective.ALL_GATHER, Fraction(8)), "is a switch; expected links between compute"),
        ("ring(4)", Demand(Collective.ALL_TO_ALL, Fraction(8)), "it does not define all_to_all"),
        ("ring(4)", Demand(Collective.ALL_GATHER, Fraction(8), ranks=(0, 1)), "expected a group of all ranks"),
        ("ring(4)", Demand(Collective.ALL_GATHER, Fraction(0)), "no data to move"),
        ("ring(4)", None, "no collective to schedule"),
        ("RI(4)_SW(2)", Demand(Collective.ALL_GATHER, Fraction(8)), "'switch2.0' is a switch"),
    ],
)
def test_what_does_not_fit_is_a_reason(name, network, demand, reason):
    """Switches, other collectives, groups and missing data are told in one line by all four methods."""
    record = run_one(load(network).with_changes(demand=demand), Request(name))
    assert (record.status, record.exit_status) == ("unsupported", 7)
    assert reason in record.message
    assert "\n" not in record.message


def test_unequal_bandwidths_are_sent_to_the_method_for_them(graph, pose):
    """Links of different bandwidths are a reason that names bfb-heterogeneous; several collectives at once are one
    too."""
    topology = graph(2, [(0, 1), (1, 0)])
    faster = graph(2, [(0, 1)], bandwidth=2 * 10**9).links[0]
    mixed = pose(topology.__class__(topology.nodes, (*topology.links, faster)))
    for name in ("bfb", "bfb-lp", "bfb-chunked"):
        assert "1 to 2 GB/s; bfb-heterogeneous is for these" in str(registry.get(name).supports(mixed))
    assert registry.get("bfb-heterogeneous").supports(mixed) is None
    twice = pose(topology)
    assert "several collectives" in str(registry.get("bfb").supports(twice.with_changes(also=(twice.demand,))))


def test_networks_that_fall_apart_are_bad_input(graph, pose):
    """A network in which data cannot reach everybody is bad input in one line."""
    apart = pose(graph(4, [(0, 1), (1, 0), (2, 3), (3, 2)]))
    with pytest.raises(InputError, match="data cannot get from node"):
        run(apart)


@pytest.mark.parametrize(
    ("name", "network", "options"),
    [
        ("shifted-ring", "circulant(n=12, offsets=[1,5])", {"strides": [1, 5], "variant": "traditional"}),
        ("shifted-ring", "circulant(n=12, offsets=[1,5])", {"strides": [1, 5], "variant": "bfb"}),
        ("torus-rings", "torus(3,3,2)", {}),
        ("rhd", "hypercube(3)", {}),
        ("dbt", "circulant(n=12, offsets=[2,3])", {}),
    ],
)
def test_the_papers_baselines_run_on_its_networks(name, network, options, pose):
    """The baselines of section 8 are methods of their own; an all_reduce by bfb takes no more steps than they do."""
    instance = pose(network, "all_reduce")
    record = run_one(instance, Request(name, options=options))
    assert record.verified
    assert run(instance).metrics["T_L"] <= record.answer["steps"]
