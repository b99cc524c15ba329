"""Every algorithm does every collective that it defines, in as many steps and sends as the textbooks say."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from math import ceil, log2

import numpy as np
import pytest
from draws import draws
from hypothesis import given, settings
from hypothesis import strategies as st

GATHERS = ["all_gather", "reduce_scatter", "all_reduce"]
SPREADS = ["broadcast", "reduce"]
ANY = ["ring", "direct", "bruck", "bine", "dbt", "knomial"]
DEFINED = {
    "ring": [*GATHERS, "all_to_all", *SPREADS],
    "direct": [*GATHERS, "all_to_all", *SPREADS, "gather", "scatter"],
    "rhd": GATHERS,
    "bruck": [*GATHERS, "all_to_all"],
    "bine": [*GATHERS, "all_to_all", *SPREADS, "gather", "scatter"],
    "dbt": [*SPREADS, "all_reduce"],
    "knomial": [*SPREADS, "all_reduce"],
    "torus-rings": GATHERS,
    "shifted-ring": GATHERS,
    "swing": GATHERS,
}
NETWORKS = ["complete", "switch", "ring", "line"]
PAIRS = [(name, kind) for name in ANY for kind in DEFINED[name]]


def twice(kind: str, count: int) -> int:
    return 2 * count if kind == "all_reduce" else count


@pytest.mark.parametrize(("name", "kind"), PAIRS)
@settings(max_examples=draws(12), deadline=None)
@given(n=st.integers(2, 11), chunks=st.integers(1, 3), network=st.sampled_from(NETWORKS))
def test_on_any_number_of_ranks(pose, solve_and_replay, name, kind, n, chunks, network):
    """The replay of the schedule ends in the post-condition, whatever the number of ranks and chunks and the network.

    ``scheduled`` replays and asserts.
    """
    solve_and_replay(name, pose(f"{network}({n})", kind, size=1000, chunks=chunks))


@pytest.mark.parametrize(("name", "kind"), PAIRS)
@settings(max_examples=8, deadline=None)
@given(ranks=st.lists(st.integers(0, 8), min_size=2, max_size=7, unique=True))
def test_in_process_groups(pose, solve_and_replay, name, kind, ranks):
    """A group of some ranks in any order works too; the first one is the root; ``scheduled`` replays and asserts."""
    solve_and_replay(name, pose("torus(3,3)", kind, ranks=tuple(ranks)))


@pytest.mark.parametrize(("name", "kind"), [p for p in PAIRS if p[0] in ("ring", "direct")])
@pytest.mark.parametrize("ways", ["one-way", "two-way"])
def test_on_one_way_rings(pose, solve_and_replay, name, kind, ways):
    """Without reverse links all collectives still work; the one-way ring crosses one link a send, reductions
    included."""
    options = {"ways": ways} if name == "ring" else {}
    schedule = solve_and_replay(name, pose("ring(5, bidirectional=false)", kind), **options)
    if options == {"ways": "one-way"}:
        assert set(schedule.sends.hops.tolist()) == {1}


@pytest.mark.parametrize("kind", GATHERS)
@pytest.mark.parametrize("n", [2, 4, 8, 16])
@pytest.mark.parametrize("order", ["near-first", "far-first"])
def test_recursive_halving_doubling(pose, solve_and_replay, kind, n, order):
    """log2(n) steps, and half of the data in the step with the preferred partner."""
    schedule = solve_and_replay("rhd", pose(f"complete({n})", kind, chunks=2), order=order)
    assert schedule.steps == twice(kind, int(log2(n)))
    assert len(schedule.sends) == twice(kind, 2 * n * (n - 1))
    sent = Counter(zip(schedule.step.tolist(), (schedule.sends.source ^ schedule.sends.target).tolist(), strict=True))
    (_, distance), most = sent.most_common(1)[0]
    assert (distance, most) == (1 if order == "near-first" else n // 2, 2 * n * (n // 2))


@pytest.mark.parametrize("kind", [*GATHERS, "all_to_all", *SPREADS, "gather", "scatter"])
@pytest.mark.parametrize("n", [2, 4, 8, 16])
def test_bine(pose, solve_and_replay, kind, n):
    """log2(n) steps of every collective, and in a reduce-scatter half of the data goes to neighbours."""
    ranks = tuple(reversed(range(n)))
    schedule = solve_and_replay("bine", pose(f"complete({n})", kind, chunks=2, ranks=ranks))
    assert schedule.steps == twice(kind, int(log2(n)))
    fewest = {
        "all_to_all": n * n // 2 * int(log2(n)),
        "gather": n // 2 * int(log2(n)),
        "scatter": n // 2 * int(log2(n)),
    }
    sends = fewest.get(kind, n - 1 if kind in SPREADS else twice(kind, n * (n - 1)))
    assert len(schedule.sends) == 2 * sends
    if kind == "reduce_scatter" and n > 2:
        first = schedule.step == 0
        assert set(((schedule.sends.target - schedule.sends.source) % n)[first].tolist()) == {1, n - 1}


@pytest.mark.parametrize(("name", "n", "steps"), [("direct", 2, 1), ("direct", 7, 1), ("rhd", 2, 1), ("rhd", 16, 4)])
@pytest.mark.parametrize("chunks", [1, 3])
def test_whole_buffers_need_half_of_the_steps(pose, solve_and_replay, name, n, steps, chunks):
    """An all-reduce of whole buffers ends in the sums of all ranks, with one send for each partner, step and chunk."""
    schedule = solve_and_replay(name, pose(f"switch({n})", "all_reduce", chunks=chunks), whole=True)
    partners = n - 1 if name == "direct" else steps
    assert schedule.steps == steps and len(schedule.sends) == n * partners * chunks


def test_whole_buffers_in_a_group(pose, solve_and_replay):
    """A group of some ranks in any order sums its own buffers, and no others."""
    for name in ("direct", "rhd"):
        solve_and_replay(name, pose("torus(3,3)", "all_reduce", ranks=(7, 0, 4, 2)), whole=True)


@pytest.mark.parametrize("kind", ["all_reduce", "broadcast", "all_to_all"])
@pytest.mark.parametrize("n", [3, 6, 7, 12, 33])
def test_bine_of_numbers_that_are_no_power_of_two(pose, solve_and_replay, kind, n):
    """Steps are those of an even number of ranks, and of an odd one two more, or one; nobody gets a part twice."""
    schedule = solve_and_replay("bine", pose(f"complete({n})", kind))
    steps = ceil(log2(n - n % 2)) + n % 2 * (1 if kind == "broadcast" else 2)
    assert schedule.steps == twice(kind, steps)
    if kind != "all_to_all":
        assert len(schedule.sends) == (n - 1 if kind == "broadcast" else 2 * n * (n - 1))


@pytest.mark.slow
@pytest.mark.parametrize("kind", DEFINED["bine"])
def test_bine_of_all_numbers_up_to_33(pose, solve_and_replay, kind):
    """The replay of every collective of 2 to 33 ranks ends in the post-condition; ``scheduled`` replays and asserts."""
    for n in range(2, 34):
        solve_and_replay("bine", pose(f"complete({n})", kind))


def test_bine_crosses_fewer_bytes_than_distances_that_double(pose, solve_unchecked):
    """Of 64 ranks in uneven groups of nodes, fewer bytes leave the groups than by recursive halving-doubling, and a
    fifth of Bruck's."""
    posed = pose("complete(64)", "all_gather")
    group = np.searchsorted([11, 30, 51], np.arange(64), side="right")
    crossing = {}
    for name in ("bine", "rhd", "bruck"):
        sends = solve_unchecked(name, posed).sends
        crossing[name] = int((group[sends.source] != group[sends.target]).sum())
    assert crossing["bine"] < crossing["rhd"]
    assert 5 * crossing["bine"] < crossing["bruck"]


