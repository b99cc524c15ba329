"""Replacement of a lost node: chunk by chunk by one that has exchanged the chunk with it, or in trees.

Data sent to the lost node goes to its *stand-in*, which also makes the lost node's sends. So only the lost node's
partners send or receive anything different. The stand-in is chosen by the present loads of its links. Sends of a chunk
are replayed to find the contributions that every node has when some are missing: bits of an integer; a chunk that is
only copied has one. In a tree the children of the lost node get another parent, and if it was the root, another root.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from itertools import chain, pairwise
from operator import or_
from typing import NamedTuple

import numpy as np

from ...core.errors import InputError, Unsupported
from ...core.grouping import group_by_key
from ...core.schedule import Bools, Ints, Schedule, StepSchedule
from ...core.trees import TreeKind, TreePacking
from .changes import Change, Loads


@dataclass(frozen=True)
class Move:
    """Send of a chunk."""

    source: int  #: sending and receiving node of the chunk
    target: int
    reduce: bool  #: True if the target adds the data to its own
    read: float  #: times at which the source is read and the target written; at equal times writes come before reads
    write: float
    send: int  #: index of this send, or of the send that it replaces, in the schedule


@dataclass(frozen=True)
class ChunkMoves:
    """One chunk of a schedule with its sends."""

    chunk: int
    reduced: bool  #: True if contributions are summed
    holdings: Mapping[int, int]  #: contributions of nodes at the start
    receivers: tuple[int, ...]  #: nodes that need all contributions at the end
    moves: list[Move]

    @property
    def whole(self) -> int:
        """All contributions together."""
        return reduce(or_, self.holdings.values(), 0)

    @property
    def lacking(self) -> list[int]:
        """Nodes that need contributions they do not have at the start; none without holders."""
        whole = self.whole
        return [node for node in self.receivers if self.holdings.get(node, 0) != whole] if whole else []

    def without(self, losses: set[int]) -> ChunkMoves:
        """Return the chunk without some nodes as holders and receivers, with the same sends."""
        holdings = {node: what for node, what in self.holdings.items() if node not in losses}
        return replace(self, holdings=holdings, receivers=tuple(node for node in self.receivers if node not in losses))


def ways(answer: StepSchedule | Schedule, node_of: tuple[int, ...]) -> Iterator[ChunkMoves]:
    """Yield every chunk with its sends; ``node_of`` is the node of every rank."""
    sends, chunks = answer.sends, answer.chunks
    if isinstance(answer, StepSchedule):
        read, write = 2.0 * answer.step, 2.0 * answer.step + 1
    else:
        read, write = answer.start_s, answer.end_s
    order = np.argsort(sends.chunk, kind="stable")
    ends = np.searchsorted(sends.chunk[order], np.arange(len(chunks) + 1))
    columns = sends.source, sends.target, sends.reduce, read, write
    rows = list(zip(*(column[order].tolist() for column in columns), order.tolist(), strict=True))
    for chunk, (first, last) in enumerate(pairwise(ends.tolist())):
        reduced, holders = bool(chunks.reduced[chunk]), chunks.groups[int(chunks.held_by[chunk])]
        holdings = {node_of[rank]: 1 << place if reduced else 1 for place, rank in enumerate(holders)}
        receivers = tuple(node_of[rank] for rank in chunks.groups[int(chunks.needed_by[chunk])])
        yield ChunkMoves(chunk, reduced, holdings, receivers, [Move(*row) for row in rows[first:last]])


def drop_repeated_sums(way: ChunkMoves, moves: Iterable[Move]) -> list[Move] | None:
    """Return the useful ones of some sends, adjusted to count no contribution twice; None if impossible.

    A send that brings nothing new is left out. One that brings all that its target has, and more, becomes a copy;
    an adding send to a target without data still adds, so that it may come in any order with others. None if a
    contribution would count twice, or not all receivers are served.
    """
    has = dict(way.holdings)
    useful: list[Move] = []
    for move, what in _writes(moves, has):
        there = has.get(move.target, 0)
        if what | there == there:
            continue
        adds = bool(what & there != there) or (move.reduce and not there)
        if adds and what & there:
            return None
        useful.append(replace(move, reduce=adds))
        has[move.target] = there | what
    whole = way.whole
    return useful if all(has.get(node, 0) == whole for node in way.receivers) else None


def depths(answer: StepSchedule | Schedule, node_of: tuple[int, ...]) -> Ints:
    """Return the length of the longest chain of sends of the same chunk before each send."""
    depth = np.zeros(len(answer.sends), dtype=np.int64)
    for way in ways(answer, node_of):
        after: dict[int, int] = {}
        for move, deep in _writes(way.moves, after):
            depth[move.send] = deep
            after[move.target] = max(after.get(move.target, 0), deep + 1)
    return depth


def _writes(moves: Iterable[Move], has: dict[int, int]) -> Iterator[tuple[Move, int]]:
    """Yield sends in the order of their writes, with the data they have read."""
    sends = list(moves)
    events = [(move.read, 1, number) for number, move in enumerate(sends)]
    events = sorted(events + [(move.write, 0, number) for number, move in enumerate(sends)])
    carried: dict[int, int] = {}
    for _, reads, number in events:
        if reads:
            carried[number] = has.get(sends[number].source, 0)
        elif number in carried:
            yield sends[number], carried[number]
        else:
            raise InputError("a send has zero duration; expected a positive one", place="sends")


def served_share(answer: StepSchedule | Schedule, node_of: tuple[int, ...], losses: set[int], dead: set[int]) -> float:
    """Return the fraction, by bytes, of lacking data that ranks still receive without lost nodes and ``dead`` sends."""
    total = came = 0
    for way in ways(answer, node_of):
        rest = way.without(losses)
        whole, lacking = rest.whole, rest.lacking
        if not lacking:
            continue
        has = dict(rest.holdings)
        moves = [m for m in way.moves if m.send not in dead and m.source not in losses and m.target not in losses]
        for move, what in _writes(moves, has):
            if what:
                has[move.target] = has.get(move.target, 0) | what if move.reduce else what
        units = int(answer.chunks.units[way.chunk])
        total += units * len(lacking)
        came += units * sum(has.get(node, 0) == whole for node in lacking)
    return came / total if total else 1.0


MOST_CANDIDATES = 16  #: nodes that are tried in place of a lost one, for every chunk


def stand_in(change: Change, answer: StepSchedule | Schedule, loads: Loads) -> Iterator[list[Move]]:
    """Yield the sends of every chunk after others stand in for lost nodes.

    ``answer`` is correct on the old network; ``loads`` are those of the remaining sends. A chunk whose holders, or
    receivers, are all gone has none. Raise Unsupported if sums would count a contribution twice with any stand-in.
    """
    losses, sizes = change.losses, answer.chunks.sizes_bytes
    for way in ways(answer, change.old.rank_nodes):
        if not way.without(set(losses)).lacking:
            yield []
            continue
        rest = way
        for node in losses:
            rest = _replace_node(rest.without({node}), node, float(sizes[way.chunk]), loads)
        yield rest.moves


def _replace_node(way: ChunkMoves, old: int, size: float, loads: Loads) -> ChunkMoves:
    if not any(old in (move.source, move.target) for move in way.moves):
        return way
    rest = [move for move in way.moves if old not in (move.source, move.target)]
    if (useful := drop_repeated_sums(way, rest)) is not None:
        return replace(way, moves=useful)
    best: tuple[float, list[Move], list[Move]] | None = None
    for node in _candidates(way, old):
        new_end = {old: node}
        moves = (
            replace(m, source=new_end.get(m.source, m.source), target=new_end.get(m.target, m.target))
            for m in way.moves
        )
        useful = drop_repeated_sums(way, [move for move in moves if move.source != move.target])
        if useful is None:
            continue
        stay = {move.send: move for move in rest}
        new = [move for move in useful if move.send not in stay]
        seconds = loads.seconds(((move.source, move.target) for move in new), size)
        if best is None or seconds < best[0]:
            best = seconds, useful, new
    if best is None:
        raise Unsupported(f"sums of chunk {way.chunk} count a contribution twice with any replacement node")
    loads.add(((move.source, move.target) for move in best[2]), size)
    return replace(way, moves=best[1])


def _candidates(way: ChunkMoves, old: int) -> list[int]:
    """List nodes that exchanged the chunk with the lost one, and other initial holders of copies."""
    near = [move.source for move in way.moves if move.target == old]
    near += [move.target for move in way.moves if move.source == old]
    near += [] if way.reduced else list(way.holdings)
    return list(dict.fromkeys(near))[:MOST_CANDIDATES]


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
        below = group_by_key((edge.parent, child) for child, edge in self.up.items())
        nodes = [self.root]
        for node in nodes:
            nodes += below[node]
        return ((child, self.up[child]) for child in nodes[1:])

    def without(self, old: int, place: int) -> Tree:
        """Return the tree with another node in the place of a lost one."""
        up = dict(self.up)
        hanging = self.children(old)
        above = up.pop(old).parent if old != self.root else None
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
    ``parts`` equal ones, of which equal results are merged: number of the tree in the packing, number of its parts, and
    the new tree of every pass. In-trees and out-trees whose root is lost are dropped.
    """
    number_of = {node: number for number, node in enumerate(change.old.tree_nodes)}
    losses = [number_of[node] for node in change.losses]
    for number in range(len(packing)):
        trees = tuple(_tree(part, number) for part in packing.passes)
        if trees[0].root in losses and packing.kind is not TreeKind.BOTH:
            continue
        size = float(int(packing.units[number]) * packing.unit_bytes) / parts
        groups: dict[tuple[frozenset[tuple[int, Edge]], ...], list[tuple[Tree, ...]]] = {}
        for _ in range(parts if losses else 0):
            variant = trees
            for node in losses:
                variant = _best(change, packing, variant, node, size, loads)
            for part, tree in zip(packing.passes, variant, strict=True):
                loads.add(_new_edge_ends(change, part, tree), size)
            groups.setdefault(tuple(frozenset(tree.up.items()) for tree in variant), []).append(variant)
        for same in groups.values():
            yield number, len(same), same[0]
        if not losses:
            yield number, parts, trees


