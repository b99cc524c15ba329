"""The all_to_all branch of TE-CCL: bounds, both sides of coarse grids, exact flows and their schedules."""

from __future__ import annotations

import csv
import random
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from cwb import solvers
from cwb.core.answers import BoundOnly
from cwb.core.bounds import EpochCut, EpochPrices
from cwb.core.budget import Budget
from cwb.core.collective import Collective, Demand
from cwb.core.errors import InputError, Unsupported
from cwb.core.outcome import Status
from cwb.instances import load
from cwb.instances.demand import with_demand
from cwb.instances.edits import Edit, edit_instance
from cwb.models.teccl import solve_all_to_all
from cwb.models.teccl.all_to_all_extract import EpochFlows, fault, greedy_start
from cwb.models.teccl.all_to_all_problem import BlockGrid, BlockProgram, Exchange, coarse, points_for, reduce
from cwb.models.teccl.bounds import best_cut, by_epoch, cut_epochs, longest_refuted, surplus
from cwb.models.teccl.formulations.all_to_all import build
from cwb.models.teccl.method import TECCL_ALL_TO_ALL
from cwb.models.teccl.options import AllToAllOptions
from cwb.models.teccl.problem import epoch_problem
from cwb.models.teccl.solve_all_to_all import AllToAllSearch, exchange_of, run
from cwb.schedules import verdict_of
from cwb.schedules.epoch_bounds import recomputed_epochs

SOLVER = solvers.get("highs")
CLOSE = 1e-7


def make_exchange(network, size=10**9, ranks=None, **options):
    """An all_to_all with the fluid grid of the options."""
    demand = Demand(Collective.ALL_TO_ALL, Fraction(size), ranks=ranks)
    return TECCL_ALL_TO_ALL.pose(load(network).with_changes(demand=demand), AllToAllOptions(**options))


def random_exchange(seed):
    """Ranks on a ring with chords, some behind switches that do not store; delays of 1 to 5 epochs."""
    draw = random.Random(seed)  # noqa: S311 (a test)
    ranks, switches = draw.randint(3, 5), draw.randint(0, 2)
    ends = [(i, (i + 1) % ranks) for i in range(ranks)]
    ends += [(draw.randrange(ranks), draw.randrange(ranks)) for _ in range(3)]
    ends += [pair for s in range(switches) for r in range(3) for pair in ((r, ranks + s), (ranks + s, r))]
    ends += [(ranks, ranks + 1)] if switches == 2 else []
    ends = sorted({(a, b) for a, b in ends if a != b})
    return Exchange(
        tuple(n < ranks for n in range(ranks + switches)),
        tuple(range(ranks)),
        tuple(a for a, _ in ends),
        tuple(b for _, b in ends),
        tuple(draw.choice((1, 1, 2, 5)) for _ in ends),
        tuple(draw.choice((Fraction(1), Fraction(1, 2), Fraction(3))) for _ in ends),
    )


def delivered_part(exchange, grid, *, symmetric=True):
    """Part of everything that the program delivers."""
    return SOLVER.solve(
        build(BlockProgram(exchange, grid, reduce(points_for(exchange, grid.side), symmetric=symmetric))), Budget()
    ).objective


@pytest.mark.parametrize("seed", range(12))
def test_the_coarse_grids_bound_the_grid_of_epochs_from_both_sides(seed):
    """relax >= fine >= restrict, for any number of epochs and with switches on the way."""
    exchange = random_exchange(seed)
    for epochs in {max(5, best_cut(exchange)[0] - 1), best_cut(exchange)[0] + 4}:
        exact = delivered_part(exchange, coarse(exchange, epochs, epochs, "restrict"))
        assert delivered_part(exchange, coarse(exchange, epochs, 4, "relax")) >= exact - CLOSE
        assert delivered_part(exchange, coarse(exchange, epochs, 4, "restrict")) <= exact + CLOSE


