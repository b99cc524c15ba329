"""Instances from networks, and the runs of forestcoll on them."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from cwb.core.collective import Demand, collective_named
from cwb.core.instance import Instance
from cwb.core.topology import Link, Node, NodeKind, Topology
from cwb.core.trees import TreePacking
from cwb.harness.run import FinishedRun, Request, run
from cwb.instances import load

SIZE = Fraction(10**9)


def pose(network: Topology | str, kind: str = "all_gather", ranks=None, size: Fraction = SIZE) -> Instance:
    """Ask for a collective."""
    topology = load(network).network if isinstance(network, str) else network
    return Instance("posed", topology, Demand(collective_named(kind), size, ranks=ranks))


def forest(instance: Instance, seed: int = 0, time_limit_s: float | None = None, **options) -> FinishedRun:
    """Run forestcoll and the verifier."""
    return run(instance, Request("forestcoll", options=options, seed=seed, time_limit_s=time_limit_s))


def star(*rates: Fraction | int) -> Topology:
    """Compute nodes on one switch, each with links of its own rate."""
    names = [f"n{i}" for i in range(len(rates))]
    links = [link for name, rate in zip(names, rates, strict=True) for link in both(name, "s", rate)]
    return Topology((*map(Node, names), Node("s", NodeKind.SWITCH)), tuple(links))


def both(a: str, b: str, rate: Fraction | int) -> tuple[Link, Link]:
    """Two links of the same rate."""
    return Link(a, b, Fraction(rate)), Link(b, a, Fraction(rate))


def max_height(packing: TreePacking) -> int:
    """Edges between a root and its farthest leaf, in the trees of ranks."""
    tallest = 0
    for t, root in enumerate(packing.root.tolist()):
        depth = {root: 0}
        edges = slice(int(packing.edge_offset[t]), int(packing.edge_offset[t + 1]))
        for parent, child in zip(packing.parent[edges].tolist(), packing.child[edges].tolist(), strict=True):
            depth[child] = depth[parent] + 1
        tallest = max(tallest, *depth.values())
    return tallest


def shuffle_topology(topology: Topology, rng) -> Topology:
    """The same network with other names, and nodes and links in another order."""
    names = [node.name for node in topology.nodes]
    new = dict(zip(names, (f"x{i}" for i in rng.sample(range(len(names)), len(names))), strict=True))
    nodes = [Node(new[n.name], n.kind, n.multicast, n.buffer_bytes) for n in topology.nodes]
    links = [Link(new[x.source], new[x.target], x.bandwidth_Bps, x.latency_s) for x in topology.links]
    rng.shuffle(nodes)
    rng.shuffle(links)
    return Topology(tuple(nodes), tuple(links))


def loads(packing: TreePacking, links: int) -> list[int]:
    """Units on every link, path by path."""
    load = [0] * links
    for part in packing.passes:
        for t, units in enumerate(part.units.tolist()):
            begin, end = part.path_offset[part.edge_offset[t]], part.path_offset[part.edge_offset[t + 1]]
            found, times = np.unique(part.path_links[begin:end], return_counts=True)
            for link, count in zip(found.tolist(), times.tolist(), strict=True):
                load[link] += units * count
    return load
