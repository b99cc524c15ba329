"""Drawing of trees of a packing: roots on top, a level for every edge below."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import ceil

from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

from ...core.errors import InputError
from ...core.topology import Topology
from ...core.trees import TreeKind, TreePacking
from .look import COLOURS, new_figure, short
from .schedule_view import bytes_unit

TREES = 4  #: Trees that are drawn if none are chosen.
_WIDTH_IN = 5.4  #: Least width of the plot; its title needs as much.
_NAMED = 24  #: Names are written into the nodes of trees that are no wider than this.
_EXACT = 10_000  #: Shares of the data with a smaller denominator are shown as they are.
_LETTERS = 4  #: Longer names do not fit into nodes.

_WORDS = {
    TreeKind.OUT: "data flows down (broadcast)",
    TreeKind.IN: "data flows up (reduce)",
    TreeKind.BOTH: "data flows up (reduce), then down (broadcast)",
}

_PASSES = {TreeKind.OUT: " \u2193", TreeKind.IN: " \u2191"}  #: Arrow heads tell the two halves of in-out trees apart.
_Edges = list[tuple[int, int, int]]  #: Edges of a tree: parent, child, and the number of links on the way.


def draw(title: str, topology: Topology, packing: TreePacking, trees: Sequence[int] = ()) -> Figure:
    """Draw the chosen trees, or the first ones; dashed edges use more than one link.

    Reduction and broadcast of in-out trees are drawn side by side.
    """
    passes = packing.passes
    panels = [(tree, part) for tree in select_trees(packing, trees, TREES // len(passes)) for part in passes]
    edges = [_edges(part, tree) for tree, part in panels]
    spots = [layout(int(packing.root[tree]), below) for (tree, _), below in zip(panels, edges, strict=True)]
    columns = 1 if len(panels) == 1 else 2
    rows = ceil(len(panels) / columns)
    levels = [max(level for _, level in spot.values()) for spot in spots]
    deep = [max(levels[row * columns : (row + 1) * columns]) for row in range(rows)]
    inches = [0.5 + min(4.0, 0.4 * (depth + 1)) for depth in deep]
    wide = max(x for spot in spots for x, _ in spot.values()) + 1
    figure = new_figure(0.8 + sum(inches), max(_WIDTH_IN, columns * min(5.0, 0.5 + 0.2 * wide)))
    grid = figure.subplots(rows, columns, squeeze=False, height_ratios=inches).ravel()
    for index, axes in enumerate(grid):
        axes.set_axis_off()
        axes.set(xticks=[], yticks=[])
        if index < len(panels):
            tree, part = panels[index]
            _tree(axes, topology, part, tree, edges[index], spots[index])
            axes.set_ylim(deep[index // columns] + 0.5, -0.5)
    count = len(panels) // len(passes)
    which = f"{count} of {len(packing):,} trees" if trees else f"the first {count} of {len(packing):,} trees"
    which = f"{count} trees" if count == len(packing) else which
    ranks = "" if max(map(len, topology.ranks)) <= _LETTERS else "; nodes are named by rank"
    figure.suptitle(f"{short(title, 60)}: {which}\n{_WORDS[packing.kind]}; dashed: over several links{ranks}", size=7)
    return figure


def select_trees(packing: TreePacking, trees: Sequence[int], first: int) -> list[int]:
    """Return the chosen trees, or the first few; refuse a packing without trees or without the chosen one."""
    if not len(packing):
        raise InputError("there is no tree to draw")
    for tree in trees:
        if not 0 <= tree < len(packing):
            raise InputError(f"there is no tree {tree}; expected one from 0 to {len(packing) - 1}")
    return list(dict.fromkeys(trees)) or list(range(min(first, len(packing))))


def weight_of(packing: TreePacking, tree: int) -> str:
    """Format the weight of a tree: bytes, and share of the data."""
    size = int(packing.units[tree]) * packing.unit_bytes
    unit, scale = bytes_unit(float(size))
    share = Fraction(int(packing.units[tree]), sum(packing.units.tolist()))
    part = str(share) if share.denominator < _EXACT else f"{float(share):.3%}"
    return f"{float(size) / scale:.4g} {unit}, {part} of the data"


def _edges(packing: TreePacking, tree: int) -> _Edges:
    first, end = int(packing.edge_offset[tree]), int(packing.edge_offset[tree + 1])
    hops = (packing.path_offset[first + 1 : end + 1] - packing.path_offset[first:end]).tolist()
    return list(zip(packing.parent[first:end].tolist(), packing.child[first:end].tolist(), hops, strict=True))


def layout(root: int, edges: _Edges) -> dict[int, tuple[float, int]]:
    """Place every rank of a tree: leaves side by side, parents centred over their children.

    Return the place of each rank from the left, and its level from 0 at the root. An edge (parent, child, links) comes
    after the one that reaches its parent.
    """
    children: dict[int, list[int]] = {}
    level = {root: 0}
    for parent, child, _ in edges:
        children.setdefault(parent, []).append(child)
        level[child] = level.get(parent, 0) + 1
    order, stack = [], [root]
    while stack:
        order.append(node := stack.pop())
        stack.extend(reversed(children.get(node, ())))
    place: dict[int, float] = {}
    for index, leaf in enumerate(node for node in order if node not in children):
        place[leaf] = float(index)
    for node in reversed(order):
        if node in children:
            place[node] = (place[children[node][0]] + place[children[node][-1]]) / 2
    return {node: (place[node], level[node]) for node in order}


def _tree(
    axes: Axes, topology: Topology, packing: TreePacking, tree: int, edges: _Edges, spots: dict[int, tuple[float, int]]
) -> None:
    """Draw one tree."""
    for dashed in (False, True):
        lines = [(spots[a], spots[b]) for a, b, hops in edges if (hops > 1) is dashed]
        style = (0, (3, 2)) if dashed else "solid"
        axes.add_collection(LineCollection(lines, colors="#777777", linewidths=0.8, linestyles=[style]))
    root = int(packing.root[tree])
    names = [topology.nodes[node].name for node in topology.tree_nodes]
    x, y = zip(*spots.values(), strict=True)
    wide = max(x) + 1
    named = wide <= _NAMED
    plain = max(map(len, names)) <= _LETTERS
    colours = [COLOURS[1] if rank == root else COLOURS[5] for rank in spots]
    axes.scatter(x, y, s=95 if named else 12, c=colours, edgecolors="white", linewidths=0.4, zorder=2)
    if named:
        for rank, spot in spots.items():
            axes.text(*spot, short(names[rank], _LETTERS) if plain else str(rank), size=5, ha="center", va="center")
    axes.set_xlim(-0.7, max(x) + 0.7)
    title = f"tree {tree}{_PASSES[packing.kind]}, root {short(names[root], 12)}: {weight_of(packing, tree)}"
    axes.set_title(title, loc="left", size=6.5)
