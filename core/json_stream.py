"""JSON of bounded size: columns are parsed when they are read, the rest is counted before.

The length of a column is known before its numbers are: a reader can reject a wrong one first. Between two pieces Ctrl-C
and the time are checked.
"""

import json
import re
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np

from .budget import check_time
from .errors import InputError
from .strict_json import MAX_VALUES, parse_json

MAX_NUMBERS = 2**27  #: Numbers in columns; the arrays take 8 bytes for each.
MAX_REST = 2**27  #: Bytes beside columns: what is parsed at once.
MAX_DEPTH = 100  #: Lists and objects inside one another.
LONGEST = 2**16  #: Bytes of a text or a key.
COLUMN = 2**12  #: A list of numbers of at least so many bytes, all integers or all floats, becomes an array.
_PIECE = 2**20  #: Bytes that are read, and bytes of a column that are parsed, at once.
_MARK = "\0column"  #: The only key of an object that stands for a column until everything else has been parsed.

#: A text, so that nothing in it is taken for a list, or a list of numbers. Neither can be entered twice: linear time.
_TEXT = rb'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)'
_TOKEN = re.compile(_TEXT + rb"|(:[ \t\n\r]*+)?+\[([-0-9.eE+, \t\n\r]{%d,}+)\]" % COLUMN, re.DOTALL)

_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))

#: Integers of a column as they are written, of at most 18 digits.
_INTEGERS = re.compile(r"-?(?:0|[1-9][0-9]{0,17}+)(?:,[ \t\n\r]*+-?(?:0|[1-9][0-9]{0,17}+))*+")


class LazyColumn(ABC):
    """A long list of numbers that is not parsed before it is read; its length is known."""

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def read(self) -> Any:
        """Return the numbers as an array of integers of 64 bits or of floats, or as a list."""


@dataclass(frozen=True)
class _TextColumn(LazyColumn):
    raw: bytearray
    begin: int
    end: int
    length: int
    doing: str

    def __len__(self) -> int:
        return self.length

    def read(self) -> Any:
        column = _column(self.raw, self.begin, self.end, self.doing)
        return parse_json(bytes(self.raw[self.begin - 1 : self.end + 1]), 1) if column is None else column


def read_stream(stream: BinaryIO, max_bytes: int, max_keys: int, doing: str = "reading a file") -> Any:
    """Read one JSON value, with long lists of numbers as arrays.

    Lists of at least :data:`COLUMN` bytes are arrays if all their numbers are integers or all floats. Limits hold for
    numbers, other values, texts and depth. ``doing`` is the activity in the message if the time is up.
    """
    columns: list[LazyColumn | np.ndarray[Any, Any]] = []
    rest = _without_columns(_read_bytes(stream, max_bytes, doing), columns, doing)
    if _depth(rest) > MAX_DEPTH and _depth(re.sub(_TEXT, b"", rest, flags=re.DOTALL)) > MAX_DEPTH:
        raise InputError("not JSON that cwb reads: nested too deeply")

    def column_or_object(data: dict[str, Any]) -> Any:
        index = data.get(_MARK)
        return columns[index] if type(index) is int and 0 <= index < len(columns) else data

    return parse_json(rest, max_keys, MAX_VALUES, column_or_object)


def _read_bytes(stream: BinaryIO, max_bytes: int, doing: str) -> bytearray:
    raw = bytearray()
    while True:
        check_time(doing)
        piece = stream.read(_PIECE)
        raw += piece
        if len(raw) > max_bytes:
            raise InputError(f"more than {max_bytes:,} bytes of text")
        if not piece:
            return raw


def _without_columns(raw: bytearray, columns: list[LazyColumn | np.ndarray[Any, Any]], doing: str) -> bytes:
    """Return the text with a placeholder for every column, which is appended to ``columns``."""
    if raw.count(b"[") + raw.count(b"{") > MAX_VALUES:
        raise InputError(f"more than {MAX_VALUES:,} values")
    if raw.count(b'"') - raw.count(b'\\"') > 2 * MAX_VALUES:
        raise InputError(f"more than {MAX_VALUES:,} texts")
    rest = bytearray()
    end = numbers = nested = texts = 0
    for token in _TOKEN.finditer(raw):
        if token[2] is None:
            texts += 1
            if texts > MAX_VALUES:
                raise InputError(f"more than {MAX_VALUES:,} texts")
            if token.end() - token.start() > LONGEST + 2:
                raise InputError(f"not JSON that cwb reads: a text of more than {LONGEST:,} bytes")
            continue
        check_time(doing)
        span = token.span(2)
        length = raw.count(b",", *span) + 1
        numbers, nested = numbers + length, nested + (length if token[1] is None else 0)
        if numbers > MAX_NUMBERS:
            raise InputError(f"more than {MAX_NUMBERS:,} numbers")
        if nested > MAX_VALUES:
            raise InputError(f"more than {MAX_VALUES:,} numbers in lists of lists")
        column = _column(raw, *span, doing) if token[1] is None else _TextColumn(raw, *span, length, doing)
        if column is not None:
            rest += raw[end : span[0] - 1] + json.dumps({_MARK: len(columns)}).encode()
            end = token.end()
            columns.append(column)
    if len(rest) + len(raw) - end > MAX_REST:
        raise InputError(f"more than {MAX_REST:,} bytes of text beside columns of numbers")
    return bytes(rest + raw[end:])


def _column(raw: bytearray, at: int, end: int, doing: str) -> np.ndarray[Any, Any] | None:
    """Read the numbers of a list; None unless all are integers of 64 bits or all are floats."""
    pieces: list[np.ndarray[Any, Any]] = []
    while True:
        check_time(doing)
        stop = end if end - at <= _PIECE else raw.rfind(b",", at, at + _PIECE)
        piece = None if stop < 0 else _numbers(raw[at:stop].decode())
        if piece is None or piece.dtype != (pieces or [piece])[0].dtype:
            return None
        pieces.append(piece)
        if stop == end:
            return np.concatenate(pieces)
        at = stop + 1


def _numbers(text: str) -> np.ndarray[Any, Any] | None:
    """Read numbers between commas; None if they differ in kind or are invalid JSON."""
    if _INTEGERS.fullmatch(text):
        return np.fromstring(text, dtype=np.int64, sep=",")
    try:
        values = json.loads(f"[{text}]")
        kinds = set(map(type, values))
        return np.array(values, dtype={int: np.int64, float: np.float64}[kinds.pop()]) if len(kinds) == 1 else None
    except (ValueError, OverflowError):
        return None


def _depth(text: bytes) -> int:
    brackets = np.frombuffer(text.translate(None, _NO_BRACKETS), dtype=np.uint8)
    steps = np.where((brackets == ord("[")) | (brackets == ord("{")), 1, -1)
    return int(np.cumsum(steps).max(initial=0))
