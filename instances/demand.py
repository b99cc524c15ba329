"""Collectives requested by the user, which replace those of an instance."""

import csv
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from ..core.collective import Collective, Demand, collective_named, collectives
from ..core.errors import InputError, locate_errors, show_value
from ..core.files import read_text
from ..core.instance import Instance
from ..core.units import UnitKind, parse
from .expression import Expression, parse_expression

DEFAULT_SIZE = Fraction(2**30)  #: Size of a collective where nobody says one.


def with_demand(instance: Instance, collective: str | None, size: str | None, chunks: int | None) -> Instance:
    """Instance with the collective that the command line asks for; without any size it is 1 GiB."""
    if collective is None and size is None and chunks is None:
        return instance
    current = instance.demand
    if current is not None and current.part_of is not None:
        if collective is None and size is None and chunks is not None:
            first, *others = (replace(each, chunks=chunks) if each.part_of else each for each in instance.demands)
            return instance.with_changes(demand=first, also=tuple(others))
        text = f"the {current.part_of.name} of the instance has sizes of its own; expected none"
        raise InputError(text, source="--size" if collective is None else "--collective")
    if isinstance(collective, str) and is_messages(collective):
        first, *others = messages(collective, instance.npus, _bytes(size, current), chunks or 1)
        return instance.with_changes(demand=first, also=tuple(others))
    with locate_errors(source="--collective"):
        kind = collective_named(collective) if collective is not None else current.collective if current else None
    if kind is None:
        raise InputError(
            "missing, and the instance has no collective; expected one such as all_reduce", source="--collective"
        )
    ranks = current.ranks if current else None
    demand = Demand(kind, _bytes(size, current), chunks or (current.chunks if current else 1), ranks)
    return instance.with_changes(demand=demand)


def _bytes(size: str | None, current: Demand | None) -> Fraction:
    """Return the size of the command line, else of the instance, else the default."""
    if size is None:
        return current.size_bytes if current else DEFAULT_SIZE
    return parse(size, UnitKind.SIZE, allow_zero=False, source="--size")


_MAX_BYTES = 64 * 2**20  #: Bytes of a file of sizes or loads that is read.
Sizes = Sequence[Fraction | list[Fraction]]  #: A size per rank, or a row per rank with a size for each.


def is_messages(collective: str) -> bool:
    """Return whether a collective is written as such an expression."""
    name = collective.partition("(")[0].strip().lower()
    return any(each.name == name for each in collectives() if each.sized_by is not None)


def messages(text: str, npus: int, size_bytes: Fraction, chunks: int) -> tuple[Demand, ...]:
    """Return the messages of a collective with a size per rank or pair.

    ``text``: the expression: with the path of a CSV file, which has the sizes or numbers of bytes of all ranks, or in
    row r those that rank r sends to each rank; or with ``skew`` and ``seed``. ``size_bytes``: total bytes of all ranks,
    or that each rank sends, if sizes are generated.
    """
    with locate_errors(source="--collective"):
        expression = parse_expression(text) if "(" in text else Expression(text.strip().lower())
        kind = collective_named(expression.name)
        if "(" not in text or len(expression.positional) > 1 or (expression.positional and expression.keywords):
            raise InputError(f"{text!r}; expected {kind.name}(FILE.csv) or {kind.name}(skew=NUMBER, seed=NUMBER)")
        if expression.positional:
            path = str(expression.positional[0])
            sizes, place = _read(path, is_matrix=kind.sized_by == "pair"), path
        else:
            sizes, place = _generate_sizes(expression, npus, int(size_bytes), is_matrix=kind.sized_by == "pair"), None
        with locate_errors(place):
            return sized_messages(kind, sizes, chunks, range(npus))


def sized_messages(kind: Collective, sizes: Sizes, chunks: int, ranks: Sequence[int]) -> tuple[Demand, ...]:
    """Return a message or broadcast for every part of a collective that is not empty."""
    count, is_matrix = len(ranks), kind.sized_by == "pair"
    if count < 2:
        raise InputError("a collective needs at least two ranks")
    if len(sizes) != count:
        what = "rows" if is_matrix else "sizes"
        raise InputError(f"{len(sizes):,} {what}; expected {count:,}, one for each rank")
    for index, row in enumerate(sizes):
        if isinstance(row, Fraction) == is_matrix:
            expected = "a list of sizes, one for each rank" if is_matrix else "one size"
            raise InputError(f"expected {expected}", place=f"[{index}]")
        if not isinstance(row, Fraction) and len(row) != count:
            raise InputError(f"{len(row):,} sizes; expected {count:,}, one for each rank", place=f"[{index}]")
    if not (demands := kind.messages(sizes, chunks, ranks)):
        raise InputError("no rank has data for another one; expected a positive size")
    return demands


def _read(path: str, *, is_matrix: bool) -> Sizes:
    with locate_errors(path):
        rows = read_rows(Path(path))
    sizes = [[_size(cell, f"{path}[{s}][{t}]") for t, cell in enumerate(row)] for s, row in enumerate(rows)]
    return sizes if is_matrix else [size for row in sizes for size in row]


def read_rows(path: Path) -> list[list[str]]:
    """Read the rows of a CSV file that are not empty; the caller names it in errors."""
    try:
        return [row for row in csv.reader(read_text(path, _MAX_BYTES).splitlines()) if row]
    except csv.Error as error:
        raise InputError(f"not a CSV file: {error}") from None


def _size(cell: str, place: str) -> Fraction:
    """Parse a size with its unit, or a whole number of bytes."""
    with locate_errors(place):
        return parse(f"{cell} B" if cell.strip().isdecimal() else cell, UnitKind.SIZE)


def _generate_sizes(expression: Expression, npus: int, size_bytes: int, *, is_matrix: bool) -> Sizes:
    """Return bytes that fall by a power of the place in a random order, or such a row per sender."""
    if unknown := set(expression.keywords) - {"skew", "seed"}:
        raise InputError(f"unknown {sorted(unknown)[0]!r}; expected skew or seed")
    import numpy as np

    random, weight = falling_weights({"skew": 1, **expression.keywords}, npus)
    parts = [int(part) for part in np.floor(size_bytes * weight / weight.sum())]
    rows = [[Fraction(parts[place]) for place in random.permutation(npus)] for _ in range(npus if is_matrix else 1)]
    return rows if is_matrix else rows[0]


def falling_weights(arguments: Mapping[str, Any], count: int) -> tuple[Any, Any]:
    """Return a generator of random numbers, by ``seed``, and weights that fall by the power ``skew`` of the place."""
    import numpy as np

    skew, seed = arguments["skew"], arguments.get("seed", 0)
    if isinstance(skew, bool) or not isinstance(skew, int | Fraction) or not 0 <= skew <= 10:
        raise InputError(f"skew={show_value(skew)}; expected a number from 0 to 10")
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise InputError(f"seed={show_value(seed)}; expected an integer of at least 0")
    return np.random.default_rng(seed), np.arange(1, count + 1, dtype=np.float64) ** -float(skew)
