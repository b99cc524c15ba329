"""The declarative models: published tables, brute force, the verifier, and what they refuse."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest
from cwb import solvers
from cwb.core.budget import Budget
from cwb.core.collective import Demand, collective_named
from cwb.core.errors import InputError
from cwb.core.outcome import Status
from cwb.core.timing import EPOCHS, BandwidthChange
from cwb.core.topology import NodeKind
from cwb.harness.run import Request, run
from cwb.instances import load
from cwb.models.teccl import solve_astar, solve_lp, solve_milp
from cwb.models.teccl.bounds import lower_bound
from cwb.models.teccl.formulations import milp
from cwb.models.teccl.index_sets import index_sets
from cwb.models.teccl.options import AstarOptions, LpOptions, MilpOptions
from cwb.models.teccl.problem import epoch_problem
from cwb.schedules import verdict_of
from cwb.schedules.epoch_bounds import recomputed_epochs
from cwb.schedules.files import read_schedule
from cwb.schedules.verify.grid import grid_of
from draws import draws
from epochs_oracle import TooLarge, reachable
from grids import demand_of, network, on_grid, small_networks, switch_trees, with_room, with_switch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from pyomo.core.expr.visitor import identify_variables

HIGHS = solvers.get("highs")
KINDS = ["all_gather", "all_to_all", "broadcast", "scatter", "gather"]
SUMS = ["reduce", "reduce_scatter", "all_reduce"]


def solve_instance(instance, module=solve_milp, options=None):
    """Run a method on a posed instance, with nothing to begin with; its answer must be right."""
    options = options or {solve_milp: MilpOptions, solve_lp: LpOptions, solve_astar: AstarOptions}[module]()
    if module is not solve_lp:
        options = options.model_copy(update={"start": "none"})
    outcome = module.run(instance, HIGHS, Budget(), options)
    assert outcome.answer is not None, outcome.message
    verdict = verdict_of(instance, outcome.answer, outcome.certificate)
    assert verdict.ok, verdict.violations
    assert verdict.objective == pytest.approx(outcome.objective, rel=1e-12)
    return outcome, verdict.metrics["epochs"]


def table(model, network, size_kb, kind="all_gather", **options):
    """One row of a table: epochs, status."""
    demand = Demand(collective_named(kind), Fraction(1000 * size_kb))
    record = run(load(network).with_changes(demand=demand), Request(model, options=options)).record
    assert record.verified, record.violations
    return record.metrics["epochs"], record.status


@pytest.mark.parametrize(("chunks", "epochs"), [(1, 4), (2, 5), (3, 6)])
def test_table_3(chunks, epochs):
    """DGX-1, 25 KB chunks, 0.7 us: 4, 5 and 6 us where the paper has 4, 5 and 6.1."""
    assert table("teccl-milp", "dgx1()", 200, chunk_size="25 KB", chunks=chunks, epoch="slow", start="none") == (
        epochs,
        "optimal",
    )


@pytest.mark.parametrize("chunks", range(1, 7))
def test_table_7(chunks):
    """DGX-1 without latency: c chunks take c + 1 epochs, as SCCL's instances do."""
    found = table("teccl-milp", "dgx1(latency='0 us')", 200 * chunks, chunks=chunks, epoch="slow", start="none")
    assert found == (chunks + 1, "optimal")


@pytest.mark.parametrize(("chunks", "epochs"), [(1, 3), (3, 8)])
def test_table_7_all_to_all(chunks, epochs):
    """The linear program takes the epochs of table 7 on all-to-all."""
    found = table("teccl-lp", "dgx1(latency='0 us')", 200 * chunks, "all_to_all", chunks=chunks, epoch="slow")
    assert found == (epochs, "optimal")


def none_is_faster(instance, epochs, most=1000):
    """Check if enumeration finds no schedule of fewer epochs; problems that are too large pass."""
    try:
        return not reachable(instance, epochs - 1, most)
    except TooLarge:
        return True


