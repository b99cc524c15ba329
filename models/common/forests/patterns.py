"""How all capacity of a switch can be given to pairs of its ports at once: patterns that keep boxes connected, and trees low.

A pattern pairs what comes from port u with what goes to port t; it is a proposal only, accepted when the network without the
switch still serves everybody (:mod:`.splitting`). Ports lie on a circle, group by group; what comes in is paired with what
goes out a rotation further on. With a rotation of at least the largest group and at most the rest, no pair is within a group; with
several rotations, every port reaches the port at its own position in all other groups.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ....core.schedule import Bools, Ints
from ..digraph import Exact

#: Ways to join the ports below with those above: in runs, each with all, around the circle.
MODES = (0, 1, 2)


@dataclass(frozen=True, eq=False)
class Ports:
    """The neighbours of a switch, with the same capacity to it and from it.

    Parameters
    ----------
    node : array of int, shape (ports,)
        The neighbours.
    capacity : array of int, shape (ports,)
        In each direction.
    group, position : array of int, shape (ports,)
        Group and position of those that are no switches.
    up : array of bool, shape (ports,)
        Whether the neighbour is a switch, too.
    """

    node: Ints
    capacity: Exact
    group: Ints
    position: Ints
    up: Bools


@dataclass(frozen=True, eq=False)
class Pairs:
    """Capacity that goes from one port to another one; shapes (pairs,)."""

    source: Ints
    target: Ints
    amount: Exact

    @classmethod
    def join(cls, parts: list[Pairs]) -> Pairs:
        """Put several together."""
        return cls(
            np.concatenate([p.source for p in parts]),
            np.concatenate([p.target for p in parts]),
            np.concatenate([p.amount for p in parts]),
        )

    def swapped(self) -> Pairs:
        """Give the same pairs the other way around."""
        return Pairs(self.target, self.source, self.amount)


def propose(ports: Ports, mode: int) -> Pairs | None:
    """Pair the capacity of all ports; None where the mode is not for these ports.

    Capacity towards switches that more comes from than can go below stays unpaired; the caller lets it go. Where all neighbours
    are switches, none is above.
    """
    if not ports.up.any() or ports.up.all():
        return _around(ports.node, ports.capacity, ports.group, ports.position) if mode == 0 else None
    if mode == 2:
        last = int(ports.group.max(initial=0)) + 1
        own = np.where(ports.up, last + np.arange(len(ports.node)), ports.group)
        return _around(ports.node, ports.capacity, own, ports.position, most=1)
    down = ~ports.up
    order = np.lexsort((ports.position[down], ports.group[down]))
    node, capacity = ports.node[down][order], ports.capacity[down][order]
    group, position = ports.group[down][order], ports.position[down][order]
    above, room = ports.node[ports.up], ports.capacity[ports.up]
    through = min(_total(capacity), _total(room))
    share, taken = _part(capacity, through), _part(room, through)
    if mode == 1 and len(set(room.tolist())) > 1:
        return None
    laid = np.lexsort((group, position))
    climb = _runs if mode == 0 else _spread
    upwards = climb(node[laid], share[laid], above, taken)
    parts = [upwards, upwards.swapped()]
    rest = capacity - share
    left = rest > 0
    if left.any():
        parts.append(_around(node[left], rest[left], group[left], position[left]))
    return Pairs.join(parts)


def _around(node: Ints, capacity: Exact, group: Ints, position: Ints, most: int | None = None) -> Pairs:
    """Pair ports around the circle, in as many slices with a rotation of their own as there are other groups."""
    if len(set(group.tolist())) == 1:
        group = np.arange(len(node))
    order = np.lexsort((position, group))
    node, capacity, group = node[order], capacity[order], group[order]
    starts = np.flatnonzero(np.concatenate([[True], group[1:] != group[:-1]]))
    slices = max(1, min(len(starts) - 1, int(min(capacity.tolist()))))
    slices = min(slices, most or slices)
    parts: list[Pairs] = []
    for index in range(slices):
        amount = capacity * (index + 1) // slices - capacity * index // slices
        total, largest = _total(amount), max(np.add.reduceat(amount, starts).tolist())
        low, high = largest, total - largest
        turn = total // 2 if low > high else low + (high - low) * index // max(slices - 1, 1)
        parts.append(_rotated(node, amount, total, turn))
    return Pairs.join(parts)


def _rotated(node: Ints, amount: Exact, total: int, turn: int) -> Pairs:
    """Pair what is at every place of a circle with what is a turn further on."""
    ends = np.cumsum(amount)
    begin, cuts = _pieces(ends, (ends - turn) % total)  # the last one ends the whole circle
    source = np.searchsorted(ends, begin, side="right")
    target = np.searchsorted(ends, (begin + turn) % total, side="right")
    return Pairs(node[source], node[target], cuts - begin)


def _runs(node: Ints, share: Exact, above: Ints, taken: Exact) -> Pairs:
    """Lay the ports below against those above, each in one run."""
    below_ends, above_ends = np.cumsum(share), np.cumsum(taken)
    begin, cuts = _pieces(below_ends, above_ends)
    source = np.searchsorted(below_ends, begin, side="right")
    target = np.searchsorted(above_ends, begin, side="right")
    return Pairs(node[source], above[target], cuts - begin)


def _spread(node: Ints, share: Exact, above: Ints, taken: Exact) -> Pairs:
    """Spread every port below over all above, as evenly as whole units can be."""
    count = len(above)
    ends = np.cumsum(share)
    begin = ends - share
    lane = np.arange(count)
    # Unit i of all shares goes to lane i mod count: count the units of every share in every lane.
    amount = (ends[:, None] - lane + count - 1) // count - (begin[:, None] - lane + count - 1) // count
    row, column = np.nonzero(amount)
    return Pairs(node[row], above[column], amount[row, column])


def _pieces(*ends: Exact) -> tuple[Exact, Exact]:
    """Give begin and end of the pieces between 0 and all of these ends."""
    cuts = np.sort(np.concatenate(ends))
    length = np.diff(cuts, prepend=cuts[:1] * 0)
    cuts, length = cuts[length > 0], length[length > 0]
    return cuts - length, cuts


def _part(capacity: Exact, through: int) -> Exact:
    """Give every port its share of a part of the whole, rounded so that the sums over any run of ports are right to a unit."""
    ends = np.cumsum(capacity)
    whole = int(ends[-1])
    exact = np.array([int(end) * through // whole for end in ends.tolist()], dtype=capacity.dtype)
    return np.diff(exact, prepend=exact[:1] * 0)


def _total(amount: Exact) -> int:
    return int(sum(amount.tolist()))
