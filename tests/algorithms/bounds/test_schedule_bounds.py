"""Lower bounds: against the conditions that they sum up, against known values, and against simulated schedules."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import hypothesis.strategies as st
import networkx as nx
import numpy as np
import pytest
from cwb.algorithms.bounds import schedule_bounds as bounds
from cwb.core.bounds import CutCertificate, DistanceCertificate, LengthCertificate, PartitionCertificate
from cwb.core.collective import Collective, Demand, collectives, conditions
from cwb.core.errors import InputError
from cwb.core.fabric import parse_fabric
from cwb.core.instance import Instance
from cwb.core.schedule import Chunks, StepSchedule, sends_from_lists
from cwb.core.topology import Link, Node, NodeKind, Topology
from cwb.core.trace import SimulationMode
from cwb.instances import load
from cwb.schedules.network_bounds import recomputed_partition_bound
from cwb.schedules.simulate import simulate
from cwb.schedules.verify import verify
from draws import draws
from hypothesis import given, settings

pytestmark = pytest.mark.slow  # random schedules are simulated

KINDS = list(collectives())
GB = Fraction(10**9)


def on(network, kind, size=12 * GB, ranks=None):
    return load(network).with_changes(demand=Demand(kind, Fraction(size), ranks=ranks))


@st.composite
def instances(draw, kinds=KINDS, groups=True):
    """Strongly connected networks of up to six ranks and two switches, parallel links among them, with a collective
    over some ranks."""
    ranks, switches = draw(st.integers(2, 6)), draw(st.integers(0, 2))
    n = ranks + switches
    kind = draw(st.sampled_from(kinds))
    order = draw(st.permutations(range(n)))
    links = list(pairwise([*order, order[0]]))
    pairs = st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)).filter(lambda p: p[0] != p[1])
    links += draw(st.lists(pairs, max_size=8))
    wires = [
        Link(str(a), str(b), Fraction(2 ** draw(st.integers(0, 3))), Fraction(draw(st.integers(0, 3)), 4))
        for a, b in links
    ]
    kinds_of = [NodeKind.COMPUTE] * ranks + [NodeKind.SWITCH] * switches
    # Switches in front: positions of ranks and of nodes differ.
    nodes = [Node(str(i), k) for i, k in enumerate(kinds_of)][::-1]
    size = 2 if kind is Collective.POINT_TO_POINT else draw(st.integers(2, ranks))
    group = tuple(draw(st.permutations(range(ranks)))[:size])
    if not groups and kind is not Collective.POINT_TO_POINT:
        group = None
    return Instance(
        "random",
        Topology(tuple(nodes), tuple(wires)),
        Demand(kind, Fraction(draw(st.integers(1, 4)) * 60), ranks=group),
    )


@settings(max_examples=draws(300), deadline=None)
@given(st.data())
def test_a_cut_is_what_the_conditions_say(data):
    """The closed form of every collective is the sum over its conditions: data that only the set has, or sums that need
    it."""
    instance = data.draw(instances())
    topology = instance.network
    inside = set(data.draw(st.lists(st.integers(0, len(topology.nodes) - 1), unique=True)))
    ranks = {rank for rank, node in enumerate(topology.rank_nodes) if node in inside}
    leaving = Fraction(0)
    for (held, needed, reduced), size in conditions(instance.demand, instance.npus).bytes_of.items():
        stems = ranks & set(held) if reduced else set(held) <= ranks
        if stems and not set(needed) <= ranks:
            leaving += size
    rate = sum(
        link.bandwidth_Bps
        for link, (a, b) in zip(topology.links, topology.link_ends, strict=True)
        if a in inside and b not in inside
    )
    seconds, certificate = bounds.cut_bound(instance, inside)
    assert certificate == CutCertificate(tuple(sorted(inside)))
    assert seconds == (leaving / rate if leaving else 0)


@settings(max_examples=draws(200), deadline=None)
@given(st.data())
def test_the_best_rank_is_the_best_of_all_cuts_of_one_rank(data):
    """The closed form finds the largest bound among the cuts around single ranks, and names a cut that gives it."""
    instance = data.draw(instances())
    everything = set(range(len(instance.network.nodes)))
    nodes = [instance.network.rank_nodes[r] for r in instance.demand.ranks]
    cuts = [bounds.cut_bound(instance, cut)[0] for v in nodes for cut in ({v}, everything - {v})]
    seconds, certificate = bounds.rank_bound(instance)
    assert seconds == max(cuts)
    assert bounds.cut_bound(instance, certificate.nodes)[0] == seconds


@settings(max_examples=draws(200), deadline=None)
@given(st.data())
def test_the_latency_bound_is_the_weighted_diameter_of_the_demand(data):
    """The largest distance between two ranks of which one needs the other's data, as networkx finds it; links may have
    no latency."""
    instance = data.draw(instances())
    graph = nx.MultiDiGraph()
    for link in instance.network.links:
        graph.add_edge(link.source, link.target, latency=link.latency_s)
    names = instance.network.ranks

    def far(s, t):
        return nx.shortest_path_length(graph, names[s], names[t], weight="latency")

    needed = {
        (s, t)
        for held, wanted, reduced in conditions(instance.demand, instance.npus).bytes_of
        for s in (held if reduced else held[:1])
        for t in wanted
    }
    seconds, certificate = bounds.latency_bound(instance)
    assert seconds == max(far(s, t) for s, t in needed)
    assert seconds == 0 or (certificate.source, certificate.target) in needed
    assert far(certificate.source, certificate.target) == seconds


def all_paths_tree(data, instance, root, reverse):
    """A random spanning tree over the links: for every node but the root, the link from (or to) its parent, nearest to
    the root first."""
    ends = instance.network.link_ends
    found, tree = {root}, []
    while True:
        onward = [
            i for i, (a, b) in enumerate(ends) if (b if reverse else a) in found and (a if reverse else b) not in found
        ]
        if not onward:
            return tree
        link = data.draw(st.sampled_from(onward))
        found.add(ends[link][0 if reverse else 1])
        tree.append(link)


def random_schedule(data, instance):
    """A correct schedule: every chunk goes along a random tree, and to its root before that if it is a sum."""
    ends, nodes = instance.network.link_ends, instance.network.rank_nodes
    rows, units, groups, held_by, needed_by, sums = [], [], [], [], [], []
    for chunk, ((held, needed, reduced), size) in enumerate(
        conditions(instance.demand, instance.npus).bytes_of.items()
    ):
        units.append(int(size))
        groups += [held, needed]
        held_by.append(2 * chunk)
        needed_by.append(2 * chunk + 1)
        sums.append(reduced)
        root = nodes[needed[0] if reduced else held[0]]
        start = data.draw(st.integers(0, 2))
        if reduced:
            inward = all_paths_tree(data, instance, root, reverse=True)
            rows += [(start + i, chunk, link, True) for i, link in enumerate(reversed(inward))]
            start += len(inward)
        if needed != (needed[0],) or not reduced:
            outward = all_paths_tree(data, instance, root, reverse=False)
            rows += [(start + i, chunk, link, False) for i, link in enumerate(outward)]
    links = [link for _, _, link, _ in rows]
    sends = sends_from_lists(
        [c for _, c, *_ in rows],
        [ends[i][0] for i in links],
        [ends[i][1] for i in links],
        [r for *_, r in rows],
        [[i] for i in links],
    )
    columns = (np.array(units), Fraction(1), tuple(groups), np.array(held_by), np.array(needed_by), np.array(sums))
    return StepSchedule(instance.sha256, Chunks(*columns), sends, np.array([step for step, *_ in rows]))


@pytest.mark.parametrize(
    "mode", [SimulationMode.CONGESTION_AWARE, SimulationMode.CUT_THROUGH, SimulationMode.FAIR_SHARE]
)
@pytest.mark.parametrize("barrier", [False, True])
def test_no_simulated_schedule_beats_a_bound(mode, barrier):
    """Random correct schedules of every collective take at least as long as the latency, any cut, any partition and
    unit lengths say."""

    @settings(max_examples=draws(150), deadline=None)
    @given(st.data())
    def check(data):
        instance = data.draw(instances(groups=False))
        time = simulate(instance, random_schedule(data, instance), mode, barrier=barrier).completion_s * (1 + 1e-12)
        nodes = range(len(instance.network.nodes))
        assert time >= bounds.best_bound(instance)[0]
        assert time >= bounds.cut_bound(instance, data.draw(st.lists(st.sampled_from(nodes), unique=True)))[0]
        if instance.demand.collective is Collective.ALL_REDUCE:
            labels = data.draw(st.lists(st.integers(0, 2), min_size=len(nodes), max_size=len(nodes)))
            parts = [[v for v in nodes if labels[v] == label] for label in range(3)]
            assert time >= bounds.partition_bound(instance, parts)[0]

    check()


def test_congestion_can_only_be_overlooked_below_a_bandwidth_bound():
    """The congestion-unaware model respects latency, and may be below a cut, which is why bounds are not claimed of
    it."""
    instance = on("star(4,bandwidth='1 B/s',latency='1 s')", Collective.SCATTER, 4)
    ends = {e: i for i, e in enumerate(instance.network.link_ends)}
    nodes = instance.network.rank_nodes
    (hub,) = set(range(5)) - set(nodes)
    paths = [(ends[nodes[0], hub], ends[hub, nodes[t]]) for t in (1, 2, 3)]
    sends = sends_from_lists([0, 1, 2], [nodes[0]] * 3, [nodes[t] for t in (1, 2, 3)], False, paths)
    ones = np.ones(3, dtype=np.int64)
    chunks = Chunks(ones, Fraction(1), ((0,), (1,), (2,), (3,)), 0 * ones, np.arange(1, 4), ones < 0)
    trace = simulate(instance, StepSchedule(instance.sha256, chunks, sends, 0 * ones), SimulationMode.ALPHA_BETA)
    assert trace.completion_s >= bounds.latency_bound(instance)[0]
    assert trace.completion_s == bounds.rank_bound(instance)[0] == 3


@pytest.mark.parametrize(
    ("network", "kind", "seconds", "certificate"),
    [
        ("ring(4,bandwidth='1 GB/s',latency='0 s')", Collective.ALL_GATHER, Fraction(9, 2), CutCertificate),
        ("ring(4,bandwidth='1 GB/s',latency='0 s')", Collective.ALL_REDUCE, Fraction(9), PartitionCertificate),
        ("ring(4,bandwidth='1 GB/s',latency='0 s')", Collective.ALL_TO_ALL, Fraction(6), LengthCertificate),
        ("star(4,bandwidth='1 GB/s',latency='0 s')", Collective.ALL_REDUCE, Fraction(18), PartitionCertificate),
        ("mesh(3,3,bandwidth='1 GB/s',latency='0 s')", Collective.BROADCAST, Fraction(6), CutCertificate),
        ("line(5,bandwidth='1 GB/s',latency='1 h')", Collective.REDUCE, Fraction(4 * 3600), DistanceCertificate),
    ],
)
def test_known_bounds(network, kind, seconds, certificate):
    """Values that can be checked by hand, each with the kind of proof that gives it; an all-reduce counts 2 (n - 1) /
    n."""
    found, proof = bounds.best_bound(on(network, kind))
    assert found == seconds
    assert isinstance(proof, certificate)


def test_the_ideal_is_not_a_bound():
    """On a line of three, adding up in the middle and telling both ends beats the ideal: the ends' small bandwidth is
    not the middle's."""
    instance = on("line(3,bandwidth='1 B/s',latency='0 s')", Collective.ALL_REDUCE, 3)
    ideal = Fraction(2 * 2, 3) * 3 / 1  # 2 (n - 1) / n of the size over the smallest rate of a rank
    assert ideal == 4
    assert bounds.best_bound(instance)[0] == 3


