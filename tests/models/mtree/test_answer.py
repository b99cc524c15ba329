"""Chunks of ``mtree`` and ``gost``: the metrics are what the simulation takes; splits; what is refused."""

from __future__ import annotations

import json
from fractions import Fraction
from math import sqrt

import numpy as np
import pytest
from click.testing import CliRunner
from cwb import solvers
from cwb.algorithms.trees.network import to_wan
from cwb.cli.main import cwb
from cwb.core.budget import Budget
from cwb.core.errors import InputError
from cwb.core.pipelining import LatencyModel, reserve_rates
from cwb.core.solver import SolverOptions
from cwb.core.trace import SimulationMode
from cwb.models.mtree import answer
from cwb.schedules.simulate import simulate
from cwb.schedules.verify import heaviest_load
from mtree_networks import all_trees, best_rate, height, instance, random_edges, small, solve


@pytest.mark.parametrize("split", ["rate", "equal-finish"])
@pytest.mark.parametrize(
    ("latency", "overhead"), [("occupancy", None), ("occupancy", "20 ms"), ("propagation", "20 ms")]
)
def test_the_file_of_an_answer_simulates_to_what_was_told(tmp_path, split, latency, overhead):
    """Saved trees, simulated chunk by chunk at reserved rates, take the time of the record, pipelined and not, in the
    chunks of the record."""
    path = tmp_path / "wan.json.gz"
    options = [f"split={split}", f"latency_model={latency}", "trees=5", "height=4"]
    options += [] if overhead is None else [f"chunk_overhead={overhead}"]
    arguments = ["solve", "--model", "mtree", "gscale", "--size", "1 GB", "-o", str(path), "--json", "--quiet"]
    done = CliRunner().invoke(cwb, [*arguments, *(word for option in options for word in ("-O", option))])
    assert done.exit_code == 0, done.output
    record = json.loads(done.stdout)
    told = record["metrics"]
    command = ["simulate", str(path), "--reserve", "--json", "--latency-model", latency]
    command += [] if overhead is None else ["--chunk-overhead", overhead]
    for pieces, name in (([], "pipelined_time_s"), (["--pieces", "1"], "unpipelined_time_s")):
        result = CliRunner().invoke(cwb, [*command, *pieces])
        assert result.exit_code == 0, result.output
        found = json.loads(result.stdout)
        assert found["completion_time_s"] == pytest.approx(told[name], rel=1e-11)
        if not pieces:
            assert found["pieces"] == told["chunks_per_tree"]
    data = np.multiply(told["chunks_per_tree"], told["chunk_bytes"])
    assert data.sum() == pytest.approx(10**9)


@pytest.mark.slow
@pytest.mark.parametrize(("spec", "options"), [("gscale", {"trees": 5, "height": 4}), ("gscale(0.9, 2)", {})])
@pytest.mark.parametrize("model", ["mtree", "gost"])
def test_times_stand_in_order(spec, options, model):
    """Own chunks are no slower than any common number, pipelining than none, a reduction than an all-reduce, and none
    beats the flow time.

    The completion time is of rates in proportion to the data where latency holds no link: the best rates and chunks of
    that model are no slower.
    """
    done = solve(spec, model, **options)
    told, flow = done.record.metrics, done.record.objective
    assert done.record.verified
    assert flow < told["reduce_time_s"] < told["pipelined_time_s"]
    best = reserve_rates(done.instance.network, done.answer, LatencyModel.PROPAGATION).seconds
    assert flow < best <= told["completion_time_s"] * (1 + 1e-9)
    assert told["pipelined_time_s"] < told["unpipelined_time_s"]
    assert told["reduce_time_s"] < told["unpipelined_reduce_time_s"] < told["unpipelined_time_s"]
    for chunks in (1, 8, 64):
        other = solve(spec, model, chunks=chunks, **options).record.metrics
        assert told["pipelined_time_s"] <= other["pipelined_time_s"] * (1 + 1e-12)
        assert set(other["chunks_per_tree"]) == {chunks}
        if chunks == 1:
            assert other["pipelined_time_s"] == told["unpipelined_time_s"]
    assert solve(spec, model, latency_model="propagation", **options).record.metrics["pipelined_time_s"] == (
        pytest.approx(flow + told["max_tree_latency_s"], rel=0.1)
    )


