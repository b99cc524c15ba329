"""The text of ``nvidia-smi topo -m``: switch or mesh, rates, PCIe, NICs, and texts that are wrong."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import cwb
import pytest
from cwb.core.errors import InputError
from cwb.exchange.box import Layout, Times
from cwb.exchange.link_rates import Rates, Rating
from cwb.exchange.smi import import_nvidia_smi, read_matrix
from machine_files import cube_cell, rocm_topo, smi_links, smi_topo

GB = 10**9
SWITCH = smi_topo(lambda i, j: "NV18", 8)
MESH = smi_topo(lambda i, j: "NV6", 4)
TREE = smi_topo(
    lambda i, j: "PIX" if i // 2 == j // 2 else "NODE" if i // 4 == j // 4 else "SYS",
    8,
    ["mlx5_0", "mlx5_1"],
    lambda i, k: "PHB" if i // 4 == k else "SYS",
)


def read(folder, *texts, layout=None, **told):
    paths = [folder / f"topo{i}.txt" for i in range(len(texts))]
    for path, text in zip(paths, texts, strict=True):
        path.write_text(text)
    return import_nvidia_smi(paths, layout or Layout(), Rates(**told))


def rates(data):
    return {(link["source"], link["target"]): link["bandwidth"] for link in data["network"]["links"]}


@pytest.mark.parametrize(
    ("links", "gpus", "generation", "switch", "rate"),
    [
        (6, 4, "h100", False, "123.6 GB/s"),
        (6, 4, "v100", True, "120 GB/s"),
        (12, 4, "a100", True, "240 GB/s"),
        (12, 8, "a100", True, "240 GB/s"),
        (18, 8, "h100", True, "370.8 GB/s"),
        (18, 8, "b200", True, "721.8 GB/s"),
        (2, 4, "v100", False, "40 GB/s"),
        (4, 4, "a100", False, "80 GB/s"),
        (12, 2, "a100", False, "240 GB/s"),
    ],
)
def test_switch_or_mesh(links, gpus, generation, switch, rate, tmp_path):
    """NV# of all peers is a switch where it adds up to more than a GPU has, and a mesh where it does not."""
    data = read(tmp_path, smi_topo(lambda i, j: f"NV{links}", gpus), generation=generation)
    assert set(rates(data).values()) == {rate}
    assert ("nvswitch" in {node["name"] for node in data["network"]["nodes"]}) == switch
    assert len(data["network"]["links"]) == (gpus if switch else gpus * (gpus - 1) // 2)


def test_a_hybrid_cube_mesh(tmp_path):
    """Different numbers for different pairs are links of their own."""
    found = rates(read(tmp_path, smi_topo(cube_cell, 8), generation="v100", rating=Rating.NOMINAL))
    assert found["gpu0", "gpu1"] == "50 GB/s"
    assert found["gpu0", "gpu2"] == "25 GB/s"
    assert len(found) == 16


def test_the_generation_is_asked_for(tmp_path):
    """A matrix alone does not say the rate: the product's name in the text or nvlink -s does, or the user."""
    with pytest.raises(InputError, match=r"NV18 says neither how fast.*expected --generation such as h100"):
        read(tmp_path, SWITCH)
    named = "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-0)\n" + SWITCH
    assert set(rates(read(tmp_path, named)).values()) == {"370.8 GB/s"}
    with pytest.raises(InputError, match="expected --generation"):
        read(tmp_path, named.replace("80GB", "A100"))
    given = read(tmp_path, SWITCH, links=Times.read("18 x 25 GB/s"))
    assert set(rates(given).values()) == {"450 GB/s"}
    assert "as given" in given["source"]


def test_the_links_of_a_gpu_by_nvlink_s(tmp_path):
    """Active links count, and their rates are those printed or 80 % of them; what is inactive makes a switch of a
    mesh no more."""
    status = smi_links(8, 18, "26.562", inactive=0)
    assert set(rates(read(tmp_path, SWITCH, status)).values()) == {"382.4928 GB/s"}
    assert set(rates(read(tmp_path, SWITCH, status, rating=Rating.NOMINAL)).values()) == {"478.116 GB/s"}
    mesh = read(tmp_path, MESH + smi_links(4, 18, "25"), rating=Rating.NOMINAL)
    assert set(rates(mesh).values()) == {"150 GB/s"}
    lame = read(tmp_path, smi_topo(lambda i, j: "NV16", 8) + smi_links(8, 16, "25", inactive=2), rating=Rating.NOMINAL)
    assert set(rates(lame).values()) == {"400 GB/s"}
    with pytest.raises(InputError, match="the matrix has gpu7, but nvlink -s does not"):
        read(tmp_path, SWITCH, smi_links(7, 18, "25"))
    with pytest.raises(InputError, match="have several rates"):
        read(tmp_path, SWITCH, smi_links(8, 17, "25") + "\t Link 17: 20 GB/s")


@pytest.mark.parametrize(
    ("cell", "gpus", "generation", "message"),
    [
        (lambda i, j: "NV18", 8, "a100", "NV18 in the row of gpu0, but it has 12 NVLinks"),
        (lambda i, j: "NV12" if i + j == 1 else "NV6", 4, "a100", "neither a switch nor a mesh"),
    ],
)
def test_numbers_that_do_not_fit_the_generation(cell, gpus, generation, message, tmp_path):
    """More links than a GPU has, on no switch that all share, are refused."""
    with pytest.raises(InputError, match=message):
        read(tmp_path, smi_topo(cell, gpus), generation=generation)


def test_pairs_that_pcie_joins(tmp_path):
    """Pairs on bridges need the rate of PCIe, and have a switch for each group and a CPU for each node."""
    with pytest.raises(InputError, match="expected --pcie"):
        read(tmp_path, TREE)
    with pytest.raises(InputError, match=r"2 CPUs.*expected --between-cpus"):
        read(tmp_path, TREE, pcie_Bps=Fraction(24 * GB))
    data = read(tmp_path, TREE, pcie_Bps=Fraction(24 * GB), cpus_Bps=Fraction(16 * GB))
    found = rates(data)
    assert [node["name"] for node in data["network"]["nodes"][8:]] == [
        "cpu0",
        "cpu1",
        "pcie0",
        "pcie1",
        "pcie2",
        "pcie3",
    ]
    assert found["cpu0", "cpu1"] == "16 GB/s"
    assert found["gpu7", "pcie3"] == "24 GB/s"
    boxes = read(
        tmp_path,
        TREE,
        pcie_Bps=Fraction(24 * GB),
        cpus_Bps=Fraction(16 * GB),
        layout=Layout(boxes=2, nic=Times.read("2 x 100 Gb/s"), rails=True),
    )
    assert rates(boxes)["box1.mlx5_1", "box1.cpu1"] == "24 GB/s"


def test_nics_hang_on_the_nearest_gpus(tmp_path):
    """Without a rate of PCIe, a NIC hangs on the GPUs that it is nearest to; others are left out, or asked for."""
    text = smi_topo(
        lambda i, j: "NV18",
        8,
        [f"NIC{k}" for k in range(9)],
        lambda i, k: "PXB" if i == k else "NODE",
    )
    text += "NIC Legend:\n\n" + "".join(f"  NIC{k}: mlx5_{k}\n" for k in range(9))
    layout = Layout(boxes=2, nic=Times.read("8 x 400 Gb/s"), rails=True)
    found = rates(read(tmp_path, text, generation="h100", layout=layout))
    assert found["box1.gpu3", "box1.mlx5_3"] == "50 GB/s"
    assert found["box1.mlx5_3", "rail3"] == "50 GB/s"
    assert not any("mlx5_8" in name for pair in found for name in pair)
    with pytest.raises(InputError, match=r"nearest to 8 NICs .*, not to 4; expected their number, or --nics"):
        read(tmp_path, text, generation="h100", layout=Layout(boxes=2, nic=Times.read("4 x 400 Gb/s")))
    one = Layout(boxes=2, nic=Times.read("1 x 400 Gb/s"), nics=("mlx5_8",))
    assert sum("mlx5_8" in b for _, b in rates(read(tmp_path, text, generation="h100", layout=one))) == 16
    with pytest.raises(InputError, match="the rate of NIC 'mlx5_0' is not in the file"):
        read(tmp_path, text, generation="h100", layout=Layout(boxes=2))


def test_the_forms_that_are_pasted():
    """Padding instead of tabs, an underlined header, a prompt before and a second matrix behind are read alike."""
    tabs = read_matrix(TREE)
    padded = smi_topo(
        lambda i, j: "PIX" if i // 2 == j // 2 else "NODE" if i // 4 == j // 4 else "SYS",
        8,
        ["mlx5_0", "mlx5_1"],
        lambda i, k: "PHB" if i // 4 == k else "SYS",
        space="   ",
    )
    for text in (
        padded,
        "$ nvidia-smi topo -m\n" + TREE,
        TREE.replace("GPU0", "GPU0", 1) + "\n" + smi_topo(lambda i, j: "OK", 8),
    ):
        assert read_matrix(text) == tabs
    assert len(tabs.gpus) == 8
    assert tabs.nics == ("mlx5_0", "mlx5_1")


def test_an_underlined_header(tmp_path):
    """Escapes that underline the header are no part of the names."""
    text = MESH.replace("GPU0", "\x1b[4mGPU0", 1).replace("NUMA Affinity", "NUMA Affinity\x1b[0m", 1)
    assert len(read(tmp_path, text, generation="h100")["network"]["nodes"]) == 4


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no matrix of nvidia-smi topo -m"),
        ("GPU0\tX\n", "no matrix"),
        (rocm_topo(2, lambda i, j: "XGMI", lambda i, j: 15, lambda i: 0), "rocm-smi --showtopo, which cwb import rocm"),
        (" \n" * 200_000, "no matrix"),
        (SWITCH.replace("NV18\t0-31", "NV180-31", 1), "'NV180-31' from GPU0 to GPU7; expected X, NV#.*space or tab"),
        (SWITCH.replace("NV18", "NV17", 1), "'NV17' from gpu0 to gpu1, but 'NV18' back"),
        (SWITCH.replace(" X ", "NV18", 1), "expected X only on the diagonal"),
        ("\n".join(SWITCH.splitlines()[:5]), "the matrix has no row of 'GPU4'"),
        (SWITCH.replace("\tGPU1\t", "\tGPU0\t", 1), "each with its own name"),
        (SWITCH.replace("NV18", "YES"), "'YES' from GPU0 to GPU1; expected"),
        ("GPU0\tGPU1\tCPU Affinity\nGPU0\tX\n", "1 cells for 2 columns"),
    ],
)
def test_wrong_texts_are_told_in_one_line(text, message, tmp_path):
    """No matrix, cells that run together, halves that differ and missing rows are refused with the place."""
    with pytest.raises(InputError, match=message) as caught:
        read(tmp_path, text, generation="h100")
    assert "\n" not in str(caught.value)


