"""JSON of any length, read piece by piece: columns of numbers become arrays, and everything else is counted.

The whole text is never in memory, a number of a column takes 8 bytes, and what would take more is rejected as it comes.
Between two pieces Ctrl-C is heard and the budget is asked.
"""

from __future__ import annotations

import codecs
import json
import re
from functools import partial
from itertools import accumulate
from typing import Any, BinaryIO, NoReturn

import numpy as np

from .errors import InputError
from .strict_json import MAX_DIGITS, MAX_VALUES, distinct, no_constant, parse_json
from .watch import ask

#: Numbers in columns; the arrays take 8 bytes for each.
MAX_NUMBERS = 2**27

#: Lists and objects inside one another.
MAX_DEPTH = 100

#: A list of at least so many numbers, all integers or all floats, becomes an array.
COLUMN = 2**12

#: Characters of a text, a key or a number.
LONGEST = 2**16

#: Characters of a list or object that is read at once.
_SMALL = 2**11

_PIECE = 2**20

#: What shows that an entry of a list is complete.
_AFTER = re.compile(r"[ \t\n\r]*+(?:,[ \t\n\r]*+|(?=\]))")

#: Halves of surrogate pairs, perhaps, and integers of many digits: what is read at once is looked at again.
_DOUBTFUL = re.compile(rf"\\u[dD][89a-fA-F]|[0-9]{{{MAX_DIGITS + 1}}}")

#: An object takes as much memory as so many numbers.
_OBJECT = 8

_INCOMPLETE = object()

_SPACE = re.compile(r"[ \t\n\r]*+")
_SCALAR = r'(?:-?[0-9][0-9.eE+-]*+|"[^"\\\x00-\x1f]*+"|true|false|null)'
#: As many scalars of a list as there are in the buffer, each with what shows that it is complete.
_RUN = re.compile(rf"(?:[ \t\n\r]*+{_SCALAR}[ \t\n\r]*+(?:,|(?=\])))++")
#: What a column of numbers is made of.
_NUMBERS = re.compile(r"[-0-9.eE+, \t\n\r]++")
#: Integers of a column as they are written, of at most 18 digits.
_INTEGERS = re.compile(r"-?(?:0|[1-9][0-9]{0,17}+)(?:,-?(?:0|[1-9][0-9]{0,17}+))*+")
_ONE = re.compile(r'-?[0-9][0-9.eE+-]*+|"(?:[^"\\\x00-\x1f]|\\.)*+"|[a-zA-Z]++')


def read_stream(stream: BinaryIO, max_bytes: int, max_keys: int, doing: str = "reading a file") -> Any:
    """Read one JSON value.

    Parameters
    ----------
    stream : binary file
        UTF-8 text.
    max_bytes : int
        Its largest size.
    max_keys : int
        Keys that one object may have.
    doing : str
        What is said where there is no time for it.

    Returns
    -------
    object
        Plain data; lists of at least :data:`COLUMN` integers or floats are arrays.

    Raises
    ------
    InputError
        If it is no such JSON, or more than it may be: there are limits on numbers, other values, depth and texts.
    OutOfTime
        If the budget that is :func:`~cwb.core.watch.watched` is exhausted.
    """
    return _Reader(stream, max_bytes, max_keys, doing).whole()


