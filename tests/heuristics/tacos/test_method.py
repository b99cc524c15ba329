"""Schedules are right, meet the reference and their bounds, and depend on the seed alone."""

from __future__ import annotations

import csv
from fractions import Fraction
from itertools import combinations, product
from pathlib import Path

import numpy as np
import pytest
from cwb.core.errors import InputError
from cwb.core.outcome import Status
from cwb.core.schedule import Schedule
from cwb.core.topology import Link, Node, NodeKind, Topology
from cwb.core.trace import SimulationMode
from cwb.heuristics.tacos.method import TacosOptions, supports
from cwb.schedules.simulate import simulate
from hypothesis import assume, given, settings
from hypothesis import strategies as st

REFERENCE = Path(__file__).parents[2] / "reference" / "tacos.csv"
KINDS = ["all_gather", "reduce_scatter", "all_reduce"]

with REFERENCE.open(newline="") as file:
    ROWS = [row for row in csv.DictReader(file) if int(row["npus"]) <= 130]


def expression(row) -> str:
    name = "torus" if row["topology"].startswith("torus") else "mesh"
    sizes = ",".join(row[axis] for axis in "xyz" if int(row[axis]) > 1)
    return f"{name}({sizes}, bandwidth='{float(row['bw_GiBps']):g} GiB/s', latency='{row['lat_us']} us')"


@pytest.mark.parametrize(
    "row", ROWS, ids=lambda row: f"{row['topology']}-{row['npus']}-{row['chunks_per_npu']}-{row['out_MiB']}"
)
def test_reference(pose, solve, row):
    """Every row is met or beaten, at the slot bound, and proved; the reference's chunks are whole bytes, so that its
    times are up to 1e-6 shorter."""
    instance = pose(expression(row), size=int(float(row["out_MiB"])) * 2**20, chunks=int(row["chunks_per_npu"]))
    record = solve(instance).record
    assert (record.status, record.verified) == ("optimal", True), record.violations
    assert record.objective == record.metrics["lower_bound_s"]
    assert record.metrics["completion_time_s"] <= record.objective * (1 + 1e-9)  # latency holds no link there
    assert record.objective * 1e6 <= float(row["coll_min_us"]) * (1 + 1e-6)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "network",
    ["ring(5)", "ring(4, bidirectional=false)", "line(4)", "complete(4)", "dgx1()", "kautz(2,2)", "mesh(3,4)",
        "torus(4,4)", "hypercube(3)",
     "star(4)", "star(5, multicast=true)", "switch2d(4,2)", "rfs3d(2,2,2)", "dragonfly(3,2)", "fat_tree(4)"],
)  # fmt: skip
def test_on_networks(pose, solve, kind, network):
    """The verifier has nothing against any answer, and what is optimal meets its bound."""
    done = solve(pose(network, kind, chunks=2), restarts=12)
    assert done.record.verified, done.record.violations
    assert done.record.bound <= done.record.objective
    assert (done.record.status == "optimal") == (done.record.bound == done.record.objective)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("variant", ["paper", "portfolio"])
def test_no_congestion(pose, solve, kind, variant):
    """Simulated with congestion, every send starts when the schedule says: no link is waited for."""
    done = solve(pose("mesh(3,4)", kind, chunks=2), variant=variant, overlap=False)
    assert isinstance(done.answer, Schedule)
    trace = simulate(done.instance, done.answer, SimulationMode.CONGESTION_AWARE, hold_latency=True)
    assert (trace.start_s <= done.answer.start_s * (1 + 1e-9)).all()
    assert trace.completion_s <= done.record.objective * (1 + 1e-9)


@st.composite
def networks(draw):
    """Ranks on a cycle with further links, of a few bandwidths and latencies."""
    n = draw(st.integers(3, 7))
    more = draw(st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=12, unique=True))
    ends = [(rank, (rank + 1) % n) for rank in range(n)] + [(a, b) for a, b in more if a != b]
    rate = st.sampled_from([Fraction(10**9), Fraction(3 * 10**9), Fraction(7 * 10**8)])
    late = st.sampled_from([Fraction(0), Fraction(1, 2_000_000), Fraction(1, 300_000)])
    return n, [(a, b, draw(rate), draw(late)) for a, b in ends]


