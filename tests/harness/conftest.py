"""Fixtures for tests of runs: methods that misbehave, and a list of the processes that are left."""

from __future__ import annotations

import os
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

FAULTS = Path(__file__).parents[2] / "benchmarks" / "faults"


@pytest.fixture(scope="module")
def faults() -> Iterator[None]:
    """Let the processes of runs have the methods that do what no method should."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(FAULTS), prepend=os.pathsep)
        yield


@pytest.fixture(scope="module")
def workers() -> Iterator[Callable[[int], None]]:
    """Wait until the processes that this file's tests have started have as many runs among them as are said."""
    if sys.platform != "linux":
        pytest.skip("looks into /proc")
    mark = uuid.uuid4().hex

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

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CWB_TEST_MARK", mark)
        yield wait
