"""The closed forms of pipelined time against the simulation, event by event, of trees that have rates of their own."""

from __future__ import annotations

from fractions import Fraction
from random import Random

import numpy as np
import pytest
from cwb.core.collective import Collective, Demand
from cwb.core.errors import InputError
from cwb.core.pipelining import Forest, LatencyModel, Leaves, RateReservation, equal_finish, forest_of, reserve_rates
from cwb.core.trace import SimulationMode
from cwb.core.trees import TreeKind, TreePacking
from cwb.exchange.perfetto import chrome_trace
from cwb.schedules.simulate import simulate
from cwb.schedules.simulate.network import wires
from cwb.schedules.simulate.pipeline import simulate_reserved
from tree_packings import packing

COLLECTIVE = {
    TreeKind.OUT: Collective.BROADCAST,
    TreeKind.IN: Collective.REDUCE,
    TreeKind.BOTH: Collective.ALL_REDUCE,
}
OCCUPANCY, PROPAGATION = LatencyModel.OCCUPANCY, LatencyModel.PROPAGATION


def path_seconds(links, waits_s, pace_s, flow_s, chunks):
    """The closed form of a single path."""
    path = Leaves(np.array([0]), np.array([links]), np.array([waits_s]), np.array([pace_s]))
    return Forest((path,)).seconds(np.array([flow_s]), np.array([chunks]))[0]


def network(make, source, nodes, kind):
    """A network of every pair of sites, with random latencies and bandwidths."""
    pairs = [(a, b) for a in range(nodes) for b in range(nodes) if a != b]
    links = [(a, b, source.randint(1, 9), Fraction(source.choice((0, source.randint(1, 400))), 1000)) for a, b in pairs]
    return make.network(nodes, links).with_changes(demand=Demand(COLLECTIVE[kind], Fraction(64)))


def random_tree(source, nodes):
    """A spanning tree from a random root, mostly deep."""
    order = source.sample(range(nodes), nodes)
    return [(order[source.randint(max(0, i - source.choice((1, 1, 2, 9))), i - 1)], order[i]) for i in range(1, nodes)]


def forest(instance, made, model, overhead):
    """Paths of a packing on its network."""
    return forest_of(instance.network, made, model, overhead)


def reservation(instance, made, model=OCCUPANCY, *, overhead_s=0.0, chunks=None):
    """Rates and chunks at which a packing is fastest."""
    return reserve_rates(instance.network, made, model, overhead_s, chunks)


@pytest.mark.parametrize("model", LatencyModel)
def test_paths_take_what_the_simulation_says(make, model):
    """300 random paths: equation (2), and its counterpart for propagation, are the event simulation to 1e-12."""
    source = Random(300)  # noqa: S311
    for _ in range(300):
        nodes = source.randint(2, 9)
        instance = network(make, source, nodes, TreeKind.OUT)
        made = packing(instance, TreeKind.OUT, [[(i, i + 1) for i in range(nodes - 1)]], [1])
        rate, overhead = source.uniform(0.5, 9), source.choice((0.0, source.uniform(0, 0.2)))
        chunks = source.randint(1, 30)
        plan = RateReservation(0.0, np.array([rate]), np.array([chunks]))
        taken = simulate_reserved(instance, made, plan, model, overhead_s=overhead).completion_s
        waits = [float(instance.network.links[link].latency_s) + overhead for link in made.path_links]
        pace = max(waits) if model is OCCUPANCY else overhead
        assert taken == pytest.approx(path_seconds(nodes - 1, sum(waits), pace, 64 / rate, chunks), rel=1e-12)


@pytest.mark.parametrize("kind", TreeKind)
@pytest.mark.parametrize("model", LatencyModel)
def test_trees_take_what_the_simulation_says(make, kind, model):
    """200 random trees of each kind, in forests of up to three: the largest closed form is the event simulation to
    1e-12, each in its own chunks."""
    source = Random(200)  # noqa: S311
    simulated = 0
    while simulated < 200:
        nodes, trees = source.randint(2, 8), source.randint(1, 3)
        instance = network(make, source, nodes, kind)
        units = [source.randint(1, 9) for _ in range(trees)]
        made = packing(instance, kind, [random_tree(source, nodes) for _ in range(trees)], units)
        overhead = source.choice((0.0, source.uniform(0, 0.2)))
        rates = np.array([source.uniform(0.5, 9) for _ in range(trees)])
        chunks = np.array([source.randint(1, 12) for _ in range(trees)])
        flow = made.units * float(made.unit_bytes) / rates
        expected = forest(instance, made, model, overhead).seconds(flow, chunks)
        trace = simulate_reserved(instance, made, RateReservation(0.0, rates, chunks), model, overhead_s=overhead)
        assert trace.completion_s == pytest.approx(expected.max(), rel=1e-12)
        simulated += trees


