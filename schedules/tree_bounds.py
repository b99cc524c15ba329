"""Exact verification of :class:`~cwb.core.bounds.TreePrices`, from the network and the prices."""

from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate, chain, combinations_with_replacement
from math import ceil, comb, floor, lcm
from typing import Any

import numpy as np

from ..core.bounds import TreePrices
from ..core.collective import Collective
from ..core.errors import InputError
from ..core.instance import Instance
from ..core.kernel import kernel
from ..core.topology import Topology
from ..core.trees import TreePacking
from ..core.units import common_unit
from .strict import reject_if
from .trees import edges_above, from_root
from .verify.trees import heaviest_load

_MOST = 2**62  #: Sums of prices, and of lengths, stay below this.

_NS = 10**9

_MOST_CHOSEN = 4_000_000  #: Rates in all choices of so many trees that are tried.


def recomputed_tree_bound(instance: Instance, certificate: TreePrices) -> Fraction:
    """Return the least seconds of an all-reduce along the certificate's kind of trees; 0 if prices prove none."""
    topology, size_bytes = _problem(instance)
    _check(topology, certificate)
    rates = [link.bandwidth_Bps for link in topology.links]
    least = _least_cost(topology, certificate)
    full = sum((price * rate for price, rate in zip(certificate.prices, rates, strict=True)), Fraction(0))
    price, trees = certificate.tree_price_Bps, _most_trees(certificate, least, full)
    if least == 0 or (price and trees is None):
        return Fraction(0)
    most_Bps = (full + price * (trees or 0)) / least
    if trees is not None:
        most_Bps = _whole(topology, certificate, trees, most_Bps)
    return size_bytes / most_Bps if most_Bps else Fraction(0)


def _whole(topology: Topology, certificate: TreePrices, trees: int, most_Bps: Fraction) -> Fraction:
    """Lower a bound to the rate of trees with or without a common link, see :class:`TreePrices`."""
    rates = [link.bandwidth_Bps for link in topology.links]
    unit = common_unit(rates)
    most_Bps = vertex_rate(rates, certificate.min_rate_Bps, trees, most_Bps)
    widths, below, above = sorted(set(rates)), 0, len(set(rates))
    while above - below > 1:  # fewer links hold fewer trees
        middle = (below + above) // 2
        links = [index for index, other in enumerate(rates) if other >= widths[middle]]
        below, above = (middle, above) if _cheapest_tree(topology, certificate, links) is not None else (below, middle)
    allowed = [rate for rate in widths[: below + 1] if rate >= certificate.min_rate_Bps]
    pair = min(widths[-1], 2 * widths[below])
    apart, shared = trees * widths[below], pair + (trees - 2) * widths[below] if trees > 1 else Fraction(0)
    if certificate.link_sets:  # else k trees may have k times the rate of the widest
        carried = [Fraction(0)]  # by so many trees
        for apart in _disjoint(topology, certificate, allowed, trees):
            shared = pair + carried[-2] if len(carried) > 1 else Fraction(0)
            carried.append(max(apart, shared))
    return min(most_Bps, max(shared, min(floor(most_Bps / unit) * unit, apart)))


def vertex_rate(rates: Sequence[Fraction], least: Fraction, trees: int, most: Fraction) -> Fraction:
    """Lower a bound to a sum of rates that an optimal basis of their linear program can have (:class:`TreePrices`)."""
    if trees > 8:
        return most
    reached = (1, 1, 2, 3, 5, 9, 18, 40)[trees - 1]  # all determinants of 0/1 matrices of this order, and larger ones
    determinants = [*range(reached + 1), *{7: (20, 24, 32), 8: (42, 44, 45, 48, 56)}.get(trees, ())]
    if least or len(set(rates)) > 1:
        unit = common_unit([*rates, least])
        return unit * max(Fraction(floor(most * d / unit), d) for d in determinants[1:])
    totals = (rates[0] * (1 + Fraction(n, d)) for d in determinants[1:] for n in determinants)
    return min(most, max((total for total in totals if total <= most), default=rates[0]))


def _disjoint(topology: Topology, certificate: TreePrices, rates: Sequence[Fraction], trees: int) -> list[Fraction]:
    """Return the largest sums of at most k = 1, 2, ... rates that no set of links excludes."""
    if trees * comb(len(rates) + trees, trees) > _MOST_CHOSEN:
        raise InputError("too many combinations of rates to enumerate", place="certificate.link_sets")
    every = chain.from_iterable(combinations_with_replacement(range(len(rates) + 1), trees))
    choices = np.fromiter(every, dtype=np.int64).reshape(-1, trees)  # 0 is no tree
    for links in certificate.link_sets:
        needs = np.array([0, *_needed_links(topology, rates, set(links))])
        choices = choices[needs[choices].sum(axis=1) <= len(links)]
    scale = lcm(*(rate.denominator for rate in rates))
    whole = np.array([0, *(int(rate * scale) for rate in rates)], dtype=object)
    sums, counts = whole[choices].sum(axis=1), (choices > 0).sum(axis=1)
    best = (Fraction(max(sums[counts == count], default=0), scale) for count in range(1, trees + 1))
    return list(accumulate(best, max))