@pytest.mark.slow
@settings(max_examples=draws(25), deadline=None)
@given(
    small_networks(ranks=(2, 3)),
    st.sampled_from([*KINDS, *SUMS]),
    st.integers(1, 2),
    st.sampled_from(EPOCHS),
    st.sampled_from([Fraction(1), Fraction(1, 2)]),
    st.lists(
        st.tuples(st.integers(0, 4), st.integers(0, 3), st.integers(1, 3), st.sampled_from([0, 1, 4])), max_size=2
    ),
    st.sampled_from(["makespan", "late", "paper"]),
    st.sampled_from([None, None, 0, 1]),
    st.data(),
)
def test_nothing_that_is_proved_is_undercut(
    topology, kind, chunks, semantics, epoch_us, changes, objective, room, data
):
    """Schedules are verified, trying everything finds none below the bound, and where nothing is ruled out the fewest
    epochs are found."""
    instance = on_grid(topology, kind, chunks, semantics.value, epoch_us)
    changed = tuple(BandwidthChange(e, k, k + many, Fraction(factor, 2)) for e, k, many, factor in changes)
    assume(all(change.link < len(topology.links) for change in changed))
    instance = instance.with_changes(timing=replace(instance.timing, changes=changed))
    assume(epoch_problem(instance).diameter <= 6)
    if room is not None and kind in KINDS:
        instance = with_room(instance, room)
    unicast = any(n.kind is NodeKind.SWITCH and not n.multicast and n.buffer_bytes == 0 for n in topology.nodes)
    ways = data.draw(st.sampled_from(["as-they-are", "hyper-edges"] if unicast else ["as-they-are"]))
    stages = data.draw(st.booleans()) if (kind, objective) == ("all_reduce", "makespan") else False
    options = MilpOptions(objective=objective, switches=ways, all_reduce="stages" if stages else "direct")
    outcome, _ = solve_instance(instance, options=options)
    low = outcome.metrics["lower_bound_epochs"]
    if objective != "paper" and kind != "all_reduce":
        assert outcome.status is Status.OPTIMAL
    assert none_is_faster(instance, low)


@settings(max_examples=draws(12), deadline=None)
@given(small_networks(ranks=(2, 3)), st.sampled_from(KINDS), st.integers(1, 2), st.sampled_from(EPOCHS))
def test_every_model_is_right_and_no_bound_is_beyond_it(topology, kind, chunks, semantics):
    """On random networks all models give verified schedules; A* is no better than the optimum, and splitting chunks no
    worse but for a last epoch."""
    instance = on_grid(topology, kind, chunks, semantics.value)
    problem = epoch_problem(instance)
    outcome, epochs = solve_instance(instance)
    assert outcome.status is Status.OPTIMAL
    low, certificate = lower_bound(problem)
    assert low <= recomputed_epochs(instance, certificate) <= epochs
    _, rounds = solve_instance(instance, solve_astar)
    assert rounds >= epochs
    fluid = replace(instance, timing=replace(instance.timing, fluid=True))
    flow, parts = solve_instance(fluid, solve_lp)
    assert flow.status is Status.OPTIMAL
    assert lower_bound(epoch_problem(fluid))[0] <= parts


@pytest.mark.parametrize("buffer", [None, Fraction(0)])
@pytest.mark.parametrize("kind", ["broadcast", "all_gather"])
def test_a_switch_that_does_not_copy_gets_a_part_once_for_each_rank(kind, buffer):
    """Parts for two ranks both cross the link to a switch without multicast, and end at index 3."""
    star = [ends for i, rate in enumerate([1, 2, 2]) for ends in ((i, 3, rate, 0), (3, i, rate, 0))]
    instance = on_grid(network(3, star, (3,), multicast=False, buffer=buffer), kind, fluid=True)
    outcome, found = solve_instance(instance, solve_lp)
    assert (outcome.status, found) == (Status.OPTIMAL, 3)


@settings(max_examples=draws(25), deadline=None)
@given(
    switch_trees(),
    st.sampled_from(KINDS),
    st.integers(1, 2),
    st.sampled_from(EPOCHS),
    st.sampled_from(["makespan", "paper"]),
    st.sampled_from([None, 0, 1]),
)
def test_parts_of_chunks_go_through_any_switches(topology, kind, chunks, semantics, objective, room):
    """Through stars and trees of switches, with and without copies and storage, and over ranks with any room, the
    linear program's ways are right."""
    instance = with_room(on_grid(topology, kind, chunks, semantics.value, fluid=True), room)
    assert solve_instance(instance, solve_lp, LpOptions(objective=objective))[0].status is Status.OPTIMAL


