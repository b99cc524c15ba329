"""Symmetry of a network: groups of nodes with corresponding positions, and patterns that pair a switch's ports.

Groups are found in the network itself, never from names of nodes: bottom up, as connected components once the switches
of a tier are removed. Two nodes of equal groups get the same position only if the groups' capacities agree, node by
node.

A pattern replaces a switch by edges (docs/methods/forestcoll.md). With a rotation of at least the largest group and at
most the rest, no pair of ports is within a group.
"""

from dataclasses import dataclass

import numpy as np

from ...core.schedule import Bools, Ints, number_within
from ..graphs.network import Exact, Network, components, mask_of
from ..graphs.translations import MIX, MIX_IN, MIX_OUT, Hashes, mix_bits

_LARGEST = 128  #: larger groups keep the order of their nodes
_TRIES = 4  #: how often other choices are tried where the first ones did not lead to equal groups
MODES = (0, 1, 2)  #: ways to join the ports below with those above: in runs, each with all, around the circle


@dataclass(frozen=True, eq=False)
class Groups:
    """Groups of nodes with corresponding positions."""

    group: Ints  #: (nodes,) group of every node; -1 for nodes in none
    position: Ints  #: (nodes,) place of every node in its group; nodes with equal positions correspond to each other
    family: Ints  #: (groups,) groups of the same family are equal, position by position


def find_groups(graph: Network, members: Bools) -> Groups:
    """Find the components of the members; edges to other nodes count as a property of a node."""
    nodes = np.flatnonzero(members)
    place = np.full(graph.nodes, -1, dtype=np.int64)
    place[nodes] = np.arange(len(nodes))
    inner = members[graph.tail] & members[graph.head]
    ends = place[graph.tail[inner]], place[graph.head[inner]]
    label = components(len(nodes), *ends)
    group = np.full(graph.nodes, -1, dtype=np.int64)
    group[nodes] = label
    position = np.zeros(graph.nodes, dtype=np.int64)
    position[nodes] = number_within(label)
    sizes = np.bincount(label)
    family = np.arange(len(sizes))
    for size in np.unique(sizes):
        if 1 < size <= _LARGEST and (alike := np.flatnonzero(sizes == size)).size > 1:
            _align(graph, group, position, family, alike, int(size))
    singles = np.flatnonzero(sizes == 1)
    family[singles] = singles[0] if len(singles) else 0
    return Groups(group, position, family)


def _align(graph: Network, group: Ints, position: Ints, family: Ints, alike: Ints, size: int) -> None:
    """Align equal groups of the same size; changes ``position`` and ``family``."""
    where = np.full(int(group.max()) + 1, -1, dtype=np.int64)
    where[alike] = np.arange(len(alike))
    inside = np.flatnonzero(group >= 0)
    inside = inside[where[group[inside]] >= 0]
    node = np.empty((len(alike), size), dtype=np.int64)
    node[where[group[inside]], position[inside]] = inside
    weight = np.zeros((len(alike), size, size), dtype=np.int64)
    outside = np.zeros((len(alike), size, 2), dtype=np.int64)
    own = mask_of(graph.nodes, inside)
    small = np.array([int(c) % 2**61 for c in graph.capacity.tolist()], dtype=np.int64)
    tail, head = graph.tail, graph.head
    both = own[tail] & own[head] & (group[tail] == group[head])
    weight[where[group[tail[both]]], position[tail[both]], position[head[both]]] = small[both]
    for end, column in ((tail, 0), (head, 1)):
        edge = own[end] & ~both
        np.add.at(outside[:, :, column], (where[group[end[edge]]], position[end[edge]]), small[edge])
    pending = np.arange(len(alike))
    for attempt in range(_TRIES):
        order = _order_by_colours(weight[pending], outside[pending], attempt)
        rows = np.arange(len(pending))[:, None]
        sorted_weight = weight[pending][rows[:, :, None], order[:, :, None], order[:, None, :]]
        sorted_outside = outside[pending][rows, order]
        equal = (sorted_weight == sorted_weight[0]).all(axis=(1, 2))
        equal &= (sorted_outside == sorted_outside[0]).all(axis=(1, 2))
        aligned = pending[equal]
        if len(aligned) > 1 or attempt == _TRIES - 1:
            position[node[aligned[:, None], order[equal]]] = np.arange(size)
            family[alike[aligned]] = alike[aligned[0]]
            pending = pending[~equal]
        if len(pending) < 2:
            return


