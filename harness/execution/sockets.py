"""Messages between processes over sockets, one for each direction of each pair.

Sizes and order of the messages are known at both ends, so that a stream has the bytes of the data and nothing else.
"""

from __future__ import annotations

import selectors
import socket
import struct
import time
from collections import deque
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

#: Address of a process: the path of a Unix-domain socket, or host and port.
Address = str | tuple[str, int]

#: Bytes that a socket may buffer.
_BUFFER_BYTES = 2**20

#: Seconds in which all processes must be connected.
_CONNECT_S = 60.0


class ConnectionLost(Exception):
    """End of another process, or of the one that started this one."""


class SocketTransport:
    """Connections to other processes, and to the one that started this one.

    Parameters
    ----------
    control : socket
        Connection to the process that started this one; it says when a repetition begins.
    """

    def __init__(
        self, control: socket.socket, outgoing: dict[int, socket.socket], incoming: dict[int, socket.socket]
    ) -> None:
        self._control = control
        self._sockets = {True: incoming, False: outgoing}
        self._left: dict[tuple[int, bool], memoryview] = {}
        self._ended: list[tuple[int, bool]] = []
        self._selector: selectors.BaseSelector = selectors.DefaultSelector()
        self._selector.register(control, selectors.EVENT_READ)
        for end in (*outgoing.values(), *incoming.values()):
            end.setblocking(False)

    def send(self, peer: int, data: memoryview) -> None:
        """Begin to send a message."""
        self._begin(peer, data, incoming=False)

    def receive(self, peer: int, into: memoryview) -> None:
        """Begin to receive the next message of a process."""
        self._begin(peer, into, incoming=True)

    def wait(self) -> list[tuple[int, bool]]:
        """Return messages that have ended, at least one."""
        while not self._ended:
            for key, _ in self._selector.select():
                if key.data is None:
                    raise ConnectionLost  # nothing is said while a repetition runs
                if self._move(*key.data):
                    self._selector.unregister(key.fileobj)
                    self._ended.append(key.data)
        ended, self._ended = self._ended, []
        return ended

    def start(self) -> float:
        """Say that this process is ready, wait for the common instant of all, and return it."""
        self._control.sendall(b"r")
        (instant,) = struct.unpack("d", _read(self._control, 8))
        time.sleep(max(0.0, instant - time.perf_counter()))
        return float(instant)

    def _begin(self, peer: int, data: memoryview, *, incoming: bool) -> None:
        self._left[peer, incoming] = data
        if self._move(peer, incoming):
            self._ended.append((peer, incoming))
        else:
            event = selectors.EVENT_READ if incoming else selectors.EVENT_WRITE
            self._selector.register(self._sockets[incoming][peer], event, (peer, incoming))

    def _move(self, peer: int, incoming: bool) -> bool:
        """Move as many bytes as is possible without waiting; return whether the message has ended."""
        data, end = self._left[peer, incoming], self._sockets[incoming][peer]
        with suppress(BlockingIOError):
            while data:
                count = end.recv_into(data) if incoming else end.send(data)
                if incoming and not count:
                    raise ConnectionLost
                data = data[count:]
        self._left[peer, incoming] = data
        return not data


