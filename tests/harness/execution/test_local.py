"""Execution on local processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import replace
from fractions import Fraction

import cwb
import numpy as np
import psutil
import pytest
from cwb.core.answers import BoundOnly
from cwb.core.collective import Demand, collectives
from cwb.core.errors import CwbError, InputError, OutOfTime, Unsupported
from cwb.harness.execution import local
from cwb.harness.execution.local import execute_locally
from cwb.harness.execution.player import Job
from cwb.harness.execution.program import lower
from cwb.schedules.files import ScheduleFile, write_schedule

pytestmark = [
    pytest.mark.slow,  # processes are started
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs forks"),
]

#: Methods for the collectives that direct sends do not answer.
OTHERS = {"point_to_point": "pccl", "late_all_reduce": "straggler"}


def solve_and_write(name: str, spec: str = "complete(4)", method: str = "direct", size: int = 2**14, **more):
    kind = next(each for each in collectives() if each.name == name)
    ranks = (0, 2) if name == "point_to_point" else None
    done = cwb.solve(cwb.load(spec).with_changes(demand=Demand(kind, Fraction(size), ranks=ranks)), method, **more)
    assert done.verified is True, done.message
    return done


def children() -> list[psutil.Process]:
    """Processes of executions that run, anywhere below this one or left behind by it."""
    name = "cwb.harness.execution.children"
    return [each for each in psutil.Process().children(recursive=True) if name in each.cmdline()]


#: Collectives that are executed in every run: sums for all, pairs, and those that direct sends do not answer.
OFTEN = {"all_reduce", "all_to_all", *OTHERS}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(each.name, marks=() if each.name in OFTEN else pytest.mark.nightly)
        for each in collectives()
        if each.sized_by is None
    ],
)
def test_every_collective(name):
    """Every collective (by day those of ``OFTEN``) gives its result on real processes, whose times are counted."""
    spec = "switch(4, latency='0 s')" if name == "late_all_reduce" else "complete(4)"
    found = cwb.run(solve_and_write(name, spec, OTHERS.get(name, "direct")), repeat=2, warmup=0)
    assert found.ok
    assert len(found.seconds) == 2
    assert min(found.seconds) > 0
    assert found.predicted.seconds is not None


def test_messages_of_different_sizes():
    """A collective with a size per pair runs as its messages."""
    kind = next(each for each in collectives() if each.name == "all_to_all_v")
    sizes = [[Fraction(1000 * (3 * a + b) % 7000) for b in range(4)] for a in range(4)]
    demands = kind.messages(sizes, 1, range(4))
    instance = cwb.load("ring(4)").with_changes(demand=demands[0], also=demands[1:])
    assert cwb.run(cwb.solve(instance, "pccl"), repeat=1).ok


def test_trees_in_pieces_of_floating_point_numbers():
    """Trees are executed in the pieces of their completion time, or in those asked for; sums have a tolerance."""
    done = solve_and_write("all_reduce", "ring(4)", "forestcoll", 2**20)
    chosen, four = cwb.run(done, dtype="float32", repeat=1), cwb.run(done, dtype="float32", repeat=1, pieces=4)
    assert chosen.ok
    assert four.ok
    assert chosen.predicted.pieces == done.metrics["pieces"]
    assert four.predicted.pieces == 4
    assert chosen.messages * 4 == four.messages * chosen.predicted.pieces


def test_a_switch_that_adds_is_a_process():
    """A switch that adds and copies is one more process."""
    found = cwb.run(solve_and_write("all_reduce", "sharp", "switch-trees"), repeat=1)
    assert found.ok
    assert len(found.names) == 5


def test_data_can_be_of_another_size():
    """All data is scaled by the size that is asked for, and the prediction with it."""
    done = solve_and_write("all_gather", size=2**20)
    small, large = cwb.run(done, size="64 KiB", repeat=1), cwb.run(done, repeat=1)
    assert (small.ok, large.ok) == (True, True)
    assert small.sent_bytes * 16 == large.sent_bytes
    assert small.predicted.seconds < large.predicted.seconds


def test_wrong_data_is_told():
    """A schedule that lacks a send ends, and says who has what is wrong."""
    done = solve_and_write("all_gather")
    sends = done.schedule.sends
    broken = replace(done.schedule, sends=sends.take(np.arange(1, len(sends))), step=done.schedule.step[1:])
    found = cwb.run(done.problem, broken, repeat=1)
    assert not found.ok
    name = done.problem.topology.nodes[int(sends.target[0])].name
    assert len(found.wrong) == 1
    assert found.wrong[0].startswith(f"{name} has 512 wrong elements; the first is element ")
    assert found.to_json()["right"] is False


def test_what_has_no_sends_is_unsupported():
    """A bound alone has nothing to execute."""
    with pytest.raises(Unsupported, match="BoundOnly has no sends"):
        cwb.run(solve_and_write("all_gather").problem, BoundOnly())


def test_options_that_do_not_apply_are_told():
    """A schedule without trees has no pieces, and unknown processes and types are named."""
    done = solve_and_write("all_gather")
    read = ScheduleFile(done.problem, done.schedule, None, {}, None)
    for options in ({"pieces": 2}, {"processes": "some"}, {"dtype": "int3"}, {"size": "5"}, {"repeat": 0}):
        with pytest.raises(InputError, match=next(iter(options))):
            cwb.run(read, **options)


def test_memory_is_estimated_first(monkeypatch):
    """Data beyond the machine's memory is rejected before anything is allocated or started."""
    monkeypatch.setattr(local, "spare_bytes", lambda: 2**27)
    monkeypatch.setattr(local.subprocess, "Popen", None)
    with pytest.raises(OutOfTime, match=r"4 processes take some .* of memory, and 128 MiB are left; a smaller --size"):
        execute_locally(programs_of(solve_and_write("all_gather")), Job("int64", 1, 0), 2**20)


