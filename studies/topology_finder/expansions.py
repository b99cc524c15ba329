"""Expansions: from an all-gather on a network to one on a larger network, or one with more ports.

=================  =====  ======  ===============  ============================================  ==================
expansion          nodes  degree  T_L              T_B                                           source
=================  =====  ======  ===============  ============================================  ==================
line_graph         d N    d       T_L + 1          at most T_B + 1/N                             definition 1
degree_expansion   n N    n d     T_L + 1          T_B + (n - 1)/(n N)                           definition 2
cartesian_power    N^n    n d     n T_L            T_B N/(N - 1) (N^n - 1)/N^n                   definition 14
both_directions    N      2 d     the larger one   the larger one of every step                  appendix A.6
parallel_links     N      k d     T_L              T_B                                           appendix F.4
=================  =====  ======  ===============  ============================================  ==================
"""

from __future__ import annotations

from math import lcm

import numpy as np

from ...core.errors import InputError
from ...core.schedule import Ints
from .gather import Gather, check_size, expand_ranges, recut


def line_graph(base: Gather) -> Gather:
    """Expand to the line graph, where link (u, v) sends to link (v, w).

    Every node first forwards its shard, then sends as in the base.
    """
    d, links = base.degree, base.links
    into, out = _links_of(base, 1), _links_of(base, 0)
    count = base.chunks_of[links[:, 1]]
    owner, chunk = expand_ranges(base.first_of[links[:, 1]], count)
    first = np.cumsum(count) - count
    check_size(len(base.chunk) * d * d + len(owner) * d)
    head, tail = links[base.link, 1], base.owner[base.chunk]
    source = np.repeat(into[tail], d, axis=1)  # whose chunk: a link into the chunk's owner
    target = np.tile(out[head], (1, d))
    over = np.tile(base.link[:, None] * d + np.arange(d), (1, d))
    which = first[source] + (base.chunk - base.first_of[tail])[:, None]
    kept = source != target
    place, own = expand_ranges(first, count)
    begin = np.tile(np.arange(d), len(own))
    return Gather(
        len(links),
        d,
        np.stack([np.repeat(np.arange(len(links)), d), out[links[:, 1]].ravel()], axis=1),
        base.pieces,
        owner,
        base.start[chunk],
        base.size[chunk],
        np.concatenate([np.repeat(own, d), which[kept]]),
        np.concatenate([np.repeat(place, d) * d + begin, over[kept]]),
        np.concatenate([np.zeros(len(begin), dtype=np.int64), np.repeat(base.step + 1, d * d)[kept.ravel()]]),
    )


