"""Schedules and tree packings composed of others: reversed, in sequence, in parallel; sends joined at switches.

A reversed all-gather is a reduce-scatter, and the two in sequence are an all-reduce.

Sources: dissertation, section 2.2.2; Zhao et al., "Efficient Direct-Connect Topologies for Collective Communications",
appendix B: a reduce-scatter schedule on a network is an all-gather schedule on the transposed network, run backwards
with every send reversed. Zhao et al., "ForestColl: Efficient Collective Communications on Heterogeneous Network
Fabrics", section 4.6 and figure 1: likewise, in-trees of a network are out-trees of the transposed network.

A switch without multicast or with a limited buffer forwards each received chunk only once. Changing the time or the
partner of one of its sends alone would break this rule; a send from rank to rank through the switch cannot break it.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from ...core.errors import InputError, Unsupported
from ...core.grouping import group_by_key
from ...core.schedule import Chunks, Floats, Ints, Schedule, Sends, StepSchedule, offsets, ranges, sends_from_lists
from ...core.topology import Link, NodeKind, Topology
from ...core.trees import TreeKind, TreePacking
from ...core.units import common_unit


def transpose(topology: Topology) -> Topology:
    """Reverse every link; each keeps its place in the list."""
    links = tuple(Link(e.target, e.source, e.bandwidth_Bps, e.latency_s) for e in topology.links)
    return Topology(topology.nodes, links)


def reverse_links(topology: Topology) -> Ints:
    """Return the reverse link of each link, parallel links in order; raise Unsupported if a link has none."""
    between = group_by_key((ends, index) for index, ends in enumerate(topology.link_ends))
    back = np.empty(len(topology.links), dtype=np.int64)
    for (source, target), links in between.items():
        reverse = between.get((target, source), [])
        if len(reverse) < len(links):
            names = f"{topology.nodes[source].name!r} to {topology.nodes[target].name!r}"
            raise Unsupported(
                f"the link from {names} has no opposite link; reverse a schedule for the transposed network instead"
            )
        back[links] = reverse[: len(links)]
    return back


def reverse(schedule: StepSchedule, topology: Topology | None = None) -> StepSchedule:
    """Run copies, such as an all-gather or a broadcast, backwards: as reductions, with receivers as contributors.

    With ``topology`` every send uses the reverse links. Without, the schedule is for the transposed network
    (:func:`transpose`). Raise InputError if the schedule already reduces.
    """
    if schedule.sends.reduce.any() or schedule.chunks.reduced.any():
        raise InputError("a schedule that reduces cannot be reversed", place="sends.reduce")
    sends, chunks = schedule.sends, schedule.chunks
    links = _reverse_paths(sends.path_offset, sends.path_links, topology)
    every, again = np.ones_like(chunks.reduced), np.ones_like(sends.reduce)
    return StepSchedule(
        schedule.instance_sha256,
        replace(chunks, held_by=chunks.needed_by, needed_by=chunks.held_by, reduced=every),
        Sends(sends.chunk, sends.target, sends.source, again, sends.path_offset, links),
        schedule.steps - 1 - schedule.step,
    )


def concatenate(first: StepSchedule, second: StepSchedule) -> StepSchedule:
    """Run one schedule after the other, with chunk i of the first as input of chunk i of the second."""
    a, b = first.chunks, second.chunks
    if len(a) != len(b) or a.unit_bytes != b.unit_bytes or (a.units != b.units).any():
        raise InputError("the chunks of the two schedules differ", place="chunks.units")
    groups, (of_a, of_b) = _common_groups((a, b))
    if (of_a[a.needed_by] != of_b[b.held_by]).any():
        raise InputError("the second schedule does not start where the first ends", place="chunks.held_by")
    reduced = np.asarray(a.reduced | b.reduced)
    chunks = Chunks(a.units, a.unit_bytes, groups, of_a[a.held_by], of_b[b.needed_by], reduced)
    sends = _all_sends((first.sends, second.sends), (0, 0))
    return replace(first, chunks=chunks, sends=sends, step=np.concatenate([first.step, second.step + first.steps]))


def merge(instance_sha256: str, schedules: Sequence[StepSchedule]) -> StepSchedule:
    """Run schedules of different data, such as those of several process groups, in parallel, step by step."""
    if len(schedules) == 1:
        return replace(schedules[0], instance_sha256=instance_sha256)
    parts = [schedule.chunks for schedule in schedules]
    groups, place = _common_groups(parts)
    unit = common_unit(part.unit_bytes for part in parts)
    chunks = Chunks(
        np.concatenate([part.units * int(part.unit_bytes / unit) for part in parts]),
        unit,
        groups,
        np.concatenate([where[part.held_by] for where, part in zip(place, parts, strict=True)]),
        np.concatenate([where[part.needed_by] for where, part in zip(place, parts, strict=True)]),
        np.concatenate([part.reduced for part in parts]),
    )
    sends = _all_sends([schedule.sends for schedule in schedules], offsets([len(part) for part in parts])[:-1].tolist())
    return StepSchedule(instance_sha256, chunks, sends, np.concatenate([schedule.step for schedule in schedules]))


def _common_groups(parts: Sequence[Chunks]) -> tuple[tuple[tuple[int, ...], ...], list[Ints]]:
    """Return the different groups of several chunks, and the position in them of every part's groups."""
    groups = tuple(dict.fromkeys(group for part in parts for group in part.groups))
    index = {group: position for position, group in enumerate(groups)}
    return groups, [np.array([index[group] for group in part.groups], dtype=np.int64) for part in parts]


