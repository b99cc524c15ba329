"""Execution on the processes of an MPI program."""

from __future__ import annotations

import _thread
import json
import os
import signal
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, files
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import cwb
import pytest
from cwb.core.errors import SolverUnavailable
from cwb.harness.execution import mpi
from cwb.harness.interrupt import RunInterrupted
from cwb.schedules.files import write_schedule

BENCHMARK = Path(__file__).parents[3] / "benchmarks" / "msccl_mpi.py"

pytestmark = pytest.mark.slow  # programs of several processes are started


@pytest.fixture(scope="module")
def launcher(require_program):
    """Give mpirun and the environment for it.

    The wheel's library and program are beside its packages, which an environment over another one has from there.
    """
    if find_spec("mpi4py") is None:  # not imported: Pyomo then loads the library, which may not be on the path
        pytest.skip("mpi4py is not installed")
    try:
        found = {file.name: str(Path(file.locate()).resolve()) for file in files("mpich") or ()}
    except PackageNotFoundError:
        found = {}
    program = found.get("mpirun") or require_program("mpirun")
    library = os.pathsep.join(filter(None, [str(Path(program).parents[1] / "lib"), os.environ.get("LD_LIBRARY_PATH")]))
    environment = {**os.environ, "LD_LIBRARY_PATH": library}
    loads = subprocess.run([sys.executable, "-c", "import mpi4py.MPI"], env=environment, check=False)
    if loads.returncode:
        pytest.skip("mpi4py finds no MPI library")
    return program, environment


@pytest.fixture(scope="module")
def mpirun(launcher):
    """Start as many processes of the command line as are asked for."""
    program, environment = launcher

    def start(count: int, *words: str | Path) -> subprocess.CompletedProcess[str]:
        command = [program, "-n", str(count), sys.executable, "-m", "cwb", "run", *map(str, words)]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300, env=environment)

    return start


@pytest.mark.parametrize(
    ("method", "spec", "collective", "count"),
    [
        ("direct", "complete(2)", "all_reduce", 2),
        pytest.param("ring", "ring(3)", "all_reduce", 3, marks=pytest.mark.nightly),
        pytest.param("direct", "complete(3)", "all_to_all", 3, marks=pytest.mark.nightly),
        ("forestcoll", "complete(2)", "all_gather", 2),
        pytest.param("ring", "torus(3,2)", "all_reduce", 6, marks=pytest.mark.nightly),
        pytest.param("forestcoll", "dgx1()", "all_gather", 8, marks=pytest.mark.nightly),
        ("switch-trees", "sharp", "all_reduce", 5),
    ],
)
def test_schedules_run_on_mpi_processes(method, spec, collective, count, mpirun, tmp_path):
    """Steps, trees, and a switch that adds have the right result on as many processes as there are ranks and switches;
    the first process prints one object."""
    done = cwb.solve(spec, method, collective=collective, size="64 KiB")
    write_schedule(tmp_path / "s.json", done.problem, done.schedule)
    ended = mpirun(count, tmp_path / "s.json", "--repeat", "3", "--json")
    assert ended.returncode == 0, ended.stderr
    found = json.loads(ended.stdout)
    assert found["right"]
    assert found["processes"] == "mpi"
    assert len(found["seconds"]) == 3


def test_the_number_of_processes_is_told(mpirun, tmp_path):
    """If there are more or fewer processes than the schedule has, one of them says how many it needs."""
    done = cwb.solve("ring(3)", "ring", collective="all_gather", size="64 KiB")
    write_schedule(tmp_path / "s.json", done.problem, done.schedule)
    ended = mpirun(2, tmp_path / "s.json")
    assert ended.returncode == 2
    assert ended.stderr.count("2 MPI processes for 3 ranks and switches; expected mpirun -n 3") == 1


@pytest.mark.parametrize(
    ("words", "status", "told"),
    [
        (("--size", "1 TiB"), 4, "a smaller --size would fit"),
        (("--repeat", "1000000", "--time-limit", "2"), 4, "the time limit of 2 s ran out"),
        (("--processes", "local"), 2, "mpirun has started several"),
    ],
)
def test_failures_are_told_once(words, status, told, mpirun, tmp_path):
    """Too little memory or time, and local processes, end all with the documented status, and one of them says why; if
    they were interrupted, mpirun ends them, with a status of its own."""
    done = cwb.solve("complete(2)", "direct", collective="all_gather", size="64 KiB")
    write_schedule(tmp_path / "s.json", done.problem, done.schedule)
    ended = mpirun(2, tmp_path / "s.json", "--quiet", *words)
    lines = {line for line in ended.stderr.splitlines() if line.startswith("cwb")}
    assert len(lines) == 1, ended.stderr
    assert told in lines.pop()
    if "--time-limit" in words:  # mpirun prints that it ended the others
        assert ended.returncode
    else:
        assert ended.returncode == status, ended.stderr
        assert ended.stdout == ""


