"""Data before and after a collective."""

from __future__ import annotations

import numpy as np
import pytest
from cwb.harness.execution.values import DTYPES, Region, compare, fill
from hypothesis import given
from hypothesis import strategies as st


def memory_of(count: int, dtype: str, regions: list[Region]) -> np.ndarray:
    memory = np.empty(count, dtype=dtype)
    fill(memory, regions)
    return memory


@pytest.mark.parametrize("dtype", DTYPES)
def test_contributions_add_up_to_what_is_expected(dtype):
    """The sum of all contributions, added in any order, is right; without one of them, or with one twice, it is not."""
    ranks = (0, 3, 7, 8)
    parts = {rank: memory_of(100_000, dtype, [Region(5, 0, 100_000, (rank,))]) for rank in ranks}
    after = [Region(5, 0, 100_000, ranks)]
    with np.errstate(over="ignore"):
        assert compare(parts[8] + parts[0] + parts[7] + parts[3], after) == []
        (lacking,) = compare(parts[8] + parts[0] + parts[7], after)
        (twice,) = compare(parts[8] + parts[0] + parts[7] + parts[0], after)
        (more,) = compare(parts[8] + parts[0] + parts[7] + parts[3] + parts[3], after)
    assert lacking.count == twice.count == more.count == 100_000
    assert lacking.first == 5


@given(st.integers(0, 2**40), st.integers(1, 1000))
def test_no_two_elements_are_alike(first, count):
    """Every element has an integer of its own, and so has every rank's contribution to it."""
    found = [memory_of(count, "int64", [Region(first, 0, count, ranks)]) for ranks in ((), (0,), (1,))]
    assert len(np.unique(np.concatenate(found))) == 3 * count


@pytest.mark.parametrize("dtype", DTYPES)
def test_one_wrong_bit_is_found(dtype):
    """Copied data must be equal byte by byte: the lowest bit of one element is told, with its number."""
    region = Region(1000, 3, 70_000)
    memory = memory_of(70_003, dtype, [region])
    assert compare(memory, [region]) == []
    memory[69_000:69_001].view(np.uint8)[0] ^= 1
    (fault,) = compare(memory, [region])
    assert (fault.first, fault.count) == (1000 + 69_000 - 3, 1)
    assert fault.actual != fault.expected


@pytest.mark.parametrize("dtype", DTYPES)
def test_what_nobody_wrote_is_wrong(dtype):
    """Memory outside of the initial data has a value that is never right."""
    memory = memory_of(10, dtype, [Region(0, 0, 5)])
    (fault,) = compare(memory, [Region(0, 0, 10)])
    assert (fault.first, fault.count) == (5, 5)
