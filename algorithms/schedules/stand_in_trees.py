"""Trees without a lost node: its children get another parent, and if it was the root, another root."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from ...core.schedule import Bools, Ints
from ...core.trees import TreeKind, TreePacking
from .changes import Change, Loads
from .stand_in import MOST_CANDIDATES


class Edge(NamedTuple):
    """Edge into a node: its parent, and its number in the packing; -1 for a new one."""

    parent: int
    number: int


@dataclass(frozen=True)
class Tree:
    """Root, and the edge into every other node."""

    root: int
    up: dict[int, Edge]

    def children(self, node: int) -> list[int]:
        """List the children of a node."""
        return [child for child, edge in self.up.items() if edge.parent == node]

    def parents_first(self) -> Iterator[tuple[int, Edge]]:
        """Yield nodes with their edges, parents first."""
        below: dict[int, list[int]] = {}
        for child, edge in self.up.items():
            below.setdefault(edge.parent, []).append(child)
        nodes = [self.root]
        for node in nodes:
            nodes += below.get(node, [])
        return ((child, self.up[child]) for child in nodes[1:])

    def without(self, lost: int, place: int) -> Tree:
        """Return the tree with another node in the place of a lost one."""
        up = dict(self.up)
        hanging = self.children(lost)
        above = up.pop(lost).parent if lost != self.root else None
        for child in hanging:
            up[child] = Edge(place, -1)
        if above is None:
            chain = [place]
            while chain[-1] not in hanging:
                chain.append(self.up[chain[-1]].parent)
            for child, parent in pairwise(chain):
                up[parent] = Edge(child, -1)
            del up[place]
        elif place in hanging:
            up[place] = Edge(above, -1)
        return Tree(place if above is None else self.root, up)

    def prune_switches(self, ranks: int) -> Tree:
        """Return the tree without switches that are leaves."""
        up = dict(self.up)
        while idle := {node for node in up if node >= ranks} - {edge.parent for edge in up.values()}:
            up = {node: edge for node, edge in up.items() if node not in idle}
        return Tree(self.root, up)


def stand_in_trees(
    change: Change, packing: TreePacking, loads: Loads, parts: int
) -> Iterator[tuple[int, int, tuple[Tree, ...]]]:
    """Yield every remaining tree without lost nodes, in parts that may differ.

    The packing is correct on the old network; ``loads`` are those of the remaining edges. Each tree is divided into
    ``parts`` equal ones, of which those that become the same tree are merged: number of the tree in the packing, number
    of its parts, and the new tree of every pass. A tree is dropped if it is only an in-tree or an out-tree and its root
    is lost.
    """
    number_of = {node: number for number, node in enumerate(change.old.tree_nodes)}
    lost = [number_of[node] for node in change.lost]
    for number in range(len(packing)):
        trees = tuple(_tree(part, number) for part in packing.passes)
        if trees[0].root in lost and packing.kind is not TreeKind.BOTH:
            continue
        size = float(int(packing.units[number]) * packing.unit_bytes) / parts
        found: dict[tuple[frozenset[tuple[int, Edge]], ...], list[tuple[Tree, ...]]] = {}
        for _ in range(parts if lost else 0):
            made = trees
            for node in lost:
                made = _best(change, packing, made, node, size, loads)
            for part, tree in zip(packing.passes, made, strict=True):
                loads.add(_new_edge_ends(change, part, tree), size)
            found.setdefault(tuple(frozenset(tree.up.items()) for tree in made), []).append(made)
        for same in found.values():
            yield number, len(same), same[0]
        if not lost:
            yield number, parts, trees


def _best(
    change: Change, packing: TreePacking, trees: tuple[Tree, ...], lost: int, size: float, loads: Loads
) -> tuple[Tree, ...]:
    """Return the tree without one node whose new edges finish first."""
    ranks, passes = len(change.old.ranks), packing.passes

    def seconds(part: TreePacking, tree: Tree) -> float:
        return loads.seconds(_new_edge_ends(change, part, tree), size)

    if lost == trees[0].root:
        ways = [
            tuple(tree.without(lost, root).prune_switches(ranks) for tree in trees)
            for root in _roots(trees, lost, ranks)
        ]
        return min(ways, key=lambda way: max(map(seconds, passes, way)))
    found = []
    for part, tree in zip(passes, trees, strict=True):
        if lost not in tree.up:
            found.append(tree)
            continue
        ways_of = [tree.without(lost, place).prune_switches(ranks) for place in _places(tree, lost, ranks)]
        found.append(min(ways_of, key=lambda way, part=part: seconds(part, way)))  # type: ignore[misc]
    return tuple(found)


def _places(tree: Tree, lost: int, ranks: int) -> list[int]:
    """List possible replacements of a lost inner node: its parent, and the ranks among its children."""
    below = [child for child in tree.children(lost) if child < ranks]
    return [tree.up[lost].parent, *below][:MOST_CANDIDATES]


def _roots(trees: tuple[Tree, ...], lost: int, ranks: int) -> list[int]:
    """List ranks that may replace a lost root, its children if there are any."""
    near = [child for tree in trees for child in tree.children(lost) if child < ranks]
    return list(dict.fromkeys(near or [node for node, _ in trees[0].parents_first() if node < ranks]))[:MOST_CANDIDATES]


def _new_edge_ends(change: Change, part: TreePacking, tree: Tree) -> list[tuple[int, int]]:
    """List source and target node of every new edge."""
    nodes = change.old.tree_nodes
    edges = [(nodes[edge.parent], nodes[child]) for child, edge in tree.up.items() if edge.number < 0]
    return edges if part.kind is not TreeKind.IN else [(target, source) for source, target in edges]


def _tree(part: TreePacking, number: int) -> Tree:
    first, last = part.edge_offset[number : number + 2].tolist()
    rows = zip(part.child[first:last].tolist(), part.parent[first:last].tolist(), range(first, last), strict=True)
    return Tree(int(part.root[number]), {child: Edge(parent, edge) for child, parent, edge in rows})


def columns(trees: list[Tree]) -> tuple[Ints, Ints, Ints, Ints]:
    """Return offsets, parents, children and numbers of edges, in the order of a packing."""
    edges = [list(tree.parents_first()) for tree in trees]
    offset = np.cumsum([0, *map(len, edges)])
    flat = [(edge.parent, child, edge.number) for tree in edges for child, edge in tree]
    parent, child, number = np.array(flat, dtype=np.int64).reshape(-1, 3).T
    return offset, parent, child, number


def served_trees(packing: TreePacking, lost: set[int], gone: tuple[Bools, ...]) -> float:
    """Return the fraction, by bytes, of lacking data that ranks still receive without lost nodes and ``gone`` edges."""
    wanted = came = 0
    for number, units in enumerate(packing.units.tolist()):
        trees = [_tree(part, number) for part in packing.passes]
        root = trees[0].root
        if root in lost and packing.kind is not TreeKind.BOTH:
            continue
        ranks = {node for node in trees[0].up if node not in lost} - {root}
        reached = [_reached_nodes(tree, lost, away) & ranks for tree, away in zip(trees, gone, strict=True)]
        summed = packing.kind is TreeKind.OUT or reached[0] == ranks
        if packing.kind is TreeKind.IN:
            wanted, came = wanted + units, came + units * summed
        else:
            also = packing.kind is TreeKind.BOTH  # then the root lacks the sum, too
            wanted += units * (len(ranks) + (also and root not in lost))
            came += units * (len(reached[-1]) + also) if summed and root not in lost else 0
    return came / wanted if wanted else 1.0


def _reached_nodes(tree: Tree, lost: set[int], gone: Bools) -> set[int]:
    reached = {tree.root} - lost
    for child, edge in tree.parents_first():
        if edge.parent in reached and child not in lost and not gone[edge.number]:
            reached.add(child)
    return reached
