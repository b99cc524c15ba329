"""Expansions: the expanded schedule is right, and takes what its theorem says, exactly."""

from dataclasses import replace
from fractions import Fraction
from math import prod

import networkx as nx
import numpy as np
import pytest
from cwb.core.budget import Budget
from cwb.core.errors import InputError, Unsupported
from cwb.harness.registry import get
from cwb.studies.topology_finder import gather as columns
from cwb.studies.topology_finder.build import breadth_first
from cwb.studies.topology_finder.gather import (
    Gather,
    both_directions,
    cartesian_power,
    degree_expansion,
    line_graph,
    parallel_links,
    schedule_of,
)
from hypothesis import given, settings
from hypothesis import strategies as st

#: Networks without loops, and their degree.
BASES = [
    ("complete_bipartite(4, 4)", 4),
    ("complete(4)", 3),
    ("ring(5)", 2),
    ("ring(4, false)", 1),
    ("kautz(2, 2)", 2),
    ("generalized_kautz(3, 8)", 3),
    ("circulant(15, [1, 4, 5])", 6),
    ("diamond()", 2),
]


def from_schedule(schedule, topology):
    """Read an all-gather of all nodes, whose sends are between neighbours.

    Raises
    ------
    InputError
        If it is something else, or shards differ in size.
    """
    chunks, sends, nodes = schedule.chunks, schedule.sends, len(topology.nodes)
    everybody = tuple(range(nodes))
    if chunks.reduced.any() or any(chunks.groups[g] != everybody for g in set(chunks.needed_by.tolist())):
        raise InputError("expected an all-gather of all nodes", place="schedule.chunks")
    if any(len(chunks.groups[g]) != 1 for g in set(chunks.held_by.tolist())) or (sends.hops != 1).any():
        raise InputError("expected chunks of one node each, and sends between neighbours", place="schedule")
    holder = np.array([group[0] for group in chunks.groups])[chunks.held_by]
    order = np.argsort(holder, kind="stable")
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    owner, size = holder[order], chunks.units[order]
    shard = np.bincount(owner, weights=size, minlength=nodes).astype(np.int64)
    if (shard != shard[0]).any():
        raise InputError("shards differ in size", place="schedule.chunks.units")
    start = np.cumsum(size) - size - owner * shard[0]
    links = np.array(topology.link_ends, dtype=np.int64).reshape(-1, 2)
    degree = max(int(np.bincount(column, minlength=nodes).max()) for column in links.T)
    chunk, step = rank[sends.chunk], schedule.step
    return Gather(nodes, degree, links, int(shard[0]), owner, start, size, chunk, sends.path_links, step)


def _graph(gather):
    return nx.DiGraph(gather.links.tolist())


def test_line_graph_of_the_complete_bipartite_graph(gather, verify_gather):
    """L(K_{4,4}) takes 3 steps and T_B = 1; L^2 takes 4 and 33/32, as in table 7."""
    once = line_graph(gather("complete_bipartite(4, 4)", 4))
    assert verify_gather(once) == (3, 1)
    assert verify_gather(line_graph(once)) == (4, Fraction(33, 32))


@pytest.mark.parametrize(("text", "d"), [base for base in BASES if base[1] > 1])
def test_line_graph(text, d, gather, verify_gather):
    """Theorem 10: a step and 1/N more, on the line graph as networkx makes it."""
    base = gather(text, d)
    made = line_graph(base)
    assert verify_gather(made) == (base.steps + 1, base.bandwidth + Fraction(1, base.nodes))
    assert made.degree == d
    assert nx.is_isomorphic(_graph(made), nx.line_graph(_graph(base)))