def test_the_longest_path_alone_is_not_enough(make):
    """A short branch over a slow link can be the last: 2 links of 0.4 s behind one another take longer than 3 of 0.1
    s."""
    links = [(0, 1, 1, "1/10"), (1, 2, 1, "1/10"), (2, 3, 1, "1/10"), (0, 4, 1, "4/10")]
    instance = make.network(5, links).with_changes(demand=Demand(Collective.BROADCAST, Fraction(10)))
    made = packing(instance, TreeKind.OUT, [[(0, 1), (1, 2), (2, 3), (0, 4)]], [1])
    plan = RateReservation(0.0, np.array([1.0]), np.array([20]))
    taken = simulate_reserved(instance, made, plan).completion_s
    assert taken == pytest.approx(path_seconds(1, 0.4, 0.4, 10.0, 20)) == pytest.approx(18.0)
    assert path_seconds(3, 0.3, 0.1, 10.0, 20) == pytest.approx(13.2)


@pytest.mark.parametrize("model", LatencyModel)
def test_an_edge_of_several_links_stores_on_each(make, model):
    """A tree edge that passes another site is as many links of the path as it has, in the closed form and in the
    simulation."""
    links = [(0, 1, 4, "1/4"), (1, 2, 4, "1/2"), (2, 3, 4, "1/8")]
    instance = make.network(4, links).with_changes(demand=Demand(Collective.BROADCAST, Fraction(8)))
    made = TreePacking(
        instance.sha256, TreeKind.OUT, np.array([0]), np.array([1]), Fraction(8), np.array([0, 2]), np.array([0, 2]),
        np.array([2, 3]), np.array([0, 2, 3]), np.array([0, 1, 2]),
    )  # fmt: skip
    plan = reservation(instance, made, model, chunks=4)
    pace = 0.5 if model is OCCUPANCY else 0.0
    assert plan.seconds == pytest.approx(path_seconds(3, 0.875, pace, 2.0, 4))
    assert simulate_reserved(instance, made, plan, model).completion_s == pytest.approx(plan.seconds)


@pytest.mark.parametrize("kind", TreeKind)
@pytest.mark.parametrize("model", LatencyModel)
def test_reserved_rates_fit_and_none_is_too_small(make, kind, model):
    """Reserved rates overload no link and end all trees at the time that is told, and a shorter time needs more than a
    link has."""
    source = Random(5)  # noqa: S311
    for _ in range(25):
        nodes, trees = source.randint(3, 7), source.randint(1, 4)
        instance = network(make, source, nodes, kind)
        made = packing(
            instance, kind, [random_tree(source, nodes) for _ in range(trees)], [1 + i for i in range(trees)]
        )
        overhead = 0.05
        bandwidth = wires(instance.network).bandwidth_Bps
        measured = forest(instance, made, model, overhead)
        data = made.units * float(made.unit_bytes)
        for chunks in (None, 3):
            plan = reservation(instance, made, model, overhead_s=overhead, chunks=chunks)
            load = np.zeros(len(bandwidth))
            for part in made.passes:
                np.add.at(load, part.path_links, np.repeat(plan.rates_Bps, nodes - 1))
            assert (load <= bandwidth * (1 + 1e-9)).all()
            assert (measured.seconds(data / plan.rates_Bps, plan.chunks) <= plan.seconds * (1 + 1e-11)).all()
            assert simulate_reserved(instance, made, plan, model, overhead_s=overhead).completion_s == pytest.approx(
                plan.seconds, rel=1e-11
            )
            number = None if chunks is None else np.full(trees, chunks)
            flow = measured.flow_within(plan.seconds * (1 - 1e-9), number)
            load[:] = 0
            for part in made.passes:
                with np.errstate(divide="ignore"):
                    np.add.at(load, part.path_links, np.repeat(data / flow, nodes - 1))
            assert (load > bandwidth).any()


