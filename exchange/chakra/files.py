"""Files of traces, ``PREFIX.RANK.et`` for every rank in a folder, and the messages of Chakra's schema.

The messages are made at run time from the schema's numbers; each stands behind its length.
"""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from ...core.errors import InputError, locate_errors, locate_os_errors
from .trace import ADDED, COLL, COMP, KEPT, LAST_TYPE, PASSED, RECV, SEND, Node, Trace

#: Bytes of all files, and nodes with what they wait for: an all-gather of 1,024 ranks around a ring has 2,095,104.
MAX_BYTES, MAX_NODES, MAX_DEPENDENCES = 2**28, 2**21, 2**22
#: Attributes of cwb's own: which chunk a message is of, and what becomes of it at the receiver.
DATA, USE = "cwb_chunk", "cwb_use"
_NAME = re.compile(r"(.+)\.(0|[1-9][0-9]{0,5})\.et\Z")


def file_of(trace: Trace, rank: int) -> bytes:
    """Encode the file of a rank.

    A send that must wait for its turn on a link waits for a computation, which becomes ready with the send before it.
    Without a time of its own it takes 1 ns in ASTRA-sim, where a send ends only when it has arrived.
    """
    metadata, node_class = messages()
    parts = [frame_message(metadata(version=VERSION))]
    nodes = trace.ranks[rank]
    first = len(nodes)  # the number of the first of these computations
    turns = {node.turn for node in nodes if node.is_held}
    for node in nodes:
        turn = [first + node.turn] if node.is_held else []
        message = node_class(id=node.id, name=node.name, type=node.type, data_deps=node.after, ctrl_deps=turn)
        if node.type in (SEND, RECV):
            source, target = (rank, node.peer) if node.type == SEND else (node.peer, rank)
            values = {"comm_size": node.size_bytes, "comm_src": source, "comm_dst": target, "comm_tag": node.tag}
            values |= {"msg_chunk_cnt": node.grains, "total_chunk_cnt": trace.grains}
            if node.data >= 0:
                values |= {DATA: node.data} if node.type == SEND else {DATA: node.data, USE: node.use}
            for name, value in values.items():
                message.attr.add(name=name, int64_val=value)
        parts.append(frame_message(message))
        if node.id in turns:
            start = node_class(id=first + node.id, name="turn", type=COMP, ctrl_deps=[*node.after, *turn])
            parts.append(frame_message(start))
    return b"".join(parts)


def workload_of(name: str, collective: int, size_bytes: int) -> bytes:
    """Encode the file of a rank whose only work is one collective, by its number in the schema."""
    metadata, node_class = messages()
    message = node_class(id=0, name=name, type=COLL)
    message.attr.add(name="is_cpu_op", bool_val=False)
    message.attr.add(name="comm_type", int64_val=collective)
    message.attr.add(name="comm_size", int64_val=size_bytes)
    return frame_message(metadata(version=VERSION)) + frame_message(message)


def read_trace(folder: Path) -> Trace:
    """Read the trace in a folder."""
    paths = _paths(folder)
    rest = MAX_BYTES
    nodes: list[tuple[Node, ...]] = []
    room = [MAX_NODES, MAX_DEPENDENCES]
    for rank, path in enumerate(paths):
        with locate_errors(source=str(path)):
            raw = _read(path, rest)
            rest -= len(raw)
            nodes.append(tuple(_nodes(raw, rank, len(paths), room)))
    return Trace(tuple(nodes))


def _paths(folder: Path) -> list[Path]:
    paths: dict[int, Path] = {}
    prefixes: set[str] = set()
    for path in sorted(folder.glob("*.et")):
        match = _NAME.match(path.name)
        if match is None:
            raise InputError("expected a name such as PREFIX.0.et, with the rank", source=str(path))
        prefixes.add(match[1])
        paths[int(match[2])] = path
    with locate_errors(source=str(folder)):
        if not paths:
            raise InputError("has no .et file")
        if len(prefixes) > 1:
            first, second, *_ = sorted(prefixes)
            raise InputError(f"has files of {first!r} and of {second!r}; expected those of one trace")
        missing = next((rank for rank in range(len(paths)) if rank not in paths), None)
        if missing is not None:
            raise InputError(f"has no file of rank {missing}, but one of rank {max(paths)}")
    return [paths[rank] for rank in range(len(paths))]


def _read(path: Path, most: int) -> bytes:
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
    metadata, node_class = messages()
    ids: dict[int, int] = {}  # by number the one object of it, which all nodes share to save memory
    number = -1
    for number, content in enumerate(split_messages(raw)):
        with locate_errors(place=f"message {number}"):
            if number == 0:
                decode_message(metadata, content)
                continue
            node = _node(decode_message(node_class, content), rank, ranks)
            if node.id in ids:
                raise InputError(f"node {node.id} is defined twice")
            ids[node.id] = node.id
            node = node._replace(after=tuple([ids.get(before, before) for before in node.after]))
            room[0] -= 1
            room[1] -= len(node.after)
            if min(room) < 0:
                raise InputError(f"more than {MAX_NODES:,} nodes, or {MAX_DEPENDENCES:,} dependences, in all files")
        yield node
    if number < 0:
        raise InputError("is empty; expected metadata and nodes")


def _node(message: Any, rank: int, ranks: int) -> Node:
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
    has_data = data is not None and data >= 0 and use in ((None,) if message.type == SEND else (KEPT, ADDED, PASSED))
    node = Node(message.id, message.type, after, peer, tag, size, max(grains or 0, 0))
    return node._replace(data=data or 0, use=use or 0) if has_data else node


