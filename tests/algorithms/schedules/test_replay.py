"""Pieces with fixed ways, and the links that serve them."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from cwb.algorithms.graphs.distances import Paths
from cwb.algorithms.schedules.replay import first_come, serve_pieces
from cwb.core.schedule import offsets
from cwb.harness import Request
from cwb.harness import run as run_method
from cwb.instances import load
from cwb.instances.demand import with_demand
from cwb.schedules.completion import completion_of


def test_what_has_far_to_go_is_served_first():
    """Of two pieces that wait for link 0, the one that goes on over link 1 is first, and goes on when it has come."""
    ways = Paths(np.array([0, 1, 3]), np.array([0, 0, 1]))
    start = serve_pieces(ways, np.array([0, 1]), np.array([2, 3]), np.array([5, 3]), np.array([0, 1]))
    assert start.tolist() == [2, 0, 5]


def test_links_serve_one_piece_at_a_time_and_pieces_wait_until_they_have_come():
    """On a random network no link serves two pieces at once, and no piece starts over a link before it is there."""
    draw = np.random.default_rng(3)
    hops = draw.integers(1, 6, 400)
    ways = Paths(offsets(hops), draw.integers(0, 12, hops.sum()))
    window = draw.integers(1, 9, 12)
    delay = window + draw.integers(0, 20, 12)
    start = serve_pieces(ways, np.arange(12) % 4, window, delay, draw.permutation(400))
    for link in range(12):
        begun = np.sort(start[ways.links == link])
        assert (np.diff(begun) >= window[link]).all()
    for first, end in zip(ways.offset[:-1], ways.offset[1:], strict=True):
        come = start[first:end] + delay[ways.links[first:end]]
        assert (start[first + 1 : end] >= come[:-1]).all()


def test_it_stops_when_the_time_is_over():
    """Nothing is given where the time is over."""
    ways = Paths(np.array([0, 1]), np.array([0]))
    assert serve_pieces(ways, np.array([0]), np.array([1]), np.array([1]), np.array([0]), lambda: True) is None


@pytest.mark.parametrize("size", ["1 KiB", "1 GiB"])
def test_first_come_is_the_simulators_time(size):
    """A send that waits for several others leaves after the last arrival, so that MultiTree's sums take the simulator's
    time."""
    done = run_method(with_demand(load("dgx_h100(boxes=2)"), "all_reduce", size, None), Request("multitree"))
    seconds = float(first_come(done.instance.topology, done.answer))
    assert seconds == pytest.approx(completion_of(done.instance, done.answer).seconds, rel=1e-12)


@pytest.mark.parametrize("exact", [2**53, 2])  # the latter: in integers of any size
@pytest.mark.parametrize("part", [Fraction(1, 9), Fraction(1, 2), Fraction(10**9 - 1, 10**9), Fraction(1), Fraction(2)])
def test_a_simulation_with_a_limit_ends_beyond_it_only_if_the_last_arrival_is(part, exact, monkeypatch):
    """A time up to the limit is returned as it is, and a later one as some time between the limit and itself."""
    monkeypatch.setattr("cwb.algorithms.schedules.replay._EXACT", exact)
    instance = with_demand(load("ring(6)"), "all_gather", "6 KiB", None)
    schedule = run_method(instance, Request("direct")).answer
    seconds = first_come(instance.topology, schedule)
    limited = first_come(instance.topology, schedule, seconds * part)
    assert limited == seconds if part >= 1 else seconds * part < limited <= seconds
