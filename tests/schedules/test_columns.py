"""Schedule files with binary columns: what is wrong in an archive is one line, and nothing large is read."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import numpy as np
import pytest
from cwb.core.errors import InputError
from cwb.schedules import strict
from cwb.schedules.files import read_schedule, write_schedule
from cwb.schedules.strict import integers
from families import FAMILIES
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """A right file."""
    path = tmp_path / "s.npz"
    write_schedule(path, *FAMILIES["ring_all_gather"]())
    return path


def change_members(path: Path, members: dict[str, bytes | None]) -> Path:
    """The archive with other members; None takes one out."""
    with zipfile.ZipFile(path) as old:
        content = {name: old.read(name) for name in old.namelist()} | members
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
        for name, data in content.items():
            if data is not None:
                new.writestr(name, data)
    return path


def npy(descr: str, shape: str, content: bytes) -> bytes:
    """A column with a header of one's own."""
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + content


WRONG = {
    "a column of objects": ({"sends/chunk.npy": npy("|O", "(1,)", b"")}, "sends/chunk.npy: \"{'descr': '|O', 'fortran"),
    "a type that is none": ({"sends/chunk.npy": npy("|f1", "(1,)", b"1")}, "expected one axis of numbers"),
    "a header that is code": (
        {"sends/chunk.npy": npy("<i8", "(exit(),)", b"")},
        "is wrong; expected one axis of numbers",
    ),
    "a table": (
        {"sends/chunk.npy": npy("<i8", "(2, 2)", bytes(32))},
        "'shape': (2, 2), }\" is wrong; expected one axis",
    ),
    "a list of text": (
        {"sends/chunk.npy": b"[0, 1]"},
        "sends/chunk.npy: b'[0, 1]' is wrong; expected one axis of numbers",
    ),
    "a list and a column": (
        {"file.json": b'{"instance": {"network": {"links": {"source": [0, 1]}}}}'},
        "links.source: is in file.json too; expected it in instance/network/links/source.npy alone",
    ),
    "too few numbers": ({"sends/chunk.npy": npy("<i8", "(3,)", bytes(16))}, "16 bytes of numbers; expected 24"),
    "a column that is missing": ({"sends/chunk.npy": None}, "sends.chunk: missing, but required"),
    "a column of nobody": ({"sends/color.npy": npy("|u1", "(1,)", b"1")}, "sends.color: unknown field"),
    "a column without a place": ({"color/red.npy": npy("|u1", "(1,)", b"1")}, "color.red: has no object in file.json"),
    "a path that leaves": ({"../../x.npy": npy("|u1", "(1,)", b"1")}, "is wrong; expected a column such as"),
    "no object": ({"file.json": None}, "expected file.json and at most 64 columns"),
    "an object that is none": ({"file.json": b"[1]"}, "has no object in file.json; expected no "),
    "a number out of range": ({"sends/source.npy": npy("<i8", "(20,)", bytes([9]) + bytes(159))}, "sends.source[0]: 9"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_one_line(name, archive):
    """A member that is missing, foreign or of another form is an input error that names it."""
    members, line = WRONG[name]
    with pytest.raises(InputError) as caught:
        read_schedule(change_members(archive, members))
    assert line in str(caught.value)
    assert "\n" not in str(caught.value)


def test_another_compression_is_refused(archive):
    """A member that is packed in a way that numpy does not use is an input error that names it."""
    with zipfile.ZipFile(archive, "a", zipfile.ZIP_LZMA) as more:
        more.writestr("a.npy", bytes(8))
    with pytest.raises(InputError, match=r"a\.npy: another compression"):
        read_schedule(archive)


def test_an_archive_that_grows_is_refused_before_it_is_read(archive, monkeypatch):
    """An archive whose members add up to more than a schedule may have is refused by the sizes that it states."""
    monkeypatch.setattr(strict, "MAX_NUMBERS", 2**12)
    with zipfile.ZipFile(archive, "a", zipfile.ZIP_DEFLATED) as more:
        more.writestr("a.npy", bytes(2**15))
    with pytest.raises(InputError, match=r"bytes when decompressed; expected at most 32,768"):
        read_schedule(archive)


def test_what_is_wrong_is_said_before_anything_is_expanded(archive, monkeypatch):
    """A long column beside short ones is rejected by its length, a header with a wrong length by the member's size."""

    def expand(column):
        assert len(column) < 2**20, "a large column was expanded"
        return original(column)

    original = strict.Column.read
    monkeypatch.setattr(strict.Column, "read", expand)
    whole = archive.read_bytes()
    change_members(archive, {"sends/target.npy": npy("|u1", f"({2**23},)", bytes(2**23))})
    assert archive.stat().st_size < 2**16
    with pytest.raises(InputError, match=r"sends.target: 8,388,608 entries; expected 20"):
        read_schedule(archive)
    archive.write_bytes(whole)
    change_members(archive, {"sends/path_links.npy": npy("|u1", f"({2**23},)", bytes(2**23))})
    with pytest.raises(InputError, match=r"sends.hops: adds up to 20, but there are 8,388,608"):
        read_schedule(archive)
    archive.write_bytes(whole)
    change_members(archive, {"sends/target.npy": npy("|u1", "(20,)", bytes(2**23))})
    with pytest.raises(InputError, match=r"8,388,608 bytes of numbers; expected 20"):
        read_schedule(archive)
    archive.write_bytes(whole)
    change_members(archive, {"sends/more.npy": npy("|u1", f"({2**23},)", bytes(2**23))})
    with pytest.raises(InputError, match=r"sends.more: unknown field"):
        read_schedule(archive)


@pytest.mark.parametrize(("name", "last"), [("source", "9"), ("step", "-1")])
def test_a_wrong_number_of_a_long_column_is_named(name, last):
    """The first wrong number of an array is named without making a list of the array."""
    values = np.concatenate([np.zeros(2**20, dtype=np.int64), [int(last)]])
    with pytest.raises(InputError, match=rf"{name}\[1048576\]: {last} is wrong; expected an integer from 0 to 4"):
        integers(values, 0, 5, name)
    with pytest.raises(InputError, match=rf"{name}\[0\]: 0.0 is wrong"):
        integers(values.astype(np.float64), 0, 5, name)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(at=st.integers(0, 10**6), with_=st.binary(max_size=4), cut=st.booleans())
def test_broken_archives_are_input_errors(at, with_, cut, archive):
    """Bytes that are changed, put in or cut off give the same schedule or an input error, and nothing else."""
    raw = archive.read_bytes()
    at %= len(raw)
    broken = archive.with_name("broken.npz")
    broken.write_bytes(raw[:at] + with_ + (b"" if cut else raw[at + len(with_) :]))
    try:
        read_schedule(broken)
    except InputError as error:
        assert "\n" not in str(error)


def test_numpy_opens_the_columns(archive):
    """The columns are those of numpy, in the smallest type that holds them."""
    _, answer = FAMILIES["ring_all_gather"]()
    with np.load(archive, allow_pickle=False) as opened:
        found = opened["sends/chunk"]
        assert json.loads(opened["file.json"])["answer"] == "step-schedule"
    assert found.dtype == np.uint8
    assert np.array_equal(found, answer.sends.chunk)
