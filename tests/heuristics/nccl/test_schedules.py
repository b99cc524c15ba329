"""Schedules of NCCL's rings and trees: verified, on all NICs, and with the loads that they are to have."""

from __future__ import annotations

import json
from fractions import Fraction

import cwb
import numpy as np
import pytest
from cwb.core.collective import Demand, collective_named
from cwb.core.errors import InputError
from cwb.core.trees import TreePacking
from cwb.harness import Request, run_one
from cwb.harness.run import run
from cwb.heuristics.nccl.boxes import Boxes
from cwb.heuristics.nccl.method import NcclOptions, Prediction, prediction
from cwb.heuristics.nccl.schedules import receivers_by_round, ring_orders
from cwb.instances import load
from hypothesis import given
from hypothesis import strategies as st

MIB = 2**20


def make_instance(spec, collective, size=64 * MIB, ranks=None):
    return load(spec).with_changes(demand=Demand(collective_named(collective), Fraction(size), ranks=ranks))


@pytest.mark.parametrize(
    ("spec", "collective", "options"),
    [
        ("dgx_a100(boxes=2)", "all_reduce", {"algorithm": "ring"}),
        ("dgx_a100(boxes=3)", "all_reduce", {"algorithm": "tree"}),
        ("dgx_h100(boxes=3)", "all_gather", {}),
        ("dgx_h100(boxes=2)", "broadcast", {}),
        ("dgx_h100(boxes=2)", "reduce", {}),
        ("dgx_h100(boxes=3,nvls=true)", "all_reduce", {"algorithm": "nvls-tree"}),
        ("dgx_h100(nvls=true)", "all_gather", {"algorithm": "nvls"}),
        ("dgx_h100(nvls=true)", "reduce_scatter", {"algorithm": "nvls"}),
        ("mi300x()", "all_reduce", {"algorithm": "tree"}),
        ("pcie(boxes=2)", "reduce_scatter", {"pieces": 2}),
        ("dragonfly(3,3,2)", "all_gather", {"algorithm": "pat"}),
        ("dragonfly(3,3,2)", "reduce_scatter", {"algorithm": "pat"}),
        ("dgx1()", "all_gather", {}),
        ("torus(3,3)", "all_reduce", {}),
        ("dgx_h100(boxes=2)", "all_to_all", {}),
        ("dgx_a100(boxes=3)", "all_to_all", {"pieces": 2}),
        ("pcie(4)", "all_to_all", {}),
        ("torus(3,3)", "all_to_all", {}),
    ],
)
def test_schedules_are_verified(spec, collective, options):
    """Rings, trees, NVLS and PAT are right on boxes with switches, meshes, PCIe and no boxes at all."""
    record = run_one(make_instance(spec, collective), Request("nccl", options=options))
    assert record.verified, record.violations
    assert record.objective >= record.bound * (1 - 1e-9)
    wanted = options.get("algorithm", record.metrics["schedule"])
    assert record.metrics["schedule"] == wanted


@pytest.mark.parametrize("spec", ["dgx_a100(boxes=2)", "dgx_h100(boxes=3)"])
@pytest.mark.parametrize("algorithm", ["ring", "tree", "nvls-tree"])
def test_every_nic_is_used(spec, algorithm):
    """Rings and trees send over every NIC of every box, and rings over each of them as much."""
    instance = make_instance(spec, "all_reduce")
    options = {"algorithm": algorithm, "nvls": "h100" in spec}
    if algorithm == "nvls-tree" and "h100" not in spec:
        assert run_one(instance, Request("nccl", options=options)).status == "unsupported"
        return
    done = run(instance, Request("nccl", options=options))
    boxes = prediction(instance, NcclOptions()).boxes.boxes
    assert done.record.metrics["nics"] == sum(len(box.nics) for box in boxes) == instance.npus
    if algorithm == "ring":
        links = done.answer.sends.path_links.tolist()
        assert len({links.count(nic.out) for box in boxes for nic in box.nics}) == 1


@given(st.lists(st.integers(1, 9), min_size=1, max_size=6))
def test_every_pair_has_one_round(sizes):
    """In every round of an exchange all ranks send and receive once, and every ordered pair has one round."""
    everybody = np.arange(sum(sizes))
    rounds = receivers_by_round(sizes, everybody)
    assert (rounds[0] == everybody).all()
    assert (np.sort(rounds, axis=1) == everybody).all()
    assert (np.sort(rounds, axis=0) == everybody[:, None]).all()
    assert (receivers_by_round(sizes, everybody[1::2]) == rounds[:, 1::2]).all()


def test_an_exchange_fills_the_nics():
    """An all-to-all of two H100 boxes takes at most 2 % more than half of the data over the NIC of every rank."""
    record = run_one(make_instance("dgx_h100(boxes=2)", "all_to_all", 1024 * MIB), Request("nccl"))
    assert record.metrics["completion_time_s"] < 1.02 * 512 * MIB / 50e9
    assert record.metrics["algorithm"] == "send/recv"
    assert "predicted_s" not in record.metrics


