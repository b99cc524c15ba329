"""Folders of programs for ranges of sizes, and the list that one of the runtimes reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from .check import AlgorithmReport, ranges
from .dialects import Dialect
from .program import Algorithm

#: Programs that microsoft/msccl loads; it leaves out the others (``MSCCL_MAX_NUM_ALGOS``).
LOADED = {"msccl": 4}


def for_sizes(algorithm: Algorithm, name: str, first: int, last: int, dialect: Dialect) -> Algorithm:
    """Return a program restricted to a range of sizes, in the dialect's convention."""
    return replace(algorithm, name=name, min_bytes=first, max_bytes=last + dialect.exclusive)


def faults(files: Sequence[AlgorithmReport], first: int, last: int, dialect: Dialect) -> list[str]:
    """Return the faults of files for a range of sizes: their own, holes, overlaps, ends.

    Parameters
    ----------
    files : sequence of Checked
        Files in the order of their sizes, of one collective and placement.
    first, last : int
        The range of sizes in bytes, both ends included.
    """
    found = [f"{one.path.name}: {problem}" for one in files for problem in one.problems] + ranges(files, dialect)
    ends = files[0].algorithm.min_bytes, files[-1].algorithm.max_bytes
    if ends != (first, last + dialect.exclusive):
        found.append(f"files for {ends[0]} to {ends[1]} bytes; expected {first} to {last + dialect.exclusive}")
    return found


def config_text(files: Sequence[tuple[Path, Algorithm]]) -> str:
    """Write the file for ``MSCCL_CONFIG`` of microsoft/msccl: path, sizes and protocol of each program.

    A size is in a range if it is ``minbytes`` or larger and smaller than ``maxbytes``. The runtime reads it with the
    reader of programs: no declaration, an element on a line, double quotes.
    """
    lines = [
        f'  <load path="{path}" minbytes="{one.min_bytes}" maxbytes="{one.max_bytes}" proto="{one.proto}"/>\n'
        for path, one in files
    ]
    return "".join(["<msccl_algos>\n", *lines, "</msccl_algos>\n"])