def test_an_equal_finish_is_faster_but_loads_links_unevenly():
    """If trees differ in height, equal finish times end the collective sooner, while the flow time without latency
    grows."""
    for seed in range(4):
        asked = instance(7, random_edges(7, 6, seed))
        plain, equal = (
            solve(asked, "gost", min_rate="1 Mb/s"),
            solve(asked, "gost", min_rate="1 Mb/s", split="equal-finish"),
        )
        assert equal.record.verified
        assert equal.record.metrics["pipelined_time_s"] <= plain.record.metrics["pipelined_time_s"] * (1 + 1e-9)
        assert equal.record.objective >= plain.record.objective
        assert equal.record.objective == pytest.approx(float(heaviest_load(asked, equal.answer)), rel=1e-15)
        assert equal.record.status == "feasible" or equal.record.objective == pytest.approx(plain.record.objective)
        assert equal.record.bound == pytest.approx(plain.record.bound)


def test_printed_equation_8_cuts_nothing():
    """Taken as printed, without the data size, the number of chunks of every tree on GScale is below one in Mb and
    seconds: no pipelining at all."""
    done = solve("gscale", trees=5, height=4)
    links = done.instance.network.links
    rates_Mbps = done.answer.units / done.answer.units.sum() * done.record.metrics["allreduce_rate_Bps"] * 8e-6
    for tree, rate in enumerate(rates_Mbps.tolist()):
        span = slice(done.answer.edge_offset[tree], done.answer.edge_offset[tree + 1])
        longest = max(float(links[link].latency_s) for link in done.answer.path_links[span])
        assert sqrt((2 * 4 - 1) / rate / longest) < 1.5
        assert done.record.metrics["chunks_per_tree"][tree] > 10


def test_the_reduction_alone_can_be_simulated():
    """The reduction of an answer is a packing: whole messages with max-min fair shares take longer than chunks at
    reserved rates."""
    done = solve("gscale", trees=5, height=4)
    shared = simulate(done.instance, done.answer.reduction, SimulationMode.FAIR_SHARE).completion_s
    both = simulate(done.instance, done.answer, SimulationMode.FAIR_SHARE).completion_s
    assert done.record.metrics["reduce_time_s"] < shared < both
    # Shares that nobody uses are free for others, which reserved rates are not.
    assert both < done.record.metrics["unpipelined_time_s"]


@pytest.mark.parametrize(
    ("option", "value", "told"),
    [
        ("chunks", "0", "number of chunks"),
        ("chunks", "many", "auto"),
        ("chunk_overhead", "5", "unit"),
        ("latency_model", "both", "occupancy"),
        ("split", "even", "equal-finish"),
        ("height", "low", "hops"),
    ],
)
def test_bad_options_are_told(option, value, told):
    """A wrong option is one line that says what was expected."""
    with pytest.raises(InputError, match=told) as error:
        solve("gscale", **{option: value})
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("unit", ["hops", "ns"])
@pytest.mark.parametrize("seed", range(3))
def test_the_cheapest_low_tree(seed, unit):
    """The pricing model gives the cheapest of all trees that are low enough."""
    nodes, edges, wan = small(seed)
    prices = np.array([1 + (7 * e + seed) % 5 for e in range(len(edges))], dtype=np.float64)
    lengths = None if unit == "hops" else [edge[3] * 10**6 for edge in edges]
    heights = {tree: height(nodes, edges, tree, lengths) for tree in all_trees(nodes, edges)}
    most = sorted(set(heights.values()))[0]
    limit = wan.hops(most) if unit == "hops" else wan.latencies(Fraction(most, 10**9))
    tree, report = answer.cheapest_low_tree(wan, limit, prices, solvers.get("highs"), Budget(), SolverOptions())
    want = min(sum(prices[e] for e in t) for t, h in heights.items() if h <= most)
    assert prices[tree].sum() == pytest.approx(want) == report.objective


def test_rates_of_zero_are_no_solution(monkeypatch):
    """The start of a solver that is stopped at once, no rate for any tree, is no answer."""
    from cwb import solvers

    edges = random_edges(4, 2, 1)
    wan, unit = to_wan(instance(4, edges)), answer.model_unit
    monkeypatch.setattr(answer, "model_unit", lambda wan: 0 * unit(wan))
    rated, report = answer.best_rates(wan, np.array(all_trees(4, edges)), solvers.get("highs"), Budget())
    assert report.has_solution
    assert rated is None


def test_the_best_rates_are_those_of_a_linear_program():
    """On all trees of a small network the Pyomo model is as good as another linear program."""
    from cwb import solvers
    from cwb.models.mtree.answer import best_rates

    for seed in range(5):
        edges = random_edges(5, 4, seed)
        trees = all_trees(5, edges)
        wan = to_wan(instance(5, edges))
        # The network lists links by their first direction, which is the order of the edges.
        rated, _ = best_rates(wan, np.array(trees), solvers.get("highs"), Budget())
        assert float(rated.total * wan.unit_Bps) * 8e-6 == pytest.approx(best_rate(edges, trees))
