"""NVIDIA and AMD machines against the numbers that their papers print."""

from collections import Counter

import pytest
from cwb.core.errors import InputError
from cwb.core.topology import NodeKind
from cwb.exchange.link_rates import nvlink, pcie, xgmi

GB = 10**9

#: Machines whose NVSwitches copy and add.
NVLS = ("dgx_h100", "dgx_h200", "dgx_b200", "nvl72")


def rates(topology):
    """Bandwidth in GB/s for every pair that has a link; there must be no parallel ones."""
    found = {(link.source, link.target): link.bandwidth_Bps / GB for link in topology.links}
    assert len(found) == len(topology.links)
    return found


def latencies_us(topology):
    """Count the links by their bandwidth in GB/s and their latency in microseconds."""
    return Counter((float(link.bandwidth_Bps / GB), float(link.latency_s * 10**6)) for link in topology.links)


#: Machines, with nominal and effective GB/s of links within a box.
RATED = {
    "dgx1": {25: 20, 50: 40},
    "ndv2": {25: 20, 50: 40},
    "dgx2": {125: 125},
    "dgx_a100": {300: 240},
    "rail": {300: 240},
    "pods": {300: 240},
    "three_tier": {300: 240},
    "mixed": {300: 240, 50: 36, 100: 72, 200: 144},
    "dgx_h100": {450: 370.8},
    "h200": {450: 370.8},
    "dgx_b200": {900: 721.8},
    "nvl72": {900: 721.8},
    "mi250": {50: 36, 100: 72, 200: 144},
    "mi250_8": {50: 36, 100: 72, 200: 144},
    "amd": {50: 36, 100: 72, 200: 144},
    "mi300x": {64: 48},
    "mi325x": {64: 48},
    "pcie": {32: 24, 67.2: 10},
    "leonardo": {100: 80},
    "frontier": {50: 36, 100: 72, 200: 144},
}


@pytest.mark.parametrize(("name", "inside"), RATED.items())
def test_effective_rates_are_of_links_within_a_box(name, inside, make):
    """Links within a box have effective rates, and all others the rates that they have anyway."""
    own, effective = make(f"{name}()"), make(f"{name}(rates=effective)")
    assert make(f"{name}(rates=nominal)") == own
    assert effective.nodes == own.nodes
    for one, other in zip(own.links, effective.links, strict=True):
        boxes, rate = {one.source.rpartition(".")[0], one.target.rpartition(".")[0]}, float(one.bandwidth_Bps / GB)
        within = len(boxes) == 1 and min(boxes).startswith("box") and ".switch" not in one.source + one.target
        expected = inside[rate] if within else rate
        assert float(other.bandwidth_Bps / GB) == pytest.approx(expected, rel=1e-12)
        assert (one.source, one.target, one.latency_s) == (other.source, other.target, other.latency_s)


def test_effective_rates_are_those_of_imported_machines(make):
    """Generators and imports of machines have the same rates of NVLinks, xGMI and PCIe."""
    rates_of = {name: {float(r) for r in rates(make(f"{name}(rates=effective)")).values()} for name in RATED}
    for name, count, rate in (
        ("dgx1", 1, nvlink(70)),
        ("dgx_a100", 12, nvlink(80)),
        ("dgx_h100", 18, nvlink(90)),
        ("dgx_b200", 18, nvlink(100)),
        ("mi250", 1, xgmi("gfx90a")),
        ("mi300x", 1, xgmi("gfx942")),
        ("pcie", 1, pcie("16", 16)),
    ):
        assert float(count * rate.effective_Bps / GB) in rates_of[name]


def test_other_rates_and_other_networks_are_refused(make):
    """Rates are nominal or effective, and only machines have them."""
    with pytest.raises(InputError, match="rates: 'fast' is unknown; expected nominal or effective"):
        make("h100(rates=fast)")
    with pytest.raises(InputError, match="unknown argument 'rates'"):
        make("ring(4, rates=effective)")


@pytest.mark.parametrize(
    ("text", "gpus", "links"),
    [("dgx1()", 8, 32), ("ndv2()", 8, 32), ("dgx2()", 16, 32), ("mi250()", 16, 56), ("amd()", 16, 56)],
)
def test_sizes_of_te_ccl(text, gpus, links, make):
    """GPUs and directed links of a chassis are those of TE-CCL's table 2 (which counts DGX2's switch as a GPU)."""
    topology = make(text)
    assert len(topology.ranks) == gpus
    assert len(topology.links) == links


