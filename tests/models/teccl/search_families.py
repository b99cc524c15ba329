"""Random problems in epochs, in five families, and a slow checker of schedules that shares nothing with the search."""

from __future__ import annotations

import random
from collections import defaultdict
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from cwb.algorithms.epochs.problem import EpochNetwork
from cwb.core.collective import Collective, Demand
from cwb.core.instance import Instance
from cwb.core.topology import Link, Node, NodeKind, Topology

FAMILIES = ("sparse", "cluster", "switch", "torus", "leafspine")


@dataclass(frozen=True)
class Wire:
    """A link as a user knows it: any ``busy`` epochs take ``room`` chunks, the first byte takes ``latency`` epochs."""

    tail: int
    head: int
    busy: int
    room: int
    latency: int


@dataclass(frozen=True)
class Case:
    """A problem in a user's words; switches copy and do not store; with ``paid`` they pay for what they hand over."""

    family: str
    gpus: int
    switches: int
    wires: tuple[Wire, ...]
    paid: bool
    source: tuple[int, ...]
    targets: tuple[tuple[int, ...], ...]

    def delay(self, wire: Wire) -> int:
        """Epochs from start to arrival."""
        free = wire.tail >= self.gpus and wire.head < self.gpus and not self.paid
        return wire.latency if free else wire.latency + wire.busy

    def network(self) -> EpochNetwork:
        """The search's problem."""
        nodes = self.gpus + self.switches
        columns = [(w.tail, w.head, self.delay(w), w.busy, w.room) for w in self.wires]
        tail, head, delay, window, room = np.array(columns, dtype=np.int64).T
        stores = np.arange(nodes) < self.gpus
        need = np.zeros((len(self.source), nodes), dtype=np.bool_)
        for chunk, targets in enumerate(self.targets):
            need[chunk, list(targets)] = True
        source = np.array(self.source, dtype=np.int64)
        return EpochNetwork(nodes, tail, head, delay, window, room, stores, ~stores, source, need)