def test_two_boxes_are_as_fast_as_all_their_nics():
    """Of two A100 boxes, rings have 16 NICs at work: an all-gather of 1 GiB is four times as fast as `ring`, on two."""
    instance = make_instance("dgx_a100(boxes=2)", "all_gather", 1024 * MIB)
    seconds = [run_one(instance, Request(model)).metrics["completion_time_s"] for model in ("ring", "nccl")]
    assert seconds[0] / seconds[1] > 4
    assert seconds[1] < 1.1 * (1024 * MIB * 15 / 16 / 200e9)


def test_a_group_of_ranks_has_rings_of_its_own():
    """The ranks of a process group alone are in the rings."""
    record = run_one(make_instance("dgx_a100(boxes=2)", "all_gather", ranks=(0, 1, 8, 9)), Request("nccl"))
    assert record.verified
    assert record.metrics["nics"] == 4


def test_channels_of_a_graph_file():
    """Given channels are taken as they are; wrong ones, and those without speeds, are refused."""
    orders = [[0, 1, 2, 3, 4, 5, 6, 7], [3, 2, 1, 0, 7, 6, 5, 4]]
    options = {"channels": orders, "speeds": [20, 12], "algorithm": "ring", "protocol": "simple"}
    record = run_one(make_instance("dgx_a100(boxes=2)", "all_reduce"), Request("nccl", options=options))
    assert record.verified
    assert (record.metrics["channels"], record.metrics["nics"]) == (2, 4)
    assert record.metrics["predicted_GBps"] < 2 * 20 * 16 / 30
    for wrong in ({"channels": [[0, 1]], "speeds": [20, 12]}, {"channels": orders}):
        with pytest.raises(InputError):
            run_one(make_instance("dgx_a100(boxes=2)", "all_reduce"), Request("nccl", options=wrong))


def test_switches_that_do_not_add_have_another_schedule():
    """If NCCL relies on NVLink SHARP and the switches cannot add, the record names the schedule that is used."""
    record = run_one(make_instance("dgx_h100(nvls=false)", "all_reduce"), Request("nccl", options={"nvls": True}))
    assert (record.metrics["algorithm"], record.metrics["schedule"]) == ("nvls", "ring")
    assert "do not add" in record.message
    assert json.dumps(record.to_json())


def test_trees_carry_each_half_of_a_channel_once():
    """Two trees of a channel load a NIC with the data of the channel once in each direction of each pass."""
    instance = make_instance("dgx_h100(boxes=4)", "all_reduce")
    answer = run(instance, Request("nccl", options={"algorithm": "tree"})).answer
    assert isinstance(answer, TreePacking)
    boxes = prediction(instance, NcclOptions()).boxes.boxes
    outward = answer.passes[1]
    loads = [outward.path_links.tolist().count(nic.out) for box in boxes for nic in box.nics]
    assert max(loads) == 2
    assert len(answer) == 16


def test_the_bound_of_trees_has_no_latency():
    """At sizes where latency is longer than the bytes take, the bound beside trees is one of their flow time."""
    record = cwb.solve("dgx_a100(boxes=2)", "nccl", collective="all_reduce", size="64 KiB")
    assert record.metrics["schedule"] == "tree"
    assert record.verified
    assert record.bound <= record.objective


@pytest.mark.parametrize(
    "spec",
    ["dgx_h100(boxes=3)", "rail(4,4,missing_nics=1)", "dgx1()", "mi300x(boxes=3)", "pcie(boxes=2)", "torus(3,3)"],
)
def test_boxes_that_are_alike_have_the_channels_of_the_first(spec, monkeypatch):
    """Ranks, NICs and channels of a box like an earlier one are those that a search of its own finds."""
    problem = prediction(make_instance(spec, "all_gather"), NcclOptions()).problem
    few = Prediction(problem, NcclOptions())
    assert len(few.boxes.kinds) > 0
    monkeypatch.setattr(Boxes, "_shape", lambda *_: object())
    each = Prediction(problem, NcclOptions())
    assert len(each.boxes.kinds) == len(each.boxes.boxes) == len(few.boxes.boxes)
    assert [(box.ranks, box.nics) for box in few.boxes.boxes] == [(box.ranks, box.nics) for box in each.boxes.boxes]
    assert (few.rings.intra, few.gpu, few.boxes.pcie) == (each.rings.intra, each.gpu, each.boxes.pcie)
    assert ring_orders(few.rings) == ring_orders(each.rings)
    assert few.costs == each.costs
    if spec.startswith("rail"):
        assert 1 < len(few.boxes.kinds) < len(few.boxes.boxes)
