"""Random valid schedules: chunks flood the network epoch by epoch, and sums use the same links backwards."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil
from random import Random
from typing import Any

import numpy as np
from cwb.benchmarks.adversary.networks import connected_pairs
from cwb.benchmarks.adversary.replay import ReplayGrid, Send, grid_of
from cwb.core.collective import Collective, Demand, collective_named
from cwb.core.instance import Instance
from cwb.core.schedule import Chunks, Schedule, StepSchedule, sends_from_lists
from cwb.core.timing import BandwidthChange, Semantics, Timing
from cwb.core.topology import Link, Node, NodeKind, Topology

KINDS = ("broadcast", "all_gather", "scatter", "gather", "all_to_all", "reduce", "reduce_scatter", "all_reduce")


@dataclass
class MadeSchedule:
    """A schedule with its instance."""

    instance: Instance
    chunks: Chunks
    sends: list[Send]
    unit_s: Fraction

    @property
    def ends(self) -> int:
        """Epochs until the last arrival."""
        return max((send.end for send in self.sends), default=0)

    def to_schedule(self) -> Schedule:
        """It on the grid of the instance."""
        start, end = (np.array([float(getattr(s, at) * self.unit_s) for s in self.sends]) for at in ("start", "end"))
        return Schedule(self.instance.sha256, self.chunks, self._sends(), start, end)

    def in_steps(self) -> StepSchedule:
        """It in steps; the instance must have no grid."""
        return StepSchedule(self.instance.sha256, self.chunks, self._sends(), np.array([s.start for s in self.sends]))

    def _sends(self) -> Any:
        columns = ([getattr(s, name) for s in self.sends] for name in ("chunk", "source", "target", "adds"))
        return sends_from_lists(*columns, [s.links for s in self.sends])


def make(random: Random, *, fluid: bool = False, fast: int = 0) -> MadeSchedule:
    """Make a network, a collective on it, a grid, and a schedule that is right.

    Parameters
    ----------
    random : Random
        Decides everything.
    fluid : bool
        Whether the grid lets chunks be split; the chunks of the schedule are whole all the same.
    fast : int
        Power of two of the rates, beyond the usual ones.
    """
    count = random.randint(2, 5)
    central = not fluid and random.random() < 0.4
    kind = random.choice(KINDS[:2] if fluid and random.random() < 0.7 else KINDS)
    chunks_each = random.randint(1, 5 if fluid else 3)
    epoch = random.choice((Fraction(1), Fraction(1, 2), Fraction(1, 3)))
    slowest = 1 if fluid or random.random() < 0.7 else 0
    boost = Fraction(2) ** fast
    late = random.choice((0, 0, 1, Fraction(1, 3)))

    def rate() -> Fraction:
        return (
            random.choice((Fraction(1), Fraction(2), Fraction(3, 2)) if slowest else (Fraction(1, 2), 1, 2))
            * boost
            / epoch
        )

    nodes = [Node(str(i)) for i in range(count)]
    links: list[Link] = []
    if central:
        limit = random.choice((None, Fraction(0), Fraction(0)))
        nodes.append(Node("s", NodeKind.SWITCH, random.random() < 0.6, limit))
        pairs = [(i, count) for i in range(count)]
    else:
        pairs = connected_pairs(random, count, random.randrange(4))
    for a, b in pairs:
        both = rate()
        for x, y in ((a, b), (b, a)):
            links.append(Link(nodes[x].name, nodes[y].name, both, late * epoch))
    parts = 1 if kind in ("broadcast", "reduce") else count
    demand = Demand(collective_named(kind), Fraction(parts * chunks_each), chunks_each)
    timing = Timing(Semantics.STORE_AND_FORWARD, epoch, fluid)
    if not fluid and random.random() < 0.2:
        first = random.randrange(4)
        change = BandwidthChange(
            random.randrange(len(links)),
            first,
            first + random.randint(1, 3),
            random.choice((Fraction(0), Fraction(1, 2))),
        )
        timing = replace(timing, changes=(change,))
    instance = Instance("made", Topology(tuple(nodes), tuple(links)), demand, timing=timing)
    grid = grid_of(instance, Fraction(1))
    if fluid:
        grid = replace(grid, window=(1,) * len(links), delay=tuple(1 + ceil(late) for _ in links))
    groups, rows = chunks_of(kind, count, chunks_each)
    chunks = Chunks(
        np.ones(len(rows), dtype=np.int64),
        Fraction(1),
        groups,
        *(np.array([row[i] for row in rows], dtype=np.int64) for i in (0, 1)),
        np.array([row[2] for row in rows], dtype=np.bool_),
    )
    return MadeSchedule(instance, chunks, _flood(random, instance, grid, groups, rows, count), epoch)


def chunks_of(kind: str, count: int, each: int) -> tuple[tuple[tuple[int, ...], ...], list[tuple[int, int, bool]]]:
    """Groups, and (holders, needers, whether summed) of all chunks."""
    everyone = count
    groups = (*((i,) for i in range(count)), tuple(range(count)))
    ranks = range(count)
    rows: dict[str, list[tuple[int, int, bool]]] = {
        "broadcast": [(0, everyone, False)],
        "all_gather": [(r, everyone, False) for r in ranks],
        "scatter": [(0, r, False) for r in ranks if r],
        "gather": [(r, 0, False) for r in ranks if r],
        "all_to_all": [(s, t, False) for s in ranks for t in ranks if s != t],
        "reduce": [(everyone, 0, True)],
        "reduce_scatter": [(everyone, r, True) for r in ranks],
        "all_reduce": [(everyone, everyone, True) for _ in ranks],
    }
    return groups, [row for row in rows[kind] for _ in range(each)]


def _flood(
    random: Random,
    instance: Instance,
    grid: ReplayGrid,
    groups: tuple[tuple[int, ...], ...],
    rows: list[tuple[int, int, bool]],
    count: int,
) -> list[Send]:
    """Send chunks on until all is done; sums by what their broadcasts would do, the other way round."""
    topology = instance.topology
    back = {e: topology.link_ends.index(ends[::-1]) for e, ends in enumerate(topology.link_ends)}
    hops = _hops(topology, count)
    sums = any(row[2] for row in rows)
    roots, wanted = [], []
    for index, (held, needed, summed) in enumerate(rows):
        root = index % count if summed and len(groups[needed]) > 1 else groups[needed if summed else held][0]
        roots.append(root)
        wanted.append(groups[held] if summed else groups[needed])
    forward = _spread(random, grid, hops, roots, wanted, sums=sums)
    if not sums:
        return forward
    # Times are mirrored, so a network whose rates change would not do.
    last = max((s.end for s in forward), default=0)
    reduced = [
        Send(s.chunk, s.target, s.source, True, tuple(back[e] for e in reversed(s.links)), last - s.end, last - s.start)
        for s in forward
    ]
    if instance.demand is None or instance.demand.collective is not Collective.ALL_REDUCE:
        return reduced
    return reduced + [replace(s, start=s.start + last, end=s.end + last) for s in forward]


def _hops(topology: Topology, count: int) -> list[tuple[int, int, tuple[int, ...]]]:
    """Ways from rank to rank over one link, or over the switch."""
    ends = topology.link_ends
    found = [(a, b, (e,)) for e, (a, b) in enumerate(ends) if a < count and b < count]
    found += [
        (a, d, (e, f)) for e, (a, b) in enumerate(ends) for f, (c, d) in enumerate(ends) if b == c >= count and a != d
    ]
    return found


def _spread(
    random: Random,
    grid: ReplayGrid,
    hops: list[tuple[int, int, tuple[int, ...]]],
    roots: list[int],
    wanted: list[tuple[int, ...]],
    *,
    sums: bool,
) -> list[Send]:
    starts: dict[int, list[int]] = defaultdict(list)
    there = [{root: 0} for root in roots]
    found: list[Send] = []
    epoch = 0
    while any(set(want) - got.keys() for want, got in zip(wanted, there, strict=True)) and epoch < 500:
        ways = hops[:]
        random.shuffle(ways)
        for a, b, links in ways:
            choices = [
                c
                for c, got in enumerate(there)
                if a in got
                and got[a] <= epoch
                and b not in got
                and (not sums or b in wanted[c])
                and set(wanted[c]) - got.keys()
            ]
            if choices and _fits(grid, starts, links, epoch):
                chunk, at = random.choice(choices), epoch
                for link in links:
                    starts[link].append(at)
                    at += grid.delay[link]
                there[chunk][b] = at
                found.append(Send(chunk, a, b, False, links, epoch, at))
        epoch += 1
    return found


def _fits(grid: ReplayGrid, starts: dict[int, list[int]], links: tuple[int, ...], epoch: int) -> bool:
    at = epoch
    for link in links:
        window = grid.window[link]
        times = [*starts[link], at]
        for begin in range(max(0, at - window + 1), at + 1):
            room = sum(
                (grid.rate[link] * grid.factors.get((link, k), 1) for k in range(begin, begin + window)), Fraction(0)
            )
            if sum(begin <= t < begin + window for t in times) > room:
                return False
        at += grid.delay[link]
    return True


def in_switch(random: Random) -> MadeSchedule:
    """Make an all-reduce that a switch in the middle adds up and copies; right or wrong as the switch is."""
    count, each = random.randint(2, 4), random.randint(1, 2)
    limit = random.choice((None, Fraction(0), Fraction(0)))
    nodes = (*(Node(str(i)) for i in range(count)), Node("s", NodeKind.SWITCH, True, limit))
    links = tuple(Link(a, b, Fraction(1)) for i in range(count) for a, b in ((str(i), "s"), ("s", str(i))))
    demand = Demand(Collective.ALL_REDUCE, Fraction(count * each), each)
    instance = Instance("made", Topology(nodes, links), demand, timing=Timing(Semantics.STORE_AND_FORWARD, Fraction(1)))
    total = count * each
    one, zero = np.ones(total, dtype=np.int64), np.zeros(total, dtype=np.int64)
    chunks = Chunks(one, Fraction(1), (tuple(range(count)),), zero, zero, one.astype(np.bool_))
    sends = []
    for chunk in range(total):
        sends += [Send(chunk, i, count, True, (2 * i,), chunk, chunk + 1) for i in range(count)]
        sends += [Send(chunk, count, i, False, (2 * i + 1,), chunk + 1, chunk + 2) for i in range(count)]
    return MadeSchedule(instance, chunks, sends, Fraction(1))


def limit_switches(random: Random, made: MadeSchedule) -> MadeSchedule:
    """Its switches room for one to three chunks, of which each takes 1 B."""
    topology = made.instance.network
    nodes = tuple(
        replace(node, buffer_bytes=Fraction(random.randint(1, 3))) if node.kind is NodeKind.SWITCH else node
        for node in topology.nodes
    )
    return replace(made, instance=made.instance.with_changes(network=replace(topology, nodes=nodes)))


def mutate_send(random: Random, made: MadeSchedule) -> MadeSchedule:
    """Change one send: dropped, doubled, moved in time or to another chunk, made to add or to copy."""
    sends = made.sends[:]
    index = random.randrange(len(sends))
    send = sends[index]
    match random.randrange(6):
        case 0:
            del sends[index]
        case 1:
            sends.append(send)
        case 2 | 3:
            shift = random.choice((-2, -1, 1, 2))
            shift = max(shift, -send.start)
            sends[index] = replace(send, start=send.start + shift, end=send.end + shift)
        case 4:
            sends[index] = replace(send, chunk=random.randrange(len(made.chunks)))
        case _:
            sends[index] = replace(send, adds=not send.adds)
    return replace(made, sends=sends)
