"""JSONL files: whole lines or nothing, broken ones moved aside."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from cwb.core import jsonl
from cwb.core.errors import InputError
from cwb.core.jsonl import lock_for_append, move_broken_lines
from hypothesis import given, settings
from hypothesis import strategies as st


def append(path: Path, *lines: bytes) -> None:
    for line in lines:
        with lock_for_append(path) as file:
            file.append(line)


def test_a_cut_line_is_moved_aside_by_the_next_append(tmp_path: Path) -> None:
    """A partial line of a writer that died is kept beside the file, and the next line stands alone."""
    path = tmp_path / "a.jsonl"
    append(path, b'{"a": 1}\n')
    with path.open("ab") as stream:
        stream.write(b'{"b": ' + b"x" * 200_000)
    append(path, b'{"c": 3}\n')
    assert path.read_bytes() == b'{"a": 1}\n{"c": 3}\n'
    assert (tmp_path / "a.jsonl.broken").read_bytes() == b'{"b": ' + b"x" * 200_000 + b"\n"


def test_a_whole_line_without_its_end_is_completed(tmp_path: Path) -> None:
    """A last line that lacks its newline alone is not lost."""
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"a": 1}')
    append(path, b'{"c": 3}\n')
    assert path.read_bytes() == b'{"a": 1}\n{"c": 3}\n'
    path.write_bytes(b'{"a": 1}')
    assert move_broken_lines(path) == 0
    assert path.read_bytes() == b'{"a": 1}\n'
    assert not (tmp_path / "a.jsonl.broken").exists()


def test_a_full_disk_takes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a line that the disk took in part nothing stays, and it is told."""
    path = tmp_path / "a.jsonl"
    append(path, b'{"a": 1}\n')
    write = os.write
    monkeypatch.setattr(jsonl.os, "write", lambda descriptor, line: write(descriptor, line[:5]))
    with pytest.raises(InputError, match=r"took 5 of a record's 9 bytes: is the disk full\?"):
        append(path, b'{"b": 2}\n')
    assert path.read_bytes() == b'{"a": 1}\n'


@given(
    lines=st.lists(st.one_of(st.just(b'{"a": 1}'), st.binary(max_size=12).map(lambda b: b.replace(b"\n", b"")))),
    end=st.booleans(),
)
@settings(max_examples=60)
def test_heal_keeps_every_byte(tmp_path_factory: pytest.TempPathFactory, lines: list[bytes], end: bool) -> None:
    """Whatever is in a file, its objects stay in their order and everything else is in the file beside it."""
    path = tmp_path_factory.mktemp("heal") / "a.jsonl"
    path.write_bytes(b"\n".join(lines) + (b"\n" if end and lines else b""))
    written = path.read_bytes().split(b"\n")
    written = written[:-1] if written[-1] == b"" else written
    good = [line for line in written if _is_object(line)]
    bad = [line for line in written if not _is_object(line)]
    assert move_broken_lines(path) == len(bad)
    assert path.read_bytes() == b"".join(line + b"\n" for line in good)
    broken = path.with_name("a.jsonl.broken")
    assert (broken.read_bytes() if broken.exists() else b"") == b"".join(line + b"\n" for line in bad)
    assert move_broken_lines(path) == 0


def _is_object(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return False


WRITER = """
import json, sys
from pathlib import Path
from cwb.core.jsonl import lock_for_append, move_broken_lines
path, name = Path(sys.argv[1]), int(sys.argv[2])
for number in range(30):
    with lock_for_append(path) as file:
        file.append(json.dumps({"writer": name, "number": number, "text": "x" * 5000}).encode() + b"\\n")
    if number % 10 == 9:
        move_broken_lines(path)
"""


def test_processes_at_once(tmp_path: Path) -> None:
    """Four processes that append and heal a file that is broken again and again lose nothing of each other."""
    path = tmp_path / "a.jsonl"
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, str(path), str(name)]) for name in range(4)]
    while any(writer.poll() is None for writer in writers):
        with lock_for_append(path) as file:
            os.write(file.descriptor, b"nonsense\n")
        time.sleep(0.02)
    assert [writer.returncode for writer in writers] == [0] * 4
    move_broken_lines(path)
    found = [json.loads(line) for line in path.read_bytes().splitlines()]
    assert sorted((line["writer"], line["number"]) for line in found) == [(w, n) for w in range(4) for n in range(30)]


def test_what_is_replaced_while_it_is_waited_for(tmp_path: Path) -> None:
    """A file that was replaced before the lock was had is opened anew."""
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"a": 1}\nnonsense\n')
    with lock_for_append(path) as file:
        path.rename(tmp_path / "old")
        assert not jsonl.is_open(file.descriptor, path)
    append(path, b'{"b": 2}\n')
    assert path.read_bytes() == b'{"b": 2}\n'


def test_no_file(tmp_path: Path) -> None:
    """Nothing to heal is no error; what cannot be read is."""
    assert move_broken_lines(tmp_path / "a.jsonl") == 0
    with pytest.raises(InputError, match="is a directory"):
        move_broken_lines(tmp_path)


def test_devices_are_written_to_as_they_are() -> None:
    """Records can be appended to a device, which has no lines to heal and stays what it is."""
    path = Path("/dev/null")
    append(path, b'{"a": 1}\n')
    assert move_broken_lines(path) == 0
    assert path.is_char_device()