def _order_by_colours(weight: Ints, outside: Ints, attempt: int) -> Ints:
    """Order the nodes of every group by colours refined until all differ; shape (groups, size)."""
    groups, size, _ = weight.shape
    colour = mix_bits(outside[:, :, 0].astype(np.uint64) * MIX_OUT + outside[:, :, 1].astype(np.uint64) * MIX_IN)
    out, into = weight.astype(np.uint64) * MIX_OUT, weight.transpose(0, 2, 1).astype(np.uint64) * MIX_IN
    edges = mix_bits(out + into)
    rows = np.arange(groups)
    colour = _refine_colours(colour, edges)
    for step in range(size):
        ranked = np.sort(colour, axis=1)
        same = ranked[:, 1:] == ranked[:, :-1]
        ties = same.any(axis=1)
        if not ties.any():
            break
        # The smallest colour that several nodes have; of these nodes, one is singled out.
        shared = ranked[rows, same.argmax(axis=1)]
        candidates = (colour == shared[:, None]) & ties[:, None]
        skip = np.minimum(attempt, candidates.sum(axis=1) - 1) if step == 0 else np.zeros(groups, dtype=np.int64)
        nth = (candidates.cumsum(axis=1) == (skip + 1)[:, None]) & candidates
        colour = np.where(nth, mix_bits(colour + np.uint64(step + 1)), colour)
        colour = _refine_colours(colour, edges)
    return np.argsort(colour, axis=1, kind="stable")


def _refine_colours(colour: Hashes, edges: Hashes) -> Hashes:
    """Refine colours by those of the neighbours until no class is divided any more."""
    classes = _classes(colour)
    while True:
        finer = mix_bits(colour * MIX + mix_bits(edges ^ mix_bits(colour)[:, None, :]).sum(axis=2))
        more = _classes(finer)
        if (more <= classes).all():
            return finer
        colour, classes = finer, more


def _classes(colour: Hashes) -> Ints:
    ranked = np.sort(colour, axis=1)
    return np.asarray(1 + (ranked[:, 1:] != ranked[:, :-1]).sum(axis=1), dtype=np.int64)


@dataclass(frozen=True, eq=False)
class SwitchPorts:
    """Neighbours of a switch, each with the same capacity to it and from it."""

    node: Ints  #: (ports,) node number of every neighbour
    capacity: Exact  #: (ports,) capacity in each of the two directions
    group: Ints  #: (ports,) group and position of those that are no switches
    position: Ints
    up: Bools  #: (ports,) True if the neighbour is a switch, too


@dataclass(frozen=True, eq=False)
class Pairs:
    """Capacity from one port to another; shapes (pairs,)."""

    source: Ints
    target: Ints
    amount: Exact

    @classmethod
    def join(cls, parts: "list[Pairs]") -> "Pairs":
        """Concatenate several lists of pairs."""
        columns = zip(*((p.source, p.target, p.amount) for p in parts), strict=True)
        return cls(*(np.concatenate(column) for column in columns))


