"""Cycles through all ranks of a group, over neighbours where there is one."""

from __future__ import annotations

from ...core.topology import NodeKind, Topology
from .lattice import find_lattice, snake
from .problem import Problem

#: Nodes that the search for a cycle may visit, per rank.
_VISITS = 200


def neighbours(problem: Problem) -> list[set[int]]:
    """Give, for every position, the positions that it reaches over one link or through switches alone."""
    topology = problem.topology
    onward: list[list[int]] = [[] for _ in topology.nodes]
    for source, target in topology.link_ends:
        onward[source].append(target)
    position = {int(node): index for index, node in enumerate(problem.nodes)}
    return [_reached(topology, onward, int(node), position) - {index} for index, node in enumerate(problem.nodes)]


def _reached(topology: Topology, onward: list[list[int]], start: int, position: dict[int, int]) -> set[int]:
    seen, stack, found = {start}, [start], set[int]()
    while stack:
        for node in onward[stack.pop()]:
            if node in seen:
                continue
            seen.add(node)
            if topology.nodes[node].kind is NodeKind.SWITCH:
                stack.append(node)
            elif node in position:
                found.add(position[node])
    return found


def is_cycle(order: list[int], near: list[set[int]]) -> bool:
    """Whether each position of a closed order has the next one as its neighbour."""
    return all(after in near[before] for before, after in zip(order, [*order[1:], order[0]], strict=True))


def find_cycle(problem: Problem, near: list[set[int]]) -> list[int]:
    """Find a cycle through all positions, from position 0.

    The order of the group if that is one; on grids, back and forth through the dimensions; otherwise a depth-first
    search that goes to the neighbour with the fewest neighbours left, and gives up after a while. Without success,
    the order of the group: then some partners are no neighbours.
    """
    order = list(range(problem.n))
    if is_cycle(order, near):
        return order
    if problem.ranks == tuple(range(len(problem.topology.ranks))) and (lattice := find_lattice(problem.topology)):
        walk = snake(lattice)
        if walk is not None:
            start = walk.index(0)
            return walk[start:] + walk[:start]
    return _search(near) or order


def _search(near: list[set[int]]) -> list[int] | None:
    """Search depth first, without recursion."""
    n = len(near)
    path, used = [0], {0}
    choices = [_by_degree(near, 0, used)]
    for _ in range(_VISITS * n):
        if len(path) == n and 0 in near[path[-1]]:
            return path
        if choices[-1]:
            node = choices[-1].pop()
            path.append(node)
            used.add(node)
            choices.append(_by_degree(near, node, used))
        else:
            choices.pop()
            used.remove(path.pop())
            if not path:
                return None
    return None


def _by_degree(near: list[set[int]], node: int, used: set[int]) -> list[int]:
    """Unused neighbours, the one with the fewest unused neighbours last; ties by position."""
    return sorted(near[node] - used, key=lambda other: (-len(near[other] - used), -other))


def both_ways(order: list[int], near: list[set[int]]) -> bool:
    """Whether a cycle can be run the other way round over neighbours, if it can this way."""
    return is_cycle(order[::-1], near) or not is_cycle(order, near)
