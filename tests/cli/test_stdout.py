"""What ``cwb solve`` leaves on stdout."""

from __future__ import annotations

import json
import subprocess
import sys

from cwb.cli.options import libraries_on_stderr

TALKATIVE = """
import ctypes, sys
from cwb.cli.options import libraries_on_stderr
with libraries_on_stderr():
    ctypes.CDLL(None).printf(b"from C\\n")
    print("from Python", flush=True)
print("result")
"""


def test_libraries_print_on_stderr():
    """What C and Python code print meanwhile goes to stderr; stdout has what is printed afterwards, and nothing else."""
    done = subprocess.run([sys.executable, "-c", TALKATIVE], capture_output=True, text=True, check=True)
    assert done.stdout == "result\n"
    assert "from C" in done.stderr
    assert "from Python" in done.stderr


def test_json_is_one_object():
    """``--json`` prints exactly one object on stdout for each solver, whatever the solver prints."""
    for solver in ("highs", "gurobi", "scip"):
        command = [sys.executable, "-m", "cwb", "solve", "-m", "libra", "4d", "-s", solver, "--json"]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        assert json.loads(done.stdout)["solver"] == solver
        assert done.stdout.count("\n") == 1


def test_it_can_be_nested(capfd):
    """Used twice, one in the other, it leaves stdout as it was."""
    with libraries_on_stderr(), libraries_on_stderr():
        pass
    print("here", flush=True)
    assert capfd.readouterr().out == "here\n"
