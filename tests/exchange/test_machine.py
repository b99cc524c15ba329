"""Boxes, and networks of several of them: what stays, which NICs are used, how they are joined."""

from __future__ import annotations

from fractions import Fraction

import pytest
from cwb.core.errors import InputError
from cwb.exchange.box import Box, Cable, Layout, Role, Times, Wiring, both, likely_wiring, wire_gpus
from cwb.exchange.machine import machine_instance, network_of

GB = 10**9


def ends(network):
    """Links by their ends, with the rate as it is written."""
    return {(link["source"], link["target"]): link["bandwidth"] for link in network["links"]}


def tree(*, linked):
    """Four GPUs on two PCIe switches of one CPU, with a NIC on each switch and a slow one on the CPU."""
    cables = [c for i in range(4) for c in both(f"gpu{i}", f"pci{i // 2}", Fraction(24 * GB), pcie=True)]
    cables += [c for i in range(2) for c in both(f"nic{i}", f"pci{i}", Fraction(24 * GB), pcie=True)]
    cables += [c for name in ("pci0", "pci1", "eth0") for c in both(name, "cpu0", Fraction(24 * GB), pcie=True)]
    if linked:
        cables += [Cable(f"gpu{i}", f"gpu{j}", Fraction(50 * GB)) for i in range(4) for j in range(4) if i != j]
    parts = {
        "pci0": Role.PCIE,
        "pci1": Role.PCIE,
        "cpu0": Role.CPU,
        "nic0": Role.NIC,
        "nic1": Role.NIC,
        "eth0": Role.NIC,
    }
    ports = {"nic0": Fraction(25 * GB), "nic1": Fraction(25 * GB), "eth0": Fraction(GB)}
    return Box(tuple(f"gpu{i}" for i in range(4)), parts, tuple(cables), ports)


def test_pcie_is_left_out_where_gpus_have_links():
    """A box whose GPUs all have links of their own has no PCIe tree, one without them has it, without its NICs."""
    assert {node["name"] for node in network_of(tree(linked=True), Layout())["nodes"]} == {f"gpu{i}" for i in range(4)}
    bare = network_of(tree(linked=False), Layout())
    assert [node["name"] for node in bare["nodes"]] == ["gpu0", "gpu1", "gpu2", "gpu3", "pci0", "pci1", "cpu0"]
    kept = network_of(tree(linked=True), Layout(pcie=True))
    assert len(kept["nodes"]) == 7


def test_gpus_use_the_nics_with_the_widest_way():
    """Between boxes each GPU uses the NIC on its switch; the slow one, and the CPU that leads to it, are left out."""
    network = network_of(tree(linked=True), Layout(boxes=2, rails=True))
    names = {node["name"] for node in network["nodes"]}
    assert {"box0.nic0", "box1.nic1", "rail0", "rail1"} <= names
    assert not {"box0.eth0", "box0.cpu0"} & names
    links = ends(network)
    assert links["box1.nic1", "rail1"] == "25 GB/s"
    assert links["box0.gpu2", "box0.pci1"] == "24 GB/s"
    assert ("box0.nic0", "rail1") not in links


def test_without_rails_all_nics_are_on_one_switch():
    """Without rails there is one switch between boxes, and a given rate goes before the file's."""
    network = network_of(tree(linked=True), Layout(boxes=3, nic=Times.read("2 x 100 Gb/s")))
    links = ends(network)
    assert sum(target == "network" for _, target in links) == 6
    assert links["box2.nic0", "network"] == "12.5 GB/s"


def test_latencies_are_those_of_whole_ways():
    """From GPU to GPU directly and over a switch, and from NIC to NIC, the latencies of the links add to what was
    asked."""
    network = network_of(tree(linked=True), Layout(boxes=2, latency="0.8 us", nic_latency="2 us", rails=True))
    times = {(link["source"], link["target"]): link["latency"] for link in network["links"]}
    assert times["box0.gpu0", "box0.gpu1"] == "0.8 us"
    assert times["box0.gpu0", "box0.pci0"] == "0.4 us"
    assert times["box0.nic0", "box0.pci0"] == "0 us"
    assert times["box0.nic0", "rail0"] == "1 us"


