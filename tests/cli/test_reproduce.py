"""``cwb reproduce``: verdicts, and what decides the exit status."""

from __future__ import annotations

import json

import pytest
from cwb.cli.main import run
from cwb.core.paper_results import PublishedFile
from cwb.studies import reproduce as module

TIMED = {"run": "ring", "value": "seconds.total"}


@pytest.mark.parametrize(
    ("row", "verdict", "status"),
    [
        ({"printed": "> 0", "ours": {"run": "ring"}}, "reproduced", 0),
        ({"printed": "9", "ours": {"run": "ring"}}, "differs", 1),
        ({"printed": "9", "ours": {"run": "ring"}, "why": "a misprint"}, "differs", 0),
        ({"printed": "9", "ours": {"run": "ring"}, "predicted": "flow"}, "predicted", 0),
        ({"printed": "<= 1e-9", "ours": TIMED}, "wall time", 0),
        ({"printed": "<= 1", "ours": {"run": "none", "value": "seconds.total"}}, "failed", 0),
        ({"printed": "1", "ours": {"run": "none"}}, "failed", 1),
        ({"printed": "1", "needs": "GPUs"}, "cannot be checked here", 0),
    ],
)
def test_only_what_should_reproduce_exactly_decides_the_exit_status(row, verdict, status, monkeypatch, capsys):
    """A difference without a reason and a failed run are exit status 1; predictions and seconds of computing never
    are."""
    data = {
        "title": "t",
        "source": "s",
        "models": {"flow": "By a flow."},
        "default": {"instance": "torus(3,3)", "collective": "all_reduce", "size": "1 MiB", "model": "ring"},
        "runs": {"ring": {}, "none": {"instance": "torus(0)"}},
        "row": [{"table": "Table 1", "row": "a", "section": "1"} | row],
    }
    monkeypatch.setattr(module, "load_paper", lambda name: PublishedFile.model_validate(data))
    with pytest.raises(SystemExit) as caught:
        run(["reproduce", "t", "--quiet", "--format", "json"])
    (found,) = json.loads(capsys.readouterr().out)
    assert (found["verdict"], caught.value.code) == (verdict, status)


def test_csv_has_what_is_printed(monkeypatch, capsys):
    """In CSV files a printed number is a number, a claim is the text of the paper, and what there is not is nan."""
    rows = [{"printed": text, "needs": "GPUs"} for text in ("354.13", "<= 1", "3-approximation")]
    data = {
        "title": "t",
        "source": "s",
        "row": [{"table": "Table 1", "row": "a", "section": "1"} | row for row in rows],
    }
    monkeypatch.setattr(module, "load_paper", lambda name: PublishedFile.model_validate(data))
    with pytest.raises(SystemExit):
        run(["reproduce", "t", "--quiet", "--format", "csv"])
    lines = [line.split(",") for line in capsys.readouterr().out.splitlines()]
    paper, ours = (lines[0].index(f'"{name}"') for name in ("paper", "ours"))
    assert [line[paper] for line in lines[1:]] == ["354.13", '"<= 1"', '"3-approximation"']
    assert {line[ours] for line in lines[1:]} == {"nan"}


def test_lists_are_text_and_say_that_nothing_is_left(capsys):
    """A list of rows that would be empty says so; a format or a file that it would not be written to is refused."""
    with pytest.raises(SystemExit) as ended:
        run(["reproduce", "mtree", "--unchecked"])
    assert (ended.value.code, capsys.readouterr().err) == (0, "every row is checked\n")
    for asked in (["mtree", "--list", "-o", "a.md"], ["mtree", "--unchecked", "-f", "json"], ["-f", "json"]):
        with pytest.raises(SystemExit) as ended:
            run(["reproduce", *asked])
        assert ended.value.code == 2
        assert "only for the rows of a paper" in capsys.readouterr().err