@pytest.mark.parametrize("kind", GATHERS)
@pytest.mark.parametrize("sizes", ["2", "5", "4,4", "3,4", "2,3,4", "2,2"])
@pytest.mark.parametrize("rotate", [True, False])
@pytest.mark.parametrize("ways", ["two-way", "one-way"])
def test_torus_rings(pose, solve_and_replay, kind, sizes, rotate, ways):
    """Sum of (size - 1) steps, over neighbours alone."""
    schedule = solve_and_replay("torus-rings", pose(f"torus({sizes})", kind), rotate=rotate, ways=ways)
    assert schedule.steps == twice(kind, sum(int(size) - 1 for size in sizes.split(",")))
    assert set(schedule.sends.hops.tolist()) == {1}


def test_torus_rings_keep_every_link_equally_busy(pose, solve_and_replay):
    """On a torus of equal dimensions, every link carries the same in every step of equal rank (Zhao et al., section
    6.2)."""
    schedule = solve_and_replay("torus-rings", pose("torus(4,4)", "all_gather"))
    load = Counter(schedule.sends.path_links.tolist())
    assert len(load) == 64
    assert len(set(load.values())) == 1


@pytest.mark.parametrize("kind", GATHERS)
@pytest.mark.parametrize("sizes", ["2", "8", "16", "4,4", "2,4", "8,2", "2,2,4"])
def test_swing(pose, solve_and_replay, kind, sizes):
    """log2(n) steps, on tori of unequal powers of two too."""
    schedule = solve_and_replay("swing", pose(f"torus({sizes})", kind))
    n = len(schedule.chunks.groups) - 1
    assert schedule.steps == twice(kind, int(log2(n)))


def test_swing_stays_nearer_than_recursive_doubling(pose, solve_unchecked):
    """On a torus of 8 x 8, the busiest link of Swing carries less than that of recursive halving-doubling (De Sensi et
    al., section 3)."""
    posed = pose("torus(8,8)", "all_reduce")
    load = {}
    for name in ("swing", "rhd"):
        schedule = solve_unchecked(name, posed)
        load[name] = max(Counter(schedule.sends.path_links.tolist()).values()) * schedule.chunks.unit_bytes
    assert load["swing"] < load["rhd"]


