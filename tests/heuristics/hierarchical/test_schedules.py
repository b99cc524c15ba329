"""Composed schedules: verified, as fast as they should be, and chosen as asked."""

from __future__ import annotations

from fractions import Fraction

import pytest
from cwb.cli.display import summary_table
from cwb.core.collective import Collective, Demand, collective_named
from cwb.core.errors import InputError
from cwb.core.schedule import Schedule, StepSchedule
from cwb.harness import Request, run_one
from cwb.harness.run import run
from cwb.instances import load

MIB = 2**20
ALIKE = ["direct", "direct"]
KINDS = ["all_gather", "reduce_scatter", "all_reduce", "all_to_all", "broadcast", "reduce", "gather", "scatter"]


def make_instance(spec, kind, size=64 * MIB, ranks=None, also=()):
    demand = Demand(collective_named(kind), Fraction(size), ranks=ranks)
    return load(spec).with_changes(demand=demand, also=tuple(also))


def solve_instance(instance, **options):
    done = run(instance, Request("hierarchical", options=options))
    assert done.record.verified, (done.record.message, done.record.violations)
    assert done.record.objective >= done.record.bound * (1 - 1e-9)
    return done


@pytest.mark.parametrize("kind", KINDS)
def test_every_collective_is_verified(kind):
    """All eight collectives are right on boxes with rails, with the algorithms that are found."""
    done = solve_instance(make_instance("rail(boxes=2,per_box=2)", kind, MIB), pieces=1)
    assert done.record.metrics["levels"] == "2 x 2"
    assert done.record.metrics["pieces"] == 1


@pytest.mark.parametrize("kind", KINDS)
def test_three_levels_in_a_process_group(kind):
    """Twelve ranks in levels of 3, 2 and 2, with a root in the middle, on links that lead through others."""
    ranks = (7, 0, 1, 2, 3, 4, 5, 6, 8, 9, 10, 11)
    options = {"levels": [3, 2, 2], "algorithms": ["direct"] * 3, "pieces": 2, "balance": False}
    done = solve_instance(make_instance("torus(4,4)", kind, MIB, ranks), **options)
    assert done.record.metrics["levels"] == "3 x 2 x 2"


@pytest.mark.parametrize(("kind", "most"), [("all_gather", 1.02), ("all_to_all", 1.01), ("broadcast", 1.2)])
def test_near_the_bound_of_boxes(kind, most):
    """With many pieces, what the NICs of two boxes, or of a rank, allow is nearly reached."""
    record = solve_instance(
        make_instance("a100(boxes=2)", kind, 256 * MIB), levels=[8, 2], algorithms=ALIKE, pieces=32
    ).record
    assert record.objective <= most * record.bound


def test_every_rank_sends_over_its_own_nic():
    """A broadcast to another box takes all eight NICs of the root's box, each as much."""
    done = solve_instance(make_instance("a100(boxes=2)", "broadcast"), levels=[8, 2], algorithms=ALIKE, pieces=4)
    topology = load("a100(boxes=2)").network
    slow = [i for i, link in enumerate(topology.links) if link.bandwidth_Bps == 25 * 10**9 and "gpu" in link.source]
    links = done.answer.sends.path_links.tolist()
    used = {links.count(link) for link in slow if links.count(link)}
    assert len(used) == 1
    assert sum(links.count(link) > 0 for link in slow) == 8


def test_switches_that_cannot_store_do_not_copy_in_steps():
    """With NVLink SHARP, whose switches pass on what comes at once, ranks alone send."""
    options = {"levels": [8, 2], "algorithms": ["forestcoll", "direct"], "pieces": 1, "balance": False}
    done = solve_instance(make_instance("dgx_h100(boxes=2,nvls=true)", "all_gather", MIB), **options)
    ranks = set(load("dgx_h100(boxes=2,nvls=true)").network.rank_nodes)
    assert ranks.issuperset(done.answer.sends.source.tolist())


