"""Training on networks: where the seconds of collectives come from, and what is refused."""

from __future__ import annotations

from fractions import Fraction

import cwb
import numpy as np
import pytest
from cwb.core.collective import Collective
from cwb.core.errors import InputError, Unsupported
from cwb.core.fabric import Block, Dimension, Fabric
from cwb.core.training import TrainingOptions
from cwb.core.workload import Communication
from cwb.studies.collective_times import TRIED, CollectiveTimes, TimedCollective, groups_of
from cwb.studies.training import measures, train


def ask(workload=None, group=(), method=(), **more):
    """Make the options of a training iteration."""
    return TrainingOptions.model_construct(workload=workload, group=dict(group), method=dict(method), **more)


@pytest.mark.parametrize("name", ["gpt-3-4d", "msft-1t-3d", "3d-torus"])
@pytest.mark.parametrize("design", ["libra", "libra-equal"])
def test_the_iteration_of_libra(name, design):
    """The simulated iteration of a designed network is the one that LIBRA's record has, to the last digit."""
    found = measures(train(cwb.load(name), ask(design=design, streams="unlimited")))
    assert found["iteration_s"] == cwb.solve(name, design).metrics["iteration_time_s"]
    assert found["lower_bound_s"] == found["iteration_s"]


def test_seconds_are_those_of_verified_schedules():
    """A collective takes what the same run of the method alone says, on the dimensions of its group."""
    rates = [Fraction(10**11), Fraction(5 * 10**10)]
    asked = ask("gpt-3", {"tp": "4", "dp": "8"}, {"dp": "themis", "tp": "ring"}, bandwidth=rates)
    made = train(cwb.load("RI(4)_SW(8)"), asked, chunks=8)
    times = {each.communication.group: each for each in made.collectives if each.method in ("themis", "ring")}
    dp = times["dp"].communication
    alone = cwb.load("SW(8)").with_changes(
        demand=cwb.core.collective.Demand(dp.collective, dp.size_bytes, 8),
    )
    record = cwb.solve(alone, "themis", bandwidth=["50 GB/s"])
    assert float(times["dp"].seconds) == record.objective
    assert all(each.verified for each in made.collectives)
    assert times["tp"].ranks == 4


def test_groups_of_links_run_together():
    """On links the groups of a name are scheduled at the same time: rings of rows beside one another, then of
    columns."""
    methods = {"tp": "ring", "dp": "ring"}
    request = ask("gpt-3", {"tp": "4", "dp": "4"}, methods)
    made = train(cwb.load("torus(4,4)"), request)
    assert {each.ranks for each in made.collectives} == {4}
    assert all(each.verified for each in made.collectives)


@pytest.mark.parametrize(
    ("method", "machine", "per_box"),
    [
        ("nccl", "dgx_h100(boxes=2)", "8"),
        ("forestcoll", "dgx_h100(boxes=2)", "8"),
        ("auto", "rail(boxes=2, per_box=2)", "2"),
        pytest.param("auto", "dgx_h100(boxes=2)", "8", marks=pytest.mark.nightly),
    ],
)
def test_groups_of_a_method_with_one_collective(method, machine, per_box):
    """A method of one collective schedules each group's alone; together they take at least what all
    of them put on a link, here the NICs, and no less than what the ranks must send."""
    network, groups = cwb.load(machine), {"tp": per_box, "dp": "2"}
    made = train(network, ask("gpt-3", groups, {"all": method}))
    ideal = train(network, ask("gpt-3", groups, {"all": "ideal"}))
    least = {each.communication: each.seconds for each in ideal.collectives}
    for each in made.collectives:
        assert each.verified is None or (method == "auto" and each.verified)  # an estimate, if scheduled alone
        assert each.seconds >= least[each.communication] * Fraction(999, 1000)
        assert float(each.seconds) >= each.busy_s.max()
    assert method != "auto" or {each.method for each in made.collectives} <= set(TRIED)


