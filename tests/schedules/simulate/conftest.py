"""Small networks and schedules, and simulators that are slow and obviously right.

All numbers are short binary fractions, so that floating point makes no errors and simulators must agree exactly.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from types import SimpleNamespace

import hypothesis.strategies as st
import numpy as np
import pytest
from cwb.core.collective import Collective, Demand
from cwb.core.instance import Instance
from cwb.core.schedule import Chunks, Schedule, StepSchedule, sends_from_lists
from cwb.core.timing import RankCosts
from cwb.core.topology import Link, Node, NodeKind, Topology
from cwb.core.trace import SimulationMode

MiB = 2**20
BANDWIDTH = Fraction(50 * 2**30)
LATENCY = Fraction(5, 10**7)


def network(nodes, links, switches=0) -> Instance:
    """An instance of links (source, target, bandwidth, latency) between numbered ranks, and switches that are numbered
    after them."""
    names = [str(i) for i in range(nodes + switches)]
    kinds = [NodeKind.COMPUTE] * nodes + [NodeKind.SWITCH] * switches
    made = tuple(Link(names[a], names[b], Fraction(bw), Fraction(lat)) for a, b, bw, lat in links)
    demand = Demand(Collective.ALL_GATHER, Fraction(MiB))
    return Instance("test", Topology(tuple(map(Node, names, kinds)), made), demand)


def line(nodes, bandwidth=BANDWIDTH, latency=LATENCY) -> Instance:
    """Nodes in a row; link i goes from node i to node i + 1."""
    return network(nodes, [(i, i + 1, bandwidth, latency) for i in range(nodes - 1)])


def chunks_of(sizes, unit=1) -> Chunks:
    """Chunks of these sizes; who needs them is of no interest to a simulator."""
    zeros = np.zeros(len(sizes), dtype=np.int64)
    return Chunks(np.array(sizes, dtype=np.int64), Fraction(unit), ((0,),), zeros, zeros, zeros.astype(bool))


def steps(instance, sizes, rows, unit=1) -> StepSchedule:
    """A schedule of rows (step, chunk, path); the ends of a send are those of its path."""
    ends = instance.network.link_ends
    source, target = [ends[path[0]][0] for *_, path in rows], [ends[path[-1]][1] for *_, path in rows]
    sends = sends_from_lists([c for _, c, _ in rows], source, target, False, [path for *_, path in rows])
    return StepSchedule(instance.sha256, chunks_of(sizes, unit), sends, np.array([s for s, *_ in rows], dtype=np.int64))


def timed_schedule(instance, sizes, rows) -> Schedule:
    """A schedule of rows (start, end, chunk, path)."""
    made = steps(instance, sizes, [(0, chunk, path) for *_, chunk, path in rows])
    start, end = (np.array([row[i] for row in rows], dtype=np.float64) for i in (0, 1))
    return Schedule(instance.sha256, made.chunks, made.sends, start, end)


@dataclass
class Slow:
    """A simulator that looks through all sends, or parts of them, for the one that is next, in exact fractions."""

    instance: Instance
    answer: StepSchedule | Schedule
    mode: SimulationMode
    barrier: bool = False
    hold_latency: bool = False
    in_step: bool = False
    spray: bool = False

    def __post_init__(self):
        answer, sends = self.answer, self.answer.sends
        self.links = self.instance.network.links
        own = [sends.path(i) for i in range(len(sends))]
        ways = [self.shortest_paths(path) if self.spray else [path] for path in own]
        self.paths = [path for each in ways for path in each]
        self.of = [i for i, each in enumerate(ways) for _ in each]
        self.count = len(self.paths)
        self.size = [answer.chunks.size_bytes(int(sends.chunk[i])) / len(ways[i]) for i in self.of]
        self.source, self.target = sends.source[self.of], sends.target[self.of]
        self.adds = sends.reduce[self.of]
        self.hops = {}
        timed = isinstance(answer, Schedule)
        leaves = (answer.start_s if isinstance(answer, Schedule) else answer.step)[self.of]
        ends = (answer.end_s if isinstance(answer, Schedule) else answer.step + 1)[self.of]
        chunk = sends.chunk[self.of]

        def is_connected(j, i):
            same = self.in_step or chunk[j] == chunk[i]
            return self.barrier or (same and self.target[j] == self.source[i])

        every = range(self.count)
        self.needs = [[j for j in every if ends[j] <= leaves[i] and is_connected(j, i)] for i in every]
        when = [(leaves[i], ends[i]) if timed else leaves[i] for i in every]
        self.rank = {i: position for position, i in enumerate(sorted(every, key=lambda i: when[i]))}
        messages = [(leaves[i], self.source[i], self.target[i], own[self.of[i]][0]) for i in every]
        self.pays = [not any(messages[j] == messages[i] and self.rank[j] < self.rank[i] for j in every) for i in every]
        self.stages = [self.stages_of(i) for i in every]

    def shortest_paths(self, path):
        """All paths with the fewest links between the ends of one; that path alone if it has more."""
        ends = self.instance.network.link_ends
        found = [()]
        while len(found[0]) <= len(path):
            right = [p for p in found if p and (ends[p[0]][0], ends[p[-1]][1]) == (ends[path[0]][0], ends[path[-1]][1])]
            if right:
                return right if len(found[0]) == len(path) else [path]
            found = [(*p, k) for p in found for k, (a, _) in enumerate(ends) if not p or ends[p[-1]][1] == a]
        return [path]

    def stages_of(self, i):
        """Stages of a send: (server, seconds of its bytes, latency, held beyond them, begins with the first byte)."""
        costs, nodes = self.instance.rank_costs or RankCosts(), self.instance.network.nodes
        streams = self.mode is not SimulationMode.CONGESTION_AWARE
        stages = []
        if costs.overhead_s and nodes[self.source[i]].kind is NodeKind.COMPUTE:
            late = costs.overhead_s * self.pays[i]
            stages.append((("out", self.source[i]), Fraction(0), late, late, True))
        for hop, link in enumerate(self.paths[i]):
            late = self.latency(i, hop)
            stages.append((link, self.seconds(i, hop), late, late * self.hold_latency, streams))
        rate = costs.reduce_rate(nodes[self.target[i]].kind)
        if rate and self.adds[i]:
            stages.append((("in", self.target[i]), self.size[i] / rate, Fraction(0), 0, costs.while_receiving))
        return stages

    def seconds(self, i, hop):
        return self.size[i] / self.links[self.paths[i][hop]].bandwidth_Bps

    def latency(self, i, hop):
        return self.links[self.paths[i][hop]].latency_s

    def ready(self, i, end):
        if any(j not in end for j in self.needs[i]):
            return None
        return max((end[j] for j in self.needs[i]), default=Fraction(0))

    def alpha_beta(self):
        """Latencies plus size over the smallest bandwidth, after everything that is needed."""
        end = {}
        while len(end) < self.count:
            for i in range(self.count):
                if i not in end and (start := self.ready(i, end)) is not None:
                    head = tail = start
                    for _, seconds, late, _, streams in self.stages[i]:
                        begin = head if streams else tail
                        head, tail = begin + late, max(begin + seconds, tail) + late
                    end[i] = tail
        return end

    def queue_chunks(self):
        """One chunk at a time on every link, the first that asks first; in the given order for schedules in time."""
        end, hop, head, tail, free = {}, [0] * self.count, {}, {}, {}
        fixed = isinstance(self.answer, Schedule)
        while len(end) < self.count:
            for i in range(self.count):
                if i not in head and (start := self.ready(i, end)) is not None:
                    head[i] = tail[i] = start
            waiting = [i for i in head if i not in end]
            asks = {i: (head if self.stages[i][hop[i]][4] else tail)[i] for i in waiting}
            i = min(waiting, key=lambda i: self.rank[i] if fixed else (asks[i], self.rank[i]))
            server, seconds, latency, held, _ = self.stages[i][hop[i]]
            begin = max(asks[i], free.get(server, Fraction(0)))
            left = max(begin + seconds, tail[i])
            free[server] = left + held
            self.hops[i, hop[i]] = begin, left
            head[i], tail[i] = begin + latency, left + latency
            hop[i] += 1
            if hop[i] == len(self.stages[i]):
                end[i] = tail[i]
        return end

    def has_shared_links(self):
        """Flows that get faster together until a link is full, again after every change.

        A message waits for its rank before it flows, and a contribution for its target when it has arrived.
        """
        end, left, gone, now, free = {}, {}, {}, Fraction(0), {}
        leaves, added = {}, {}

        def serve(server, at, seconds):
            free[server] = max(at, free.get(server, Fraction(0))) + seconds
            return free[server]

        while len(end) < self.count:
            ready = {i: s for i in range(self.count) if i not in leaves and (s := self.ready(i, end)) is not None}
            for i in sorted((i for i in ready if ready[i] <= now), key=lambda i: (ready[i], self.rank[i])):
                first = self.stages[i][0]
                leaves[i] = serve(first[0], ready[i], first[2]) if first[0] == ("out", self.source[i]) else ready[i]
                ready.pop(i)
            left |= {i: self.size[i] for i, time in leaves.items() if time <= now and i not in left}
            came = {i: gone[i] + sum(self.latency(i, h) for h in range(len(self.paths[i]))) for i in gone}
            for i in sorted(
                (i for i in came if came[i] <= now and i not in added), key=lambda i: (came[i], self.rank[i])
            ):
                server, seconds, _, _, streams = self.stages[i][-1]
                later = server == ("in", self.target[i]) and not streams
                added[i] = serve(server, came[i], seconds) if later else came[i]
            done = [i for i in added if added[i] <= now and i not in end]
            end |= {i: added[i] for i in done}
            if done:
                continue
            active = [i for i in left if i not in gone]
            rate = self.fair_rates(active)
            times = [now + left[i] / rate[i] for i in active]
            times += [leaves[i] for i in leaves if i not in left]
            times += [came[i] for i in came if i not in added] + [added[i] for i in added if i not in end]
            times += ready.values()
            until = min(times)
            for i in active:
                left[i] -= rate[i] * (until - now)
                if left[i] == 0:
                    gone[i] = until
            now = until
        return end

    def fair_rates(self, flows):
        """Rates of flows over their links, and over the adder that takes them while they arrive."""
        room = {link: wire.bandwidth_Bps for link, wire in enumerate(self.links)}
        used = {i: list(self.paths[i]) for i in flows}
        for i in flows:
            server, seconds, _, _, streams = self.stages[i][-1]
            if server == ("in", self.target[i]) and streams and self.instance.rank_costs.while_receiving:
                used[i].append(server)
                room[server] = self.size[i] / seconds
        rate = dict.fromkeys(flows, Fraction(0))
        rising = set(flows)
        while rising:
            free = {}
            for server, speed in room.items():
                if passes := sum(used[i].count(server) for i in rising):
                    free[server] = (speed - sum(rate[i] * used[i].count(server) for i in flows)) / passes
            rise = min(free.values())
            for i in rising:
                rate[i] += rise
            full = {server for server, space in free.items() if space == rise}
            rising = {i for i in rising if not full & set(used[i])}
        return rate

    def run(self):
        """End of every send, exactly: that of its last part."""
        if self.mode is SimulationMode.ALPHA_BETA:
            end = self.alpha_beta()
        elif self.mode is SimulationMode.FAIR_SHARE:
            end = self.has_shared_links()
        else:
            end = self.queue_chunks()
        return [max(end[i] for i in range(self.count) if self.of[i] == send) for send in range(max(self.of) + 1)]


@st.composite
def random_networks(draw, zero_latency=True):
    """Strongly connected networks of up to six nodes, with links of different speed and some parallel ones."""
    nodes = draw(st.integers(2, 6))
    links = [(i, (i + 1) % nodes) for i in range(nodes)]
    pairs = st.tuples(st.integers(0, nodes - 1), st.integers(0, nodes - 1)).filter(lambda p: p[0] != p[1])
    links += draw(st.lists(pairs, max_size=6))
    latency = st.integers(0 if zero_latency else 1, 3)
    speeds = [(2 ** draw(st.integers(0, 3)), Fraction(draw(latency), 4)) for _ in links]
    return network(nodes, [(a, b, *speed) for (a, b), speed in zip(links, speeds, strict=True)])


@st.composite
def random_rows(draw, instance, most=12):
    """Rows (step, chunk, path) over paths of one to three links that may be passed more than once only by different
    sends."""
    ends = instance.network.link_ends
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    rows = []
    for _ in range(draw(st.integers(1, most))):
        path = [draw(st.integers(0, len(ends) - 1))]
        for _ in range(draw(st.integers(0, 2))):
            seen = {ends[path[0]][0], *(ends[link][1] for link in path)}
            onward = [i for i, (a, b) in enumerate(ends) if a == ends[path[-1]][1] and b not in seen]
            if onward:
                path.append(draw(st.sampled_from(onward)))
        rows.append((draw(st.integers(0, 3)), draw(st.integers(0, len(sizes) - 1)), tuple(path)))
    return sizes, rows


@pytest.fixture(scope="session")
def make():
    """Everything that the tests make their cases with."""
    return SimpleNamespace(
        network=network,
        line=line,
        chunks_of=chunks_of,
        steps=steps,
        timed=timed_schedule,
        Slow=Slow,
        random_networks=random_networks,
        random_rows=random_rows,
        MiB=MiB,
    )
