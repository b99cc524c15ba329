"""The process that forks the local ones of an execution: ``python -m cwb.harness.execution.children FOLDER FD...``.

Libraries are imported once, before it forks. Each descriptor is a connection between the process that started it and
one of its children; a child whose connection ends, ends too. Sockets are in the folder, which is removed after all have
ended, even if the process that made it was killed. Addresses are relative to it: longer ones than some 100 bytes are
none for the system.
"""

import ctypes
import os
import pickle
import shutil
import signal
import socket
import sys
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from .player import Job, perform
from .program import Program
from .sockets import Address, ConnectionLost, DelayedTransport, SocketTransport, connect, listen

NAMESPACES = "/var/run/netns"  #: Folder in which ``ip`` keeps the names of namespaces.

_CLONE_NEWNET = 0x40000000


class Assignment(NamedTuple):
    """Work of a child, and addresses to listen at and to connect to."""

    number: int
    program: Program
    job: Job
    listens: list[Address]
    targets: dict[int, Address]
    namespace: str = ""  #: Name of its network namespace; empty for that of the process that started it.
    #: Seconds after which data of another process counts as received, where there are any.
    latency_s: dict[int, float] | None = None


def serve(control: socket.socket) -> None:
    """Execute one assignment, and send its report."""
    with control.makefile("rb") as reader:
        assignment: Assignment = pickle.load(reader)  # noqa: S301 - of the process that started this one
    if assignment.namespace:
        enter(assignment.namespace)
    listeners = listen(assignment.listens)
    control.sendall(b"l")
    if control.recv(1) != b"c":
        raise ConnectionLost
    sources = len(assignment.program.receives)
    outgoing, incoming = connect(assignment.number, listeners, assignment.targets, sources)
    if assignment.latency_s is None:
        transport = SocketTransport(control, outgoing, incoming)
    else:
        transport = DelayedTransport(control, outgoing, incoming, assignment.latency_s)
    control.sendall(pickle.dumps(perform(assignment.program, assignment.job, transport)))


def enter(namespace: str) -> None:
    """Move this process into a network namespace, with the priority of what must not wait for other programs."""
    library = ctypes.CDLL(None, use_errno=True)
    with Path(NAMESPACES, namespace).open("rb") as file:
        if library.setns(file.fileno(), _CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), namespace)
    with suppress(OSError):  # of a container that may not: times are those of a busy machine then
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))


def main(folder: str, descriptors: list[int]) -> None:
    """Fork a child for each descriptor, wait for all of them, and say which were killed."""
    os.chdir(folder)
    for index, descriptor in enumerate(descriptors):
        if os.fork():
            os.close(descriptor)
            continue
        status = 1
        try:
            for other in descriptors[index + 1 :]:
                os.close(other)
            serve(socket.socket(fileno=descriptor))
            status = 0
        except (ConnectionLost, ConnectionError):
            status = 2  # another one has failed, and says why
        except BaseException as error:  # of a child, which must not go on as its parent
            print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
        finally:
            os._exit(status)
    for _ in descriptors:
        if os.WIFSIGNALED(status := os.wait()[1]):
            print(f"killed by {signal.Signals(os.WTERMSIG(status)).name}", file=sys.stderr, flush=True)
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main(sys.argv[1], [int(word) for word in sys.argv[2:]])
