"""Data of an execution: what ranks have before a collective, and what they must have after it.

Every element of the collective's data has a number of its own, from which its value is computed. The contribution of a
rank to a sum is that value times a factor of the rank, so that no two contributions are alike, and the sum is the value
times the sum of the factors. Integers are added modulo 2^64, which is exact in every order.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

DTYPES = ("int64", "float32")  #: Types of elements: integers are exact, floating-point numbers have a tolerance.
_BLOCK = 2**16  #: Elements whose values are computed at once; they fit into a cache.

_Words = NDArray[np.uint64]


class Region(NamedTuple):
    """Consecutive elements of one kind of data in the memory of a process."""

    first: int  #: Number of the first element among all elements of the collective.
    address: int
    length: int
    #: Contributors: the rank itself before; after, all those of a sum, or nobody for data that is copied.
    ranks: tuple[int, ...] = ()


@dataclass(frozen=True)
class Mismatch:
    """First wrong element of a region, and the number of wrong elements in it."""

    first: int
    #: ``actual`` and ``expected``: value in memory, and value that the definition of the collective asks for.
    actual: float | int
    expected: float | int
    count: int


def fill(memory: NDArray[Any], regions: list[Region]) -> None:
    """Write the data before the collective, and a value that is no data everywhere else."""
    memory.fill(np.nan if memory.dtype.kind == "f" else np.iinfo(memory.dtype).min)
    for region, numbers, place in _blocks(regions):
        memory[place] = _contribution(numbers, region.ranks, memory.dtype)


def compare(memory: NDArray[Any], regions: list[Region]) -> list[Mismatch]:
    """Compare with the data after the collective; copies and integers must be equal byte by byte.

    A sum of n floating-point numbers may differ by n machine epsilons of its value, all contributions being positive:
    twice the largest error that any order of additions has.
    """
    wrong: dict[Region, Mismatch] = {}
    for region, numbers, place in _blocks(regions):
        actual = memory[place]
        expected = _total(numbers, region.ranks, memory.dtype)
        if len(region.ranks) > 1 and memory.dtype.kind == "f":
            right = np.abs(actual - expected) <= len(region.ranks) * np.finfo(memory.dtype).eps * expected
        else:
            right = actual == expected
        if (bad := np.flatnonzero(~right)).size:
            at = int(bad[0])
            mismatch = wrong.get(region) or Mismatch(int(numbers[at]), actual[at].item(), expected[at].item(), 0)
            wrong[region] = Mismatch(mismatch.first, mismatch.actual, mismatch.expected, mismatch.count + int(bad.size))
    return list(wrong.values())


def _blocks(regions: list[Region]) -> Iterator[tuple[Region, _Words, slice]]:
    for region in regions:
        for begin in range(0, region.length, _BLOCK):
            count = min(_BLOCK, region.length - begin)
            first = region.first + begin
            place = slice(region.address + begin, region.address + begin + count)
            yield region, np.arange(first, first + count, dtype=np.uint64), place


def _mix(words: _Words) -> _Words:
    """Return well-mixed numbers, different ones for different numbers (splitmix64, a permutation)."""
    with np.errstate(over="ignore"):
        words = words + np.uint64(0x9E3779B97F4A7C15)
        words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return np.asarray(words ^ (words >> np.uint64(31)))


def _factors(ranks: tuple[int, ...]) -> _Words:
    """Return a factor of every rank; odd, so that products of different values differ."""
    return np.asarray(_mix(np.array(ranks, dtype=np.uint64) + np.uint64(2**32)) | np.uint64(1))


def _reals(words: _Words) -> NDArray[np.float32]:
    return np.asarray(1 + (words >> np.uint64(41)).astype(np.float32) * np.float32(2**-23), dtype=np.float32)


def _contribution(numbers: _Words, ranks: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return the values that a rank has before; without a rank, those of data that is copied."""
    mixed = _mix(numbers)
    if dtype.kind == "f":
        return np.asarray(_reals(mixed) * _reals(_factors(ranks)) if ranks else _reals(mixed))
    return np.asarray(mixed * _factors(ranks) if ranks else mixed).view(dtype)


def _total(numbers: _Words, ranks: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return the values after: sums over the ranks, or the data itself."""
    if not ranks or (len(ranks) == 1 and dtype.kind == "f"):
        return _contribution(numbers, ranks, dtype)
    if dtype.kind == "f":
        return np.asarray(_reals(_mix(numbers)).astype(np.float64) * _reals(_factors(ranks)).astype(np.float64).sum())
    with np.errstate(over="ignore"):
        return np.asarray(_mix(numbers) * _factors(ranks).sum(dtype=np.uint64)).view(dtype)