class LateTransport(SocketTransport):
    """Connections whose incoming data counts as received some time after it has come.

    Data is taken as soon as it comes, so that its time is known and the sender does not wait.

    Parameters
    ----------
    latency_s : dict of int to float
        Seconds for data of every other process.
    """

    def __init__(
        self,
        control: socket.socket,
        outgoing: dict[int, socket.socket],
        incoming: dict[int, socket.socket],
        latency_s: Mapping[int, float],
    ) -> None:
        super().__init__(control, outgoing, incoming)
        self._selector.close()
        self._selector = selectors.SelectSelector()  # others wait for whole milliseconds
        self._selector.register(control, selectors.EVENT_READ)
        self._latency_s = latency_s
        self._early: dict[int, deque[tuple[float, memoryview]]] = {peer: deque() for peer in incoming}
        for peer, end in incoming.items():
            self._selector.register(end, selectors.EVENT_READ, (peer, True))

    def receive(self, peer: int, into: memoryview) -> None:
        """Begin to receive the next message of a process."""
        self._left[peer, True] = into

    def wait(self) -> list[tuple[int, bool]]:
        """Return messages that have ended, at least one."""
        while not self._ended:
            next_s = min((due for peer in self._early if (due := self._deliver(peer)) is not None), default=None)
            left_s = 0.0 if self._ended else None if next_s is None else max(0.0, next_s - time.perf_counter())
            for key, _ in self._selector.select(left_s):
                if key.data is None:
                    raise ConnectionLost  # nothing is said while a repetition runs
                peer, incoming = key.data
                if incoming:
                    self._take(peer)
                elif self._move(peer, incoming):
                    self._selector.unregister(key.fileobj)
                    self._ended.append(key.data)
        ended, self._ended = self._ended, []
        return ended

    def _take(self, peer: int) -> None:
        end = self._sockets[True][peer]
        with suppress(BlockingIOError):
            while part := end.recv(_BUFFER_BYTES):
                self._early[peer].append((time.perf_counter() + self._latency_s[peer], memoryview(part)))
            self._selector.unregister(end)  # the other process has ended
            missing = len(self._left.get((peer, True), b"")) - sum(len(part) for _, part in self._early[peer])
            if missing > 0:
                raise ConnectionLost

    def _deliver(self, peer: int) -> float | None:
        """Write data that is due; return when the next is due, if a message waits for it."""
        early, into = self._early[peer], self._left.get((peer, True))
        while into is not None and early:
            due, part = early[0]
            if due > time.perf_counter():
                return due
            count = min(len(part), len(into))
            into[:count] = part[:count]
            into = self._left[peer, True] = into[count:]
            early.popleft()
            if len(part) > count:
                early.appendleft((due, part[count:]))
            if not into:
                del self._left[peer, True]
                self._ended.append((peer, True))
                return None
        return None


def listen(addresses: Iterable[Address]) -> list[socket.socket]:
    """Return sockets that accept connections at some addresses."""
    found = []
    for address in addresses:
        family = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET
        end = socket.socket(family, socket.SOCK_STREAM)
        end.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        end.bind(address)
        end.listen(socket.SOMAXCONN)
        found.append(end)
    return found


def connect(
    number: int, listeners: list[socket.socket], targets: Mapping[int, Address], sources: int
) -> tuple[dict[int, socket.socket], dict[int, socket.socket]]:
    """Connect to the targets, and accept as many connections as there are sources; all listen already.

    Returns
    -------
    outgoing, incoming : dict of int to socket
        By the number of the other process.
    """
    outgoing, incoming = dict[int, socket.socket](), dict[int, socket.socket]()
    for peer, address in targets.items():
        family = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET
        end = socket.socket(family, socket.SOCK_STREAM)
        end.settimeout(_CONNECT_S)
        _prepare(end)
        end.connect(address)
        end.sendall(struct.pack("i", number))
        outgoing[peer] = end
    with selectors.DefaultSelector() as selector:
        for listener in listeners:
            selector.register(listener, selectors.EVENT_READ)
        while len(incoming) < sources:
            if not (ready := selector.select(_CONNECT_S)):
                raise ConnectionLost
            for key, _ in ready:
                listener_: Any = key.fileobj
                end, _ = listener_.accept()
                end.settimeout(_CONNECT_S)
                _prepare(end)
                incoming[struct.unpack("i", _read(end, 4))[0]] = end
    return outgoing, incoming


def _prepare(end: socket.socket) -> None:
    """Enlarge the buffers of a local socket; send without delay over TCP, with the plainest control of congestion."""
    if end.family == socket.AF_INET:
        end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        end.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"reno")  # of every Linux; others probe for more
    else:
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _BUFFER_BYTES)


def _read(end: socket.socket, count: int) -> bytes:
    found = b""
    while len(found) < count:
        if not (part := end.recv(count - len(found))):
            raise ConnectionLost
        found += part
    return found