def _best(
    change: Change, packing: TreePacking, trees: tuple[Tree, ...], old: int, size: float, loads: Loads
) -> tuple[Tree, ...]:
    """Return the tree without one node whose new edges finish first.

    A lost root is replaced by a rank, one of its children if there are any, and another node by its parent or a child.
    """
    ranks, passes = len(change.old.ranks), packing.passes

    def seconds(part: TreePacking, tree: Tree) -> float:
        return loads.seconds(_new_edge_ends(change, part, tree), size)

    below = [[child for child in tree.children(old) if child < ranks] for tree in trees]
    if old == trees[0].root:
        near = [*chain(*below)] or [node for node, _ in trees[0].parents_first() if node < ranks]
        roots = list(dict.fromkeys(near))[:MOST_CANDIDATES]
        ways = [tuple(tree.without(old, root).prune_switches(ranks) for tree in trees) for root in roots]
        return min(ways, key=lambda way: max(map(seconds, passes, way)))
    best = []
    for part, tree, children in zip(passes, trees, below, strict=True):
        places = [tree.up[old].parent, *children][:MOST_CANDIDATES] if old in tree.up else []
        ways_of = [tree.without(old, place).prune_switches(ranks) for place in places]
        best.append(min(ways_of or [tree], key=lambda way, part=part: seconds(part, way)))  # type: ignore[misc]
    return tuple(best)


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