@pytest.mark.parametrize("kind", GATHERS)
@pytest.mark.parametrize("n", [2, 5, 6, 9, 12])
@pytest.mark.parametrize("variant", ["traditional", "bfb"])
def test_shifted_rings(pose, solve_and_replay, kind, n, variant):
    """n - 1 steps, or floor(n / 2) for the breadth-first variant (Zhao et al., appendix F.1), with every link equally
    busy."""
    network = f"circulant({n}, [1, 5])" if n == 12 else f"ring({n})"
    schedule = solve_and_replay("shifted-ring", pose(network, kind, chunks=2), variant=variant)
    assert schedule.steps == twice(kind, n // 2 if variant == "bfb" else n - 1)
    assert set(schedule.sends.hops.tolist()) == {1}
    if n > 2:
        assert len(set(Counter(schedule.sends.path_links.tolist()).values())) == 1


@given(n=st.integers(2, 40), c=st.integers(1, 3))
@settings(max_examples=25, deadline=None)
def test_steps_and_sends_of_gathers(pose, solve_unchecked, n, c):
    """Direct takes 1 step, Bruck ceil(log2(n)), a ring n - 1; every rank receives every part of the others once."""
    posed = pose(f"switch({n})", "all_gather", chunks=c)
    for name, steps, options in (
        ("direct", 1, {}),
        ("bruck", ceil(log2(n)), {}),
        ("ring", n - 1, {"ways": "one-way"}),
    ):
        schedule = solve_unchecked(name, posed, **options)
        assert (schedule.steps, len(schedule.sends)) == (steps, n * (n - 1) * c)
        assert schedule.chunks.unit_bytes == Fraction(2**20, n * c)


@given(n=st.integers(2, 60), c=st.integers(1, 9), k=st.integers(2, 5))
@settings(max_examples=25, deadline=None)
def test_steps_and_sends_of_spreads(pose, solve_unchecked, n, c, k):
    """k-nomial: ceil(log_k(n)) rounds; ring: n - 2 + c steps; all trees have n - 1 edges."""
    posed = pose(f"switch({n})", "broadcast", chunks=c)
    rounds = next(r for r in range(1, 9) if k**r >= n)
    knomial = solve_unchecked("knomial", posed, k=k)
    assert (knomial.steps, len(knomial.sends)) == (rounds, (n - 1) * c)
    ring = solve_unchecked("ring", posed, ways="one-way")
    assert (ring.steps, len(ring.sends)) == (n - 2 + c, (n - 1) * c)
    direct = solve_unchecked("direct", posed)
    assert (direct.steps, len(direct.sends)) == (1, (n - 1) * c)


@given(n=st.integers(2, 70), c=st.integers(1, 6), kind=st.sampled_from(["broadcast", "reduce", "all_reduce"]))
@settings(max_examples=40, deadline=None)
def test_double_binary_tree_uses_each_port_once_a_step(pose, solve_unchecked, n, c, kind):
    """Nobody sends or receives twice in a step, and the steps are at most 2 (ceil(log2(n)) + 1) + 2 (c - 1) + 1
    (Sanders et al., section 2)."""
    schedule = solve_unchecked("dbt", pose(f"switch({n})", kind, chunks=c))
    steps = schedule.step.tolist()
    for column in (schedule.sends.source, schedule.sends.target):
        assert max(Counter(zip(steps, column.tolist(), strict=True)).values()) == 1
    assert len(schedule.sends) == twice(kind, 2 * (n - 1) * c)
    assert schedule.steps <= twice(kind, 2 * (ceil(log2(n)) + 1) + 2 * (c - 1) + 1)


@given(n=st.integers(2, 17))
@settings(max_examples=16, deadline=None)
def test_all_to_all_travels_no_further_than_it_must(pose, solve_unchecked, n):
    """On a ring, parts take n(n - 1)/2 hops from each source one way, and the shorter way around otherwise; Bruck a
    send for every bit."""
    posed = pose(f"ring({n})", "all_to_all")
    bits = sum(d.bit_count() for d in range(n))
    assert len(solve_unchecked("bruck", posed).sends) == n * bits
    assert len(solve_unchecked("ring", posed, ways="one-way").sends) == n * n * (n - 1) // 2
    both = solve_unchecked("ring", posed, ways="two-way")
    halves = 1 if n % 2 else 2
    assert len(both.sends) == halves * n * sum(min(d, n - d) for d in range(n))
    assert both.steps == n // 2


def test_schedules_are_deterministic(pose, solve_unchecked):
    """The same instance gives the same sends, links included."""
    posed = pose("torus(4,4)", "all_reduce", chunks=2)
    for name in DEFINED:
        one, other = (
            solve_unchecked(name, posed, **({"strides": [1, 3]} if name == "shifted-ring" else {})) for _ in "ab"
        )
        assert one.sends.path_links.tolist() == other.sends.path_links.tolist()
        assert one.sends.chunk.tolist() == other.sends.chunk.tolist()