def test_relations_that_are_no_tree_are_refused(tmp_path):
    """GPUs that are near to a third one but far from each other are on no PCIe tree."""
    text = smi_topo(lambda i, j: "PIX" if abs(i - j) == 1 else "SYS", 3)
    with pytest.raises(InputError, match="that is no tree of PCIe switches"):
        read(tmp_path, text, pcie_Bps=Fraction(GB), cpus_Bps=Fraction(GB))


def switch_abilities(data):
    """Return the abilities of the NVSwitch of an instance."""
    (found,) = (node for node in data["network"]["nodes"] if node["name"] == "nvswitch")
    return found.get("multicast", False), found.get("reduces", False)


@pytest.mark.parametrize(("generation", "has_nvls"), [("a100", False), ("a800", False), ("h100", True), ("b200", True)])
def test_nvswitches_copy_and_add_from_hopper_on(tmp_path, generation, has_nvls):
    """NVLink SHARP follows from the generation, unless it is said otherwise."""
    count = 8 if generation == "a800" else 12 if generation == "a100" else 18
    text = smi_topo(lambda i, j: f"NV{count}", 8)
    assert switch_abilities(read(tmp_path, text, generation=generation)) == (has_nvls, has_nvls)
    for said in (True, False):
        assert switch_abilities(read(tmp_path, text, generation=generation, layout=Layout(nvls=said))) == (said, said)
    with pytest.raises(InputError, match="no NVSwitch; only NVSwitches"):
        read(tmp_path, MESH, generation="h100", layout=Layout(nvls=True))