@settings(max_examples=10, deadline=None)
@given(small_networks(ranks=(2, 3)), st.sampled_from(SUMS), st.sampled_from(EPOCHS))
def test_sums_are_right(topology, kind, semantics):
    """Reductions by both routes are verified, one model of both stages is no slower than two in a row, and the bound
    is the verifier's."""
    instance = on_grid(topology, kind, semantics=semantics.value)
    _, epochs = solve_instance(instance)
    low, certificate = lower_bound(epoch_problem(instance))
    assert low == recomputed_epochs(instance, certificate) <= epochs
    if kind == "all_reduce":
        _, stages = solve_instance(instance, options=MilpOptions(all_reduce="stages"))
        assert epochs <= stages


@settings(max_examples=40, deadline=None)
@given(
    small_networks(),
    st.sampled_from(EPOCHS),
    st.booleans(),
    st.sampled_from([Fraction(1, 3), 1, Fraction(7, 4)]),
)
def test_the_verifier_counts_the_same_epochs(topology, semantics, fluid, epoch_us):
    """Two tables of delays, windows and capacities, made separately, are the same."""
    instance = on_grid(topology, semantics=semantics.value, epoch_us=epoch_us, fluid=fluid)
    grid, columns = grid_of(instance), epoch_problem(instance).columns
    assert [grid.source.tolist(), grid.target.tolist(), grid.delay.tolist()] == columns[:3].tolist()
    assert [grid.window.tolist(), grid.capacity.tolist()] == columns[3:].tolist()


def test_objectives_agree_on_the_fewest_epochs():
    """Counting late epochs in one model gives the makespan of the models of fixed length; the paper's objective is no
    faster."""
    instance = on_grid(with_switch(), chunks=2)
    _, epochs = solve_instance(instance)
    _, late = solve_instance(instance, options=MilpOptions(objective="late", epochs=epochs + 3))
    outcome, paper = solve_instance(instance, options=MilpOptions(objective="paper", epochs=epochs + 3))
    assert late == epochs <= paper
    assert outcome.metrics["paper_bound"] == pytest.approx(outcome.metrics["paper_objective"])


def test_priorities_put_a_tenant_first():
    """Of two broadcasts over one link, the one with the larger weight is done first."""
    line = network(2, [(0, 1, 1, 0), (1, 0, 1, 0)])
    pair = on_grid(line, "broadcast", also=(demand_of(line, "broadcast"),))
    for weights in ([1, 5], [5, 1]):
        outcome, _ = solve_instance(pair, options=MilpOptions(objective="paper", epochs=2, priorities=weights))
        first = int(outcome.answer.sends.chunk[outcome.answer.start_s.argmin()])
        assert weights[first] == 5


def test_switches_that_copy_save_epochs_and_hyper_edges_do_not_copy():
    """Three ranks on a switch: with copies a broadcast has one way up, without them as many as there are receivers."""
    star = [(i, 4, 1, 0) for i in range(4)] + [(4, i, 1, 0) for i in range(4)]
    found = [
        solve_instance(on_grid(network(4, star, (4,), multicast=copy), "broadcast", 2))[1] for copy in (True, False)
    ]
    edges = solve_instance(
        on_grid(network(4, star, (4,), multicast=False), "broadcast", 2), options=MilpOptions(switches="hyper-edges")
    )
    assert found[0] < found[1] == edges[1]


def test_a_link_that_is_down_is_not_used():
    """With a link down for its first epochs, data waits for it, and the verifier refuses the schedule that does not."""
    line = network(2, [(0, 1, 1, 0), (1, 0, 1, 0)])
    options = {
        "bandwidth": [{"source": "n0", "target": "n1", "epochs": [0, 3], "factor": "0"}],
        "epoch_duration": "1 us",
    }
    found = run(on_grid(line, "broadcast").with_changes(timing=None), Request("teccl-milp", options=options))
    assert found.record.metrics["epochs"] == 4
    early = replace(found.answer, start_s=found.answer.start_s * 0, end_s=found.answer.end_s * 0 + 1e-6)
    assert any("capacity" in v for v in verdict_of(found.instance, early).violations)