def _all_sends(parts: Sequence[Sends], first_chunk: Sequence[int]) -> Sends:
    """Concatenate sends, with chunks counted from another number in each part."""
    return Sends(
        np.concatenate([sends.chunk + first for sends, first in zip(parts, first_chunk, strict=True)]),
        np.concatenate([sends.source for sends in parts]),
        np.concatenate([sends.target for sends in parts]),
        np.concatenate([sends.reduce for sends in parts]),
        offsets(np.concatenate([sends.hops for sends in parts])),
        np.concatenate([sends.path_links for sends in parts]),
    )


def reverse_trees(packing: TreePacking, topology: Topology | None = None) -> TreePacking:
    """Convert out-trees to in-trees, or back, of the same roots and edges; ``topology`` is that of :func:`reverse`."""
    if packing.kind is TreeKind.BOTH:
        raise InputError("in-out trees cannot be reversed", place="trees.kind")
    kind = TreeKind.IN if packing.kind is TreeKind.OUT else TreeKind.OUT
    return replace(packing, kind=kind, path_links=_reverse_paths(packing.path_offset, packing.path_links, topology))


def _reverse_paths(offset: Ints, links: Ints, topology: Topology | None) -> Ints:
    """Return the links of every path from its end to its start, or the reverse links of these."""
    hops = np.diff(offset)
    back = links[np.repeat(offset[1:] + offset[:-1] - 1, hops) - np.arange(len(links))]
    return back if topology is None else reverse_links(topology)[back]


