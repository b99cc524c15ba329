"""A second verifier, slow and plain: dictionaries and counters, one send after the other. What it finds is what words
mean."""

from __future__ import annotations

from collections import Counter, defaultdict
from fractions import Fraction

from cwb.core.collective import conditions
from cwb.core.schedule import Schedule, StepSchedule
from cwb.core.topology import NodeKind
from cwb.core.trees import TreeKind, TreePacking


def is_valid(instance, answer) -> bool:
    """Check if an answer does what the instance asks for."""
    if isinstance(answer, TreePacking):
        return trees_are_valid(instance, answer)
    return (
        sizes_are_right(instance, answer.chunks)
        and all(path_is_right(instance, answer.sends, i) for i in range(len(answer.sends)))
        and (not isinstance(answer, Schedule) or links_suffice(instance, answer))
        and replays(instance, answer)
    )


def sizes_are_right(instance, chunks) -> bool:
    """The bytes for every (holders, those who lack it, reduced) are the demand's."""

    def table(rows):
        total = defaultdict(Fraction)
        for held, needed, reduced, size in rows:
            lacking = frozenset(needed) if reduced else frozenset(needed) - frozenset(held)
            if lacking:
                total[frozenset(held), lacking, reduced] += size
        return dict(total)

    wanted = conditions(instance.demand, instance.npus).bytes_of
    groups = chunks.groups
    rows = zip(chunks.held_by, chunks.needed_by, chunks.reduced, chunks.units, strict=True)
    given = [(groups[h], groups[n], bool(r), int(u) * chunks.unit_bytes) for h, n, r, u in rows]
    return table(given) == table((*condition, size) for condition, size in wanted.items())


def path_is_right(instance, sends, send) -> bool:
    """The links exist and join source and target."""
    ends = instance.network.link_ends
    at = int(sends.source[send])
    for link in sends.path(send):
        if not 0 <= link < len(ends) or ends[link][0] != at:
            return False
        at = ends[link][1]
    return at == sends.target[send] != sends.source[send]


def links_suffice(instance, schedule) -> bool:
    """In every stretch of time, each link can carry what must cross it then."""
    windows = defaultdict(list)
    for i in range(len(schedule.sends)):
        path = [instance.network.links[link] for link in schedule.sends.path(i)]
        size = float(schedule.chunks.size_bytes(int(schedule.sends.chunk[i])))
        for k, link in enumerate(schedule.sends.path(i)):
            release = schedule.start_s[i] + sum(float(x.latency_s) for x in path[:k])
            deadline = schedule.end_s[i] - sum(float(x.latency_s) for x in path[k:])
            windows[link].append((release, deadline, size / float(path[k].bandwidth_Bps)))
    for jobs in windows.values():
        for begin, _, _ in jobs:
            for _, end, _ in jobs:
                inside = [need for a, b, need in jobs if a >= begin and b <= end]
                if inside and sum(inside) > end - begin + 1e-9 * end:
                    return False
    return True


def events(answer):
    """(instant, reads, writes) in order; at equal times what arrives is there for what starts."""
    count = range(len(answer.sends))
    if isinstance(answer, StepSchedule):
        at = [(2 * int(answer.step[i]), True, i) for i in count] + [
            (2 * int(answer.step[i]) + 1, False, i) for i in count
        ]
    else:
        at = [(answer.start_s[i] * (1 + 1e-9), True, i) for i in count] + [(answer.end_s[i], False, i) for i in count]
    instants = defaultdict(list)
    for time, is_read, i in at:
        instants[time, is_read].append(i)
    return sorted(instants.items())


class WrongError(Exception):
    """The schedule does what cannot be done."""


def replays(instance, answer) -> bool:
    """Every send finds its data, switches keep to their rules, and everybody ends with what is needed."""
    replay = Replay(instance, answer)
    try:
        for instant, ((_, is_read), indices) in enumerate(events(answer)):
            if is_read:
                for i in indices:
                    replay.read(instant, i)
                continue
            targets = defaultdict(list)
            for i in indices:
                targets[int(answer.sends.chunk[i]), int(answer.sends.target[i])].append(i)
            for where, writers in targets.items():
                replay.write(instant, where, writers)
    except WrongError:
        return False
    return buffers_suffice(instance.network, answer.chunks, replay) and ends_right(replay)


