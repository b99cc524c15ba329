"""Rails, pods, three tiers and mixed boxes: counts and bandwidths worked out by hand."""

from collections import Counter
from fractions import Fraction

import pytest
from cwb.core.errors import InputError

GB = 10**9

#: One of each, also with NICs missing and with shares that are no integers.
ALL = [
    "rail(5, 3)",
    "rail(5, 3, missing_nics=4)",
    "pods(3, 2, 4, spines=5, oversubscription=3)",
    "pods(3, 2, 4, missing_nics=5)",
    "three_tier()",
    "three_tier(3, 2, 1, 2, aggregations=3, cores=7, oversubscription=5, core_oversubscription=2, missing_nics=1)",
    "mixed(3, 2)",
]


def rates_GBps(topology, ours, theirs):
    """Sum the bandwidth of every node's links in GB/s by its own end of the link; ``theirs`` counts the other end."""
    found = Counter({node.name: Fraction(0) for node in topology.nodes})
    for link in topology.links:
        assert getattr(link, ours) != getattr(link, theirs)
        found[getattr(link, ours)] += link.bandwidth_Bps / GB
    return found


def out_GBps(topology):
    """Sum the bandwidth of the links that leave every node."""
    return rates_GBps(topology, "source", "target")


@pytest.mark.parametrize("text", ALL)
def test_what_comes_in_can_go_out(text, make):
    """Every node sends as much as it receives, and every link has a reverse of the same bandwidth and latency."""
    topology = make(text)
    assert out_GBps(topology) == rates_GBps(topology, "target", "source")
    there = Counter((link.source, link.target, link.bandwidth_Bps, link.latency_s) for link in topology.links)
    assert there == Counter((link.target, link.source, link.bandwidth_Bps, link.latency_s) for link in topology.links)
    assert set(there.values()) == {1}


@pytest.mark.parametrize(
    ("text", "ranks", "links", "rates"),
    [
        ("rail(32, 8)", 256, 4 * 256, {325: 256, 8 * 300: 32, 32 * 25: 8}),
        ("rail(8, 8, missing_nics=1)", 64, 4 * 64 - 2, {325: 63, 300: 1, 2400: 8, 200: 7, 175: 1}),
        ("pods(4, 4, oversubscription=1)", 128, 4 * 128 + 32, {325: 128, 2400: 16, 800 + 800: 4, 800: 4}),
        ("pods(4, 4)", 128, 4 * 128 + 32, {325: 128, 2400: 16, 800 + 400: 4, 400: 4}),
        ("pods(4, 4, missing_nics=1)", 128, 542, {325: 127, 300: 1, 2400: 16, 1200: 3, 1175: 1, 400: 4}),
        ("pods(8, 4, oversubscription=4)", 256, 4 * 256 + 64, {325: 256, 2400: 32, 800 + 200: 8, 400: 4}),
        ("pods(16, 4)", 512, 4 * 512 + 128, {325: 512, 2400: 64, 800 + 400: 16, 1600: 4}),
        ("three_tier()", 256, 4 * 256 + 256, {325: 256, 1200: 64, 400 + 400: 32, 1600: 4}),
        ("three_tier(oversubscription=2)", 256, 1280, {325: 256, 1200: 64, 400 + 200: 16, 200 + 200: 16, 800: 4}),
        ("mixed(16, 8)", 256, 4 * 128 + 88 * 8, {325: 128, 366: 128, 2400: 16, 128 * 25 + 128 * 16: 1}),
    ],
)
def test_counts_and_bandwidths(text, ranks, links, rates, make):
    """Numbers of GPUs and links, and how many nodes send how many GB/s, are those that one works out by hand."""
    topology = make(text)
    assert len(topology.ranks) == ranks
    assert len(topology.links) == links
    assert Counter(out_GBps(topology).values()) == rates


def test_a_rail_for_each_position(make):
    """GPU i of every box is on rail i; the boxes with a missing NIC are the first ones, and lack that of GPU 0."""
    topology = make("rail(4, 3, missing_nics=2)")
    ports = {(link.source, link.target) for link in topology.links if link.target.startswith("ib")}
    assert ports == {
        (f"box{box}.gpu{index}", f"ib{index}") for box in range(4) for index in range(3) if index or box >= 2
    }


def test_a_leaf_for_each_pod(make):
    """Boxes 2 and 3 of pods of two are on the second leaf, which shares its uplinks evenly among all spines."""
    topology = make("pods(2, 2, 2, spines=3, oversubscription=2)")
    out = {link.target: link.bandwidth_Bps / GB for link in topology.links if link.source == "leaf1"}
    below = {f"box{box}.gpu{index}": 25 for box in (2, 3) for index in (0, 1)}
    assert out == below | {f"spine{index}": Fraction(4 * 25, 2 * 3) for index in range(3)}


