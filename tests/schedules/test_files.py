"""Schedule files: what is written is read again, and what is wrong is told in one line with its place."""

from __future__ import annotations

import gzip
import json
from dataclasses import fields, is_dataclass
from fractions import Fraction

import cwb
import numpy as np
import pytest
from cwb.core import json_stream
from cwb.core.bounds import CutCertificate, DistanceCertificate, SolverBound
from cwb.core.budget import Budget
from cwb.core.collective import Collective, Demand
from cwb.core.errors import InputError
from cwb.core.timing import RankCosts
from cwb.core.trace import Routing
from cwb.harness import registry
from cwb.schedules import strict
from cwb.schedules.files import read_schedule, write_schedule
from cwb.schedules.verify import verify
from families import FAMILIES


def same(a, b) -> bool:
    """Check if two answers are equal, column by column."""
    if is_dataclass(a):
        return type(a) is type(b) and all(same(getattr(a, f.name), getattr(b, f.name)) for f in fields(a))
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and np.array_equal(a, b)
    return a == b


@pytest.mark.parametrize("suffix", [".json", ".json.gz", ".npz"])
@pytest.mark.parametrize("family", FAMILIES)
def test_what_is_written_is_read(family, suffix, tmp_path):
    """Instance, answer, certificate and extra data come back exactly, compressed or not, and are right on their own."""
    instance, answer = FAMILIES[family]()
    path = tmp_path / f"s{suffix}"
    write_schedule(path, instance, answer, CutCertificate((0, 1)), {"method": "x", "options": {"a": [1, None]}})
    read = read_schedule(path)
    assert read.instance == instance
    assert same(read.answer, answer)
    assert read.certificate == CutCertificate((0, 1))
    assert read.extra == {"method": "x", "options": {"a": [1, None]}}
    assert verify(read.instance, read.answer).ok
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("certificate", [None, DistanceCertificate(0, 3), SolverBound("highs", "1.11")])
def test_certificates_come_back(certificate, tmp_path):
    """Every certificate that a schedule can have survives the file."""
    instance, answer = FAMILIES["ring_all_gather"]()
    write_schedule(tmp_path / "s.json", instance, answer, certificate)
    assert read_schedule(tmp_path / "s.json").certificate == certificate


def test_compressed_files_are_the_same_every_time(tmp_path):
    """Neither the name nor the time is in a compressed file."""
    instance, answer = FAMILIES["ring_all_gather"]()
    for suffix in (".json.gz", ".npz"):
        for name in "ab":
            write_schedule(tmp_path / f"{name}{suffix}", instance, answer)
        assert (tmp_path / f"a{suffix}").read_bytes() == (tmp_path / f"b{suffix}").read_bytes()


