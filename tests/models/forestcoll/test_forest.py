"""The forest on the real links: what each of them carries, and what is refused."""

from __future__ import annotations

from fractions import Fraction

import oracle
import pytest
from cwb.core.budget import Budget
from cwb.core.errors import Unsupported
from cwb.core.pipelining import ENOUGH, PIECES
from cwb.core.topology import Link, Node, NodeKind, Topology
from cwb.models.forestcoll.bounds import fixed_k, optimum, smallest_k
from cwb.models.forestcoll.method import ForestOptions
from cwb.models.forestcoll.problem import pose as posed_ways
from cwb.models.forestcoll.solve import latency_of, solve_forest
from cwb.schedules.verify import heaviest_load, verify
from draws import draws
from networks import FAMILIES, random_cuts, random_network, random_unit, seeded_random
from oracle import to_topology
from posing import SIZE, loads, pose, star


def solve(topology, k="optimal", ranks=None, **options):
    """The posed instance, the problem, its optimum and its forest."""
    instance = pose(topology, ranks=ranks)
    _, problem = posed_ways(instance)
    best = optimum(problem)
    number = {"optimal": best.k, "smallest": smallest_k(problem, best)}.get(k, k)
    chosen = ForestOptions(**{"repack": 0} | options)
    solved = solve_forest(problem, best, number, instance.sha256, Budget(), chosen)
    return instance, problem, best, solved


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_no_link_carries_more_than_it_may(family):
    """The verifier accepts the trees, the most loaded link needs the stated time exactly, and each carries at most
    floor(U b_e) copies."""
    rng = seeded_random(41)
    refused = 0
    for _ in range(draws(40)):
        network = random_network(rng, family)
        topology = to_topology(network, random_unit(rng), random_cuts(rng, network))
        k = rng.choice(("optimal", "smallest", 1, 2, 3, 4))
        try:
            instance, problem, best, solved = solve(topology, k, patterns=rng.random() < 0.5, repack=rng.choice((0, 1)))
        except Unsupported:
            assert k in (1, 2, 3, 4)
            refused += 1
            continue
        report = verify(instance, solved.packing)
        assert report.ok, report
        assert heaviest_load(instance, solved.packing) == solved.seconds
        part = SIZE / len(network.compute)
        assert solved.seconds == part * solved.copies / solved.k / problem.unit_Bps
        assert solved.packing.unit_bytes == part / solved.k
        for units, rate in zip(loads(solved.packing, len(topology.links)), problem.bandwidths, strict=True):
            assert units <= int(solved.copies * rate)
        if k in ("optimal", "smallest"):
            assert solved.copies == solved.k * best.ratio
        else:
            separate, unit = oracle.from_topology(topology, separate=True)
            assert unit == problem.unit_Bps
            assert solved.copies == oracle.fixed_k(separate, solved.k) == fixed_k(problem, best, solved.k)[0]
    assert refused < draws(40) * 3 // 4


def test_parallel_links_matter():
    """Three parallel links of 3 and one of 2 carry fewer whole trees than one link of their sum: floors are taken link
    by link."""
    whole = Topology((Node("a"), Node("b")), (Link("a", "b", Fraction(11)), Link("b", "a", Fraction(11))))
    parts = [Link(a, b, Fraction(rate)) for a, b in (("a", "b"), ("b", "a")) for rate in (3, 3, 3, 2)]
    cut = Topology(whole.nodes, tuple(parts))
    assert solve(whole, 1)[3].seconds == SIZE / 2 / 11
    assert solve(cut, 1)[3].seconds == SIZE / 2 / 3
    assert solve(cut, "optimal")[3].seconds == solve(whole, 1)[3].seconds


def test_whole_trees_on_one_way_links():
    """If rounding unbalances a switch, it is named with both sums; k = optimal works."""
    switch = Node("s", NodeKind.SWITCH)
    links = [("s", "a", 1), ("a", "c", 6), ("c", "s", 4), ("s", "b", 3), ("b", "a", 5), ("c", "b", 2)]
    topology = Topology((Node("a"), Node("b"), Node("c"), switch), tuple(Link(u, v, Fraction(c)) for u, v, c in links))
    assert solve(topology)[3].copies > 0
    assert solve(topology, "smallest")[3].copies > 0
    refused = {}
    for k in range(1, 6):
        try:
            solve(topology, k)
        except Unsupported as error:
            refused[k] = str(error)
    assert refused
    for k, message in refused.items():
        assert message.startswith(f"with k = {k} whole trees per link, ")
        assert message.endswith("links there are one-way; expected k = optimal")
    assert "2 come into 's' and 1 leave it" in refused[1]


def test_too_many_trees_are_refused():
    """A number of trees that would take all memory is refused first, and one that 64 bits cannot count is."""
    for k in (10**9, 10**30):
        with pytest.raises(Unsupported, match=rf"k = {k:,} trees from 4 roots are too many; expected fewer"):
            solve(star(5, 6, 7, 8), k)
    uneven = star(2**70 - 7, 2**70 - 6, 2**70 - 5, 2**70 - 4)
    with pytest.raises(Unsupported, match="expected a small number, such as k = 8"):
        solve(uneven)
    assert solve(uneven, "smallest")[3].k == 1


def test_latency_is_that_of_walking_along_the_trees():
    """The estimate is the last arrival, tree by tree and link by link, with the fewest pieces that are within a
    hundredth of the best."""
    rng = seeded_random(42)
    for i in range(12):
        network = random_network(rng, FAMILIES[i % 3])
        plain = to_topology(network, Fraction(10**9))
        slow = [Link(x.source, x.target, x.bandwidth_Bps, Fraction(rng.randint(0, 9), 10**6)) for x in plain.links]
        _, problem, _, solved = solve(Topology(plain.nodes, tuple(slow)))
        packing, flow = solved.packing, solved.seconds
        delay = [link.latency_s for link in slow]
        ends = []
        for t, root in enumerate(packing.root.tolist()):
            far, depth = {root: Fraction(0)}, {root: 0}
            for e in range(packing.edge_offset[t], packing.edge_offset[t + 1]):
                path = packing.path_links[packing.path_offset[e] : packing.path_offset[e + 1]].tolist()
                edge = sum(delay[link] for link in path)
                parent, child = int(packing.parent[e]), int(packing.child[e])
                far[child], depth[child] = far[parent] + edge, depth[parent] + len(path)
            ends += [(far[v], depth[v]) for v in far]
        times = [float(max(a + (d - 1 + c) * flow / c for a, d in ends)) for c in PIECES]
        wanted = next(time for time in times if time <= min(times) * (1 + ENOUGH))
        assert latency_of(problem, solved) == pytest.approx(wanted, rel=1e-12)
