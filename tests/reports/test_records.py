"""Reading records for reports."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cwb.core.errors import InputError
from cwb.core.record import RunRecord, append_record
from cwb.reports.records import load_records

Make = Callable[..., RunRecord]


def test_files_and_folders(make_record: Make, tmp_path: Path) -> None:
    """Records come from files and from every *.jsonl file of a folder, in the order of their names."""
    for name, total in (("b.jsonl", 2), ("a.jsonl", 1), ("c.txt", 3)):
        append_record(tmp_path / name, make_record(total=total))
    totals = [record.options["total_bandwidth"] for record in load_records([tmp_path, tmp_path / "c.txt"])]
    assert totals == ["1 GB/s", "2 GB/s", "3 GB/s"]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("", "no records in it"),
        ("{}", "line 1: expected a record of schema"),
        ("[]", "line 1: expected a record of schema"),
        ("not json", "line 1: not JSON"),
        ("\n", "line 1: not JSON"),
        ("[" * 100_000, "line 1: not JSON"),
        ("\xff", "line 1: not JSON"),
    ],
)
def test_what_is_no_record(content: str, problem: str, tmp_path: Path) -> None:
    """A line that is no record is one error that names the file and the line."""
    file = tmp_path / "records.jsonl"
    file.write_bytes(content.encode("latin-1"))
    with pytest.raises(InputError, match=problem) as caught:
        load_records([file])
    assert str(file) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("metrics", 3, "expected an object"),
        ("options", None, "expected an object"),
        ("seconds", [1], "expected an object"),
        ("instance", 7, "expected text"),
        ("solver", {}, "expected text or null"),
        ("verified", "yes", "expected true, false or null"),
        ("started_at", "x" * 10_000 and 5, "expected text"),
    ],
)
def test_fields_of_a_wrong_type(field: str, value: Any, expected: str, make_record: Make, tmp_path: Path) -> None:
    """A record whose fields reports cannot use is one error that names the file, the line and the field."""
    file = tmp_path / "records.jsonl"
    append_record(file, make_record())
    with file.open("a") as stream:
        stream.write(json.dumps(make_record().to_json() | {field: value}) + "\n")
    with pytest.raises(InputError, match=f"line 2.{field}: .*{expected}"):
        load_records([file])


@pytest.mark.parametrize("name", ["missing", "x" * 5000])
def test_no_such_file(name: str, tmp_path: Path) -> None:
    """A path that does not exist, or cannot, is one error that names it."""
    with pytest.raises(InputError, match=name[:100]):
        load_records([tmp_path / name])


def test_a_folder_without_records(tmp_path: Path) -> None:
    """A folder without records says what was looked for."""
    with pytest.raises(InputError, match=r"no \*.jsonl file"):
        load_records([tmp_path])
