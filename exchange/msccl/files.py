"""MSCCL XML: read, written, and searched for pitfalls of the runtimes' own readers.

Reading is as forgiving as the runtimes are. Numbers are read as C's ``strtol`` with base 0 does, which the runtimes
use: ``010`` is 8, ``0x10`` is 16, ``abc`` is 0.

The runtimes' readers are written by hand, and the same in all three: blanks are the space and the line break alone, an
element's tag is on one line, attributes are ``name="value"`` and nothing else, and there are no declarations, entities
or texts. Written is what they take, with an element on each line.
"""

import re
from collections.abc import Iterator, Sequence
from functools import cache
from io import BytesIO
from pathlib import Path

import numpy as np

from ...core.errors import InputError, locate_errors, show_value
from ...core.files import read_whole
from ..xml import feed_xml
from .dialects import MAX_ATTRIBUTES, MAX_CHARACTERS
from .findings import Findings
from .program import NAMES, WORDS, Algorithm, Block, Gpu, Step, Steps

#: Files and elements beyond this are not read.
MAX_BYTES = 2**29
MAX_STEPS = 2**22
_DEPTHS = {"algo": 0, "gpu": 1, "tb": 2, "step": 3}
_STEP = "      <step " + " ".join(f'{name}="%s"' for name in Step._fields) + "/>\n"
_HEAD = (
    "name", "proto", "nchannels", "nchunksperloop", "ngpus", "coll", "inplace", "outofplace", "minBytes", "maxBytes",
    "nthreads",
)  # fmt: skip
_TEXTS, _NUMBERS = ("type", "srcbuf", "dstbuf"), ("s", "srcoff", "dstoff", "cnt", "depid", "deps", "hasdep")
_NUMBER = re.compile(r"\s*([+-]?)(0[xX][0-9a-fA-F]+|0[0-7]*|[1-9][0-9]*)")


def number(text: str) -> int:
    """Read a number as ``strtol(text, NULL, 0)`` does; what is none is 0."""
    match = _NUMBER.match(text)
    if match is None:
        return 0
    sign, digits = match.groups()
    base = 10 if digits[0] != "0" else 16 if digits[1:2] in ("x", "X") else 8
    value = min(int(digits[:25] if base == 10 else digits, base), 2**63 - 1)
    return -value if sign == "-" else value


def read_algorithm(path: Path) -> Algorithm:
    """Read a file."""
    with locate_errors(source=str(path)):
        return parse_algorithm(*shorten(read_whole(path, MAX_BYTES, "an XML file")))


def parse_algorithm(raw: bytes, runs: Sequence[Steps] = ()) -> Algorithm:
    """Read the text of a file, which may be shortened (:func:`shorten`); see :func:`read_algorithm`."""
    reader = _Reader(runs)
    feed_xml(raw, reader, MAX_STEPS)
    if reader.algorithm is None:
        raise InputError("has no element algo; expected an MSCCL algorithm")
    return reader.algorithm


def shorten(raw: bytes) -> tuple[bytes, list[Steps]]:
    """Replace the steps between the first and the last of a run of plain ones by an element ``steps`` with its number.

    Their line breaks stay. XML allows this element exactly where it allows the first step, so that errors are found at
    the same lines. A text with such an element, too many elements or perhaps another encoding stays as it is.
    """
    parts, runs, end = list[bytes](), list[Steps](), 0
    plain = re.match(rb"\s*<[a-z!]", raw) and b"<steps" not in raw and raw.count(b"<") <= MAX_STEPS
    for match in _RUN.finditer(raw) if plain else ():
        run = match.group()
        low, high = run.index(b">") + 1, run.rindex(b"\n")
        breaks = b"\n" * run.count(b"\n", low, high)
        parts += raw[end : match.start() + low], b'<steps number="%d"/>' % len(runs), breaks
        rows = np.loadtxt(BytesIO(run[low:high]), _ROW, comments=None, delimiter='"', usecols=_VALUE_COLUMNS, ndmin=1)
        columns = [rows[name] for name in Step._fields]
        for place in WORDS:
            columns[place] = _ORDER[np.searchsorted(_BYTES, columns[place], sorter=_ORDER)]
        runs.append(Steps(np.stack(columns, axis=1)))
        end = match.start() + high
    return b"".join([*parts, raw[end:]]), runs


