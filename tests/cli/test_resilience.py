"""``cwb resilience``: a table, JSON, and wrong input in one line."""

from __future__ import annotations

import json

import pytest
from cwb.cli.main import run


def run_command(capsys, *words: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        run(["resilience", *words, "-q"])
    captured = capsys.readouterr()
    return int(ended.value.code or 0), captured.out, captured.err


def test_failures_are_ranked(capsys):
    """The table begins with what costs most, and says how many are alike."""
    status, out, _ = run_command(capsys, "dgx_a100(boxes=2)", "--collective", "all_gather")
    assert status == 0
    losses = [float(line.split("│")[-2].strip(" %")) for line in out.splitlines() if line.rstrip().endswith("% │")]
    assert losses == sorted(losses, reverse=True)
    assert len(losses) >= 4


def test_json_has_every_failure(capsys):
    """All failures are in the JSON, with certificates."""
    status, out, _ = run_command(capsys, "ring(4)", "--collective", "all_gather", "--json")
    data = json.loads(out)
    assert status == 0
    assert data["complete"]
    assert sum(len(failure["names"]) for failure in data["failures"]) == 8
    assert all(f["certificate"]["certificate"] for f in data["failures"] if "certificate" in f)


@pytest.mark.parametrize("slow", ["1e-12", "12345678901234567890/98765432101234567890"])
def test_a_factor_of_many_digits_loses_no_answer(capsys, slow):
    """The part of a bandwidth that is kept is exact, whatever its digits."""
    status, out, _ = run_command(
        capsys, "ring(4)", "--collective", "all_gather", "--kind", "link", "--slow", slow, "--json"
    )
    assert status == 0
    assert all(failure["flow_time_s"] > 0 for failure in json.loads(out)["failures"])


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["ring(4)", "--collective", "all_gather", "--slow", "2"], "--slow: '2'; expected a part"),
        (["ring(4)", "--collective", "all_gather", "--slow", "1/0"], "--slow: '1/0'; expected a part"),
        (["ring(4)", "--collective", "all_gather", "--slow", "1e-999999999"], "'1e-999999999'; expected a part"),
        (["ring(4)", "--collective", "all_gather", "--slow", "1e-300"], "--slow: '1e-300' is too small; expected 0"),
        (["nowhere"], "nowhere"),
    ],
)
def test_wrong_input_is_one_line(capsys, words, line):
    """A wrong factor or instance is one line with exit status 2."""
    status, _, err = run_command(capsys, *words)
    assert status == 2
    assert line in err
    assert err.count("\n") == 1


def test_a_schedule_is_repaired(capsys, tmp_path, monkeypatch):
    """``cwb repair`` without a link, then without a rank, writes schedules that ``cwb check`` finds right."""
    monkeypatch.chdir(tmp_path)
    for words, text in (
        (["solve", "--model", "ring", "ring(5)", "--collective", "all_reduce", "-o", "s.json", "-q"], "ring"),
        (["repair", "s.json", "--without-link", "0:1", "-o", "new.json"], "that used what is lost"),
        (["check", "new.json"], "right, a schedule of all_reduce of 5 ranks"),
        (["repair", "s.json", "--without-rank", "2", "-o", "less.json"], "what the old schedule still brings"),
        (["check", "less.json"], "right, a schedule of all_reduce of 4 ranks"),
    ):
        with pytest.raises(SystemExit) as ended:
            run(words)
        assert not ended.value.code
        assert text in capsys.readouterr().out
