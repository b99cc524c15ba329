"""A small replay of schedules and a small clock, independent of the ones that verify."""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise

import pytest
from cwb.core.budget import Budget
from cwb.core.collective import Demand, collective_named, conditions
from cwb.core.instance import Instance
from cwb.core.method import Method
from cwb.core.outcome import Status
from cwb.core.schedule import StepSchedule
from cwb.core.topology import Topology
from cwb.harness import registry
from cwb.instances import load


def method(name: str) -> Method:
    assert registry.METHODS[name].startswith("heuristics.textbook.")
    return registry.get(name)


def instance(network: str | Topology, kind: str, size: int = 2**20, chunks: int = 1, ranks=None) -> Instance:
    base = load(network) if isinstance(network, str) else Instance("by hand", network)
    return base.with_changes(demand=Demand(collective_named(kind), Fraction(size), chunks, ranks))


def solve(name: str, posed: Instance, **options: object) -> StepSchedule:
    chosen = method(name)
    assert chosen.supports(posed) is None
    outcome = chosen.run(posed, None, Budget(), chosen.options.model_validate(options))
    assert outcome.status is Status.FEASIBLE
    assert outcome.answer.instance_sha256 == posed.sha256
    return outcome.answer


def replay(posed: Instance, schedule: StepSchedule) -> None:
    """Carry the contributions along, step by step, and compare start and end with the demand."""
    topology, chunks, sends = posed.network, schedule.chunks, schedule.sends
    rank = {node: index for index, node in enumerate(topology.rank_nodes)}
    total: Counter = Counter()
    has: dict[tuple[int, int], Counter] = {}
    for c in range(len(chunks)):
        holders, reduced = chunks.groups[chunks.held_by[c]], bool(chunks.reduced[c])
        total[holders, chunks.groups[chunks.needed_by[c]], reduced] += chunks.size_bytes(c)
        has |= {(r, c): Counter([r if reduced else "data"]) for r in holders}
    assert dict(total) == dict(conditions(posed.demand, len(topology.ranks)).bytes_of)
    in_step = defaultdict(list)
    for s, step in enumerate(schedule.step.tolist()):
        in_step[step].append(s)
    assert sorted(in_step) == list(range(schedule.steps))
    for step in sorted(in_step):
        arriving = []
        for s in in_step[step]:
            ends = [topology.link_ends[link] for link in sends.path(s)]
            assert (ends[0][0], ends[-1][1]) == (sends.source[s], sends.target[s])
            assert all(one[1] == other[0] for one, other in pairwise(ends))
            c = int(sends.chunk[s])
            arriving.append((rank[int(sends.target[s])], c, has[rank[int(sends.source[s])], c], bool(sends.reduce[s])))
        for r, c, contributions, reduce in arriving:
            has[r, c] = has.get((r, c), Counter()) + contributions if reduce else contributions
    for c in range(len(chunks)):
        wanted = Counter(chunks.groups[chunks.held_by[c]] if chunks.reduced[c] else ["data"])
        assert all(has.get((r, c)) == wanted for r in chunks.groups[chunks.needed_by[c]])


def congested_time_s(topology: Topology, schedule: StepSchedule) -> float:
    """Seconds until the last arrival: links are first come first served, nodes store and forward.

    A send waits for what its source receives of the chunk in earlier steps.
    """
    sends, size_bytes = schedule.sends, schedule.chunks.sizes_bytes
    bandwidth = [float(link.bandwidth_Bps) for link in topology.links]
    latency = [float(link.latency_s) for link in topology.links]
    rows = list(zip(*(c.tolist() for c in (sends.chunk, sends.source, sends.target, schedule.step)), strict=True))
    waiting: dict[tuple[int, int], dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    for s, (chunk, source, _, step) in enumerate(rows):
        waiting[chunk, source][step].append(s)
    missing: Counter = Counter()
    for chunk, _, target, step in rows:
        missing.update((chunk, target, later) for later in waiting[chunk, target] if later > step)
    paths = [sends.path(s) for s in range(len(rows))]
    first = [s for s, (chunk, source, _, step) in enumerate(rows) if not missing[chunk, source, step]]
    events = [(0.0, order, s, 0) for order, s in enumerate(first)]
    order, end, free = len(events), 0.0, defaultdict(float)
    while events:
        time, _, s, hop = heapq.heappop(events)
        chunk, _, target, step = rows[s]
        if hop < len(paths[s]):
            link = paths[s][hop]
            free[link] = max(time, free[link]) + float(size_bytes[chunk]) / bandwidth[link]
            heapq.heappush(events, (free[link] + latency[link], order, s, hop + 1))
            order += 1
            continue
        end = max(end, time)
        for later, sends_then in waiting[chunk, target].items():
            if later > step:
                missing[chunk, target, later] -= 1
                if not missing[chunk, target, later]:
                    for released in sends_then:
                        heapq.heappush(events, (time, order, released, 0))
                        order += 1
    return end


@pytest.fixture(scope="session")
def textbook() -> Callable[[str], Method]:
    return method


@pytest.fixture(scope="session")
def pose() -> Callable[..., Instance]:
    return instance


@pytest.fixture(scope="session")
def solve_and_replay() -> Callable[..., StepSchedule]:
    """Solve, replay, and give the schedule."""

    def run(name: str, posed: Instance, **options: object) -> StepSchedule:
        schedule = solve(name, posed, **options)
        replay(posed, schedule)
        return schedule

    return run


@pytest.fixture(scope="session")
def solve_unchecked() -> Callable[..., StepSchedule]:
    """Solve without a replay, for what is too large for one."""
    return solve


@pytest.fixture(scope="session")
def clock() -> Callable[[Topology, StepSchedule], float]:
    return congested_time_s
