"""The process that runs are forked from: it imports their libraries once, and runs nothing itself.

A fork has these imports within milliseconds, where an interpreter needs seconds for them. It starts in the same
state regardless of earlier runs, so that its peak memory and all its leftovers are its own, and end with it. Why the
standard library's ``forkserver`` is unsuitable: docs/architecture.md, "Libraries and own code".

Each request is one packet on a socket, with the descriptors of the run: stdin, stdout and stderr. Stdout is a
socket for events, of which two are written here: the process number at the start, and the exit status at the end.
"""

import gc
import os
import pickle
import select
import signal
import socket
import sys
import warnings
from contextlib import suppress
from importlib import import_module
from typing import NoReturn

from ..core.kernel import load_type_registries
from . import registry
from .worker import die_with_parent, end_process, import_libraries, perform_task

PACKET_BYTES = 2**16  #: Bytes of a packet: the name of a method.


def main() -> None:
    """Import the libraries and the named solver, and serve until the parent has ended."""
    control = socket.socket(fileno=os.dup(0))
    with open(os.devnull, "rb") as nothing:  # noqa: PTH123 - of which only the descriptor is used
        os.dup2(nothing.fileno(), 0)
    gc.set_threshold(20_000, 20, 50)  # a sixth of the time of imports went to cycles of what lives on
    import_libraries(sys.argv[1] or None)
    load_type_registries()
    gc.collect()
    gc.freeze()
    ForkServer(control).serve()


class ForkServer:
    """Server that forks runs and reports their exit statuses; when its source of requests closes, all end."""

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._events: dict[int, int] = {}
        self._woken, waking = os.pipe()
        for end in (self._woken, waking):
            os.set_blocking(end, False)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        signal.set_wakeup_fd(waking, warn_on_full_buffer=False)

    def serve(self) -> NoReturn:
        """Fork runs on request."""
        while True:
            ready, _, _ = select.select([self._control.fileno(), self._woken], [], [])
            if self._woken in ready:
                os.read(self._woken, 4096)
                self._reap()
            if self._control.fileno() in ready:
                name, descriptors, _, _ = socket.recv_fds(self._control, PACKET_BYTES, 3, socket.MSG_CMSG_CLOEXEC)
                if not descriptors:
                    self._end()
                self._fork(name.decode(), *descriptors)

    def _fork(self, model: str, stdin: int, events: int, stderr: int) -> None:
        _import(model)
        server = os.getpid()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # threads of BLAS, which sees to forks itself
            process = os.fork()
        if process == 0:
            end_process(lambda: self._begin(server, stdin, events, stderr))
        os.close(stdin)
        os.close(stderr)
        self._events[process] = events

    def _begin(self, server: int, stdin: int, events: int, stderr: int) -> None:
        """Become the process of a run."""
        die_with_parent(server)
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.setsid()
        os.write(events, b'{"event": "begun", "pid": %d}\n' % os.getpid())  # fails where the run has been given up
        for number, descriptor in enumerate((stdin, events, stderr)):
            os.dup2(descriptor, number)
        for descriptor in (stdin, events, stderr, *self._events.values()):
            os.close(descriptor)
        self._control.close()
        perform_task(*pickle.load(sys.stdin.buffer))  # noqa: S301 - of the parent

    def _reap(self) -> None:
        """Report the exit status of every run that has ended."""
        while True:
            try:
                process, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if process == 0:
                return
            events = self._events.pop(process)
            with suppress(OSError):  # nobody waits for it any more
                # On a line of its own: that of the run's last event may be cut short.
                os.write(events, b'\n{"event": "ended", "status": %d}\n' % os.waitstatus_to_exitcode(status))
            os.close(events)

    def _end(self) -> NoReturn:
        """Kill the runs in progress, with all their child processes, and exit."""
        for process in self._events:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process, signal.SIGKILL)
        os._exit(0)


def _import(model: str) -> None:
    """Import a method of the package; plugin code is imported in the processes of runs only."""
    if model in {**registry.METHODS, **registry.FORMULATIONS}:
        with suppress(Exception):
            place = registry.get(model).solve
            if isinstance(place, str):
                import_module(place.partition(":")[0])


if __name__ == "__main__":
    main()
