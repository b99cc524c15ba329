"""The three days in examples/days: every step of each ends well, and leaves the files that it is about."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import cwb, parse_command
from cwb.core.errors import ExitStatus
from cwb.harness.registry import PLUGINS

DAYS = {
    "engineer": ("advice.html", "chosen", "ring.xml"),
    "student": ("relaxed.lp", "table.tex", "results/records.jsonl"),
    "researcher": ("net.json", "report.html", "best.html"),
}
WALKED = {
    "engineer": "import advise select solve export check run solve",
    "student": "formulate formulate compare table solve solve solve",
    "researcher": "import compare table report train resilience resilience solve view cite",
}


@pytest.mark.parametrize("day", DAYS)
def test_the_steps_of_a_day_can_be_asked_for(day, root):
    """Every command of a day exists, with the arguments and options that it is given."""
    text = (root / "examples" / "days" / f"{day}.sh").read_text().replace("\\\n", " ")
    steps = [line.partition(" || ")[0] for line in re.findall(r"^step cwb (.*)", text, re.MULTILINE)]
    assert [step.split()[0] for step in steps] == WALKED[day].split()
    for step in steps:
        parse_command(shlex.split(step), partial=True)


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="scripts of a POSIX shell")
def test_the_commands_of_a_day_end_well(root, tmp_path, monkeypatch):
    """The commands of the student's day, run in this process, end with status 0 and leave the day's files; the one
    that finds no schedule says so by its status."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(PLUGINS, "")
    monkeypatch.setenv("here", str(root / "examples" / "days"))
    monkeypatch.setenv("variants", str(root / "examples" / "teccl_variants.py"))
    for line in (root / "examples" / "days" / "student.sh").read_text().replace("\\\n", " ").splitlines():
        command, expected, _ = line.partition(" || ")
        if command.startswith("step cwb "):
            status = cwb(*shlex.split(os.path.expandvars(command))[2:])
            assert status == (ExitStatus.INFEASIBLE if expected else 0), command
        elif command.startswith("sed "):
            subprocess.run(["bash", "-c", command], check=True)
    assert all((tmp_path / name).exists() for name in DAYS["student"])


@pytest.mark.skipif(os.name != "posix", reason="scripts of a POSIX shell")
def test_steps_tell_their_seconds(root, tmp_path):
    """The shell can read the scripts; a step is printed and tells its seconds, and one that fails ends the day."""
    days = root / "examples" / "days"
    for day in DAYS:
        subprocess.run(["bash", "-n", str(days / f"{day}.sh")], check=True)
    steps = '. "$0"; step echo one; step false; step echo two'
    done = subprocess.run(
        ["bash", "-c", steps, str(days / "steps.sh"), str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1, done.stderr
    assert re.sub(r"[0-9.]+ s", "", done.stdout).splitlines() == ["$ echo one", "one", "  ()", "$ false", "  ()"]


@pytest.mark.nightly
@pytest.mark.skipif(os.name != "posix", reason="scripts of a POSIX shell")
@pytest.mark.parametrize("day", DAYS)
def test_a_day(day, root, tmp_path):
    """Every step of a day ends with status 0, tells its seconds, and the day's files are there."""
    program = Path(sys.executable).parent
    if not (program / "cwb").exists():
        pytest.skip("the command cwb is not beside this Python")
    environment = {**os.environ, "PATH": f"{program}{os.pathsep}{os.environ['PATH']}"}
    script = root / "examples" / "days" / f"{day}.sh"
    command = ["bash", str(script), str(tmp_path)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=1800)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.findall(r"^\$ cwb ([a-z-]+)", done.stdout, re.MULTILINE) == WALKED[day].split()
    assert len(re.findall(r"^  \([0-9.]+ s\)$", done.stdout, re.MULTILINE)) == len(WALKED[day].split())
    for name in DAYS[day]:
        assert (tmp_path / name).exists()


def test_the_suite_of_many_networks_is_planned(root, tmp_path, monkeypatch):
    """The example of 500 networks has a run for each file, found by its pattern."""
    from cwb.harness.plan import cells
    from cwb.harness.suite_file import load_suite

    monkeypatch.chdir(tmp_path)
    folder = root / "examples" / "sweep"
    subprocess.run([sys.executable, str(folder / "nets.py")], check=True)
    (tmp_path / "sweep.toml").write_text((folder / "sweep.toml").read_text())
    plan = cells(load_suite("sweep.toml"))
    assert len({cell.instance for cell in plan}) == len(plan) == 500
