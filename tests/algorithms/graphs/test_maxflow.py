"""Maximum flows, minimum cuts, rooted demands and ratio cuts, against networkx, scipy and their definitions."""

from __future__ import annotations

from fractions import Fraction

import networkx as nx
import numpy as np
import pytest
from cwb.algorithms.graphs import maxflow
from cwb.algorithms.graphs.maxflow import RootedFlow, Unreachable, arcs_of, near_order, smallest_step, worst_cut
from cwb.algorithms.graphs.network import kernel_for
from draws import draws
from networks import seeded_networks, seeded_random
from oracle import (
    SOURCE,
    fixed_k_by_cuts,
    floor_capacities,
    has_trees,
    max_flow,
    optimum,
    optimum_by_cuts,
    uniform,
    with_source,
)
from random_digraphs import LARGEST, as_dict, column, digraph, flags, is_rooted, random_digraph
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_flow

NUMBERS, OBJECTS = np.dtype(np.int64), np.dtype(object)


def random_demand(rng, nodes, largest):
    return {v: rng.choice((0, rng.randint(1, largest))) for v in range(nodes)}


def state(graph, demand, dtype, touched=None):
    """The kernel's arrays before any flow."""
    arcs, arc = arcs_of(graph)
    cap = np.zeros(len(arcs.head), dtype=dtype)
    cap[arc] = graph.capacity
    work = maxflow.scratch(graph.nodes, len(arcs.head))
    return arcs, cap, demand.astype(dtype), work._replace(touched=work.touched[:touched])


@pytest.mark.parametrize("largest", LARGEST)
def test_flow_and_cut_are_networkxs(largest):
    """A sink lacks exactly what a maximum flow of networkx lacks, and the set that is given lacks exactly that."""
    rng = seeded_random(largest)
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
    rng = seeded_random(3)
    for _ in range(20):
        graph = random_digraph(rng, 10**5, 40)
        matrix = csr_array(
            (graph.capacity.astype(np.int32), (graph.tail.astype(np.int32), graph.head.astype(np.int32))),
            shape=(40, 40),
        )
        arcs, cap, supply, work = state(graph, np.zeros(40, dtype=np.int64), NUMBERS)
        wanted = np.int64(graph.total + 1)
        start = maxflow.FlowState(cap, supply, flags(40, [0]))
        flow, *_ = maxflow.flow_into(39, wanted, arcs, start, work)
        assert flow == maximum_flow(matrix, 0, 39).flow_value


@pytest.mark.parametrize("touched", [None, 0, 1, 3])
def test_compiled_and_interpreted_are_the_same(touched):
    """Both runs of one source leave the same numbers, also where there are too many arcs to remember, and all is put
    back."""
    rng = seeded_random(4)
    overflowed = False
    for _ in range(60):
        graph = random_digraph(rng, 1000)
        demand = column(graph.nodes, random_demand(rng, graph.nodes, 300))
        sinks = np.array(rng.sample(range(graph.nodes), graph.nodes))
        wanted = int(demand.sum())
        left = []
        for dtype in (NUMBERS, OBJECTS):
            arcs, cap, supply, work = state(graph, demand, dtype, touched)
            side = flags(graph.nodes, [])
            capacity, need, grown = cap.copy(), supply.copy(), flags(graph.nodes, [])
            number = wanted if dtype == OBJECTS else np.int64(wanted)
            # The first sink alone tells how many arcs were touched.
            alone = cap.copy(), supply.copy()
            flow, size, count = kernel_for(maxflow.flow_into, dtype)(
                int(sinks[0]), number, arcs, maxflow.FlowState(*alone, grown), work
            )
            overflowed |= count < 0
            work.level[:] = -1
            position, lacking = kernel_for(maxflow.rooted_pass, dtype)(
                0, sinks, number, arcs, maxflow.FlowState(cap, supply, grown), capacity, need, work, side
            )
            assert (cap == capacity).all()
            assert (supply == need).all()
            assert (work.level == -1).all()
            numbers = [[int(x) for x in each] for each in (*alone, cap)]
            left.append((int(flow), size, count, position, int(lacking), side.tolist(), *numbers))
        assert left[0] == left[1]
    assert overflowed == (touched is not None)


def test_rooted_is_theorem_5():
    """All sinks can receive all demand where networkx says so, in any order of the sinks, and the first that cannot is
    told."""
    rng = seeded_random(5)
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
    """The same sink is told again until it is served; then the next; a restart begins anew; what is asked last
    counts."""
    rng = seeded_random(6)
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
    graph = random_digraph(seeded_random(7), 20, 6)
    demand = column(6, dict.fromkeys(range(6), 40))
    flow = RootedFlow(graph, demand, np.arange(6))
    flow.restart(4)
    found = flow.violation()
    assert found is not None
    assert found.sink >= 4
    flow.restart(6)
    assert flow.violation() is None


def test_near_order():
    """Every chosen node comes once, each breadth first from the first one; unconnected nodes come last."""
    rng = seeded_random(8)
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