class Replay:
    """The data at every node and in every switch during a replay."""

    def __init__(self, instance, answer):
        self.topology, self.chunks, self.sends = instance.network, answer.chunks, answer.sends
        self.holds = defaultdict(Counter)
        for chunk in range(len(self.chunks)):
            for rank in self.chunks.groups[self.chunks.held_by[chunk]]:
                content = rank if self.chunks.reduced[chunk] else "data"
                self.holds[chunk, self.topology.rank_nodes[rank]] = Counter([content])
        self.brought, self.received, self.sent = {}, Counter(), Counter()
        self.fresh = set()  # chunks in switches that have not been sent on since they last changed
        self.stays, self.stay = [], {}  # [node, chunk, from, to], and the last of each (chunk, node)
        self.passed = defaultdict(list)  # data in switches that do not copy: (instant, 1 for an arrival, -1 for a send)

    def read(self, instant, i):
        where = chunk, node = int(self.sends.chunk[i]), int(self.sends.source[i])
        self.brought[i] = self.holds[where].copy()
        insist(self.brought[i])
        if may_not_copy(self.topology.nodes[node]):
            self.sent[where] += 1
            insist(where in self.fresh if self.chunks.reduced[chunk] else self.sent[where] <= self.received[where])
            self.fresh.discard(where)
        if self.is_used_up(where):
            self.passed[where].append((instant, -1))
        elif where in self.stay:
            self.stays[self.stay[where]][3] = instant

    def write(self, instant, where, writers):
        chunk, node = where
        brought = self.brought
        adding = [i for i in writers if self.sends.reduce[i]]
        copying = [i for i in writers if not self.sends.reduce[i]]
        insist(self.chunks.reduced[chunk] or not adding)
        if copying:
            insist(not adding and all(brought[i] == brought[copying[0]] for i in copying))
            self.holds[where] = brought[copying[0]]
        if adding:
            insist(not (self.holds[where] and may_not_copy(self.topology.nodes[node])) or where in self.fresh)
            if where in self.stay:
                self.stays[self.stay[where]][3] = instant - 1
        for i in adding:
            self.holds[where] += brought[i]
        self.received[where] += len(writers)
        self.fresh.add(where)
        if self.is_used_up(where):
            self.passed[where].extend([(instant, 1)] * len(writers))
        else:
            self.stay[where] = len(self.stays)
            self.stays.append([node, chunk, instant, instant])

    def is_used_up(self, where) -> bool:
        """Check if sent data is gone, so that the next send needs another arrival."""
        chunk, node = where
        return may_not_copy(self.topology.nodes[node]) and not self.chunks.reduced[chunk]


def insist(condition) -> None:
    if not condition:
        raise WrongError


def may_not_copy(node) -> bool:
    return node.kind is NodeKind.SWITCH and not node.multicast


def buffers_suffice(topology, chunks, replay) -> bool:
    """No switch holds more than it can at any instant at which something arrives."""
    for number, node in enumerate(topology.nodes):
        if node.kind is NodeKind.SWITCH and node.buffer_bytes is not None:
            here = [(first, last, chunks.size_bytes(chunk)) for at, chunk, first, last in replay.stays if at == number]
            used_up = [
                (events, chunks.size_bytes(chunk)) for (chunk, at), events in replay.passed.items() if at == number
            ]
            instants = {first for first, _, _ in here} | {at for events, _ in used_up for at, way in events if way > 0}
            for instant in instants:
                held = sum(size for first, last, size in here if first <= instant <= last)
                held += sum(size * copies_needed(events, instant) for events, size in used_up)
                if held > node.buffer_bytes:
                    return False
    return True


def copies_needed(events, instant) -> int:
    """Copies without which some later instant has more sends than copies, but no fewer than arrive now."""
    later = sorted(event for event in events if event[0] > instant)
    short = [-sum(way for _, way in later[:count]) for count in range(len(later) + 1)]
    return max(*short, sum(event == (instant, 1) for event in events), 0)


def ends_right(replay) -> bool:
    """Everyone who needs a chunk has it, or each contribution to it exactly once."""
    topology, chunks, holds = replay.topology, replay.chunks, replay.holds
    for chunk in range(len(chunks)):
        held = chunks.groups[chunks.held_by[chunk]]
        wanted = Counter(held) if chunks.reduced[chunk] else Counter(["data"])
        for rank in chunks.groups[chunks.needed_by[chunk]]:
            if holds[chunk, topology.rank_nodes[rank]] != wanted:
                return False
    return True


def trees_are_valid(instance, packing) -> bool:
    """Grow every tree edge by edge, the reduction's too; add up what the trees of every root carry."""
    wanted = dict(conditions(instance.demand, instance.npus).bytes_of)
    carried = defaultdict(Fraction)
    for tree in range(len(packing)):
        root = int(packing.root[tree])
        size = int(packing.units[tree]) * packing.unit_bytes
        key = next((c for c in wanted if carries(packing.kind, root, c)), None)
        if key is None:
            return False
        for part in (packing, packing.reduction) if packing.kind is TreeKind.BOTH else (packing,):
            reached = ranks_of_tree(instance.network, part, tree)
            if reached is None or not reached.issuperset(key[0] + key[1]):
                return False
        carried[key] += size
    return carried == wanted


def ranks_of_tree(topology, packing, tree):
    """Ranks that a tree reaches; None if it is no tree or a path is broken."""
    reached = {int(packing.root[tree])}
    for edge in range(int(packing.edge_offset[tree]), int(packing.edge_offset[tree + 1])):
        parent, child = int(packing.parent[edge]), int(packing.child[edge])
        if parent not in reached or child in reached:
            return None
        reached.add(child)
        at, goal = topology.rank_nodes[parent], topology.rank_nodes[child]
        if packing.kind is TreeKind.IN:
            at, goal = goal, at
        for link in packing.path_links[packing.path_offset[edge] : packing.path_offset[edge + 1]]:
            if topology.link_ends[link][0] != at:
                return None
            at = topology.link_ends[link][1]
        if at != goal:
            return None
    return reached


def carries(kind, root, condition) -> bool:
    held, needed, reduced = condition
    match kind:
        case TreeKind.OUT:
            return not reduced and held == (root,)
        case TreeKind.IN:
            return reduced and needed == (root,)
    return reduced and held == needed and root in held