@settings(max_examples=15, deadline=None)
@given(network=networks(), kind=st.sampled_from(KINDS), chunks=st.integers(1, 3), data=st.data())
def test_on_random_networks(pose, solve, graph, network, kind, chunks, data):
    """Unequal links and process groups, whose other ranks pass on: right, with a proved bound, and the same again with
    the same seed."""
    n, links = network
    ranks = data.draw(st.none() | st.lists(st.integers(0, n - 1), min_size=2, max_size=n, unique=True).map(tuple))
    variant = data.draw(st.sampled_from(["paper", "portfolio"]))
    instance = pose(graph(n, links), kind, 10**6, chunks, ranks)
    first, second = (solve(instance, seed=3, restarts=4, variant=variant) for _ in range(2))
    assert first.record.verified, first.record.violations
    assert first.record.bound <= first.record.objective
    for column in ("start_s", "end_s"):
        assert np.array_equal(getattr(first.answer, column), getattr(second.answer, column))
    assert np.array_equal(first.answer.sends.chunk, second.answer.sends.chunk)


def fewest_steps(n: int, edges: list[tuple[int, int]]) -> int:
    """Try everything: the fewest steps of an all-gather of one chunk each over equal links."""
    full = (1 << n) - 1
    states, steps = {tuple(1 << rank for rank in range(n))}, 0
    while not any(all(have == full for have in state) for state in states):
        following = set()
        for state in states:
            choices = [
                [1 << c for c in range(n) if state[a] >> c & 1 and not state[b] >> c & 1] or [0] for a, b in edges
            ]
            for taken in product(*choices):
                new = list(state)
                for (_, b), chunk in zip(edges, taken, strict=True):
                    new[b] |= chunk
                following.add(tuple(new))
        states, steps = following, steps + 1
    return steps


@settings(max_examples=15, deadline=None)
@given(n=st.integers(2, 4), data=st.data())
def test_against_brute_force(pose, solve, graph, n, data):
    """On tiny networks no schedule beats the optimum, none is called optimal that is not, and the portfolio finds the
    optimum."""
    pairs = [(a, b) for a, b in combinations(range(n), 2)]
    both = [pair for a, b in pairs for pair in ((a, b), (b, a))]
    cycle = [(rank, (rank + 1) % n) for rank in range(n)]
    edges = sorted({*cycle, *data.draw(st.lists(st.sampled_from(both), max_size=3))})
    assume(len(edges) <= 7)
    done = solve(pose(graph(n, [(a, b, Fraction(10**9), Fraction(0)) for a, b in edges]), size=n * 1000))
    best = fewest_steps(n, edges)
    assert done.record.metrics["epochs"] == best
    assert done.record.metrics["lower_bound_epochs"] <= best


@pytest.mark.parametrize("network", ["ring(3, bidirectional=False)", "mesh(2,3)"])
def test_a_group_of_all_ranks_in_another_order_has_its_own_chunks(pose, solve, network):
    """Chunks are numbered by the order of the group, which need not be that of the network."""
    ranks = tuple(reversed(range(pose(network).npus)))
    for kind in KINDS:
        assert solve(pose(network, kind, chunks=2, ranks=ranks)).record.verified, kind


def test_more_chunks_than_memory_are_refused(pose, solve):
    """A number of chunks that would not fit is told in one line, before anything is made."""
    with pytest.raises(
        InputError, match=r"collective.chunks: 1,600,000,000 chunks of all ranks; expected at most 4,194,304"
    ):
        solve(pose("mesh(4,4)", chunks=10**8))


def test_options_and_reasons(pose, solve):
    """Unsupported instances get a reason, and wrong options one line."""
    assert "all_to_all" in str(supports(pose("ring(4)", "all_to_all")))
    assert "links" in str(supports(pose("ring(4)").with_changes(network=pose("RI(4)_SW(2)").network)))
    assert solve(pose("mesh(3,3)"), answer="trees").record.status == Status.UNSUPPORTED.value
    assert TacosOptions().variant == "portfolio"


def test_unwinding(pose, solve):
    """A switch unwound to degree d gives d parts of every port to the next ranks, and the verifier accepts that they
    share it."""
    for degree in (0, 1, 2, 3):
        done = solve(pose("star(4)"), unwind=degree)
        assert done.record.verified, done.record.violations
    assert done.record.metrics["engine"].startswith(("steps", "events"))


