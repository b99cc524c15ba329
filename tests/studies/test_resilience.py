"""Single failures: what they cost is what solving again without them says."""

from __future__ import annotations

from fractions import Fraction
from itertools import chain, combinations

import cwb
import pytest
from cwb.core.budget import Budget
from cwb.core.errors import Unsupported
from cwb.core.option_names import FAILURES as KINDS
from cwb.instances.edits import Edit, edit_instance
from cwb.studies.resilience import failures, optimum_of
from hypothesis import given
from hypothesis import strategies as st


def make_instance(spec, collective="all_gather"):
    return cwb.load(spec, collective=collective, size="1 GiB")


def find_failures(spec, collective="all_gather", kinds=KINDS, slow=Fraction(0)):
    return list(failures(make_instance(spec, collective), kinds, slow, Budget()))


def test_every_failure_is_there_once():
    """All links, ranks and switches of a machine appear, links by classes."""
    network = make_instance("dgx_a100(boxes=2)").network
    by_kind = {
        kind: [name for f in find_failures("dgx_a100(boxes=2)") if f.kind == kind for name in f.names] for kind in KINDS
    }
    pairs = {frozenset((link.source, link.target)) for link in network.links}
    assert {frozenset(name.split(" - ")) for name in by_kind["link"]} == pairs
    assert len(by_kind["link"]) == len(pairs)
    assert by_kind["rank"] == list(network.ranks)
    assert len(by_kind["switch"]) == len(network.nodes) - len(network.ranks)


@pytest.mark.parametrize("name", ["box0.gpu0 - box0.nvswitch", "box1.gpu3 - ib1"])
def test_links_of_a_class_cost_the_same(name):
    """Every link of a class costs as much as the one that stands for the class."""
    whole = make_instance("dgx_a100(boxes=2)")
    failure = next(f for f in find_failures("dgx_a100(boxes=2)", kinds=["link"]) if name in f.names)
    alone = optimum_of(edit_instance(whole, [Edit("--without-link", name.replace(" - ", ":"))]))
    assert alone.time_s == failure.optimum.time_s


def test_forestcoll_attains_what_is_left():
    """The flow time after the worst failure is that of ForestColl's trees on the changed network."""
    worst = max(find_failures("mi250(boxes=2)", kinds=["link"]), key=lambda f: f.optimum.time_s)
    changed = edit_instance(
        make_instance("mi250(boxes=2)"), [Edit("--without-link", worst.names[0].replace(" - ", ":"))]
    )
    record = cwb.solve(changed, "forestcoll")
    assert record.status == "optimal"
    assert record.objective == pytest.approx(float(worst.optimum.time_s), rel=1e-12)


def test_slow_links_cost_less_than_lost_ones():
    """A link of half its bandwidth costs something, and no more than a lost one."""
    whole = optimum_of(make_instance("ring(5)")).time_s
    (slow,), (lost,) = (find_failures("ring(5)", kinds=["link"], slow=slow) for slow in (Fraction(1, 2), Fraction(0)))
    assert whole < slow.optimum.time_s <= lost.optimum.time_s


def test_ranks_that_are_cut_off_are_named():
    """If a failure cuts off ranks, there is no optimum, and a reason is given."""
    (end, *_rest) = (f for f in find_failures("line(3)", kinds=["link"]))
    assert end.optimum is None
    assert end.reason


def test_what_is_not_served_is_said():
    """A collective of some ranks alone is refused."""
    instance = cwb.load("ring(4)", collective="all_gather", size="1 GiB")
    part = instance.with_changes(demand=type(instance.demand)(instance.demand.collective, Fraction(8), 1, (0, 1)))
    with pytest.raises(Unsupported):
        list(failures(part, KINDS, Fraction(0), Budget()))


def cut_s(network, collective, size_bytes, slow=Fraction(1), pair=frozenset()):
    """The longest time that any set of ranks takes to get its data out, by trying all; None if some cannot."""
    names = network.ranks
    sets = chain.from_iterable(combinations(names, r) for r in range(1, len(names)))
    longest = Fraction(0)
    for inside in sets:
        if collective == "broadcast" and names[0] not in inside:
            continue
        share = Fraction(len(inside), len(names)) if collective == "all_gather" else Fraction(1)
        rate = sum(
            (slow if {link.source, link.target} == pair else 1) * link.bandwidth_Bps
            for link in network.links
            if link.source in inside and link.target not in inside
        )
        if not rate:
            return None
        longest = max(longest, share * size_bytes / rate)
    return longest


