"""Files that commands do not overwrite without ``--force``."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from command_line import cwb
from cwb.core.files import is_replaceable

OWN = {
    "s.json": b'{"schema": "cwb-schedule/1", "answer": "step-schedule"}',
    "d.json": b'{\n "schema": "cwb-answer/1",\n "instance": "4d"}',
    "s.json.gz": gzip.compress(b'{"schema": "cwb-schedule/1"}'),
    "s.npz": b"PK\x03\x04" + bytes(26) + b"file.json",
    "t.md": b"**Sizes**\n\n| Instance |\n",
    "t.csv": b'"instance","method"\n"a","b"\n',
    "t.txt": b"Sizes\n\nInstance  Method    Time\n                      us\n--------------\n",
    "t.tex": b"\\begin{table}\n\\centering\n",
    "m.lp": b"\\* Source Pyomo model name=m *\\\n",
    "m.mps": b"NAME        \nROWS\n",
    "a.xml": b'<algo name="a" proto="Simple">',
    "s.goal": b"num_ranks 4\n",
    "s.cm": b"Nodes 4\nConnections 24\n",
}

FOREIGN = {
    "notes.txt": b"Things to do:\n\n- measure\n",
    "heading.txt": b"My notes\n\nSection\n----------\n",
    "links.csv": b"source,target\na,b\n",
    "data.json": b'{"schema": "other/1", "cwb": 1}',
    "instance.json": b'{"schema": "cwb-instance/1", "name": "mine", "network": "ring(4)"}',
    "records.jsonl": b'{"schema": "cwb-record/1", "model": "ring"}\n',
    "page.html": b"<!DOCTYPE html>\n<html><head><title>cwb</title></head></html>",
    "binary": bytes(range(256)),
    "broken.json.gz": gzip.compress(b"a" * 1000)[:20],
}


@pytest.mark.parametrize("name", OWN)
def test_own_files_are_known_by_their_beginning(name, tmp_path):
    """Every format that cwb writes is recognized, by its own mark or the format's first line."""
    (tmp_path / name).write_bytes(OWN[name])
    assert is_replaceable(tmp_path / name, with_instance=False)


@pytest.mark.parametrize("name", FOREIGN)
def test_other_files_are_kept(name, tmp_path):
    """Neither text and data of others nor instances and records of the user are taken for outputs of cwb."""
    (tmp_path / name).write_bytes(FOREIGN[name])
    assert not is_replaceable(tmp_path / name, with_instance=True)


def test_imported_instances_are_replaced_by_instances_alone(tmp_path):
    """An instance with a source is overwritten by another import, and not by a schedule."""
    path = tmp_path / "i.json"
    path.write_text('{\n  "schema": "cwb-instance/1",\n  "name": "i",\n  "source": "l.csv"\n}')
    assert is_replaceable(path, with_instance=True)
    assert not is_replaceable(path, with_instance=False)


def test_new_empty_and_special_files_are_written(tmp_path):
    """A new file, an empty one and a device have nothing to lose."""
    (tmp_path / "empty").touch()
    assert all(
        is_replaceable(path, with_instance=False) for path in (tmp_path / "n", tmp_path / "empty", Path("/dev/null"))
    )


SOLVE = ("solve", "ring(3)", "-m", "ring", "--collective", "all_gather", "-q")


def test_solve_refuses_and_force_overwrites(tmp_path, capsys):
    """Without --force one line names the file, with status 2 and the file as it was; with it the file is replaced."""
    path = tmp_path / "s.json"
    path.write_text("my notes")
    assert cwb(*SOLVE, "-o", path) == 2
    assert path.read_text() == "my notes"
    assert capsys.readouterr().err == (
        f"cwb: error: {path}: cwb did not write this file; expected another name, or --force\n"
    )
    assert cwb(*SOLVE, "-o", path, "--force") == 0
    assert cwb(*SOLVE, "-o", path) == 0


@pytest.mark.parametrize("form", ["svg", "pdf", "png", "html"])
def test_pictures_and_pages_carry_a_mark(form, tmp_path):
    """A picture is replaced silently; one of another program is not, also where its name is the default."""
    schedule = tmp_path / "s.json"
    assert cwb(*SOLVE, "-o", schedule) == 0
    output = tmp_path / f"s.{form}"
    assert cwb("plot", schedule, "-o", output) == 0
    assert cwb("plot", schedule, "-o", output) == 0
    output.write_bytes(output.read_bytes().replace(b"cwb", b"abc"))
    assert cwb("plot", schedule, "-o", output) == 2
    if form in ("svg", "html"):
        command = {"svg": "plot", "html": "view"}[form]
        assert cwb(command, schedule) == 2
        assert cwb(command, schedule, "--force") == 0


def test_records_are_appended_to(tmp_path):
    """A ledger is no output file: --append goes on with it."""
    ledger = tmp_path / "r.jsonl"
    assert [cwb(*SOLVE, "--append", ledger) for _ in range(2)] == [0, 0]
    assert len(ledger.read_text().splitlines()) == 2
