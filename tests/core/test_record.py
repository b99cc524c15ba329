"""Records: what is written is read, whole lines only."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from cwb.core.errors import InputError
from cwb.core.record import EXIT_STATUS, SCHEMA, RunRecord, append_record, read_records

RECORD = RunRecord(
    cwb_version="0.1.0",
    model="libra",
    kind="exact",
    instance="4d",
    instance_sha256="0" * 64,
    collective=None,
    solver="highs",
    solver_version="1.9",
    options={"objective": "perf", "constraints": ["B1 >= B2"]},
    seed=0,
    threads=1,
    status="optimal",
    objective=0.1,
    objective_unit="s",
    bound=0.1,
    gap=0.0,
    verified=True,
    violations=("one", "two"),
    metrics={"bandwidth_GBps": [1.5, 2.5], "note": "µ"},
    seconds={"total": 0.25},
    size={"variables": 3},
    answer={"answer": "bandwidth-plan", "bandwidth_Bps": [1e9]},
)

#: What the design promises to other people's scripts.
CONTRACT = [
    "schema",
    "cwb_version",
    "model",
    "kind",
    "instance",
    "instance_sha256",
    "collective",
    "solver",
    "solver_version",
    "options",
    "seed",
    "threads",
    "status",
    "objective",
    "objective_unit",
    "sense",
    "bound",
    "gap",
    "verified",
    "violations",
    "metrics",
    "seconds",
    "size",
    "answer",
    "message",
    "host",
    "started_at",
    "proof",
]


def test_a_record_survives_json() -> None:
    """Reading what was written gives the same record, and the JSON begins with its schema."""
    text = json.dumps(RECORD.to_json(), allow_nan=False)
    assert text.startswith(f'{{"schema": "{SCHEMA}"')
    assert RunRecord.from_json(json.loads(text), source="x", place="line 1") == RECORD


def test_a_record_has_every_field_of_the_contract() -> None:
    """Scripts find all fields that the design lists, also where they are null."""
    assert set(CONTRACT) <= set(RECORD.to_json())


def test_an_old_record_has_an_attested_bound() -> None:
    """A record that does not say how its bound is known is read, and claims no more than somebody's word; without a
    bound there is none."""
    old = {name: value for name, value in RECORD.to_json().items() if name != "proof"}
    record = RunRecord.from_json(old, source="x", place="line 1")
    assert (record.proof, record.shown_status) == ("attested", "optimal (attested)")
    unbounded = RunRecord.from_json(old | {"bound": None}, source="x", place="line 1")
    assert (unbounded.proof, unbounded.shown_status) == ("none", "optimal")


def test_a_bound_that_the_verifier_recomputed_is_plainly_optimal() -> None:
    """Only an optimum that rests on somebody's word is called attested."""
    assert replace(RECORD, proof="recomputed").shown_status == "optimal"
    assert replace(RECORD, status="feasible").shown_status == "feasible"


@pytest.mark.parametrize("proof", ["proved", "", None, 3])
def test_a_proof_is_one_of_three_words(proof: object) -> None:
    """Anything else is told with the place in the file."""
    with pytest.raises(InputError, match=r"line 1\.proof: .* expected one of recomputed, attested, none"):
        RunRecord.from_json(RECORD.to_json() | {"proof": proof}, source="x", place="line 1")


def test_every_status_has_an_exit_status() -> None:
    """Solved is 0, infeasible 3, a limit 4, unsupported 7, as documented."""
    assert {status: int(code) for status, code in EXIT_STATUS.items()} == {
        "optimal": 0,
        "feasible": 0,
        "infeasible": 3,
        "unbounded": 1,
        "limit": 4,
        "unsupported": 7,
        "error": 1,
    }


def test_records_are_appended_and_read_in_order(tmp_path: Path) -> None:
    """A file holds a record for each line; a folder gives those of all its files."""
    first, second = replace(RECORD, seed=1), replace(RECORD, seed=2)
    for record in (first, second):
        append_record(tmp_path / "a.jsonl", record)
    append_record(tmp_path / "b.jsonl", RECORD)
    assert list(read_records(tmp_path / "a.jsonl")) == [first, second]
    assert [record.seed for record in read_records(tmp_path)] == [1, 2, 0]


def test_many_writers_leave_whole_lines(tmp_path: Path) -> None:
    """Eight writers at once, with lines far larger than a disk block: every line is a record, and none is lost."""
    path = tmp_path / "records.jsonl"
    large = {"text": "x" * 100_000}
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda i: append_record(path, replace(RECORD, seed=i, metrics=large)), range(200)))
    assert sorted(record.seed for record in read_records(path)) == list(range(200))


def test_a_record_that_is_no_json_is_not_written(tmp_path: Path) -> None:
    """NaN is refused before the file is touched."""
    with pytest.raises(ValueError, match="not JSON compliant"):
        append_record(tmp_path / "a.jsonl", replace(RECORD, objective=float("nan")))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("path", ["", "missing/a.jsonl", "x" * 300])
def test_a_file_that_cannot_be_written_is_an_input_error(tmp_path: Path, path: str) -> None:
    """A folder, a missing folder and an impossible name are told in one line."""
    with pytest.raises(InputError) as caught:
        append_record(tmp_path / path, RECORD)
    assert caught.value.source == str(tmp_path / path)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"{}\n", "line 1: expected a record of schema"),
        (b"[]\n", "line 1: expected a record of schema"),
        (b"{\n", "line 1: not JSON"),
        (b"\xff\n", "line 1: not JSON"),
        (b"[" * 100_000 + b"\n", "line 1: not JSON"),
        (b'{"schema": "cwb-record/1"}\n', "line 1: the record has no"),
        (b'{"schema": "cwb-record/2"}\n', "line 1: expected a record of schema"),
    ],
)
def test_wrong_lines_are_refused_with_their_number(tmp_path: Path, content: bytes, reason: str) -> None:
    """A line that is no record is told with the file and the line."""
    path = tmp_path / "a.jsonl"
    path.write_bytes(content)
    with pytest.raises(InputError, match=reason) as caught:
        list(read_records(path))
    assert caught.value.source == str(path)


def test_the_line_after_good_ones_is_named(tmp_path: Path) -> None:
    """A half-written last line does not hide the records before it, and is told as line 2."""
    path = tmp_path / "a.jsonl"
    append_record(path, RECORD)
    with path.open("ab") as stream:
        stream.write(b'{"schema": "cwb-rec')
    records = read_records(path)
    assert next(records) == RECORD
    with pytest.raises(InputError, match="line 2: not JSON"):
        next(records)


def test_nothing_to_read_is_an_input_error(tmp_path: Path) -> None:
    """An empty folder and a missing file are told as such."""
    with pytest.raises(InputError, match=r"no \*.jsonl file"):
        list(read_records(tmp_path))
    with pytest.raises(InputError, match="no such file"):
        list(read_records(tmp_path / "missing.jsonl"))
