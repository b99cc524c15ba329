"""Fixtures for tests of runs: methods that misbehave, and a list of the processes that are left."""

from __future__ import annotations

import os
import sys
import time
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest

FAULTS = Path(__file__).parents[2] / "benchmarks" / "faults"


@pytest.fixture
def faults(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the processes of runs have the methods that do what no method should."""
    monkeypatch.setenv("PYTHONPATH", str(FAULTS), prepend=os.pathsep)


@pytest.fixture
def workers(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Wait until the processes that this test has started have as many runs among them as are said."""
    if sys.platform != "linux":
        pytest.skip("looks into /proc")
    mark = uuid.uuid4().hex
    monkeypatch.setenv("CWB_TEST_MARK", mark)

    def count() -> int:
        found = 0
        for process in Path("/proc").glob("[0-9]*"):
            try:
                ours = mark.encode() in (process / "environ").read_bytes()
                found += ours and (process / "comm").read_bytes() == b"cwb-run\n"
            except OSError:
                continue
        return found

    def wait(number: int) -> None:
        for _ in range(1200):
            if count() == number:
                return
            time.sleep(0.05)
        pytest.fail(f"{count()} runs are at work after a minute, not {number}")

    return wait
