"""Messages between the processes of an MPI program; mpi4py is imported when they are."""

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any, NoReturn

from ...core.budget import why_exhausted
from ...core.errors import CwbError, InputError, OutOfTime, SolverUnavailable
from ..interrupt import RunInterrupted
from .local import memory_shortage
from .player import Job, Report, perform
from .program import Program

#: Variables by which mpirun and srun say how many processes they have started, and which this one is.
_SIZES = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE")
_RANKS = ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "MV2_COMM_WORLD_RANK")

#: Seconds of the first and the longest pause between two looks at unfinished messages.
_PAUSE_S, _LONGEST_S = 1e-6, 1e-4

_SAY_S = 2.0  #: Seconds that the first process has to say why all end.
_FORWARD_S = 0.5  #: Seconds that mpirun has to read what a process says, before aborting would discard it.
_ABORT_S = 5.0  #: Seconds that the library has to end all processes.


def is_started_by_mpi() -> bool:
    """Return whether an MPI program with several processes has started this one."""
    return any(os.environ.get(name, "1") != "1" for name in _SIZES)


def is_first_process() -> bool:
    """Return whether this is the process that speaks for all."""
    return all(os.environ.get(name, "0") == "0" for name in _RANKS)


class MpiTransport:
    """Connections to the other processes of a communicator."""

    def __init__(self, communicator: Any, library: Any) -> None:
        self._communicator, self._library = communicator, library
        self._requests: list[Any] = []
        self._ends: list[tuple[int, bool]] = []

    def send(self, peer: int, data: memoryview) -> None:
        """Begin to send a message."""
        self._requests.append(self._communicator.Isend([data, self._library.BYTE], dest=peer))
        self._ends.append((peer, False))

    def receive(self, peer: int, into: memoryview) -> None:
        """Begin to receive the next message of a process."""
        self._requests.append(self._communicator.Irecv([into, self._library.BYTE], source=peer))
        self._ends.append((peer, True))

    def wait(self) -> list[tuple[int, bool]]:
        """Return messages that have ended, at least one; meanwhile let others have the processor."""
        pause = _PAUSE_S
        while not (ended := self._library.Request.Testsome(self._requests)):
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_S)
        messages, indices = [self._ends[index] for index in ended], set(ended)
        open_indices = [index for index in range(len(self._ends)) if index not in indices]
        self._requests = [self._requests[index] for index in open_indices]
        self._ends = [self._ends[index] for index in open_indices]
        return messages

    def start(self) -> float:
        """Wait for all processes; return the instant."""
        self._communicator.Barrier()
        return time.perf_counter()


_has_joined = threading.Event()  #: Set when this process has told the others whether it has failed.


@contextlib.contextmanager
def shared_errors() -> Iterator[None]:
    """Make an error of one process before :func:`execute_with_mpi` the error of all, which would wait for it forever.

    An error of all is raised in each as its own.
    """
    _has_joined.clear()
    try:
        yield
    except BaseException as error:
        if not _has_joined.is_set() and not isinstance(error, SolverUnavailable):
            _join(error)
        raise


def _join(error: BaseException | None) -> Any:
    """Tell all processes of an error of this one, and return the library; raise the first error of any."""
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as missing:
        reason = "is not installed" if isinstance(missing, ModuleNotFoundError) else "finds no MPI library"
        raise SolverUnavailable(f"mpi4py {reason}; pip install 'cwb[mpi]'") from None
    _has_joined.set()
    if error is not None and not isinstance(error, CwbError):
        _end_all(MPI.COMM_WORLD, error)
    if errors := [other for other in MPI.COMM_WORLD.allgather(error) if other is not None]:
        raise error or errors[0]
    return MPI


def execute_with_mpi(programs: list[Program], job: Job, itemsize: int) -> list[Report]:
    """Execute the program of this process among those of all, and return the reports of all in each."""
    MPI = _join(None)
    try:
        communicator = MPI.COMM_WORLD.Dup()
        number, count = communicator.Get_rank(), communicator.Get_size()
        if count != len(programs):
            text = f"{count:,} MPI processes for {len(programs):,} ranks and switches"
            raise InputError(f"{text}; expected mpirun -n {len(programs)}", source="--processes")
        machine = communicator.Split_type(MPI.COMM_TYPE_SHARED)
        beside: list[int] = machine.allgather(number)
        shortages = communicator.allgather(memory_shortage([programs[other] for other in beside], itemsize))
        if why := max(shortages):
            raise OutOfTime(why)  # in all processes
        report = perform(programs[number], job, MpiTransport(communicator, MPI))
        return list(communicator.allgather(report))
    except CwbError:
        raise
    except BaseException as error:
        _end_all(MPI.COMM_WORLD, error)


def _end_all(communicator: Any, error: BaseException) -> NoReturn:
    """End all processes with the error of this one; the first process speaks if it has one, too.

    A second interrupt would leave the other processes waiting for this one, so that none is taken from here on.
    """
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    status, why = 1, f"internal error: {type(error).__name__}: {error}"
    if isinstance(error, RunInterrupted):
        status, why = int(OutOfTime.exit_status), str(error) or why_exhausted()
    elif isinstance(error, KeyboardInterrupt):
        status, why = 130, "interrupted"
    if communicator.Get_rank():
        time.sleep(_SAY_S)
    print(f"cwb: error: {why}", file=sys.stderr, flush=True)
    # A library that was interrupted may wait for itself; mpirun ends all when this process ends.
    threading.Timer(_ABORT_S, os._exit, (status,)).start()
    time.sleep(_FORWARD_S)
    communicator.Abort(status)
    os._exit(status)  # the library may return before mpirun ends this process, which has said why
