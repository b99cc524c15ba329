"""Topologies and graphs of NCCL and RCCL: rates, switches, NICs, and files that are wrong."""

from __future__ import annotations

import json
from fractions import Fraction

import pytest
from cwb.core.errors import InputError
from cwb.exchange.box import Layout, Times, Wiring
from cwb.exchange.link_rates import Rates, Rating, between_cpus, nvlink, pcie, xgmi
from cwb.exchange.nccl_topology import import_nccl
from machine_files import CUBE, gpu_address, nccl_system

SWITCH = "".join(f'<nvlink target="0000:f{i}:00.0" count="{n}" tclass="0x068000"/>' for i, n in enumerate((4, 5, 5, 4)))


def bare(text):
    """The PCIe tree alone, as clouds ship it: no descriptions of GPUs and NICs."""
    parts = text.split("<gpu ")
    rest = [part.split("</gpu>", 1)[1] for part in parts[1:]]
    text = parts[0] + "".join(rest)
    while "<nic>" in text:
        text = text.split("<nic>", 1)[0] + text.split("</nic>", 1)[1]
    return text


def read(folder, text, *, layout=None, graph=0, **told):
    path = folder / "topo.xml"
    path.write_text(text)
    return import_nccl(path, layout or Layout(), Rates(**told), graph=graph)


def rates(data):
    """Rates by pairs of names."""
    return {(link["source"], link["target"]): link["bandwidth"] for link in data["network"]["links"]}


def test_what_a_file_says_is_not_said_again(tmp_path):
    """A file that describes its GPUs takes no NVLinks from options, which would change nothing."""
    with pytest.raises(InputError, match="describes its GPUs"):
        read(tmp_path, nccl_system(8, lambda i: SWITCH), links=Times.read("12 x 25 GB/s"))


def test_counts_to_switches_add_up(tmp_path):
    """Links to four NVSwitches, 4 + 5 + 5 + 4, are 18 to one; the rate is NCCL's or the data sheet's."""
    text = nccl_system(8, lambda i: SWITCH)
    assert set(rates(read(tmp_path, text)).values()) == {"370.8 GB/s"}
    data = read(tmp_path, text, rating=Rating.NOMINAL)
    assert set(rates(data).values()) == {"450 GB/s"}
    assert "nominal" in data["source"]
    assert [node["name"] for node in data["network"]["nodes"]][-2:] == ["gpu7", "nvswitch"]


def test_links_between_gpus_keep_their_direction(tmp_path):
    """A hybrid cube mesh has 20 GB/s for each link; a link that one GPU alone lists has one direction, and one to a GPU
    outside of the file none."""

    def links(i):
        pairs = [(a + b - i, n) for n, pairs in CUBE.items() for a, b in pairs if i in (a, b)]
        return "".join(f'<nvlink target="{gpu_address(j)}" count="{n}" tclass="0x030200"/>' for j, n in pairs)

    found = rates(read(tmp_path, nccl_system(8, links, about='sm="70"')))
    assert found["gpu0", "gpu1"] == "40 GB/s"
    assert found["gpu0", "gpu2"] == "20 GB/s"
    assert len(found) == 16
    one_way = '<nvlink target="{}" count="1" tclass="0x030200"/><nvlink target="0000:99:00.0" count="1" tclass="0x03"/>'
    ring = read(tmp_path, nccl_system(4, lambda i: one_way.format(gpu_address((i + 1) % 4)), about='sm="80"'))
    assert set(rates(ring)) == {(f"gpu{i}", f"gpu{(i + 1) % 4}") for i in range(4)}
    assert not any(link.get("bidirectional") for link in ring["network"]["links"])


def test_xgmi_by_architecture(tmp_path):
    """Version 2 has xGMI links, whose rate is that of the architecture under its old and its new name."""
    for name, rate in (("910", "36 GB/s"), ("gfx90a:sramecc+", "36 GB/s"), ("gfx942", "48 GB/s"), ("908", "24 GB/s")):

        def links(i):
            peers = [j for j in range(4) if j != i]
            return "".join(f'<xgmi target="{gpu_address(j)}" count="1" tclass="0x120000"/>' for j in peers)

        about = f'sm="104" gcn="{name}" arch="38911"'
        found = rates(read(tmp_path, nccl_system(4, links, about=about, version=2)))
        assert set(found.values()) == {rate}, name
        assert len(found) == 6


