"""Recognition of grids, and cycles through all ranks of a group, over neighbours if possible."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from math import gcd, prod

import numpy as np

from ...algorithms.graphs.distances import route
from ...algorithms.graphs.translations import ColouredNetwork, find_translations, products_of
from ...algorithms.schedules.problem import GroupProblem
from ...core.grouping import group_by_key
from ...core.schedule import Ints
from ...core.topology import NodeKind, Topology
from ...core.trees import orbit_of, orbits_under, power_of

_MOST_ORBITS = 1000  #: Orbits through which one path is searched for.
_VISITS = 200  #: Nodes that the search for a cycle may visit, per rank.


@dataclass(frozen=True)
class Lattice:
    """A grid whose nodes are numbered along the first dimension, then the second, and so on.

    ``sizes`` are those of the dimensions, the innermost first; ``closed`` says whether their lines are closed to rings;
    those of size 2 are.
    """

    sizes: tuple[int, ...]
    closed: tuple[bool, ...]

    def coordinate(self, dimension: int) -> Ints:
        """Coordinate of every node in a dimension."""
        return np.arange(prod(self.sizes)) // self.stride(dimension) % self.sizes[dimension]

    def stride(self, dimension: int) -> int:
        """Difference between the numbers of neighbours in a dimension."""
        return prod(self.sizes[:dimension])

    def __str__(self) -> str:
        return "x".join(map(str, self.sizes))


def find_lattice(topology: Topology) -> Lattice | None:
    """Find the grid that a network is: the same neighbours for every node, and no switch.

    Bandwidths, latencies and parallel links do not count.
    """
    n = len(topology.ranks)
    if topology.switches:
        return None
    edges = {source * n + target for source, target in topology.link_ends}
    near = {edge for edge in edges if edge < n}
    for lattice in _candidates(n, 1, near):
        lattice_edges = _edges(n, lattice)
        if len(edges) == len(lattice_edges) and edges == set(lattice_edges.tolist()):
            return lattice
    return None


def _candidates(n: int, stride: int, near: set[int]) -> Iterator[Lattice]:
    """Grids in which node 0 has these neighbours, from a stride on."""
    if stride == n:
        yield Lattice((), ())
    if stride == n or stride not in near:
        return
    for size in range(2, n // stride + 1):
        if (n // stride) % size == 0 and (stride * size == n or stride * size in near):
            closed = size == 2 or stride * (size - 1) in near
            for rest in _candidates(n, stride * size, near):
                yield Lattice((size, *rest.sizes), (closed, *rest.closed))


def _edges(n: int, lattice: Lattice) -> Ints:
    """Return the links of a grid, as source * n + target."""
    node = np.arange(n)
    edges: list[Ints] = []
    for d, size in enumerate(lattice.sizes):
        here, stride = lattice.coordinate(d), lattice.stride(d)
        for way in (1, -1):
            there = (here + way) % size
            linked = np.ones(n, dtype=np.bool_) if lattice.closed[d] and size > 2 else np.abs(there - here) == 1
            target = node + (there - here) * stride
            if size > 2 or way == 1:
                edges.append((node * n + target)[linked])
    return np.concatenate(edges)


def find_grid_cycle(lattice: Lattice) -> list[int] | None:
    """Return a Hamiltonian cycle of a grid, or None if this simple construction has none.

    Back and forth through the dimensions (a reflected Gray code) ends above its start, so that it closes if the
    slowest dimension is a ring of even size. A grid with a line of even size and another one goes out along the first
    row and comes back through the rest of the columns.
    """
    for top, size in enumerate(lattice.sizes):
        if size % 2 == 0 and lattice.closed[top]:
            return _reflected_path(lattice, [d for d in range(len(lattice.sizes)) if d != top] + [top])
    if len(lattice.sizes) == 1:
        return list(range(lattice.sizes[0])) if lattice.closed[0] else None
    for top, size in enumerate(lattice.sizes):
        if size % 2 == 0 and len(lattice.sizes) == 2:
            side = 1 - top
            a, b = lattice.stride(top), lattice.stride(side)
            columns = range(1, lattice.sizes[side])
            inner = [(y * a + x * b) for y in range(size) for x in (columns if y % 2 == 0 else reversed(columns))]
            return [*inner, *(y * a for y in reversed(range(size)))]
    return None


def _reflected_path(lattice: Lattice, order: list[int]) -> list[int]:
    """Walk the grid back and forth; the last dimension of the order is the slowest."""
    path = [0]
    for d in order:
        stride = lattice.stride(d)
        path = [
            node + step * stride for step in range(lattice.sizes[d]) for node in (path if step % 2 == 0 else path[::-1])
        ]
    return path


class Neighbours:
    """Positions that every position reaches over one link or through switches alone."""

    def __init__(self, problem: GroupProblem) -> None:
        nodes = problem.topology.nodes
        self._node, self._onward = problem.nodes.tolist(), group_by_key(problem.topology.link_ends)
        self._position: dict[int, int] = {node: index for index, node in enumerate(self._node)}
        self._switches = {index for index, node in enumerate(nodes) if node.kind is NodeKind.SWITCH}
        self._beyond = cache(self._find_beyond)  # once for a switch, which joins n^2 pairs of ranks

    def _find_beyond(self, switch: int) -> set[int]:
        nodes, stack = {switch}, [switch]
        while stack:
            onward = set(self._onward[stack.pop()]) - nodes
            nodes |= onward
            stack += onward & self._switches
        return {self._position[node] for node in nodes if node in self._position}

    def _parts(self, one: int) -> list[set[int]]:
        onward = self._onward[self._node[one]]
        direct = {self._position[node] for node in onward if node in self._position}
        return [direct, *(self._beyond(node) for node in onward if node in self._switches)]

    def joins(self, one: int, other: int) -> bool:
        """Return whether a position reaches another one so."""
        return any(other in part for part in self._parts(one))

    def of(self, one: int) -> set[int]:
        """Return all positions that one reaches so."""
        return set[int]().union(*self._parts(one)) - {one}


def is_cycle(order: list[int], near: Neighbours) -> bool:
    """Return whether each position of a closed order has the next one as its neighbour."""
    return all(map(near.joins, order, [*order[1:], order[0]]))


def find_invariant_cycle(problem: GroupProblem, near: Neighbours) -> list[int] | None:
    """Find a cycle that a motion of the network maps to itself: a path through its orbits, and images.

    The images are by a power of the motion that generates all its powers, and leads from the end of a path to the next.
    The first of those is returned over which a byte takes the least time, link after link, with at most four times the
    fewest orbits, which multiply the sends.
    """
    position = np.zeros(len(problem.topology.nodes), dtype=np.int64)
    position[problem.nodes] = np.arange(problem.n)
    best: tuple[Fraction, list[int]] | None = None
    most = _MOST_ORBITS
    for motion in products_of([each for each, _ in find_translations(ColouredNetwork.of(problem.topology))]):
        image, order = position[motion.image[problem.nodes]], motion.order
        orbit = orbits_under([order], [image], problem.n)
        first, times = np.unique(orbit, return_index=True)[1], np.empty(problem.n, dtype=np.int64)
        if len(first) > most:
            continue
        times[orbit_of(first, [order], [image])] = np.arange(order)[:, None]

        def leads_on(other: int, times: Ints = times, orbit: Ints = orbit, order: int = order) -> bool:
            return bool(orbit[other]) or gcd(int(times[other]), order) == 1

        tour = _search([{int(orbit[other]) for other in near.of(one) if leads_on(other)} for one in first.tolist()])
        path = [0]
        for goal in [*tour[1:], 0] if tour else ():
            ahead = [other for other in near.of(path[-1]) if orbit[other] == goal and leads_on(other)]
            if not ahead:
                break
            path.append(min(ahead, key=lambda other: (other - path[-1]) % problem.n))
        if tour and len(path) > len(tour):
            ends = problem.nodes[path]
            links = route(problem.topology, ends[:-1], ends[1:]).links
            rates = (problem.topology.links[link].bandwidth_Bps for link in links.tolist())
            slowness = sum((1 / rate for rate in rates), Fraction(0)) / len(tour)
            most = min(most, 4 * len(tour))
            if best is None or slowness < best[0]:
                power = power_of(image, int(times[path[-1]]))
                best = slowness, orbit_of(np.array(path[:-1]), [order], [power]).ravel().tolist()
            if len(links) == len(tour):
                break
    return None if best is None else best[1]


def find_cycle(problem: GroupProblem, near: Neighbours, *, invariant: bool = False) -> list[int]:
    """Find a cycle through all positions, from position 0.

    The order of the group if that is one; if ``invariant``, of all ranks, a cycle that a motion maps to itself; on
    grids, back and forth through the dimensions; otherwise a depth-first search that goes to the neighbour with the
    fewest neighbours left, and gives up after a while. Without success, the order of the group, whose partners may be
    apart.
    """
    order = list(range(problem.n))
    if is_cycle(order, near):
        return order
    everyone = problem.ranks == tuple(range(len(problem.topology.ranks)))
    if invariant and everyone and (cycle := find_invariant_cycle(problem, near)):
        return cycle
    if everyone and (lattice := find_lattice(problem.topology)):
        walk = find_grid_cycle(lattice)
        if walk is not None:
            start = walk.index(0)
            return walk[start:] + walk[:start]
    return _search([near.of(position) for position in order]) or order


def _search(near: list[set[int]]) -> list[int] | None:
    n = len(near)
    path, on_path = [0], {0}
    choices = [_by_degree(near, 0, on_path)]
    for _ in range(_VISITS * n):
        if len(path) == n and 0 in near[path[-1]]:
            return path
        if choices[-1]:
            node = choices[-1].pop()
            path.append(node)
            on_path.add(node)
            choices.append(_by_degree(near, node, on_path))
        else:
            choices.pop()
            on_path.remove(path.pop())
            if not path:
                return None
    return None


def _by_degree(near: list[set[int]], node: int, on_path: set[int]) -> list[int]:
    """Return unused neighbours, the one with the fewest unused neighbours last; ties by position."""
    return sorted(near[node] - on_path, key=lambda other: (-len(near[other] - on_path), -other))
