"""Wide-area networks whose capacities are drawn.

Google's B4 as it was published, and random graphs: of the size of two others, or of any.

Luo et al., "Efficient Inter-Datacenter AllReduce With Multiple Trees" (MTree), section IV-A: the capacity of a link is
a multiple of 10 Mb/s between 200 - 100 sk and 200 + 100 sk, where sk is the skewness; its latency is between 50 and 400
ms and falls with the capacity. How exactly is not said. Here it is
``50 ms + 350 ms (1/b - min 1/b) / (max 1/b - min 1/b)``, and 50 ms where all capacities are equal. Both directions of a
link have its capacity.

GScale is B4 with its 12 sites and 19 links (S. Jain et al., SIGCOMM 2013, figure 1). Of the paper's other two networks
only the sizes are published, 20 nodes and 141 links, and 40 nodes and 231 links: ``equinix_size`` and ``idn_size`` are
random graphs of these sizes and nothing else; ``random_wan`` makes one of any size.
"""

from fractions import Fraction

from ...core.errors import InputError
from ...core.topology import Link, Node, Topology
from .building import check_range, check_ranges, check_size, rank_names

_Edges = list[tuple[int, int]]

#: Links of GScale in the order in which their capacities are drawn.
GSCALE: _Edges = [
    (0, 1), (1, 2), (0, 4), (2, 3), (2, 5), (3, 4), (4, 5), (5, 7), (3, 6), (3, 7),
    (5, 6), (6, 7), (8, 10), (8, 9), (9, 10), (7, 9), (6, 10), (9, 11), (10, 11),
]  # fmt: skip

_STEP_BPS = Fraction(10 * 10**6, 8)
_SHORTEST_S, _SPREAD_S = Fraction(50, 1000), Fraction(350, 1000)

# First word of the seed of each network's capacities.
_GSCALE, _EQUINIX, _IDN, _RANDOM = 1, 2, 3, 4


def gscale(skewness: Fraction = Fraction(1, 2), seed: int = 0) -> Topology:
    """Google's B4 of 2013: 12 sites, 19 links of random capacity.

    ``skewness``: from 0, all links have 200 Mb/s, to 1, from 100 to 300 Mb/s; a multiple of 0.1.
    """
    return _draw_wan(12, GSCALE, skewness, seed, _GSCALE)


def equinix_size(skewness: Fraction = Fraction(1, 2), seed: int = 0) -> Topology:
    """Random connected graph of 20 nodes and 141 links of random capacity."""
    return _draw_wan(20, _random_edges(20, 141, seed), skewness, seed, _EQUINIX)


def idn_size(skewness: Fraction = Fraction(1, 2), seed: int = 0) -> Topology:
    """Random connected graph of 40 nodes and 231 links of random capacity."""
    return _draw_wan(40, _random_edges(40, 231, seed), skewness, seed, _IDN)


def random_wan(sites: int, links: int, skewness: Fraction = Fraction(1, 2), seed: int = 0) -> Topology:
    """Random connected graph of so many sites and links of random capacity."""
    check_ranges(sites=(sites, 2), links=(links, sites - 1, sites * (sites - 1) // 2))
    check_size(nodes=sites, links=2 * links)
    return _draw_wan(sites, _random_edges(sites, links, seed), skewness, seed, _RANDOM)


def _draw_wan(nodes: int, edges: _Edges, skewness: Fraction, seed: int, family: int) -> Topology:
    """Assign every link a capacity and the latency that goes with it."""
    import numpy as np

    tenths = skewness * 10
    if tenths.denominator != 1 or not 0 <= tenths <= 10:
        raise InputError(f"{float(skewness):g}; expected a multiple of 0.1 from 0 to 1", place="skewness")
    check_range(seed, "seed", 0, 2**63 - 1)
    check_size(nodes=nodes, links=2 * len(edges))
    source = np.random.default_rng([family, int(tenths), seed])
    steps = 20 + source.integers(-int(tenths), int(tenths) + 1, size=len(edges))
    inverse = [Fraction(1, step) for step in steps.tolist()]
    least, spread = min(inverse), max(inverse) - min(inverse)
    names = rank_names(nodes)
    links: list[Link] = []
    for (one, other), value in zip(edges, inverse, strict=True):
        latency_s = _SHORTEST_S + (_SPREAD_S * (value - least) / spread if spread else 0)
        links.append(Link(names[one], names[other], _STEP_BPS / value, latency_s))
        links.append(Link(names[other], names[one], _STEP_BPS / value, latency_s))
    return Topology(tuple(Node(name) for name in names), tuple(links))


def _random_edges(nodes: int, count: int, seed: int) -> _Edges:
    import networkx as nx

    check_range(seed, "seed", 0, 2**63 - 1)
    graph = nx.gnm_random_graph(nodes, count, seed)
    if not nx.is_connected(graph):
        raise InputError("its graph is not connected; expected another seed", place="seed")
    return list(graph.edges)
