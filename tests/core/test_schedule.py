"""Tests of the arrays of schedules."""

from __future__ import annotations

from collections import Counter

import numpy as np
from cwb.core.schedule import number_within
from hypothesis import given
from hypothesis import strategies as st


@given(st.lists(st.integers(0, 5), max_size=20))
def test_the_items_of_every_group_are_numbered_in_order(groups: list[int]) -> None:
    """The number of an item is how many items of its group come before it."""
    seen = Counter[int]()
    for group, number in zip(groups, number_within(np.array(groups, dtype=np.int64)).tolist(), strict=True):
        assert number == seen[group]
        seen[group] += 1
