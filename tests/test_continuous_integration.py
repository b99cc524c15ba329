"""The script that checks a change."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_tests_that_need_a_program_run_again_with_all_programs():
    """Files that ask for a program or a solver, or skip without a solver, are among those of the script's last run."""
    last = (ROOT / ".ci" / "run").read_text().split("CWB_REQUIRE_PROGRAMS=1")[1]
    again = re.findall(r"tests/\S+", last)
    asks = re.compile(r"\brequire_(program|solver)\b|skip\((record|adapter|solver)\b|skip\(reason\)")
    files = [
        path for path in ROOT.glob("tests/**/test_*.py") if path != Path(__file__) and asks.search(path.read_text())
    ]
    assert len(files) > 10
    assert [str(path) for path in files if not any(path.is_relative_to(ROOT / place) for place in again)] == []
