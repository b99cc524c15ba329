"""The process that runs are forked from: it imports what they need once, and runs nothing itself.

A fork has these imports within milliseconds, where an interpreter needs seconds for them. It begins in the same state
whatever ran before it, so that its peak of memory and all that it leaves behind are its own, and end with it.

Each request is one packet on a socket, with the descriptors of the run: stdin, stdout, stderr, and a pipe that is told
two lines: the number of the process when it begins, and its exit status when it has ended.
"""

from __future__ import annotations

import gc
import os
import select
import signal
import socket
import sys
import warnings
from contextlib import suppress
from importlib import import_module
from typing import NoReturn

from ..core.kernel import prepare
from . import registry
from .worker import end_with, ended, import_libraries, perform

#: Bytes of a packet: the name of a method.
PACKET_BYTES = 2**16


def main() -> None:
    """Import the libraries, with the solver that is named, and serve until the parent has ended."""
    control = socket.socket(fileno=os.dup(0))
    with open(os.devnull, "rb") as nothing:  # noqa: PTH123 - of which only the descriptor is used
        os.dup2(nothing.fileno(), 0)
    import_libraries(sys.argv[1] or None)
    prepare()
    gc.collect()
    gc.freeze()
    ForkServer(control).serve()


class ForkServer:
    """Forks runs and tells how they ended.

    Parameters
    ----------
    control : socket
        Where requests come from; its end is that of the server and of all that it has forked.
    """

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._told: dict[int, int] = {}
        self._woken, waking = os.pipe()
        for end in (self._woken, waking):
            os.set_blocking(end, False)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        signal.set_wakeup_fd(waking, warn_on_full_buffer=False)

    def serve(self) -> NoReturn:
        """Fork what is asked for."""
        while True:
            ready, _, _ = select.select([self._control.fileno(), self._woken], [], [])
            if self._woken in ready:
                os.read(self._woken, 4096)
                self._reap()
            if self._control.fileno() in ready:
                name, descriptors, _, _ = socket.recv_fds(self._control, PACKET_BYTES, 4, socket.MSG_CMSG_CLOEXEC)
                if not descriptors:
                    self._end()
                self._fork(name.decode(), *descriptors)

    def _fork(self, model: str, stdin: int, stdout: int, stderr: int, told: int) -> None:
        """Fork a run of a method."""
        _import(model)
        server = os.getpid()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # threads of BLAS, which sees to forks itself
            process = os.fork()
        if process == 0:
            ended(lambda: self._begin(server, stdin, stdout, stderr, told))
        for descriptor in (stdin, stdout, stderr):
            os.close(descriptor)
        self._told[process] = told

    def _begin(self, server: int, stdin: int, stdout: int, stderr: int, told: int) -> None:
        """Become the process of a run."""
        end_with(server)
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.setsid()
        os.write(told, b"%d\n" % os.getpid())  # fails where nobody waits for the run any more
        for number, descriptor in enumerate((stdin, stdout, stderr)):
            os.dup2(descriptor, number)
        for descriptor in (stdin, stdout, stderr, told, *self._told.values()):
            os.close(descriptor)
        self._control.close()
        perform(sys.stdin.buffer.readline())

    def _reap(self) -> None:
        """Report of every run that has ended."""
        while True:
            try:
                process, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if process == 0:
                return
            told = self._told.pop(process)
            with suppress(BrokenPipeError):
                os.write(told, b"%d\n" % os.waitstatus_to_exitcode(status))
            os.close(told)

    def _end(self) -> NoReturn:
        """Kill the runs in progress, with all processes that they have started, and end."""
        for process in self._told:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process, signal.SIGKILL)
        os._exit(0)


def _import(model: str) -> None:
    """Import a method of the package; code of others runs in the processes of runs alone."""
    if model in {**registry.METHODS, **registry.FORMULATIONS}:
        with suppress(Exception):
            place = registry.get(model).solve
            if isinstance(place, str):
                import_module(place.partition(":")[0])


if __name__ == "__main__":
    main()
