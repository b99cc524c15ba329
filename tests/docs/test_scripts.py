"""Scripts of the documentation and of the benchmarks explain themselves."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILES = sorted(path for folder in ("docs", "benchmarks") for path in (ROOT / folder).rglob("*.py"))
SCRIPTS = [
    str(path.relative_to(ROOT))
    for path in FILES
    if "_build" not in path.parts and '\nif __name__ == "__main__":' in path.read_text(encoding="utf-8")
]

pytestmark = pytest.mark.slow  # all that the scripts use is imported


@pytest.mark.parametrize("script", SCRIPTS)
def test_help_is_printed_and_nothing_else_is_done(script, monkeypatch, capsys):
    """With `--help`, a script prints its usage and ends."""
    monkeypatch.syspath_prepend(ROOT / Path(script).parent)
    monkeypatch.setattr("sys.argv", [script, "--help"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(ROOT / script), run_name="__main__")
    assert not ended.value.code
    assert capsys.readouterr().out.startswith("usage: ")
