"""Sentences of the pages: found, counted, and laid out with one on a line.

    python docs/prose.py README.md docs/api.md

rewrites pages so that every sentence begins a line and lines of prose have at most 120 columns.
"""

from __future__ import annotations

import argparse
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

COLUMNS = 120
#: The first lines of code, of formulas, and of blocks whose contents are prose.
_FENCE = re.compile(r"\s*(?P<mark>`{3,}|~{3,}|:{3,}|\$\$)")
#: Lines that stand for themselves: headings, tables, labels, images, HTML, options of directives.
_ALONE = re.compile(r"\s*(#{1,6} |\||<|!\[|\([^)]*\)=$|\[[^\]]+\]:|%|:[\w-]+:( |$))")
#: What an item of a list, or a definition, begins with.
_ITEM = re.compile(r"\s*([-*+]|\d+[.)]|:)\s+(\[[ x]\]\s+)?")
#: Links, code and formulas, in which neither sentences nor lines end.
_WHOLE = re.compile(r"\[[^\[\]]*\]\([^)]*\)|(`+)(?:(?!\1).)+?\1|\$[^$]+\$")
_END = re.compile(r'[.!?][")*_]*\s+(?=cwb\b|[A-Z*(“"<\d\0])')
_SHORT = re.compile(r"\b(e\.g|i\.e|cf|al)\.$|(^|[\s(])[A-Z]\.$")


def blocks(text: str) -> Iterator[tuple[bool, list[str]]]:
    """Split a page into paragraphs (true) and everything else, line by line."""
    prose: list[str] = []
    if text.startswith("---\n"):  # metadata of a paper
        head, _, text = text.partition("\n---\n")
        yield False, [*head.split("\n"), "---"]
    fence = ""
    for line in text.split("\n"):
        mark = _FENCE.match(line)
        alone = not line.strip() or bool(fence) or mark is not None or _ALONE.match(line) is not None
        if prose and (alone or _ITEM.match(line)):
            yield True, prose
            prose = []
        if alone:
            yield False, [line]
        else:
            prose.append(line)
        if fence:
            fence = "" if line.strip().startswith(fence) or (fence == "$$" and "$$" in line) else fence
        elif mark and mark["mark"][0] != ":" and line.count("$$") < 2:
            fence = mark["mark"]
    if prose:
        yield True, prose


def sentences(paragraph: list[str]) -> list[str]:
    """Return the sentences of a paragraph, without the mark of a list."""
    text = " ".join(" ".join(paragraph).split())
    text = text[len(item[0].lstrip()) :] if (item := _ITEM.match(text)) else text
    kept = [match[0] for match in _WHOLE.finditer(text)]
    text = _WHOLE.sub("\0", text)
    parts, begin = [], 0
    for end in _END.finditer(text):
        part = text[begin : end.end()].rstrip()
        if not _SHORT.search(part.rstrip('")*_')):
            parts.append(part)
            begin = end.end()
    whole = iter(kept)
    return [re.sub("\0", lambda _: next(whole), part) for part in (*parts, text[begin:]) if part]


def words(sentence: str) -> int:
    """Count the words of the longest part of a sentence: a piece of code or a formula is one, a colon ends a part."""
    plain = re.sub(r"`[^`]+`|\$[^$]+\$", "x", sentence)
    return max(len(part.split()) for part in re.split(r":\s+(?=[A-Zx*\[])", plain))


def lay_out_page(text: str) -> str:
    """Return a page with one sentence on a line."""
    lines: list[str] = []
    for prose, block in blocks(text):
        lines += _lay_out_paragraph(block) if prose else block
    return "\n".join(lines)


def _lay_out_paragraph(paragraph: list[str]) -> list[str]:
    item = _ITEM.match(paragraph[0])
    first = item[0] if item else _indent(paragraph[0])
    rest = _indent(paragraph[1]) if len(paragraph) > 1 else " " * len(re.sub(r"\[[ x]\]\s+$", "", first))
    lines: list[str] = []
    for sentence in sentences(paragraph):
        unbroken = _WHOLE.sub(_unbroken, sentence)
        lines += textwrap.wrap(
            unbroken,
            COLUMNS,
            initial_indent=rest if lines else first,
            subsequent_indent=rest,
            break_long_words=False,
            break_on_hyphens=False,
        )
    return [line.replace("\0", " ") for line in lines]


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def _unbroken(match: re.Match[str]) -> str:
    """Keep code, formulas and short links on one line."""
    return match[0] if match[0].startswith("[") and len(match[0]) > 90 else match[0].replace(" ", "\0")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("pages", nargs="+")
    for name in parser.parse_args().pages:
        page = Path(name)
        page.write_text(lay_out_page(page.read_text(encoding="utf-8")), encoding="utf-8")
