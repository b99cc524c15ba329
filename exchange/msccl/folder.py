"""Programs for ranges of sizes: the files of a folder, which a runtime chooses from, and the list that one of them reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from .check import Checked, ranges
from .dialects import Dialect
from .program import Algorithm

#: Programs that microsoft/msccl loads; it leaves out the others (``MSCCL_MAX_NUM_ALGOS``).
LOADED = {"msccl": 4}


def for_sizes(algorithm: Algorithm, name: str, first: int, last: int, dialect: Dialect) -> Algorithm:
    """A program that is for the sizes of a range, both ends included, in a dialect's way to say it."""
    return replace(algorithm, name=name, min_bytes=first, max_bytes=last + dialect.exclusive)


def faults(files: Sequence[Checked], first: int, last: int, dialect: Dialect) -> list[str]:
    """What is wrong with files that together are for a range of sizes: each, holes, overlaps, and the ends.

    Parameters
    ----------
    files : sequence of Checked
        In the order of their sizes, of one collective and placement.
    first, last : int
        The range, both ends included.
    dialect : Dialect
        The runtime.
    """
    found = [f"{one.path.name}: {problem}" for one in files for problem in one.problems] + ranges(files, dialect)
    ends = files[0].algorithm.min_bytes, files[-1].algorithm.max_bytes
    if ends != (first, last + dialect.exclusive):
        found.append(f"files for {ends[0]} to {ends[1]} bytes; expected {first} to {last + dialect.exclusive}")
    return found


def config_text(files: Sequence[tuple[Path, Algorithm]]) -> str:
    """The file that ``MSCCL_CONFIG`` of microsoft/msccl names: where each program is, its sizes and its protocol.

    A size is in a range if it is ``minbytes`` or larger and smaller than ``maxbytes``. The runtime reads it with the reader
    of programs: no declaration, an element on a line, double quotes.
    """
    lines = [
        f'  <load path="{path}" minbytes="{one.min_bytes}" maxbytes="{one.max_bytes}" proto="{one.proto}"/>\n'
        for path, one in files
    ]
    return "".join(["<msccl_algos>\n", *lines, "</msccl_algos>\n"])
