"""Switch removal by ForestColl's own algorithm 4: every switch is split off, link by link, and the paths are kept."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from oracle import SOURCE, Capacities, Demand, Network, has_trees, max_flow, with_source

Edge = tuple[int, int]
Path = tuple[int, ...]
Pieces = list[tuple[Path, int]]


@dataclass
class Logical:
    """A network without switches; every unit of capacity of an edge (u, t) is a unit of a path from u to t in the
    network before."""

    capacity: dict[Edge, int]
    paths: dict[Edge, Pieces]


def splittable(capacity: Capacities, demand: Demand, u: int, w: int, t: int) -> int:
    """γ of theorem 8: how much of (u, w), (w, t) can be replaced by (u, t) such that the trees still exist.

    u = t is allowed: the capacity then goes to waste, and the cuts that lose it are the same ones. Where an unbounded
    link joins the two ends there is no such cut, and the flow is too large to count.
    """
    auxiliary = with_source(capacity, demand)
    total, unbounded = sum(demand.values()), sum(auxiliary.values()) + 1
    best = min(capacity[u, w], capacity[w, t])
    for v in demand:
        for start, end, extra in ((u, w, ((u, SOURCE), (u, t), (v, w))), (w, t, ((w, SOURCE), (u, t), (v, t)))):
            links = auxiliary | {(a, b): unbounded for a, b in extra if a != b}
            best = min(best, max_flow(links, start, end, total + best) - total)
            if best == 0:
                return 0
    assert best > 0
    return best


def remove_switches(network: Network, demand: Demand) -> Logical:
    """Algorithm 4 on a network whose capacities count trees; every switch must have as much capacity in as out.

    The paper's routing table is kept as explicit paths: a split takes its share of the two links' paths and joins them.
    """
    if not has_trees(network.capacity, demand):
        raise ValueError("the network does not have the trees")
    capacity = dict(network.capacity)
    paths: dict[Edge, Pieces] = defaultdict(list, {link: [(link, c)] for link, c in capacity.items()})
    for w in network.switches:
        if network.into(w) != network.out_of(w):
            raise ValueError(f"switch {w} has {network.into(w)} in and {network.out_of(w)} out")
        for t in [b for a, b in list(capacity) if a == w]:
            for u in [a for a, b in list(capacity) if b == w]:
                amount = splittable(capacity, demand, u, w, t)
                if amount == 0:
                    continue
                joined = join(take(paths[u, w], amount), take(paths[w, t], amount))
                for link in ((u, w), (w, t)):
                    capacity[link] -= amount
                    if capacity[link] == 0:
                        del capacity[link]
                if u != t:
                    capacity[u, t] = capacity.get((u, t), 0) + amount
                    paths[u, t] += joined
                if (w, t) not in capacity:
                    break
            if (w, t) in capacity:
                raise ValueError(f"link {(w, t)} could not be split off: theorem 7 does not hold here")
        assert not any(w in link for link in capacity)
    assert all(sum(amount for _, amount in paths[link]) == c for link, c in capacity.items())
    return Logical(capacity, {link: paths[link] for link in capacity})


def take(pieces: Pieces, amount: int) -> Pieces:
    """Cut `amount` off the end of a list of paths."""
    taken: Pieces = []
    while amount > 0:
        path, held = pieces.pop()
        used = min(held, amount)
        taken.append((path, used))
        if used < held:
            pieces.append((path, held - used))
        amount -= used
    return taken


def join(first: Pieces, second: Pieces) -> Pieces:
    """Pair two lists of paths of the same amount, unit for unit, and join every pair."""
    joined: Pieces = []
    first, second = list(first), list(second)
    while first:
        amount = min(first[-1][1], second[-1][1])
        ((head, _),), ((tail, _),) = take(first, amount), take(second, amount)
        joined.append((head + tail[1:], amount))
    return joined