class _Reader:
    def __init__(self, stream: BinaryIO, max_bytes: int, max_keys: int, doing: str) -> None:
        self._stream, self._max_bytes, self._max_keys, self._doing = stream, max_bytes, max_keys, doing
        self._decode = codecs.getincrementaldecoder("utf-8")().decode
        self._text, self._at, self._before, self._bytes, self._ended = "", 0, 0, 0, False
        self._numbers = self._values = 0
        self._comma = False  # whether a comma follows the entries that were read last
        self._decoder = json.JSONDecoder(parse_constant=no_constant, object_pairs_hook=partial(distinct, max_keys))

    def whole(self) -> Any:
        value = self._value(MAX_DEPTH)
        if self._next():
            self._fail("expected nothing after the end")
        return value

    def _fill(self, count: int) -> None:
        """Have so many characters at hand, if there are so many."""
        if len(self._text) - self._at >= count or self._ended:
            return
        parts = [self._text[self._at :]]
        self._before, self._at, held = self._before + self._at, 0, len(parts[0])
        while held < count and not self._ended:
            ask(self._doing)
            raw = self._stream.read(_PIECE)
            self._bytes += len(raw)
            self._ended = not raw
            if self._bytes > self._max_bytes:
                raise InputError(f"more than {self._max_bytes:,} bytes of text")
            try:
                parts.append(self._decode(raw, final=self._ended))
            except UnicodeDecodeError:
                raise InputError("not JSON: not UTF-8 text") from None
            held += len(parts[-1])
        self._text = "".join(parts)

    def _next(self) -> str:
        """First character that is no space; empty at the end."""
        while True:
            self._fill(1)
            found = _SPACE.match(self._text, self._at)
            self._at = self._at if found is None else found.end()
            if self._at < len(self._text) or self._ended:
                return self._text[self._at : self._at + 1]

    def _fail(self, problem: str) -> NoReturn:
        raise InputError(f"not JSON: {problem}", place=f"character {self._before + self._at + 1:,}")

    def _count(self, values: int = 0, numbers: int = 0) -> None:
        self._values += values
        self._numbers += numbers
        if self._values > MAX_VALUES:
            raise InputError(f"more than {MAX_VALUES:,} values beside columns of numbers")
        if self._numbers > MAX_NUMBERS:
            raise InputError(f"more than {MAX_NUMBERS:,} numbers")

    def _value(self, depth: int) -> Any:
        first = self._next()
        if first not in ("{", "["):
            self._count(1)
            return self._scalar()
        if depth == 0:
            raise InputError("not JSON that cwb reads: nested too deeply")
        if (small := self._small(depth)) is not _INCOMPLETE:
            return small
        self._at += 1
        return self._object(depth - 1) if first == "{" else self._list(depth - 1)

    def _small(self, depth: int) -> Any:
        """A short list or object, read at once."""
        self._fill(_SMALL)
        text = self._text[self._at : self._at + _SMALL]
        try:
            value, end = self._decoder.raw_decode(text)
        except (ValueError, RecursionError):
            return _INCOMPLETE
        self._check(text[:end], depth)
        self._at += end
        return value

    def _some(self, depth: int) -> list[Any]:
        """The short entries that come next in a list, read one after the other."""
        text = self._text[self._at : self._at + LONGEST]
        values, at = [], 0
        while True:
            try:
                value, end = self._decoder.raw_decode(text, at)
            except (ValueError, RecursionError):
                break
            found = _AFTER.match(text, end)
            if found is None:  # it may go on beyond this text
                break
            values.append(value)
            at = found.end()
            self._comma = "," in found[0]
            if not self._comma:
                break
        self._check(text[:at], depth)
        self._at += at
        return values

    def _check(self, text: str, depth: int) -> None:
        """Count the values of a text that was read at once, and reject what it may not have."""
        lists, objects = text.count("["), text.count("{")
        self._count(text.count(",") + 2 * lists + _OBJECT * objects)
        if lists + objects > depth and _depth(text) > depth:
            raise InputError("not JSON that cwb reads: nested too deeply")
        if _DOUBTFUL.search(text):
            self._parsed(f"[{text.rstrip().removesuffix(',')}]")

    def _scalar(self) -> Any:
        self._fill(LONGEST + 1)
        found = _ONE.match(self._text, self._at)
        if found is None:
            too_long = self._text[self._at : self._at + 1] == '"' and len(self._text) - self._at > LONGEST
            self._fail(
                f"a text of more than {LONGEST:,} characters, or without an end" if too_long else "expected a value"
            )
        if len(found[0]) > LONGEST:
            self._fail(f"a value of more than {LONGEST:,} characters")
        value = self._parsed(found[0])
        self._at = found.end()
        return value

    def _parsed(self, text: str) -> Any:
        try:
            return parse_json(text.encode(errors="surrogatepass"), self._max_keys)
        except InputError as error:
            raise InputError(error.problem, place=f"character {self._before + self._at + 1:,}") from None

    def _object(self, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        self._count(_OBJECT)
        if self._next() == "}":
            self._at += 1
            return found
        while True:
            if self._next() != '"':
                self._fail("expected a key in quotes")
            key = self._scalar()
            if key in found:
                raise InputError(f"key {key[:60]!r} is given twice in one object; expected once")
            if len(found) >= self._max_keys:
                raise InputError(f"an object has more than {self._max_keys:,} keys")
            self._mark(":")
            found[key] = self._value(depth)
            if self._mark(",}") == "}":
                return found

    def _mark(self, expected: str) -> str:
        mark = self._next()
        if not mark or mark not in expected:
            self._fail(f"expected {' or '.join(expected)}")
        self._at += 1
        return mark

    def _list(self, depth: int) -> Any:
        column = _Column()
        if self._next() == "]":
            self._at += 1
            self._count(1)
            return []
        while True:
            self._fill(LONGEST)
            if (numbers := self._some_numbers()) is not None:
                self._count(*column.add(numbers))
            elif (run := _RUN.match(self._text, self._at)) is not None:
                self._count(*column.add(self._parsed(f"[{run[0].removesuffix(',')}]")))
                self._at = run.end()
                self._comma = run[0].endswith(",")
            elif values := self._some(depth):
                column.add(values)
            else:
                column.add([self._value(depth)])
                self._comma = False
            if not self._comma and self._mark(",]") == "]":
                self._count(1)
                return column.joined(self._count)

    def _some_numbers(self) -> Any:
        """The numbers that come next in a list, if they are many and of one kind, as an array."""
        found = _NUMBERS.match(self._text, self._at)
        if found is None or len(found[0]) < COLUMN:
            return None
        end = (
            found.end() if self._text[found.end() : found.end() + 1] == "]" else found[0].rfind(",") + found.start() + 1
        )
        try:
            text = self._text[self._at : end].rstrip()
            array = _numbers(text.removesuffix(","))
        except ValueError:
            return None
        if array is not None:
            self._at, self._comma = end, text.endswith(",")
        return array


def _depth(text: str) -> int:
    """Lists and objects inside one another, where brackets in texts count too."""
    return max(accumulate((c in "[{") - (c in "]}") for c in text if c in "[]{}"))


class _Column:
    """The entries of a list, in pieces: arrays as long as they are numbers of one kind."""

    def __init__(self) -> None:
        self._pieces: list[Any] = []

    def add(self, values: Any) -> tuple[int, int]:
        """Take in a piece; how many values that is, and how many numbers of a column."""
        if isinstance(values, np.ndarray):
            self._pieces.append(values)
            return 0, len(values)
        if self._pieces and isinstance(self._pieces[-1], list):
            self._pieces[-1] += values
        else:
            self._pieces.append(values)
        return len(values), 0

    def joined(self, count: Any) -> Any:
        """The list, as an array if it is a column."""
        pieces = self._pieces
        if len(pieces) == 1:
            return pieces[0]
        arrays = [piece if isinstance(piece, np.ndarray) else _array(piece) for piece in pieces]
        kinds = {None if array is None else array.dtype for array in arrays}
        if len(kinds) == 1 and None not in kinds:
            return np.concatenate([array for array in arrays if array is not None])
        count(sum(len(piece) for piece in pieces if isinstance(piece, np.ndarray)))
        return [value for piece in pieces for value in (piece.tolist() if isinstance(piece, np.ndarray) else piece)]


def _numbers(text: str) -> np.ndarray[Any, Any] | None:
    """The numbers of a text as an array; None where they are of different kinds."""
    if _INTEGERS.fullmatch(text):
        return np.fromstring(text, dtype=np.int64, sep=",")
    return _array(json.loads(f"[{text}]"))


def _array(values: list[Any]) -> np.ndarray[Any, Any] | None:
    """An array of integers or of floats; None where they are anything else, or mixed."""
    kinds = set(map(type, values))
    try:
        return np.array(values, dtype={int: np.int64, float: np.float64}[kinds.pop()]) if len(kinds) == 1 else None
    except (KeyError, OverflowError):
        return None
