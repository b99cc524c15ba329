"""Small networks on grids of epochs, for the tests of the declarative models."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from cwb.core.collective import Collective, Demand, collective_named
from cwb.core.instance import Instance
from cwb.core.timing import Semantics, Timing
from cwb.core.topology import Link, Node, NodeKind, Topology
from hypothesis import strategies as st

GB = Fraction(10**9)


def network(ranks, links, switches=(), *, multicast=True, buffer=Fraction(0)):
    """Ranks are 0, 1, ..., switches come after them; links are (source, target, GB/s, microseconds)."""
    nodes = [Node(f"n{i}") for i in range(ranks)]
    nodes += [Node(f"n{i}", NodeKind.SWITCH, multicast, buffer) for i in switches]
    return Topology(
        tuple(nodes), tuple(Link(f"n{a}", f"n{b}", Fraction(r) * GB, Fraction(u) / 10**6) for a, b, r, u in links)
    )


def on_grid(
    topology, kind="all_gather", chunks=1, semantics="te-ccl", epoch_us=Fraction(1), ranks=None, fluid=False, also=()
):
    """A collective in chunks of 1 kB, which a link of 1 GB/s carries in an epoch of a microsecond."""
    demand = demand_of(topology, kind, chunks, ranks)
    timing = Timing(Semantics(semantics), Fraction(epoch_us) / 10**6, fluid)
    return Instance("grid", topology, demand, tuple(also), timing=timing)


def with_room(instance, chunks):
    """The same with ranks that have room for so many chunks of others; 0 is a rank that passes on at once, None has no
    limit."""
    nodes = tuple(
        replace(node, buffer_bytes=None if chunks is None else Fraction(1000) * chunks)
        if node.kind is NodeKind.COMPUTE
        else node
        for node in instance.network.nodes
    )
    return instance.with_changes(network=replace(instance.network, nodes=nodes))


def demand_of(topology, kind="all_gather", chunks=1, ranks=None):
    """A collective whose chunks have 1 kB."""
    collective = collective_named(kind)
    whole = (Collective.BROADCAST, Collective.REDUCE, Collective.POINT_TO_POINT)
    parts = 1 if collective in whole else len(topology.ranks if ranks is None else ranks)
    return Demand(collective, Fraction(1000) * chunks * parts, chunks, ranks)


def with_switch(*, multicast=True, buffer=Fraction(0)):
    """Two ranks that reach a third over a switch; from 0 to 1 a link that takes two epochs for a chunk."""
    links = [
        (0, 3, 1, 0),
        (1, 3, 1, 0),
        (3, 1, 1, 0),
        (3, 2, 1, 0),
        (0, 1, Fraction(1, 2), 0),
        (1, 2, 1, 1),
        (2, 0, 1, 0),
    ]
    return network(3, links, (3,), multicast=multicast, buffer=buffer)


@st.composite
def small_networks(draw, ranks=(3, 4), switch=None):
    """Strongly connected: a ring of ranks, more links, often a switch; rates and latencies of a wide range."""
    count = draw(st.integers(*ranks))
    rate = st.sampled_from([Fraction(1, 2), Fraction(1), Fraction(2)])
    wait = st.sampled_from([Fraction(0), Fraction(1, 20), Fraction(1, 2), Fraction(1), Fraction(3, 2)])
    ends = [(i, (i + 1) % count) for i in range(count)]
    pairs = [(a, b) for a in range(count) for b in range(count) if a != b]
    ends += draw(st.lists(st.sampled_from(pairs), max_size=2))
    switches = ()
    if draw(st.booleans()) if switch is None else switch:
        switches = (count,)
        ends += [(i, count) for i in draw(st.sets(st.integers(0, count - 1), min_size=1))]
        ends += [(count, i) for i in draw(st.sets(st.integers(0, count - 1), min_size=1))]
    links = [(a, b, draw(rate), draw(wait)) for a, b in ends]
    kind = draw(st.sampled_from([(True, Fraction(0)), (False, Fraction(0)), (True, None), (False, None)]))
    return network(count, links, switches, multicast=kind[0], buffer=kind[1])


@st.composite
def switch_trees(draw):
    """Two to four ranks on one or two switches in a row, each with or without copies and storage, links of many
    rates."""
    count, switches = draw(st.integers(2, 4)), draw(st.integers(1, 2))
    rate = st.sampled_from([Fraction(1, 2), Fraction(2, 3), Fraction(1), Fraction(2), Fraction(3)])
    wait = st.sampled_from([Fraction(0), Fraction(1, 20), Fraction(1)])
    pairs = [(i, count + draw(st.integers(0, switches - 1))) for i in range(count)]
    pairs += [(count, count + 1)] * (switches - 1)
    links = [(*ends, draw(rate), draw(wait)) for a, b in pairs for ends in ((a, b), (b, a))]
    kind = draw(st.tuples(st.booleans(), st.sampled_from([Fraction(0), None])))
    return network(count, links, range(count, count + switches), multicast=kind[0], buffer=kind[1])