def flow_problem(network, weights):
    nodes = len(network.nodes)
    graph = digraph(network.capacity, nodes)
    return graph, column(nodes, weights), near_order(graph, flags(nodes, network.compute))


@pytest.mark.slow
def test_worst_cut_is_brute_forces():
    """Newton's method finds the maximum over all cuts, with equal and with random weights, and a set that has this
    ratio."""
    rng = seeded_random(1)
    for network in seeded_networks(draws(120), seed=11):
        if len(network.nodes) > 11:
            continue
        weights = uniform(network) if rng.random() < 0.5 else {v: rng.randint(0, 4) for v in network.compute}
        if sum(weights.values()) == 0:
            continue
        found = worst_cut(*flow_problem(network, weights))
        assert found.ratio == optimum_by_cuts(network, weights) == optimum(network, weights)
        outside = sum(w for v, w in weights.items() if not found.side[v])
        assert Fraction(outside, flow_problem(network, weights)[0].into(found.side)) == found.ratio
        assert any(found.side[v] for v in network.compute)


@pytest.mark.parametrize("factor", [2**31 - 1, 2**45 + 1, 2**62 - 57, 10**25 + 13])
def test_any_size_of_capacities_is_exact(factor):
    """Capacities times a large number, plus one, make the ratio that fractions make."""
    for network in seeded_networks(12, seed=12):
        large = type(network)(
            network.compute, network.switches, {link: c * factor + 1 for link, c in network.capacity.items()}
        )
        if len(network.nodes) <= 9:
            assert worst_cut(*flow_problem(large, uniform(large))).ratio == optimum_by_cuts(large)


def test_a_set_that_nothing_enters_is_told():
    """If a node cannot be reached, the reported set has a sink and no incoming edge; otherwise none is reported."""
    rng = seeded_random(2)
    told = 0
    for _ in range(100):
        graph = random_digraph(rng, 5, rng.randint(2, 6))
        demand = column(graph.nodes, dict.fromkeys(range(graph.nodes), 1))
        reached = is_rooted(graph.with_capacity([c * 10**6 for c in graph.capacity.tolist()]), demand)
        if reached:
            assert worst_cut(graph, demand, near_order(graph)).side is not None
            continue
        told += 1
        with pytest.raises(Unreachable) as caught:
            worst_cut(graph, demand, near_order(graph))
        assert caught.value.side.any()
        assert not caught.value.side.all()
        assert graph.into(caught.value.side) == 0
    assert 20 < told < 90


def test_no_demand_has_no_cut():
    """Without demand, or if the only root is the only sink, the ratio is 0."""
    graph = digraph({(0, 1): 3, (1, 0): 3}, 2)
    assert worst_cut(graph, np.zeros(2, dtype=np.int64), np.arange(2)).side is None
    assert worst_cut(graph, np.array([7, 0]), np.array([0])).ratio == 0


def test_smallest_step_is_brute_forces():
    """With floors, the smallest scale at which trees exist is the maximum over all cuts of the scale that each
    needs."""
    rng = seeded_random(3)
    for network in seeded_networks(60, seed=13):
        if len(network.nodes) > 10:
            continue
        demand = uniform(network, rng.randint(1, 4))
        nodes = len(network.nodes)
        graph, numbers, sinks = flow_problem(network, demand)

        def at(scale, network=network, nodes=nodes):
            return digraph(floor_capacities(network, scale).capacity, nodes)

        def needed_step(side, network=network, demand=demand):
            rates = [c for (u, v), c in network.capacity.items() if side[v] and not side[u]]
            missing = sum(d for v, d in demand.items() if not side[v])
            steps = sorted({Fraction(i, c) for c in rates for i in range(1, missing + 1)})
            return next(s for s in steps if sum(s.numerator * c // s.denominator for c in rates) >= missing)

        start = worst_cut(graph, numbers, sinks).ratio
        found, side = smallest_step(at, needed_step, numbers, sinks, start)
        assert found == fixed_k_by_cuts(network, demand)
        assert (side is None) == (found == start)


def test_a_sink_may_fail_several_times():
    """On a chain to the only sink, each link further away is slower: every cut is served in turn, the last one
    decides."""
    length = 6
    chain = {(v, v + 1): v + 2 for v in range(length)}
    demand, sinks = column(length + 1, {0: 1}), np.array([length])

    def at(scale):
        return digraph({link: int(scale * c) for link, c in chain.items()}, length + 1)

    def needed_step(side):
        return Fraction(1, next(c for (u, v), c in chain.items() if side[v] and not side[u]))

    found, side = smallest_step(at, needed_step, demand, sinks, Fraction(1, 100))
    assert (found, side.tolist()) == (Fraction(1, 2), [False] + [True] * length)
    worst = worst_cut(digraph(chain, length + 1), demand, sinks)
    assert (worst.ratio, worst.side.tolist()) == (Fraction(1, 2), [False] + [True] * length)
