"""Contents of the wheel."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import cwb
import pytest
import yaml
from click.testing import CliRunner
from cwb.cli.main import cwb as program
from cwb.harness.environment import cwb_version

ROOT = Path(__file__).parents[1]
NOT_PACKAGES = {"tests", "docs", "benchmarks"}


def packages_on_disk() -> set[str]:
    found = {"cwb"}
    for init in ROOT.rglob("__init__.py"):
        parts = init.parent.relative_to(ROOT).parts
        if (
            parts
            and parts[0] not in NOT_PACKAGES
            and not any(part.startswith(".") or part == "build" for part in parts)
        ):
            found.add(".".join(("cwb", *parts)))
    return found


def test_no_stray_modules_in_the_root():
    """The root holds the package's own two modules, and beside setup.py nothing else that would land in the wheel."""
    assert {p.name for p in ROOT.glob("*.py")} == {"__init__.py", "__main__.py", "setup.py"}


@pytest.mark.slow
def test_the_wheel_holds_code_and_data(tmp_path):
    """A wheel built from the tree holds every folder with an __init__.py and all data (instances, suites, papers'
    numbers ...), and no tests."""
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(tmp_path), str(ROOT)],
        check=True,
    )
    (wheel,) = tmp_path.glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    for package in packages_on_disk():
        assert f"{package.replace('.', '/')}/__init__.py" in names
    for file in (
        "py.typed",
        "instances/4d.json",
        "instances/schema.json",
        "instances/workloads/gpt-3.json",
        "instances/suites/smoke.toml",
        "heuristics/nccl/tunings.json",
        "reports/cards.json",
        "solvers/known_solvers.json",
        "studies/papers/te-ccl.toml",
        "studies/library/index.json",
        "examples/my_flow/my_flow.py",
    ):
        assert f"cwb/{file}" in names
    assert not [name for name in names if name.startswith(("cwb/tests", "cwb/docs", "cwb/benchmarks", "cwb/setup"))]


def test_the_version_comes_from_one_place():
    """The command, the package and records report the version of the installed distribution, which pyproject sets."""
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    told = CliRunner().invoke(program, ["--version"]).output
    assert (told, cwb.__version__, cwb_version()) == (f"cwb, version {version}\n", version, version)
    written = re.compile(rf"[\"']{re.escape(version)}[\"']")
    files = (path for folder in ("cli", "api", "core", "harness", "studies") for path in (ROOT / folder).rglob("*.py"))
    assert [str(path) for path in files if written.search(path.read_text(encoding="utf-8"))] == []


def test_hooks_run_the_tools_of_ci():
    """Pre-commit, the hosted workflow and the script of CI call the same tools, and the workflow is valid YAML."""
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))["repos"][0]["hooks"]
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8"))["jobs"]
    steps = {step["run"] for job in jobs.values() for step in job["steps"] if "run" in step}
    for command in ("ruff check", "ruff format --check", "mypy", "lint-imports"):
        assert f".venv/bin/{command}" in script
        assert [hook for hook in hooks if hook["entry"].startswith(f".venv/bin/{command}")]
        assert [step for step in steps if step.startswith(command)]
    assert ".ci/installed" in script
    assert ".ci/installed" in steps
    pythons = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["classifiers"]
    assert [f"Programming Language :: Python :: {one}" for one in jobs["tests"]["strategy"]["matrix"]["python"]] == [
        one for one in pythons if "Python :: " in one
    ]
