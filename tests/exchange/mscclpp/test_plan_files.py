"""Plans are read in bounds, and ``cwb check`` knows them by what they say."""

from __future__ import annotations

import json

import click
import pytest
from click.testing import CliRunner
from cwb import check, export_mscclpp
from cwb.cli.main import cwb as program
from cwb.core.errors import InputError
from cwb.core.topology import Node, Topology
from cwb.exchange.mscclpp import files
from cwb.exchange.mscclpp.files import is_plan, json_text, parse_plan, read_plan
from cwb.exchange.mscclpp.rules import channels_between_boxes
from cwb.schedules.files import write_schedule
from families import FAMILIES
from plans import PLANS, exchange_plan, pipelined_plan, switch_plan, with_op


def data_of(plan):
    """A plan as plain data."""
    return json.loads("".join(json_text(plan)))


def plan_of_data(data):
    """A plan of plain data."""
    return parse_plan(json.dumps(data).encode())


@pytest.mark.parametrize("name", PLANS)
def test_plans_are_read_as_they_were_written(name):
    """Every field of every operation comes back."""
    plan = PLANS[name]()
    assert plan_of_data(data_of(plan)) == plan


def test_what_may_be_left_out_has_the_value_of_the_executor():
    """Only what the executor requires has to be there."""
    data = data_of(exchange_plan())
    kept = {name: data[name] for name in ("name", "collective", "protocol", "inplace", "gpus")}
    for gpu in kept["gpus"]:
        del gpu["semaphores"]
    assert plan_of_data(kept) == exchange_plan()


