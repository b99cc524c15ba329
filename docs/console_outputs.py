"""Write what commands print into their page: ``python docs/console_outputs.py docs/questions.md``.

A page shows some lines below a command. Each is replaced by the printed line that begins with the same words, numbers
aside. The table of verdicts at the top of the page is made of its headings. ``tests/docs`` compares both.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import shlex
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from cwb.cli.main import run

_FENCE = re.compile(r"^```console\n(.*?)^```$", re.M | re.S)
_QUESTION = re.compile(r"^## (?P<title>[^\n]+\?)$(?P<text>.*?)^\*\*(?P<verdict>[A-Z][a-z ]+)\*\*", re.M | re.S)
_TABLE = re.compile(r"<!-- verdicts -->.*<!-- end of verdicts -->", re.S)


def key(line: str) -> list[str]:
    """Return what names a line: the first cell of a row, or its words without numbers and units."""
    if line.startswith("│"):
        return [line.split("│")[1].strip()]
    return [word for word in re.sub(r"\S*\d\S*|,", " ", line).split() if word not in ("ms", "us")]


def pick_line(shown: str, printed: list[str]) -> str:
    """Return the printed line that a shown one stands for."""
    wanted = key(shown)
    found = [line for line in printed if key(line)[: len(wanted)] == wanted]
    if not found:
        raise SystemExit(f"{shown!r} is not in\n" + "\n".join(printed))
    cells = [cell.strip() for cell in found[0].split("│")]
    return " │ ".join(cells).strip() if found[0].startswith("│") else found[0].rstrip()


def print_of(command: str) -> list[str]:
    """Return the lines that a command of cwb prints."""
    with tempfile.TemporaryFile("w+") as file:
        kept = [(fd, os.dup(fd)) for fd in (1, 2)]
        for fd, _ in kept:
            os.dup2(file.fileno(), fd)
        try:
            with contextlib.suppress(SystemExit):
                run(shlex.split(command)[1:])
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            for fd, copy in kept:
                os.dup2(copy, fd)
                os.close(copy)
        file.seek(0)
        return file.read().splitlines()


def fill_block(block: str) -> str:
    """Return a block with the lines below its commands as they are printed now."""
    lines = []
    for part in re.split(r"^\$ ", block, flags=re.M)[1:]:
        command, *shown = part.splitlines()
        if command.startswith("cat "):
            Path(command.split()[1]).write_text("\n".join(shown) + "\n", encoding="utf-8")
        else:
            printed = print_of(command)
            shown = [pick_line(line, printed) for line in shown]
        lines += [f"$ {command}", *shown]
    return "\n".join(lines) + "\n"


def questions(page: str) -> Iterator[tuple[str, list[str], str]]:
    """Title, commands and verdict of every question of a page."""
    for found in _QUESTION.finditer(page):
        commands = re.findall(r"^\$ cwb (\w+)", found["text"], re.M)
        yield found["title"], list(dict.fromkeys(commands)), found["verdict"]


def verdicts(page: str) -> str:
    """Return the table of questions, with the count of verdicts."""
    rows, counts = [], dict[str, int]()
    for number, (title, commands, verdict) in enumerate(questions(page), 1):
        anchor = re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
        names = ", ".join(f"`{name}`" for name in commands)
        rows.append(f"| {number} | [{title}](#{anchor}) | {names} | {verdict.lower()} |")
        counts[verdict] = counts.get(verdict, 0) + 1
    total = ", ".join(f"{verdict.lower()}: {count}" for verdict, count in counts.items())
    table = "\n".join(("| | question | command | cwb |", "|---|---|---|---|", *rows))
    return f"<!-- verdicts -->\n\n{table}\n\nOf {len(rows)} questions, {total}.\n\n<!-- end of verdicts -->"


def fill_page(page: str) -> str:
    """Return the page with its outputs and its table as they are now."""
    page = _FENCE.sub(lambda found: f"```console\n{fill_block(found[1])}```", page)
    return _TABLE.sub(lambda _: verdicts(page), page)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("pages", nargs="+")
    os.environ["COLUMNS"] = "80"
    for name in parser.parse_args().pages:
        path = Path(name).resolve()
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            path.write_text(fill_page(path.read_text(encoding="utf-8")), encoding="utf-8")
