"""Fixtures that many tests share."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from draws import NIGHTLY, draws
from hypothesis import settings

TESTS = Path(__file__).parent

#: Tests that the fast loop leaves out beside those that are marked; ``slow_tests.py`` writes the list.
SLOW = frozenset((TESTS / "slow_tests.txt").read_text(encoding="utf-8").split())

# Hundreds of processes are started. Without files of compiled code each of them would compile the package again.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# A busy machine is no reason to fail. CI draws the same examples every time, so that a change fails by what it changed;
# every other run draws new ones.
settings.register_profile("cwb", deadline=None, max_examples=draws(100))
settings.register_profile("cwb-ci", deadline=None, max_examples=draws(100), derandomize=True)
settings.load_profile("cwb-ci" if os.environ.get("CI") else "cwb")

# Without this, an eighth of the CPU time of tests and of their collection went to cycles of what lives on anyway.
gc.disable()

# A shell that starts tests in the background has them ignore Ctrl-C, which some are about.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the tests in which programs or solvers take part that not every machine has: ``-m programs``.

    Tests marked ``nightly`` are left out unless they are asked for, by ``-m nightly`` or by CWB_NIGHTLY=1.
    """
    for item in items:
        if item.nodeid.partition("[")[0] in SLOW:
            item.add_marker("slow")
        solver = getattr(item, "callspec", None) and item.callspec.params.get("solver")
        is_library = solver in {"highs", "gurobi", "scip"}  # installed with the tests
        if {"require_program", "require_solver"} & set(getattr(item, "fixturenames", ())) and not is_library:
            item.add_marker("programs")
    if not NIGHTLY and "nightly" not in config.option.markexpr:
        kept = [item for item in items if not item.get_closest_marker("nightly")]
        config.hook.pytest_deselected(items=[item for item in items if item.get_closest_marker("nightly")])
        items[:] = kept


def pytest_collection_finish() -> None:
    """Leave modules and collected tests out of garbage collections, which are rarer than by default."""
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)
    gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call() -> None:
    """Hide the name of the test, which pytest puts into the environment: runs of another environment are forked from
    another process."""
    os.environ.pop("PYTEST_CURRENT_TEST", None)


@pytest.hookimpl(tryfirst=True)
def pytest_fixture_setup() -> None:
    """Hide it from runs of fixtures, too."""
    pytest_pyfunc_call()


@pytest.fixture(scope="session", autouse=True)
def keep_fork_servers() -> None:
    """Keep the processes that runs are forked from, which import for seconds, until all tests have ended."""
    from cwb.harness import executors

    executors.close_servers = lambda: None


@pytest.fixture(scope="session")
def reference() -> Path:
    """Folder of published and measured numbers."""
    return TESTS / "reference"


def _skip_or_fail(missing: str) -> None:
    """Skip a test that needs a program; fail it where CWB_REQUIRE_PROGRAMS=1 says that all of them are installed."""
    if os.environ.get("CWB_REQUIRE_PROGRAMS") == "1":
        pytest.fail(f"{missing}, and CWB_REQUIRE_PROGRAMS=1")
    pytest.skip(missing)


@pytest.fixture(scope="session")
def require_program() -> Callable[..., str]:
    """Give the path of the first of some programs that is installed, or skip the test."""

    def find(*names: str) -> str:
        for name in names:
            if path := shutil.which(name):
                return path
        _skip_or_fail(f"{names[0]} is not installed")
        raise AssertionError

    return find


@pytest.fixture(scope="session")
def require_solver() -> Callable[[str], Any]:
    """Give the adapter of a solver, or skip the test where its package or program is missing."""

    def find(name: str) -> Any:
        from cwb import solvers

        solver = solvers.get(name)
        installed = solver.installation()
        if not installed.ok:
            _skip_or_fail(installed.message)
        return solver

    return find


@pytest.fixture(scope="session")
def golden() -> Callable[[str, str], None]:
    """Compare a text with a golden file; CWB_UPDATE_GOLDEN=1 writes the file instead."""

    def check(name: str, text: str) -> None:
        path = TESTS / "golden" / name
        if os.environ.get("CWB_UPDATE_GOLDEN") == "1":
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        assert path.exists(), f"no golden file {path}; CWB_UPDATE_GOLDEN=1 writes it"
        assert text == path.read_text()

    return check