def test_a_link_that_is_faster_for_a_while_is_used():
    """Twice the bandwidth is two chunks in an epoch, in physical time as well, and three are still too many."""
    line = network(2, [(0, 1, 1, 0), (1, 0, 1, 0)])
    for chunks, epochs in ((2, 1), (3, 2)):
        instance = on_grid(line, "broadcast", chunks, "store-and-forward")
        faster = (BandwidthChange(0, 0, 1, Fraction(2)),)
        instance = instance.with_changes(timing=replace(instance.timing, changes=faster))
        outcome, found = solve_instance(instance)
        assert (outcome.status, found) == (Status.OPTIMAL, epochs)
    early = replace(outcome.answer, start_s=outcome.answer.start_s * 0, end_s=outcome.answer.end_s * 0 + 1e-6)
    assert any("capacity" in violation for violation in verdict_of(instance, early).violations)


def test_relays_and_buffers_that_are_limited():
    """The options for ranks are part of the verified instance, so its bound includes them and is met."""
    chain = network(3, [(0, 1, 2, 0), (1, 2, 1, 0), (2, 0, 1, 0)])
    posed = on_grid(chain, "scatter", chunks=4, ranks=(0, 2), epoch_us=Fraction(1, 2))
    ways = {"free": {}, "held": {"buffer": 1}, "passed": {"relays": "pass"}}
    found = {}
    for name, options in ways.items():
        given = {"epoch_duration": "500 ns", **options}
        found[name] = run(posed.with_changes(timing=None), Request("teccl-milp", options=given))
        assert found[name].record.verified
        assert found[name].record.status == "optimal"
    assert found["free"].record.metrics["epochs"] <= found["held"].record.metrics["epochs"]
    rooms = {name: {node.buffer_bytes for node in each.instance.network.nodes} for name, each in found.items()}
    assert rooms == {"free": {None}, "held": {1000}, "passed": {0}}


@st.composite
def stars_of_relays(draw):
    """Ranks around a rank, with some links between them; every link carries one chunk an epoch, or one in two."""
    leaves = range(1, draw(st.integers(2, 3)) + 1)
    rates = st.sampled_from([1, 1, Fraction(1, 2)])
    links = [(a, b, draw(rates), 0) for leaf in leaves for a, b in ((0, leaf), (leaf, 0))]
    pairs = [(a, b) for a in leaves for b in leaves if a != b]
    links += [(*pair, 1, 0) for pair in draw(st.lists(st.sampled_from(pairs), max_size=2, unique=True))]
    return network(1 + len(leaves), links)


@pytest.mark.slow
@settings(max_examples=8)
@given(stars_of_relays(), st.sampled_from(["all_gather", "all_gather", *KINDS]), st.sampled_from(["makespan", "late"]))
def test_a_rank_that_passes_on_may_receive_a_chunk_again(topology, kind, objective):
    """If ranks forward at once or never, the model's epochs are the fewest of all enumerated schedules."""
    instance = with_room(on_grid(topology, kind), 0)
    outcome, epochs = solve_instance(instance, options=MilpOptions(objective=objective))
    assert outcome.status is Status.OPTIMAL
    assert none_is_faster(instance, epochs, most=4_000)


def test_relays_that_a_presolve_calls_infeasible():
    """Six epochs are enough for an all-to-all of relays, which HiGHS 1.16 denies where its presolve enumerates rows."""
    ends = [pair for leaf, rate in ((1, 1), (2, Fraction(1, 2)), (3, 1)) for pair in ((0, leaf, rate), (leaf, 0, rate))]
    star = network(4, [(a, b, rate, 0) for a, b, rate in ends])
    outcome, epochs = solve_instance(with_room(on_grid(star, "all_to_all", semantics="store-and-forward"), 0))
    assert (outcome.status, epochs) == (Status.OPTIMAL, 6)


@pytest.mark.parametrize("objective", ["makespan", "late"])
def test_relays_of_which_a_presolve_loses_a_point(objective):
    """If HiGHS 1.16 loses its incumbent in presolve, it runs again without, and proves the fewest epochs."""
    half = Fraction(1, 2)
    ends = [(0, 1, half), (1, 0, 1), (0, 2, 1), (2, 0, 1), (0, 3, 1), (3, 0, half), (1, 3, 1), (3, 2, 1)]
    instance = with_room(on_grid(network(4, [(a, b, rate, 0) for a, b, rate in ends]), "all_to_all"), 0)
    outcome, epochs = solve_instance(instance, options=MilpOptions(objective=objective))
    assert (outcome.status, epochs) == (Status.OPTIMAL, 6)