def test_pcie_and_nics(tmp_path):
    """Without NVLink the tree stays: rates by speed and width, CPUs by model; NICs have the speed of their port."""
    found = rates(read(tmp_path, nccl_system(4, lambda i: "", speed="16 GT/s")))
    assert found["gpu0", "pci-0000:00:00.0"] == "24 GB/s"
    assert found["cpu0", "cpu1"] == "22 GB/s"
    boxes = read(tmp_path, nccl_system(4, lambda i: SWITCH), layout=Layout(boxes=2, rails=True))
    found = rates(boxes)
    assert found["box1.mlx5_3", "rail3"] == "50 GB/s"
    assert found["box0.mlx5_0", "box0.pci-0000:00:00.0"] == "48 GB/s"
    assert ("cpu0", "cpu1") not in found
    assert "1.3 us between NICs" in boxes["source"]


def test_ports_of_a_nic_share_its_link(tmp_path):
    """Two ports of a device are two NICs behind one PCIe link; a port without a speed has 10 Gb/s."""
    net = 'speed="0" port="1"/><net name="other{}" dev="9" speed="200000"'
    text = nccl_system(2, lambda i: SWITCH, net=net)
    for i in range(2):
        text = text.replace("other{}", f"other{i}", 1)
    found = rates(read(tmp_path, text, layout=Layout(boxes=2)))
    assert found["box0.other0", "box0.nic-0000:00:02.0"] == "48 GB/s"
    assert not any("mlx5_0" in pair[0] for pair in found)  # the slow port is not used


def test_links_to_the_cpu(tmp_path):
    """``c2c`` joins a GPU to its CPU with the product of its two numbers."""
    text = nccl_system(2, lambda i: SWITCH + '<c2c bw="20000" count="10"/>')
    found = rates(read(tmp_path, text, layout=Layout(pcie=True)))
    assert found["gpu0", "cpu0"] == "200 GB/s"
    assert ("gpu0", "cpu0") not in rates(read(tmp_path, text))


def test_files_of_clouds_ask(tmp_path):
    """A PCIe tree alone asks for NVLinks; what is said makes a switch, a mesh, a cube or none, and NICs need a rate."""
    text = bare(nccl_system(8, lambda i: ""))
    with pytest.raises(InputError, match=r"only the PCIe tree.*expected --generation such as a100, --nvlink"):
        read(tmp_path, text)
    assert set(rates(read(tmp_path, text, generation="a100")).values()) == {"240 GB/s"}
    given = read(tmp_path, text, links=Times.read("12 x 25 GB/s"))
    assert "those of NVLinks as given" in given["source"]
    assert set(rates(given).values()) == {"300 GB/s"}
    assert len(rates(read(tmp_path, text, generation="v100", wiring=Wiring.HYBRID_CUBE_MESH))) == 16
    with pytest.raises(InputError, match="expected --wiring"):
        read(tmp_path, text, generation="v100")
    assert "cpu0" in {node["name"] for node in read(tmp_path, text, pcie_only=True)["network"]["nodes"]}
    with pytest.raises(InputError, match="the rate of NIC 'nic0' is not in the file; expected --nic"):
        read(tmp_path, text, generation="a100", layout=Layout(boxes=2))
    boxes = read(tmp_path, text, generation="a100", layout=Layout(boxes=2, nic=Times.read("8 x 200 Gb/s")))
    assert rates(boxes)["box1.nic7", "network"] == "25 GB/s"


def test_links_of_a_gpu_to_itself_carry_nothing(tmp_path):
    """As in Azure's file of the NCv4: NVLinks whose target is the GPU itself join nobody, and PCIe stays."""
    text = nccl_system(4, lambda i: f'<nvlink target="{gpu_address(i)}" count="12" tclass="0x030200"/>')
    found = rates(read(tmp_path, text))
    assert found == rates(read(tmp_path, nccl_system(4, lambda i: "")))
    assert ("cpu0", "cpu1") in found


