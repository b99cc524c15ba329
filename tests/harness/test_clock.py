"""Compiling is no part of an answer: it is timed apart, and small instances do not wait for it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from cwb.harness.clock import WallClock

FIRST_RUN = """
import sys
from cwb import solve
from cwb.harness import clock
clock.ALLOWANCE.left_s = float(sys.argv[1])
lines = []
record = solve("switch(4)", "straggler", collective="late_all_reduce", size="1 MiB", progress=lines.append)
print("numba" in sys.modules, "compile" in record.seconds, any("compiling" in line for line in lines), record.objective)
"""


def test_what_is_timed_apart_counts_nowhere_else() -> None:
    """A clock stands still while something is timed apart: in the phase around it, in the total and toward the
    limit."""
    clock = WallClock(time_limit_s=1000)
    with clock.phase("work") as lap, clock.apart("compile"):
        left = clock.remaining_s()
        time.sleep(0.2)
        assert clock.remaining_s() == left
    seconds = clock.seconds()
    assert seconds["compile"] >= 0.2
    assert lap.seconds == seconds["work"] < 0.2
    assert seconds["total"] < 0.2
    assert (clock.remaining_s() or 0) > 1000 - 0.2


@pytest.mark.slow  # two processes, one of which compiles
def test_the_first_run_of_a_small_instance_compiles_nothing(tmp_path: Path) -> None:
    """On a machine without compiled code a small instance is solved as Python runs it, to the same result as compiled;
    if that takes too long, loops are compiled, which is said and timed apart."""

    def first_run(allowance_s: float) -> list[str]:
        environment = os.environ | {"CWB_CACHE_DIR": str(tmp_path)}
        command = [sys.executable, "-c", FIRST_RUN, str(allowance_s)]
        shown = subprocess.run(command, capture_output=True, text=True, env=environment, check=True).stdout
        return shown.split()

    interpreted, compiled = first_run(1000), first_run(0)
    assert interpreted[:3] == ["False", "False", "False"]
    assert compiled[:3] == ["True", "True", "True"]
    assert interpreted[3] == compiled[3]