def test_three_tiers(make):
    """A leaf is on the aggregation switches of its pod alone, and these are on all cores with what they were given."""
    topology = make("three_tier(2, 2, 3, 2, 2, 5, oversubscription=3, core_oversubscription=2)")
    out = {}
    for link in topology.links:
        out.setdefault(link.source, {})[link.target] = link.bandwidth_Bps / GB
    up = Fraction(3 * 2 * 25, 3 * 2)
    boxes = {f"box{box}.gpu{index}": 25 for box in (6, 7, 8) for index in (0, 1)}
    assert out["leaf1.0"] == boxes | {"aggregation1.0": up, "aggregation1.1": up}
    cores = {f"core{index}": 2 * up / (2 * 5) for index in range(5)}
    assert out["aggregation1.1"] == {"leaf1.0": up, "leaf1.1": up} | cores


def test_mixed_boxes_are_those_of_the_machines(make):
    """The A100 boxes come first; apart from the one InfiniBand switch, the boxes are those of the two machines."""
    mixed = make("mixed(2, 2)")
    expected = set(make("a100(2, rails=1)").links)
    expected = {(a.replace("ib0", "ib"), b.replace("ib0", "ib"), rate) for a, b, rate in ends(expected)}
    shift = {"box0": "box2", "box1": "box3", "ib": "ib"}
    for a, b, rate in ends(make("mi250(2)").links):
        expected.add((shift_box(a, shift), shift_box(b, shift), rate))
    assert set(ends(mixed.links)) == expected
    assert mixed.ranks[15:17] == ("box1.gpu7", "box2.gpu0")


def ends(links):
    """Ends and the bandwidth of every link."""
    return [(link.source, link.target, link.bandwidth_Bps) for link in links]


def shift_box(name, shift):
    """Rename the box of a node."""
    box, dot, rest = name.partition(".")
    return shift[box] + dot + rest


def test_bandwidths_are_those_given(make):
    """NVLink and NIC bandwidth and latency can be set, and the uplinks follow the NICs."""
    topology = make('pods(2, 1, 2, spines=1, oversubscription=1, nvlink="450 GB/s", nic="400 Gb/s", latency="1 us")')
    assert {link.bandwidth_Bps / GB for link in topology.links} == {450, 50, 100}
    assert {link.latency_s for link in topology.links} == {Fraction(1, 10**6)}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("rail(1)", "boxes: 1 is out of range; expected an integer from 2 to 1,000,000"),
        ("rail(2, 1)", "per_box: 1 is out of range; expected an integer from 2 to 1,000,000"),
        ("rail(4, 8, 4)", "missing_nics: 4 is out of range; expected an integer from 0 to 3"),
        ("rail(4, 8, -1)", "missing_nics: -1 is out of range; expected an integer from 0 to 3"),
        (
            'rail(nic="25")',
            "nic: '25' has no unit; expected a bandwidth with its unit, such as '50 GB/s'",
        ),
        (
            'pods(nvlink="0 GB/s")',
            "nvlink: '0 GB/s' must be greater than zero; expected a bandwidth with its unit, such as '50 GB/s'",
        ),
        ("pods(1)", "pods: 1 is out of range; expected an integer from 2 to 1,000,000"),
        ("pods(2, 0)", "boxes: 0 is out of range; expected an integer from 1 to 1,000,000"),
        ("pods(spines=0)", "spines: 0 is out of range; expected an integer from 1 to 1,000,000"),
        ("pods(oversubscription=0)", "oversubscription: 0 is out of range; expected an integer from 1 to 1,000,000"),
        ("pods(oversubscription=1.5)", "oversubscription: 1.5 is no integer; expected an integer, such as 8"),
        ("pods(2, 2, missing_nics=4)", "missing_nics: 4 is out of range; expected an integer from 0 to 3"),
        ("three_tier(1)", "pods: 1 is out of range; expected an integer from 2 to 1,000,000"),
        ("three_tier(per_box=1)", "per_box: 1 is out of range; expected an integer from 2 to 1,000,000"),
        ("three_tier(cores=0)", "cores: 0 is out of range; expected an integer from 1 to 1,000,000"),
        ("three_tier(2, 1, 1, missing_nics=2)", "missing_nics: 2 is out of range; expected an integer from 0 to 1"),
        ("mixed(0)", "a100: 0 is out of range; expected an integer from 1 to 1,000,000"),
        ("mixed(1, 0)", "mi250: 0 is out of range; expected an integer from 1 to 1,000,000"),
        (
            "rail(1000000, 8)",
            "9,000,008 nodes and 32,000,000 links are too many; expected at most 2,000,000 and 20,000,000",
        ),
    ],
)
def test_refuses(text, message, make):
    """An argument out of range is refused in one line with its name and the expectation."""
    with pytest.raises(InputError) as caught:
        make(text)
    assert str(caught.value) == message