def test_reductions_are_gathers_backwards():
    """On the same links, a reduce-scatter is as fast as the all-gather that it undoes, as a schedule in time."""
    options = {"levels": [4, 2], "algorithms": ["ring", "direct"], "pieces": 8, "balance": False}
    gather, scatter = (
        solve_instance(make_instance("rail(boxes=2,per_box=4)", kind), **options)
        for kind in ("all_gather", "reduce_scatter")
    )
    assert isinstance(gather.answer, StepSchedule)
    assert isinstance(scatter.answer, Schedule)
    assert scatter.record.metrics["backwards"]
    assert scatter.record.objective <= gather.record.objective * (1 + 1e-9)


def test_what_shares_links_with_a_schedule_in_time_waits():
    """A reduce-scatter backwards in time beside an all-gather on the same links: no link is over its capacity."""
    also = [Demand(collective_named("reduce_scatter"), Fraction(MIB))]
    done = solve_instance(make_instance("rail(boxes=3,per_box=3)", "all_gather", MIB, also=also))
    assert done.record.metrics["backwards"] == [False, True]
    assert summary_table(done.record).row_count  # metrics of each collective are printed


def test_blueconnect_is_the_special_case():
    """With the algorithms of its dimensions, sends over all links are those of `blueconnect`, and as many."""
    spec = "RI(3)_FC(4)"
    options = {"levels": [3, 4], "algorithms": ["direct", "direct"], "pieces": 2, "balance": False}
    ours = solve_instance(make_instance(spec, "all_gather"), **options)
    theirs = run(
        load(spec).with_changes(demand=Demand(collective_named("all_gather"), Fraction(64 * MIB), 2)),
        Request("blueconnect"),
    ).record
    assert ours.record.objective <= theirs.metrics["links_time_s"] * (1 + 1e-9)


def test_pieces_may_take_the_levels_in_several_orders():
    """If two levels are about as fast, an all-gather in both orders at once is faster."""
    options = {"levels": [4, 4], "algorithms": ["ring", "ring"]}
    one, both = (
        solve_instance(
            make_instance("torus(4,4)", "all_gather", 256 * MIB), pieces=8, balance=balance, **options
        ).record
        for balance in (False, True)
    )
    assert both.metrics["orders"] == 2
    assert both.objective < 0.7 * one.objective


def test_groups_at_the_same_time():
    """Two collectives of different groups are side by side in one schedule."""
    other = Demand(Collective.ALL_GATHER, Fraction(MIB), ranks=tuple(range(8, 16)))
    done = solve_instance(make_instance("a100(boxes=2)", "all_gather", MIB, tuple(range(8)), [other]), pieces=1)
    assert done.record.metrics["levels"] == ["8", "8"]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"levels": [3, 4]}, "12 ranks; expected 16"),
        ({"algorithms": ["ring"]}, "expected levels too"),
        ({"levels": [8, 2], "algorithms": ["ring"]}, "expected 2 algorithms"),
        ({"levels": [8, 2], "algorithms": ["ring", "swng"]}, "unknown algorithm 'swng'"),
    ],
)
def test_wrong_options_are_refused(options, text):
    """Levels that are not all ranks, and algorithms that do not fit them, are one line each."""
    with pytest.raises(InputError, match=text):
        run_one(make_instance("a100(boxes=2)", "all_gather", MIB), Request("hierarchical", options=options))


def test_an_algorithm_that_does_not_fit_is_said():
    """Recursive doubling on a level of three ranks is no answer."""
    record = run_one(
        make_instance("torus(3,2)", "all_gather", MIB),
        Request("hierarchical", options={"levels": [3, 2], "algorithms": ["rhd", "rhd"]}),
    )
    assert record.status == "unsupported"
    assert record.message == "no all_gather for groups of 3 ranks here (rhd: 3 ranks are not a power of two)"
