"""The text of ``rocm-smi --showtopo``: adjacency by weight, PCIe by NUMA node, and texts that are wrong."""

from __future__ import annotations

from fractions import Fraction

import pytest
from cwb.core.errors import InputError
from cwb.exchange.box import Layout, Times
from cwb.exchange.link_rates import Rates, Rating
from cwb.exchange.smi import import_rocm_smi
from machine_files import rocm_topo

GB = 10**9
RING = rocm_topo(4, lambda i, j: "XGMI", lambda i, j: 15 if (i - j) % 4 in (1, 3) else 30, lambda i: 0)
TREE = rocm_topo(4, lambda i, j: "PCIE", lambda i, j: 40 if i // 2 == j // 2 else 72, lambda i: i // 2)


def read(folder, text, *, layout=None, **told):
    (folder / "topo.txt").write_text(text)
    return import_rocm_smi(folder / "topo.txt", layout or Layout(), Rates(**told))


def rates(data):
    return {(link["source"], link["target"]): link["bandwidth"] for link in data["network"]["links"]}


def test_a_weight_of_15_is_a_link(tmp_path):
    """Hops are 1 for all pairs; those of weight 30 have no link."""
    found = rates(read(tmp_path, RING, generation="mi100"))
    assert set(found) == {("gpu0", "gpu1"), ("gpu0", "gpu3"), ("gpu1", "gpu2"), ("gpu2", "gpu3")}
    assert set(found.values()) == {"24 GB/s"}
    nominal = read(tmp_path, RING, generation="mi100", rating=Rating.NOMINAL)
    assert set(rates(nominal).values()) == {"46 GB/s"}


def test_links_of_a_pair_are_asked_for(tmp_path):
    """The text does not say how many links join a pair: the generation does where it is one, else the user."""
    with pytest.raises(InputError, match="neither how many xGMI links join a pair nor how fast"):
        read(tmp_path, RING)
    assert set(rates(read(tmp_path, RING, links=Times.read("4 x 50 GB/s"))).values()) == {"200 GB/s"}


def test_pcie_meets_at_the_cpu(tmp_path):
    """GPUs of a NUMA node hang on its CPU, and CPUs are joined; what the text does not say is asked for."""
    with pytest.raises(InputError, match="expected --pcie"):
        read(tmp_path, TREE)
    with pytest.raises(InputError, match="2 CPUs, and the rate between them"):
        read(tmp_path, TREE, pcie_Bps=Fraction(24 * GB))
    found = rates(read(tmp_path, TREE, pcie_Bps=Fraction(24 * GB), cpus_Bps=Fraction(16 * GB)))
    assert found["gpu3", "cpu1"] == "24 GB/s"
    assert found["cpu0", "cpu1"] == "16 GB/s"
    nics = Layout(boxes=2, nic=Times.read("4 x 200 Gb/s"), rails=True)
    assert ("box1.gpu2", "box1.nic2") in rates(read(tmp_path, RING, generation="mi100", layout=nics))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "weight between two gpus: no such block; expected the text of rocm-smi"),
        (RING.replace("XGMI", "NVLINK"), "gpu0 to gpu1: link type 'NVLINK'; expected XGMI or PCIE"),
        (RING.replace("15 ", "x5 "), "weight 'x5'; expected an integer"),
        (RING.replace("30", "15", 1), "but different in the other direction"),
        (RING.replace("GPU3   15", "GPU9   15"), "cells in the row of GPU3; expected 4"),
        ("=" * 1_000_000 + "-", "no such block"),
        (RING[: RING.index("Link Type") + 60], "link type between two gpus"),
        (TREE.replace("Numa Node: 1", "Numa Node: -1"), "some GPUs have the NUMA node 0, others none"),
    ],
)
def test_wrong_texts_are_told_in_one_line(text, message, tmp_path):
    """Missing blocks, cells and rows are refused with the place and what was expected."""
    with pytest.raises(InputError, match=message) as caught:
        read(tmp_path, text, generation="mi100", pcie_Bps=Fraction(GB), cpus_Bps=Fraction(GB))
    assert "\n" not in str(caught.value)