def test_the_fastest_of_several_is_taken():
    """``auto`` takes for each collective a time that none of its methods beats, and says when none has one."""
    posed = {"workload": "gpt-3", "group": {"tp": "4", "dp": "2"}}
    best = train(cwb.load("torus(2,4)"), ask(**posed, method={"all": "auto"})).collectives
    for name in ("ring", "direct"):
        alone = train(cwb.load("torus(2,4)"), ask(**posed, method={"all": name})).collectives
        for one, other in zip(best, alone, strict=True):
            assert one.communication == other.communication
            assert one.seconds <= other.seconds


def test_collectives_of_different_groups_share_links():
    """Beside another collective each is slowed down by the fuller of its links; alone, or on other links, it is not."""
    times = CollectiveTimes(cwb.load("ring(4)"), Fabric(()), {}, {})
    a, b, c = (Communication(Collective.ALL_REDUCE, Fraction(1), group) for group in "abc")
    for each, busy in ((a, [1, 4, 0]), (b, [0, 2, 0]), (c, [0, 0, 4])):
        times.results[each] = TimedCollective(each, 2, "ring", Fraction(4), True, busy_s=np.array(busy, dtype=float))
    assert times.slowdowns([a, b, c]) == [Fraction(3, 2), Fraction(3, 2), 1]
    assert times.slowdowns([b]) == times.slowdowns([b, c])[:1] == [1]


def test_streams_of_groups_take_no_less_than_their_links():
    """With a stream for each group, gradients beside activations on the same ring take longer than if alone."""
    asked = {"workload": "turing-nlg", "group": {"tp": "2", "dp": "2"}, "method": {"all": "ring"}, "loop": "ddp"}
    sizes = [Fraction(10**6)]
    alone = train(cwb.load("ring(4)"), ask(**asked, bucket=sizes))
    shared = train(cwb.load("ring(4)"), ask(**asked, bucket=sizes, streams="group"))
    assert shared.iteration.seconds >= max(shared.iteration.bounds_s)
    assert sum(t.seconds for t in shared.iteration.tasks) >= sum(t.seconds for t in alone.iteration.tasks)


def test_groups_tile_the_ranks():
    """Groups of a span have each rank once, in the order of their coordinates; a part of a dimension is refused."""
    shape = Fabric(tuple(Dimension(Block.SWITCH, size, "") for size in (2, 3, 2)))
    found = groups_of(shape, (2, 1, 2))
    assert found == [(0, 1, 6, 7), (2, 3, 8, 9), (4, 5, 10, 11)]
    assert groups_of(shape, (1, 1, 1)) == [(rank,) for rank in range(12)]
    with pytest.raises(InputError, match="spans a part of a dimension"):
        groups_of(shape, (1, 1, 4))


def test_lines_and_ideals():
    """A latency and an algbw give a line; the ideal of a ring of 4 is what its ranks send; the best bucket is taken."""
    sizes = [Fraction(10**6), Fraction(10**9)]
    line = ask("resnet-50-layers", method={"all": "1 ms + 1 GB/s"}, bucket=sizes, loop="ddp")
    made = train(cwb.load("ring(4)"), line)
    assert all(each.seconds == Fraction(1, 1000) + each.communication.size_bytes / 10**9 for each in made.collectives)
    assert min(made.tried_s.values()) == made.iteration.seconds
    assert len(made.tried_s) == 2
    ideal = train(cwb.load("ring(4)"), ask("resnet-50", method={"all": "ideal"}))
    (only,) = ideal.collectives
    assert only.seconds == only.communication.size_bytes * Fraction(3, 2) / (100 * 10**9)


def test_the_flow_time_of_a_method_without_sends():
    """An all-to-all by the rate of its flow takes that time; links have no busy seconds, since nothing is sent."""
    methods = {"all": "ideal", "all_to_all": "all-to-all-mcf"}
    made = train(cwb.load("ring(4)"), ask("dlrm", method=methods))
    timed = [each for each in made.collectives if each.method == "all-to-all-mcf"]
    assert timed
    assert all(each.busy_s is None for each in timed)
    for each in timed:
        size = f"{each.communication.size_bytes} B"
        record = cwb.solve("ring(4)", "all-to-all-mcf", collective="all_to_all", size=size)
        assert float(each.seconds) == pytest.approx(record.objective)