class _Reader:
    def __init__(self, runs: Sequence[Steps]) -> None:
        self.algorithm: Algorithm | None = None
        self.runs, self.depths = runs, {**_DEPTHS, "steps": 3} if runs else _DEPTHS
        self.number_of = cache(number)
        self.path: list[str] = []
        self.foreign = 0
        self.attributes: dict[str, dict[str, str]] = {}  # of the last element of each name
        self.gpus: list[Gpu] = []
        self.blocks: list[Block] = []
        self.steps: list[Step | Steps] = []

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        """Take an element in its place, and leave out others, with all that is in them, as the runtimes do."""
        if self.foreign or self.depths.get(tag) != len(self.path) or self.algorithm is not None:
            self.foreign += 1
            return
        self.path.append(tag)
        self.attributes[tag] = attributes
        if tag == "step":
            s, srcoff, dstoff, *numbers = self.numbers(tag, *_TEXTS, *_NUMBERS)[len(_TEXTS) :]
            kind, source, target = (attributes[name] for name in _TEXTS)
            self.steps.append(Step(s, kind, source, srcoff, target, dstoff, *numbers))
        elif tag == "steps":
            self.steps.append(self.runs[int(attributes["number"])])
        elif tag == "tb":
            self.steps = []
        elif tag == "gpu":
            self.blocks = []
        else:
            self.gpus = []

    def end(self, tag: str) -> None:
        if self.foreign:
            self.foreign -= 1
            return
        self.path.pop()
        if tag == "tb":
            name, send, recv, chan = self.numbers(tag, "id", "send", "recv", "chan")
            self.blocks.append(Block(name, send, recv, chan, Steps.of(self.steps)))
        elif tag == "gpu":
            rank, before, after, scratch = self.numbers(tag, "id", "i_chunks", "o_chunks", "s_chunks")
            self.gpus.append(Gpu(rank, before, after, scratch, tuple(self.blocks)))
        elif tag == "algo":
            self.algorithm = self.whole_algorithm()

    def numbers(self, tag: str, *names: str) -> list[int]:
        """Return the values of attributes that every runtime requires; those of names are 0."""
        attributes = self.attributes[tag]
        if missing := next((name for name in names if name not in attributes), None):
            raise InputError(f"{tag} has no attribute {missing}; every runtime requires it")
        return [self.number_of(attributes[name]) for name in names]

    def whole_algorithm(self) -> Algorithm:
        head = self.attributes["algo"]
        inplace, outofplace, low, high, threads = (
            number(head[name]) if name in head else None
            for name in ("inplace", "outofplace", "minBytes", "maxBytes", "nthreads")
        )
        (ngpus,) = self.numbers("algo", "ngpus")
        if not 1 <= ngpus <= 2**16:
            raise InputError(f"{show_value(ngpus)} GPUs; expected 1 to {2**16:,}", place="algo.ngpus")
        *_, channels, chunks = self.numbers("algo", "proto", "coll", "nchannels", "nchunksperloop")
        fields = head.get("name", ""), head["proto"], head["coll"], channels, chunks, ngpus
        return Algorithm(*fields, inplace, outofplace, low, high, threads, tuple(self.gpus))


def xml_text(algorithm: Algorithm) -> Iterator[str]:
    """Write a program, line by line; what is None is left out."""
    head = {name: getattr(algorithm, name.replace("Bytes", "_bytes")) for name in _HEAD}
    yield "<algo " + " ".join(f'{name}="{value}"' for name, value in head.items() if value is not None) + ">\n"
    for gpu in algorithm.gpus:
        sizes = f'i_chunks="{gpu.i_chunks}" o_chunks="{gpu.o_chunks}" s_chunks="{gpu.s_chunks}"'
        yield f'  <gpu id="{gpu.id}" {sizes}>\n'
        for block in gpu.blocks:
            yield f'    <tb id="{block.id}" send="{block.send}" recv="{block.recv}" chan="{block.chan}">\n'
            yield "".join([_STEP % step for step in block.steps])
            yield "    </tb>\n"
        yield "  </gpu>\n"
    yield "</algo>\n"


_COMMENT = re.compile(rb"<!--.*?-->", re.DOTALL)

#: Steps as they are written, in which no rule finds anything: nearly all of a large file.
_KINDS = Step.__annotations__.values()
_VALUES = (f"(?:{'|'.join(NAMES)})" if kind is str else "-?(?:0|[1-9][0-9]{0,17})" for kind in _KINDS)
_PLAIN_STEP = re.compile(("\n *" + _STEP.strip() % tuple(_VALUES)).encode())
_RUN = re.compile(b"(?:%b){3,}+" % _PLAIN_STEP.pattern)
_ROW = np.dtype([(name, "S4" if kind is str else np.int64) for name, kind in Step.__annotations__.items()])
_VALUE_COLUMNS = range(1, 2 * len(Step._fields), 2)  #: Every other text between quotes.
_BYTES = np.array(NAMES, dtype="S4")
_ORDER = np.argsort(_BYTES)

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
    text = _COMMENT.sub(lambda match: b"\n" * match.group().count(b"\n"), raw)
    text = _PLAIN_STEP.sub(b"\n<step/>", text)
    entries = [
        (rule, problem, match.start(match.lastindex or 0))
        for rule, (pattern, problem) in _PATTERNS.items()
        for match in re.finditer(pattern, text)
    ]
    if (first := re.search(rb"<\s*([^\s>?!/]+)", text)) is not None and first[1] != b"algo":
        entries.append(("first", "does not begin with algo, where the size range is read from", first.start()))
    for match in _ODD_NUMBER.finditer(text):
        name, value = (part.decode("utf-8", "replace") for part in match.groups())
        entries.append(("number", f'{name}="{value[:30]}" is read as {number(value)}', match.start()))
    for rule, problem, place in entries:
        findings.add(rule, problem, f"line {text.count(bytes([10]), 0, place) + 1}")
    return findings
