"""Reservations, and the state of a search: what is withdrawn leaves nothing behind."""

from __future__ import annotations

import numpy as np
import pytest
from cwb.algorithms.epochs.insertion import drop_first, empty_heap, push_entry
from cwb.algorithms.epochs.reroute import leads_over, strike_arcs
from cwb.algorithms.epochs.search import EpochSearch
from cwb.algorithms.epochs.state import NEVER, earliest, empty_state, reserve, retrace
from cwb.core.budget import Budget
from hypothesis import given, settings
from hypothesis import strategies as st
from search_families import random_case


@settings(deadline=None)
@given(st.integers(1, 5), st.integers(1, 3), st.lists(st.integers(0, 30), max_size=12))
def test_reservations_keep_every_window_within_its_room(window, room, wishes):
    """Starts that are taken as early as possible are those that a check of every window allows, and no earlier one is
    allowed."""
    table, starts = np.zeros((1, 60), dtype=np.int16), []

    def is_allowed(start):
        trial = [*starts, start]
        return all(sum(t <= s < t + window for s in trial) <= room for t in range(-window, 60))

    for wish in wishes:
        start = earliest(table, 0, wish, window, room)
        expected = next((t for t in range(wish, 60 - window + 1) if is_allowed(t)), NEVER)
        assert start == expected
        if start != NEVER:
            reserve(table, 0, start, window, 1)
            starts.append(start)
    for start in starts:
        reserve(table, 0, start, window, -1)
    assert not table.any()


@settings(deadline=None)
@given(st.lists(st.tuples(st.floats(-9, 9), st.integers(0, 99))))
def test_the_heap_sorts(entries):
    """Entries come out by key, equal keys by item."""
    heap, size, out = empty_heap(len(entries) + 1), 0, []
    for key, item in entries:
        size = push_entry(heap, size, key, item, 0)
    while size:
        out.append((heap.key[0], heap.item[0]))
        size = drop_first(heap, size)
    assert out == sorted(entries)


@pytest.mark.slow
def test_moves_leave_no_reservation_behind():
    """After thousands of moves, the best schedule uses no more of any link than a table made anew says, and all of it
    is within the room."""
    for seed in (6, 7, 29):
        case = random_case(seed, most=16, demand="custom")
        network = case.network()
        search = EpochSearch(network, 0, Budget(seed=seed), 400_000)
        search.construct()
        search.improve()
        assert search.moves > 100
        state = search.state()
        fresh = empty_state(
            network.initial_holders, len(network.tail), len(network.tail), state.table.shape[1], search.arcs.longest
        )
        for chunk in range(network.chunks):
            retrace(search.arcs, fresh, chunk, state.arc[chunk], state.start[chunk])
        assert (state.table == fresh.table).all()
        assert (state.arrival == fresh.arrival).all()
        assert (state.table <= network.room[:, None]).all()
        assert (np.sort(state.sends) >= 0).all()


def test_a_part_of_a_tree_is_cut_off():
    """Removing a node or a link from a chunk's tree removes all that follows it and leaves the rest unchanged."""
    case = random_case(6, most=16)
    search = EpochSearch(case.network(), 0, Budget(), 400_000)
    search.construct(1)
    arcs, row = search.arcs, search.state().arc[0]
    mark = np.empty(len(row), np.int8)

    def on_the_way(node):
        while row[node] >= 0:
            yield node
            node = arcs.arc_tail[row[node]]

    link = int(arcs.hop_link[arcs.hop_first[row[row >= 0][0]]])
    for at, over in ((int(np.flatnonzero(row >= 0)[0]), -1), (-1, link)):
        kept = row.copy()
        strike_arcs(arcs, kept, mark, at, over)
        for node in range(len(row)):
            gone = any(step == at or (over >= 0 and leads_over(arcs, row[step], over)) for step in on_the_way(node))
            assert kept[node] == (-1 if gone else row[node])
        assert (kept != row).any()