def propose_pairs(ports: SwitchPorts, mode: int) -> Pairs | None:
    """Pair the capacity of all ports, except surplus towards upper switches; None if the mode does not apply."""
    if not ports.up.any() or ports.up.all():
        return _pair_around_circle(ports.node, ports.capacity, ports.group, ports.position) if mode == 0 else None
    if mode == 2:
        last = int(ports.group.max(initial=0)) + 1
        own = np.where(ports.up, last + np.arange(len(ports.node)), ports.group)
        return _pair_around_circle(ports.node, ports.capacity, own, ports.position, most=1)
    down = np.flatnonzero(~ports.up)
    down = down[np.lexsort((ports.position[down], ports.group[down]))]
    node, capacity, group, position = (c[down] for c in (ports.node, ports.capacity, ports.group, ports.position))
    above, room = ports.node[ports.up], ports.capacity[ports.up]
    through = min(sum(capacity.tolist()), sum(room.tolist()))
    share, share_above = _proportional_shares(capacity, through), _proportional_shares(room, through)
    if mode == 1 and len(set(room.tolist())) > 1:
        return None
    order = np.lexsort((group, position))
    pair_upwards = _pair_in_runs if mode == 0 else _pair_evenly
    upwards = pair_upwards(node[order], share[order], above, share_above)
    parts = [upwards, Pairs(upwards.target, upwards.source, upwards.amount)]
    rest = capacity > share
    if rest.any():
        parts.append(_pair_around_circle(node[rest], (capacity - share)[rest], group[rest], position[rest]))
    return Pairs.join(parts)


def _pair_around_circle(node: Ints, capacity: Exact, group: Ints, position: Ints, most: int | None = None) -> Pairs:
    """Pair ports around the circle, in ``most`` slices or one per other group, each with its own rotation."""
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
        total, largest = sum(amount.tolist()), max(np.add.reduceat(amount, starts).tolist())
        low, high = largest, total - largest
        turn = total // 2 if low > high else low + (high - low) * index // max(slices - 1, 1)
        parts.append(_pair_by_rotation(node, amount, total, turn))
    return Pairs.join(parts)


def _pair_by_rotation(node: Ints, amount: Exact, total: int, turn: int) -> Pairs:
    """Pair the capacity at every place of a circle with the capacity a turn further on."""
    ends = np.cumsum(amount)
    begin, cuts = _intervals(ends, (ends - turn) % total)  # the last one ends the whole circle
    source = np.searchsorted(ends, begin, side="right")
    target = np.searchsorted(ends, (begin + turn) % total, side="right")
    return Pairs(node[source], node[target], cuts - begin)


def _pair_in_runs(node: Ints, share: Exact, above: Ints, share_above: Exact) -> Pairs:
    """Pair ports below with those above, each with a contiguous run of the others."""
    below_ends, above_ends = np.cumsum(share), np.cumsum(share_above)
    begin, cuts = _intervals(below_ends, above_ends)
    source = np.searchsorted(below_ends, begin, side="right")
    target = np.searchsorted(above_ends, begin, side="right")
    return Pairs(node[source], above[target], cuts - begin)


def _pair_evenly(node: Ints, share: Exact, above: Ints, share_above: Exact) -> Pairs:
    """Spread every port below over all above, as evenly as whole units allow."""
    count, lane, ends = len(above), np.arange(len(above)), np.cumsum(share)
    begin = ends - share
    # Unit i of all shares goes to lane i mod count: count the units of every share in every lane.
    amount = (ends[:, None] - lane + count - 1) // count - (begin[:, None] - lane + count - 1) // count
    row, column = np.nonzero(amount)
    return Pairs(node[row], above[column], amount[row, column])


def _intervals(*ends: Exact) -> tuple[Exact, Exact]:
    """Return begin and end of the intervals between 0 and all of these ends."""
    cuts = np.sort(np.concatenate(ends))
    length = np.diff(cuts, prepend=cuts[:1] * 0)
    cuts, length = cuts[length > 0], length[length > 0]
    return cuts - length, cuts


def _proportional_shares(capacity: Exact, through: int) -> Exact:
    """Divide an amount over ports in proportion to capacity, with sums over runs of ports exact to a unit."""
    ends = np.cumsum(capacity)
    whole = int(ends[-1])
    exact = np.array([int(end) * through // whole for end in ends.tolist()], dtype=capacity.dtype)
    return np.diff(exact, prepend=exact[:1] * 0)