def served_trees(packing: TreePacking, losses: set[int], dead: tuple[Bools, ...]) -> float:
    """Return the fraction, by bytes, of lacking data that ranks still receive without lost nodes and ``dead`` edges."""
    total = came = 0
    for number, units in enumerate(packing.units.tolist()):
        trees = [_tree(part, number) for part in packing.passes]
        root = trees[0].root
        if root in losses and packing.kind is not TreeKind.BOTH:
            continue
        ranks = {node for node in trees[0].up if node not in losses} - {root}
        reached = [_reached_nodes(tree, losses, away) & ranks for tree, away in zip(trees, dead, strict=True)]
        summed = packing.kind is TreeKind.OUT or reached[0] == ranks
        if packing.kind is TreeKind.IN:
            total, came = total + units, came + units * summed
        else:
            also = packing.kind is TreeKind.BOTH  # then the root lacks the sum, too
            total += units * (len(ranks) + (also and root not in losses))
            came += units * (len(reached[-1]) + also) if summed and root not in losses else 0
    return came / total if total else 1.0


def _reached_nodes(tree: Tree, losses: set[int], dead: Bools) -> set[int]:
    reached = {tree.root} - losses
    for child, edge in tree.parents_first():
        if edge.parent in reached and child not in losses and not dead[edge.number]:
            reached.add(child)
    return reached