@pytest.mark.parametrize("network", ["ring(5)", "torus(3,3)", "star(4)", "dgx1()", "mesh(2,3)"])
def test_the_reduced_program_has_the_value_of_the_whole_one(network):
    """Classes of flows lose nothing: with and without them the same part is delivered, below and at the makespan."""
    instance = make_exchange(network)
    outcome = run(instance, SOLVER, Budget(), AllToAllOptions())
    exchange = exchange_of(epoch_problem(instance), instance)
    for epochs in (outcome.metrics["epochs"] - 1, outcome.metrics["epochs"]):
        assert delivered_part(exchange, coarse(exchange, epochs, epochs, "restrict")) == pytest.approx(
            delivered_part(exchange, coarse(exchange, epochs, epochs, "restrict"), symmetric=False), abs=CLOSE
        )


@pytest.mark.parametrize("seed", range(12))
def test_the_search_finds_the_makespan_of_the_grid_of_epochs(seed):
    """On random networks the search ends where the whole program delivers everything for the first time."""
    exchange = random_exchange(seed + 100)
    search = AllToAllSearch(exchange, SOLVER, Budget(), 100_000, best_cut(exchange)[0])
    search.run()
    assert search.is_closed
    assert (
        delivered_part(exchange, coarse(exchange, search.upper, search.upper, "restrict"), symmetric=False) >= 1 - CLOSE
    )
    assert (
        delivered_part(exchange, coarse(exchange, search.upper - 1, search.upper - 1, "restrict"), symmetric=False)
        < 1 - CLOSE
    )
    assert fault(search.flows) is None


def test_every_change_of_flows_is_a_fault():
    """The check refuses flows of which any is made smaller, or any is made larger than its link."""
    instance = make_exchange("torus(3,3)")
    exchange = exchange_of(epoch_problem(instance), instance)
    search = AllToAllSearch(exchange, SOLVER, Budget(), 100_000, best_cut(exchange)[0])
    search.run()
    flows = search.flows
    for c, b in np.argwhere(flows.rate > 0):
        for change in (-1, 10 * flows.scale):
            rate = flows.rate.copy()
            rate[c, b] += change
            assert fault(EpochFlows(exchange, flows.grid, flows.reduced, flows.scale, rate)) is not None


@pytest.mark.slow
@pytest.mark.parametrize(
    ("network", "size", "epochs"),
    [
        ("ring(5)", 10**9, 3),
        ("mesh(2,3)", 10**9, 4),
        ("star(4)", 10**9, 4),
        ("torus(4,4,4)", 10**9, 32),
        ("amd()", 10**9, 43),
    ],
)
def test_schedules_of_parts_are_verified(network, size, epochs):
    """The verifier, who counts epochs on his own, finds nothing wrong, and measures what is claimed."""
    instance = make_exchange(network, size)
    outcome = run(instance, SOLVER, Budget(), AllToAllOptions())
    verdict = verdict_of(instance, outcome.answer, outcome.certificate)
    assert outcome.status is Status.OPTIMAL
    assert not verdict.violations
    assert outcome.metrics["epochs"] == epochs
    assert verdict.objective == pytest.approx(outcome.objective)


def is_verified(instance, outcome):
    """The verifier finds nothing wrong, and measures the claimed epochs."""
    verdict = verdict_of(instance, outcome.answer, outcome.certificate)
    return not verdict.violations and verdict.objective == pytest.approx(outcome.objective)


@pytest.mark.parametrize(
    ("network", "ranks"), [("mesh(7,7)", None), ("mesh(3,8)", None), ("mesh(4,4,4)", None), ("mesh(4,4)", (0, 5, 15))]
)
def test_a_grid_begins_with_a_schedule_along_its_dimensions(network, ranks):
    """On meshes it meets a cut's bound with no program; of a few ranks it is a schedule to begin with."""
    instance = make_exchange(network, 2**20, ranks)
    outcome = run(instance, SOLVER, Budget(), AllToAllOptions())
    assert outcome.status is Status.OPTIMAL
    assert is_verified(instance, outcome)
    assert ranks is not None or (outcome.reports == () and isinstance(outcome.certificate, EpochCut))


