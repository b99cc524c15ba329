"""stdout and stderr: what is printed is escaped, and streams that fail lose nothing else."""

from __future__ import annotations

import errno
import io
import os
import subprocess
import sys

import pytest
from cwb.cli.main import run
from cwb.cli.streams import console, echo
from rich.table import Table

HOSTILE = "\x1b]0;x\x1b\\[red]:smile:[/nothing]\u202e"
ESCAPED = r"\x1b]0;x\x1b\[red]:smile:[/nothing]\u202e"


class Full(io.StringIO):
    """A stream on a full disk."""

    def flush(self):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_lines_and_tables_are_escaped(capsys):
    """Neither a terminal nor rich finds anything to obey in what is printed: in lines, tables, titles and on stderr."""
    echo(HOSTILE)
    echo(HOSTILE, err=True)
    table = Table(title=HOSTILE, title_justify="left")
    table.add_column(HOSTILE)
    table.add_row(HOSTILE)
    printed = console()
    printed.width = 200
    printed.print(HOSTILE)
    printed.print(table)
    out, err = capsys.readouterr()
    assert out.count(ESCAPED) == 5
    assert err == ESCAPED + "\n"
    assert "\x1b" not in out


def test_error_lines_are_escaped(capsys):
    """An error names what was wrong without obeying it."""
    with pytest.raises(SystemExit):
        run(["solve", "-m", "ring", "a\x1b[2Jb(1)"])
    err = capsys.readouterr().err
    assert "\x1b" not in err
    assert r"a\x1b[2Jb(1)" in err


@pytest.mark.parametrize("words", [["list", "models"], ["show", "ring(4)"]], ids=["lines", "tables"])
def test_a_full_stdout_is_told_in_one_line(words, monkeypatch, capsys):
    """Output that cannot be printed gives one line on stderr and exit status 1."""
    monkeypatch.setattr(sys, "stdout", Full())
    with pytest.raises(SystemExit) as caught:
        run(words)
    assert caught.value.code == 1
    assert capsys.readouterr().err == "cwb: error: standard output: no space left on device\n"


def test_a_full_stderr_is_no_reason_to_fail(monkeypatch, capsys):
    """Progress and errors that nobody takes change neither result nor exit status."""
    monkeypatch.setattr(sys, "stderr", Full())
    with pytest.raises(SystemExit) as caught:
        run(["solve", "-m", "ring", "ring(4)", "--collective", "all_reduce", "--json"])
    assert caught.value.code == 0
    assert capsys.readouterr().out.startswith('{"schema"')
    with pytest.raises(SystemExit) as caught:
        run(["solve", "-m", "nothing", "ring(4)"])
    assert caught.value.code == 2


@pytest.mark.slow  # runs the program, with streams that are closed before it begins
@pytest.mark.parametrize(
    ("streams", "status", "err"),
    [
        (">&-", 1, "cwb: error: standard output: is closed\n"),
        (">/dev/null 2>/dev/full", 0, ""),
    ],
)
def test_closed_streams_do_not_lose_files(streams, status, err, tmp_path):
    """The answer and the record are written whatever becomes of the streams, and no file takes the place of one."""
    command = f'"{sys.executable}" -m cwb solve -q -m ring "ring(4)" --collective all_reduce -o a.json --append r.jsonl'
    done = subprocess.run(["sh", "-c", f"{command} {streams}"], cwd=tmp_path, capture_output=True, check=False)
    assert (done.returncode, done.stderr.decode()) == (status, err)
    assert (tmp_path / "a.json").read_text().startswith('{"schema": "cwb-schedule/1"')
    assert len((tmp_path / "r.jsonl").read_text().splitlines()) == 1
