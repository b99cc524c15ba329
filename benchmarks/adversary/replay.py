"""Replay of schedules by the documented rules, with dictionaries and exact numbers: validity and end."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor
from typing import Any


@dataclass(frozen=True)
class Send:
    """One send, its start and end in steps or epochs."""

    chunk: int
    source: int
    target: int
    adds: bool
    links: tuple[int, ...]
    start: int
    end: int


def sends_in_steps(answer: Any) -> list[Send]:
    """Read the sends of a schedule in steps."""
    return [Send(*row, int(step), int(step) + 1) for row, step in zip(rows(answer), answer.step.tolist(), strict=True)]


def sends_in_epochs(answer: Any, epoch_s: Fraction) -> list[Send] | None:
    """Read the sends of a schedule on a grid; None if one is off it."""
    found = []
    for row, start, end in zip(rows(answer), answer.start_s.tolist(), answer.end_s.tolist(), strict=True):
        a, b = Fraction(start) / epoch_s, Fraction(end) / epoch_s
        if max(abs(a - round(a)), abs(b - round(b))) > Fraction(1, 10**6):
            return None
        found.append(Send(*row, round(a), round(b)))
    return found


def rows(answer: Any) -> Iterable[tuple[int, int, int, bool, tuple[int, ...]]]:
    """Chunk, source, target, whether it adds, and the links of every send."""
    sends = answer.sends
    columns = (sends.chunk.tolist(), sends.source.tolist(), sends.target.tolist(), sends.reduce.tolist())
    for index, (chunk, source, target, adds) in enumerate(zip(*columns, strict=True)):
        begin, end = int(sends.path_offset[index]), int(sends.path_offset[index + 1])
        yield chunk, source, target, bool(adds), tuple(sends.path_links[begin:end].tolist())


@dataclass(frozen=True)
class ReplayGrid:
    """Delays, windows and capacities of links, counted under store-and-forward from the network."""

    ends: tuple[tuple[int, int], ...]
    delay: tuple[int, ...]
    window: tuple[int, ...]
    rate: tuple[Fraction, ...]
    factors: dict[tuple[int, int], Fraction]


def grid_of(instance: Any, chunk_bytes: Fraction) -> ReplayGrid:
    """Count the epochs of links: every link takes its time on the wire and its latency, each rounded up."""
    topology, timing = instance.network, instance.timing
    rate = tuple(link.bandwidth_Bps * timing.epoch_s / chunk_bytes for link in topology.links)
    window = tuple(ceil(1 / r) for r in rate)
    late = [ceil(link.latency_s / timing.epoch_s) for link in topology.links]
    factors: dict[tuple[int, int], Fraction] = {}
    for change in timing.changes:
        for epoch in range(change.first, min(change.last, 10_000)):
            factors[change.link, epoch] = factors.get((change.link, epoch), Fraction(1)) * change.factor
    delay = tuple(w + late_ for w, late_ in zip(window, late, strict=True))
    return ReplayGrid(topology.link_ends, delay, window, rate, factors)


def faults_in_epochs(instance: Any, chunks: Any, sends: list[Send]) -> list[str]:
    """Return what is wrong with a schedule of whole chunks under store-and-forward."""
    grid = grid_of(instance, chunks.size_bytes(0))
    found: list[str] = []
    starts: dict[int, list[int]] = defaultdict(list)
    for send in sends:
        at = send.start
        if not _leads(grid.ends, send):
            found.append(f"{send} is no path")
            continue
        for link in send.links:
            starts[link].append(at)
            at += grid.delay[link]
        if at != send.end:
            found.append(f"{send} takes {at - send.start}")
    for link, times in starts.items():
        window = grid.window[link]
        for begin in {max(0, t - shift) for t in times for shift in range(window)}:
            room = sum(
                (grid.rate[link] * grid.factors.get((link, k), 1) for k in range(begin, begin + window)), Fraction(0)
            )
            if sum(begin <= t < begin + window for t in times) > floor(room):
                found.append(f"link {link} is overloaded in epoch {begin}")
    found += _passing(instance, sends) + _overfull(instance, chunks, sends)
    return found + faults_of_data(instance, chunks, sends, stores=False)


def _leads(ends: tuple[tuple[int, int], ...], send: Send) -> bool:
    here = send.source
    for link in send.links:
        if ends[link][0] != here:
            return False
        here = ends[link][1]
    return here == send.target and send.end > send.start


def _passing(instance: Any, sends: list[Send]) -> list[str]:
    """Hold switches without a buffer to what they can do: pass on at once, not add, and copy only with multicast."""
    nodes = instance.network.nodes
    empty = {i for i, node in enumerate(nodes) if node.kind.value == "switch" and node.buffer_bytes == 0}
    came = Counter((s.target, s.chunk, s.end) for s in sends if s.target in empty)
    added = Counter((s.target, s.chunk, s.end) for s in sends if s.target in empty and s.adds)
    went = Counter((s.source, s.chunk, s.start) for s in sends if s.source in empty)
    found = [f"switch {key[0]} adds" for key, count in added.items() if count > 1 and key in went]
    for key, count in went.items():
        if not came[key]:
            found.append(f"switch {key[0]} cannot store")
        elif not nodes[key[0]].multicast and count > came[key]:
            found.append(f"switch {key[0]} cannot copy")
    found += [f"switch {s.source} adds" for s in sends if s.source in empty and s.adds]
    return found


def _overfull(instance: Any, chunks: Any, sends: list[Send]) -> list[str]:
    """Count backwards the copies of unsummed data that switches with a limit need."""
    found: list[str] = []
    for number, node in enumerate(instance.network.nodes):
        if node.kind.value != "switch" or not node.buffer_bytes:
            continue
        came = Counter((s.chunk, s.end) for s in sends if s.target == number)
        left = Counter((s.chunk, s.start) for s in sends if s.source == number)
        total: Counter[int] = Counter()
        for chunk in {c for c, _ in came if not chunks.reduced[c]}:
            later = 0  # copies that must be there after an index, for what follows
            for index in range(max(s.end for s in sends), -1, -1):
                goes, comes = left[chunk, index], came[chunk, index]
                if node.multicast:
                    goes, comes = min(goes, 1), min(comes, 1)
                now = max(later, goes) if node.multicast else later + goes
                total[index] += chunks.size_bytes(chunk) * max(now, comes)
                later = max(now - comes, 0)
        found += [f"switch {number} holds too much at {index}" for index in total if total[index] > node.buffer_bytes]
    return found


def faults_of_data(instance: Any, chunks: Any, sends: list[Send], *, stores: bool) -> list[str]:
    """Follow the data of all nodes and report wrong sends; ``stores`` tells which switches store."""
    rank_node = instance.network.rank_nodes
    groups = [frozenset(rank_node[r] for r in group) for group in chunks.groups]
    found: list[str] = []
    of_chunk: dict[int, list[Send]] = defaultdict(list)
    for send in sends:
        of_chunk[send.chunk].append(send)
    for chunk in range(len(chunks)):
        held, needed = groups[chunks.held_by[chunk]], groups[chunks.needed_by[chunk]]
        if chunks.reduced[chunk]:
            found += _sums(chunk, held, needed, of_chunk[chunk])
        else:
            found += _copies(chunk, held, needed, of_chunk[chunk])
    return found + (_unicast(instance, sends) if stores else [])


def _copies(chunk: int, held: frozenset[int], needed: frozenset[int], sends: list[Send]) -> list[str]:
    since = dict.fromkeys(held, -1)
    found = [f"{s} adds to data" for s in sends if s.adds]
    for send in sorted(sends, key=lambda s: (s.end, s.start)):
        since.setdefault(send.target, send.end)
    # An arrival counts only if what brought it was there: settle by start, since a send takes longer than nothing.
    valid = dict.fromkeys(held, -1)
    for send in sorted(sends, key=lambda s: s.start):
        if send.source in valid and valid[send.source] <= send.start:
            valid[send.target] = min(valid.get(send.target, send.end), send.end)
        else:
            found.append(f"{send}: not there yet")
    return found + [f"{node} lacks chunk {chunk}" for node in needed - valid.keys()]


def _sums(chunk: int, held: frozenset[int], needed: frozenset[int], sends: list[Send]) -> list[str]:
    """Sums are multisets of contributions; versions of a node are told apart by when they were written."""
    state: dict[int, Counter[int]] = {node: Counter({node: 1}) for node in held}
    found: list[str] = []
    events: list[tuple[int, int, Send]] = sorted(
        [(s.start, 1, s) for s in sends] + [(s.end, 0, s) for s in sends], key=lambda e: (e[0], e[1])
    )
    carried: dict[Hashable, Counter[int] | None] = {}
    index = 0
    while index < len(events):
        time, phase = events[index][0], events[index][1]
        batch = []
        while index < len(events) and events[index][:2] == (time, phase):
            batch.append(events[index][2])
            index += 1
        if phase == 1:
            for send in batch:
                carried[id(send)] = Counter(state[send.source]) if send.source in state else None
                if carried[id(send)] is None:
                    found.append(f"{send}: not there yet")
            continue
        by_target: dict[int, list[Send]] = defaultdict(list)
        for send in batch:
            by_target[send.target].append(send)
        for target, writes in by_target.items():
            payloads = [carried.get(id(s)) for s in writes]
            if any(p is None for p in payloads):
                continue
            copies = [p for s, p in zip(writes, payloads, strict=True) if not s.adds]
            if copies and (len(copies) < len(writes) or any(p != copies[0] for p in copies)):
                found.append(f"writes to {target} meet")
            elif copies:
                state[target] = Counter(copies[0])
            else:
                for payload in payloads:
                    state[target] = state.get(target, Counter()) + (payload or Counter())
    want = Counter(held)
    return found + [f"{node} has {dict(state.get(node, {}))} of {chunk}" for node in needed if state.get(node) != want]


def _unicast(instance: Any, sends: list[Send]) -> list[str]:
    """A switch that stores and does not copy sends data on as often as it came."""
    nodes = instance.network.nodes
    plain = {i for i, node in enumerate(nodes) if node.kind.value == "switch" and not node.multicast}
    went = Counter((s.source, s.chunk) for s in sends if s.source in plain)
    came = Counter((s.target, s.chunk) for s in sends if s.target in plain)
    return [f"switch {key[0]} copies" for key, count in went.items() if count > came[key]]