def programs_of(done):
    return lower(done.problem, done.schedule, 8)


def test_a_process_that_dies_ends_all():
    """The error of a process that fails is told in one line, and nobody is left behind."""
    programs = programs_of(solve_and_write("all_gather"))
    with pytest.raises(CwbError, match="a process ended early: TypeError: data type 'no type' not understood"):
        execute_locally(programs, Job("no type", 1, 0), 8)
    assert not children()


def test_the_time_limit_ends_all():
    """An execution that is too long ends at its limit, with all its processes."""
    done = solve_and_write("all_gather")
    with pytest.raises(OutOfTime):
        cwb.run(done, repeat=1_000_000, time_limit_s=2)
    assert not children()


@pytest.mark.parametrize(("which", "why"), [(max, b"killed by SIGKILL"), (min, b"without a message")])
def test_a_killed_process_is_one_line(which, why, tmp_path):
    """If the system kills a process, or the one that forked them, one line says so, and nothing is left."""
    path, folder = tmp_path / "s.json", tmp_path / "tmp"
    folder.mkdir()
    done = solve_and_write("all_gather")
    write_schedule(path, done.problem, done.schedule)
    process = start(path, folder)
    started = children()
    which(started, key=lambda each: each.pid).kill()
    _, told = process.communicate(timeout=60)
    assert (process.returncode, told) == (1, b"cwb: error: a process ended early: " + why + b"\n")
    wait_for_the_end(started)
    assert list(folder.iterdir()) == []


def start(path, folder) -> subprocess.Popen[bytes]:
    """Start the command with a folder for temporary files, and wait until its processes run."""
    command = [sys.executable, "-m", "cwb", "run", str(path), "--repeat", "1000000", "--quiet"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, env={**os.environ, "TMPDIR": str(folder)})
    while process.poll() is None and len(children()) < 5:
        time.sleep(0.05)
    assert process.poll() is None
    return process


def test_the_folder_of_temporary_files_may_have_a_long_name(tmp_path, monkeypatch):
    """The system's longest address of a socket does not limit the name of the folder."""
    (long := tmp_path / ("long" * 40)).mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(long))
    assert cwb.run(solve_and_write("all_gather"), repeat=1).ok
    assert list(long.iterdir()) == []


def wait_for_the_end(of: list[psutil.Process]) -> None:
    """Wait until no process is left, except for those that whoever has to has not looked after yet."""
    _, left = psutil.wait_procs(of, timeout=20)
    assert all(each.status() == psutil.STATUS_ZOMBIE for each in left)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_no_process_survives_a_signal(number, tmp_path):
    """After Ctrl-C, SIGTERM, and even if the command is killed, none of its processes and files is left."""
    path, folder = tmp_path / "s.json", tmp_path / "tmp"
    folder.mkdir()
    done = solve_and_write("all_gather")
    write_schedule(path, done.problem, done.schedule)
    process = start(path, folder)
    started = children()
    process.send_signal(number)
    _, told = process.communicate(timeout=60)
    assert process.returncode == (-9 if number == signal.SIGKILL else 128 + number), told
    wait_for_the_end(started)
    assert list(folder.iterdir()) == []


def test_several_executions_at_once():
    """Two executions at the same time do not meet."""
    done, found = solve_and_write("all_reduce"), []
    threads = [threading.Thread(target=lambda: found.append(cwb.run(done, repeat=2).ok)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True, True]


def test_messages_beyond_a_buffer():
    """Messages that no socket can hold are exchanged both ways at once, without blocking."""
    done = solve_and_write("all_to_all", "complete(2)", "direct", 2**25)
    assert cwb.run(done, repeat=1).ok
