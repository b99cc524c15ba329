"""The program by classes of equal flows, and line graphs taken back."""

from __future__ import annotations

from fractions import Fraction

import pytest
from cwb import solvers
from cwb.core.budget import Budget
from cwb.core.collective import Collective, Demand
from cwb.core.errors import InputError
from cwb.core.outcome import Status
from cwb.harness import Request, registry, run_one
from cwb.instances import load
from cwb.models.mcf import formulation, problem, solve
from cwb.models.mcf.method import ClassOptions

ALL_TO_ALL = Demand(Collective.ALL_TO_ALL, Fraction(2**20))


def exchange(network):
    return load(network).with_changes(demand=ALL_TO_ALL)


def rate(model):
    return solvers.get("highs").solve(model, Budget()).objective


@pytest.mark.parametrize(
    "network",
    ["mesh(3,3)", "circulant(10,[1,3])", "dragonfly(3,2)", "random_regular(8,3,seed=2)", "generalized_kautz(2, 9)"],
)
def test_classes_lose_nothing(network):
    """The program by classes has the optimum of the plain one, and no more columns."""
    instance = exchange(network)
    whole, found = formulation.build(instance), problem.class_index(instance, ClassOptions())
    assert rate(formulation.build_classes(found)) == pytest.approx(rate(whole), rel=1e-7)
    assert len(found.flows) < whole.nvariables()


def test_a_large_circulant_has_few_classes():
    """All nodes of a circulant are alike: two links a node and two flows for every other node are left."""
    found = problem.class_index(exchange("circulant(64,[5,6])"), ClassOptions())
    assert found.classes.sizes == (128, 33, 2)


@pytest.mark.parametrize("network", ["L(complete_bipartite(4, 4))", "L(ring(5))", "L(kautz(2, 2))"])
def test_a_line_graph_taken_back_bounds_the_flow(network):
    """Taken back, the program proves a bound that is not above the flow's time, with lengths of the links
    themselves."""
    instance = exchange(network)
    solver = solvers.get("highs")
    flow, coarse = (solve.bound(instance, solver, Budget(), most) for most in (10**9, 0))
    assert (flow.exact, coarse.exact, coarse.flows) == (True, False, None)
    assert 0.8 * flow.seconds < coarse.seconds <= flow.seconds * (1 + Fraction(1, 10**7))
    assert coarse.seconds == solve.joint_length(instance, solve.pairs_of(instance), coarse.certificate.lengths)[0]


def test_what_is_coarse_says_so(monkeypatch):
    """A bound by a line graph taken back is proved, but is not called the optimum of the flow."""
    monkeypatch.setattr(solve.bound, "__defaults__", (0, "program"))
    method, instance = registry.get("all-to-all-mcf"), exchange("L(ring(5))")
    outcome = method.run(instance, solvers.get("highs"), Budget(), method.options(algorithm="program"))
    assert (outcome.status, outcome.objective) == (Status.FEASIBLE, None)
    assert "same length" in outcome.message


def test_what_is_no_line_graph_is_refused():
    """A torus has no two nodes with the same successors."""
    with pytest.raises(InputError, match="is a line graph 0 times"):
        problem.class_index(exchange("torus(3,3)"), ClassOptions(line_graphs=1))


@pytest.mark.parametrize("network", ["torus(4,4)", "generalized_kautz(4, 16)", "mesh(2,3)", "circulant(12,[2,3])"])
def test_a_schedule_of_many_chunks_meets_the_bound(network):
    """In 64 chunks the verified schedule takes less than 1 % longer than any can, where latency does not count."""
    instance = load(network).with_changes(demand=Demand(Collective.ALL_TO_ALL, Fraction(2**34), chunks=64))
    record = run_one(instance, Request("all-to-all-schedule"))
    assert record.verified
    assert record.metrics["completion_time_s"] < 1.01 * record.bound


def test_a_group_passes_through_others():
    """Two opposite ranks of a ring use both ways round it, through ranks outside the group; the last of 32 pieces is
    late."""
    demand = Demand(Collective.ALL_TO_ALL, Fraction(2**34), ranks=(0, 2), chunks=64)
    record = run_one(load("ring(4)").with_changes(demand=demand), Request("all-to-all-schedule"))
    assert record.verified
    assert record.metrics["completion_time_s"] == pytest.approx(record.bound * 33 / 32, rel=1e-4)


def test_a_group_is_listed_in_any_order():
    """Pieces are for the ranks that the group lists, whatever their order in the network."""
    demand = Demand(Collective.ALL_TO_ALL, Fraction(2**34), ranks=(3, 1, 0), chunks=2)
    assert run_one(load("ring(5)").with_changes(demand=demand), Request("all-to-all-schedule")).verified


@pytest.mark.parametrize("network", ["star(4)", "star(4, multicast=true)", "dgx_a100(boxes=2)", "fat_tree(2)"])
def test_switches_relay(network):
    """Pieces pass switches whether these store, copy or neither; in 64 chunks they end within a tenth of the bound."""
    demand = Demand(Collective.ALL_TO_ALL, Fraction(2**34), chunks=64)
    record = run_one(load(network).with_changes(demand=demand), Request("all-to-all-schedule"))
    assert record.verified
    assert record.metrics["completion_time_s"] < 1.1 * record.bound


def solve_with(name, instance):
    method = registry.get(name)
    return method.run(instance, solvers.get("highs"), Budget(), method.options(algorithm="program"))


def test_switches_are_passed_as_one_send():
    """A switch without multicast is inside a send, from rank to rank, and does not store what it relays."""
    sends = solve_with("all-to-all-schedule", exchange("star(4)")).answer.sends
    assert (set(sends.hops.tolist()), len(sends)) == ({2}, 12)


@pytest.mark.parametrize(("network", "links"), [("ring(5)", 1), ("star(5)", 2), ("complete(4)", 1)])
def test_the_bound_counts_latency(network, links):
    """Latencies of a link, and of those before and after it to the nearest ranks, add to the time of the flow if all
    links are equal."""
    instance = exchange(network)
    outcome = solve_with("all-to-all-schedule", instance)
    late_s = links * float(instance.network.links[0].latency_s)
    assert outcome.bound == pytest.approx(solve_with("all-to-all-mcf", instance).bound + late_s, rel=1e-12)
    assert outcome.certificate.to_json()["certificate"] == "late-lengths"
