"""The process that forks the local processes of an execution: ``python -m cwb.harness.execution.children FD...``.

Libraries are imported once, before it forks. Each descriptor is a connection between the process that started it and
one of its children; a child whose connection ends, ends too.
"""

from __future__ import annotations

import os
import pickle
import socket
import sys
from typing import NamedTuple

from .player import Job, perform
from .program import Program
from .sockets import Address, ConnectionLost, SocketTransport, connect, listen


class Assignment(NamedTuple):
    """Work of a child, and addresses to listen at and to connect to."""

    number: int
    program: Program
    job: Job
    listens: list[Address]
    targets: dict[int, Address]


def serve(control: socket.socket) -> None:
    """Execute one assignment, and send its report."""
    with control.makefile("rb") as reader:
        given: Assignment = pickle.load(reader)  # noqa: S301 - of the process that started this one
    listeners = listen(given.listens)
    control.sendall(b"l")
    if control.recv(1) != b"c":
        raise ConnectionLost
    sources = len(given.program.receives)
    outgoing, incoming = connect(given.number, listeners, given.targets, sources)
    transport = SocketTransport(control, outgoing, incoming)
    control.sendall(pickle.dumps(perform(given.program, given.job, transport)))


def main(descriptors: list[int]) -> None:
    """Fork a child for each descriptor, and wait for all of them."""
    children = []
    for index, descriptor in enumerate(descriptors):
        if pid := os.fork():
            children.append(pid)
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
    for pid in children:
        os.waitpid(pid, 0)


if __name__ == "__main__":
    main([int(word) for word in sys.argv[1:]])
