"""Measures of a network: distances, bisection, degrees, and asymmetries of links and ranks."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.grouping import group_by_key
from ..core.topology import Topology
from ..core.units import common_unit

#: From so many ranks all distances are taken, else from some; and of so many nodes and links cuts are looked at.
_SOURCES, _SAMPLE, _NODES, _LINKS = 1500, 64, 600, 12_000

#: Halves that are all tried; each is a sum without switches, and a maximum flow with them.
_HALVES, _FLOWS = 100_000, 1000

_LOADS = 300_000  #: Ranks times links up to which loads of shortest paths are computed for a bound.
_SAME = 1e-9  #: Relative difference at which a cut and a bound are the same.

Half = NDArray[np.bool_]


@dataclass(frozen=True)
class Bisection:
    """Bandwidth between two halves of the ranks, in the direction and for the halves where it is least."""

    #: ``low_Bps`` and ``high_Bps``: bounds; 0 is none. The upper one is that of a cut.
    low_Bps: float
    high_Bps: float
    how: str  #: What makes them exact, or what is known.

    @property
    def exact(self) -> bool:
        """True if lower and upper bound agree."""
        return self.low_Bps >= self.high_Bps * (1 - _SAME)


@dataclass(frozen=True)
class Measures:
    """Measures of a network."""

    #: Largest hop distance between two ranks, None if one is unreachable; a lower bound if ranks were sampled.
    diameter: int | None
    all_sources: bool  #: Whether distances were computed from all ranks.
    #: ``degrees`` and ``radixes``: number of ranks, and of switches, by their number of outgoing links.
    degrees: Counter[int]
    radixes: Counter[int]
    rates_Bps: Counter[Fraction]  #: Number of ranks by their outgoing bandwidth.
    unequal: tuple[tuple[str, str], ...]  #: Pairs of nodes with less bandwidth back than there.
    uneven: tuple[str, ...]  #: Ranks whose incoming and outgoing bandwidth differ.
    bisection: Bisection | None  #: None if the network is too large.


def measure_network(topology: Topology) -> Measures:
    """Measure a network."""
    out, into = Counter(a for a, _ in topology.link_ends), [Fraction(0)] * len(topology.nodes)
    leaving: list[Fraction] = list(into)
    between: dict[tuple[int, int], Fraction] = {}
    for (a, b), link in zip(topology.link_ends, topology.links, strict=True):
        leaving[a] += link.bandwidth_Bps
        into[b] += link.bandwidth_Bps
        between[a, b] = between.get((a, b), Fraction(0)) + link.bandwidth_Bps
    names, ranks = [node.name for node in topology.nodes], topology.rank_nodes
    rank_set = set(ranks)
    unequal = sorted((a, b) for (a, b), rate in between.items() if rate > between.get((b, a), 0))
    diameter, whole = _diameter(topology)
    return Measures(
        diameter,
        whole,
        Counter(out[node] for node in ranks),
        Counter(out[node] for node in range(len(names)) if node not in rank_set),
        Counter(leaving[node] for node in ranks),
        tuple((names[a], names[b]) for a, b in unequal),
        tuple(names[node] for node in ranks if leaving[node] != into[node]),
        _bisection(topology),
    )


def _diameter(topology: Topology) -> tuple[int | None, bool]:
    """Return the largest hop distance between two ranks; from a sample of them if they are many."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import dijkstra

    ranks = np.array(topology.rank_nodes, dtype=np.int64)
    whole = len(ranks) <= _SOURCES
    sources = ranks if whole else ranks[np.linspace(0, len(ranks) - 1, _SAMPLE).astype(np.int64)]
    ends = np.array(topology.link_ends, dtype=np.int64).reshape(-1, 2).T
    size = len(topology.nodes)
    graph = csr_array((np.ones(ends.shape[1]), (ends[0], ends[1])), shape=(size, size))
    far = dijkstra(graph, indices=sources, unweighted=True)[:, ranks]
    return (None if np.isinf(far).any() else int(far.max())), whole