CHANGES = [
    (
        "ring_all_gather",
        "schema",
        "cwb-schedule/9",
        "schema: 'cwb-schedule/9' is wrong; expected one of cwb-schedule/1",
    ),
    ("ring_all_gather", "answer", "poem", "answer: 'poem' is wrong"),
    ("ring_all_gather", "instance_sha256", "0" * 64, "instance_sha256: 000000000000… is not the digest"),
    ("ring_all_gather", "instance.collective.size_bytes", "6000", "instance_sha256: "),
    ("ring_all_gather", "instance.collective.size_bytes", "NaN", "instance.collective.size_bytes: 'NaN' is wrong"),
    ("ring_all_gather", "instance.collective.ranks", [0, 9], "instance.collective.ranks[1]: 9 is wrong"),
    ("ring_all_gather", "instance.collective.kind", "gossip", "instance.collective.kind: 'gossip' is unknown"),
    ("ring_all_gather", "instance.network.links.source.2", 5, "instance.network.links.source[2]: 5 is wrong"),
    ("ring_all_gather", "instance.network.links.bandwidth_Bps.2", "0", "instance.network.links[2]: bandwidth"),
    ("ring_all_gather", "instance.network.links.latency_s.1", "-1", "links.latency_s[1]: '-1' is wrong"),
    ("ring_all_gather", "instance.network.nodes.kind.1", "router", "instance.network.nodes.kind[1]: 'router' is wrong"),
    (
        "ring_all_gather",
        "instance.network.nodes.name.1",
        7,
        "instance.network.nodes.name[1]: 7 is wrong; expected a name",
    ),
    (
        "ring_all_gather",
        "chunks.units.1",
        2,
        "chunks.units: the data of rank 1 for ranks 0, 2, 3, … is off by 1000 bytes",
    ),
    ("ring_all_gather", "chunks.units.1", 0, "chunks.units[1]: 0 is wrong"),
    ("ring_all_gather", "chunks.units.1", 10**30, "chunks.units[1]: "),
    ("ring_all_gather", "chunks.units.1", True, "chunks.units[1]: True is wrong"),
    ("ring_all_gather", "chunks.unit_bytes", "999", "chunks.units: the data of rank 0"),
    ("ring_all_gather", "chunks.unit_bytes", "0", "chunks.unit_bytes: must be greater than zero"),
    ("ring_all_gather", "instance.collective.kind", 7, ": instance.collective.kind: 7 is wrong; expected a text"),
    ("ring_all_gather", "chunks.unit_bytes", 1000, "chunks.unit_bytes: 1000 is wrong; expected an exact number"),
    ("ring_all_gather", "chunks.groups.0", [], "chunks.groups[0]: expected a list of ranks"),
    ("ring_all_gather", "chunks.groups.0", [9], "chunks.groups[0][0]: 9 is wrong"),
    ("ring_all_gather", "chunks.groups.1", [1, 0], "chunks.groups[1]: expected ranks in increasing order"),
    ("ring_all_gather", "chunks.held_by.3", 77, "chunks.held_by[3]: 77 is wrong"),
    ("ring_all_gather", "sends.path_links.7", 5, "sends.path_links[7]: 5 is wrong; expected an integer from 0 to 4"),
    ("ring_all_gather", "sends.source.7", -1, "sends.source[7]: -1 is wrong"),
    ("ring_all_gather", "sends.source.7", 1.0, "sends.source[7]: 1.0 is wrong"),
    ("ring_all_gather", "sends.step.7", -2, "sends.step[7]: -2 is wrong"),
    ("ring_all_gather", "sends.step", [0], "sends.step: 1 entries; expected 20"),
    ("ring_all_gather", "sends.hops.3", 2, "sends.hops: adds up to 21, but there are 20"),
    ("ring_all_gather", "sends.reduce.3", 2, "sends.reduce[3]: 2 is wrong"),
    ("ring_all_gather", "sends.target", "all", "sends.target: 'all' is wrong; expected a list"),
    ("ring_all_gather", "sends.color", 1, "sends.color: unknown field"),
    ("ring_all_gather", "color", 1, "color: unknown field"),
    ("ring_all_gather", "extra", [1], "extra: [1] is wrong; expected an object"),
    ("ring_all_gather", "certificate", {"certificate": "oath"}, "certificate.certificate: 'oath' is wrong"),
    ("ring_all_gather", "certificate", {"certificate": "cut", "nodes": [-1]}, "certificate.nodes[0]: -1 is wrong"),
    ("timed_ring_all_gather", "sends.start_s.4", -1e-6, "sends.start_s[4]: -1e-06 is wrong"),
    ("timed_ring_all_gather", "sends.start_s.4", 1.0, "sends.start_s: a send starts before 0 or ends before it starts"),
    ("timed_ring_all_gather", "sends.end_s.4", "soon", "sends.end_s[4]: 'soon' is wrong"),
    ("chain_trees", "trees.root.2", 5, "trees.root[2]: 5 is wrong"),
    ("chain_trees", "trees.units.2", 3, "trees.units: the trees of rank 1 are off by 2000 bytes"),
    ("chain_trees", "trees.edges.2", 3, "trees.edges: adds up to 39, but there are 40"),
    ("unlike_trees", "trees.reduction.hops.0", 3, "trees.reduction.hops: adds up to 8, but there are 6"),
    ("unlike_trees", "trees.reduction.child.1", 4, "trees.reduction.child[1]: 4 is wrong"),
    ("unlike_trees", "trees.reduction.roots", [0], "trees.reduction.roots: unknown field"),
    ("unlike_trees", "trees.reduction", [], "trees.reduction: [] is wrong; expected an object"),
    ("unlike_trees", "trees.kind", "out", "trees.reduction: unknown field"),
    ("chain_trees", "trees.reduction", {}, "trees.reduction: unknown field"),
    ("switched_trees", "trees.kind", "bush", "trees.kind: 'bush' is wrong"),
]


@pytest.mark.parametrize(
    ("family", "place", "value", "told"), CHANGES, ids=[f"{c[1]}-{i}" for i, c in enumerate(CHANGES)]
)
def test_what_is_wrong_is_told_with_its_place(family, place, value, told, tmp_path):
    """One wrong entry anywhere is an input error of one line that names the file, the place and the value."""
    instance, answer = FAMILIES[family]()
    path = tmp_path / "s.json"
    write_schedule(path, instance, answer)
    data = json.loads(path.read_text())
    *parents, last = place.split(".")
    where = data
    for name in parents:
        where = where[name]
    where[int(last) if isinstance(where, list) else last] = value
    path.write_text(json.dumps(data))
    with pytest.raises(InputError) as error:
        read_schedule(path)
    assert str(error.value).startswith(f"{path}: ")
    assert told in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("suffix", [".json", ".json.gz", ".npz"])
