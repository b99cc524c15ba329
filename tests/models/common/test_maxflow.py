"""Exact maximum flows against other programs, and the state that is kept between them."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from cwb.models.common import flow_kernels
from cwb.models.common.compiled import functions
from cwb.models.common.maxflow import RootedFlow, arcs_of, is_rooted, near_order
from networks import seeded
from oracle import SOURCE, has_trees, max_flow, with_source
from random_digraphs import LARGEST, as_dict, column, flags, random_digraph
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_flow

NUMBERS, OBJECTS = np.dtype(np.int64), np.dtype(object)


def random_demand(rng, nodes, largest):
    return {v: rng.choice((0, rng.randint(1, largest))) for v in range(nodes)}


def state(graph, demand, dtype, touched=None):
    """The kernel's arrays before any flow."""
    first, head, mate, arc = arcs_of(graph)
    cap = np.zeros(len(head), dtype=dtype)
    cap[arc] = graph.capacity
    level, queue, cursor, path, wide, side = flow_kernels.scratch(graph.nodes, len(head))
    work = level, queue, cursor, path, wide if touched is None else wide[:touched]
    return first, head, mate, cap, demand.astype(dtype), work, side


@pytest.mark.parametrize("largest", LARGEST)
def test_flow_and_cut_are_networkxs(largest):
    """A sink lacks exactly what a maximum flow of networkx lacks, and the set that is given lacks exactly that."""
    rng = seeded(largest)
    failed = 0
    for _ in range(25):
        graph = random_digraph(rng, largest)
        demand = random_demand(rng, graph.nodes, 3 * largest)
        total = sum(demand.values())
        for sink in range(graph.nodes):
            flow = max_flow(with_source(as_dict(graph), demand), SOURCE, sink, total)
            found = RootedFlow(graph, column(graph.nodes, demand), np.array([sink])).violation()
            if flow == total:
                assert found is None
                continue
            failed += 1
            assert found is not None
            assert (found.sink, found.lacking) == (sink, total - flow)
            assert found.side[sink]
            outside = sum(d for v, d in demand.items() if not found.side[v])
            assert outside - graph.into(found.side) == found.lacking
    assert failed > 50


def test_flow_is_scipys():
    """From one grown node, the kernel's maximum flow is scipy's, on graphs of 40 nodes."""
    rng = seeded(3)
    for _ in range(20):
        graph = random_digraph(rng, 10**5, 40)
        matrix = csr_array(
            (graph.capacity.astype(np.int32), (graph.tail.astype(np.int32), graph.head.astype(np.int32))),
            shape=(40, 40),
        )
        first, head, mate, cap, supply, work, _ = state(graph, np.zeros(40, dtype=np.int64), NUMBERS)
        wanted = np.int64(graph.total + 1)
        flow, *_ = flow_kernels.flow_into(39, wanted, first, head, mate, cap, supply, flags(40, [0]), *work)
        assert flow == maximum_flow(matrix, 0, 39).flow_value


@pytest.mark.parametrize("touched", [None, 0, 1, 3])
def test_compiled_and_interpreted_are_the_same(touched):
    """Both runs of one source leave the same numbers, also where there are too many arcs to remember, and all is put back."""
    rng = seeded(4)
    overflowed = False
    for _ in range(60):
        graph = random_digraph(rng, 1000)
        demand = column(graph.nodes, random_demand(rng, graph.nodes, 300))
        sinks = np.array(rng.sample(range(graph.nodes), graph.nodes))
        wanted = int(demand.sum())
        left = []
        for dtype in (NUMBERS, OBJECTS):
            first, head, mate, cap, supply, work, side = state(graph, demand, dtype, touched)
            capacity, need, grown = cap.copy(), supply.copy(), flags(graph.nodes, [])
            number = wanted if dtype == OBJECTS else np.int64(wanted)
            space = functions(flow_kernels, dtype)
            # The first sink alone tells how many arcs were touched.
            alone = cap.copy(), supply.copy()
            flow, size, count = space["flow_into"](int(sinks[0]), number, first, head, mate, *alone, grown, *work)
            overflowed |= count < 0
            work[0][:] = -1
            position, lacking = space["rooted_pass"](
                0, sinks, number, first, head, mate, cap, capacity, supply, need, grown, *work, side
            )
            assert (cap == capacity).all()
            assert (supply == need).all()
            assert (work[0] == -1).all()
            numbers = [[int(x) for x in each] for each in (*alone, cap)]
            left.append((int(flow), size, count, position, int(lacking), side.tolist(), *numbers))
        assert left[0] == left[1]
    assert overflowed == (touched is not None)