def test_links_that_no_shortest_schedule_uses_do_not_coarsen_the_ticks(pose, solve, graph):
    """A link that is slower than everything over the others in a row leaves the times exact: 2 ps beside a link of 10^9
    s."""
    pairs = [(0, 1, 10**12), (1, 2, 10**12), (0, 2, Fraction(1, 10**9))]
    triangle = graph(3, [(*ends, rate, 0) for a, b, rate in pairs for ends in ((a, b), (b, a))])
    for variant, kind in product(["paper", "portfolio"], ["all_gather", "reduce_scatter"]):
        record = solve(pose(triangle, kind, 3), variant=variant).record
        assert (record.status, record.verified, record.objective) == ("optimal", True, 2e-12), record.violations


@pytest.mark.parametrize("kind", KINDS)
def test_where_ticks_round_the_bound_holds_without_them(pose, solve, graph, kind):
    """On a ring whose links differ by 10^21, all needed, the bound is below the time without ticks, and nothing is
    called optimal."""
    ring = graph(3, [(0, 1, 10**12, 0), (1, 2, Fraction(1, 10**9), 0), (2, 0, 1, 0)])
    record = solve(pose(ring, kind, 3)).record
    proved = 3e9 if kind == "all_reduce" else 2e9  # chunks over the slow link, which comes first
    assert record.verified, record.violations
    assert record.status == "feasible"
    assert proved * (1 - 1e-9) <= record.bound <= proved <= record.objective
    assert kind == "all_reduce" or record.objective <= proved * (1 + 1e-9)
    assert "rounded up" in record.message


@settings(max_examples=20, deadline=None)
@given(
    data=st.data(),
    kind=st.sampled_from(KINDS),
    multicast=st.booleans(),
    variant=st.sampled_from(["paper", "portfolio"]),
)
def test_ports_of_switches_are_kept(pose, solve, data, kind, multicast, variant):
    """Whatever links a switch has, of ratios up to 10^21, no port has two chunks at once, in the paper's variant
    too."""
    n = data.draw(st.integers(2, 4))
    rate = st.sampled_from([Fraction(10**12), Fraction(3 * 10**9), Fraction(10**9), Fraction(1, 10**9)])
    late = st.sampled_from([Fraction(0), Fraction(1, 10**6), Fraction(1, 3)])
    nodes = (*(Node(str(rank)) for rank in range(n)), Node("s", NodeKind.SWITCH, multicast))
    ends = [pair for rank in range(n) for pair in ((str(rank), "s"), ("s", str(rank)))]
    network = Topology(nodes, tuple(Link(a, b, data.draw(rate), data.draw(late)) for a, b in ends))
    unwind = data.draw(st.sampled_from([None, 0, 1]))
    record = solve(pose(network, kind, 10**6), variant=variant, unwind=unwind, restarts=4).record
    assert record.verified, record.violations
    assert record.bound <= record.objective


def test_ports_of_the_papers_variant_against_the_bound(pose, solve):
    """Three ranks on a switch: 42 us, as with the project's own engine, and not the 21 us of two chunks on a port at
    once."""
    times = {
        solve(pose("star(3)", size=3 * 10**6), variant=v, unwind=0).record.objective for v in ("paper", "portfolio")
    }
    assert times == {4.2e-5}


def test_what_cannot_be_reached_is_told(pose, solve, graph):
    """Without a path it is an input error, and where only unwinding takes the paths away, a reason; no attempt and no
    limit."""
    apart = graph(4, [(a, b, 1, 0) for a, b in ((0, 1), (1, 0), (2, 3), (3, 2))])
    with pytest.raises(InputError, match=r"network.links: not every rank can be reached"):
        solve(pose(apart))
    nodes = (Node("0"), Node("1"), Node("2"), Node("s", NodeKind.SWITCH))
    ends = [("0", "s"), ("s", "1"), ("s", "2"), ("1", "2"), ("2", "0")]
    one_way = Topology(nodes, tuple(Link(a, b, Fraction(1), Fraction(0)) for a, b in ends))
    unwound = solve(pose(one_way), variant="paper").record
    assert (unwound.status, unwound.message) == (
        "unsupported",
        "some ranks cannot be reached if switches are unwound 1; expected unwind=0",
    )
    assert solve(pose(one_way), variant="paper", unwind=0).record.verified


def test_other_ranks_that_cannot_be_reached_are_no_failure(pose, solve, graph):
    """The paper's variant also tries to bring chunks to ranks outside of the group; that one has no link does not
    matter."""
    pair = graph(3, [(0, 1, 1, 0), (1, 0, 1, 0), (2, 0, 1, 0)])
    record = solve(pose(pair, size=2, ranks=(0, 1)), variant="paper").record
    assert (record.status, record.objective) == ("optimal", 1.0)