@pytest.mark.parametrize(
    "text", ["dgx1()", "dgx_a100(3)", "dgx_h100(2)", "mi250(2)", "mi250_8(2)", "dgx2(1)", "amd(3)", "nvl72(2)"]
)
def test_is_symmetric(text, make):
    """Every link of these machines has a reverse of the same bandwidth, as ForestColl requires."""
    found = rates(make(text))
    assert all(found[b, a] == rate for (a, b), rate in found.items())


def test_dgx1_has_six_nvlinks_for_each_gpu(make):
    """Every V100 of the hybrid cube mesh uses its six NVLinks of 25 GB/s, two of them at most for one neighbour."""
    found = rates(make("dgx1()"))
    assert set(found.values()) == {25, 50}
    for gpu in make("dgx1()").ranks:
        assert sum(rate for (source, _), rate in found.items() if source == gpu) == 6 * 25
    assert latencies_us(make("dgx1()")) == {(25.0, 0.7): 16, (50.0, 0.7): 16}


def test_ndv2_with_two_chassis(make):
    """Two chassis are joined directly: GPU 0 of each sends to GPU 1 of the other with 12.5 GB/s and 1.3 us."""
    topology = make("ndv2(2)")
    assert len(topology.ranks) == 16
    assert topology.switches == ()
    outside = {pair: rate for pair, rate in rates(topology).items() if pair[0][:4] != pair[1][:4]}
    assert outside == {("box0.gpu0", "box1.gpu1"): 12.5, ("box1.gpu0", "box0.gpu1"): 12.5}
    assert latencies_us(topology) == {(25.0, 0.7): 32, (50.0, 0.7): 32, (12.5, 1.3): 2}


def test_ndv2_of_the_published_code(make):
    """In the variant of the published code, GPU 0 of the first chassis is a switch; the links are the same."""
    fixed, repo = make("ndv2(2)"), make("ndv2(2, variant=repo)")
    assert repo.links == fixed.links
    assert len(repo.ranks) == 15
    assert repo.switches == ("box0.gpu0",)
    assert make("ndv2(4, repo)") == make("ndv2(4)")


def test_ndv2_with_four_chassis(make):
    """Four chassis (figure 14): GPU 0 sends to the switch, the switch to GPU 1; it copies and does not store."""
    topology = make("ndv2(4)")
    assert len(topology.ranks) == 32
    [switch] = (node for node in topology.nodes if node.kind is NodeKind.SWITCH)
    assert (switch.multicast, switch.buffer_bytes) == (True, 0)
    outside = {pair for pair in rates(topology) if switch.name in pair}
    assert outside == {(f"box{i}.gpu0", switch.name) for i in range(4)} | {
        (switch.name, f"box{i}.gpu1") for i in range(4)
    }


def test_dgx2_of_figure_13(make):
    """Two chassis: 125 GB/s and 0.35 us at the NVSwitch; 8 links of 12.5 GB/s and 2.6 us each way, odd to even."""
    topology = make("dgx2(2)")
    assert latencies_us(topology) == {(125.0, 0.35): 64, (12.5, 2.6): 16}
    assert {(a, b) for (a, b), rate in rates(topology).items() if rate == 12.5} == {
        (f"box{box}.gpu{i + 1}", f"box{1 - box}.gpu{i}") for box in (0, 1) for i in range(0, 16, 2)
    }


def test_dgx_a100(make):
    """ForestColl, section 5.3: 300 GB/s to the NVSwitch, 25 GB/s to the InfiniBand of the GPU's parity."""
    topology = make("dgx_a100(2)")
    assert len(topology.ranks) == 16
    mine = {target: rate for (source, target), rate in rates(topology).items() if source == "box1.gpu3"}
    assert mine == {"box1.nvswitch": 300, "ib1": 25}
    assert set(make("dgx_a100(1)").switches) == {"box0.nvswitch"}
    assert set(make("dgx_a100(2, rails=1)").switches) == {"box0.nvswitch", "box1.nvswitch", "ib0"}


def test_dgx_h100(make):
    """A GPU has 450 GB/s to the NVSwitch and 400 Gb/s = 50 GB/s to its own rail."""
    topology = make("dgx_h100(2)")
    mine = {target: rate for (source, target), rate in rates(topology).items() if source == "box0.gpu7"}
    assert mine == {"box0.nvswitch": 450, "ib7": 50}