def test_bad_input_is_refused_with_its_place():
    """No demand, no links, the wrong collective, and parts that overlap or leave ranks out are told in one line."""
    ring = on("ring(4)", Collective.ALL_GATHER)
    with pytest.raises(InputError, match="collective"):
        bounds.best_bound(ring.with_changes(demand=None))
    with pytest.raises(InputError, match="explicit network"):
        bounds.best_bound(ring.with_changes(network=parse_fabric("RI(4)")))
    with pytest.raises(InputError, match="all_reduce"):
        bounds.partition_bound(ring, [[0], [1], [2], [3]])
    with pytest.raises(InputError, match="all_to_all"):
        bounds.length_bound(ring, [1] * 8)
    reduction = ring.with_changes(demand=replace(ring.demand, collective=Collective.ALL_REDUCE))
    for parts in ([[0], [1], [2]], [[0, 1], [1, 2, 3]]):
        with pytest.raises(InputError, match="disjoint"):
            bounds.partition_bound(reduction, parts)
    exchange = ring.with_changes(demand=replace(ring.demand, collective=Collective.ALL_TO_ALL))
    for lengths in ([1], [0] * 8, [-1] * 8):
        with pytest.raises(InputError, match="length for every link"):
            bounds.length_bound(exchange, lengths)
    apart = replace(ring.network, links=ring.network.links[:1])
    for bound in (bounds.latency_bound, bounds.rank_bound):
        with pytest.raises(InputError, match=r"network\.links"):
            bound(ring.with_changes(network=apart))