def _integer(attribute: Any) -> int | None:
    kind = attribute.WhichOneof("value")
    if kind is None or kind.removesuffix("_val") not in INTEGERS:
        return None
    return int(getattr(attribute, kind))


def _require_value(values: dict[str, int | None], key: str, name: str) -> int:
    value = values.get(key)
    if value is None:
        raise InputError(f"{name} has no integer {key}")
    return value


VERSION = "0.0.4"  #: Version of the schema, as its own tools write it.

#: Kinds of a value that are integers.
INTEGERS = frozenset(
    ("int32", "int64", "uint32", "uint64", "sint32", "sint64", "fixed32", "fixed64", "sfixed32", "sfixed64")
)

#: Kinds of the values of an attribute in the order of their numbers: kind i has 3 + 2 i, and a list of it 4 + 2 i.
_KINDS = ("double", "float", "int32", "int64", "uint32", "uint64", "sint32", "sint64", "fixed32", "fixed64", "sfixed32",
          "sfixed64", "bool", "string", "bytes")  # fmt: skip

#: Fields of the other messages: name, number, type, whether there may be several. Other types than kinds are messages.
_FIELDS = {
    "GlobalMetadata": (("version", 1, "string", False), ("attr", 2, "AttributeProto", True)),
    "IOInfo": (("values", 1, "string", False), ("shapes", 2, "string", False), ("types", 3, "string", False)),
    "Node": (
        ("id", 1, "uint64", False),
        ("name", 2, "string", False),
        ("type", 3, "int32", False),  # an enumeration, which has the same encoding
        ("ctrl_deps", 4, "uint64", True),
        ("data_deps", 5, "uint64", True),
        ("start_time_micros", 6, "uint64", False),
        ("duration_micros", 7, "uint64", False),
        ("inputs", 8, "IOInfo", False),
        ("outputs", 9, "IOInfo", False),
        ("attr", 10, "AttributeProto", True),
    ),
}

#: Bytes of a message; a node has hundreds, and metadata may have the file that it was made of.
MAX_MESSAGE_BYTES = 2**20


@cache
def messages() -> tuple[Any, Any]:
    """Make the classes of the messages that a file has: metadata, and a node."""
    try:
        from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
    except ImportError:
        raise InputError("protobuf is not installed; pip install 'cwb[chakra]'") from None
    file: Any = descriptor_pb2.FileDescriptorProto(name="chakra", package="ChakraProtoMsg", syntax="proto3")
    for kind in _KINDS:
        _add(file, f"{kind.capitalize()}List", (("values", 1, kind, True),))
    values = [(f"{kind}_val", 3 + 2 * i, kind, False) for i, kind in enumerate(_KINDS)]
    lists = [(f"{kind}_list", 4 + 2 * i, f"{kind.capitalize()}List", False) for i, kind in enumerate(_KINDS)]
    attribute = _add(file, "AttributeProto", (("name", 1, "string", False), ("doc_string", 2, "string", False)))
    attribute.oneof_decl.add(name="value")
    for field in (*values, *lists):
        _add_field(attribute, field).oneof_index = 0
    for name, fields in _FIELDS.items():
        _add(file, name, fields)
    pool: Any = descriptor_pool.DescriptorPool()
    pool.Add(file)
    kinds = (pool.FindMessageTypeByName(f"ChakraProtoMsg.{name}") for name in ("GlobalMetadata", "Node"))
    metadata, node = map(message_factory.GetMessageClass, kinds)
    return metadata, node


def _add(file: Any, name: str, fields: tuple[tuple[str, int, str, bool], ...]) -> Any:
    message = file.message_type.add(name=name)
    for field in fields:
        _add_field(message, field)
    return message


def _add_field(message: Any, field: tuple[str, int, str, bool]) -> Any:
    name, number, kind, several = field
    entry = message.field.add(name=name, number=number)
    entry.label = entry.LABEL_REPEATED if several else entry.LABEL_OPTIONAL
    if kind in _KINDS:
        entry.type = getattr(entry, f"TYPE_{kind.upper()}")
    else:
        entry.type, entry.type_name = entry.TYPE_MESSAGE, f".ChakraProtoMsg.{kind}"
    return entry


def frame_message(message: Any) -> bytes:
    """Prefix a message with its length."""
    content: bytes = message.SerializeToString(deterministic=True)
    length, head = len(content), bytearray()
    while length > 127:
        head.append(length & 127 | 128)
        length >>= 7
    head.append(length)
    return bytes(head) + content


def split_messages(raw: bytes) -> Iterator[bytes]:
    """Yield the messages of a file."""
    at = number = 0
    while at < len(raw):
        length = shift = 0
        while True:
            if at == len(raw):
                raise InputError("the file ends within a length", place=f"message {number}")
            byte = raw[at]
            length |= (byte & 127) << shift
            at, shift = at + 1, shift + 7
            if length > MAX_MESSAGE_BYTES or shift > 35:
                raise InputError(f"is longer than {MAX_MESSAGE_BYTES:,} bytes", place=f"message {number}")
            if byte < 128:
                break
        if at + length > len(raw):
            raise InputError(f"{length:,} bytes, but the file ends after {len(raw) - at:,}", place=f"message {number}")
        yield raw[at : at + length]
        at, number = at + length, number + 1


def decode_message(kind: Any, content: bytes) -> Any:
    """Decode a message of a file."""
    from google.protobuf.message import DecodeError

    try:
        return kind.FromString(content)
    except DecodeError:
        raise InputError(f"is no {kind.DESCRIPTOR.name} of Chakra") from None