def test_the_last_stage_of_a_pipeline_sends_nothing_on():
    """GPT-3 in stages has as many as its file says, and messages are broadcasts to one rank."""
    request = ask("gpt-3-pipeline", method={"all": "ideal", "pp": "direct"}, loop="ddp")
    made = train(cwb.load("ring(64)"), request)
    assert made.iteration.stages == 8
    message = Communication(Collective.POINT_TO_POINT, Fraction(8 * 2048 * 12288 * 2), "pp")
    (sent,) = [each for each in made.collectives if each.communication == message]
    assert sent.verified


REFUSED = [
    (ask(), "--workload: missing, and the instance has no workload"),
    (ask("nope"), "--workload: unknown workload 'nope'"),
    (ask("gpt-3", {"tp": "5"}), "--group: tp=5 is 5 ranks; the network has 16"),
    (ask("gpt-3", {"tp": "4x1", "dp": "4"}), "--group: tp has a span, but links have no dimensions"),
    (ask("gpt-3", {"tp": "no"}), "--group: tp: 'no' is not a degree"),
    (ask("gpt-3", {"dp": "all"}), "--group: layer 'Q1' names group 'tp'; the groups are dp"),
    (ask("gpt-3"), "--method: nothing for the all_reduce of the group tp"),
    (ask("gpt-3", method={"pp": "ring"}), "--method: 'pp' is unknown; expected a group (tp, dp)"),
    (ask("gpt-3", method={"all": "rnig"}), "unknown model 'rnig'"),
    (ask("gpt-3", method={"all": "1 s + 2"}), "--method: '2' has no unit"),
    (ask("gpt-3", method={"all": "analytical"}), "--method: analytical is for networks of dimensions"),
    (ask("gpt-3", method={"all": "ring"}, options={"bfb": {}}), "-O: options of 'bfb', which is neither"),
    (ask("gpt-3", bandwidth=[Fraction(1)]), "--bandwidth: given for links"),
    (ask("gpt-3", design="libra"), "--design: given for links"),
]


@pytest.mark.parametrize(("request_", "reason"), REFUSED, ids=[reason[:40] for _, reason in REFUSED])
def test_bad_input(request_, reason):
    """An error is reported in one line with its place."""
    with pytest.raises(InputError) as caught:
        train(cwb.load("torus(4,4)"), request_)
    assert reason in str(caught.value)


def test_what_a_method_does_not_take():
    """A method that does not define a collective, and a design without bandwidths, are named."""
    with pytest.raises(Unsupported, match="bfb: all_to_all of 4 MiB, 16 ranks: bfb: it does not define all_to_all"):
        train(cwb.load("torus(4,4)"), ask("dlrm", method={"all": "bfb"}))
    with pytest.raises(InputError, match="--bandwidth: missing, and the instance is a design without bandwidths"):
        train(cwb.load("gpt-3-4d"), ask())
    with pytest.raises(InputError, match="expected one of them"):
        train(cwb.load("gpt-3-4d"), ask(design="libra", bandwidth=[Fraction(1)] * 4))


def test_keyword_arguments():
    """``cwb.train`` gives what the command prints as JSON, and speaks of keyword arguments."""
    found = cwb.train("ring(4)", workload="resnet-50-layers", method={"all": "1 ms + 1 GB/s"}, bucket=["1 MB", "1 GB"])
    assert (found["loop"], len(found["tried_s"])) == ("ddp", 2)
    with pytest.raises(InputError, match="method: nothing for the all_reduce"):
        cwb.train("ring(4)", workload="resnet-50")
    with pytest.raises(InputError, match=r"bucket\[0\].*'1' has no unit"):
        cwb.train("ring(4)", workload="resnet-50", bucket=["1"])
    with pytest.raises(InputError, match="bukcet: unknown"):
        cwb.train("ring(4)", workload="resnet-50", bukcet=["1 MB"])
