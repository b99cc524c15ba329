"""Correct schedules of many kinds, made here so that the verifier is not tried on the methods that it verifies."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
from cwb.core.collective import Demand, collective_named
from cwb.core.instance import Instance
from cwb.core.schedule import Chunks, Schedule, StepSchedule, offsets, sends_from_lists
from cwb.core.topology import Link, Node, NodeKind, Topology
from cwb.core.trees import TreeKind, TreePacking

RATE = Fraction(10**9)
UNIT = Fraction(1000)  # a unit takes 1 us


def network(pairs, ranks, switches=(), latency=Fraction(0)):
    nodes = [Node(f"n{i}") for i in range(ranks)] + list(switches)
    return Topology(tuple(nodes), tuple(Link(nodes[a].name, nodes[b].name, RATE, latency) for a, b in pairs))


def ring_of(n, both=False):
    pairs = [(i, (i + 1) % n) for i in range(n)]
    return network(pairs + [(b, a) for a, b in pairs] if both else pairs, n)


def full(n):
    return network([(a, b) for a in range(n) for b in range(n) if a != b], n)


def star(n, latency=Fraction(0), **switch):
    node = Node("switch", NodeKind.SWITCH, **switch)
    return network([(i, n) for i in range(n)] + [(n, i) for i in range(n)], n, [node], latency)


def instance_of(topology, kind, units, ranks=None):
    return Instance("case", topology, Demand(collective_named(kind), units * UNIT, ranks=ranks))


def chunks_of(rows):
    """Make chunks of (units, holders, needers, reduced)."""
    groups = sorted({tuple(sorted(g)) for _, held, needed, _ in rows for g in (held, needed)})
    at = {group: i for i, group in enumerate(groups)}
    columns = [(u, at[tuple(sorted(h))], at[tuple(sorted(n))], r) for u, h, n, r in rows]
    units, held, needed = (np.array([c[i] for c in columns], dtype=np.int64) for i in range(3))
    return Chunks(units, UNIT, tuple(groups), held, needed, np.array([c[3] for c in columns], dtype=np.bool_))


def links_along(topology, nodes):
    ends = list(topology.link_ends)
    return [ends.index(pair) for pair in pairwise(nodes)]


def schedule_of(instance, rows, moves, timed=False):
    """Make a schedule of moves (chunk, nodes of the path, reduce, step) or (…, start in us, end in us)."""
    sends = sends_from_lists(
        [m[0] for m in moves],
        [m[1][0] for m in moves],
        [m[1][-1] for m in moves],
        [bool(m[2]) for m in moves],
        [links_along(instance.network, m[1]) for m in moves],
    )
    if timed:
        start, end = (np.array([m[i] for m in moves], dtype=np.float64) * 1e-6 for i in (3, 4))
        return instance, Schedule(instance.sha256, chunks_of(rows), sends, start, end)
    return instance, StepSchedule(instance.sha256, chunks_of(rows), sends, np.array([m[3] for m in moves]))


def ring_all_gather(n=5):
    instance = instance_of(ring_of(n), "all_gather", n)
    rows = [(1, [c], range(n), False) for c in range(n)]
    moves = [(c, ((c + s) % n, (c + s + 1) % n), False, s) for c in range(n) for s in range(n - 1)]
    return schedule_of(instance, rows, moves)


def ring_reduce_scatter(n=5):
    instance = instance_of(ring_of(n), "reduce_scatter", n)
    rows = [(1, range(n), [c], True) for c in range(n)]
    moves = [(c, ((c + 1 + s) % n, (c + 2 + s) % n), True, s) for c in range(n) for s in range(n - 1)]
    return schedule_of(instance, rows, moves)


def ring_all_reduce(n=4):
    instance = instance_of(ring_of(n), "all_reduce", n)
    rows = [(1, range(n), range(n), True) for _ in range(n)]
    moves = [(c, ((c + 1 + s) % n, (c + 2 + s) % n), s < n - 1, s) for c in range(n) for s in range(2 * n - 2)]
    return schedule_of(instance, rows, moves)


def recursive_doubling(n=8):
    instance = instance_of(full(n), "all_reduce", 2)
    rows = [(1, range(n), range(n), True)] * 2
    steps = range(n.bit_length() - 1)
    return schedule_of(instance, rows, [(c, (r, r ^ 1 << k), True, k) for c in (0, 1) for r in range(n) for k in steps])


def direct_all_to_all(n=5):
    instance = instance_of(full(n), "all_to_all", n)
    pairs = [(a, b) for a in range(n) for b in range(n) if a != b]
    rows = [(1, [a], [b], False) for a, b in pairs]
    return schedule_of(instance, rows, [(c, pair, False, 0) for c, pair in enumerate(pairs)])


def routed_all_to_all(n=5):
    instance = instance_of(ring_of(n, both=True), "all_to_all", n)
    pairs = [(a, b) for a in range(n) for b in range(n) if a != b]
    rows = [(1, [a], [b], False) for a, b in pairs]
    moves = []
    for c, (a, b) in enumerate(pairs):
        way = 1 if (b - a) % n <= n // 2 else -1
        moves.append((c, [(a + way * k) % n for k in range((way * (b - a)) % n + 1)], False, 0))
    return schedule_of(instance, rows, moves)


def binomial_broadcast(n=8):
    instance = instance_of(full(n), "broadcast", 2)
    moves = [(c, (r, r + 2**k), False, k) for c in (0, 1) for k in range(n.bit_length() - 1) for r in range(2**k)]
    return schedule_of(instance, [(1, [0], range(n), False)] * 2, moves)


def binomial_reduce(n=8):
    instance = instance_of(full(n), "reduce", 2)
    last = n.bit_length() - 2
    moves = [(c, (r + 2**k, r), True, last - k) for c in (0, 1) for k in range(last + 1) for r in range(2**k)]
    return schedule_of(instance, [(1, range(n), [0], True)] * 2, moves)


def switched_all_gather(n=5):
    instance = instance_of(star(n, buffer_bytes=Fraction(0)), "all_gather", n)
    rows = [(1, [c], range(n), False) for c in range(n)]
    moves = [(c, (c, n, (c + k) % n), False, k - 1) for c in range(n) for k in range(1, n)]
    return schedule_of(instance, rows, moves)


def multicast_broadcast(n=5):
    instance = instance_of(star(n, multicast=True, buffer_bytes=UNIT), "broadcast", 3)
    moves = [(c, (0, n), False, c) for c in range(3)]
    moves += [(c, (n, r), False, c + 1) for c in range(3) for r in range(1, n)]
    return schedule_of(instance, [(1, [0], range(n), False)] * 3, moves)


def in_network_all_reduce(n=5):
    instance = instance_of(star(n, multicast=True, buffer_bytes=2 * UNIT), "all_reduce", 2)
    moves = [(c, (r, n), True, 0) for c in (0, 1) for r in range(n)]
    moves += [(c, (n, r), False, 1) for c in (0, 1) for r in range(n)]
    return schedule_of(instance, [(1, range(n), range(n), True)] * 2, moves)


def stored_gather(n=4):
    instance = instance_of(star(n, buffer_bytes=(n - 1) * UNIT), "gather", n)
    rows = [(1, [r], [0], False) for r in range(1, n)]
    moves = [(r - 1, (r, n), False, 0) for r in range(1, n)] + [(r - 1, (n, 0), False, r) for r in range(1, n)]
    return schedule_of(instance, rows, moves)


def group_all_gather():
    """Ranks 0, 2 and 4 of a ring of 6: the others pass on."""
    instance = instance_of(ring_of(6), "all_gather", 3, ranks=(0, 2, 4))
    rows = [(1, [c], (0, 2, 4), False) for c in (0, 2, 4)]
    moves = [(i, ((c + s) % 6, (c + s + 1) % 6), False, s) for i, c in enumerate((0, 2, 4)) for s in range(4)]
    return schedule_of(instance, rows, moves)


def timed_ring_all_gather(n=5):
    instance = instance_of(ring_of(n), "all_gather", n)
    rows = [(1, [c], range(n), False) for c in range(n)]
    moves = [(c, ((c + s) % n, (c + s + 1) % n), False, s, s + 1) for c in range(n) for s in range(n - 1)]
    return schedule_of(instance, rows, moves, timed=True)


def timed_switched_all_to_all(n=4):
    instance = instance_of(star(n, latency=Fraction(1, 2 * 10**6)), "all_to_all", n)
    pairs = [(a, (a + k) % n) for k in range(1, n) for a in range(n)]
    rows = [(1, [a], [b], False) for a, b in pairs]
    moves = [(c, (a, n, b), False, (b - a) % n - 1, (b - a) % n + 1) for c, (a, b) in enumerate(pairs)]
    return schedule_of(instance, rows, moves, timed=True)


def timed_chain_all_reduce(n=4):
    """Two chunks up a line and back down, one behind the other."""
    instance = instance_of(
        network([(i, i + 1) for i in range(n - 1)] + [(i + 1, i) for i in range(n - 1)], n), "all_reduce", 2
    )
    moves = [(c, (r, r + 1), True, c + r, c + r + 1) for c in (0, 1) for r in range(n - 1)]
    moves += [(c, (r + 1, r), False, n + c - 1 + n - 2 - r, n + c + n - 2 - r) for c in (0, 1) for r in range(n - 1)]
    return schedule_of(instance, [(1, range(n), range(n), True)] * 2, moves, timed=True)


def trees_of(instance, kind, trees, reduction=None):
    """Make a packing of (root, units, [(parent, child, nodes of the path)]); in-out trees reduce along other trees if
    they are given."""
    if kind is TreeKind.BOTH:
        there = trees_of(instance, TreeKind.IN, reduction or trees)[1]
        return instance, replace(trees_of(instance, TreeKind.OUT, trees)[1], kind=kind, reduction=there)
    topology = instance.network
    edges = [edge for _, _, branch in trees for edge in branch]
    paths = [links_along(topology, nodes[::-1] if kind is TreeKind.IN else nodes) for _, _, nodes in edges]
    return instance, TreePacking(
        instance.sha256,
        kind,
        np.array([t[0] for t in trees]),
        np.array([t[1] for t in trees]),
        UNIT,
        offsets([len(t[2]) for t in trees]),
        np.array([e[0] for e in edges]),
        np.array([e[1] for e in edges]),
        offsets([len(p) for p in paths]),
        np.array([link for p in paths for link in p]),
    )


def chain_trees(n=5):
    """Two chains from every rank of a two-way ring, one each way."""
    instance = instance_of(ring_of(n, both=True), "all_gather", 2 * n)
    trees = []
    for root in range(n):
        for way in (1, -1):
            hops = [((root + way * k) % n, (root + way * (k + 1)) % n) for k in range(n - 1)]
            trees.append((root, 1, [(a, b, (a, b)) for a, b in hops]))
    return trees_of(instance, TreeKind.OUT, trees)


def reduce_trees(n=5):
    instance = instance_of(full(n), "reduce_scatter", n)
    return trees_of(instance, TreeKind.IN, [(r, 1, [(r, c, (r, c)) for c in range(n) if c != r]) for r in range(n)])


def switched_trees(n=5):
    """All-reduce over chains through a switch that copies nothing."""
    instance = instance_of(star(n, buffer_bytes=Fraction(0)), "all_reduce", 4)
    trees = []
    for root, units in ((0, 1), (2, 3)):
        order = [(root + k) % n for k in range(n)]
        trees.append((root, units, [(a, b, (a, n, b)) for a, b in pairwise(order)]))
    return trees_of(instance, TreeKind.BOTH, trees)


def unlike_trees(n=4):
    """All-reduce that comes to its roots along stars and leaves them along chains."""
    instance = instance_of(full(n), "all_reduce", 4)
    there, back = [], []
    for root, units in ((0, 1), (2, 3)):
        order = [(root + k) % n for k in range(n)]
        there.append((root, units, [(root, rank, (root, rank)) for rank in order[1:]]))
        back.append((root, units, [(a, b, (a, b)) for a, b in pairwise(order)]))
    return trees_of(instance, TreeKind.BOTH, back, there)


FAMILIES = {
    make.__name__: make
    for make in (
        ring_all_gather,
        ring_reduce_scatter,
        ring_all_reduce,
        recursive_doubling,
        direct_all_to_all,
        routed_all_to_all,
        binomial_broadcast,
        binomial_reduce,
        switched_all_gather,
        multicast_broadcast,
        in_network_all_reduce,
        stored_gather,
        group_all_gather,
        timed_ring_all_gather,
        timed_switched_all_to_all,
        timed_chain_all_reduce,
        chain_trees,
        reduce_trees,
        switched_trees,
        unlike_trees,
    )
}