def reduce_then_broadcast(in_trees: TreePacking, out_trees: TreePacking) -> TreePacking:
    """Combine in-trees and out-trees of the same data into in-out trees, which reduce and then broadcast.

    Trees are paired root by root, in their order; if the trees of a root carry different parts in the two packings,
    both are cut at the ends of either, so that each part of the data has one tree to the root and one from it. The
    result is sorted by root. Raise Unsupported if the parts have no common unit that 64 bits can count.
    """
    if in_trees.kind is not TreeKind.IN or out_trees.kind is not TreeKind.OUT:
        raise InputError("expected in-trees and out-trees", place="trees.kind")
    unit = common_unit((in_trees.unit_bytes, out_trees.unit_bytes))
    if _data_of_roots(in_trees, unit) != _data_of_roots(out_trees, unit):
        raise InputError("a root has different data in the two packings", place="trees.units")
    both = in_trees, out_trees
    orders = [np.argsort(packing.root, kind="stable") for packing in both]
    ends = [list(accumulate(_units(packing, unit, order))) for packing, order in zip(both, orders, strict=True)]
    cuts = sorted({*ends[0], *ends[1]})
    parts = [end - begin for begin, end in pairwise([0, *cuts])]
    if max(parts, default=0) >= 2**63:
        raise Unsupported("the two halves divide the data so differently that 64 bits cannot count the common parts")
    units = np.array(parts, dtype=np.int64)
    reduction, broadcast = (
        _select_trees(packing, order[[bisect_left(end, cut) for cut in cuts]], units, unit)
        for packing, order, end in zip(both, orders, ends, strict=True)
    )
    return replace(broadcast, kind=TreeKind.BOTH, reduction=reduction)


def drop_idle_switches(packing: TreePacking, ranks: int) -> TreePacking:
    """Remove edges to switches, numbered from ``ranks`` on, that forward nothing."""
    first = int(max(packing.parent.max(initial=0), packing.child.max(initial=0))) + 1
    tree = packing.edge_tree
    above, below, stay = tree * first + packing.parent, tree * first + packing.child, np.ones_like(tree, dtype=np.bool_)
    while (idle := stay & (packing.child >= ranks) & ~np.isin(below, above[stay])).any():
        stay &= ~idle
    edge = np.flatnonzero(stay)
    entry, path_offset = _spans(packing.path_offset, edge)
    edges = np.bincount(tree[stay], minlength=len(packing))
    columns: Any = {"edge_offset": offsets(edges), "parent": packing.parent[edge], "child": packing.child[edge]}
    return replace(packing, **columns, path_offset=path_offset, path_links=packing.path_links[entry])


def _units(packing: TreePacking, unit: Fraction, order: Ints) -> list[int]:
    times = int(packing.unit_bytes / unit)
    return [units * times for units in packing.units[order].tolist()]


def _data_of_roots(packing: TreePacking, unit: Fraction) -> dict[int, int]:
    units = group_by_key(zip(packing.root.tolist(), _units(packing, unit, np.arange(len(packing))), strict=True))
    return {root: sum(some) for root, some in units.items()}


def _select_trees(packing: TreePacking, trees: Ints, units: Ints, unit: Fraction) -> TreePacking:
    edge, edge_offset = _spans(packing.edge_offset, trees)
    entry, path_offset = _spans(packing.path_offset, edge)
    edges, links = (edge_offset, packing.parent[edge], packing.child[edge]), packing.path_links[entry]
    head = packing.instance_sha256, packing.kind, packing.root[trees]
    return TreePacking(*head, units, unit, *edges, path_offset, links)


def _spans(offset: Ints, which: Ints) -> tuple[Ints, Ints]:
    """Return the entries of some spans, one span after the other, and the offsets of these spans."""
    count = offset[which + 1] - offset[which]
    return ranges(offset[which], count), offsets(count)


_SAME_TIME = 1e-9  #: times closer than this part of the schedule's length are one instant that was rounded

#: Data of a chunk at a switch: original sender, its departure time, and the links so far.
_Arrival = tuple[int, float, tuple[int, ...]]


