"""Positions of nodes: boxes side by side, neighbours within a box close to each other."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, pi, sqrt

import numpy as np

from ...core.schedule import Floats
from ...core.topology import Topology

#: Boxes of more nodes are drawn as circles.
_MOST = 64

#: Steps of the majorization, and starts that it is tried from.
_STEPS, _STARTS = 300, 12

#: Rounds in which nodes are pushed off links, the distance that they should have, and what a round does of the way.
_PUSHES, _CLEAR, _SHARE = 200, 0.5, 0.15

#: Space between boxes, in distances between neighbours.
_BETWEEN = 1.6


@dataclass(frozen=True, eq=False)
class Layout:
    """Positions of the nodes of a network.

    Parameters
    ----------
    places : dict of int to tuple of float
        Right and up, by position of the node; switches between boxes have no place.
    boxes : dict of str to tuple of int
        Nodes of each box by its name; one box without a name if the network has none.
    """

    places: dict[int, tuple[float, float]]
    boxes: dict[str, tuple[int, ...]]


def layout(topology: Topology) -> Layout:
    """Place the nodes of a network, the same for the same network.

    Boxes are recognized by names: ``box0.gpu3`` is in ``box0``. Boxes with the same wiring look alike.
    """
    boxes = _boxes(topology)
    ranks = set(topology.rank_nodes)
    known: dict[tuple[object, ...], Floats] = {}
    shapes: list[Floats] = []
    for nodes in boxes.values():
        place = {node: index for index, node in enumerate(nodes)}
        wires = frozenset((place[a], place[b]) for a, b in topology.link_ends if a in place and b in place)
        switches = tuple(place[node] for node in nodes if node not in ranks)
        key = (len(nodes), wires, switches)
        if key not in known:
            known[key] = shape_of(len(nodes), wires, switches)
        shapes.append(known[key])
    # Standing boxes go side by side, at most so many that the whole is not much wider than high.
    widths, heights = (max((float(np.ptp(shape[:, i])) for shape in shapes), default=0) + _BETWEEN for i in (0, 1))
    columns = len(shapes) if len(shapes) < 3 else ceil(sqrt(len(shapes) * heights / widths))
    places: dict[int, tuple[float, float]] = {}
    for index, (nodes, shape) in enumerate(zip(boxes.values(), shapes, strict=True)):
        row, column = divmod(index, columns)
        for node, (x, y) in zip(nodes, shape.tolist(), strict=True):
            places[node] = (x + column * widths, y - row * heights)
    return Layout(places, boxes)


def _boxes(topology: Topology) -> dict[str, tuple[int, ...]]:
    """Group nodes by the first part of their names; one box if a rank's name has one part only."""
    if not all("." in name for name in topology.ranks):
        return {"": tuple(range(len(topology.nodes)))}
    boxes: dict[str, list[int]] = {}
    for index, node in enumerate(topology.nodes):
        box, dot, _ = node.name.partition(".")
        if dot:
            boxes.setdefault(box, []).append(index)
    return {name: tuple(nodes) for name, nodes in boxes.items()}


def shape_of(count: int, wires: frozenset[tuple[int, int]], switches: tuple[int, ...]) -> Floats:
    """Place the nodes of one box around its centre.

    Ranks wired to switches only are on a circle around these.
    """
    if count > _MOST or count < 3 or all(a in switches or b in switches for a, b in wires):
        return circle_of(count, switches)
    far = _distances(count, wires)
    found = min((_majorize_stress(far, start) for start in range(_STARTS)), key=lambda shape: _stress(shape, far))
    found = _clear_links(found, wires)
    found = found - found.mean(axis=0)
    _, axes = np.linalg.eigh(found.T @ found)
    found = found @ axes
    first = found[0]  # mirrored so that the first node is at the upper left
    return np.asarray(found * np.where(first > 0, [-1.0, 1.0], [1.0, -1.0]), dtype=np.float64)


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
    joined = np.isfinite(far)
    return np.where(joined, far, far[joined].max() + 1)


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
    """Push nodes and the links of others apart until they can be told from each other."""
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