def test_devices_and_cpus_without_words(tmp_path):
    """As in the file of AWS's g5: devices without a class are GPUs, and what the CPUs are is asked or overridden."""
    cpus = ("".join(f'<pci busid="0000:00:1{4 * n + i}.0"/>' for i in range(4)) for n in range(2))
    text = "<system>" + "".join(f'<cpu numaid="{n}">{pci}</cpu>' for n, pci in enumerate(cpus)) + "</system>"
    with pytest.raises(InputError, match=r"cpu0: the rate between CPUs of '', '' is not known; expected.*--cpu or"):
        read(tmp_path, text, pcie_only=True)
    data = read(tmp_path, text, pcie_only=True, cpus_Bps=Fraction(16 * 10**9))
    assert rates(data)["cpu0", "cpu1"] == "16 GB/s"
    assert "count as GPUs" in data["source"]
    assert len(rates(data)) == 8 + 1
    known = read(tmp_path, nccl_system(4, lambda i: ""), cpus_Bps=Fraction(9 * 10**9))
    assert rates(known)["cpu0", "cpu1"] == "9 GB/s"


GRAPHS = """<graphs version="1">
  <graph id="0" pattern="4" nchannels="2" speedintra="12" speedinter="10" typeintra="SYS">
    <channel><net dev="0"/><gpu dev="0"/><gpu dev="A"/><gpu dev="2"/><net dev="0"/></channel>
    <channel><net dev="1"/><gpu dev="2"/><gpu dev="A"/><gpu dev="0"/><net dev="1"/></channel>
    <channel><gpu dev="0"/><gpu dev="A"/><gpu dev="2"/></channel>
  </graph>
  <graph id="1" pattern="1" nchannels="1" speedintra="5" speedinter="5">
    <channel><gpu dev="0"/><gpu dev="A"/><gpu dev="2"/></channel>
  </graph>
  <graph id="3" pattern="5" nchannels="1" speedintra="5" speedinter="5"><channel/></graph>
</graphs>"""
OPEN = (
    '<graphs version="1"><graph id="0" pattern="4" speedintra="1" speedinter="1"><channel>'
    '<net dev="0"/><gpu dev="0"/><gpu dev="1"/><net dev="0"/></channel></graph></graphs>'
)


def test_graphs(tmp_path):
    """Each channel of a ring adds its speed in one direction, one of a tree in both; numbers are hexadecimal; NICs
    appear between boxes."""
    found = rates(read(tmp_path, GRAPHS))
    assert found == {
        ("gpu0", "gpu10"): "24 GB/s",
        ("gpu10", "gpu2"): "24 GB/s",
        ("gpu2", "gpu10"): "12 GB/s",
        ("gpu10", "gpu0"): "12 GB/s",
        ("gpu2", "gpu0"): "12 GB/s",
    }
    with pytest.raises(InputError, match="do not connect all GPUs; NICs do, expected --boxes of 2 or more"):
        read(tmp_path, OPEN)
    boxes = rates(read(tmp_path, GRAPHS, layout=Layout(boxes=2)))
    assert boxes["box0.net0", "box0.gpu0"] == "10 GB/s"
    assert boxes["box0.gpu2", "box0.net0"] == "10 GB/s"
    assert boxes["box1.net1", "network"] == "10 GB/s"
    tree = read(tmp_path, GRAPHS, graph=1)
    assert rates(tree) == {("gpu0", "gpu10"): "5 GB/s", ("gpu10", "gpu2"): "5 GB/s"}
    assert "a graph that NCCL searched" in tree["source"]
    with pytest.raises(InputError, match="'5' is no ring or tree"):
        read(tmp_path, GRAPHS, graph=3)
    with pytest.raises(InputError, match="no graph has the id 7; expected one of 0, 1, 3"):
        read(tmp_path, GRAPHS, graph=7)