def test_a_star_of_relays_takes_three_epochs(reference):
    """A star whose centre passes on what it receives: a schedule of 3 ms that sends chunks twice is right and found."""
    star = load(reference / "defects3" / "star.json")
    done = run(star, Request("teccl-milp", options={"relays": "pass"}))
    assert (done.record.status, done.record.metrics["epochs"], done.record.verified) == ("optimal", 3, True)
    declared = run(star, Request("teccl/milp", options={"relays": "pass", "epochs": 3})).record
    assert (declared.status, declared.verified) == ("optimal", True)
    file = read_schedule(reference / "defects3" / "star_resend.json")
    verdict = verdict_of(file.instance, file.answer, file.certificate)
    assert (verdict.ok, verdict.metrics["epochs"]) == (True, 3)


ONCE_WRONG = {
    "late": (
        ("star(3,bandwidth='1 GB/s')", "broadcast", 10**9, 1),
        {"epoch_duration": "1 s", "timing": "store-and-forward", "objective": "late"},
        5,
    ),
    "paper": (
        ("line(3,bandwidth='1 GB/s',latency='0 s')", "broadcast", 10**9, 1),
        {
            "epoch_duration": "1 s",
            "objective": "paper",
            "bandwidth": [{"source": "1", "target": "2", "epochs": [0, 30], "factor": "0"}],
        },
        31,
    ),
    "window": (
        ("line(3,bandwidth='1 GB/s',latency='0 s')", "broadcast", 10**9, 1),
        {
            "epoch_duration": "0.5 s",
            "timing": "store-and-forward",
            "bandwidth": [{"source": "1", "target": "2", "epochs": [1, 2], "factor": "0"}],
        },
        5,
    ),
    "hyper-edges": (
        ("star(3,bandwidth='2 B/s',latency='0 s')", "broadcast", 1, 1),
        {"epoch_duration": "1 s", "switches": "hyper-edges"},
        1,
    ),
    "sums": (
        ("line(3,bandwidth='1 GB/s',latency='0 s')", "reduce", 2 * 10**9, 2),
        {"epoch_duration": "1 s", "timing": "store-and-forward"},
        3,
    ),
}


@pytest.mark.parametrize("name", ONCE_WRONG)
def test_fewest_epochs_of_what_was_wrong_once(name):
    """Horizons that are too small, windows beyond the starts, copies over one link, contributions on one link: the
    optimum, verified."""
    (network, kind, size, chunks), options, epochs = ONCE_WRONG[name]
    demand = Demand(collective_named(kind), Fraction(size), chunks)
    record = run(load(network).with_changes(demand=demand), Request("teccl-milp", options=options)).record
    assert record.verified, record.violations
    assert (record.metrics["epochs"], record.status) == (epochs, "feasible" if name == "paper" else "optimal")


def test_buffers_as_printed():
    """If all chunks count, a rank's own fill its buffer until dropped, and proofs hold for the model alone."""
    instance = with_room(on_grid(network(3, [(i, (i + 1) % 3, 1, 0) for i in range(3)]), "all_to_all"), 2)
    outcome, epochs = solve_instance(instance, options=MilpOptions(buffer=2, buffer_counts="all"))
    assert (outcome.status, epochs) == (Status.FEASIBLE, 3)
    assert "own chunks and those that it needs count" in outcome.message
    model = milp.build(index_sets(epoch_problem(instance), 3, all_count=True))
    held = {str(v) for v in identify_variables(model.limited_buffers[0, 0].body)}
    assert held == {f"B[{q},0,0]" for q, c in enumerate(epoch_problem(instance).commodities) if c.source == 0}
    with pytest.raises(InputError, match="needs 2 in the end"):
        solve_milp.run(with_room(instance, 1), HIGHS, Budget(), MilpOptions(buffer=1, buffer_counts="all"))


def test_switches_in_both_ways_take_as_long():
    """A switch without copies takes several copies of a chunk in one epoch where the link has room, as a switch and as
    hyper-edges."""
    star = [(i, 3, 2, 0) for i in range(3)] + [(3, i, 2, 0) for i in range(3)]
    for buffer in (Fraction(0), None):
        instance = on_grid(network(3, star, (3,), multicast=False, buffer=buffer), "broadcast")
        for ways in ("as-they-are", "hyper-edges"):
            outcome, epochs = solve_instance(instance, options=MilpOptions(switches=ways))
            assert (outcome.status, epochs) == (Status.OPTIMAL, 1)


