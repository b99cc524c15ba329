"""Positions of nodes in pictures of networks: boxes side by side, and for some pictures tiers of switches above."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, pi, sqrt

import numpy as np

from ...core.grouping import group_by_key
from ...core.network_views import fabric_of
from ...core.schedule import Floats
from ...core.topology import Topology

_LARGEST_FREE = 64  #: Larger boxes are drawn as circles.
_STEPS, _STARTS = 300, 12  #: Steps of stress majorization, and random starts, of which the best counts.

#: Rounds in which nodes are pushed off links, the distance that they should have, and what a round does of the way.
_PUSHES, _CLEAR, _SHARE = 200, 0.5, 0.15

_SAMPLES = 41  #: Points of an arc.

#: Space between boxes, between rows of switches above them and within a box, and between switches of a row at least, in
#: distances between neighbours.
_BOX_GAP, _ROW, _ROW_INSIDE, _APART = 1.6, 2.4, 1.6, 1.2

_LARGEST_GRID = 256  #: Larger networks without switches are not drawn as grids.
_IN_A_ROW = 17  #: Boxes of fewer ranks are drawn in a row if all have links to switches outside, such as rails.
_IN_A_COLUMN = 4  #: Up to so many boxes stand below each other if each of their ranks has a rail.
_ASPECT = 1.3  #: Boxes are so arranged that the plot is about so much wider than high.


@dataclass(frozen=True, eq=False)
class Layout:
    """Positions of the nodes of a network."""

    #: Right and up, by position of the node; in :func:`layout_boxes` switches between boxes have no place
    places: dict[int, tuple[float, float]]
    #: Nodes of each box by its name; names that begin with a space are generated, and one box alone has none
    boxes: dict[str, tuple[int, ...]]


def layout_boxes(topology: Topology) -> Layout:
    """Place boxes side by side, for plots of trees, the same for the same network.

    Boxes are recognized by names: ``box0.gpu3`` is in ``box0``. Boxes with the same wiring look alike.
    """
    boxes = _group_boxes(_by_names(topology) or dict.fromkeys(range(len(topology.nodes)), ""))
    ranks = set(topology.rank_nodes)
    cache: dict[tuple[object, ...], Floats] = {}
    shapes: list[Floats] = []
    for nodes in boxes.values():
        place = {node: index for index, node in enumerate(nodes)}
        wires = frozenset((place[a], place[b]) for a, b in topology.link_ends if a in place and b in place)
        switches = tuple(place[node] for node in nodes if node not in ranks)
        key = (len(nodes), wires, switches)
        if key not in cache:
            cache[key] = shape_of(len(nodes), wires, switches)
        shapes.append(cache[key])
    # Standing boxes go side by side, at most so many that the whole is not much wider than high.
    widths, heights = (max((float(np.ptp(shape[:, i])) for shape in shapes), default=0) + _BOX_GAP for i in (0, 1))
    columns = len(shapes) if len(shapes) < 3 else ceil(sqrt(len(shapes) * heights / widths))
    return Layout(_arrange_boxes(boxes, shapes, columns, widths, heights), boxes)


def _arrange_boxes(
    boxes: Mapping[str, tuple[int, ...]], shapes: Sequence[Floats], columns: int, widths: float, heights: float
) -> dict[int, tuple[float, float]]:
    places: dict[int, tuple[float, float]] = {}
    for index, (nodes, shape) in enumerate(zip(boxes.values(), shapes, strict=True)):
        row, column = divmod(index, columns)
        for node, (x, y) in zip(nodes, shape.tolist(), strict=True):
            places[node] = (x + column * widths, y - row * heights)
    return places


def shape_of(count: int, wires: frozenset[tuple[int, int]], switches: tuple[int, ...]) -> Floats:
    """Place the nodes of one box around its centre; ranks wired to switches only are on a circle around these."""
    if count > _LARGEST_FREE or count < 3 or all(a in switches or b in switches for a, b in wires):
        return circle_of(count, switches)
    far = _distances(count, wires)
    shape = min((_majorize_stress(far, start) for start in range(_STARTS)), key=lambda shape: _stress(shape, far))
    shape = _clear_links(shape, wires)
    shape = shape - shape.mean(axis=0)
    _, axes = np.linalg.eigh(shape.T @ shape)
    shape = shape @ axes
    first = shape[0]  # mirrored so that the first node is at the upper left
    return np.asarray(shape * np.where(first > 0, [-1.0, 1.0], [1.0, -1.0]), dtype=np.float64)


def circle_of(count: int, switches: tuple[int, ...]) -> Floats:
    """Place ranks in order on a circle, clockwise from the top, and switches in a row in the middle."""
    around = np.array([node for node in range(count) if node not in switches], dtype=np.int64)
    turn = 2 * pi * np.arange(len(around)) / max(len(around), 1)
    radius = max(len(around) / (2 * pi), len(switches) / 2)
    places = np.zeros((count, 2))
    places[around] = np.stack([np.sin(turn), np.cos(turn)], axis=1) * radius
    places[list(switches), 0] = np.arange(len(switches)) - (len(switches) - 1) / 2
    return places


def _distances(count: int, wires: frozenset[tuple[int, int]]) -> Floats:
    """Return the undirected hop distance of any two nodes; one more than the largest if disconnected."""
    from scipy.sparse.csgraph import shortest_path

    near = np.zeros((count, count))
    for a, b in wires:
        near[a, b] = 1
    far = shortest_path(near, directed=False, unweighted=True)
    is_joined = np.isfinite(far)
    return np.where(is_joined, far, far[is_joined].max() + 1)


def _majorize_stress(far: Floats, start: int) -> Floats:
    """Minimize stress by majorization (Gansner, Koren and North, 2004), weights d^-2, from a given start."""
    count = len(far)
    shape: Floats = np.random.default_rng(start).normal(size=(count, 2)) * far.max() / 2
    weight = 1.0 / np.maximum(far, 1.0) ** 2
    np.fill_diagonal(weight, 0.0)
    inverse = np.asarray(np.linalg.pinv(np.diag(weight.sum(axis=1)) - weight), dtype=np.float64)
    for _ in range(_STEPS):
        apart = shape[:, None] - shape[None]
        length = np.sqrt((apart**2).sum(axis=2))
        pull = weight * far / np.where(length > 0, length, 1.0)
        shape = inverse @ ((pull.sum(axis=1)[:, None] * shape) - pull @ shape)
    return shape


def _clear_links(shape: Floats, wires: frozenset[tuple[int, int]]) -> Floats:
    """Push nodes and links that do not end at them apart, until no link seems to end at them."""
    a, b = np.array(sorted({(min(pair), max(pair)) for pair in wires}), dtype=np.int64).reshape(-1, 2).T
    node = np.arange(len(shape))[:, None]
    own = (node == a) | (node == b)
    for _ in range(_PUSHES):
        along = shape[b] - shape[a]
        length = np.maximum((along**2).sum(axis=1), 1e-12)
        part = np.clip(((shape[:, None] - shape[a]) * along).sum(axis=2) / length, 0.0, 1.0)
        away = shape[:, None] - shape[a] - part[:, :, None] * along
        distance = np.maximum(np.sqrt((away**2).sum(axis=2)), 1e-9)
        push = np.where(own, 0.0, np.maximum(_CLEAR - distance, 0.0) / distance)[:, :, None] * away * _SHARE
        shape = shape + push.sum(axis=1)
        np.add.at(shape, a, -(push * (1 - part[:, :, None])).sum(axis=0))
        np.add.at(shape, b, -(push * part[:, :, None]).sum(axis=0))
    return shape


def _stress(shape: Floats, far: Floats) -> float:
    length = np.sqrt(((shape[:, None] - shape[None]) ** 2).sum(axis=2))
    return round(float(((length - far) ** 2 / np.maximum(far, 1.0) ** 2).sum()), 6)


def layout_with_tiers(topology: Topology) -> Layout:
    """Place boxes, found by names or switches, and tiers of other switches above, for plots of networks."""
    boxes, tiers = _group_boxes(_by_names(topology) or _by_switches(topology)), _tiers(topology)
    inside = {node for nodes in boxes.values() for node in nodes}
    rows = [[node for node in tier if node not in inside] for tier in tiers[1:]]
    shapes = [_box_shape(topology, nodes, tiers) for nodes in boxes.values()]
    widths, heights = (max(float(np.ptp(shape[:, i])) for shape in shapes) + _BOX_GAP for i in (0, 1))
    columns = ceil(sqrt(_ASPECT * len(shapes) * heights / widths))
    columns = max(columns, round(max(map(len, rows), default=0) * _APART / widths))
    columns = ceil(len(shapes) / ceil(len(shapes) / max(1, columns)))  # as many rows, none much shorter
    if len(boxes) <= _IN_A_COLUMN and sum(map(len, rows[:1])) * len(boxes) == len(topology.ranks):
        columns = 1  # ranks stand under their rails
    at = _arrange_boxes(boxes, shapes, columns, widths, heights)
    order = {node: index for nodes in boxes.values() for index, node in enumerate(nodes)}
    _place_above(topology, at, [row for row in rows if row], _ROW, columns * widths, order)
    return Layout(at, boxes)


def _tiers(topology: Topology) -> list[list[int]]:
    """Group nodes by hop distance from the nearest rank: ranks, switches at ranks, and so on."""
    import networkx as nx

    graph = nx.from_edgelist([*topology.link_ends, *((node, node) for node in range(len(topology.nodes)))])
    tiers = [sorted(layer) for layer in nx.bfs_layers(graph, topology.rank_nodes)]
    rest = sorted(set(graph).difference(*tiers))
    return [*tiers, rest] if rest else tiers


def _neighbours(topology: Topology) -> list[set[int]]:
    near: list[set[int]] = [set() for _ in topology.nodes]
    for a, b in topology.link_ends:
        near[a].add(b)
        near[b].add(a)
    return near


def _group_boxes(box: Mapping[int, str]) -> dict[str, tuple[int, ...]]:
    return {name: tuple(nodes) for name, nodes in group_by_key((box[node], node) for node in sorted(box)).items()}


def _by_names(topology: Topology) -> dict[int, str]:
    """Return the box of each node by names such as ``box0.gpu3``; empty if a rank has no such name."""
    if not all("." in name for name in topology.ranks):
        return {}
    prefixes = {name.partition(".")[0] for name in topology.ranks}
    parts = ((node, each.name.partition(".")) for node, each in enumerate(topology.nodes))
    return {node: prefix for node, (prefix, dot, _) in parts if dot and prefix in prefixes}


def _by_switches(topology: Topology) -> dict[int, str]:
    """Group ranks by their first switch, with this switch if it has no other ranks."""
    first: dict[int, int] = {}
    ranks = set(topology.rank_nodes)
    for a, b in topology.link_ends:
        if a in ranks and b not in ranks:
            first.setdefault(a, b)
    if len(set(first.values())) > len(ranks) // 2:
        return dict.fromkeys(range(len(topology.nodes)) if not topology.switches else ranks, "")
    box = {rank: f" {topology.nodes[first[rank]].name}" if rank in first else "" for rank in ranks}
    near = _neighbours(topology)
    for switch in set(first.values()):
        if len({box[other] for other in near[switch] & ranks}) == 1:
            box[switch] = f" {topology.nodes[switch].name}"
    return box


def _box_shape(topology: Topology, nodes: tuple[int, ...], tiers: list[list[int]]) -> Floats:
    """Place the nodes of a box on a grid, on a circle, in rows, or by their links."""
    place, ranks = {node: index for index, node in enumerate(nodes)}, set(topology.rank_nodes)
    wires = frozenset((place[a], place[b]) for a, b in topology.link_ends if a in place and b in place)
    switches = tuple(place[node] for node in nodes if node not in ranks)
    if len(nodes) == len(topology.nodes) and not switches and 8 < len(nodes) <= _LARGEST_GRID:
        fabric = fabric_of(topology)
        if fabric is not None and len(fabric.sizes) > 1:
            return _grid(fabric.sizes)
    outside = {a for a, b in topology.link_ends if a in place and b not in place}
    to_switches = bool(wires) and all((a in switches) != (b in switches) for a, b in wires)
    if to_switches and len(nodes) - len(switches) < _IN_A_ROW and outside.issuperset(ranks & place.keys()):
        return _row(len(nodes), switches)
    if any(a in switches and b in switches for a, b in wires):
        near, inside = _neighbours(topology), ranks & place.keys()
        low = [node for node in nodes if near[node] == inside]  # switches of ranks alone, such as NVSwitches
        rows = [[node for node in tier if node in place and node not in low] for tier in tiers]
        at = {node: (float(index), 0.0) for index, node in enumerate(rows[0])}
        _place_above(topology, at, [row for row in rows[1:] if row], _ROW_INSIDE, len(rows[0]), {})
        middle = (len(rows[0]) - len(low)) / 2
        at |= {node: (middle + index, -_ROW_INSIDE) for index, node in enumerate(low)}
        return np.array([at[node] for node in nodes])
    if len(wires) == len(nodes) * (len(nodes) - 1):
        return circle_of(len(nodes), ()) if outside.isdisjoint(ranks) else _arch(len(nodes))
    return shape_of(len(nodes), wires, switches)


def _row(count: int, switches: tuple[int, ...]) -> Floats:
    """Place ranks in a row, and switches of the box in a row below."""
    row = np.array([index for index in range(count) if index not in switches])
    places = np.zeros((count, 2))
    places[row, 0] = np.arange(len(row))
    places[list(switches), 0] = (len(row) - 1) / 2 + (np.arange(len(switches)) - (len(switches) - 1) / 2) * _APART
    places[list(switches), 1] = -_ROW_INSIDE
    return places


def _arch(count: int) -> Floats:
    """Place ranks on the upper half of a circle, so that each sees the switches above."""
    turn = pi * np.arange(count) / max(count - 1, 1)
    return np.stack([-np.cos(turn), np.sin(turn)], axis=1) * max(count / 2, 1.0)


def _grid(sizes: tuple[int, ...]) -> Floats:
    """Place a fabric on a grid, each dimension along the shorter side so far, outer ones as blocks with gaps."""
    number = np.arange(int(np.prod(sizes)))
    places, side = np.zeros((len(number), 2)), [1.0, 1.0]
    for d, size in enumerate(sizes):
        coordinate, number = number % size, number // size
        gap = 0.8 if d > 1 else 0.0
        columns = size
        if d > 1 and size > 4:
            columns = max(1, round(sqrt(_ASPECT * size * side[1] / side[0])))
            columns = ceil(size / ceil(size / columns))
        elif side[0] > side[1]:
            columns = 1
        places[:, 0] += coordinate % columns * (side[0] + gap)
        places[:, 1] -= coordinate // columns * (side[1] + gap)
        side = [columns * (side[0] + gap), ceil(size / columns) * (side[1] + gap)]
    return places


def _place_above(
    topology: Topology,
    at: dict[int, tuple[float, float]],
    rows: list[list[int]],
    step: float,
    width: float,
    order: Mapping[int, int],
) -> None:
    """Place rows of switches above all placed nodes, each near its neighbours, or rails in the ranks' order."""
    near = _neighbours(topology)
    x, y = zip(*at.values(), strict=True)
    middle, top = (min(x) + max(x)) / 2, max(y)
    for row in rows:
        top += step
        below = {node: [other for other in near[node] if other in at] for node in row}
        rails = all(len({order.get(other, -1 - other) for other in below[node]}) == 1 for node in row)
        if rails and len({order.get(others[0]) for others in below.values()}) == len(row):
            row.sort(key=lambda node: order.get(below[node][0], node))
        else:
            pulls = {node: float(np.mean([at[other][0] for other in below[node]] or [middle])) for node in row}
            row.sort(key=lambda node: (round(pulls[node] / 2), node))
        apart = max(_APART, min(3.0, width / len(row)))
        for index, node in enumerate(row):
            at[node] = (middle + (index - (len(row) - 1) / 2) * apart, top)


def arc_of(start: Floats, end: Floats, bend: float) -> Floats:
    """Return points of an arc between two places, a parabola as matplotlib draws it."""
    (a, b), (c, d) = start, end
    middle = np.array([(a + c) / 2 + bend * (d - b), (b + d) / 2 - bend * (c - a)])
    t = np.linspace(0, 1, _SAMPLES)[:, None]
    return np.asarray((1 - t) ** 2 * start + 2 * t * (1 - t) * middle + t**2 * end, dtype=np.float64)


def first_clear_bend(start: Floats, end: Floats, bends: Sequence[float], others: Floats, clear: float) -> float:
    """Return the first bend whose arc passes all other nodes at a distance, else the one with the most room."""

    def room(bend: float) -> float:
        apart = arc_of(start, end, bend)[1:-1, None] - others
        return float(np.sqrt((apart**2).sum(axis=2)).min(initial=np.inf))

    rooms = [room(bend) for bend in bends]
    return next((bend for bend, free in zip(bends, rooms, strict=True) if free > clear), bends[rooms.index(max(rooms))])
