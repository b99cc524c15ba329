"""Costs of messages and of adding in all simulators."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import cwb
import hypothesis.strategies as st
import numpy as np
import pytest
from cwb.core.budget import Budget
from cwb.core.collective import Collective, Demand
from cwb.core.errors import InputError
from cwb.core.timing import RankCosts
from cwb.core.trace import SimulationMode
from cwb.harness import registry
from cwb.schedules.simulate import simulate, simulate_totals
from cwb.schedules.simulate.compiled_runs import compiled_levels
from cwb.schedules.simulate.events import simulate_by_events
from cwb.schedules.simulate.network import add_rank_links, rules, to_ticks, wires
from cwb.schedules.simulate.pipeline import pipeline
from cwb.schedules.simulate.transfers import transfers_of
from hypothesis import given

QUEUED = (SimulationMode.CONGESTION_AWARE, SimulationMode.CUT_THROUGH)
IN_TURN = (*QUEUED, SimulationMode.ALPHA_BETA)
QUARTERS = st.integers(0, 6).map(lambda quarters: Fraction(quarters, 4))
COSTS = st.builds(
    RankCosts,
    QUARTERS,
    st.sampled_from([None, Fraction(1, 2), Fraction(2), Fraction(8)]),
    st.just(None),
    st.booleans(),
)


def solve_case(model, network, collective, costs, size=2**20):
    """An instance with costs, and the answer of a method without them."""
    instance = cwb.load(network).with_changes(demand=Demand(collective, Fraction(size)))
    method = registry.get(model)
    answer = method.run(instance, None, Budget(), method.options()).answer
    return instance.with_changes(rank_costs=costs), answer


def at(instance, answer, costs):
    """The instance with costs, and the same answer on it."""
    instance = instance.with_changes(rank_costs=costs)
    inward = getattr(answer, "reduction", None)
    parts = {} if inward is None else {"reduction": replace(inward, instance_sha256=instance.sha256)}
    return instance, replace(answer, instance_sha256=instance.sha256, **parts)


def all_reduce_answer(schedule, data):
    """The schedule, with some sends that add."""
    adds = data.draw(st.lists(st.booleans(), min_size=len(schedule.sends), max_size=len(schedule.sends)))
    return replace(schedule, sends=replace(schedule.sends, reduce=np.array(adds, dtype=np.bool_)))


@pytest.mark.parametrize("mode", IN_TURN)
@given(data=st.data())
def test_times_are_those_of_a_simulator_that_looks_through_all_sends(make, mode, data):
    """Random schedules with random costs end exactly when an exact simulator without any of this code says."""
    instance = data.draw(make.random_networks()).with_changes(rank_costs=data.draw(COSTS))
    schedule = all_reduce_answer(make.steps(instance, *data.draw(make.random_rows(instance))), data)
    trace = simulate(instance, schedule, mode)
    assert trace.end_s.tolist() == make.Slow(instance, schedule, mode).run()


@given(data=st.data())
def test_shared_links_with_costs_agree_with_a_simulator_of_every_change(make, data):
    """Flows end, up to rounding, when an exact simulator says: messages wait for their rank before they flow,
    contributions for their target when they have arrived."""
    instance = data.draw(make.random_networks()).with_changes(rank_costs=data.draw(COSTS))
    schedule = all_reduce_answer(make.steps(instance, *data.draw(make.random_rows(instance))), data)
    expected = [float(end) for end in make.Slow(instance, schedule, SimulationMode.FAIR_SHARE).run()]
    assert simulate(instance, schedule, SimulationMode.FAIR_SHARE).end_s == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("mode", IN_TURN)
@given(data=st.data())
def test_schedules_in_time_with_costs(make, mode, data):
    """Schedules in time are served in the order of their starts by ranks too, exactly as in the slow simulator."""
    instance = data.draw(make.random_networks()).with_changes(rank_costs=data.draw(COSTS))
    sizes, rows = data.draw(make.random_rows(instance))
    given_rows = [(step, step + data.draw(st.integers(1, 3)), *row) for step, *row in rows]
    schedule = all_reduce_answer(make.timed(instance, sizes, given_rows), data)
    assert simulate(instance, schedule, mode).end_s.tolist() == make.Slow(instance, schedule, mode).run()


@pytest.mark.parametrize("mode", IN_TURN)
@given(data=st.data())
def test_ranks_in_their_own_steps(make, mode, data):
    """With ``in_step`` a send waits for all that its source receives in earlier steps, whatever chunk it is."""
    instance = data.draw(make.random_networks()).with_changes(rank_costs=data.draw(COSTS))
    schedule = make.steps(instance, *data.draw(make.random_rows(instance)))
    trace = simulate(instance, schedule, mode, in_step=True)
    assert trace.end_s.tolist() == make.Slow(instance, schedule, mode, in_step=True).run()


def test_only_steps_are_in_step(make):
    """A schedule in time has no steps that a rank could wait for."""
    instance = make.line(2)
    with pytest.raises(InputError, match="steps"):
        simulate(instance, make.timed(instance, [1], [(0, 1, 0, (0,))]), in_step=True)


@pytest.mark.parametrize("mode", QUEUED)
@given(data=st.data())
def test_compiled_levels_agree_with_events(make, mode, data):
    """If levels do not overtake one another, the compiled simulation has the times of the one by events."""
    instance = data.draw(make.random_networks()).with_changes(rank_costs=data.draw(COSTS))
    schedule = all_reduce_answer(make.steps(instance, *data.draw(make.random_rows(instance))), data)
    charged = (
        add_rank_links(instance, transfers_of(instance, schedule), wires(instance.network))
        if instance.rank_costs
        else None
    )
    if charged is None:
        return
    fast = compiled_levels(charged.transfers, charged.wires, rules(mode), keep=True)
    slow = simulate_by_events(charged.transfers, charged.wires, rules(mode))
    assert fast is None or fast.timeline.end_s.tolist() == slow.end_s.tolist()


@given(data=st.data())
def test_more_cost_is_never_faster_in_a_fixed_order(make, data):
    """Without contention, or where the order of sends is given, no send ends earlier for a larger overhead."""
    bare = data.draw(make.random_networks())
    costs = data.draw(COSTS)
    more = replace(costs, overhead_s=costs.overhead_s + data.draw(QUARTERS))
    rows = data.draw(make.random_rows(bare))
    timed = make.timed(bare, rows[0], [(step, step + 1, *rest) for step, *rest in rows[1]])
    for mode, schedule in ((SimulationMode.ALPHA_BETA, make.steps(bare, *rows)), *((mode, timed) for mode in QUEUED)):
        ends = [simulate(*at(bare, schedule, each), mode).end_s for each in (None, costs, more)]
        assert (ends[0] <= ends[1]).all()
        assert (ends[1] <= ends[2]).all()


@pytest.mark.parametrize("mode", [*QUEUED, SimulationMode.ALPHA_BETA, SimulationMode.FAIR_SHARE])
@given(data=st.data())
def test_costs_of_zero_are_none(make, mode, data):
    """Costs without overhead and rates are no costs: problem and trace are those of an instance without."""
    bare = data.draw(make.random_networks())
    schedule = make.steps(bare, *data.draw(make.random_rows(bare)))
    paid, same = at(bare, schedule, RankCosts(while_receiving=True))
    assert (paid, paid.sha256) == (bare, bare.sha256)
    for column in ("start_s", "end_s", "hop_start_s", "hop_end_s", "link_busy_s"):
        assert np.array_equal(*(getattr(simulate(*case, mode), column) for case in ((bare, schedule), (paid, same))))


def test_costs_keep_whole_ticks():
    """Nodes that do not add at a limited rate have no durations, so that times still fit into floats."""
    network = "switch(4, bandwidth='7 GB/s', latency='333 ns')"
    instance, answer = solve_case("direct", network, Collective.ALL_GATHER, None, 2**30)
    costs = RankCosts(Fraction(1, 10**6))
    charged = add_rank_links(
        instance.with_changes(rank_costs=costs), transfers_of(instance, answer), wires(instance.topology)
    )
    found = to_ticks(charged.transfers, 1, charged.wires, exact=False)
    assert not found.exact


@pytest.mark.parametrize("mode", [*QUEUED, SimulationMode.FAIR_SHARE])
@pytest.mark.parametrize("while_receiving", [False, True])
def test_ring_all_reduce(mode, while_receiving):
    """A ring all-reduce pays an overhead in every step, and adds in each of its first half."""
    costs = RankCosts(Fraction(3, 10**6), Fraction(10**9), None, while_receiving)
    network = "ring(4, bandwidth='2 GB/s', latency='1 us', bidirectional=false)"
    instance, answer = solve_case("ring", network, Collective.ALL_REDUCE, None, 4 * 10**6)
    block, count = 1e6, 3
    step = 3e-6 + 1e-6 + block / 2e9
    adding = block / 1e9 - (block / 2e9 + 1e-6 if while_receiving else 0) + (1e-6 if while_receiving else 0)
    expected = 2 * count * step + count * (adding if not while_receiving else block / 1e9 - block / 2e9)
    assert simulate(*at(instance, answer, costs), mode).completion_s == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("mode", [*QUEUED, SimulationMode.FAIR_SHARE])
def test_a_rank_sends_and_adds_one_message_after_the_other(make, mode):
    """Three contributions from three links are added one by one, and three messages of one rank leave one by one."""
    links = [*((i, 3, 8, 0) for i in range(3)), *((3, i, 8, 0) for i in range(3))]
    instance = make.network(4, links).with_changes(rank_costs=RankCosts(Fraction(1), Fraction(2)))
    inward = make.steps(instance, [8], [(0, 0, (link,)) for link in range(3)])
    inward = replace(inward, sends=replace(inward.sends, reduce=np.ones(3, dtype=np.bool_)))
    assert sorted(simulate(instance, inward, mode).end_s) == [1 + 1 + 4, 1 + 1 + 8, 1 + 1 + 12]
    outward = make.steps(instance, [8], [(0, 0, (link,)) for link in range(3, 6)])
    assert sorted(simulate(instance, outward, mode).end_s) == [2, 3, 4]


@pytest.mark.parametrize("mode", [*QUEUED, SimulationMode.FAIR_SHARE, SimulationMode.ALPHA_BETA])
def test_chunks_of_one_step_between_two_ranks_are_one_message(make, mode):
    """Four chunks that leave together over one link pay the overhead of one message."""
    instance = make.line(2, bandwidth=8, latency=0).with_changes(rank_costs=RankCosts(Fraction(5)))
    together = make.steps(instance, [8, 8, 8, 8], [(0, chunk, (0,)) for chunk in range(4)])
    apart = make.steps(instance, [8, 8, 8, 8], [(chunk, chunk, (0,)) for chunk in range(4)])
    alone = mode is SimulationMode.ALPHA_BETA
    assert simulate(instance, together, mode).completion_s == (6 if alone else 9)
    assert simulate(instance, apart, mode).completion_s == (6 if alone else 21)


@pytest.mark.parametrize("while_receiving", [False, True])
@pytest.mark.parametrize("collective", [Collective.ALL_GATHER, Collective.ALL_REDUCE, Collective.REDUCE_SCATTER])
@pytest.mark.parametrize("network", ["ring(4)", "switch(4)", "torus(3,3)"])
def test_trees_in_pieces(network, collective, while_receiving):
    """The closed form of trees is the time of their simulation piece by piece, with costs as without, and grows."""
    instance, answer = solve_case("forestcoll", network, collective, None)
    times = []
    for costs in (
        None,
        RankCosts(Fraction(1, 10**6), Fraction(10**10), None, while_receiving),
        RankCosts(Fraction(5, 10**6), Fraction(10**9), None, while_receiving),
    ):
        here, trees = at(instance, answer, costs)
        line = pipeline(here, trees)
        for pieces in (1, 3, 16):
            trace = simulate(here, trees, SimulationMode.SHARES, pieces=pieces)
            assert trace.completion_s == pytest.approx(float(line.seconds(pieces)[0]), rel=1e-12)
        times.append(line.best()[0][0])
    assert times == sorted(times)
    assert times[0] < times[1] < times[2]


def test_totals_count_the_costs():
    """Totals of a schedule are those of its trace, busy seconds of the network's links alone, in both models."""
    costs = RankCosts(Fraction(1, 10**6), Fraction(10**9))
    for model in ("ring", "rhd", "bine"):
        instance, answer = at(*solve_case(model, "switch(8)", Collective.ALL_REDUCE, None), costs)
        trace = simulate(instance, answer)
        found = simulate_totals(instance, answer, unaware=True)
        assert found.completion_s == trace.completion_s
        assert found.busy_s.tolist() == trace.link_busy_s.tolist()
        assert found.unaware_s == simulate(instance, answer, SimulationMode.ALPHA_BETA).completion_s