def test_contributions_are_added_where_they_meet():
    """Two ranks' contributions are one chunk on a link that they share from a switch that stores, and two from one
    that does not."""
    up = [(0, 3, 1, 0), (1, 3, 1, 0), (3, 2, 1, 0), (2, 3, 1, 0), (3, 0, 1, 0), (3, 1, 1, 0)]
    for buffer, expected in ((Fraction(0), 3), (None, 2)):
        star = network(3, up, (3,), buffer=buffer)
        outcome, epochs = solve_instance(on_grid(star, "reduce", semantics="store-and-forward"))
        assert (outcome.status, epochs) == (Status.OPTIMAL, expected)


def test_what_the_model_rules_out_is_not_infeasible():
    """An all-reduce faster than sums at one rank may exist: then the model ends with a limit and the reason; below the
    bound, infeasible."""
    pair = network(2, [(0, 1, 1, 1), (1, 0, 1, 1)])
    instance = on_grid(pair, "all_reduce")
    outcome = solve_milp.run(instance, HIGHS, Budget(), MilpOptions(epochs=3))
    assert (outcome.status, outcome.metrics["lower_bound_epochs"]) == (Status.LIMIT, 3)
    assert "each part of an all-reduce is summed at one rank" in outcome.message
    assert reachable(instance, 3)
    assert solve_milp.run(instance, HIGHS, Budget(), MilpOptions(epochs=2)).status is Status.INFEASIBLE
    reduce = on_grid(network(3, [(0, 1, 1, 0), (1, 2, 1, 0), (2, 0, 1, 0)]), "reduce")
    assert solve_milp.run(reduce, HIGHS, Budget(), MilpOptions(epochs=1)).status is Status.INFEASIBLE


@pytest.mark.slow
def test_rounds_and_stages_keep_to_the_epochs_in_which_bandwidth_varies():
    """Later A* rounds and the second stage of an all-reduce have the bandwidth of their own epochs.

    ``solved`` has the schedule verified.
    """
    line = network(3, [(0, 1, 1, 0), (1, 0, 1, 0), (1, 2, 1, 0), (2, 1, 1, 0)])
    for kind, module, options in (
        ("all_gather", solve_astar, AstarOptions(round_epochs=2)),
        ("all_reduce", solve_milp, MilpOptions(all_reduce="stages")),
    ):
        for first in range(2, 6):
            instance = on_grid(line, kind, 2)
            down = tuple(BandwidthChange(e, first, first + 2, Fraction(0)) for e in range(4))
            solve_instance(instance.with_changes(timing=replace(instance.timing, changes=down)), module, options)


def test_stages_wait_for_links_that_are_still_busy():
    """A switch hands a chunk to a rank before the link is free again: the second stage does not start over it in that
    time.

    ``solved`` has the schedule verified.
    """
    slow = Fraction(1, 4)
    star = [(0, 2, 1, 0), (1, 2, 1, 0), (2, 0, slow, 0), (2, 1, slow, 0)]
    solve_instance(on_grid(network(2, star, (2,)), "all_reduce"), options=MilpOptions(all_reduce="stages"))


@pytest.mark.parametrize("objective", ["makespan", "late"])
def test_a_gap_ends_the_search_early(objective):
    """With a gap no bound is proved beyond it: a schedule within it of the bound is the answer, as feasible, with both
    numbers."""
    ring = [(i, (i + 1) % 5, 1, 0) for i in range(5)] + [(0, 2, Fraction(1, 2), 0)]
    instance = on_grid(network(5, ring), "all_gather", 2)
    exact, epochs = solve_instance(instance)
    assert exact.status is Status.OPTIMAL
    outcome = solve_milp.run(instance, HIGHS, Budget(gap=0.4), MilpOptions(objective=objective))
    low, high = (round(x / float(instance.timing.epoch_s)) for x in (outcome.bound, outcome.objective))
    assert low <= epochs <= high <= low / 0.6
    assert outcome.status is (Status.OPTIMAL if low == high else Status.FEASIBLE)
    assert verdict_of(instance, outcome.answer, outcome.certificate).ok