@pytest.mark.parametrize("n", [2, 3])
@pytest.mark.parametrize(("text", "d"), BASES)
def test_degree_expansion(text, d, n, gather, verify_gather):
    """Theorem 11: a step and (n - 1)/(n N) more; copies of two nodes are linked if the nodes are."""
    base = gather(text, d)
    made = degree_expansion(base, n)
    assert verify_gather(made) == (base.steps + 1, base.bandwidth + Fraction(n - 1, n * base.nodes))
    assert made.degree == n * d
    ends = {(u * n + i, v * n + j) for u, v in base.links.tolist() for i in range(n) for j in range(n)}
    assert sorted(map(tuple, made.links.tolist())) == sorted(ends)


@pytest.mark.parametrize(
    ("text", "d", "n"),
    [("ring(4, false)", 1, 3), ("generalized_kautz(2, 7)", 2, 2), ("complete(3)", 2, 3), ("diamond()", 2, 2)],
)
def test_cartesian_power(text, d, n, gather, verify_gather):
    """Theorem 12: n times the steps, T_B grows by N/(N - 1) (N^n - 1)/N^n; the network is the Cartesian product."""
    base = gather(text, d)
    made = cartesian_power(base, n)
    whole = base.nodes**n
    factor = Fraction(base.nodes, base.nodes - 1) * Fraction(whole - 1, whole)
    assert verify_gather(made) == (n * base.steps, base.bandwidth * factor)
    product = _graph(base)
    for _ in range(n - 1):
        product = nx.cartesian_product(product, _graph(base))
    # Nodes of a product are nested pairs, the first coordinate innermost.
    names = {}
    for node in product:
        flat, rest = [], node
        while isinstance(rest, tuple):
            rest, last = rest
            flat.append(last)
        names[node] = sum(x * base.nodes**k for k, x in enumerate([rest, *reversed(flat)]))
    assert set(nx.relabel_nodes(product, names).edges) == set(map(tuple, made.links.tolist()))


