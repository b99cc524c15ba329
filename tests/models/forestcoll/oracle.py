"""ForestColl's optimum by its own algorithms: slow, exact, and independent of the package's fast path.

The optimum by brute force over cuts and by algorithm 1, proposition 3, fixed k by brute force and by algorithm 3. Every
number is an int or a Fraction; `test_oracle` compares the flows with networkx's. `oracle_splitting` and `oracle_forest`
have the trees.

Demands. The paper gives every compute node the same number k of trees. Here a demand is a dict from every compute node
to its number of trees; `uniform` is the paper's. Theorems 1, 5, 8, 10 and 12 hold with |S ∩ V_c| k replaced by the
demand in S.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from heapq import heapify, heapreplace
from math import floor, gcd, lcm

from cwb.core.topology import Link, Node, NodeKind, Topology

Capacities = Mapping[tuple[int, int], int]
Demand = Mapping[int, int]

SOURCE = -1  # the auxiliary node s; nodes of a network are 0, 1, 2, ...


@dataclass(frozen=True)
class Network:
    """Compute nodes, switches, and the integer capacity of every directed link; parallel links are one of their sum."""

    compute: tuple[int, ...]
    switches: tuple[int, ...]
    capacity: dict[tuple[int, int], int]

    @property
    def nodes(self) -> tuple[int, ...]:
        return self.compute + self.switches

    def into(self, node: int) -> int:
        """B^-(v): what the links into a node carry together."""
        return sum(c for (_, v), c in self.capacity.items() if v == node)

    def out_of(self, node: int) -> int:
        """B^+(v): what the links out of a node carry together."""
        return sum(c for (u, _), c in self.capacity.items() if u == node)


def from_topology(topology: Topology, *, separate: bool = False) -> tuple[Network, Fraction]:
    """Turn a topology into a network, with the bandwidth in B/s of one unit of capacity (the largest one that is
    exact).

    Nodes are numbered by their position in the topology. Parallel links are summed; with `separate`, each of them
    becomes two links with a new switch between them, so that no tree can use a part of one and a part of another.
    """
    unit = Fraction(
        reduce(gcd, (link.bandwidth_Bps.numerator for link in topology.links)),
        lcm(*(link.bandwidth_Bps.denominator for link in topology.links)),
    )
    compute = tuple(i for i, node in enumerate(topology.nodes) if node.kind is NodeKind.COMPUTE)
    switches = [i for i, node in enumerate(topology.nodes) if node.kind is NodeKind.SWITCH]
    bundles: dict[tuple[int, int], list[int]] = defaultdict(list)
    for ends, link in zip(topology.link_ends, topology.links, strict=True):
        bundles[ends].append(int(link.bandwidth_Bps / unit))
    capacity: dict[tuple[int, int], int] = {}
    for (u, v), parallel in bundles.items():
        if not separate or len(parallel) == 1:
            capacity[u, v] = sum(parallel)
            continue
        for c in parallel:
            between = len(topology.nodes) + len(switches)
            switches.append(between)
            capacity[u, between] = capacity[between, v] = c
    return Network(compute, tuple(switches), capacity), unit


def to_topology(
    network: Network, unit: Fraction = Fraction(1), cuts: Mapping[tuple[int, int], int] | None = None
) -> Topology:
    """Turn a network into a topology; node i is `n<i>`. A link named in `cuts` becomes two parallel ones, the first of
    that capacity."""
    compute = set(network.compute)
    nodes = [Node(f"n{i}", NodeKind.COMPUTE if i in compute else NodeKind.SWITCH) for i in sorted(network.nodes)]
    links = []
    for (u, v), c in network.capacity.items():
        first = (cuts or {}).get((u, v), 0)
        links += [Link(f"n{u}", f"n{v}", part * unit) for part in (first, c - first) if part > 0]
    return Topology(tuple(nodes), tuple(links))


def uniform(network: Network, k: int = 1) -> dict[int, int]:
    """The paper's demand: k trees at every compute node."""
    return dict.fromkeys(network.compute, k)


def max_flow(capacity: Capacities, source: int, sink: int, enough: int) -> int:
    """min(maximum flow, `enough`), by paths of fewest links (Edmonds and Karp)."""
    left: dict[int, dict[int, int]] = defaultdict(dict)
    for (u, v), c in capacity.items():
        left[u][v] = left[u].get(v, 0) + c
        left[v].setdefault(u, 0)
    flow = 0
    while flow < enough and (path := _shortest_path(left, source, sink)):
        amount = min(enough - flow, *(left[u][v] for u, v in path))
        for u, v in path:
            left[u][v] -= amount
            left[v][u] += amount
        flow += amount
    return flow


def _shortest_path(left: Mapping[int, Mapping[int, int]], source: int, sink: int) -> list[tuple[int, int]]:
    """Return the links of a path of fewest links that have capacity left; none if there is no path."""
    before, reached = {source: source}, [source]
    for u in reached:
        for v, room in left[u].items():
            if room and v not in before:
                before[v] = u
                reached.append(v)
        if sink in before:
            break
    path = []
    while sink != source and sink in before:
        path.append((before[sink], sink))
        sink = before[sink]
    return path


def with_source(capacity: Capacities, demand: Demand) -> dict[tuple[int, int], int]:
    """D_k: a source with a link to every compute node, as large as the node's demand (C.1)."""
    return dict(capacity) | {(SOURCE, v): d for v, d in demand.items()}