def instance_of(case: Case) -> tuple[Instance, dict[str, str]]:
    """The same all-gather as an instance with chunks of one byte, and the options that give epochs of one second."""
    names = [f"n{node}" for node in range(case.gpus + case.switches)]
    nodes = [Node(name) for name in names[: case.gpus]]
    nodes += [Node(name, NodeKind.SWITCH, True, Fraction(0)) for name in names[case.gpus :]]
    links = [Link(names[w.tail], names[w.head], Fraction(w.room, w.busy), Fraction(w.latency)) for w in case.wires]
    demand = Demand(Collective.ALL_GATHER, Fraction(len(case.source)), len(case.source) // case.gpus)
    timing = "te-ccl-paid-switch" if case.paid else "te-ccl"
    instance = Instance(f"{case.family} of {case.gpus}", Topology(tuple(nodes), tuple(links)), demand)
    return instance, {"epoch_duration": "1 s", "timing": timing}


def random_case(seed: int, family: str | None = None, most: int = 32, demand: str = "all_gather") -> Case:
    """Draw a problem; the same seed gives the same one."""
    rng = random.Random(seed)  # noqa: S311
    family = family or FAMILIES[seed % len(FAMILIES)]
    gpus, switches, pairs = _SHAPES[family](rng, most)
    wires = []
    kinds = [(rng.choice((1, 1, 2, 4, 8, 16)), rng.choice((1, 1, 2, 4)), rng.randint(0, 20)) for _ in range(3)]
    for a, b, slow in pairs:
        both = _speed(rng, rng.choice(kinds), slow)
        wires.append(Wire(a, b, *both))
        wires.append(Wire(b, a, *(_speed(rng, rng.choice(kinds), slow) if rng.random() < 0.15 else both)))
    each = rng.choice((1, 1, 2))
    ranks = list(range(gpus))
    if demand == "broadcast":
        source = [rng.choice(ranks)] * rng.randint(1, 6)
    elif demand == "custom":
        source = [rng.choice(ranks) for _ in range(rng.randint(1, 2 * gpus))]
    else:
        source = [rank for rank in ranks for _ in range(each)]
    targets = []
    for root in source:
        others = [rank for rank in ranks if rank != root]
        some = rng.sample(others, rng.randint(1, len(others))) if demand == "custom" else others
        targets.append(tuple(sorted(some)))
    return Case(family, gpus, switches, tuple(wires), rng.random() < 0.5, tuple(source), tuple(targets))


def _speed(rng: random.Random, kind: tuple[int, int, int], slow: int) -> tuple[int, int, int]:
    busy, room, latency = kind
    busy *= slow
    return busy, (room if busy == 1 else 1), min(20, latency + rng.choice((0, 0, 0, 1)))


def _sparse(rng: random.Random, most: int) -> tuple[int, int, list[tuple[int, int, int]]]:
    n = rng.randint(4, most)
    order = rng.sample(range(n), n)
    pairs = {tuple(sorted((order[i], order[rng.randrange(i)]))) for i in range(1, n)}
    while len(pairs) < min(n * rng.choice((3, 4, 6)) // 2, n * (n - 1) // 2):
        pairs.add(tuple(sorted(rng.sample(range(n), 2))))
    return n, 0, [(a, b, 1) for a, b in sorted(pairs)]


def _cluster(rng: random.Random, most: int) -> tuple[int, int, list[tuple[int, int, int]]]:
    clusters = rng.randint(2, 4)
    each = rng.randint(2, max(2, most // clusters))
    pairs = set()
    for c in range(clusters):
        members = list(range(c * each, (c + 1) * each))
        pairs |= {(members[i], members[(i + 1) % each]) for i in range(each if each > 2 else 1)}
        pairs |= {tuple(sorted(rng.sample(members, 2))) for _ in range(each)}
    inner = [(a, b, 1) for a, b in sorted({tuple(sorted(p)) for p in pairs})]
    slow = rng.choice((2, 4, 8))
    outer = []
    for c in range(clusters if clusters > 2 else 1):
        for _ in range(rng.randint(1, 2)):
            other = (c + 1) % clusters
            outer.append((c * each + rng.randrange(each), other * each + rng.randrange(each), slow))
    return clusters * each, 0, inner + sorted(set(outer))


def _switch(rng: random.Random, most: int) -> tuple[int, int, list[tuple[int, int, int]]]:
    switches = rng.randint(1, 4)
    gpus = rng.randint(3, max(3, most - switches))
    pairs = [(g, gpus + rng.randrange(switches), 1) for g in range(gpus) if rng.random() < 0.8]
    pairs += [(g, (g + 1) % gpus, rng.choice((1, 1, 2))) for g in range(gpus)]
    return gpus, switches, pairs


def _torus(rng: random.Random, most: int) -> tuple[int, int, list[tuple[int, int, int]]]:
    shapes = [(a, b) for a in range(2, 9) for b in range(2, 9) if 4 <= a * b <= most]
    a, b = rng.choice(shapes)
    pairs = set()
    for x in range(a):
        for y in range(b):
            for other in (((x + 1) % a) * b + y, x * b + (y + 1) % b):
                if other != x * b + y:
                    pairs.add(tuple(sorted((x * b + y, other))))
    kept = [pair for pair in sorted(pairs) if rng.random() < 0.9]
    return a * b, 0, [(p, q, 1) for p, q in (kept if _is_connected(a * b, kept) else sorted(pairs))]


def _leafspine(rng: random.Random, most: int) -> tuple[int, int, list[tuple[int, int, int]]]:
    leaves, spines = rng.randint(2, 4), rng.randint(1, 2)
    each = rng.randint(1, max(1, (most - leaves - spines) // leaves))
    gpus = leaves * each
    pairs = [(g, gpus + g // each, 1) for g in range(gpus)]
    slow = rng.choice((1, 1, 2))
    pairs += [(gpus + leaf, gpus + leaves + spine, slow) for leaf in range(leaves) for spine in range(spines)]
    return gpus, leaves + spines, pairs


def _is_connected(n: int, pairs: list[tuple[int, int]]) -> bool:
    seen, wave = {0}, [0]
    while wave:
        at = wave.pop()
        for a, b in pairs:
            for x, y in ((a, b), (b, a)):
                if x == at and y not in seen:
                    seen.add(y)
                    wave.append(y)
    return len(seen) == n


_SHAPES = {"sparse": _sparse, "cluster": _cluster, "switch": _switch, "torus": _torus, "leafspine": _leafspine}


def faults(case: Case, chunk, start, paths) -> tuple[list[str], int]:
    """Replay a schedule start by start; what is wrong with it, and its makespan."""
    starts: set[tuple[int, int, int]] = set()  # (epoch, chunk, wire)
    for m, k, path in zip(chunk, start, paths, strict=True):
        at = int(k)
        for link in path:
            starts.add((at, int(m), link))
            at += case.delay(case.wires[link])
    came, stuck = _replay(case, starts)
    found = [f"chunk {m} leaves {case.wires[link].tail} at {k} without being there" for k, m, link in stuck]
    found += _overloads(case, starts)
    wanted = [(m, target) for m, targets in enumerate(case.targets) for target in targets]
    found += [f"chunk {m} never comes to {target}" for m, target in wanted if (m, target) not in came]
    return found, max(came.get(key, 0) for key in wanted)


def _overloads(case: Case, starts: set[tuple[int, int, int]]) -> list[str]:
    times = defaultdict(list)
    for k, _, link in starts:
        times[link].append(k)
    found = []
    for link, row in times.items():
        wire = case.wires[link]
        for k in row:
            if sum(k <= other < k + wire.busy for other in row) > wire.room:
                found.append(f"link {link} is overloaded from {k} on")
    return found


def _replay(case: Case, starts: set[tuple[int, int, int]]):
    """Return the first arrival of every chunk at every node, and the starts that could never happen."""
    came = dict.fromkeys(enumerate(case.source), 0)
    exact: set[tuple[int, int, int]] = set()
    waiting = sorted(starts)
    while waiting:
        again = []
        for k, m, link in waiting:
            wire = case.wires[link]
            stored = wire.tail < case.gpus and came.get((m, wire.tail), k + 1) <= k
            if not stored and not (wire.tail >= case.gpus and (m, wire.tail, k) in exact):
                again.append((k, m, link))
                continue
            end = k + case.delay(wire)
            exact.add((m, wire.head, end))
            came[m, wire.head] = min(end, came.get((m, wire.head), end))
        if len(again) == len(waiting):
            break
        waiting = again
    return came, waiting