def test_hyper_edges_are_switches_without_copies():
    """The instance that is verified says that switches do not copy, so that the schedule of a switch that does is
    refused."""
    star = [(i, 3, 1, 0) for i in range(3)] + [(3, i, 1, 0) for i in range(3)]
    instance = on_grid(network(3, star, (3,)), "broadcast").with_changes(timing=None)
    ways = [{}, {"switches": "hyper-edges"}]
    copied, edges = (run(instance, Request("teccl-milp", options={"epoch_duration": "1 us", **o})) for o in ways)
    assert (copied.record.metrics["epochs"], edges.record.metrics["epochs"]) == (1, 2)
    moved = replace(copied.answer, instance_sha256=edges.instance.sha256)
    assert any("multicast" in violation for violation in verdict_of(edges.instance, moved).violations)


@settings(max_examples=draws(10), deadline=None)
@given(
    small_networks(ranks=(2, 3)),
    st.sampled_from(["all_gather", "all_to_all", "scatter"]),
    st.integers(0, 2),
    st.sampled_from([None, 1, 2]),
    st.sampled_from([Fraction(1), Fraction(1, 2)]),
)
def test_limits_of_ranks_and_switches_are_kept(topology, kind, room, switch, epoch_us):
    """Whatever ranks and switches can hold, the schedule is verified, and no faster than without limits."""
    nodes = tuple(
        replace(n, buffer_bytes=Fraction(1000) * switch) if n.kind is NodeKind.SWITCH and switch else n
        for n in topology.nodes
    )
    instance = on_grid(replace(topology, nodes=nodes), kind, epoch_us=epoch_us)
    outcome, epochs = solve_instance(with_room(instance, room))
    assert outcome.status is Status.OPTIMAL
    assert epochs >= solve_instance(instance)[1]
    if room and not switch:
        solve_instance(with_room(replace(instance, timing=replace(instance.timing, fluid=True)), room), solve_lp)


def test_fewer_epochs_than_the_distance_are_infeasible():
    """K below the diameter is told as infeasible by all models, and is not an empty row."""
    instance = on_grid(with_switch(), chunks=2)
    for module, options in ((solve_milp, MilpOptions(epochs=1)), (solve_lp, LpOptions(epochs=1))):
        fluid = replace(instance, timing=replace(instance.timing, fluid=module is solve_lp))
        assert module.run(fluid, HIGHS, Budget(), options).status is Status.INFEASIBLE


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"epochs": 0}, "epochs"),
        ({"epoch_duration": "0 s"}, "an epoch of no time"),
        ({"epoch_duration": "1e-9 ns"}, "is too short"),
        ({"buffer": 0}, "less than one"),
        ({"buffer": 2, "relays": "pass"}, "has no effect"),
        ({"buffer_counts": "all"}, "has no effect without a buffer"),
        ({"epoch_multiplier": 2, "epoch_duration": "1 us"}, "one of the two"),
        ({"priorities": [1]}, "objective=paper"),
        ({"priorities": [1, 2], "objective": "paper"}, "2 weights for 1"),
        ({"bandwidth": [{"source": "a", "target": "b", "epochs": [0, 1], "factor": "1"}]}, "no link from"),
    ],
)
def test_bad_options_are_one_clear_line(options, text):
    """Wrong options are reported in one line that names them."""
    instance = on_grid(with_switch()).with_changes(timing=None)
    with pytest.raises(InputError, match=text) as error:
        run(instance, Request("teccl-milp", options=options))
    assert "\n" not in str(error.value)


def test_what_cannot_be_reached_or_held_is_told():
    """A rank without a way to it, and a switch whose buffer holds less than a chunk, are input errors."""
    with pytest.raises(InputError, match="no path leads from 'n0' to 'n1'"):
        epoch_problem(on_grid(network(2, [(1, 0, 1, 0)])))
    with pytest.raises(InputError, match="less than a chunk"):
        epoch_problem(on_grid(with_switch(buffer=Fraction(10))))


@pytest.mark.parametrize(
    ("file", "method"), [("lp_late", "teccl-lp"), ("astar_late", "teccl-astar"), ("lp_late", "teccl")]
)
def test_whether_a_collective_sums_is_of_its_conditions(reference, file, method):
    """A late all-reduce is summed too: what sums nothing does not take it, and says so in a line."""
    record = run(load(reference / "defects3" / f"{file}.json"), Request(method)).record
    assert (record.status, record.exit_status) == ("unsupported", 7)
    assert record.message.endswith("it schedules no sums; use teccl-milp")