def test_a_tray_of_a_rack_is_no_rack(tmp_path):
    """GPUs of a GB300 on NVSwitches say that the rack's other trays are not joined; those of H100 do not."""
    for generation, is_tray in (("gb300", True), ("h100", False)):
        layout = Layout(boxes=2, nic=Times.read("4 x 400 Gb/s"))
        data = read(tmp_path, smi_topo(lambda i, j: "NV18", 4), generation=generation, layout=layout)
        assert ("not those of a rack" in data["source"]) == is_tray


def test_trays_become_racks(tmp_path):
    """Of one tray, racks of 72 GPUs are made whose times and rails are those of the generator nvl72."""
    nics = [f"mlx5_{i}" for i in range(4)]
    path = tmp_path / "tray.txt"
    path.write_text(smi_topo(lambda i, j: "NV18", 4, nics, lambda i, k: "NODE" if i == k else "SYS"))
    given = {"generation": "gb200", "rack": 72, "nic": "4 x 400 Gb/s", "rails": True}
    for racks in (1, 2):
        found = cwb.import_nvidia_smi(path, boxes=racks, **given).instance
        made = cwb.load(f"nvl72(racks={racks})")
        assert found.topology.rank_nodes == tuple(range(72 * racks))
        expected = [cwb.predict(each, collective="all_reduce", size="8 GiB") for each in (found, made)]
        assert expected[0].seconds == expected[1].seconds
        assert len([node for node in found.topology.nodes if node.reduces and node.multicast]) == racks
    ends = Counter(link.target for link in found.topology.links if link.target.startswith("rail"))
    assert ends == {f"rail{i}": 36 for i in range(4)}
    named = {**given, "boxes": 2, "nics": "mlx5_0,mlx5_1", "nic": "2 x 400 Gb/s"}
    assert (
        sum(node.name.startswith("rail") for node in cwb.import_nvidia_smi(path, **named).instance.topology.nodes) == 2
    )


@pytest.mark.parametrize(
    ("gpus", "rack", "message"),
    [(4, 70, "70 GPUs; expected a multiple of 4, as in a tray"), (2, 72, "the GPUs are not on one NVSwitch")],
)
def test_a_tray_that_is_none_makes_no_rack(tmp_path, gpus, rack, message):
    """GPUs that do not divide the rack, and GPUs that are wired to one another, are refused."""
    with pytest.raises(InputError, match=f"--rack: {message}"):
        read(tmp_path, smi_topo(lambda i, j: "NV18", gpus), generation="gb200", layout=Layout(rack=rack))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"generation": "h1000"}, "generation: 'h1000' is unknown; expected one of p100, v100"),
        ({"generation": "a100", "boxes": "2"}, "boxes: '2'; expected a whole number from 1 to"),
        ({"rates": "best"}, "rates: 'best' is unknown; expected one of effective, nominal"),
    ],
)
def test_wrong_keyword_arguments_are_bad_input(options, message, tmp_path):
    """The function rejects what the command's choices reject, and names the argument."""
    path = tmp_path / "topo.txt"
    path.write_text(smi_topo(lambda i, j: "NV12", 2))
    with pytest.raises(InputError, match=message):
        cwb.import_nvidia_smi(path, **options)
