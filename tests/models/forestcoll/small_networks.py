"""Small networks, and the truth about them by trying every set of nodes and every partition."""

from __future__ import annotations

from fractions import Fraction
from itertools import chain, combinations, permutations

import numpy as np
from cwb.algorithms.graphs.maxflow import RootedFlow
from cwb.algorithms.graphs.network import Network, exact_array
from cwb.core.collective import Collective, Demand
from cwb.core.instance import Instance
from cwb.core.topology import Link, Node, NodeKind, Topology
from cwb.models.forestcoll.problem import from_all_ranks
from hypothesis import strategies as st


def network(ranks, switches, links):
    """A topology of numbered ranks, then switches without buffers, from (tail, head, bandwidth)."""
    names = [*(f"r{i}" for i in range(ranks)), *(f"s{i}" for i in range(switches))]
    nodes = [Node(n) if n[0] == "r" else Node(n, NodeKind.SWITCH, buffer_bytes=Fraction(0)) for n in names]
    return Topology(tuple(nodes), tuple(Link(names[a], names[b], Fraction(c)) for a, b, c in links))


def make_instance(topology, kind=Collective.ALL_REDUCE, size=12):
    """An instance with one collective among all ranks."""
    return Instance("small", topology, Demand(kind, Fraction(size)))


@st.composite
def graphs(draw, *, two_way=None, switches=None, ranks=(2, 6), balanced=True):
    """Strongly connected networks of two-way links or of cycles; unless further links are added, every node receives as
    much as it sends."""
    count = draw(st.integers(*ranks))
    added = draw(st.integers(0, 2)) if switches is None else switches
    nodes = count + min(added, 6 - count)
    bandwidth = st.sampled_from([Fraction(n, 2) for n in (1, 2, 3, 4, 5, 7, 10, 24)])
    order = draw(st.permutations(range(nodes)))
    box = [
        draw(st.integers(0, 1)) for _ in range(nodes)
    ]  # links within a box are faster, so that boxes are bottlenecks
    links = []
    if draw(st.booleans()) if two_way is None else two_way:
        pairs = {tuple(sorted((order[i], order[draw(st.integers(0, i - 1))]))) for i in range(1, nodes)}
        pairs |= draw(st.sets(st.sampled_from(list(combinations(range(nodes), 2)))))
        for a, b in sorted(pairs):
            links += [(a, b, c := draw(bandwidth) * (8 if box[a] == box[b] else 1)), (b, a, c)]
    else:
        inside = [[v for v in order if box[v] == side] for side in (0, 1)]
        halves = st.permutations(range(nodes)).map(lambda p: p[: max(2, len(p) // 2)])
        cycles = [order, *(c for c in inside if len(c) > 1), *draw(st.lists(halves, max_size=2))]
        for cycle in cycles:
            c = draw(bandwidth) * (8 if len({box[v] for v in cycle}) == 1 else 1)
            links += [(a, b, c) for a, b in zip(cycle, [*cycle[1:], cycle[0]], strict=True)]
    if not balanced:
        ends = st.sampled_from(list(permutations(range(nodes), 2)))
        links += [(a, b, draw(bandwidth)) for a, b in draw(st.lists(ends, max_size=4))]
    return network(count, nodes - count, links)


def feasible(nodes, arcs, supply):
    """Check if every node can receive all supplies over arcs (tail, head, capacity), each separately (theorem 1)."""
    tail, head, capacity = zip(*arcs, strict=True)
    graph = Network.from_parallel_edges(nodes, np.array(tail), np.array(head), exact_array(capacity))
    return RootedFlow(graph, exact_array(supply), np.arange(nodes)).violation() is None


def subsets(items):
    """All subsets that are not empty."""
    items = list(items)
    return chain.from_iterable(combinations(items, n) for n in range(1, len(items) + 1))


def cuts(net):
    """For every set of nodes with some but not all ranks: how many ranks, and the capacities out of it."""
    ranks = set(net.rank_nodes)
    for chosen in map(set, subsets(range(net.nodes))):
        if chosen & ranks and not ranks <= chosen:
            ends = zip(net.tail, net.head, net.bandwidths, strict=True)
            yield len(chosen & ranks), [c for a, b, c in ends if a in chosen and b not in chosen]


def slowest_cut(topology):
    """1/x* by its definition, in the unit of the scaled network."""
    return max(Fraction(count, sum(leaving)) for count, leaving in cuts(from_all_ranks(topology)))


def smallest_scale(topology, k):
    """U* by its definition: the smallest j / b_e at which every cut has room for k trees of each of its ranks."""
    net = from_all_ranks(topology)
    all_cuts = list(cuts(net))
    most = max(-(-k * count // sum(leaving)) for count, leaving in all_cuts) + k * net.nodes
    tried = sorted({Fraction(j, c) for c in set(net.bandwidths) for j in range(1, most * c + 1)})
    return next(U for U in tried if all(sum(U * c // 1 for c in leaving) >= k * count for count, leaving in all_cuts))


def partitions(items):
    """All partitions of a list."""
    if not items:
        yield []
        return
    first, *rest = items
    for smaller in partitions(rest):
        yield [[first], *smaller]
        for i in range(len(smaller)):
            yield [*smaller[:i], [first, *smaller[i]], *smaller[i + 1 :]]


def strength(topology):
    """Bandwidth between the parts over their number less one, of both directions of a link together, at least over all
    partitions."""
    net = from_all_ranks(topology)
    best = None
    for parts in partitions(list(range(net.nodes))):
        if len(parts) > 1:
            of = {v: i for i, part in enumerate(parts) for v in part}
            ends = zip(net.tail, net.head, net.bandwidths, strict=True)
            between = sum(c for a, b, c in ends if of[a] != of[b])
            value = Fraction(between, 2 * (len(parts) - 1))
            best = value if best is None else min(best, value)
    return best * net.unit_Bps