def join_sends_at_switches(
    topology: Topology, answer: StepSchedule | Schedule, *, sums: bool
) -> StepSchedule | Schedule:
    """Join the sends of a correct schedule at switches without multicast or with a limited buffer.

    The result is a timed schedule if any sends were joined. A joined send leaves its first rank and reaches its last
    one at the times of the old sends. If a switch forwards data several times, or adds data up, there is one send
    through it per copy or summand. ``sums`` joins sends of sums also at switches with an unlimited buffer.
    """
    sends, reduced = answer.sends, answer.chunks.reduced[answer.sends.chunk]
    if isinstance(answer, StepSchedule):
        start: Floats = answer.step.astype(np.float64)
        end: Floats = (answer.step + 1).astype(np.float64)
    else:
        start, end = answer.start_s, answer.end_s
    switches = [(n, x) for n, x in enumerate(topology.nodes) if x.kind is NodeKind.SWITCH]
    full = np.unique([*(n for n, x in switches if x.buffer_bytes is not None), *sends.source[end <= start].tolist()])
    once = [n for n, x in switches if not x.copies]
    at = [np.isin(ends, full) | (np.isin(ends, once) & (sums | ~reduced)) for ends in (sends.source, sends.target)]
    if not (at[0] | at[1]).any():
        return answer
    stock: dict[tuple[int, int], list[_Arrival]] = defaultdict(list)
    going: dict[int, list[_Arrival]] = {}
    rows: list[tuple[int, int, int, bool, tuple[int, ...], float, float]] = []
    inside, reads, count = at[1].tolist(), at[0].tolist(), len(sends)
    columns = sends.chunk, sends.source, sends.target, sends.reduce, reduced
    facts = list(zip(*(column.tolist() for column in columns), strict=True))
    for event in _events(answer.sends, start, end):
        send = event % count
        chunk, source, target, adds, summed = facts[send]
        if event < count:
            links = tuple(sends.path(send))
            there: list[_Arrival] = [(source, float(start[send]), ())]
            if reads[send]:
                there = stock[chunk, source] if summed else stock[chunk, source][-1:]
                if not summed and not topology.nodes[source].copies:
                    stock[chunk, source] = stock[chunk, source][:-1]
            going[send] = [(first, begin, earlier + links) for first, begin, earlier in there]
        elif inside[send]:
            before = [] if summed and not adds else stock[chunk, target]
            stock[chunk, target] = [*before, *going.pop(send)]
        else:
            arrives = float(end[send])
            came = [arrival for arrival in going.pop(send) if arrival[0] != target]
            rows += [(chunk, first, target, adds, path, begin, arrives) for first, begin, path in came]
    chunks, sources, targets, flags, paths, leaves, arrived = map(list, zip(*rows, strict=True))
    joined = sends_from_lists(chunks, sources, targets, flags, paths)
    return Schedule(answer.instance_sha256, answer.chunks, joined, np.array(leaves), np.array(arrived))


def _events(sends: Sends, start: Floats, end: Floats) -> list[int]:
    """Sort the events: number i is the start of send i, and ``len(sends) + i`` its arrival.

    At equal times arrivals come first, then sends that take no time, in the order of their path, then other starts.
    """
    instant = np.unique(np.concatenate([start, end]))
    place = np.cumsum(np.diff(instant, prepend=instant[:1]) > _SAME_TIME * instant[-1])
    begin, arrive = (place[np.searchsorted(instant, times)] for times in (start, end))
    at_once = np.flatnonzero(begin == arrive).tolist()
    level = np.zeros(len(sends), dtype=np.int64)
    into: dict[tuple[int, int, int], int] = {}
    keys = [(int(sends.chunk[n]), int(begin[n])) for n in at_once]
    for _ in at_once:
        before = dict(into)
        for send, key in zip(at_once, keys, strict=True):
            level[send] = into.get((*key, int(sends.source[send])), 0)
            there = (*key, int(sends.target[send]))
            into[there] = max(into.get(there, 0), int(level[send]) + 1)
        if into == before:
            break
    last = 2 * int(level.max(initial=0))
    same = begin == arrive
    phase = np.concatenate([np.where(same, 1 + 2 * level, last + 3), np.where(same, 2 + 2 * level, 0)])
    events: list[int] = np.lexsort((phase, np.concatenate([begin, arrive]))).tolist()
    return events
