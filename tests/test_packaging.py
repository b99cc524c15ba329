"""Contents of the wheel."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

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
        "examples/my_flow/my_flow.py",
    ):
        assert f"cwb/{file}" in names
    assert not [name for name in names if name.startswith(("cwb/tests", "cwb/docs", "cwb/benchmarks", "cwb/setup"))]
