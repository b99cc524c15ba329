"""Generator expressions: a name with arguments, such as ``torus(4, 4, bandwidth="25 GiB/s")``.

The text is parsed as data and never evaluated. The grammar::

    expression = name "(" [ argument { "," argument } ] ")"
    argument   = value | name "=" value            positional ones come first
    value      = number | string | word | "true" | "false" | "[" [ value { "," value } ] "]" | expression

A number is an integer or a decimal, kept exactly. A word is text that needs no quotes, such as ``gpt-3``. Names are
case-insensitive, and ``-`` and ``_`` are the same in them: ``DGX-A100`` is ``dgx_a100``.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, NoReturn, TypeAlias

from ..core.errors import InputError, show_value

Value: TypeAlias = "int | Fraction | str | bool | tuple[Value, ...] | Expression"  #: What an argument can be.

MAX_LENGTH = 10_000
MAX_DEPTH = 16
MAX_DIGITS = 40  #: Digits before and after the decimal point; bounds what a number can cost.

_NAME = re.compile(r"[a-z][a-z0-9_-]*", re.IGNORECASE | re.ASCII)
_WORD = re.compile(r"[a-z][a-z0-9_.-]*", re.IGNORECASE | re.ASCII)
_SHAPE = re.compile(rf"\s*{_NAME.pattern}\s*\(.*\)\s*", re.IGNORECASE | re.ASCII | re.DOTALL)
# The last two kinds are not part of the language: they match what is left, so that every text has tokens.
_TOKEN = re.compile(
    rf"""
    \s* (?:
      (?P<number>   [+-]?[0-9]+(?:\.[0-9]+)? (?![a-z0-9_.]) )
    | (?P<word>     {_WORD.pattern} )
    | (?P<string>   "(?:[^"\\]|\\["\\])*" | '(?:[^'\\]|\\['\\])*' )
    | (?P<mark>     [(),=\[\]] )
    | (?P<end>      \Z )
    | (?P<unclosed> ["'].* )
    | (?P<unknown>  [+-]?[0-9][a-z0-9_.]* | . )
    )""",
    re.VERBOSE | re.IGNORECASE | re.ASCII | re.DOTALL,
)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_TRUTH = {"true": True, "false": False}


@dataclass(frozen=True)
class Expression:
    """A parsed expression; ``str()`` writes it back in a canonical form."""

    name: str
    positional: tuple[Value, ...] = ()  #: Arguments without a name, in order; lists are tuples.
    #: Arguments with a name; the names are normalised in the same way.
    keywords: Mapping[str, Value] = field(default_factory=dict)

    def bind(self, parameters: Sequence[str], mandatory: Sequence[str] = ()) -> dict[str, Any]:
        """Return the arguments by their names; ``parameters`` are those of arguments without one, in order."""
        if len(self.positional) > len(parameters):
            raise InputError(f"{self.name} takes at most {len(parameters)} arguments")
        arguments: dict[str, Any] = dict(zip(parameters, self.positional, strict=False))
        for name, value in self.keywords.items():
            if name not in parameters:
                raise InputError(f"{self.name} has no argument {name!r}; expected {', '.join(parameters)}")
            if name in arguments:
                raise InputError(f"argument {name!r} is given twice")
            arguments[name] = value
        for name in mandatory:
            if name not in arguments:
                raise InputError(f"{self.name} needs {name}=...")
        return arguments

    def __str__(self) -> str:
        arguments = [show(value) for value in self.positional]
        arguments += [f"{name}={show(value)}" for name, value in self.keywords.items()]
        return f"{self.name}({', '.join(arguments)})"


def is_expression(text: str) -> bool:
    """Return whether a text has the form of an expression: a name, then parentheses up to the end.

    ``RI(4)_FC(4)`` has this form too: ask :func:`~cwb.core.fabric.looks_like_fabric` first.
    """
    return _SHAPE.fullmatch(text) is not None


def parse_expression(text: str) -> Expression:
    """Parse a generator expression."""
    if len(text) > MAX_LENGTH:
        raise InputError(f"the expression has {len(text):,} characters; expected at most {MAX_LENGTH:,}")
    return _Parser(text).expression()


def show(value: Value) -> str:
    """Write a value as it would stand in an expression."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | Expression):
        return str(value)
    if isinstance(value, Fraction):
        return _decimal(value)
    if isinstance(value, tuple):
        return f"[{', '.join(show(entry) for entry in value)}]"
    if _WORD.fullmatch(value) and value.lower() not in _TRUTH:
        return value
    text = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'


def _decimal(value: Fraction) -> str:
    whole, part = divmod(abs(value.numerator) * 10**MAX_DIGITS // value.denominator, 10**MAX_DIGITS)
    digits = f"{part:0{MAX_DIGITS}}".rstrip("0") or "0"
    return f"{'-' if value < 0 else ''}{whole}.{digits}"


@dataclass(frozen=True)
class _Token:
    """A piece of the text: its kind (a group of ``_TOKEN``), its characters and its column, counted from 1."""

    kind: str
    text: str
    column: int

    def is_mark(self, mark: str) -> bool:
        return self.kind == "mark" and self.text == mark


def _tokens(text: str) -> list[_Token]:
    """Cut the text into tokens; the last one is ``end``."""
    tokens: list[_Token] = []
    for match in _TOKEN.finditer(text):
        kind = match.lastgroup or ""
        tokens.append(_Token(kind, match[kind], match.start(kind) + 1))
        if kind in ("end", "unclosed"):
            break
    return tokens


class _Parser:
    """Recursive descent over the tokens of one text."""

    def __init__(self, text: str) -> None:
        self._rest = _tokens(text)[::-1]

    @property
    def _next(self) -> _Token:
        return self._rest[-1]

    def _take(self) -> _Token:
        return self._rest.pop()

    def _fail(self, expected: str) -> NoReturn:
        token = self._next
        if token.kind == "unclosed":
            problem = "a string begins and does not end"
            expected = f"a closing {token.text[0]}, and a backslash only before {token.text[0]} or another backslash"
        elif token.kind == "end":
            problem = "the text ends"
        else:
            problem = f"unexpected {show_value(token.text)}"
        if token.kind == "unknown" and len(token.text) > 1:
            expected += "; text that begins with a digit needs quotes"
        raise InputError(f"{problem} at column {token.column}; expected {expected}")

    def _take_mark(self, mark: str, expected: str) -> None:
        if not self._next.is_mark(mark):
            self._fail(expected)
        self._take()

    def expression(self) -> Expression:
        call = self._call(MAX_DEPTH)
        if self._next.kind != "end":
            self._fail("nothing after the closing ')'")
        return call

    def _call(self, depth: int) -> Expression:
        name = self._name("the name of a generator")
        self._take_mark("(", "'(' after the name")
        positional: list[Value] = []
        keywords: dict[str, Value] = {}
        if not self._next.is_mark(")"):
            self._argument(positional, keywords, depth)
            while self._next.is_mark(","):
                self._take()
                self._argument(positional, keywords, depth)
        self._take_mark(")", "',' or ')'")
        return Expression(name, tuple(positional), keywords)

    def _name(self, expected: str) -> str:
        if self._next.kind != "word" or not _NAME.fullmatch(self._next.text):
            self._fail(expected)
        return self._take().text.lower().replace("-", "_")

    def _argument(self, positional: list[Value], keywords: dict[str, Value], depth: int) -> None:
        if self._next.kind == "word" and self._rest[-2].is_mark("="):
            column = self._next.column
            name = self._name("the name of an argument")
            if name in keywords:
                raise InputError(f"argument {show_value(name)} at column {column} is given twice; expected once")
            self._take()
            keywords[name] = self._value(depth)
        elif keywords:
            self._fail("another name=value, since arguments without a name come first")
        else:
            positional.append(self._value(depth))

    def _value(self, depth: int) -> Value:
        token = self._next
        if token.is_mark("["):
            return self._list(depth)
        if token.kind == "number":
            return self._number()
        if token.kind == "word" and self._rest[-2].is_mark("("):
            if depth == 0:
                self._fail(f"expressions at most {MAX_DEPTH} deep")
            return self._call(depth - 1)
        if token.kind == "word":
            self._take()
            return _TRUTH.get(token.text.lower(), token.text)
        if token.kind != "string":
            self._fail("a value")
        if not token.text.isprintable():
            self._fail("printable characters in a string")
        self._take()
        return _ESCAPED.sub(r"\1", token.text[1:-1])

    def _list(self, depth: int) -> Value:
        if depth == 0:
            self._fail(f"lists at most {MAX_DEPTH} deep")
        self._take()
        entries: list[Value] = []
        if not self._next.is_mark("]"):
            entries.append(self._value(depth - 1))
            while self._next.is_mark(","):
                self._take()
                entries.append(self._value(depth - 1))
        self._take_mark("]", "',' or ']'")
        return tuple(entries)

    def _number(self) -> Value:
        whole, point, part = self._next.text.lstrip("+-").partition(".")
        if max(len(whole), len(part)) > MAX_DIGITS:
            self._fail(f"at most {MAX_DIGITS} digits before and after the point")
        text = self._take().text
        return Fraction(text) if point else int(text)