def test_an_older_field_is_read_and_told():
    """``buff`` of a switch channel became ``buffer_type``."""
    data = data_of(pipelined_plan())
    for gpu in data["gpus"]:
        gpu["channels"][1]["buff"] = gpu["channels"][1].pop("buffer_type")
    assert plan_of_data(data).old == ("a switch channel has buff, which is buffer_type today: rejected",)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda d: d.pop("inplace"), "inplace: is missing"),
        (lambda d: d.update(inplace=1), "inplace: expected true or false, not 1"),
        (lambda d: d.update(gpus={}), "gpus: expected a list"),
        (lambda d: d.update(gpus=[]), "gpus: 0 GPUs; expected 1 to 16,384"),
        (lambda d: d.update(gpus=[3]), r"gpus\[0\]: expected an object, not 3"),
        (lambda d: d["gpus"][0].pop("id"), r"gpus\[0\].*id: is missing"),
        (lambda d: d["gpus"][1].update(id=2**40), r"gpus\[1\].*id: expected an integer below 2,147,483,648"),
        (lambda d: d["gpus"][0]["threadblocks"][0].update(ops=[{}]), r"ops\[0\]: expected an operation"),
        (
            lambda d: d["gpus"][0]["threadblocks"][0]["ops"][3].update(src_buff=[4]),
            r"put.*src_buff\[0\]: expected a buffer",
        ),
        (lambda d: d["gpus"][0]["threadblocks"][0]["ops"][3].update(channel_ids=[None]), r"channel_ids\[0\]"),
        (lambda d: d["gpus"][0]["channels"][0].update(connected_to=["a"]), r"connected_to\[0\]: expected an integer"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(change, problem):
    """One line names the place, the value, and what was expected."""
    data = data_of(exchange_plan())
    change(data)
    with pytest.raises(InputError, match=problem):
        plan_of_data(data)


@pytest.mark.parametrize("raw", [b"[]", b"3", b"{", b"\xff\xfe", b'{"name": "a"}', b"[" * 5000])
def test_what_is_no_plan_is_refused(raw):
    """Other texts are one line of an error."""
    with pytest.raises(InputError):
        parse_plan(raw)


def test_objects_are_bounded(monkeypatch):
    """JSON objects that are neither operations nor buffers take memory and are counted."""
    monkeypatch.setattr(files, "MAX_OBJECTS", 10)
    with pytest.raises(InputError, match="more than 10 objects"):
        parse_plan(b"[" + b"{}," * 10 + b"{}]")


def test_files_are_bounded(tmp_path, monkeypatch):
    """A file that is too large is not read to its end."""
    path = tmp_path / "a.json"
    path.write_bytes(b" " * 100)
    monkeypatch.setattr(files, "MAX_BYTES", 10)
    with pytest.raises(InputError, match="bytes; expected at most 10"):
        read_plan(path)
    with pytest.raises(InputError, match="no such file"):
        read_plan(tmp_path / "b.json")


def call(*arguments):
    """(exit status, output) of a command; errors come out as they are."""
    with CliRunner().isolation() as (out, _, _):
        status = program.main([str(one) for one in arguments], standalone_mode=False)
        return status, out.getvalue().decode()


def test_check_knows_a_plan_by_what_it_says(tmp_path):
    """A right plan ends with 0, a wrong one with 5, one that cannot be read with an error of one line."""
    path = tmp_path / "plan.json"
    path.write_text("".join(json_text(exchange_plan())))
    assert is_plan(path)
    status, told = call("check", path, "--topology", "complete(2)")
    assert (status, "right, allreduce of 2 GPUs" in told) == (0, True)
    assert "carries 1 chunk, each 1/1 of the data" in told
    path.write_text("".join(json_text(with_op(exchange_plan(), 0, 0, 5, channels=(1,)))))
    status, told = call("check", path)
    assert (status, "not run" in told) == (5, True)
    path.write_text("".join(json_text(exchange_plan())).replace('"size": 1', '"size": -1.5'))
    with pytest.raises(InputError, match="expected an integer"):
        call("check", path)
    with pytest.raises(click.UsageError, match="of MSCCL files"):
        call("check", path, "--dialect", "rccl")


def test_check_tells_a_plan_as_json(tmp_path):
    """All that is found is one object."""
    path = tmp_path / "plan.json"
    path.write_text("".join(json_text(exchange_plan())))
    status, told = call("check", path, "--json")
    data = json.loads(told)
    assert status == 0
    assert (data["verified"], data["ran"], data["transfers"]) == (True, True, [[0, 1, "1"], [1, 0, "1"]])


def test_export_writes_a_plan(tmp_path):
    """From a schedule to a plan that passes its check."""
    schedule, path = tmp_path / "s.json", tmp_path / "p.json"
    write_schedule(schedule, *FAMILIES["ring_all_reduce"]())
    call("export", "mscclpp", schedule, "-o", path, "--protocol", "LL", "--inplace")
    status, told = call("check", path)
    assert (status, "in place" in told) == (0, True)
    with pytest.raises(InputError, match="expected Simple"):
        call("export", "mscclpp", schedule, "-o", path, "--box", "2", "--protocol", "LL")


@pytest.mark.parametrize("network", ["dgx_h100(boxes=2)", "dgx_a100(boxes=2)", "mi300x(boxes=2)"])
def test_gpus_of_different_boxes_have_ports(network, tmp_path, solve_method):
    """Boxes are those of the network without an option, and the check rejects a memory channel between them."""
    schedule, path = tmp_path / "s.json", tmp_path / "p.json"
    write_schedule(schedule, *solve_method(network, "ring", "all_gather"))
    assert export_mscclpp(schedule, output=path).about.endswith("memory and port channels")
    kinds = {
        (channel["channel_type"], gpu["id"] // 8 == peer // 8)
        for gpu in json.loads(path.read_text())["gpus"]
        for channel in gpu["channels"]
        for peer in channel["connected_to"]
    }
    assert kinds == {("memory", True), ("port", False)}
    assert check(path, topology=network).ok
    assert export_mscclpp(schedule, output=path, box=16).about.endswith("GPU, memory channels")
    found = check(path, topology=network)
    assert not found.ok
    assert found.data["violations"][0].startswith("boxes: gpu 0: memory channel to gpu ")


def test_boxes_of_plain_networks_are_unknown(tmp_path, solve_method):
    """Ranks of a ring are taken to be in one box, and the export says so."""
    schedule, path = tmp_path / "s.json", tmp_path / "p.json"
    write_schedule(schedule, *solve_method("ring(4)", "ring", "all_gather"))
    about = export_mscclpp(schedule, output=path).about
    assert "memory channels; names of nodes give no boxes: all GPUs are taken to be in one (see --box)" in about
    assert check(path, topology="ring(4)").ok


def test_boxes_of_a_group_without_some_gpus(tmp_path):
    """Boxes come from names, so that a box with fewer GPUs than others moves no border."""
    nodes = tuple(map(Node, ("box0.gpu1", "box1.gpu0", "box1.gpu1", "alone")))
    network = Topology(nodes, ())
    assert network.box_names() == ("box0", "box1", "box1", "alone")
    assert network.box_names([2, 0]) == ("box1", "box0")
    assert Topology((Node("gpu0"), Node("gpu1")), ()).box_names() == ("", "")
    assert Topology((Node("0"), Node("1")), ()).box_names() is None
    assert channels_between_boxes(exchange_plan(), None) == []
    assert [one.place for one in channels_between_boxes(exchange_plan(), ("a", "b"))] == ["gpu 0", "gpu 1"]
    assert {one.text for one in channels_between_boxes(switch_plan(), ("a", "b"))} >= {
        "switch channel to gpu 1 of another box; expected a port"
    }
