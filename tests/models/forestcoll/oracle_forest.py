"""ForestColl's trees by its own algorithms: packing (algorithm 5), physical paths, the whole pipeline, and a check of
its result from scratch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from typing import NamedTuple

from oracle import Capacities, Demand, Network, fixed_k, floor_capacities, max_flow, optimum, scale_and_count, uniform
from oracle_splitting import Edge, Logical, Path, remove_switches, take


class Tree(NamedTuple):
    """`multiplicity` equal trees of logical edges, in the order in which they were added: parents before children."""

    root: int
    multiplicity: int
    edges: tuple[Edge, ...]


class PhysicalTree(NamedTuple):
    """A tree whose every logical edge has paths; their amounts add up to the multiplicity."""

    root: int
    multiplicity: int
    paths: Mapping[Edge, Sequence[tuple[Path, int]]]


@dataclass
class Forest:
    """The result of the whole pipeline."""

    demand: dict[int, int]
    scale: Fraction
    trees: list[PhysicalTree] = field(default_factory=list)


# --- C.3: packing


@dataclass
class Growing:
    """A root-set R_i: `multiplicity` equal trees that do not span yet."""

    root: int
    multiplicity: int
    nodes: list[int]
    edges: list[Edge]


def addable(remaining: Capacities, tree: Growing, others: Iterable[Growing], edge: Edge) -> int:
    """μ of theorem 12: to how many of the equal trees the edge can be added such that all trees can still be
    completed."""
    x, y = edge
    auxiliary = dict(remaining)
    unbounded = sum(remaining.values()) + 1
    needed = 0
    for index, other in enumerate(others):
        node = -2 - index
        auxiliary[x, node] = other.multiplicity
        needed += other.multiplicity
        auxiliary |= {(node, v): unbounded for v in other.nodes}
    most = min(remaining[edge], tree.multiplicity)
    amount = max_flow(auxiliary, x, y, needed + most) - needed
    assert amount >= 0
    return amount


def pack(logical: Capacities, demand: Demand) -> list[Tree]:
    """Algorithm 5: trees that span the compute nodes, as many from every root as demanded, within the capacities.

    Trees that span already have no part in condition (3), so they are not in the auxiliary network. An edge that cannot
    be added to a tree stays so while the tree grows: one of its cuts has nothing to spare, and no cut ever gains.
    """
    remaining = dict(logical)
    growing = [Growing(v, d, [v], []) for v, d in demand.items() if d > 0]
    done: list[Tree] = []
    while growing:
        tree = growing.pop()
        refused: set[Edge] = set()
        while len(tree.nodes) < len(demand):
            edge = next_edge(remaining, tree, refused)
            amount = addable(remaining, tree, growing, edge)
            if amount == 0:
                refused.add(edge)
                continue
            if amount < tree.multiplicity:
                growing.append(Growing(tree.root, tree.multiplicity - amount, list(tree.nodes), list(tree.edges)))
                tree.multiplicity = amount
            tree.edges.append(edge)
            tree.nodes.append(edge[1])
            remaining[edge] -= amount
            if remaining[edge] == 0:
                del remaining[edge]
        done.append(Tree(tree.root, tree.multiplicity, tuple(tree.edges)))
    return done


def next_edge(remaining: Capacities, tree: Growing, refused: set[Edge]) -> Edge:
    """Find an edge out of the tree, from the node that joined first."""
    reached = set(tree.nodes)
    place = {v: i for i, v in enumerate(tree.nodes)}
    leaving = [e for e in remaining if e[0] in reached and e[1] not in reached and e not in refused]
    if not leaving:
        raise ValueError(f"the trees from {tree.root} cannot be completed")
    return min(leaving, key=lambda edge: place[edge[0]])


# --- paths, check, pipeline


def expand(trees: Iterable[Tree], logical: Logical) -> list[PhysicalTree]:
    """Every edge of every tree its own share of the edge's paths."""
    left = {edge: list(pieces) for edge, pieces in logical.paths.items()}
    return [
        PhysicalTree(tree.root, tree.multiplicity, {e: take(left[e], tree.multiplicity) for e in tree.edges})
        for tree in trees
    ]


def check_forest(
    network: Network, demand: int | Demand, scale: Fraction, trees: Iterable[PhysicalTree]
) -> Counter[Edge]:
    """Assert that the trees are what ForestColl promises; returns the load of every link, in trees.

    Every tree is rooted and spans the compute nodes; every root has its demand; every path is one of links from end to
    end with only switches between; and no link carries more than U b_e trees. `network` is the original one, with its
    bandwidths.
    """
    demand = uniform(network, demand) if isinstance(demand, int) else demand
    roots: Counter[int] = Counter()
    load: Counter[Edge] = Counter()
    for tree in trees:
        assert tree.multiplicity > 0
        roots[tree.root] += tree.multiplicity
        reached = {tree.root}
        edges = list(tree.paths)
        while ready := [(u, v) for u, v in edges if u in reached]:
            for u, v in ready:
                assert v not in reached, f"{v} has two parents, or the root has one"
                reached.add(v)
                edges.remove((u, v))
        assert not edges, f"edges {edges} hang nowhere"
        assert reached == set(network.compute)
        for (u, v), pieces in tree.paths.items():
            assert sum(amount for _, amount in pieces) == tree.multiplicity
            for path, amount in pieces:
                assert isinstance(amount, int)
                assert amount > 0
                assert (path[0], path[-1]) == (u, v)
                assert set(path[1:-1]) <= set(network.switches)
                for link in pairwise(path):
                    load[link] += amount
    assert roots == Counter(demand), f"{roots} trees for {demand}"
    for link, trees_on_it in load.items():
        assert trees_on_it <= scale * network.capacity[link], f"link {link} has {trees_on_it} trees"
    return load


def build_forest(network: Network, demand: Demand, scale: Fraction) -> Forest:
    """Switch removal, packing and paths on G({floor(U b_e)})."""
    logical = remove_switches(floor_capacities(network, scale), demand)
    return Forest(dict(demand), scale, expand(pack(logical.capacity, demand), logical))


def solve(network: Network, k: int | None = None, weights: Demand | None = None) -> Forest:
    """Run the whole pipeline: the optimum with proposition 3's k, or the best for a fixed k; a node has k times its
    weight trees."""
    weights = weights or uniform(network)
    if k is None:
        scale, k = scale_and_count(network, optimum(network, weights))
        demand = {v: k * w for v, w in weights.items()}
    else:
        demand = {v: k * w for v, w in weights.items()}
        scale = fixed_k(network, demand)
    return build_forest(network, demand, scale)