def test_a_file_cut_anywhere_is_refused(suffix, tmp_path):
    """However much is missing at the end, the error is one line."""
    instance, answer = FAMILIES["ring_all_gather"]()
    path = tmp_path / f"s{suffix}"
    write_schedule(path, instance, answer)
    whole = path.read_bytes()
    for size in range(0, len(whole), max(len(whole) // 50, 1)):
        path.write_bytes(whole[:size])
        with pytest.raises(InputError):
            read_schedule(path)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (b'{"schema": NaN}', "NaN is not a number"),
        (b'{"schema": 1, "schema": 2}', "is given twice"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"\xff": 1}', "not UTF-8"),
        (b"[1]", "[1] is wrong; expected an object"),
        (b'{"schema": ' + b"1" * 5000 + b"}", "an integer of 5,000 digits"),
        (b"{}", "schema: missing"),
    ],
)
def test_texts_that_are_no_schedule(text, told, tmp_path):
    """Whatever the bytes are, the error is one line."""
    path = tmp_path / "s.json"
    path.write_bytes(text)
    with pytest.raises(InputError, match=r"s\.json: ") as error:
        read_schedule(path)
    assert told in str(error.value)


def test_no_file_and_a_folder(tmp_path):
    """A missing file and a folder are told as such."""
    with pytest.raises(InputError, match="no such file"):
        read_schedule(tmp_path / "none.json")
    with pytest.raises(InputError, match="is a directory"):
        read_schedule(tmp_path)


def test_a_bomb_is_not_unpacked(tmp_path, monkeypatch):
    """A small file that unpacks to more than the limit is refused while it is unpacked."""
    monkeypatch.setattr(strict, "MAX_BYTES", 2**20)
    path = tmp_path / "s.json.gz"
    path.write_bytes(gzip.compress(b" " * 2**24))
    with pytest.raises(InputError, match="bytes of text"):
        strict.read_json(path, 2**20)


@pytest.mark.parametrize(
    ("family", "column", "told"),
    [
        ("ring_all_gather", "sends.step", "sends.step: "),
        ("ring_all_gather", "sends.path_links", "sends.hops: adds up to "),
        ("ring_all_gather", "sends.chunk", "sends.hops: "),
        ("ring_all_gather", "chunks.units", "chunks.units: "),
        ("chain_trees", "trees.root", "trees.root: "),
        ("chain_trees", "trees.path_links", "trees.hops: adds up to "),
        ("chain_trees", "trees.child", "trees.edges: adds up to "),
        ("ring_all_gather", "sends.more", "sends.more: unknown field"),
    ],
)
@pytest.mark.parametrize("entries", ["0,", "0.5, ", "0,0.5,"])
def test_a_long_column_is_refused_before_it_is_parsed(family, column, told, entries, tmp_path, monkeypatch):
    """A column of text that is longer than others allow is rejected by its length; its numbers are never parsed."""

    def refuse_parsing(text):
        raise AssertionError(f"{len(text):,} characters were parsed")

    monkeypatch.setattr(json_stream, "_numbers", refuse_parsing)
    instance, answer = FAMILIES[family]()
    write_schedule(tmp_path / "s.json", instance, answer)
    data = json.loads((tmp_path / "s.json").read_text())
    part, name = column.split(".")
    data[part][name] = "HERE"
    path = tmp_path / "s.json.gz"
    path.write_bytes(gzip.compress(json.dumps(data).replace('"HERE"', f"[{entries * 10_000}0]").encode()))
    with pytest.raises(InputError, match=told):
        read_schedule(path)


def test_nothing_half_written_is_left(tmp_path):
    """A schedule for another instance, and a folder that is not there, leave no file behind."""
    instance, answer = FAMILIES["ring_all_gather"]()
    other, _ = FAMILIES["ring_all_reduce"]()
    with pytest.raises(InputError, match="another instance"):
        write_schedule(tmp_path / "s.json", other, answer)
    with pytest.raises(InputError, match="no such file"):
        write_schedule(tmp_path / "none" / "s.json", instance, answer)
    with pytest.raises(TypeError):
        write_schedule(tmp_path / "s.json", instance, answer, None, {"not": object()})
    with pytest.raises(InputError, match=r"s.json: 'str'; expected a schedule or trees"):
        write_schedule(tmp_path / "s.json", instance, "text")
    assert not list(tmp_path.iterdir())


def test_a_path_may_be_a_text(tmp_path, monkeypatch):
    """A path that is a str is one."""
    monkeypatch.chdir(tmp_path)
    instance, answer = FAMILIES["ring_all_gather"]()
    write_schedule("text", instance, answer)
    assert same(read_schedule(tmp_path / "text").answer, answer)


def test_costs_of_ranks_and_routing_come_back(tmp_path):
    """A schedule file keeps costs and routing of its instance, and does not name those that an instance lacks."""
    instance = cwb.load("ring(4)").with_changes(demand=Demand(Collective.ALL_REDUCE, Fraction(2**20)))
    method = registry.get("ring")
    all_costs = RankCosts(Fraction(1, 3), Fraction(7), None, while_receiving=True)
    for costs, routing in ((None, Routing.FIXED), (all_costs, Routing.SPRAY)):
        here = instance.with_changes(rank_costs=costs, routing=routing)
        write_schedule(tmp_path / "s.json", here, method.run(here, None, Budget(), method.options()).answer)
        assert read_schedule(tmp_path / "s.json").instance == here
        assert ("routing" in (tmp_path / "s.json").read_text()) == (routing is not Routing.FIXED)
        assert ("rank_costs" in (tmp_path / "s.json").read_text()) == (costs is not None)
