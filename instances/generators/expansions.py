"""Networks made of other networks by the expansions of the topology finder: ``L(complete_bipartite(4, 4))``.

L. Zhao et al., "Efficient direct-connect topologies for collective communications": definitions 1, 2 and 14, and
appendices A.6 and F.4. Nodes are numbered as ``cwb find-topology`` numbers them; a link has the bandwidth
and the latency of the link that it is made of. What is expanded has compute nodes alone, no switches. The size of
everything is known before any of it is made.
"""

from collections.abc import Iterable, Iterator, Sequence
from math import prod

from ...core.budget import iterate_in_time
from ...core.errors import InputError, locate_errors
from ...core.topology import Link, Node, Topology
from ..schema import MAX_NODES
from .building import NestedNetwork, check_range, check_size, rank_names

MAX_DIMENSIONS = MAX_NODES.bit_length() - 1  #: Larger powers of two nodes are too large.


def line_graph(network: NestedNetwork, times: int = 1) -> Topology:
    """Line graph L(G): the nodes are the links of G, each linked to its successors (definition 1).

    Nodes are the links of G in the order of their ends. Link (u, v) to (v, w) has what (v, w) has. Every node of G has
    the same number of links from it and to it.

    ``times``: number of expansions, each of the result of the one before.
    """
    check_range(times, "times", 1, MAX_DIMENSIONS)
    nodes, links = network.size
    degree, remainder = divmod(links, nodes)
    if remainder or not degree:
        raise InputError(_irregular(f"{links:,} links of {nodes:,} nodes"), place="network")
    check_size(nodes=nodes * degree**times, links=nodes * degree ** (times + 1))
    with locate_errors("network"):
        graph = network.topology
    for _ in range(times):
        graph = _line_graph(graph, degree)
    return graph


def _line_graph(base: Topology, degree: int) -> Topology:
    order = sorted(range(len(base.links)), key=base.link_ends.__getitem__)
    out: list[list[int]] = [[] for _ in base.nodes]
    into = [0] * len(base.nodes)
    for place, link in enumerate(order):
        source, target = base.link_ends[link]
        out[source].append(place)
        into[target] += 1
    for node, (leaving, entering) in enumerate(zip(out, into, strict=True)):
        if len(leaving) != degree or entering != degree:
            text = f"node {node} with {len(leaving)} links from it and {entering} to it"
            raise InputError(_irregular(text), place="network")
    ends = ((place, onward) for place, link in enumerate(order) for onward in out[base.link_ends[link][1]])
    like = [base.links[link] for link in order]
    return _network(len(order), len(order) * degree, ((a, b, like[b]) for a, b in ends))


def _irregular(text: str) -> str:
    return f"{text}; expected as many links from and to every node"


def product(*networks: NestedNetwork) -> Topology:
    """Cartesian product: nodes with a coordinate in every network, linked where one coordinate's network has a link.

    Node (x, y, ...) of networks of N, M, ... nodes is x + N y + N M z + ...: ``product(ring(4), ring(3))`` is
    ``torus(4, 3)``.
    """
    if len(networks) < 2:
        raise InputError(f"{len(networks)} networks; expected at least 2", place="networks")
    return _product(networks, "networks")


def power(network: NestedNetwork, n: int) -> Topology:
    """Cartesian power: the product of n networks that are all the same (definition 14)."""
    return _product([network] * check_range(n, "n", 2, MAX_DIMENSIONS), "network")


def _product(factors: Sequence[NestedNetwork], place: str) -> Topology:
    sizes = [factor.size for factor in factors]
    nodes = prod(count for count, _ in sizes)
    count = sum(links * (nodes // size) for size, links in sizes)
    check_size(nodes=nodes, links=count)
    return _network(nodes, count, _product_links(factors, nodes, place))


def _product_links(factors: Sequence[NestedNetwork], nodes: int, place: str) -> Iterator[tuple[int, int, Link]]:
    stride = 1
    for factor in factors:
        block = stride * factor.size[0]
        for (source, target), link in _each(factor, place):
            for first in range(0, nodes, block):
                for low in range(first, first + stride):
                    yield low + source * stride, low + target * stride, link
        stride = block


def degree_expansion(network: NestedNetwork, n: int) -> Topology:
    """Degree expansion G * n: n copies of every node, all copies of linked nodes linked (definition 2).

    Copy i of node v is v n + i.
    """
    check_range(n, "n", 2)
    nodes, links = network.size
    check_size(nodes=n * nodes, links=n * n * links)
    ends = (
        (source * n + i, target * n + j, link)
        for (source, target), link in _each(network)
        for i in range(n)
        for j in range(n)
    )
    return _network(n * nodes, n * n * links, ends)


def parallel(network: NestedNetwork, k: int) -> Topology:
    """Parallel links: k of every link (appendix F.4)."""
    check_range(k, "k", 2)
    nodes, links = network.size
    check_size(nodes=nodes, links=k * links)
    return _network(nodes, k * links, ((*ends, link) for ends, link in _each(network) for _ in range(k)))


def both_directions(network: NestedNetwork) -> Topology:
    """Both directions: a network together with its transpose, so that every link has one back (appendix A.6)."""
    nodes, links = network.size
    check_size(nodes=nodes, links=2 * links)
    there = ((*ends, link) for ends, link in _each(network))
    back = ((target, source, link) for (source, target), link in _each(network))
    return _network(nodes, 2 * links, (*there, *back))


def _each(network: NestedNetwork, place: str = "network") -> Iterable[tuple[tuple[int, int], Link]]:
    with locate_errors(place):
        base = network.topology
    return zip(base.link_ends, base.links, strict=True)


def _network(nodes: int, count: int, links: Iterable[tuple[int, int, Link]]) -> Topology:
    """Make a network whose nodes are named by rank; each link copies bandwidth and latency of another."""
    names = rank_names(nodes)
    copies = (Link(names[a], names[b], like.bandwidth_Bps, like.latency_s) for a, b, like in links)
    return Topology(tuple(map(Node, names)), tuple(iterate_in_time(copies, count, "links")))