def test_a_switch_that_can_add_and_copy_halves_what_must_enter():
    """A switch that cannot store or cannot copy leaves 2 (n - 1) / n; with one that does both a right schedule is
    faster."""
    star = on("star(4,bandwidth='1 GB/s',latency='0 s')", Collective.ALL_REDUCE)
    parts = [(node,) for node in star.network.rank_nodes]
    nodes = tuple(replace(n, buffer_bytes=Fraction(0)) if n.kind is NodeKind.SWITCH else n for n in star.network.nodes)
    passing = star.with_changes(network=replace(star.network, nodes=nodes))
    nodes = tuple(replace(n, multicast=n.kind is NodeKind.SWITCH) for n in star.network.nodes)
    adding = star.with_changes(network=replace(star.network, nodes=nodes))
    for instance, seconds in ((star, 18), (passing, 18), (adding, 12)):
        found, proof = bounds.partition_bound(instance, parts)
        assert found == seconds
        assert recomputed_partition_bound(instance, proof) == seconds

    ends = {e: i for i, e in enumerate(adding.network.link_ends)}
    ranks = adding.network.rank_nodes
    (hub,) = set(range(5)) - set(ranks)
    count = 64
    up = [(c, rank, hub, True, (ends[rank, hub],)) for c in range(count) for rank in ranks]
    down = [(c, hub, rank, False, (ends[hub, rank],)) for c in range(count) for rank in ranks]
    chunk, source, target, reduce, paths = zip(*up, *down, strict=True)
    everyone = np.zeros(count, dtype=np.int64)
    chunks = Chunks(everyone + 1, Fraction(12 * 10**9, count), (tuple(range(4)),), everyone, everyone, everyone == 0)
    step = np.repeat([0, 1], count * 4)
    schedule = StepSchedule(adding.sha256, chunks, sends_from_lists(chunk, source, target, reduce, paths), step)
    assert not verify(adding, schedule).violations
    time = simulate(adding, schedule).completion_s
    assert float(bounds.best_bound(adding)[0]) <= time < 18