def test_short_names(make):
    """a100 and h100 are the DGX boxes."""
    assert make("a100(boxes=2)") == make("dgx_a100(2)")
    assert make("h100(2, rails=4)") == make("dgx_h100(2, rails=4)")


def test_nvl72(make):
    """A GPU of a rack has 900 GB/s to the NVLink switch and 400 Gb/s = 50 GB/s to one of four rails."""
    topology = make("nvl72(2)")
    assert (len(topology.ranks), len(topology.switches)) == (144, 2 + 4)
    mine = {target: rate for (source, target), rate in rates(topology).items() if source == "box1.gpu70"}
    assert mine == {"box1.nvswitch": 900, "ib2": 50}
    assert (len(make("nvl72()").ranks), make("nvl72()").switches) == (72, ("box0.nvswitch",))


def test_nvl72_as_it_is_built(make):
    """With 18 planes a GPU has an NVLink of 50 GB/s to each chip, and a chip has the 72 ports of its 7.2 TB/s."""
    topology = make("nvl72(planes=18)")
    assert len(topology.switches) == 18
    found = rates(topology)
    assert len(found) == 2 * 72 * 18
    assert set(found.values()) == {50}
    assert sum(rate for (source, _), rate in found.items() if source == "box0.nvswitch17") == 3600


@pytest.mark.parametrize("name", ["dgx_a100", "mi250", "mi250_8", "mixed", "rail", "pods", "three_tier", *NVLS])
def test_switches_only_pass_on(name, make):
    """Switches of machines and clusters can neither store nor copy, unless copying is asked for."""
    for copies in (False, True):
        nodes = make(f"{name}(2, multicast={str(copies).lower()}{', nvls=false' * (name in NVLS)})").nodes
        switches = [node for node in nodes if node.kind is NodeKind.SWITCH]
        assert {(node.multicast, node.buffer_bytes) for node in switches} == {(copies, 0)}


@pytest.mark.parametrize("name", NVLS)
def test_nvswitches_of_hopper_and_later_add(name, make):
    """NVSwitches of Hopper and later copy and add unless asked not to; switches between boxes do not."""
    for text, adds in (("", True), (", nvls=true", True), (", nvls=false", False)):
        nodes = [node for node in make(f"{name}(2{text})").nodes if node.kind is NodeKind.SWITCH]
        found = {("nvswitch" in node.name, node.multicast, node.reduces) for node in nodes}
        assert found == {(True, adds, adds), (False, False, False)}


@pytest.mark.parametrize(
    ("text", "gpus", "switches", "links"),
    [
        ("a100(1024)", 8192, 1024 + 2, 4 * 8192),
        ("h100(1024)", 8192, 1024 + 8, 4 * 8192),
        ("mi250(1024)", 16384, 1, 1024 * (56 + 32)),
        ("mi250_8(1024)", 8192, 1, 1024 * (22 + 16)),
        ("nvl72(128)", 9216, 128 + 4, 4 * 9216),
    ],
)
def test_a_thousand_boxes(text, gpus, switches, links, make):
    """Machines of a thousand boxes have the number of nodes and links that multiplication gives."""
    topology = make(text)
    assert (len(topology.ranks), len(topology.switches), len(topology.links)) == (gpus, switches, links)


def test_mi250_has_seven_infinity_fabric_links_for_each_gpu(make):
    """ForestColl, section 5.2: seven links of 50 GB/s to three or four other GPUs, and 16 GB/s to InfiniBand."""
    topology = make("mi250(2)")
    found = rates(topology)
    for gpu in topology.ranks:
        inside = [rate for (source, target), rate in found.items() if source == gpu and target != "ib"]
        assert sum(inside) == 7 * 50
        assert len(inside) in (3, 4)
        assert found[gpu, "ib"] == 16


def test_mi250_8_is_the_left_half(make):
    """The 8+8 setting is mi250 without GPUs 8 to 15 and their links."""
    whole, half = make("mi250(2)"), make("mi250_8()")
    assert len(half.ranks) == 16
    kept = {*half.ranks, "ib"}
    assert set(half.links) == {link for link in whole.links if {link.source, link.target} <= kept}
    assert {gpu[-1] for gpu in half.ranks} == set("01234567")