def test_nics_that_are_in_no_file_are_shared_evenly():
    """Given with their number, NICs hang on the GPUs in order, several on one or one on several."""
    parts, cables = wire_gpus([f"gpu{i}" for i in range(4)], Times(12, Fraction(25 * GB)), Wiring.SWITCH)
    box = Box(tuple(f"gpu{i}" for i in range(4)), parts, tuple(cables))
    shared = ends(network_of(box, Layout(boxes=2, nic=Times.read("2 x 200 Gb/s"))))
    assert ("box0.gpu3", "box0.nic1") in shared
    more = ends(network_of(box, Layout(boxes=2, nic=Times.read("8 x 200 Gb/s"))))
    assert ("box1.gpu3", "box1.nic7") in more
    with pytest.raises(InputError, match="3 NICs cannot be shared evenly by 4 GPUs"):
        network_of(box, Layout(boxes=2, nic=Times.read("3 x 200 Gb/s")))


@pytest.mark.parametrize(
    ("layout", "message"),
    [
        (Layout(boxes=2, nics=("mlx9",)), r"no NIC is named 'mlx9'; expected some of nic0, nic1, eth0"),
        (Layout(nics=("mlx9",)), r"no NIC is named 'mlx9'; expected some of nic0, nic1, eth0"),
        (Layout(boxes=2, nic=Times.read("8 x 100 Gb/s")), r"nearest to 2 NICs \(nic0, nic1\), not to 8"),
        (Layout(boxes=100_000), "expected at most"),
        (Layout(boxes=2, latency="1"), "--latency: '1' has no unit"),
    ],
)
def test_layouts_that_do_not_fit_are_told(layout, message):
    """Inconsistent layouts of NICs, boxes and latencies are refused with the expectation."""
    with pytest.raises(InputError, match=message):
        machine_instance(tree(linked=True), layout, name="a", source="a test")


def test_links_of_a_gpu():
    """The number may be left out where it is not needed; anything but a number and a rate is refused."""
    assert Times.read("12 x 25 GB/s") == Times(12, Fraction(25 * GB))
    assert Times.read("400 Gb/s") == Times(None, Fraction(50 * GB))
    for text in ("0 x 25 GB/s", "x", "12 x", "12 x 25", "", "99999 x 1 GB/s"):
        with pytest.raises(InputError):
            Times.read(text)
    with pytest.raises(InputError, match="expected such as '12 x 25 GB/s'"):
        Times.read("25 GB/s", with_count=True)


def test_wiring_is_asked_for_where_there_are_several():
    """Twelve links of eight GPUs lead to a switch; twelve of four, and six of eight, may be meshes."""
    assert likely_wiring(8, 12) is Wiring.SWITCH
    for gpus, links in ((4, 12), (8, 6), (2, 4)):
        with pytest.raises(InputError, match="expected --wiring"):
            likely_wiring(gpus, links)


def test_meshes_have_the_links_that_a_gpu_has():
    """A mesh shares the links of a GPU evenly, a hybrid cube mesh has six for each of eight GPUs."""
    names = [f"gpu{i}" for i in range(8)]
    _, mesh = wire_gpus(names[:4], Times(18, Fraction(25 * GB)), Wiring.MESH)
    assert {c.rate_Bps for c in mesh} == {150 * GB}
    _, cube = wire_gpus(names, Times(6, Fraction(25 * GB)), Wiring.HYBRID_CUBE_MESH)
    assert {sum(c.rate_Bps for c in cube if c.source == name) for name in names} == {150 * GB}
    with pytest.raises(InputError, match="are no mesh of 8 GPUs"):
        wire_gpus(names, Times(12, Fraction(GB)), Wiring.MESH)
    with pytest.raises(InputError, match="a hybrid cube mesh has 8 of 6"):
        wire_gpus(names, Times(12, Fraction(GB)), Wiring.HYBRID_CUBE_MESH)


def test_boxes_that_fall_apart_are_refused():
    """GPUs that nothing joins, names that stand twice and boxes without a GPU are no machine."""
    apart = Box(("gpu0", "gpu1"), {}, (Cable("gpu0", "gpu1", Fraction(GB)),))
    with pytest.raises(InputError, match="its links do not connect all GPUs"):
        machine_instance(apart, Layout(), name="a", source="a test")
    with pytest.raises(InputError, match="two nodes are named 'gpu0'"):
        machine_instance(Box(("gpu0",), {"gpu0": Role.NIC}, ()), Layout(), name="a", source="a test")
    with pytest.raises(InputError, match="no GPU"):
        machine_instance(Box((), {}, ()), Layout(), name="a", source="a test")
