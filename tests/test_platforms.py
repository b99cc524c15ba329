"""Systems without what POSIX has: Windows, simulated by removing it."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow  # everything is imported

#: Libraries come first, since they look for the real system's parts; then these are gone, and cwb is imported.
SIMULATED = """
import importlib, os, pathlib, signal, socket, subprocess, sys, tempfile
import asyncio, concurrent.futures.process, ctypes, mmap, multiprocessing.popen_spawn_posix
import click, highspy, matplotlib.pyplot, networkx, numba, numpy, pandas, psutil, pydantic, pyomo.environ, rich.console
import multiprocessing.shared_memory, rich.live, rich.progress, scipy.optimize, scipy.sparse.csgraph, webbrowser, yaml

before = set(sys.modules)
assert not [name for name in before if name.startswith("cwb")]
sys.platform = "win32"
for name in ("fcntl", "grp", "pty", "pwd", "resource", "termios", "tty"):
    sys.modules[name] = None
for module, names in {
    os: "fork forkpty getuid geteuid getpgid killpg setsid sched_getaffinity sched_setscheduler O_NOFOLLOW O_NOCTTY",
    signal: "SIGKILL SIGCHLD SIGALRM SIGHUP setitimer pthread_sigmask",
    socket: "AF_UNIX send_fds recv_fds",
}.items():
    for name in names.split():
        if hasattr(module, name):
            delattr(module, name)

import cwb

root = pathlib.Path(cwb.__file__).parent
folders = {"algorithms", "api", "cli", "core", "exchange", "harness", "heuristics", "instances", "models", "reports",
           "schedules", "solvers", "studies"}
others = {"cwb.exchange.chakra", "cwb.solvers.gurobi_session", "cwb.solvers.scip_session"}  # of optional libraries
for path in sorted(root.rglob("*.py")):
    place = path.relative_to(root)
    name = ".".join(("cwb", *place.with_suffix("").parts)).removesuffix(".__init__")
    if place.parts[0] in folders and not name.startswith(tuple(others)):
        importlib.import_module(name)
"""

SOLVED = """
from cwb.cli.main import cwb as program

with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    words = ["--models", "ring", "--instances", "ring(4)", "--sizes", "1KiB", "-o", "results", "--quiet"]
    program.main(["compare", *words], standalone_mode=False)
    (record,) = cwb.records("results").itertuples()
    assert record.status == "feasible", record
    words = ["--model", "ring", "ring(4)", "--collective", "all_reduce", "-o", "s.json", "--quiet"]
    program.main(["solve", *words], standalone_mode=False)
    assert cwb.check("s.json").ok
    os.chdir("/")
print("works")
"""


def run_code(text: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-P", "-c", text], capture_output=True, text=True, check=False)


def test_nothing_posix_is_imported():
    """Every module can be imported without POSIX's modules, signals, forks and sockets."""
    done = run_code(SIMULATED)
    assert done.returncode == 0, done.stderr[-2000:]


def test_methods_run_without_forks_and_signals():
    """A comparison starts an interpreter for each run, and a schedule is solved, written and checked."""
    done = run_code(SIMULATED + SOLVED)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.endswith("works\n")
