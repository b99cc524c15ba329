"""Sends in a given order: compiled or not, the same times."""

from __future__ import annotations

from fractions import Fraction
from time import perf_counter

import numpy as np
import pytest
from cwb.core import kernel
from cwb.core.collective import Collective, Demand
from cwb.core.instance import Instance
from cwb.core.kernel import Allowance, prefer_interpreted
from cwb.core.schedule import Chunks, Schedule, sends_from_lists
from cwb.core.topology import Link, Node, Topology
from cwb.core.trace import SimulationMode
from cwb.schedules.simulate import simulate
from draws import draws
from hypothesis import given, settings
from hypothesis import strategies as st

MODES = [SimulationMode.CONGESTION_AWARE, SimulationMode.CUT_THROUGH, SimulationMode.ALPHA_BETA]


@st.composite
def relays(draw):
    """Chunks down a line of four nodes, hop by hop or over several links at once, in any order that data allows."""
    bandwidths = draw(st.lists(st.sampled_from([1, 2, 3]), min_size=3, max_size=3))
    latency = Fraction(draw(st.integers(0, 2)), 2)
    links = tuple(Link(str(i), str(i + 1), Fraction(b), latency) for i, b in enumerate(bandwidths))
    topology = Topology(tuple(Node(str(i)) for i in range(4)), links)
    count = draw(st.integers(1, 4))
    instance = Instance("line", topology, Demand(Collective.POINT_TO_POINT, Fraction(count), count, (0, 3)))
    rows: list[tuple[int, int, int, float]] = []
    for chunk in range(count):
        stops = [0, *sorted(draw(st.sets(st.integers(1, 2)))), 3]
        starts = sorted(draw(st.sets(st.integers(0, 60), min_size=len(stops) - 1, max_size=len(stops) - 1)))
        rows += [(chunk, a, b, float(t)) for a, b, t in zip(stops, stops[1:], starts, strict=False)]
    rows = draw(st.permutations(rows))
    chunk, source, target, start = (list(column) for column in zip(*rows, strict=True))
    sends = sends_from_lists(chunk, source, target, False, [range(a, b) for a, b in zip(source, target, strict=True)])
    ones = np.ones(count, dtype=np.int64)
    chunks = Chunks(ones, Fraction(1), ((0,), (3,)), ones * 0, ones, ones < 0)
    times = np.array(start)
    return instance, Schedule(instance.sha256, chunks, sends, times, times + 1)


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
@settings(max_examples=draws(50))
@given(given_=relays())
def test_compiled_and_interpreted_agree(mode, given_):
    """From any number of sends on the simulation may be compiled, and no time changes."""
    traces = []
    for least in (1, 10**9):
        with pytest.MonkeyPatch.context() as patch, prefer_interpreted(Allowance(60.0), perf_counter):
            patch.setattr(kernel, "WORTH_CODE", least)
            patch.setattr(kernel, "WORTH_COMPILER", least)
            traces.append(simulate(*given_, mode))
    for name in ("end_s", "hop_start_s", "hop_end_s"):
        assert np.array_equal(getattr(traces[0], name), getattr(traces[1], name))
