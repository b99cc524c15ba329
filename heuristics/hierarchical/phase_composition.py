"""Answers for the groups of a level as shares of their data, and one schedule of those of all phases.

A method gets a network of the group alone, whose nodes have numbers for names. Groups with equal networks share one
answer.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import pairwise

import numpy as np

from ...algorithms.schedules.problem import GroupProblem, check_size
from ...core.collective import Collective, Demand
from ...core.instance import Instance
from ...core.schedule import Chunks, Ints, Sends, StepSchedule, offsets, ranges
from ...core.topology import Topology
from ...core.trees import TreeKind, TreePacking
from ...core.units import common_unit
from .levels import Hierarchy
from .phases import AR, BROADCAST, GATHER, REDUCE, RS, SCATTER, Phase

#: Collectives whose parts are known by who needs them; those of others by who holds them, if there are several.
_BY_RECEIVER = (Collective.REDUCE_SCATTER, Collective.SCATTER)
_WHOLE = (Collective.ALL_REDUCE, Collective.BROADCAST, Collective.REDUCE)


@dataclass(frozen=True, eq=False)
class Site:
    """The network of one group.

    Its instance's first ranks are the positions in the group, the first is the root; ``nodes`` and ``links`` are those
    of the whole network.
    """

    instance: Instance
    nodes: Ints
    links: Ints


def site(topology: Topology, ranks: Sequence[int], links: Sequence[int], demand: Demand) -> Site:
    """Extract the network of a group, whose ranks come first, with the links that its data may use."""
    ends = topology.link_ends
    nodes = list(dict.fromkeys([*ranks, *sorted({node for link in links for node in ends[link]})]))
    number = {node: index for index, node in enumerate(nodes)}
    names = [str(index) for index in range(len(nodes))]
    network = Topology(
        tuple(replace(topology.nodes[node], name=name) for node, name in zip(nodes, names, strict=True)),
        tuple(
            replace(topology.links[link], source=names[number[ends[link][0]]], target=names[number[ends[link][1]]])
            for link in links
        ),
    )
    return Site(Instance("group", network, demand), np.array(nodes, dtype=np.int64), np.array(links, dtype=np.int64))


@dataclass(frozen=True, eq=False)
class Shares:
    """Sends of shares of the parts of a group, on its own network.

    ``begin`` and ``end`` are the interval of every chunk within its part, from 0 to 1. ``part`` is the part of the
    group's data: the position of the one rank that holds or needs it, 0 if all have the same data, or ``i * n + j``
    from i to j. ``step`` is that of every send, from 0.
    """

    begin: list[Fraction]
    end: list[Fraction]
    part: Ints
    sends: Sends
    step: Ints

    @cached_property
    def service(self) -> tuple[object, ...]:
        """Columns that are equal if links serve the same sends of each part and step in the same order."""
        chunks = sorted(range(len(self.part)), key=lambda chunk: (self.part[chunk], self.begin[chunk]))
        number, sends = np.argsort(chunks), self.sends
        order = np.lexsort((sends.target, sends.source, number[sends.chunk], self.step))
        owner = sends.hop_send
        by_link = np.lexsort((self.step[owner], self.part[sends.chunk][owner], sends.path_links))
        same = sends.take(order)
        columns = number[same.chunk], same.source, same.target, same.reduce, same.path_offset, same.path_links
        of_chunks = [(int(self.part[chunk]), self.begin[chunk], self.end[chunk]) for chunk in chunks]
        return of_chunks, self.step[order], *columns, np.argsort(order)[owner][by_link]


def shares_of(instance: Instance, answer: StepSchedule | TreePacking, parts: Ints | None = None) -> Shares | None:
    """Read what chunks are of the group's parts, by default of all.

    None if a given one is not in the answer.
    """
    kind, n = instance.demands[0].collective, len(instance.demands[0].group(instance.npus))
    if isinstance(answer, TreePacking):
        sends, step = _of_trees(instance, answer)
        part = np.zeros_like(answer.root) if kind in _WHOLE else answer.root
        units = answer.units
    else:
        chunks, sends, step, units = answer.chunks, answer.sends, answer.step, answer.chunks.units
        part = _part(chunks, kind, n)
    if parts is not None:
        if not np.isin(parts, part).all():
            return None
        is_read, number = np.isin(part, parts), np.cumsum(np.isin(part, parts)) - 1
        mine = is_read[sends.chunk]
        sends, step, part, units = sends.take(mine), step[mine], part[is_read], units[is_read]
        sends = replace(sends, chunk=number[sends.chunk])
    begin, end = [], []
    total, position = np.bincount(part, units).tolist(), defaultdict[int, Fraction](Fraction)
    for of, count in zip(part.tolist(), units.tolist(), strict=True):
        begin.append(position[of])
        position[of] += Fraction(count, int(total[of]))
        end.append(position[of])
    return Shares(begin, end, part, sends, step)


def _part(chunks: Chunks, kind: Collective, n: int) -> Ints:
    if kind in _WHOLE:
        return np.zeros(len(chunks), dtype=np.int64)
    first = np.array([group[0] for group in chunks.groups], dtype=np.int64)
    holder, receiver = first[chunks.held_by], first[chunks.needed_by]
    if kind is Collective.ALL_TO_ALL:
        return holder * n + receiver
    return receiver if kind in _BY_RECEIVER else holder


def _of_trees(instance: Instance, packing: TreePacking) -> tuple[Sends, Ints]:
    """Edges as sends, and a step for each: its depth, in in-trees counted from the deepest edge."""
    topology = instance.topology
    node = np.array(topology.tree_nodes, dtype=np.int64)
    columns: list[tuple[Ints, ...]] = []
    before = 0
    for part in packing.passes:
        tree = part.edge_tree
        depth: dict[tuple[int, int], int] = defaultdict(int)
        for of, parent, child in zip(tree.tolist(), part.parent.tolist(), part.child.tolist(), strict=True):
            depth[of, child] = depth[of, parent] + 1
        level = np.array([depth[key] for key in zip(tree.tolist(), part.child.tolist(), strict=True)], dtype=np.int64)
        height = int(level.max())
        inward = part.kind is TreeKind.IN
        source, target = (part.child, part.parent) if inward else (part.parent, part.child)
        step = before + (height - level if inward else level - 1)
        flag = np.full(len(tree), inward)
        columns.append((tree, node[source], node[target], flag, np.diff(part.path_offset), part.path_links, step))
        before += height
    chunk, one, other, reduce, hops, links, step = (np.concatenate(each) for each in zip(*columns, strict=True))
    return Sends(chunk, one, other, reduce.astype(np.bool_), offsets(hops), links), step


@dataclass(frozen=True, eq=False)
class PhaseAnswers:
    """A phase with a method's answers for its groups.

    ``bases`` are the first positions of the groups, sorted; ``sites`` and ``shares`` are in this order.
    """

    phase: Phase
    bases: Ints
    sites: list[Site]
    shares: list[Shares]


def _rows(shares: Shares, cuts: Sequence[Fraction]) -> tuple[Ints, Ints, Ints]:
    """Cut all sends into slices, sorted by part; return where each part begins, slices and sends."""
    place = {cut: index for index, cut in enumerate(cuts)}
    low = np.array([place[cut] for cut in shares.begin], dtype=np.int64)[shares.sends.chunk]
    high = np.array([place[cut] for cut in shares.end], dtype=np.int64)[shares.sends.chunk]
    send = np.repeat(np.arange(len(low)), high - low)
    piece = ranges(low, high - low)
    part = shares.part[shares.sends.chunk][send]
    order = np.argsort(part, kind="stable")
    first = np.searchsorted(part[order], np.arange(int(shares.part.max()) + 2))
    return first.astype(np.int64), piece[order], send[order]


def _columns(filled: PhaseAnswers, slices: Sequence[Fraction], block_index: Ints, start: int) -> list[tuple[Ints, ...]]:
    """Return the sends of a phase on the whole network, batched by groups with the same answer.

    Columns are chunk, source, target, reduce, step, levels ahead, hops and links.
    """
    phase, columns = filled.phase, list[tuple[Ints, ...]]()
    group = np.searchsorted(filled.bases, phase.base)
    answer = np.unique([id(shares) for shares in filled.shares], return_inverse=True)[1]
    for kind in range(int(answer.max()) + 1):
        alike = np.flatnonzero(answer == kind)
        shares = filled.shares[int(alike[0])]
        begin, piece, send_of = _rows(shares, slices)
        nodes = np.stack([filled.sites[int(g)].nodes for g in alike])
        links = np.stack([filled.sites[int(g)].links for g in alike])
        mine = np.flatnonzero(answer[group] == kind)
        where = np.searchsorted(alike, group[mine])
        first, last = begin[phase.part[mine]], begin[phase.part[mine] + 1]
        task = np.repeat(np.arange(len(mine)), last - first)
        row = ranges(first, last - first)
        send, at = send_of[row], where[task]
        sends = shares.sends.take(send)
        columns.append(
            (
                block_index[phase.block[mine][task]] * (len(slices) - 1) + piece[row],
                nodes[at, sends.source],
                nodes[at, sends.target],
                sends.reduce.astype(np.int64),
                start + shares.step[send],
                phase.ahead[mine][task],
                sends.hops,
                links[np.repeat(at, sends.hops), sends.path_links],
            )
        )
    return columns


def compose_phases(
    problem: GroupProblem,
    kind: Collective,
    hierarchy: Hierarchy,
    blocks: Ints,
    block_bytes: Fraction,
    filled: Sequence[PhaseAnswers],
    pieces: int,
) -> StepSchedule:
    """Concatenate the phases, piece by piece of every block.

    Each of the pieces of every block goes from phase to phase as soon as it can. Sends of a step with the most levels
    ahead come first.
    """
    # Every phase's shares are unions of slices between these.
    distinct = {id(shares): shares for each in filled for shares in each.shares}
    cuts = sorted({Fraction(0), Fraction(1), *(end for shares in distinct.values() for end in shares.end)})
    count = len(cuts) - 1
    index = np.full(int(blocks.max()) + 1, -1)
    index[blocks] = np.arange(len(blocks))
    columns: list[tuple[Ints, ...]] = []
    start = 0
    for each in filled:
        columns += _columns(each, cuts, index, start)
        start += max(int(shares.step.max()) + 1 for shares in each.shares)
    chunk, source, target, reduce, step, ahead, hops, links = map(np.concatenate, zip(*columns, strict=True))
    check_size(len(chunk) * pieces, len(links) * pieces)
    once = Sends(chunk, source, target, reduce.astype(np.bool_), offsets(hops), links)
    piece = np.repeat(np.arange(pieces), len(step))
    order = np.lexsort((piece, np.tile(-ahead, pieces), np.tile(step, pieces)))
    piece = piece[order]
    sends = once.take(order % len(step))
    every = replace(sends, chunk=(sends.chunk // count * pieces + piece) * count + sends.chunk % count)
    chunks = _chunks(kind, hierarchy, blocks, block_bytes / pieces, pieces, cuts)
    schedule = StepSchedule(problem.instance.sha256, chunks, every, step[order % len(step)])
    return _once(schedule, problem.topology.rank_nodes[int(hierarchy.order[0])]) if kind is BROADCAST else schedule


def _once(schedule: StepSchedule, root: int) -> StepSchedule:
    """Drop sends to the root of a broadcast, or to a node that has the data already."""
    sends = schedule.sends
    nodes = int(max(sends.source.max(), sends.target.max())) + 1
    first = np.unique(sends.chunk * nodes + sends.target, return_index=True)[1]
    firsts = np.sort(first[sends.target[first] != root])
    return replace(schedule, sends=sends.take(firsts), step=schedule.step[firsts])


def _chunks(
    kind: Collective, hierarchy: Hierarchy, blocks: Ints, piece_bytes: Fraction, pieces: int, cuts: Sequence[Fraction]
) -> Chunks:
    parts = [b - a for a, b in pairwise(cuts)]
    unit = common_unit(parts)
    n, each = len(hierarchy.order), pieces * len(parts)
    holder = receiver = np.full(len(blocks), n)
    if kind is Collective.ALL_TO_ALL:
        holder, receiver = np.divmod(blocks, n)
    elif kind in (Collective.ALL_GATHER, GATHER):
        holder = blocks
    elif kind in (RS, SCATTER):
        receiver = blocks
    if kind in (BROADCAST, SCATTER):
        holder = np.zeros_like(blocks)
    if kind in (REDUCE, GATHER):
        receiver = np.zeros_like(blocks)
    ranks = [int(rank) for rank in hierarchy.order]
    return Chunks(
        np.tile(np.array([int(part / unit) for part in parts], dtype=np.int64), len(blocks) * pieces),
        piece_bytes * unit,
        (*((rank,) for rank in ranks), tuple(sorted(ranks))),
        np.repeat(holder, each),
        np.repeat(receiver, each),
        np.full(len(blocks) * each, kind in (RS, AR, REDUCE)),
    )
