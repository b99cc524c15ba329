"""All-to-alls with a size for every pair: messages of ``all_to_all_v(demand.csv)`` or ``all_to_all_v(skew=1)``."""

from __future__ import annotations

import csv
from fractions import Fraction
from pathlib import Path

import numpy as np

from ..core.collective import Collective, Demand
from ..core.errors import InputError, locate_errors
from ..core.files import read_text
from ..core.units import UnitKind, parse
from .expression import Expression, parse_expression

#: Bytes of a matrix file that is read.
_MAX_BYTES = 64 * 2**20

#: What the expression is called.
NAME = "all_to_all_v"


def is_messages(collective: str) -> bool:
    """Return whether a collective is written as such an expression."""
    return collective.strip().lower().startswith(NAME)


def messages(text: str, npus: int, size_bytes: Fraction, chunks: int) -> tuple[Demand, ...]:
    """Return a message for every two ranks of which one has data for the other.

    Parameters
    ----------
    text : str
        The expression: with the path of a CSV file, whose row r has the sizes or numbers of bytes that rank r sends to
        each rank; or with ``skew`` and ``seed``.
    size_bytes : Fraction
        Total bytes that a rank sends, if the matrix is generated.
    chunks : int
        Number of chunks of every message.

    Raises
    ------
    InputError
        If the expression or the file is wrong.
    """
    with locate_errors(source="--collective"):
        asked = parse_expression(text)
        if asked.name != NAME or len(asked.positional) > 1 or (asked.positional and asked.keywords):
            raise InputError(f"{text!r}; expected {NAME}(FILE.csv) or {NAME}(skew=NUMBER, seed=NUMBER)")
        matrix = (
            _read(str(asked.positional[0]), npus)
            if asked.positional
            else _generate_messages(asked, npus, int(size_bytes))
        )
        kind = Collective.POINT_TO_POINT
        found = tuple(
            Demand(kind, size, chunks, (s, t))
            for s, row in enumerate(matrix)
            for t, size in enumerate(row)
            if s != t and size
        )
        if not found:
            raise InputError("no rank has data for another one; expected a positive size")
    return found


def _read(path: str, npus: int) -> list[list[Fraction]]:
    try:
        with locate_errors(path):
            rows = [row for row in csv.reader(read_text(Path(path), _MAX_BYTES).splitlines()) if row]
    except csv.Error as error:
        raise InputError(f"not a CSV file: {error}", place=path) from None
    if len(rows) != npus:
        raise InputError(f"{len(rows):,} rows; expected {npus:,}, one for each rank", place=path)
    for index, row in enumerate(rows):
        if len(row) != npus:
            raise InputError(f"{len(row):,} sizes; expected {npus:,}, one for each rank", place=f"{path}[{index}]")
    return [[_size(cell, f"{path}[{s}][{t}]") for t, cell in enumerate(row)] for s, row in enumerate(rows)]


def _size(cell: str, place: str) -> Fraction:
    """Parse a size with its unit, or a whole number of bytes."""
    with locate_errors(place):
        return parse(f"{cell} B" if cell.strip().isdecimal() else cell, UnitKind.SIZE)


def _generate_messages(asked: Expression, npus: int, size_bytes: int) -> list[list[Fraction]]:
    """Return a matrix of bytes that falls by a power of the receiver's place in an order of each sender."""
    if unknown := set(asked.keywords) - {"skew", "seed"}:
        raise InputError(f"unknown {sorted(unknown)[0]!r}; expected skew or seed")
    skew, seed = asked.keywords.get("skew", 1), asked.keywords.get("seed", 0)
    if not isinstance(skew, int | Fraction) or not 0 <= skew <= 10:
        raise InputError(f"skew={skew}; expected a number from 0 to 10")
    if not isinstance(seed, int) or seed < 0:
        raise InputError(f"seed={seed}; expected an integer of at least 0")
    random = np.random.default_rng(seed)
    weight = np.arange(1, npus + 1, dtype=np.float64) ** -float(skew)
    parts = [int(part) for part in np.floor(size_bytes * weight / weight.sum())]
    return [[Fraction(parts[place]) for place in random.permutation(npus)] for _ in range(npus)]