@pytest.mark.parametrize(
    ("name", "collective", "slow", "seconds"),
    [
        ("asym", "broadcast", "1/2", {"a - b": "1/5"}),
        ("asym", "all_gather", "1/2", {"a - b": "1"}),
        ("parallel", "all_gather", "1/3", {"n0 - n2": "1/4", "n1 - n2": "1/7", "n0 - n1": "1/8"}),
    ],
)
def test_a_slow_link_keeps_a_part_of_its_own_rate(reference, name, collective, slow, seconds):
    """The two directions and parallel links of a pair keep the same part of different rates."""
    instance = cwb.load(reference / "defects3" / f"resilience_{name}.json", collective=collective, size="1 GB")
    found = {f.names[0]: f.optimum for f in failures(instance, ["link"], Fraction(slow), Budget())}
    wanted = {pair: Fraction(time) for pair, time in seconds.items()}
    assert {pair: optimum.time_s for pair, optimum in found.items()} == wanted
    assert {pair: optimum.bound_s for pair, optimum in found.items()} == wanted


@st.composite
def networks(draw):
    """Three or four ranks with up to two links a direction, of different rates."""
    names = "abcd"[: draw(st.integers(3, 4))]
    links = []
    for a, b in combinations(names, 2):
        for source, target in ((a, b), (b, a)):
            for rate in draw(st.lists(st.sampled_from([1, 2, 3, 10]), max_size=2)):
                links.append({"source": source, "target": target, "bandwidth": f"{rate} GB/s"})
    return {"schema": "cwb-instance/1", "network": {"nodes": [{"name": name} for name in names], "links": links}}


@given(networks(), st.sampled_from(["broadcast", "all_gather"]), st.sampled_from(["0", "1/2", "2/7"]))
def test_failures_cost_what_cuts_say(network, collective, slow):
    """On random networks, with one-way and parallel links, every slow or lost link costs what trying all cuts says."""
    if not network["network"]["links"]:
        return
    instance = cwb.load(network, collective=collective, size="1 GB")
    slow = Fraction(slow)
    for failure in failures(instance, ["link"], slow, Budget()):
        for name in failure.names:
            pair = frozenset(name.split(" - "))
            wanted = cut_s(instance.network, collective, Fraction(10**9), slow, pair)
            assert failure.is_cut_off == (wanted is None)
            assert wanted is None or failure.optimum.time_s == failure.optimum.bound_s == wanted


def test_the_only_link_cuts_off():
    """Without the only link of a network nothing can be reached, which is no error."""
    only = {"source": "a", "target": "b", "bandwidth": "1 GB/s"}
    network = {"schema": "cwb-instance/1", "network": {"nodes": [{"name": "a"}, {"name": "b"}], "links": [only]}}
    (failure,) = failures(cwb.load(network, collective="broadcast", size="1 GB"), ["link"], Fraction(0), Budget())
    assert failure.is_cut_off
    assert failure.optimum is None


def test_what_trees_do_not_serve_is_not_called_cut_off():
    """A switch that sends at another rate than it receives is not known; ranks that no data reach are cut off."""
    rates = {"as": 2, "sb": 2, "bs": 1, "sa": 1, "bc": 1, "cb": 1}
    links = [{"source": a, "target": b, "bandwidth": f"{rate} GB/s"} for (a, b), rate in rates.items()]
    nodes = [{"name": "a"}, {"name": "b"}, {"name": "c"}, {"name": "s", "kind": "switch"}]
    network = {"schema": "cwb-instance/1", "network": {"nodes": nodes, "links": links}}
    found = {
        f.names[0]: f
        for f in failures(cwb.load(network, collective="all_gather", size="1 GB"), KINDS, Fraction(1, 2), Budget())
    }
    assert {name for name, f in found.items() if f.optimum is None and not f.is_cut_off} == {"a - s", "b - s", "a", "b"}
    assert found["s"].is_cut_off


def test_failures_of_an_exchange():
    """Of a ring of four, a direction of a link carries two messages; without a link, one of the middle link four.

    Where the middle of a line is lost, ranks are cut off.
    """
    spec, message_s = 'ring(4,bandwidth="1 GB/s")', Fraction(2**30, 4 * 10**9)
    assert optimum_of(make_instance(spec, "all_to_all")).time_s == 2 * message_s
    (link,) = find_failures(spec, "all_to_all", ["link"])
    assert link.optimum.time_s == 4 * message_s
    line = edit_instance(make_instance("ring(3)", "all_to_all"), [Edit("--without-link", "0:2")])
    lost = list(failures(line, ["rank"], Fraction(0), Budget()))
    assert [failure.is_cut_off for failure in lost] == [False, True, False]