def test_msccl_files_are_executed_by_a_program_that_imports_nothing_of_cwb(launcher, tmp_path):
    """A right file gives its collective on MPI processes, and one without a receive hangs, which is found."""
    schedule = cwb.solve("ring(3)", "ring", collective="all_reduce", size="64 KiB", output=tmp_path / "s.json")
    assert schedule.verified
    cwb.export_msccl(tmp_path / "s.json", output=tmp_path / "right.xml")
    lines = (tmp_path / "right.xml").read_text().splitlines(keepends=True)
    lines.remove(next(line for line in lines if 'type="rr' in line))
    (tmp_path / "wrong.xml").write_text("".join(lines))
    rows = ["file,ranks,expected,what", "right.xml,3,right,", "wrong.xml,3,wrong,", "right.xml,3,right,"]
    (tmp_path / "files.csv").write_text("\n".join(rows))
    program, environment = launcher
    command = [program, "-n", "3", sys.executable, BENCHMARK, tmp_path]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300, env=environment)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.splitlines()[1:] == ["  right, executed right: 2", "  wrong, executed wrong: 1"]


@pytest.mark.parametrize("first_fails", [True, False])
def test_an_error_of_one_process_ends_all(first_fails, mpirun, tmp_path):
    """A file that one process does not find ends all processes, which would wait for it, with its error, said once."""
    done = cwb.solve("complete(2)", "direct", collective="all_gather", size="64 KiB")
    write_schedule(tmp_path / "s.json", done.problem, done.schedule)
    names = ("none.json", "s.json") if first_fails else ("s.json", "none.json")
    second = (":", "-n", "1", sys.executable, "-m", "cwb", "run", tmp_path / names[1], "--quiet")
    ended = mpirun(1, tmp_path / names[0], "--quiet", *second)
    assert ended.returncode == 2
    assert ended.stderr.count("none.json: no such file or directory") == 1


@pytest.mark.parametrize(
    ("library", "told"), [(None, "mpi4py is not installed"), (object(), "mpi4py finds no MPI library")]
)
def test_without_mpi_the_extra_is_named(library, told, monkeypatch):
    """If mpi4py or a library is missing, the error says how to get it."""
    monkeypatch.setitem(sys.modules, "mpi4py", library)
    done = cwb.solve("ring(4)", "ring", collective="all_gather", size="64 KiB")
    with pytest.raises(SolverUnavailable, match=rf"{told}; pip install 'cwb\[mpi\]'"):
        cwb.run(done, processes="mpi")


def test_a_second_interrupt_does_not_keep_a_process_from_ending_the_others(monkeypatch):
    """A process that is interrupted while it ends all processes ends them all the same, after the first had its say."""
    ended = []
    other = SimpleNamespace(Get_rank=lambda: 1, Abort=ended.append)
    monkeypatch.setattr(mpi.threading, "Timer", lambda *_: SimpleNamespace(start=lambda: None))
    monkeypatch.setattr(mpi.time, "sleep", lambda _: _thread.interrupt_main())
    monkeypatch.setattr(mpi.os, "_exit", sys.exit)
    handler = signal.getsignal(signal.SIGINT)
    try:
        with pytest.raises(SystemExit):
            mpi._end_all(other, RunInterrupted("out of time"))
    finally:
        signal.signal(signal.SIGINT, handler)
    assert ended == [4]


def test_mpirun_is_known_by_its_variables(monkeypatch):
    """Processes of Open MPI and of MPICH know that they are several, and which one is the first."""
    for name in (*mpi._SIZES, *mpi._RANKS):
        monkeypatch.delenv(name, raising=False)
    assert not mpi.is_started_by_mpi()
    assert mpi.is_first_process()
    for size, rank in (("OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"), ("PMI_SIZE", "PMI_RANK")):
        with monkeypatch.context() as patch:
            patch.setenv(size, "2")
            patch.setenv(rank, "1")
            assert mpi.is_started_by_mpi()
            assert not mpi.is_first_process()