@pytest.mark.parametrize("chunks", [None, 4])
def test_a_split_that_equalizes_is_faster_and_all_trees_end_at_once(make, chunks):
    """With the same rates, trees that have some of the data end together, and before the last tree of a split by rates;
    all data is given away."""
    source = Random(9)  # noqa: S311
    for _ in range(25):
        nodes, trees = source.randint(3, 7), source.randint(2, 4)
        instance = network(make, source, nodes, TreeKind.BOTH)
        made = packing(instance, TreeKind.BOTH, [random_tree(source, nodes) for _ in range(trees)], [1] * trees)
        measured = forest(instance, made, OCCUPANCY, 0.0)
        rates, size = np.array([source.uniform(0.5, 9) for _ in range(trees)]), 64.0
        number = None if chunks is None else np.full(trees, chunks)

        def seconds(data, measured=measured, rates=rates, number=number):
            flow = data / rates
            return measured.seconds(flow, measured.best_chunks(flow) if number is None else number)

        data = equal_finish(measured, rates, size, chunks)
        used = data > 0
        assert data.sum() == pytest.approx(size, rel=1e-12)
        assert np.ptp(seconds(data)[used]) <= 1e-9 * seconds(data)[used].max()
        assert seconds(data)[used].max() <= seconds(rates * size / rates.sum()).max() * (1 + 1e-12)
        # What got nothing cannot help: a single byte on it is too late.
        assert (seconds(np.maximum(data, 1e-9))[~used] >= seconds(data)[used].max() * (1 - 1e-9)).all()


def test_message_level_without_pipelining(make):
    """One tree in one piece takes the same in all simulators: nothing meets; two equal trees over the same links share
    them."""
    instance = make.network(3, [(0, 1, 2, "1/2"), (1, 2, 2, "1/4"), (2, 1, 2, "1/4"), (1, 0, 2, "1/2")])
    instance = instance.with_changes(demand=Demand(Collective.ALL_REDUCE, Fraction(8)))
    chain = [(0, 1), (1, 2)]
    one = packing(instance, TreeKind.BOTH, [chain], [1])
    plan = reservation(instance, one, chunks=1)
    assert plan.seconds == pytest.approx(2 * (4 + 0.5 + 4 + 0.25))
    assert simulate_reserved(instance, one, plan).completion_s == pytest.approx(plan.seconds)
    assert simulate(instance, one, SimulationMode.FAIR_SHARE).completion_s == pytest.approx(plan.seconds)
    two = packing(instance, TreeKind.BOTH, [chain, chain], [1, 1])
    assert reservation(instance, two, chunks=1).seconds == pytest.approx(plan.seconds)
    assert simulate(instance, two, SimulationMode.FAIR_SHARE).completion_s == pytest.approx(plan.seconds)


def test_traces_of_reserved_trees_can_be_drawn(make):
    """A trace has the sends of every tree's own chunks, in the order of the answer, and its links are busy as long as
    bytes take."""
    source = Random(3)  # noqa: S311
    instance = network(make, source, 4, TreeKind.BOTH)
    made = packing(instance, TreeKind.BOTH, [random_tree(source, 4) for _ in range(2)], [1, 3])
    plan = RateReservation(0.0, np.array([0.5, 0.25]), np.array([2, 5]))
    trace = simulate_reserved(instance, made, plan)
    assert len(trace.start_s) == 6 * 2 + 6 * 5
    bandwidth = wires(instance.network).bandwidth_Bps
    load = np.zeros(len(bandwidth))
    for part in made.passes:
        np.add.at(load, part.path_links, np.repeat(made.units * float(made.unit_bytes), 3))
    assert trace.link_busy_s == pytest.approx(load / bandwidth)
    assert "".join(chrome_trace(instance, made, trace, pieces=plan.chunks)).count('"ph": "X"') == len(trace.start_s)


def test_what_is_refused(make):
    """Trees without an edge, and more chunks than can be sent one by one, are told in one line."""
    alone = make.network(1, []).with_changes(demand=Demand(Collective.BROADCAST, Fraction(1)))
    zero = np.zeros(1, dtype=np.int64)
    empty = TreePacking(
        alone.sha256, TreeKind.OUT, zero, zero + 1, Fraction(1), np.array([0, 0]), zero[:0], zero[:0], zero, zero[:0]
    )
    with pytest.raises(InputError, match="at least one edge"):
        reservation(alone, empty)
    instance = network(make, Random(1), 3, TreeKind.OUT)  # noqa: S311
    made = packing(instance, TreeKind.OUT, [[(0, 1), (1, 2)]], [1])
    plan = reservation(instance, made, PROPAGATION, chunks=10**7)
    with pytest.raises(InputError, match="10,000,000 chunks over 2 edges"):
        simulate_reserved(instance, made, plan, PROPAGATION)
    assert reservation(instance, made, PROPAGATION).chunks == 2**20