def test_irregular_networks_begin_with_a_greedy_schedule(monkeypatch):
    """A mesh without a link, and links of different rates and delays, have a verified schedule before any program."""
    monkeypatch.setattr(AllToAllSearch, "_refine", lambda self, _: self.budget.stop.set())
    monkeypatch.setattr(solve_all_to_all, "MANY_COLUMNS", 0)
    for network in (edit_instance(load("mesh(4,4)"), [Edit("--without-link", "0:1")]), load("dgx1()")):
        instance = TECCL_ALL_TO_ALL.pose(with_demand(network, "all_to_all", "16 MiB", None), AllToAllOptions())
        outcome = run(instance, SOLVER, Budget(), AllToAllOptions())
        assert outcome.status is Status.FEASIBLE
        assert outcome.reports == ()
        assert is_verified(instance, outcome)


def test_a_greedy_schedule_ends_with_the_budget():
    """It is left out where nodes do not store, and when the budget is exhausted."""
    instance = make_exchange("ring(5)")
    plain = exchange_of(epoch_problem(instance), instance)
    assert greedy_start(replace(plain, stores=(False, *plain.stores[1:])), lambda: False) is None
    assert greedy_start(plain, lambda: True) is None


def test_groups_leave_other_ranks_to_relay():
    """An all_to_all of three ranks of a ring of five passes the others, and is verified."""
    instance = make_exchange("ring(5)", ranks=(0, 2, 3))
    outcome = run(instance, SOLVER, Budget(), AllToAllOptions())
    assert outcome.status is Status.OPTIMAL
    assert not verdict_of(instance, outcome.answer, outcome.certificate).violations


def test_the_paper_s_16_gpus_need_64_chunks_over_one_link():
    """NDv2 with all 16 GPUs takes 256 fast epochs for 1 GB: 64 chunks of four epochs each leave a chassis over 12.5
    GB/s (appendix H: 320.2 ms)."""
    outcome = run(make_exchange("ndv2(chassis=2)"), SOLVER, Budget(), AllToAllOptions(schedule="never"))
    assert outcome.metrics["epochs"] == outcome.metrics["lower_bound_epochs"] == 256
    assert outcome.objective == pytest.approx(0.32)
    assert isinstance(outcome.answer, BoundOnly)
    assert isinstance(outcome.certificate, EpochCut)


@pytest.mark.parametrize("row", range(15))
def test_the_cut_bound_of_the_reference_rows(reference, row):
    """No reference value is below the bound, and the bound is what the method reaches
    (``benchmarks/teccl_alltoall.py``)."""
    rows = csv.DictReader((reference / "teccl-alltoall.csv").open())
    data = [each for each in rows if each["size"] in ("64KB", "1MB", "1GB")][row]
    network = "ndv2(chassis=2, gpu0_switch=true)" if data["topology"] == "NDv2" else "dgx2(chassis=2)"
    part = Fraction(data["output_bytes"]) / (16 if data["topology"] == "NDv2" else 32)
    options = AllToAllOptions.model_validate(
        {"epoch_duration": f"{float(data['epoch_duration_s']) * 1e9:.12g} ns", "schedule": "never"}
    )
    demand = Demand(Collective.ALL_TO_ALL, part * load(network).npus)
    instance = TECCL_ALL_TO_ALL.pose(load(network).with_changes(demand=demand), options)
    bound, _ = best_cut(exchange_of(epoch_problem(instance), instance))
    assert bound <= int(data["epochs"])
    if data["topology"] == "DGX2" and data["epoch"] == "Slow":
        assert run(instance, SOLVER, Budget(), options).metrics["epochs"] == bound


def test_prices_of_nothing_refute_nothing():
    """Prices that are all 0, or 1, do not refute a makespan that is possible."""
    exchange = random_exchange(3)
    search = AllToAllSearch(exchange, SOLVER, Budget(), 100_000, best_cut(exchange)[0])
    search.run()
    for price in (0, 1):
        assert surplus(exchange, np.full((len(exchange.tails), search.upper), price, dtype=np.int64)) <= 0


@pytest.mark.parametrize("seed", range(20))
def test_no_prices_refute_what_is_possible(seed):
    """Random prices never refute the makespan of a checked schedule."""
    exchange = random_exchange(seed % 5)
    search = AllToAllSearch(exchange, SOLVER, Budget(), 100_000, best_cut(exchange)[0])
    search.run()
    prices = np.random.default_rng(seed).integers(0, 50, (len(exchange.tails), search.upper))
    assert surplus(exchange, prices) <= 0