@pytest.mark.parametrize("sizes", [(3, 3, 2), (3, 3, 3, 2), (5, 7), (4, 6), (3, 4, 5)])
def test_products_of_unequal_rings(sizes, gather, verify_gather):
    """Theorem 13: a torus takes the sum of the rings' floor(n / 2) steps and is optimal in bandwidth, whatever its
    sizes."""
    degree = sum(2 if size > 2 else 1 for size in sizes)
    nodes = prod(sizes)
    made = gather(f"torus({', '.join(map(str, sizes))})", degree)
    assert verify_gather(made) == (sum(size // 2 for size in sizes), Fraction(nodes - 1, nodes))


@pytest.mark.parametrize(("text", "d"), BASES)
def test_both_directions(text, d, gather, verify_gather):
    """Appendix A.6: a network and its transpose take together, step by step, the larger load of the two."""
    onward = gather(text, d)
    back = breadth_first(onward.nodes, d, np.ascontiguousarray(onward.links[:, ::-1]))
    made = both_directions(onward, back)
    assert made.degree == 2 * d
    steps, bandwidth = verify_gather(made)
    assert steps == max(onward.steps, back.steps)
    loads = [max(a, b) for a, b in zip(onward.loads, back.loads, strict=True)]
    assert bandwidth == Fraction(d, onward.nodes) * sum(loads)


@pytest.mark.parametrize(("text", "d"), BASES[:4])
def test_parallel_links(text, d, gather, verify_gather):
    """With k links for every one, and k parts of every chunk, nothing changes in units of a node's bandwidth."""
    base = gather(text, d)
    for k in (2, 3):
        assert verify_gather(parallel_links(base, k)) == (base.steps, base.bandwidth)


@given(
    st.sampled_from([("ring(3, false)", 1), ("ring(3)", 2), ("kautz(2, 1)", 2), ("generalized_kautz(2, 9)", 2)]),
    st.lists(st.sampled_from(["line", "degree", "power", "parallel"]), max_size=2),
)
@settings(max_examples=40)
def test_expansions_of_expansions(gather, verify_gather, base, names):
    """Expansions in any order give right schedules that take no more than the formulas say."""
    made = gather(*base)
    steps, bandwidth = made.steps, made.bandwidth
    for name in names:
        n = made.nodes
        if name == "line" and made.degree > 1:
            steps, bandwidth, made = steps + 1, bandwidth + Fraction(1, n), line_graph(made)
        elif name == "degree":
            steps, bandwidth, made = steps + 1, bandwidth + Fraction(1, 2 * n), degree_expansion(made, 2)
        elif name == "power" and n < 30:
            steps, bandwidth = 2 * steps, bandwidth * Fraction(n * (n * n - 1), (n - 1) * n * n)
            made = cartesian_power(made, 2)
        elif name == "parallel":
            made = parallel_links(made, 2)
    found = verify_gather(made)
    assert found[0] == steps
    assert found[1] <= bandwidth


def test_schedules_are_read_back(gather, instance):
    """An all-gather written as a schedule and read again is the same one, so that any all-gather can be expanded."""
    once = line_graph(gather("complete_bipartite(3, 3)", 3))
    problem = instance(once.links, once.nodes)
    again = from_schedule(schedule_of(once, problem), problem.network)
    for name in ("links", "owner", "start", "size", "chunk", "link", "step"):
        assert np.array_equal(getattr(again, name), getattr(once, name))
    assert (again.degree, again.pieces) == (once.degree, once.pieces)


def test_a_schedule_of_another_method_is_expanded(make, instance, verify_gather):
    """The textbook ring's all-gather is expanded in degree."""
    topology = make("ring(5, false)")
    problem = instance(topology.link_ends, 5)
    method = get("ring")
    answer = method.run(problem, None, Budget(), method.options()).answer
    base = from_schedule(answer, problem.network)
    assert verify_gather(degree_expansion(base, 2)) == (5, Fraction(9, 10))


@pytest.mark.parametrize("expand", [line_graph, lambda base: degree_expansion(base, 2)])
def test_irregular_networks_are_refused(expand, gather):
    """A generalized Kautz graph with loops left out has idle ports, and its line graph is not what the theorem
    means."""
    with pytest.raises(
        InputError, match=r"node 1 has 1 links (to|from) it, not 2; expected a regular network without loops"
    ):
        expand(gather("generalized_kautz(2, 4)", 2))


def test_bad_counts(gather):
    """One copy, dimension or link is no expansion."""
    base = gather("ring(4)", 2)
    for expand in (degree_expansion, cartesian_power, parallel_links):
        with pytest.raises(InputError, match="n: 1 is too few; expected at least 2"):
            expand(base, 1)
    with pytest.raises(InputError, match="expected a network and its transpose"):
        both_directions(base, gather("ring(5)", 2))


def test_too_large_is_refused(gather, monkeypatch):
    """A schedule that would take too much memory is refused before it is made."""
    base = gather("ring(4)", 2)
    monkeypatch.setattr(columns, "MAX_SENDS", 10)
    for expand in (line_graph, lambda one: degree_expansion(one, 2), lambda one: cartesian_power(one, 2)):
        with pytest.raises(Unsupported, match="expected at most 10"):
            expand(base)


def test_only_all_gathers_of_neighbours_are_read(gather, instance):
    """Shards of different size, or chunks that only some need, are told."""
    base = gather("ring(4)", 2)
    problem = instance(base.links, 4)
    schedule = schedule_of(base, problem)
    lopsided = replace(schedule.chunks, units=schedule.chunks.units + (np.arange(len(schedule.chunks)) == 0))
    with pytest.raises(InputError, match="shards differ in size"):
        from_schedule(replace(schedule, chunks=lopsided), problem.network)
    some = replace(schedule.chunks, groups=(*schedule.chunks.groups[:-1], (0, 1)))
    with pytest.raises(InputError, match="expected an all-gather of all nodes"):
        from_schedule(replace(schedule, chunks=some), problem.network)