def test_rates_are_those_of_the_tables():
    """NVLinks by capability, PCIe by speed in both spellings, CPUs by model, as NCCL counts; what is unknown is
    told."""
    billions = 10**9
    for capability, rate in ((60, 18), (70, 20), (80, 20), (86, 12), (90, 20.6), (100, 40.1), (103, 40.1)):
        assert float(nvlink(capability).effective_Bps) == rate * billions
    for speed, rate in (("2.5 GT/s", 3), ("5 GT/s", 6), ("8.0 GT/s PCIe", 12), ("16 GT/s", 24), ("64.0 GT/s PCIe", 96)):
        assert pcie(speed, 16).effective_Bps == rate * billions
    assert pcie("?", 0).effective_Bps == 12 * billions
    assert pcie("16 GT/s", 16).nominal_Bps == pytest.approx(31.508 * billions, rel=1e-4)
    intel = {(6, 79): 6, (6, 85): 10, (6, 143): 22, (6, 207): 40}
    for (family, model), rate in intel.items():
        assert between_cpus("x86_64", "GenuineIntel", family, model) == rate * billions
    others = {("x86_64", "AuthenticAMD"): 16, ("arm64", ""): 6, ("ppc64", ""): 32, ("x86_64", "  Shanghai  "): 6}
    for (architecture, vendor), rate in others.items():
        assert between_cpus(architecture, vendor, 0, 0) == rate * billions
    for wrong in (lambda: nvlink(50), lambda: xgmi("gfx1100"), lambda: between_cpus("mips", "", 0, 0)):
        with pytest.raises(InputError, match="expected"):
            wrong()


WHOLE = nccl_system(2, lambda i: SWITCH)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (WHOLE[:-20], "not XML"),
        ("<algo/>", "its root is 'algo'; expected system or graphs"),
        ("<system/>", "0 CPUs; expected from 1 to 256"),
        ('<!DOCTYPE a [<!ENTITY a "b">]><system>&a;</system>', "document type"),
        (WHOLE.replace('count="4"', 'count="four"', 1), r"gpu 0.nvlink\[0\].count: 'four'"),
        (WHOLE.replace('count="4"', 'count="-1"', 1), "expected an integer from 1 to 1,000"),
        (WHOLE.replace('count="4"', f'count="{"9" * 5000}"', 1), "expected an integer"),
        (WHOLE.replace('tclass="0x068000"', 'tclass="0x01"', 1), "tclass '0x01'; expected"),
        (WHOLE.replace('dev="1"', 'dev="0"', 1), "two nodes are named 'gpu0'"),
        (WHOLE.replace('sm="90"', 'sm="35"'), "have no NVLink"),
        (WHOLE.replace('numaid="1"', 'numaid="0"'), "two parts are named 'cpu0'"),
        (WHOLE.replace('busid="0000:00:01.0"', 'busid="here"'), "expected an address such as 0000:1b:00.0"),
        (WHOLE.replace('arch="x86_64"', 'arch="z80"'), "the rate between CPUs of 'z80'"),
        (WHOLE.replace('link_width="16"', 'link_width="1e9"', 1), "link_width: '1e9'; expected an integer"),
    ],
)
def test_wrong_files_are_told_in_one_line(text, message, tmp_path):
    """Truncated, foreign and impossible files are refused with the file, the place, the value and what was expected."""
    with pytest.raises(InputError, match=message) as caught:
        read(tmp_path, text)
    assert str(caught.value).startswith(str(tmp_path))
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400 + len(str(tmp_path))


def test_several_hosts_of_one_file(tmp_path):
    """GPUs of several hosts in one dump get the name of the host, and their addresses may be the same."""
    one = nccl_system(2, lambda i: SWITCH)
    cpus = one.removeprefix('<system version="1">').removesuffix("</system>")
    hosts = "".join(cpus.replace("<cpu ", f'<cpu host_hash="0x{host}" ') for host in (1, 2))
    data = read(tmp_path, f'<system version="1">{hosts}</system>')
    assert [n["name"] for n in data["network"]["nodes"]][:3] == ["host0.gpu0", "host0.gpu1", "host1.gpu0"]
    json.dumps(data)
