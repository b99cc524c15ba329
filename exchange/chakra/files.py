"""Files of traces: ``PREFIX.RANK.et`` for every rank, in a folder."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ...core.errors import InputError, locate_errors, locate_os_errors
from .schema import (
    COLL,
    INTEGERS,
    LAST_TYPE,
    RECV,
    SEND,
    VERSION,
    decode_message,
    frame_message,
    messages,
    split_messages,
)
from .trace import ADDED, KEPT, PASSED, Node, Trace

#: Bytes of all files, and nodes with what they wait for: an all-gather of 1,024 ranks around a ring has 2,095,104.
MAX_BYTES, MAX_NODES, MAX_DEPENDENCES = 2**28, 2**21, 2**22

#: Attributes of cwb's own: which chunk a message is of, and what becomes of it at the receiver.
DATA, USE = "cwb_chunk", "cwb_use"

_NAME = re.compile(r"(.+)\.(0|[1-9][0-9]{0,5})\.et\Z")


def file_of(trace: Trace, rank: int) -> bytes:
    """Encode the file of a rank."""
    kinds = messages()
    parts = [frame_message(kinds.metadata(version=VERSION))]
    for node in trace.ranks[rank]:
        message = kinds.node(id=node.id, name=node.name, type=node.type, data_deps=node.after)
        if node.type in (SEND, RECV):
            ends = (rank, node.peer) if node.type == SEND else (node.peer, rank)
            _attribute(message, "comm_size", node.size_bytes)
            _attribute(message, "comm_src", ends[0])
            _attribute(message, "comm_dst", ends[1])
            _attribute(message, "comm_tag", node.tag)
            _attribute(message, "msg_chunk_cnt", node.grains)
            _attribute(message, "total_chunk_cnt", trace.grains)
            known = (
                {} if node.data < 0 else {DATA: node.data} if node.type == SEND else {DATA: node.data, USE: node.use}
            )
            for name, value in known.items():
                _attribute(message, name, value)
        parts.append(frame_message(message))
    return b"".join(parts)


def workload_of(name: str, collective: int, size_bytes: int) -> bytes:
    """Encode the file of a rank whose only work is one collective, by its number in the schema."""
    kinds = messages()
    message = kinds.node(id=0, name=name, type=COLL)
    message.attr.add(name="is_cpu_op", bool_val=False)
    _attribute(message, "comm_type", collective)
    _attribute(message, "comm_size", size_bytes)
    return frame_message(kinds.metadata(version=VERSION)) + frame_message(message)


def _attribute(message: Any, name: str, value: int) -> None:
    message.attr.add(name=name, int64_val=value)


def read_trace(folder: Path) -> Trace:
    """Read the trace in a folder.

    Raises
    ------
    InputError
        If the folder has not exactly one file for every rank from 0, the files are larger than :data:`MAX_BYTES`, or
        one is no file of Chakra, or has a node that is no send, receive or work of its own rank.
    """
    paths = _paths(folder)
    left = MAX_BYTES
    nodes: list[tuple[Node, ...]] = []
    room = [MAX_NODES, MAX_DEPENDENCES]
    for rank, path in enumerate(paths):
        with locate_errors(source=str(path)):
            raw = _read(path, left)
            left -= len(raw)
            nodes.append(tuple(_nodes(raw, rank, len(paths), room)))
    return Trace(tuple(nodes))


def _paths(folder: Path) -> list[Path]:
    """Return the file of every rank."""
    found: dict[int, Path] = {}
    prefixes: set[str] = set()
    for path in sorted(folder.glob("*.et")):
        match = _NAME.match(path.name)
        if match is None:
            raise InputError("expected a name such as PREFIX.0.et, with the rank", source=str(path))
        prefixes.add(match[1])
        found[int(match[2])] = path
    with locate_errors(source=str(folder)):
        if not found:
            raise InputError("has no .et file")
        if len(prefixes) > 1:
            first, second, *_ = sorted(prefixes)
            raise InputError(f"has files of {first!r} and of {second!r}; expected those of one trace")
        missing = next((rank for rank in range(len(found)) if rank not in found), None)
        if missing is not None:
            raise InputError(f"has no file of rank {missing}, but one of rank {max(found)}")
    return [found[rank] for rank in range(len(found))]


def _read(path: Path, most: int) -> bytes:
    """Read a file, but no more than there may be."""
    with locate_os_errors("cannot be read"):
        if not path.is_file():
            raise InputError("expected a file")
        with path.open("rb") as stream:
            raw = stream.read(most + 1)
    if len(raw) > most:
        raise InputError(f"the files of the trace have more than {MAX_BYTES:,} bytes")
    return raw


def _nodes(raw: bytes, rank: int, ranks: int, room: list[int]) -> Iterator[Node]:
    """Yield the nodes of a file; ``room`` holds the remaining numbers of nodes and dependences."""
    kinds = messages()
    known: dict[int, int] = {}  # numbers, each of which is kept once
    number = -1
    for number, content in enumerate(split_messages(raw)):
        with locate_errors(place=f"message {number}"):
            if number == 0:
                decode_message(kinds.metadata, content)
                continue
            node = _node(decode_message(kinds.node, content), rank, ranks)
            if node.id in known:
                raise InputError(f"node {node.id} is defined twice")
            known[node.id] = node.id
            node = node._replace(after=tuple([known.get(before, before) for before in node.after]))
            room[0] -= 1
            room[1] -= len(node.after)
            if min(room) < 0:
                raise InputError(f"more than {MAX_NODES:,} nodes, or {MAX_DEPENDENCES:,} dependences, in all files")
        yield node
    if number < 0:
        raise InputError("is empty; expected metadata and nodes")


def _node(message: Any, rank: int, ranks: int) -> Node:
    """Convert a message to a node."""
    name = f"node {message.id}"
    if not 0 < message.type <= LAST_TYPE:
        raise InputError(f"{name} has type {message.type}; expected 1 to {LAST_TYPE}")
    if message.type == COLL:
        raise InputError(f"{name} is a whole collective; expected its sends and receives")
    after = tuple({*message.data_deps, *message.ctrl_deps})
    if message.type not in (SEND, RECV):
        return Node(message.id, message.type, after)
    values = {one.name: _integer(one) for one in message.attr}
    own, other = ("comm_src", "comm_dst") if message.type == SEND else ("comm_dst", "comm_src")
    peer, tag, size = (_require_value(values, key, name) for key in (other, "comm_tag", "comm_size"))
    if not 0 <= peer < ranks:
        raise InputError(f"{name} has {other} {peer}; expected a rank from 0 to {ranks - 1}")
    if values.get(own, rank) != rank:
        raise InputError(f"{name} has {own} {values[own]}, but the file is of rank {rank}")
    if size < 0:
        raise InputError(f"{name} has comm_size {size}; expected at least 0")
    grains, data, use = values.get("msg_chunk_cnt"), values.get(DATA), values.get(USE)
    known = data is not None and data >= 0 and use in ((None,) if message.type == SEND else (KEPT, ADDED, PASSED))
    node = Node(message.id, message.type, after, peer, tag, size, max(grains or 0, 0))
    return node._replace(data=data or 0, use=use or 0) if known else node


def _integer(attribute: Any) -> int | None:
    """Return the value of an attribute, if it is an integer of any kind."""
    kind = attribute.WhichOneof("value")
    if kind is None or kind.removesuffix("_val") not in INTEGERS:
        return None
    return int(getattr(attribute, kind))


def _require_value(values: dict[str, int | None], key: str, name: str) -> int:
    value = values.get(key)
    if value is None:
        raise InputError(f"{name} has no integer {key}")
    return value
