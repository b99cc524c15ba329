"""The script that checks a change."""

from __future__ import annotations

import re
import signal
import subprocess
from pathlib import Path

import psutil
import pytest

ROOT = Path(__file__).parents[1]


def test_tests_that_need_a_program_run_again_with_all_programs():
    """The last run of the script is of the marked tests, and files that skip where a solver is missing have some."""
    last = (ROOT / ".ci" / "run").read_text().split("CWB_REQUIRE_PROGRAMS=1")[1]
    assert "-m programs" in last
    asks = re.compile(r"\brequire_(program|solver)\b|skip\((record|adapter|solver)\b|skip\(reason\)")
    marked = re.compile(r"\brequire_(program|solver)\b|mark\.programs")
    texts = {path: path.read_text() for path in ROOT.glob("tests/**/test_*.py") if path != Path(__file__)}
    files = [path for path, text in texts.items() if asks.search(text)]
    assert len(files) > 10
    assert [str(path) for path in files if not marked.search(texts[path])] == []


def test_what_is_left_out_runs_every_night():
    """Tests that are marked nightly, and all drawn examples, are run by the nightly workflow, which the contributing
    page names."""
    nightly = (ROOT / ".github" / "workflows" / "nightly.yml").read_text()
    assert 'CWB_NIGHTLY: "1"' in nightly
    assert "pytest" in nightly
    assert ".github/workflows/nightly.yml" in (ROOT / "CONTRIBUTING.md").read_text()
    for script in re.findall(r"- (benchmarks/\w+\.py)", nightly):
        assert (ROOT / script).exists()


def test_every_smoke_is_a_benchmark_that_there_is():
    """Each line of the table of smokes says if it may run beside others, and names a script that exists."""
    lines = [line for line in (ROOT / ".ci" / "smokes").read_text().splitlines() if not line.startswith("#")]
    assert len(lines) > 30
    for line in lines:
        place, script, *_ = line.split()
        assert place in {"any", "alone"}
        assert (ROOT / script).exists(), line
    assert ".ci/smokes" in (ROOT / ".ci" / "run").read_text()


def test_the_list_of_slow_tests_is_of_tests_that_there_are():
    """Nine of ten listed tests exist, so that the fast loop stays fast; a renamed test waits for the next list."""
    listed = (ROOT / "tests" / "slow_tests.txt").read_text().split()
    texts: dict[str, str] = {}
    for path in {test.partition("::")[0] for test in listed}:
        texts[path] = (ROOT / path).read_text() if (ROOT / path).exists() else ""
    there = [test for test in listed if f"def {test.partition('::')[2]}(" in texts[test.partition("::")[0]]]
    assert len(there) > len(listed) * 9 // 10


def start_beside(folder: Path, functions: str, names: str) -> subprocess.Popen[str]:
    """Start a script that runs functions side by side in a folder."""
    script = f"set -euo pipefail; source {ROOT}/.ci/beside; {functions}; beside {names}; echo after"
    return subprocess.Popen(["bash", "-c", script], cwd=folder, stdout=subprocess.PIPE, text=True)


@pytest.mark.parametrize("failing", ["first", "second"])
def test_stages_side_by_side_print_in_order_and_fail_together(failing, tmp_path):
    """The output of stages is kept apart, and one that fails ends with its first error and fails the script."""
    functions = f"first() {{ echo 1; [[ {failing} != first ]]; echo 2; }}"
    functions += f"; second() {{ echo 3; [[ {failing} != second ]]; echo 4; }}"
    process = start_beside(tmp_path, functions, "first second")
    assert (
        process.communicate()[0].split()
        == {
            "first": ["1", "3", "4", "FAILED:", "first"],
            "second": ["1", "2", "3", "FAILED:", "second"],
        }[failing]
    )
    assert process.returncode == 1


def test_stages_side_by_side_that_succeed_let_the_script_go_on(tmp_path):
    """The script goes on when all have ended."""
    process = start_beside(tmp_path, "first() { echo 1; }; second() { echo 2; }", "first second")
    assert process.communicate()[0].split() == ["1", "2", "after"]
    assert process.returncode == 0


def test_stages_side_by_side_end_with_the_script(tmp_path):
    """Ctrl-C ends the script and all processes of its stages."""
    functions = "first() { echo 1; sleep 60; }; second() { echo 1 >started; sleep 60; }"
    process = start_beside(tmp_path, functions, "first second")
    while not (tmp_path / "started").exists() or len(psutil.Process(process.pid).children(recursive=True)) < 4:
        assert process.poll() is None
    children = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(signal.SIGINT)
    assert process.communicate()[0] == ""
    assert process.returncode == 130
    assert psutil.wait_procs(children, timeout=20)[1] == []
