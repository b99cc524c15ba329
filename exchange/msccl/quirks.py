"""Pitfalls of the runtimes' own XML readers in well-formed XML.

They are written by hand, and the same in all three: blanks are the space and the line break alone, an element's tag is
on one line, attributes are ``name="value"`` and nothing else, and there are no declarations, entities or texts.
"""

from __future__ import annotations

import re

from .dialects import MAX_ATTRIBUTES, MAX_CHARACTERS
from .files import number
from .findings import Findings

_COMMENT = re.compile(rb"<!--.*?-->", re.DOTALL)

#: Attributes that are numbers, where they are not written as numbers are.
_ODD_NUMBER = re.compile(
    rb"\b(id|send|recv|chan|s|srcoff|dstoff|cnt|depid|deps|hasdep|ngpus|nchannels|nchunksperloop|[ios]_chunks|inplace|"
    rb'outofplace|minBytes|maxBytes|nthreads)="(?!-?(?:0|[1-9][0-9]*)")([^"]*)"'
)

#: What no reader takes, by the name of the rule; a group is where it begins.
_PATTERNS = {
    "declaration": (rb"<\?", "a declaration or instruction; the reader expects '>' and rejects the file"),
    "tab": (rb"[\t\v\f]", "a tab, which is no blank for the reader: indent and separate with spaces"),
    "split": (rb"<[^>]*[\r\n][^>]*>", "a tag on several lines; the reader expects '>' at the end of the first"),
    "quote": (rb"=\s*'", "a value in single quotes, which the reader closes at the next double quote"),
    "equals": (rb'[^<>"=\s](?: +=|= +)["\']', "a space beside '=', where the reader ends the name of the attribute"),
    "entity": (rb"&[#\w]+;|<!\[CDATA\[", "an entity or CDATA, which the reader takes as it is written"),
    "text": (rb">([^<>]*[^<>\s][^<>]*)(?=<)", "text between elements; the reader expects '<' and rejects the file"),
    "encoding": (
        rb"\A(?:\xef\xbb\xbf|[^\0]{0,63}\0)",
        "a byte order mark or another encoding than UTF-8; the reader expects '<' first",
    ),
    "attributes": (
        rb"<(?:[^>=]*=){%d}[^>]*>" % (MAX_ATTRIBUTES + 1),
        f"more than {MAX_ATTRIBUTES} attributes; the reader drops the others",
    ),
    "characters": (
        rb'"[^"<>]{%d,}"' % (MAX_CHARACTERS + 1),
        f"a value of more than {MAX_CHARACTERS} characters, which the reader writes past its end",
    ),
}


def quirks(raw: bytes) -> Findings:
    """Look through the text of a file."""
    findings = Findings()
    text = _COMMENT.sub(lambda found: b"\n" * found.group().count(b"\n"), raw)
    for rule, (pattern, problem) in _PATTERNS.items():
        for match in re.finditer(pattern, text):
            _add(findings, rule, problem, text, match.start(match.lastindex or 0))
    if (found := re.search(rb"<\s*([^\s>?!/]+)", text)) is not None and found[1] != b"algo":
        _add(findings, "first", "does not begin with algo, where the size range is read from", text, found.start())
    for match in _ODD_NUMBER.finditer(text):
        name, value = (part.decode("utf-8", "replace") for part in match.groups())
        _add(findings, "number", f'{name}="{value[:30]}" is read as {number(value)}', text, match.start())
    return findings


def _add(findings: Findings, rule: str, problem: str, text: bytes, place: int) -> None:
    findings.add(rule, problem, f"line {text.count(bytes([10]), 0, place) + 1}")
