"""MSCCL XML: read, written, and searched for pitfalls of the runtimes' own readers.

Reading is as forgiving as the runtimes are. Numbers are read as C's ``strtol`` with base 0 does, which the runtimes
use: ``010`` is 8, ``0x10`` is 16, ``abc`` is 0.

The runtimes' readers are written by hand, and the same in all three: blanks are the space and the line break alone, an
element's tag is on one line, attributes are ``name="value"`` and nothing else, and there are no declarations, entities
or texts. Written is what they take, with an element on each line.
"""

import re
from collections.abc import Iterator
from functools import cache
from operator import itemgetter
from pathlib import Path
from sys import intern

from ...core.errors import InputError, locate_errors, show_value
from ...core.files import read_whole
from ..xml import feed_xml
from .dialects import MAX_ATTRIBUTES, MAX_CHARACTERS
from .findings import Findings
from .program import Algorithm, Block, Gpu, Step

#: Files and elements beyond this are not read.
MAX_BYTES = 2**29
MAX_STEPS = 2**22
_DEPTHS = {"algo": 0, "gpu": 1, "tb": 2, "step": 3}
_STEP = "      <step " + " ".join(f'{name}="%s"' for name in Step._fields) + "/>\n"
_HEAD = (
    "name", "proto", "nchannels", "nchunksperloop", "ngpus", "coll", "inplace", "outofplace", "minBytes", "maxBytes",
    "nthreads",
)  # fmt: skip
_of_step = itemgetter("type", "srcbuf", "dstbuf", "s", "srcoff", "dstoff", "cnt", "depid", "deps", "hasdep")
_NUMBER = re.compile(r"\s*([+-]?)(0[xX][0-9a-fA-F]+|[0-9]+)")


def number(text: str) -> int:
    """Read a number as ``strtol(text, NULL, 0)`` does; what is none is 0."""
    match = _NUMBER.match(text)
    if match is None:
        return 0
    sign, digits = match.groups()
    if len(digits) > 24:
        value = 2**63 - 1
    elif digits[:2] in ("0x", "0X"):
        value = int(digits, 16)
    elif digits[0] == "0":
        octal = re.match("0[0-7]*", digits)
        value = int(octal.group(), 8) if octal else 0
    else:
        value = int(digits)
    value = min(value, 2**63 - 1)
    return -value if sign == "-" else value


def read_algorithm(path: Path) -> Algorithm:
    """Read a file."""
    with locate_errors(source=str(path)):
        return parse_algorithm(read_whole(path, MAX_BYTES, "an XML file"))


def parse_algorithm(raw: bytes) -> Algorithm:
    """Read the text of a file; see :func:`read_algorithm`."""
    reader = _Reader()
    feed_xml(raw, reader, MAX_STEPS)
    if reader.algorithm is None:
        raise InputError("has no element algo; expected an MSCCL algorithm")
    return reader.algorithm


class _Reader:
    def __init__(self) -> None:
        self.algorithm: Algorithm | None = None
        self.number_of = cache(number)
        self.path: list[str] = []
        self.foreign = 0
        self.head: dict[str, str] = {}
        self.gpu: dict[str, str] = {}
        self.block: dict[str, str] = {}
        self.gpus: list[Gpu] = []
        self.blocks: list[Block] = []
        self.steps: list[Step] = []

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        """Take an element in its place, and leave out others, with all that is in them, as the runtimes do."""
        if self.foreign or _DEPTHS.get(tag) != len(self.path) or self.algorithm is not None:
            self.foreign += 1
            return
        self.path.append(tag)
        if tag == "step":
            self.steps.append(self.step(attributes))
        elif tag == "tb":
            self.block, self.steps = attributes, []
        elif tag == "gpu":
            self.gpu, self.blocks = attributes, []
        else:
            self.head, self.gpus = attributes, []

    def end(self, tag: str) -> None:
        if self.foreign:
            self.foreign -= 1
            return
        self.path.pop()
        if tag == "tb":
            name, send, recv, chan = (self.whole(self.block, name, tag) for name in ("id", "send", "recv", "chan"))
            self.blocks.append(Block(name, send, recv, chan, tuple(self.steps)))
        elif tag == "gpu":
            names = ("id", "i_chunks", "o_chunks", "s_chunks")
            rank, before, after, scratch = (self.whole(self.gpu, name, tag) for name in names)
            self.gpus.append(Gpu(rank, before, after, scratch, tuple(self.blocks)))
        elif tag == "algo":
            self.algorithm = self.whole_algorithm()

    def step(self, attributes: dict[str, str]) -> Step:
        try:
            kind, source, target, *texts = _of_step(attributes)
        except KeyError as error:
            raise self.missing_attribute("step", str(error.args[0])) from None
        s, srcoff, dstoff, cnt, depid, deps, hasdep = map(self.number_of, texts)
        # Millions of steps share a few names.
        return Step(s, intern(kind), intern(source), srcoff, intern(target), dstoff, cnt, depid, deps, hasdep)

    def missing_attribute(self, tag: str, name: str) -> InputError:
        """Return the error for an attribute that every runtime requires."""
        return InputError(f"{tag} has no attribute {name}; every runtime requires it")

    def whole(self, attributes: dict[str, str], name: str, tag: str) -> int:
        if name not in attributes:
            raise self.missing_attribute(tag, name)
        return number(attributes[name])

    def whole_algorithm(self) -> Algorithm:
        head = self.head
        inplace, outofplace, low, high, threads = (
            number(head[name]) if name in head else None
            for name in ("inplace", "outofplace", "minBytes", "maxBytes", "nthreads")
        )
        ngpus = self.whole(head, "ngpus", "algo")
        if not 1 <= ngpus <= 2**16:
            raise InputError(f"{show_value(ngpus)} GPUs; expected 1 to {2**16:,}", place="algo.ngpus")
        if missing := next((name for name in ("proto", "coll") if name not in head), None):
            raise self.missing_attribute("algo", missing)
        channels, chunks = (self.whole(head, name, "algo") for name in ("nchannels", "nchunksperloop"))
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
_VALUES = ("[a-z]{1,9}" if kind is str else "-?(?:0|[1-9][0-9]{0,17})" for kind in Step.__annotations__.values())
_PLAIN_STEP = re.compile(("\n *" + _STEP.strip() % tuple(_VALUES)).encode())

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
    for rule, (pattern, problem) in _PATTERNS.items():
        for match in re.finditer(pattern, text):
            _add(findings, rule, problem, text, match.start(match.lastindex or 0))
    if (first := re.search(rb"<\s*([^\s>?!/]+)", text)) is not None and first[1] != b"algo":
        _add(findings, "first", "does not begin with algo, where the size range is read from", text, first.start())
    for match in _ODD_NUMBER.finditer(text):
        name, value = (part.decode("utf-8", "replace") for part in match.groups())
        _add(findings, "number", f'{name}="{value[:30]}" is read as {number(value)}', text, match.start())
    return findings


def _add(findings: Findings, rule: str, problem: str, text: bytes, place: int) -> None:
    findings.add(rule, problem, f"line {text.count(bytes([10]), 0, place) + 1}")
