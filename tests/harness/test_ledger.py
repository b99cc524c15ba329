"""The ledger: what is recorded under which key, by whom, and who is at work on what."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from cwb.core.errors import InputError
from cwb.core.record import RunRecord, append_record, read_records
from cwb.harness.ledger import Claims, Ledger, LedgerEntry

RECORD = RunRecord(
    cwb_version="0",
    model="ring",
    kind="heuristic",
    instance="ring(4)",
    instance_sha256="0" * 64,
    collective="all_reduce",
    solver=None,
    solver_version=None,
    options={},
    seed=0,
    threads=1,
    status="feasible",
    key="k",
)


def test_entries(tmp_path: Path) -> None:
    """The last record of a key says whether it failed or was ended by a limit; records without a key are none's."""
    path = tmp_path / "records.jsonl"
    ledger = Ledger(path)
    assert ledger.entry("k").count == 0
    for changes, entry in [
        ({"status": "error"}, LedgerEntry(1, True, False)),
        ({"exit_status": 5, "verified": False}, LedgerEntry(2, True, False)),
        ({"status": "limit"}, LedgerEntry(3, False, True)),
        ({"stopped": "memory"}, LedgerEntry(4, False, True)),
        ({}, LedgerEntry(5, False, False)),
    ]:
        append_record(path, replace(RECORD, **changes))
        ledger.refresh()
        assert ledger.entry("k") == entry
    append_record(path, replace(RECORD, key=""))
    ledger.refresh()
    assert ledger.entry("").count == 0
    assert Ledger(path).entry("k") == ledger.entry("k")


def test_what_another_recorded_is_not_doubled(tmp_path: Path) -> None:
    """Of two that record the same run the first is kept; a run that is made again on purpose is appended."""
    path = tmp_path / "records.jsonl"
    one, other = Ledger(path), Ledger(path)
    assert one.append(RECORD) == RECORD
    assert other.append(RECORD) is None
    assert other.append(replace(RECORD, seed=1), count=1) == replace(RECORD, seed=1)
    assert one.append(RECORD, count=1) is None
    assert [record.seed for record in read_records(path)] == [0, 1]


def test_a_record_that_json_cannot_hold(tmp_path: Path) -> None:
    """A method whose numbers are not JSON leaves a failure under its key."""
    path = tmp_path / "records.jsonl"
    Ledger(path).append(replace(RECORD, metrics={"speedup": float("nan")}))
    Ledger(path).append(replace(RECORD, key="l", answer={"a": object()}))
    for record, key in zip(read_records(path), "kl", strict=True):
        assert (record.status, record.answer, record.metrics, record.key) == ("error", None, {}, key)
        assert "not JSON" in record.message


def test_a_line_that_is_being_written_is_not_read(tmp_path: Path) -> None:
    """Half a line is left to its writer by a reader, and healed when a ledger is opened to be written."""
    path = tmp_path / "records.jsonl"
    append_record(path, RECORD)
    with path.open("ab") as stream:
        stream.write(b'{"key": "l", "status')
    watching = Ledger(path, to_write=False)
    assert (watching.healed, watching.entry("l")) == (0, LedgerEntry())
    assert path.read_bytes().endswith(b"status")
    writing = Ledger(path)
    assert (writing.healed, writing.entry("k")) == (1, LedgerEntry(1, False, False))
    append_record(path, replace(RECORD, key="m"))
    watching.refresh()
    assert watching.entry("m") == LedgerEntry(1, False, False)


def test_claims(tmp_path: Path) -> None:
    """A key has one claim at a time, also within a process, and nothing is left of it."""
    folder = tmp_path / "claims"
    one, other = Claims(folder), Claims(folder)
    assert one.take("k")
    assert not other.take("k")
    assert other.take("l")
    one.give_back("k")
    assert other.take("k")
    one.close()
    assert folder.exists()
    other.close()
    assert not folder.exists()


def test_a_claim_ends_with_its_process(tmp_path: Path) -> None:
    """Claims of a killed comparison can be taken at once."""
    code = (
        "import sys, time; from pathlib import Path; from cwb.harness.ledger import Claims;"
        "claims = Claims(Path(sys.argv[1])); print(claims.take('k'), flush=True); time.sleep(100)"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "claims")]
    claims = Claims(tmp_path / "claims")
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "True\n"
        assert not claims.take("k")
        os.kill(process.pid, signal.SIGKILL)
    assert claims.take("k")
    claims.close()


def test_claims_that_cannot_be_made(tmp_path: Path) -> None:
    """A folder that cannot be made is told."""
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"file/k: (file exists|not a directory)"):
        Claims(tmp_path / "file").take("k")