def degree_expansion(base: Gather, n: int) -> Gather:
    """Expand to n copies of every node with all copies of linked nodes linked.

    Copy i of node v is ``v n + i``. Shards travel among the copies with their own number and leave them with their last
    hop. In a further step, a node gets those of its other copies, in equal parts over all its links.
    """
    _at_least_two(n)
    d, parts = base.degree, n * base.degree
    into = _links_of(base, 1)
    pieces = lcm(base.pieces, parts)
    everybody = np.arange(base.nodes)
    fine = recut(base, pieces, np.repeat(everybody, parts), np.tile(np.arange(parts) * (pieces // parts), base.nodes))
    copy = np.arange(n)
    owner, chunk = expand_ranges(np.repeat(fine.first_of, n), np.repeat(fine.chunks_of, n))
    check_size(len(fine.chunk) * n * n + len(owner) * (n - 1))
    at, holder = copy[:, None], fine.owner[fine.chunk]
    which = n * fine.first_of[holder] + fine.chunk - fine.first_of[holder]
    which = which[:, None, None] + at * fine.chunks_of[holder][:, None, None]
    over = fine.link[:, None, None] * n * n + at * n + copy
    # Part a of a copy's shard comes to another copy over the a-th of its n d links.
    part = fine.start[chunk] // (pieces // parts)
    other = owner[:, None] // n * n + (owner[:, None] % n + copy[1:]) % n
    last = into[owner // n, part // n][:, None] * n * n + (part % n)[:, None] * n + other % n
    ends = base.links[:, None, None, :] * n + np.stack(np.broadcast_arrays(at, copy), axis=-1)
    return Gather(
        n * base.nodes,
        n * d,
        ends.reshape(-1, 2),
        pieces,
        owner,
        fine.start[chunk],
        fine.size[chunk],
        np.concatenate([np.repeat(which, n, axis=2).ravel(), np.repeat(np.arange(len(owner)), n - 1)]),
        np.concatenate([over.ravel(), last.ravel()]),
        np.concatenate([np.repeat(fine.step, n * n), np.full(len(owner) * (n - 1), fine.steps)]),
    )


def cartesian_power(base: Gather, n: int) -> Gather:
    """Combine n dimensions that each equal the base; node (x_0, x_1, ...) is ``x_0 + N x_1 + ...``.

    A shard is cut into n parts. Part i is gathered in dimension i, then from all these nodes in the next one, and so
    on: at any time every dimension serves one part.
    """
    _at_least_two(n)
    nodes, steps, edges = base.nodes, base.steps, len(base.links)
    starts = np.unique(base.start)
    even = recut(base, base.pieces, np.repeat(np.arange(nodes), len(starts)), np.tile(starts, nodes))
    per = len(starts)
    others = nodes ** (n - 1)
    check_size(n * len(even.chunk) * others * (nodes**n - 1) // (nodes - 1))
    chunk, link, step = [], [], []
    for part in range(n):
        for phase in range(n):
            k = (part + phase) % n
            done = [(part + earlier) % n for earlier in range(phase)]
            home, away = _pair_coordinates(nodes, n, k, done)
            at = even.owner[even.chunk]
            shard = _node(home, at[:, None], nodes, k)
            chunk.append((shard * n + part) * per + (even.chunk - per * at)[:, None])
            link.append((k * edges + even.link[:, None]) * others + away)
            step.append(np.repeat(even.step + phase * steps, len(home)))
    ends = [_node(np.arange(others), base.links.T[:, :, None], nodes, k).reshape(2, -1).T for k in range(n)]
    count = nodes**n
    shift = (np.arange(n) * base.pieces)[:, None]
    return Gather(
        count,
        n * base.degree,
        np.concatenate(ends),
        n * base.pieces,
        np.repeat(np.arange(count), n * per),
        np.tile((shift + starts).ravel(), count),
        np.tile(even.size[:per], n * count),
        np.concatenate([part.ravel() for part in chunk]),
        np.concatenate([part.ravel() for part in link]),
        np.concatenate(step),
    )


def both_directions(onward: Gather, back: Gather) -> Gather:
    """Combine a network with its transpose: each carries one half of every shard.

    Parameters
    ----------
    onward, back : Gather
        All-gathers on a network and on its transpose, whose links are the same ones reversed.
    """
    if onward.nodes != back.nodes or onward.degree != back.degree:
        raise InputError("expected a network and its transpose", place="network")
    pieces = lcm(onward.pieces, back.pieces)
    owner = np.concatenate([onward.owner, back.owner])
    ups = (pieces // onward.pieces, pieces // back.pieces)
    start = np.concatenate([onward.start * ups[0], back.start * ups[1] + pieces])
    size = np.concatenate([onward.size * ups[0], back.size * ups[1]])
    order = np.lexsort((start, owner))
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return Gather(
        onward.nodes,
        2 * onward.degree,
        np.concatenate([onward.links, back.links]),
        2 * pieces,
        owner[order],
        start[order],
        size[order],
        rank[np.concatenate([onward.chunk, back.chunk + len(onward.owner)])],
        np.concatenate([onward.link, back.link + len(onward.links)]),
        np.concatenate([onward.step, back.step]),
    )


def parallel_links(base: Gather, k: int) -> Gather:
    """Replace every link by k links, and every chunk by k equal parts, one for each of them."""
    _at_least_two(k)
    part = np.arange(k)
    size = np.repeat(base.size, k)
    return Gather(
        base.nodes,
        k * base.degree,
        np.repeat(base.links, k, axis=0),
        k * base.pieces,
        np.repeat(base.owner, k),
        (base.start[:, None] * k + part * base.size[:, None]).ravel(),
        size,
        (base.chunk[:, None] * k + part).ravel(),
        (base.link[:, None] * k + part).ravel(),
        np.repeat(base.step, k),
    )


def _links_of(base: Gather, end: int) -> Ints:
    """Return the d links that leave (0) or enter (1) every node."""
    count = np.bincount(base.links[:, end], minlength=base.nodes)
    if (count != base.degree).any():
        node = int(np.flatnonzero(count != base.degree)[0])
        way = "to" if end else "from"
        raise InputError(
            f"node {node} has {count[node]} links {way} it, not {base.degree}; expected a regular network without "
            "loops",
            place="network.links",
        )
    found: Ints = np.argsort(base.links[:, end], kind="stable").reshape(base.nodes, base.degree)
    return found


def _at_least_two(n: int) -> None:
    if n < 2:
        raise InputError(f"{n} is too few; expected at least 2", place="n")


def _node(others: Ints, digit: Ints, nodes: int, k: int) -> Ints:
    """Insert coordinate k of a node between the others, which are given as one number."""
    low = nodes**k
    node: Ints = others // low * low * nodes + digit * low + others % low
    return node


def _pair_coordinates(nodes: int, n: int, k: int, done: list[int]) -> tuple[Ints, Ints]:
    """Pair an owner's coordinates, except the k-th, with those of all nodes that differ in dimensions done."""
    home = np.arange(nodes ** (n - 1))
    away = home
    for dimension in done:
        stride = nodes ** (dimension - (dimension > k))
        digit = np.arange(nodes)
        home = np.repeat(home, nodes)
        away = (away[:, None] + (digit - away[:, None] // stride % nodes) * stride).ravel()
    return home, away
