import subprocess
import sys

import pytest

CHATTY = """
from cwb.core.stdout import silent_highs
highs = silent_highs()
highs.addVar(0, 1)
highs.run()
"""
SOLVED = "import cwb; cwb.solve({instance!r}, {model!r}{asked})"


@pytest.mark.parametrize(
    "program",
    [
        CHATTY,
        SOLVED.format(instance="4d", model="libra", asked=""),
        SOLVED.format(instance="mi250(boxes=2)", model="forestcoll", asked=", collective='all_gather', size='1 GiB'"),
    ],
    ids=["alone", "libra", "forestcoll"],
)
def test_highs_writes_nothing(program):
    """HiGHS prints neither its version nor a log, in a process that has not used it before."""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == ""
