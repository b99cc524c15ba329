"""Random problems of five families: what the search finds is right, and no bound is beyond it."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from cwb import solvers
from cwb.algorithms.epochs import flow_bounds, price_bounds
from cwb.algorithms.epochs.flow_bounds import StaticBound, raise_epoch_by_epoch
from cwb.algorithms.epochs.ladder import solve
from cwb.core.budget import Budget
from cwb.core.collective import Collective, Demand
from cwb.core.outcome import Status
from cwb.harness import registry
from cwb.instances import load
from cwb.models.teccl import solve_milp
from cwb.models.teccl.options import MilpOptions
from cwb.models.teccl.problem import epoch_problem, network_of
from cwb.schedules import verdict_of
from cwb.schedules.epoch_bounds import recomputed_epochs
from draws import draws
from grids import on_grid, small_networks
from hypothesis import given, settings
from hypothesis import strategies as st
from search_families import Case, Wire, faults, instance_of, random_case

pytestmark = pytest.mark.slow  # random networks are searched

HIGHS = solvers.get("highs")
METHOD = registry.get("teccl")

EFFORT = 150_000


@pytest.mark.parametrize(
    ("first", "demand"),
    [
        *((first, demand) for first in (1000, 1020) for demand in ("all_gather", "broadcast")),
        pytest.param(1000, "custom", marks=pytest.mark.nightly),
        (1020, "custom"),
    ],
)
def test_schedules_are_right_and_not_shorter_than_the_bound(first, demand):
    """A replay that knows links by latency and busy time alone finds every schedule right, as long as is claimed, and
    no shorter than the bound."""
    for seed in range(first, first + 4):
        case = random_case(seed, most=14, demand=demand)
        network = case.network()
        result = solve(network, network, Budget(), EFFORT)
        plan = result.search.plan()
        assert plan is not None
        found, makespan = faults(case, plan.chunk, plan.start, plan.paths)
        assert found == []
        assert makespan == result.search.best
        assert result.search.bound <= makespan


def test_every_bound_holds():
    """No bound of any kind, for any node, is beyond a schedule that a replay finds right."""
    for seed in range(2000, 2000 + draws(16)):
        case = random_case(seed, most=9)
        network = case.network()
        result = solve(network, network, Budget(), EFFORT)
        plan = result.search.plan()
        assert plan is not None
        _, makespan = faults(case, plan.chunk, plan.start, plan.paths)
        static, low = StaticBound(network), network.diameter
        assert low <= makespan
        for sink in range(case.gpus):
            assert static.improve(low, np.array([sink]))[0] <= makespan
            assert raise_epoch_by_epoch(partial(flow_bounds.cut_at, network, sink), low, makespan + 3)[0] <= makespan
            assert price_bounds.prices_for(network, (sink,), makespan, None) is None
        assert price_bounds.prices_for(network, (0, case.gpus - 1), makespan, None) is None


@settings(max_examples=12, deadline=None)
@given(small_networks(), st.sampled_from(["all_gather", "broadcast", "gather"]), st.integers(1, 2))
def test_small_problems_are_solved_as_by_the_general_form(topology, kind, chunks):
    """On small networks the proved optimum is that of the declarative model, and the verifier finds it right."""
    instance = on_grid(topology, kind, chunks)
    options = METHOD.options.model_validate({"effort": 1})
    ours = METHOD.run(instance, HIGHS, Budget(), options)
    model = solve_milp.run(instance, HIGHS, Budget(), MilpOptions())
    assert verdict_of(instance, ours.answer, ours.certificate).ok
    assert ours.metrics["lower_bound_epochs"] <= model.metrics["lower_bound_epochs"]
    assert ours.status is Status.OPTIMAL
    assert ours.objective == model.objective


def test_a_block_out_of_a_switch_takes_what_comes_in_it():
    """A chunk that comes to a switch within a block of the link out of it is not lost to a flow over time."""
    wires = (Wire(0, 3, 1, 1, 0), Wire(1, 3, 1, 1, 1), Wire(3, 2, 4, 1, 0))
    case = Case("switch", 3, 1, wires, True, (0, 1), ((2,), (2,)))
    network = case.network()
    result = solve(network, network, Budget(), EFFORT)
    assert (result.search.bound, result.search.best) == (9, 9)
    assert raise_epoch_by_epoch(partial(flow_bounds.cut_at, network, 2), 0, 100)[0] <= 9


def test_blocks_that_arrive_too_early_may_wait_in_a_switch():
    """Two slow links into a switch and a fast one out: a flow over time that let nothing wait in the switch would
    prove too much."""
    wires = (Wire(0, 3, 2, 1, 0), Wire(1, 3, 2, 1, 0), Wire(3, 2, 1, 1, 0))
    case = Case("switch", 3, 1, wires, True, (0, 1), ((2,), (2,)))
    network = case.network()
    result = solve(network, network, Budget(), EFFORT)
    assert (result.search.bound, result.search.best) == (4, 4)
    assert raise_epoch_by_epoch(partial(flow_bounds.cut_at, network, 2), 0, 100)[0] <= 4


def test_prices_prove_more_than_blocks():
    """On long windows, prices close gaps that flows in blocks leave open, and are checked in integers."""
    case = random_case(38)
    network = case.network()
    result = solve(network, network, Budget(), 2_000_000)
    assert type(result.proof) is flow_bounds.WindowPrices
    assert result.search.is_optimal
    proof = result.proof
    assert price_bounds.check_prices(network, proof)
    assert recomputed_bound(case, proof.certificate()) == result.search.bound
    assert not price_bounds.check_prices(network, replace(proof, epochs=proof.epochs + 1))
    assert not price_bounds.check_prices(network, replace(proof, price=0 * proof.price))


def test_pairs_of_nodes_prove_more_than_each_of_them():
    """Each of six ranks could have everything by epoch 39, but two of them together could not: prices of trees to the
    two prove it."""
    case = random_case(301, most=6)
    network = case.network()
    assert all(price_bounds.prices_for(network, (sink,), 39, None) is None for sink in range(case.gpus))
    proof = price_bounds.prices_for(network, (4, 5), 39, None)
    assert proof is not None
    assert price_bounds.check_prices(network, proof)
    assert recomputed_bound(case, proof.certificate()) == 40


def test_prices_of_kinds_hold_for_all_links():
    """Prices from a program with one node for each kind are prices of the whole network, and the verifier finds them
    so; without one of them, or for an epoch more, they prove nothing."""
    posed = METHOD.pose(
        load("amd(chassis=3)").with_changes(demand=Demand(Collective.ALL_GATHER, Fraction(10**9))), METHOD.options()
    )
    network = network_of(epoch_problem(posed))
    assert price_bounds.size(network, (5,), 57) < 20 * len(network.tail)
    proof = price_bounds.prices_for(network, (5,), 57, None)
    assert proof is not None
    certificate = proof.certificate()
    assert recomputed_epochs(posed, certificate) == 58
    dearest = int(np.argmax(proof.price))
    without = tuple(0 if at == dearest else price for at, price in enumerate(certificate.prices))
    assert recomputed_epochs(posed, replace(certificate, prices=without)) == 0
    assert recomputed_epochs(posed, replace(certificate, epochs=59)) == 0


def test_a_chunk_does_not_meet_itself_at_a_switch_that_does_not_copy():
    """A link into such a switch takes two starts at once, but the same chunk on it twice would have to be copied."""
    wires = (Wire(2, 3, 1, 2, 0), Wire(3, 0, 2, 1, 0), Wire(3, 1, 2, 1, 0))
    case = Case("switch", 3, 1, wires, False, (2,), ((0, 1),))
    network = replace(case.network(), copies=np.zeros(4, dtype=np.bool_))
    plan = solve(network, network, Budget(), EFFORT).search.plan()
    assert plan is not None
    assert sorted(plan.start.tolist()) == [0, 1]


def recomputed_bound(case, certificate):
    """Return the bound that the verifier recomputes from a certificate."""
    instance, options = instance_of(case)
    return recomputed_epochs(METHOD.pose(instance, METHOD.options.model_validate(options)), certificate)


def test_the_verifier_recomputes_cuts_over_time():
    """Every cut over time that raises a bound is, as prices of 1, worth as many epochs to the verifier."""
    found = 0
    for seed in range(300, 310):
        case = random_case(seed, most=6)
        network = case.network()
        bound, cut = raise_epoch_by_epoch(partial(flow_bounds.cut_at, network, 0), network.diameter, 400)
        if cut is not None:
            assert recomputed_bound(case, cut.certificate()) == bound
            found += 1
    assert found
