"""The messages of Chakra's schema, made at run time from its numbers, and their framing."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

from ...core.errors import InputError

#: Version of the schema, as its own tools write it.
VERSION = "0.0.4"

#: Types of nodes by their number (``NodeType``).
COMP, SEND, RECV, COLL = 4, 5, 6, 7
LAST_TYPE = COLL

#: Kinds of a value that are integers.
INTEGERS = frozenset(
    ("int32", "int64", "uint32", "uint64", "sint32", "sint64", "fixed32", "fixed64", "sfixed32", "sfixed64")
)

#: Kinds of the values of an attribute in the order of their numbers: kind i has 3 + 2 i, and a list of it 4 + 2 i.
_KINDS = ("double", "float", "int32", "int64", "uint32", "uint64", "sint32", "sint64", "fixed32", "fixed64", "sfixed32",
          "sfixed64", "bool", "string", "bytes")  # fmt: skip

#: Fields of the other messages: name, number, type, whether there may be several. What is no kind is a message.
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


class Messages(NamedTuple):
    """Classes of the messages that a file has."""

    metadata: Any
    node: Any


@cache
def messages() -> Messages:
    """Make the classes.

    Raises
    ------
    InputError
        If protobuf is not installed.
    """
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
    made = [
        message_factory.GetMessageClass(pool.FindMessageTypeByName(f"ChakraProtoMsg.{name}"))
        for name in ("GlobalMetadata", "Node")
    ]
    return Messages(*made)


def _add(file: Any, name: str, fields: tuple[tuple[str, int, str, bool], ...]) -> Any:
    """Declare a message type."""
    message = file.message_type.add(name=name)
    for field in fields:
        _add_field(message, field)
    return message


def _add_field(message: Any, field: tuple[str, int, str, bool]) -> Any:
    """Declare a field."""
    name, number, kind, several = field
    added = message.field.add(name=name, number=number)
    added.label = added.LABEL_REPEATED if several else added.LABEL_OPTIONAL
    if kind in _KINDS:
        added.type = getattr(added, f"TYPE_{kind.upper()}")
    else:
        added.type, added.type_name = added.TYPE_MESSAGE, f".ChakraProtoMsg.{kind}"
    return added


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
    """Yield the messages of a file.

    Raises
    ------
    InputError
        If the file ends within one, or one is larger than :data:`MAX_MESSAGE_BYTES`.
    """
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
    """Decode a message of a file.

    Raises
    ------
    InputError
        If the bytes are no message of this type.
    """
    from google.protobuf.message import DecodeError

    try:
        return kind.FromString(content)
    except DecodeError:
        raise InputError(f"is no {kind.DESCRIPTOR.name} of Chakra") from None