def test_rooted_is_theorem_5():
    """All sinks can receive all demand where networkx says so, in any order of the sinks, and the first that cannot is told."""
    rng = seeded(5)
    answers = set()
    for _ in range(150):
        graph = random_digraph(rng, rng.choice((3, 1000, 2**62)))
        demand = {v: rng.randint(0, max(1, graph.total // graph.nodes**2 // 4)) for v in range(graph.nodes)}
        numbers = column(graph.nodes, demand)
        rooted = has_trees(as_dict(graph), demand)
        answers.add(rooted)
        assert is_rooted(graph, numbers) == rooted
        order = rng.sample(range(graph.nodes), graph.nodes)
        found = RootedFlow(graph, numbers, np.array(order)).violation()
        auxiliary, total = with_source(as_dict(graph), demand), sum(demand.values())
        served = [max_flow(auxiliary, SOURCE, v, total) == total for v in order]
        assert (found is None) == all(served)
        if found is not None:
            assert found.sink == order[served.index(False)]
    assert answers == {True, False}


def test_a_test_goes_on_where_it_stopped():
    """The same sink is told again until it is served; then the next; a restart begins anew; what is asked last counts."""
    rng = seeded(6)
    changed = 0
    for _ in range(150):
        graph = random_digraph(rng, 20)
        demand = column(graph.nodes, random_demand(rng, graph.nodes, 40))
        sinks = near_order(graph)
        flow = RootedFlow(graph, demand, sinks)
        capacity = graph.capacity.copy()
        last = 0
        while (found := flow.violation()) is not None:
            again = flow.violation()
            assert again is not None
            assert (again.sink, again.lacking) == (found.sink, found.lacking)
            assert (again.side == found.side).all()
            assert flow.position >= last
            last = flow.position
            entering = np.flatnonzero(found.side[graph.head] & ~found.side[graph.tail])
            if not len(entering):
                break
            changed += 1
            flow.change(entering[0], found.lacking)
            capacity[entering[0]] += found.lacking
        if found is None:
            flow.restart()
            assert flow.violation() is None
            assert is_rooted(graph.with_capacity(capacity), demand)
        flow.ask(graph.capacity, demand)
        first, fresh = flow.violation(), RootedFlow(graph, demand, sinks).violation()
        assert (first is None) == (fresh is None)
        if first is not None and fresh is not None:
            assert (first.sink, first.lacking) == (fresh.sink, fresh.lacking)
        less, half = graph.capacity // 2, demand // 2
        flow.ask(less, half)
        found, wanted = flow.violation(), RootedFlow(graph.with_capacity(less), half, sinks).violation()
        assert (None if found is None else (found.sink, found.lacking)) == (
            None if wanted is None else (wanted.sink, wanted.lacking)
        )
    assert changed > 50


def test_resuming_takes_those_before_as_served():
    """A test from a later sink on tells the sink that it tells from that place in the order."""
    graph = random_digraph(seeded(7), 20, 6)
    demand = column(6, dict.fromkeys(range(6), 40))
    flow = RootedFlow(graph, demand, np.arange(6))
    flow.resume(4)
    found = flow.violation()
    assert found is not None
    assert found.sink >= 4
    flow.resume(6)
    assert flow.violation() is None


def test_near_order():
    """Every chosen node comes once, each breadth first from the first one; unconnected nodes come last."""
    rng = seeded(8)
    for _ in range(30):
        graph = random_digraph(rng, 1)
        chosen = flags(graph.nodes, rng.sample(range(graph.nodes), rng.randint(1, graph.nodes)))
        order = near_order(graph, chosen).tolist()
        assert sorted(order) == np.flatnonzero(chosen).tolist()
        undirected = nx.Graph(list(as_dict(graph)))
        undirected.add_nodes_from(range(graph.nodes))
        distance = nx.single_source_shortest_path_length(undirected, order[0])
        far = [distance.get(v, graph.nodes) for v in order]
        assert far == sorted(far)
