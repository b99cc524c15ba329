"""Messages between processes over sockets, one for each direction of each pair.

Both ends know the sizes and the order of the messages, so that streams carry data alone, without headers.
"""

import selectors
import socket
import struct
import time
from collections import deque
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

Address = str | tuple[str, int]  #: Address of a process: the path of a Unix-domain socket, or host and port.
_BUFFER_BYTES = 2**20  #: Bytes that a socket may buffer.
_CONNECT_S = 60.0  #: Seconds in which all processes must be connected.


class ConnectionLost(Exception):
    """Another process, or the one that started this one, has ended."""


class SocketTransport:
    """Connections to other processes, by their numbers.

    ``control`` leads to the process that started this one, which says when a repetition begins.
    """

    def __init__(
        self, control: socket.socket, outgoing: dict[int, socket.socket], incoming: dict[int, socket.socket]
    ) -> None:
        self._control = control
        self._sockets = {True: incoming, False: outgoing}  # by "is incoming", like the messages below
        self._remaining: dict[tuple[int, bool], memoryview] = {}
        self._events: list[tuple[int, bool]] = []
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
        """Wait for messages to complete; return the peer of each and whether it is incoming."""
        while not self._events:
            for key, _ in self._selector.select(self._timeout_s()):
                if key.data is None:
                    raise ConnectionLost  # closed: nothing is sent on it while a repetition runs
                if self._transfer(*key.data):
                    self._selector.unregister(key.fileobj)
                    self._events.append(key.data)
        events, self._events = self._events, []
        return events

    def _timeout_s(self) -> float | None:
        """Return the seconds for which nothing but a socket can complete a message; None without a limit."""
        return None

    def start(self) -> float:
        """Say that this process is ready, wait for the common instant of all, and return it."""
        self._control.sendall(b"r")
        (instant,) = struct.unpack("d", _receive_exactly(self._control, 8))
        time.sleep(max(0.0, instant - time.perf_counter()))
        return float(instant)

    def _begin(self, peer: int, data: memoryview, *, incoming: bool) -> None:
        self._remaining[peer, incoming] = data
        if self._transfer(peer, incoming):
            self._events.append((peer, incoming))
        else:
            event = selectors.EVENT_READ if incoming else selectors.EVENT_WRITE
            self._selector.register(self._sockets[incoming][peer], event, (peer, incoming))

    def _transfer(self, peer: int, incoming: bool) -> bool:
        """Move as many bytes as is possible without waiting; return whether the message is complete."""
        data, end = self._remaining[peer, incoming], self._sockets[incoming][peer]
        with suppress(BlockingIOError):
            while data:
                count = end.recv_into(data) if incoming else end.send(data)
                if incoming and not count:
                    raise ConnectionLost
                data = data[count:]
        self._remaining[peer, incoming] = data
        return not data


class DelayedTransport(SocketTransport):
    """Connections whose incoming data counts as received a latency after its arrival.

    Data is read as soon as it arrives, so that its time of arrival is known and the sender is not held up.
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
        self._selector = selectors.SelectSelector()  # timeouts of other selectors are whole milliseconds
        self._selector.register(control, selectors.EVENT_READ)
        self._latency_s = latency_s
        self._undelivered: dict[int, deque[tuple[float, memoryview]]] = {peer: deque() for peer in incoming}
        for peer, end in incoming.items():
            self._selector.register(end, selectors.EVENT_READ, (peer, True))

    def receive(self, peer: int, into: memoryview) -> None:
        """Begin to receive the next message of a process."""
        self._remaining[peer, True] = into

    def _timeout_s(self) -> float | None:
        """Deliver what is due; return the seconds until more is, 0 if a message has completed."""
        next_due = min((due for peer in self._undelivered if (due := self._deliver(peer)) is not None), default=None)
        if self._events:
            return 0.0
        return None if next_due is None else max(0.0, next_due - time.perf_counter())

    def _transfer(self, peer: int, incoming: bool) -> bool:
        """Read what has come from a process, and note when it counts as received; send as before."""
        if not incoming:
            return super()._transfer(peer, incoming)
        end = self._sockets[True][peer]
        with suppress(BlockingIOError):
            while part := end.recv(_BUFFER_BYTES):
                self._undelivered[peer].append((time.perf_counter() + self._latency_s[peer], memoryview(part)))
            self._selector.unregister(end)  # the other process has ended
            waiting = sum(len(part) for _, part in self._undelivered[peer])
            if waiting < len(self._remaining.get((peer, True), b"")):
                raise ConnectionLost
        return False

    def _deliver(self, peer: int) -> float | None:
        """Deliver data that is due; return when the next data is due, None if no message waits for it."""
        waiting, into = self._undelivered[peer], self._remaining.get((peer, True))
        while into is not None and waiting:
            due, part = waiting[0]
            if due > time.perf_counter():
                return due
            count = min(len(part), len(into))
            into[:count] = part[:count]
            into = self._remaining[peer, True] = into[count:]
            waiting.popleft()
            if len(part) > count:
                waiting.appendleft((due, part[count:]))
            if not into:
                del self._remaining[peer, True]
                self._events.append((peer, True))
                return None
        return None


def listen(addresses: Iterable[Address]) -> list[socket.socket]:
    """Return a listening socket for every address."""
    listeners = []
    for address in addresses:
        family = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET
        end = socket.socket(family, socket.SOCK_STREAM)
        end.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        end.bind(address)
        end.listen(socket.SOMAXCONN)
        listeners.append(end)
    return listeners


def connect(
    number: int, listeners: list[socket.socket], targets: Mapping[int, Address], sources: int
) -> tuple[dict[int, socket.socket], dict[int, socket.socket]]:
    """Connect to the targets, and accept as many connections as there are sources; all listen already.

    The number of this process is sent first on every connection. Return outgoing and incoming connections by the number
    of the other process.
    """
    outgoing, incoming = dict[int, socket.socket](), dict[int, socket.socket]()
    for peer, address in targets.items():
        family = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET
        end = socket.socket(family, socket.SOCK_STREAM)
        end.settimeout(_CONNECT_S)
        _set_options(end)
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
                _set_options(end)
                incoming[struct.unpack("i", _receive_exactly(end, 4))[0]] = end
    return outgoing, incoming


def _set_options(end: socket.socket) -> None:
    """Enlarge the buffer of a local socket; over TCP, send without delay and with Reno congestion control."""
    if end.family == socket.AF_INET:
        end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        end.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"reno")  # on every Linux; others probe for bandwidth
    else:
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _BUFFER_BYTES)


def _receive_exactly(end: socket.socket, count: int) -> bytes:
    """Return exactly so many bytes from a socket."""
    data = b""
    while len(data) < count:
        if not (part := end.recv(count - len(data))):
            raise ConnectionLost
        data += part
    return data