def _needed_links(topology: Topology, rates: Sequence[Fraction], links: set[int]) -> list[int]:
    """Return, per rate, the fewest links of a set that both directions of a tree need."""
    from networkx.utils import UnionFind

    parts, needs = len(topology.nodes), []
    group = UnionFind(range(parts))
    others = sorted((link.bandwidth_Bps, index) for index, link in enumerate(topology.links) if index not in links)
    for rate in reversed(rates):
        while others and others[-1][0] >= rate:
            a, b = topology.link_ends[others.pop()[1]]
            parts -= group[a] != group[b]
            group.union(a, b)
        needs.append(2 * (parts - 1))
    return needs[::-1]


def _most_trees(certificate: TreePrices, least: Fraction, full: Fraction) -> int | None:
    """Return the largest number of trees, as given or as the smallest rate permits; None if unlimited."""
    spare = certificate.min_rate_Bps * least - certificate.tree_price_Bps
    limits = [] if certificate.trees is None else [certificate.trees]
    limits += [floor(full / spare)] if spare > 0 and certificate.min_rate_Bps else []
    reject_if(limits and min(limits) < 1, "no tree of the smallest rate fits", place="certificate.min_rate_Bps")
    return min(limits, default=None)


def fault_of_trees(instance: Instance, certificate: TreePrices, packing: TreePacking | None) -> str | None:
    """Explain why the certificate does not cover these valid trees; None if it does."""
    if packing is None:
        return "speaks of trees, and the answer has none"
    topology, _ = _problem(instance)
    if certificate.trees is not None and len(packing) > certificate.trees:
        return f"speaks of at most {certificate.trees} trees, the answer has {len(packing)}"
    loads = [part.path_tree * len(topology.links) + part.path_links for part in packing.passes]
    limited = certificate.trees is not None or certificate.min_rate_Bps
    if limited and len(np.unique(np.concatenate(loads))) < sum(map(len, loads)):
        return "speaks of trees that use no link twice, the answer has one that does"
    if certificate.height is not None:
        lengths = np.array(_lengths(topology, certificate), dtype=np.int64)
        highest = 0
        for part in packing.passes:
            if len(part.parent):
                length = np.add.reduceat(lengths[part.path_links], part.path_offset[:-1])
                highest = max(highest, int(from_root(edges_above(part), length)[1].max()))
        if highest > certificate.height:
            unit = certificate.height_unit
            return f"speaks of trees of at most {certificate.height:,} {unit}, the answer has one of {highest:,}"
    if certificate.min_rate_Bps:
        smallest = int(packing.units.min()) * packing.unit_bytes / heaviest_load(instance, packing)
        if smallest < certificate.min_rate_Bps:
            least = float(certificate.min_rate_Bps)
            return f"speaks of trees of at least {least!r} B/s, the answer has one of {float(smallest)!r}"
    return None


def _problem(instance: Instance) -> tuple[Topology, Fraction]:
    topology, demand = instance.network, instance.demand
    whole = demand is not None and demand.collective is Collective.ALL_REDUCE and not instance.also
    if not isinstance(topology, Topology) or demand is None or not whole:
        raise InputError("prices of trees bound an all-reduce on a network of nodes and links", place="certificate")
    if topology.switches or (demand.ranks is not None and len(demand.ranks) < len(topology.nodes)):
        raise InputError("prices of trees bound an all-reduce in which every node takes part", place="certificate")
    return topology, demand.size_bytes


def _check(topology: Topology, certificate: TreePrices) -> None:
    """Reject meaningless numbers, and sums beyond 64 bits."""
    prices = certificate.prices
    if len(prices) != len(topology.links) or min(prices, default=0) < 0 or sum(prices) >= _MOST:
        text = "expected a price for every link, at least 0, with a sum below 2^62"
        raise InputError(text, place="certificate.prices")
    for name in ("tree_price_Bps", "min_rate_Bps"):
        reject_if(getattr(certificate, name) < 0, "must not be negative", place=f"certificate.{name}")
    if certificate.trees is not None and certificate.trees < 1:
        raise InputError("expected at least one tree", place="certificate.trees")
    for place, links in enumerate(certificate.link_sets):
        if not set(links) <= set(range(len(topology.links))) or len(set(links)) < len(links):
            raise InputError("expected different links of the network", place=f"certificate.link_sets[{place}]")
    if certificate.link_sets and certificate.trees is None:
        raise InputError("sets of links bound a number of trees", place="certificate.trees")
    reject_if(certificate.height_unit not in ("links", "ns"), "expected links or ns", place="certificate.height_unit")


def _lengths(topology: Topology, certificate: TreePrices) -> list[int]:
    """Return the length of every link: 1, or its latency in nanoseconds, rounded up."""
    if certificate.height_unit == "links":
        return [1] * len(topology.links)
    lengths = [ceil(link.latency_s * _NS) for link in topology.links]
    reject_if(sum(lengths) >= _MOST, "latencies sum to more than this certificate can count", place="network.links")
    return lengths


