"""Rows that go to classes cost no more than the assignment to all slots of the classes does."""

from __future__ import annotations

import numpy as np
from cwb.algorithms.graphs.transport import assign_rows
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**32), st.integers(0, 30), st.integers(1, 8), st.sampled_from((2, 100, 2**40)))
def test_the_least_cost_is_that_of_an_assignment_to_slots(seed, rows, classes, most):
    """With many ties and with none, with room to spare and without."""
    random = np.random.default_rng(seed)
    cost = random.integers(-most, most, (rows, classes))
    room = random.integers(0, 1 + rows, classes)
    room[random.integers(classes)] += max(0, rows - room.sum())
    found = assign_rows(cost, room)
    assert (np.bincount(found, minlength=classes) <= room).all()
    slots = np.repeat(np.arange(classes), room)
    row, slot = linear_sum_assignment(cost[:, slots])
    assert cost[np.arange(rows), found].sum() == cost[row, slots[slot]].sum()