@pytest.mark.parametrize("seed", range(20))
def test_no_lengthened_grid_refutes_what_is_possible(seed):
    """Random prices of blocks, one of which is made longer, never reach the makespan of a checked schedule."""
    exchange = random_exchange(seed % 5)
    search = AllToAllSearch(exchange, SOLVER, Budget(), 100_000, best_cut(exchange)[0])
    search.run()
    draw = np.random.default_rng(seed)
    grid = coarse(exchange, int(draw.integers(5, 15)), 4, "relax")
    prices = draw.integers(0, 50, (len(exchange.tails), grid.blocks))
    refuted = longest_refuted(exchange, grid, prices)
    assert (refuted is not None) == (surplus(exchange, by_epoch(grid, prices)) > 0)
    if refuted is not None:
        assert grid.epochs <= refuted.epochs < search.upper
        assert surplus(exchange, by_epoch(refuted, prices)) > 0


def test_a_block_is_lengthened_as_far_as_its_prices_prove():
    """A link that takes a tenth of a unit in each epoch takes more than nine for one unit, whatever the first grid."""
    tenth, plenty = Fraction(1, 10), Fraction(1)
    line = Exchange((True, True), (0, 1), (0, 1), (1, 0), (1, 1), (tenth, plenty))
    for starts in ((0, 6), (0, 2, 6), (0, 9)):
        prices = np.array([[1], [0]]).repeat(len(starts) - 1, axis=1)
        assert longest_refuted(line, BlockGrid(starts, "relax"), prices).epochs == 9
    assert longest_refuted(line, BlockGrid((0, 10), "relax"), np.array([[1], [0]])) is None


def test_the_bound_by_prices_is_exact_where_cuts_are_not():
    """A ring of five takes 3 epochs although cuts allow 2: prices prove it, and the verifier recomputes it from
    them."""
    instance = make_exchange("ring(5)")
    outcome = run(instance, SOLVER, Budget(), AllToAllOptions(schedule="never"))
    assert outcome.metrics["bound_proof"] == "prices"
    assert isinstance(outcome.certificate, EpochPrices)
    assert isinstance(outcome.answer, BoundOnly)
    assert recomputed_epochs(instance, outcome.certificate) == 3
    verdict = verdict_of(instance, outcome.answer, outcome.certificate)
    assert not verdict.violations
    assert verdict.objective == pytest.approx(outcome.objective)


def test_cuts_by_hand():
    """Two ranks behind one link each way: one unit takes the delay, three the delay and two more epochs."""
    line = Exchange((True, True), (0, 1), (0, 1), (1, 0), (4, 4), (Fraction(1), Fraction(1, 3)))
    assert line.network.distance[:, list(line.ranks)].max() == 4
    assert cut_epochs(line, frozenset([0])) == 4
    assert cut_epochs(line, frozenset([1])) == 6
    assert cut_epochs(line, frozenset([0, 1])) == 0


def test_what_does_not_fit_is_said_in_one_line():
    """Other collectives, limited buffers, whole chunks and delays of nothing are refused with a reason."""
    gather = load("ring(3)").with_changes(demand=Demand(Collective.ALL_GATHER, Fraction(9)))
    assert str(TECCL_ALL_TO_ALL.supports(gather)) == "it schedules one all_to_all"
    with pytest.raises(InputError, match="less than one epoch"):
        Exchange((True,), (0,), (0,), (0,), (0,), (Fraction(1),))
    from cwb.models.teccl.problem import pose

    whole = pose(make_exchange("ring(3)").with_changes(timing=None), AllToAllOptions())
    with pytest.raises(Unsupported, match="may be split"):
        run(whole, SOLVER, Budget(), AllToAllOptions())


def test_without_time_there_is_a_bound_and_no_schedule():
    """A run that is stopped at once says so, with the bound by cuts."""
    budget = Budget()
    budget.stop.set()
    outcome = run(make_exchange("ring(5)"), SOLVER, budget, AllToAllOptions())
    assert outcome.status is Status.LIMIT
    assert outcome.answer is None
    assert outcome.bound == pytest.approx(2 * outcome.metrics["epoch_duration_s"])