def _bisection(topology: Topology) -> Bisection | None:
    if len(topology.nodes) > _NODES or len(topology.links) > _LINKS or len(topology.ranks) < 2:
        return None
    cuts = _Cuts(topology)
    n = len(topology.ranks)
    halves = comb(n, n // 2)
    if halves <= (_FLOWS if topology.switches else _HALVES):
        least = min(cuts.least(half) for half in _all_halves(n))
        return Bisection(least, least, "all halves tried")
    high = min(cuts.least(half) for half in cuts.likely())
    low = min(high, max(cuts.spectral(), cuts.by_loads()) * (n // 2) * (n - n // 2))
    how = "a cut that attains a bound" if low >= high * (1 - _SAME) else "the best cut found"
    return Bisection(low, high, how)


def _all_halves(n: int) -> Iterator[Half]:
    for members in combinations(range(n), n // 2):
        if n % 2 == 0 and members[0] != 0:
            return
        half = np.zeros(n, dtype=np.bool_)
        half[list(members)] = True
        yield half


class _Cuts:
    """Cuts of a network, with capacities in whole multiples of a unit."""

    def __init__(self, topology: Topology) -> None:
        rates = [link.bandwidth_Bps for link in topology.links]
        unit = common_unit(rates) or Fraction(1)
        self.unit_Bps = float(unit)
        self.topology = topology
        self.size = len(topology.nodes)
        self.ranks = np.array(topology.rank_nodes, dtype=np.int64)
        by_ends = group_by_key(zip(topology.link_ends, (int(rate / unit) for rate in rates), strict=True))
        self.capacity = {ends: sum(some) for ends, some in by_ends.items()}
        self.tails, self.heads = np.array(list(self.capacity), dtype=np.int64).reshape(-1, 2).T
        self.weights = np.array(list(self.capacity.values()), dtype=np.float64)

    def least(self, half: Half) -> float:
        """Bandwidth from a half to the other or back, whichever is less; switches are where they help least."""
        side = np.zeros(self.size, dtype=np.bool_)
        side[self.ranks[half]] = True
        if not self.topology.switches:
            tail, head = side[self.tails], side[self.heads]
            cut = min(self.weights[tail & ~head].sum(), self.weights[~tail & head].sum())
            return float(cut) * self.unit_Bps
        return min(self._flow(self.ranks[half], self.ranks[~half]), self._flow(self.ranks[~half], self.ranks[half]))

    def _flow(self, sources: NDArray[np.int64], sinks: NDArray[np.int64]) -> float:
        total = int(sum(self.capacity.values()))
        rows = [*self.capacity.items()]
        rows += [((self.size, node), total) for node in sources.tolist()]
        rows += [((node, self.size + 1), total) for node in sinks.tolist()]
        if total < 2**31:
            from scipy.sparse import csr_array
            from scipy.sparse.csgraph import maximum_flow

            ends = np.array([pair for pair, _ in rows], dtype=np.int32)
            data = np.array([rate for _, rate in rows], dtype=np.int32)
            graph = csr_array((data, (ends[:, 0], ends[:, 1])), shape=(self.size + 2, self.size + 2))
            return float(maximum_flow(graph, self.size, self.size + 1).flow_value) * self.unit_Bps
        import networkx as nx

        graph = nx.DiGraph()
        graph.add_weighted_edges_from(((a, b, rate) for (a, b), rate in rows), weight="capacity")
        return float(nx.maximum_flow_value(graph, self.size, self.size + 1)) * self.unit_Bps

    def likely(self) -> Iterator[Half]:
        """Halves that are often the least: neighbours in rank, alternating blocks, and by the second eigenvector."""
        n = len(self.ranks)
        number = np.arange(n)
        yield number < n // 2
        for size in (k for k in range(1, n // 2 + 1) if n % (2 * k) == 0):
            yield number // size % 2 == 0
        _, vectors = np.linalg.eigh(self._laplacian())
        for column in range(1, min(4, self.size)):
            half = np.zeros(n, dtype=np.bool_)
            half[np.argsort(np.round(vectors[self.ranks, column], 9), kind="stable")[: n // 2]] = True
            yield half

    def _laplacian(self) -> NDArray[np.float64]:
        matrix: Any = np.zeros((self.size, self.size))
        for (a, b), rate in self.capacity.items():
            matrix[a, b] -= rate
        matrix = np.maximum(matrix, matrix.T)
        np.fill_diagonal(matrix, -matrix.sum(axis=1))
        return np.asarray(matrix, dtype=np.float64)

    def spectral(self) -> float:
        """Return the spectral lower bound on cuts per pair of ranks, in B/s.

        Without switches, a cut of s and t ranks has at least lambda_2 s t / n (Fiedler).
        """
        if self.topology.switches:
            return 0.0
        values = np.linalg.eigvalsh(self._laplacian())
        rounding = self.size * float(np.finfo(np.float64).eps * values[-1])  # of any eigenvalue, at most
        return max(0.0, float(values[1]) - rounding) / self.size * self.unit_Bps * (1 - 1e-12)

    def by_loads(self) -> float:
        """Return the rate at which every rank can send to each rank of the other half, in B/s.

        All shortest paths are used alike. A cut of s and t ranks then carries s t times as much. A link carries at most
        the traffic of the half of the ranks that load it most, each to at most half of the ranks.
        """
        if len(self.ranks) * len(self.capacity) > _LOADS:
            return 0.0
        import networkx as nx

        graph, ranks = nx.DiGraph(), self.ranks.tolist()
        graph.add_edges_from(self.capacity)
        graph.add_nodes_from(ranks)
        if not nx.is_strongly_connected(graph):
            return 0.0
        rows = [nx.edge_betweenness_centrality_subset(graph, [rank], ranks) for rank in ranks]
        half = (len(ranks) + 1) // 2
        loads = np.array([[row[pair] for pair in self.capacity] for row in rows])
        worst = np.sort(np.minimum(loads, half), axis=0)[len(ranks) - half :].sum(axis=0)
        busy = worst > 0
        return float((self.weights[busy] / worst[busy]).min()) * self.unit_Bps * (1 - 1e-12)
