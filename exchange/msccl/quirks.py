"""Pitfalls of the runtimes' own XML readers in well-formed XML.

They are written by hand, and the same in all three: blanks are the space and the line break alone, an element's tag is
on one line, attributes are ``name="value"`` and nothing else, and there are no declarations, entities or texts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from .dialects import MAX_ATTRIBUTES, MAX_CHARACTERS
from .findings import Findings
from .read import number

_COMMENT = re.compile(rb"<!--.*?-->", re.DOTALL)
_TAG = re.compile(rb"<[^>]*>")


def quirks(raw: bytes) -> Findings:
    """Look through the text of a file."""
    findings = Findings()
    text = _COMMENT.sub(lambda found: b"\n" * found.group().count(b"\n"), raw)
    for rule in _RULES:
        for place, problem in rule(text):
            findings.add(rule.__name__.strip("_"), problem, f"line {text.count(bytes([10]), 0, place) + 1}")
    return findings


def _declaration(text: bytes) -> Iterator[tuple[int, str]]:
    for found in re.finditer(rb"<\?", text):
        yield found.start(), "a declaration or instruction; the reader expects '>' and rejects the file"


def _tab(text: bytes) -> Iterator[tuple[int, str]]:
    for found in re.finditer(rb"[\t\v\f]", text):
        yield found.start(), "a tab, which is no blank for the reader: indent and separate with spaces"


def _split(text: bytes) -> Iterator[tuple[int, str]]:
    for found in re.finditer(rb"<[^>]*[\r\n][^>]*>", text):
        yield found.start(), "a tag on several lines; the reader expects '>' at the end of the first"


def _quote(text: bytes) -> Iterator[tuple[int, str]]:
    for found in re.finditer(rb"=\s*'", text):
        yield found.start(), "a value in single quotes, which the reader closes at the next double quote"


def _equals(text: bytes) -> Iterator[tuple[int, str]]:
    for found in re.finditer(rb'[^<>"=\s]( +=|= +)["\']', text):
        yield found.start(), "a space beside '=', where the reader ends the name of the attribute"


def _entity(text: bytes) -> Iterator[tuple[int, str]]:
    for found in re.finditer(rb"&[#\w]+;|<!\[CDATA\[", text):
        yield found.start(), "an entity or CDATA, which the reader takes as it is written"


def _text(text: bytes) -> Iterator[tuple[int, str]]:
    for found in re.finditer(rb">([^<>]*[^<>\s][^<>]*)(?=<)", text):
        yield found.start(1), "text between elements; the reader expects '<' and rejects the file"


def _encoding(text: bytes) -> Iterator[tuple[int, str]]:
    if text[:3] == b"\xef\xbb\xbf" or b"\0" in text[:64]:
        yield 0, "a byte order mark or another encoding than UTF-8; the reader expects '<' first"


def _first(text: bytes) -> Iterator[tuple[int, str]]:
    found = re.search(rb"<\s*([^\s>?!/]+)", text)
    if found is not None and found.group(1) != b"algo":
        yield found.start(), "does not begin with algo, where the size range is read from"


def _attributes(text: bytes) -> Iterator[tuple[int, str]]:
    for tag in _TAG.finditer(text):
        body = tag.group()
        if body.count(b"=") > MAX_ATTRIBUTES:
            yield tag.start(), f"more than {MAX_ATTRIBUTES} attributes; the reader drops the others"


def _characters(text: bytes) -> Iterator[tuple[int, str]]:
    for found in re.finditer(rb'"[^"<>]{%d,}"' % (MAX_CHARACTERS + 1), text):
        yield found.start(), f"a value of more than {MAX_CHARACTERS} characters, which the reader writes past its end"


def _number(text: bytes) -> Iterator[tuple[int, str]]:
    for found in _ODD_NUMBER.finditer(text):
        name, value = (part.decode("utf-8", "replace") for part in found.groups())
        yield found.start(), f'{name}="{value[:30]}" is read as {number(value)}'


#: Attributes that are numbers, where they are not written as numbers are.
_ODD_NUMBER = re.compile(
    rb"\b(id|send|recv|chan|s|srcoff|dstoff|cnt|depid|deps|hasdep|ngpus|nchannels|nchunksperloop|[ios]_chunks|inplace|"
    rb'outofplace|minBytes|maxBytes|nthreads)="(?!-?(?:0|[1-9][0-9]*)")([^"]*)"'
)

_RULES: tuple[Callable[[bytes], Iterator[tuple[int, str]]], ...] = (
    _declaration,
    _tab,
    _split,
    _quote,
    _equals,
    _entity,
    _text,
    _encoding,
    _first,
    _attributes,
    _characters,
    _number,
)