def test_amd_of_figure_15(make):
    """Two chassis: links of 200, 100 and 50 GB/s between GPUs, 25 GB/s at every switch; pairs share a small switch."""
    topology = make("amd(2)")
    assert Counter(rates(topology).values()) == {200: 32, 100: 16, 50: 64, 25: 96}
    assert len(topology.switches) == 17
    assert {b for a, b in rates(topology) if a == "box1.switch3"} == {"box1.gpu6", "box1.gpu7", "network"}
    assert all(node.multicast and node.buffer_bytes == 0 for node in topology.nodes if node.kind is NodeKind.SWITCH)


def test_amd_of_the_published_code(make):
    """Counted one place too low, GPU 15 is a switch with an uplink and small switch 7 a GPU without one; small switch 0
    has links of 50 GB/s."""
    topology = make("amd(2, variant=repo)")
    assert len(topology.ranks) == 32
    assert {"box0.switch7", "box1.switch7"} <= set(topology.ranks)
    assert {"box0.gpu15", "box1.gpu15", "network"} <= set(topology.switches)
    table = rates(topology)
    assert {b for a, b in table if a == "network"} == {
        f"box{box}.{name}" for box in (0, 1) for name in ("gpu15", *(f"switch{i}" for i in range(7)))
    }
    assert table["box0.gpu0", "box0.switch0"] == table["box0.switch0", "box0.gpu1"] == 50
    assert table["box0.gpu2", "box0.switch1"] == table["network", "box0.gpu15"] == 25
    assert len(topology.links) == len(make("amd(2)").links)


def test_gpu0_switch_is_the_published_ndv2(make):
    """GPU 0 as a switch is the same network as variant=repo, and needs two chassis."""
    assert make("ndv2(2, gpu0_switch=true)") == make("ndv2(2, variant=repo)")
    assert make("ndv2(4, gpu0_switch=true)") == make("ndv2(4)")


@pytest.mark.parametrize(("text", "inside", "outside"), [("internal1(2)", 16, 16), ("internal2(4)", 8, 16)])
def test_internal_topologies_of_table_2(text, inside, outside, make):
    """Chassis have 8 and 2 links among 4 and 2 GPUs, of 0.6 us; each GPU has one to and one from the switch, of 0.75
    us."""
    links = make(text).links
    assert sum(link.latency_s * 10**7 == 6 for link in links) == inside
    assert sum(link.latency_s * 10**8 == 75 for link in links) == outside


def test_the_mesh_of_the_published_code_joins_its_rows(make):
    """A 3x3 mesh has links 2-3 and 5-6 besides those of a mesh."""
    extra = set(make("mesh(3, 3, joined_rows=true)").links) - set(make("mesh(3, 3)").links)
    assert {(link.source, link.target) for link in extra} == {("2", "3"), ("3", "2"), ("5", "6"), ("6", "5")}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ndv2(1, gpu0_switch=true)", "chassis: 1 is out of range; expected an integer from 2"),
        ("amd(1, repo)", "chassis: 1 is out of range; expected an integer from 2"),
        ("amd(2, other)", "variant: 'other' is unknown; expected fixed or repo"),
        ("internal1(0)", "chassis: 0 is out of range"),
        ("mesh(2, 2, 2, joined_rows=true)", "sizes: 3 dimensions; joined rows need two"),
        ("ndv2(0)", "chassis: 0 is out of range"),
        ("ndv2(1, repo)", "chassis: 1 is out of range; expected an integer from 2"),
        ("ndv2(2, other)", "variant: 'other' is unknown; expected fixed or repo"),
        ("dgx2(3)", "chassis: 3 is out of range; expected an integer from 1 to 2"),
        ("dgx_a100(2, rails=9)", "rails: 9 is out of range; expected an integer from 1 to 8"),
        ("dgx_a100(0)", "boxes: 0 is out of range"),
        ("mi250(0)", "boxes: 0 is out of range"),
        ("nvl72(0)", "racks: 0 is out of range"),
        ("nvl72(1, 73)", "gpus: 73 is out of range; expected an integer from 2 to 72"),
        ("nvl72(1, planes=19)", "planes: 19 is out of range; expected an integer from 1 to 18"),
        ("nvl72(2, gpus=3)", "rails: 4 is out of range; expected an integer from 1 to 3"),
        ("amd(0)", "chassis: 0 is out of range"),
    ],
)
def test_refuses(text, message, make):
    """Numbers of boxes and variants that are not defined are refused."""
    with pytest.raises(InputError, match=message):
        make(text)