def _least_cost(topology: Topology, certificate: TreePrices) -> Fraction:
    """Return the least cost of a tree, including the price of a tree over its least bandwidth."""
    rates = [link.bandwidth_Bps for link in topology.links]
    widths = sorted({rate for rate in rates if rate >= certificate.min_rate_Bps})
    # Without a price of trees, those of the most links are the cheapest.
    choices = widths if certificate.tree_price_Bps else widths[:1]
    least: Fraction | None = None
    for rate in choices:
        links = [index for index, other in enumerate(rates) if other >= rate]
        cost = _cheapest_tree(topology, certificate, links)
        if cost is None:
            break  # nor do fewer links hold such a tree
        one = cost + certificate.tree_price_Bps / rate
        least = one if least is None else min(least, one)
    if least is None:
        raise InputError("no such trees exist", place="certificate")
    return least


def _cheapest_tree(topology: Topology, certificate: TreePrices, links: Sequence[int]) -> int | None:
    """Return the least cost of both directions of a tree over some links; None without a tree."""
    if certificate.height is None:
        span = _spanning(topology, certificate.prices, links)
        return None if span is None else 2 * span
    lengths = _lengths(topology, certificate)
    ends = np.array([topology.link_ends[link] for link in links], dtype=np.int64).reshape(-1, 2)
    tail, head = ends[:, 0].copy(), ends[:, 1].copy()
    price, length = (np.array(values, dtype=np.int64)[list(links)] for values in (certificate.prices, lengths))
    most, nodes = min(certificate.height, sum(lengths)), len(topology.nodes)
    costs: list[int] = []
    for root in range(nodes):
        ways = [cheapest_near(root, nodes, *ends, price, length, most) for ends in ((tail, head), (head, tail))]
        if min(ways) >= 0:
            costs.append(sum(ways))
    return min(costs, default=None)


def _spanning(topology: Topology, prices: Sequence[int], links: Sequence[int]) -> int | None:
    """Return the cost of the cheapest undirected spanning tree; None without one."""
    import networkx as nx

    graph = nx.MultiGraph()
    graph.add_nodes_from(range(len(topology.nodes)))
    graph.add_weighted_edges_from((*topology.link_ends[link], prices[link]) for link in links)
    tree = nx.minimum_spanning_tree(graph)
    return sum(price for *_, price in tree.edges(data="weight")) if nx.is_connected(tree) else None


@kernel
def cheapest_near(root: int, nodes: int, tail: Any, head: Any, price: Any, length: Any, most: int) -> int:
    """Return the least cost of an arborescence over links that end paths of at most ``most`` from the root, or -1."""
    far = np.full(nodes, -1, np.int64)
    far[root] = 0
    changed = True
    while changed:
        changed = False
        for a in range(len(tail)):
            if far[tail[a]] >= 0:
                reach = far[tail[a]] + length[a]
                if reach <= most and (far[head[a]] < 0 or reach < far[head[a]]):
                    far[head[a]], changed = reach, True
    near = np.zeros(len(tail), np.bool_)
    for a in range(len(tail)):
        near[a] = far[tail[a]] >= 0 and far[tail[a]] + length[a] <= most
    return arborescence(root, nodes, tail[near], head[near], price[near])


@kernel
def arborescence(root: int, nodes: int, tail: Any, head: Any, price: Any) -> int:
    """Return the cost of the cheapest arborescence from a root, -1 if there is none.

    Edmonds' algorithm by backward walks, after Tarjan. From a node not yet joined to the root, walk back over the
    cheapest incoming link: its price is paid and subtracted from all links into the node. A walk that meets itself
    closes a cycle, which is contracted to one node; a walk that meets a joined node is joined.
    """
    group = np.arange(nodes)
    rest = price.copy()
    total = 0
    walk = np.empty(nodes, np.int64)
    for start in range(nodes):
        if find(group, start) == find(group, root):
            continue
        walk[0], size = find(group, start), 1
        while size:
            here = walk[size - 1]
            best = cheapest_into(here, group, tail, head, rest)
            if best < 0:
                return -1
            least = rest[best]
            total += least
            for a in range(len(head)):
                if find(group, head[a]) == here:
                    rest[a] -= least
            before = find(group, tail[best])
            again = 0
            while before != find(group, root) and again < size and walk[again] != before:
                again += 1
            if again == size:
                walk[size] = before
                size += 1
                continue
            for i in range(again, size):
                group[walk[i]] = before
            size = 0 if before == find(group, root) else again + 1
    return total


@kernel
def cheapest_into(node: int, group: Any, tail: Any, head: Any, rest: Any) -> int:
    """Return the cheapest link into a contracted node from others, -1 if there is none."""
    best = -1
    for a in range(len(tail)):
        into = find(group, head[a]) == node and find(group, tail[a]) != node
        if into and (best < 0 or rest[a] < rest[best]):
            best = a
    return best


@kernel
def find(group: Any, node: int) -> int:
    """Return the node that represents the contracted set of a node."""
    while group[node] != node:
        group[node] = group[group[node]]
        node = group[node]
    return node
