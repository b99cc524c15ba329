"""MSCCL programs as schedules, and the commands, from the outside."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from fractions import Fraction

import pytest
from command_line import cwb
from cwb.core.errors import InputError
from cwb.exchange.msccl.dialects import DIALECTS
from cwb.exchange.msccl.files import read_algorithm, xml_text
from cwb.exchange.msccl.flow import flow_of
from cwb.exchange.msccl.lift import lift
from cwb.exchange.msccl.lower import Target, lower
from cwb.instances import load
from cwb.schedules.files import read_schedule, write_schedule
from cwb.schedules.verify import verify
from families import FAMILIES
from programs import algorithm, exchange_all_reduce, ring_all_gather, with_gpu

SIZE = Fraction(2**20)

#: Schedules that become programs and come back.
ROUND_TRIPS = [
    "ring_all_gather",
    "ring_reduce_scatter",
    "ring_all_reduce",
    "recursive_doubling",
    "direct_all_to_all",
    "routed_all_to_all",
    "binomial_broadcast",
    "binomial_reduce",
    "timed_chain_all_reduce",
    "chain_trees",
    "unlike_trees",
]


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("name", ROUND_TRIPS)
def test_what_goes_out_comes_back(name, dialect):
    """A schedule as a program as a schedule: verified again, with the same bytes from rank to rank."""
    instance, answer = FAMILIES[name]()
    flow = flow_of(instance, answer)
    program = lower(flow, Target(DIALECTS[dialect], placement="in"))
    again, schedule = lift(program, instance.network, instance.demand.size_bytes, "again")
    assert verify(again, schedule).ok
    assert again.demand.collective is instance.demand.collective
    rank = {node: r for r, node in enumerate(instance.network.rank_nodes)}
    sends = schedule.sends
    count = Counter((rank[a], rank[b]) for a, b in zip(sends.source.tolist(), sends.target.tolist(), strict=True))
    assert count == Counter(program.transfers)


def test_additions_that_come_later():
    """Data received into scratch memory and added by another thread block is a reduction."""
    instance, schedule = lift(exchange_all_reduce(), load("complete(2)").network, SIZE, "pairs")
    assert schedule.sends.reduce.all()
    assert schedule.steps == 1
    assert verify(instance, schedule).ok


@pytest.mark.parametrize(
    ("program", "network", "problem"),
    [
        (ring_all_gather(3), "complete(4)", "for 3 GPUs"),
        (ring_all_gather(4), "star(4)", None),
        (ring_all_gather(4), "line(4)", "has no link to"),
        (replace(ring_all_gather(4), coll="custom"), "complete(4)", "does not define"),
        (
            algorithm("allgather", 4, *ring_all_gather(4).gpus[:3], ring_all_gather(3).gpus[0]),
            "complete(4)",
            "cannot run",
        ),
        (with_gpu(ring_all_gather(4), 3, blocks=()), "complete(4)", "fails"),
    ],
)
def test_what_is_no_schedule_is_refused(program, network, problem):
    """Another number of GPUs, missing links, custom collectives and programs that go wrong are told in one line."""
    if problem is None:
        assert verify(*lift(program, load(network).network, SIZE, "x")).ok
        return
    with pytest.raises(InputError, match=problem):
        lift(program, load(network).network, SIZE, "x")


@pytest.fixture
def schedule_files(tmp_path):
    """A schedule file of a ring of five, and where its XML goes."""
    instance, answer = FAMILIES["ring_all_gather"]()
    write_schedule(tmp_path / "s.json", instance, answer)
    return tmp_path / "s.json", tmp_path / "a.xml"


def test_export_check_import(schedule_files, tmp_path, capsys):
    """Out, checked, and in again: three commands, status 0, a schedule that is right."""
    schedule, xml = schedule_files
    assert cwb("export", "msccl", schedule, "-o", xml, "--placement", "both", "--dialect", "rccl") == 0
    assert "allgather of 5 GPUs" in capsys.readouterr().err
    assert cwb("check", xml, "--topology", "ring(5)") == 0
    out = capsys.readouterr().out
    assert "right, allgather of 5 GPUs" in out
    assert "in place and out of place" in out
    assert "busiest link: " in out
    assert cwb("import", "msccl", xml, "--topology", "ring(5)", "--size", "5 MB", "-o", tmp_path / "b.json") == 0
    assert cwb("check", tmp_path / "b.json") == 0
    assert read_schedule(tmp_path / "b.json").instance.demand.size_bytes == 5 * 10**6


def test_check_says_what_is_wrong(schedule_files, capsys):
    """A file that leaves out a chunk, or goes over links that there are not, is wrong: status 5, and JSON for
    programs."""
    schedule, xml = schedule_files
    assert cwb("export", "msccl", schedule, "-o", xml) == 0
    assert cwb("check", xml, "--topology", "line(5)", "--json") == 5
    (found,) = json.loads(capsys.readouterr().out)["files"]
    assert found["verified"] is False
    assert any("there is no link" in text for text in found["violations"])
    program = read_algorithm(xml)
    gpus = (replace(program.gpus[0], blocks=program.gpus[0].blocks[:-1]), *program.gpus[1:])
    xml.write_text("".join(xml_text(replace(program, gpus=gpus))))
    assert cwb("check", xml) == 5
    assert "WRONG" in capsys.readouterr().out


def test_a_dialect_that_is_asked_for_must_take_it(schedule_files, capsys):
    """A file of msccl lacks what the others require; asked for, that is wrong."""
    schedule, xml = schedule_files
    assert cwb("export", "msccl", schedule, "-o", xml, "--dialect", "msccl") == 0
    text = xml.read_text().replace(' outofplace="1"', "")
    xml.write_text(text)
    assert cwb("check", xml, "--dialect", "msccl") == 0
    capsys.readouterr()
    assert cwb("check", xml, "--dialect", "rccl") == 5
    assert "has no outofplace" in capsys.readouterr().out


def test_a_folder_has_holes_and_overlaps(schedule_files, tmp_path, capsys):
    """Sizes that no file is for, and sizes that two are for, are told for every runtime by its own bounds."""
    schedule, _ = schedule_files
    for name, low, high in (("a", "0 B", "1 KiB"), ("b", "1 KiB", "4 KiB"), ("c", "5 KiB", "8 KiB")):
        arguments = ("--dialect", "rccl", "--min-bytes", low, "--max-bytes", high)
        assert cwb("export", "msccl", schedule, "-o", tmp_path / f"{name}.xml", *arguments) == 0
    capsys.readouterr()
    assert cwb("check", tmp_path, "--dialect", "rccl") == 0
    out = capsys.readouterr().out
    assert "a.xml and b.xml overlap from 1,024 to 1,024 bytes" in out
    assert "a hole from 4,097 to 5,119 bytes, between b.xml and c.xml" in out


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["check", "{folder}"], "has no .xml file"),
        (["check", "{folder}/none.xml"], "no such file"),
        (["export", "msccl", "{schedule}", "-o", "{folder}/no/a.xml"], "its folder does not exist"),
        (["export", "msccl", "{schedule}", "-o", "{folder}/a.xml", "--min-bytes", "2 GiB"], "expected a range"),
        (["check", "{schedule}", "--topology", "ring(5)"], "MSCCL files"),
        (["import", "msccl", "{folder}/none.xml", "--topology", "ring(5)", "-o", "{folder}/b.json"], "no such file"),
    ],
)
def test_bad_input_is_one_line(schedule_files, tmp_path, capsys, arguments, problem):
    """Unusable input is refused in one line with status 2."""
    words = [word.format(folder=tmp_path, schedule=schedule_files[0]) for word in arguments]
    assert cwb(*words) == 2
    error = capsys.readouterr().err
    assert problem in error
    assert error.startswith("cwb: error: ")
    assert error.count("\n") == 1