def has_trees(capacity: Capacities, demand: Demand) -> bool:
    """Theorem 5: the trees exist if and only if the flow from the source to every compute node is the whole demand."""
    total = sum(demand.values())
    auxiliary = with_source(capacity, demand)
    return all(max_flow(auxiliary, SOURCE, v, total) == total for v in demand)


def cuts(network: Network, weights: Demand) -> Iterator[tuple[int, list[int]]]:
    """Every S ⊂ V, S ⊉ V_c, as its weight (where it has any) and the capacities of the links that leave it; for up to
    about 14 nodes."""
    bit = {node: 1 << i for i, node in enumerate(network.nodes)}
    links = [(bit[u], bit[v], c) for (u, v), c in network.capacity.items()]
    everyone = sum(bit[v] for v in network.compute)
    for chosen in range(1, 1 << len(bit)):
        inside = sum(weights[v] for v in network.compute if bit[v] & chosen)
        if chosen & everyone != everyone and inside > 0:
            leaving = [c for u, v, c in links if u & chosen and not v & chosen]
            if not leaving:
                raise ValueError("a compute node cannot reach the others")
            yield inside, leaving


def optimum_by_cuts(network: Network, weights: Demand | None = None) -> Fraction:
    """1/x* = max over S ⊂ V, S ⊉ V_c of |S ∩ V_c| / B^+(S), one S after the other."""
    return max(Fraction(inside, sum(leaving)) for inside, leaving in cuts(network, weights or uniform(network)))


def fixed_k_by_cuts(network: Network, demand: Demand) -> Fraction:
    """Smallest U with the sum of floor(U b_e) over the links out of S at least the demand in S, for every S one after
    the other."""
    best = Fraction(0)
    for inside, leaving in cuts(network, demand):
        carried = [best.numerator * c // best.denominator for c in leaving]
        missing = inside - sum(carried)
        if missing <= 0:
            continue
        steps = [(Fraction(trees + 1, c), c) for trees, c in zip(carried, leaving, strict=True)]
        heapify(steps)
        while missing > 0:
            best, c = steps[0]
            heapreplace(steps, (best + Fraction(1, c), c))
            missing -= 1
    return best


def bisect(low: Fraction, high: Fraction, largest: int, feasible: Callable[[Fraction], bool]) -> Fraction:
    """Find the smallest feasible value in [low, high], a fraction with a denominator of at most `largest` (proposition
    2).

    Once the range is below 1/largest^2 it has one such fraction, and that is also the one nearest to the midpoint.
    """
    if not feasible(high):
        raise ValueError("a compute node cannot reach the others")
    while high - low >= Fraction(1, largest**2):
        middle = (low + high) / 2
        low, high = (low, middle) if feasible(middle) else (middle, high)
    answer = ((low + high) / 2).limit_denominator(largest)
    assert low <= answer <= high
    assert feasible(answer)
    return answer


def optimum(network: Network, weights: Demand | None = None) -> Fraction:
    """1/x* by algorithm 1, in seconds per unit of capacity; weights are the shares of the nodes, 1 each by default.

    The denominator of 1/x* is at most B^+(S*), and weight(S*)/B^+(S*) >= (W - w_v)/B^-(v) for every v bounds that; with
    equal weights by min B^-(v).
    """
    weight = weights or uniform(network)
    total, least = sum(weight.values()), min(weight.values())
    entering = {v: network.into(v) for v in network.compute if weight[v] < total}
    if not all(entering.values()):
        raise ValueError("a compute node cannot be reached")

    def feasible(inverse: Fraction) -> bool:
        """F(s, v; G_x) >= Nx for every v, with all capacities multiplied by the numerator of 1/x."""
        capacity = {link: c * inverse.numerator for link, c in network.capacity.items()}
        return has_trees(capacity, {v: w * inverse.denominator for v, w in weight.items()})

    low = max(Fraction(total - weight[v], b) for v, b in entering.items())
    largest = min(b * (total - least) // (total - weight[v]) for v, b in entering.items())
    return bisect(low, Fraction(total), largest, feasible)


def scale_and_count(network: Network, inverse: Fraction) -> tuple[Fraction, int]:
    """Proposition 3: the smallest k with U = k/x* such that every U b_e is an integer; returns (U, k)."""
    scale = Fraction(inverse.numerator, reduce(gcd, network.capacity.values(), inverse.denominator))
    count = scale / inverse
    assert count.denominator == 1
    return scale, int(count)


def floor_capacities(network: Network, scale: Fraction) -> Network:
    """G({floor(U b_e)}): how many trees every link can carry; links that carry none are left out."""
    trees = {link: floor(scale * c) for link, c in network.capacity.items()}
    return Network(network.compute, network.switches, {link: c for link, c in trees.items() if c > 0})


def fixed_k(network: Network, demand: int | Demand) -> Fraction:
    """Algorithm 3: the smallest U = 1/y* such that G({floor(U b_e)}) has k trees at every compute node (or the
    demand)."""
    demand = uniform(network, demand) if isinstance(demand, int) else demand
    total = sum(demand.values())
    entering = {v: network.into(v) for v in network.compute if demand[v] < total}
    if not all(entering.values()):
        raise ValueError("a compute node cannot be reached")
    low = max(Fraction(total - demand[v], b) for v, b in entering.items())
    largest = max(network.capacity.values())
    return bisect(
        low, Fraction(total), largest, lambda scale: has_trees(floor_capacities(network, scale).capacity, demand)
    )
