"""All-gathers that are best in the worst case of uncertain latencies and rates: cuts by an adversary, with proofs.

    python benchmarks/findings/robust_steps.py
    python benchmarks/findings/robust_steps.py --smoke

A schedule has steps; a step lasts until its slowest link is done, which takes a latency and a time for each chunk. The
latency and the time of every link are in intervals, and at most G links are slow at once (Bertsimas and Sim). An
integer program chooses among all schedules of so many steps for the scenarios so far; the adversary adds the worst one
for its answer. The program's bound holds for all scenarios, and the answer's worst time is attained: they meet.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from dataclasses import astuple, dataclass, field, fields
from fractions import Fraction
from itertools import combinations
from statistics import mean
from typing import Any

import numpy as np
import pyomo.environ as pyo
from cwb import solvers
from cwb.benchmarks.findings.failure_plans import Graph, instance_of
from cwb.core.budget import Budget
from cwb.core.collective import Collective, Demand
from cwb.core.instance import Instance
from cwb.core.schedule import Sends, StepSchedule
from cwb.core.solver import SolverOptions, Termination
from cwb.core.topology import Link, Node, Topology
from cwb.core.trees import TreeKind, TreePacking, chunks_of_kind
from cwb.harness.run import Request, run
from cwb.models.forestcoll.solve import busiest_s
from cwb.schedules.simulate import simulate
from cwb.schedules.verify import verify
from rich.console import Console
from rich.table import Table

Ends = tuple[int, int]


@dataclass(frozen=True)
class Interval:
    """Latency of a link and its time for a chunk, each from a usual to a slow value, in microseconds."""

    latency: int
    slow_latency: int
    chunk: int
    slow_chunk: int


@dataclass(frozen=True)
class Net:
    """Ranks, and links with intervals."""

    ranks: int
    links: dict[Ends, Interval]

    def cost(self, slow: frozenset[Ends]) -> dict[Ends, tuple[int, int]]:
        """Return latency and time for a chunk of every link, if these are slow."""
        return {
            ends: (each.slow_latency, each.slow_chunk) if ends in slow else (each.latency, each.chunk)
            for ends, each in self.links.items()
        }

    def scenarios(self, budget: int) -> Iterator[frozenset[Ends]]:
        """Yield all sets of so many uncertain links: the corners of the polytope, since the time is convex."""
        unsure = [e for e, i in self.links.items() if (i.latency, i.chunk) != (i.slow_latency, i.slow_chunk)]
        yield from map(frozenset, combinations(unsure, min(budget, len(unsure))))


#: Sends of a schedule as chunk, tail, head and step.
Moves = tuple[tuple[int, int, int, int], ...]


def seconds(net: Net, moves: Moves, slow: frozenset[Ends]) -> int:
    """Return the time of a schedule in a scenario."""
    cost, load = net.cost(slow), dict[tuple[int, Ends], int]()
    for _, a, b, step in moves:
        load[step, (a, b)] = load.get((step, (a, b)), 0) + 1
    slowest = dict[int, int]()
    for (step, ends), chunks in load.items():
        latency, chunk = cost[ends]
        slowest[step] = max(slowest.get(step, 0), latency + chunk * chunks)
    return sum(slowest.values())


def worst(net: Net, moves: Moves, budget: int) -> tuple[int, frozenset[Ends]]:
    """Return the largest time over all scenarios, and one that attains it."""
    return max(((seconds(net, moves, slow), slow) for slow in net.scenarios(budget)), key=lambda one: one[0])


@dataclass
class Master:
    """Integer program of all schedules of some steps, for the scenarios so far.

    ``send[c, a, b, s]`` is 1 if chunk c is sent over a link in step s, ``has[c, v, s]`` if rank v has it before.
    """

    net: Net
    steps: int
    chunks: int
    model: Any = field(init=False)

    def __post_init__(self) -> None:
        m, net = pyo.ConcreteModel("robust-steps"), self.net
        self.model = m
        m.C = pyo.RangeSet(0, net.ranks * self.chunks - 1)
        m.V, m.S = pyo.RangeSet(0, net.ranks - 1), pyo.RangeSet(0, self.steps - 1)
        m.L = pyo.Set(initialize=list(net.links), dimen=2)
        m.send = pyo.Var(m.C, m.L, m.S, domain=pyo.Binary)
        m.used = pyo.Var(m.L, m.S, domain=pyo.Binary)
        m.has = pyo.Var(m.C, m.V, pyo.RangeSet(0, self.steps), domain=pyo.Binary)
        into = {v: [ends for ends in net.links if ends[1] == v] for v in m.V}
        for c in m.C:
            for v in m.V:
                m.has[c, v, 0].fix(int(c // self.chunks == v))
                m.has[c, v, self.steps].fix(1)
        m.arrives = pyo.Constraint(
            m.C,
            m.V,
            m.S,
            rule=lambda m, c, v, s: (
                m.has[c, v, s + 1] == m.has[c, v, s] + pyo.quicksum(m.send[c, ends, s] for ends in into[v])
            ),
        )
        m.holds = pyo.Constraint(m.C, m.L, m.S, rule=lambda m, c, a, b, s: m.send[c, a, b, s] <= m.has[c, a, s])
        m.uses = pyo.Constraint(m.C, m.L, m.S, rule=lambda m, c, a, b, s: m.send[c, a, b, s] <= m.used[a, b, s])
        m.time = pyo.Var(domain=pyo.NonNegativeReals)
        m.step_time = pyo.Var(pyo.NonNegativeIntegers, m.S, domain=pyo.NonNegativeReals, dense=False)
        m.cuts = pyo.ConstraintList()
        m.least = pyo.Objective(expr=m.time)
        self.scenarios = 0

    def add(self, slow: frozenset[Ends]) -> None:
        """Add a scenario: its steps last as long as their slowest links, and all of them at most the time."""
        m, number = self.model, self.scenarios
        self.scenarios += 1
        for ends, (latency, chunk) in self.net.cost(slow).items():
            for s in m.S:
                load = pyo.quicksum(m.send[c, ends, s] for c in m.C)
                m.cuts.add(m.step_time[number, s] >= latency * m.used[ends, s] + chunk * load)
        m.cuts.add(m.time >= pyo.quicksum(m.step_time[number, s] for s in m.S))

    def solve(self) -> tuple[int, Moves]:
        """Return the least time for the scenarios so far, proved by the solver, and a schedule that takes it."""
        m = self.model
        result = solvers.get().solve(m, Budget(), SolverOptions())
        assert result.termination is Termination.OPTIMAL and result.objective is not None and result.bound is not None
        assert abs(result.bound - round(result.bound)) < 1e-4  # times are integers
        moves = [(c, a, b, s) for c in m.C for a, b in m.L for s in m.S if (m.send[c, a, b, s].value or 0) > 0.5]
        return round(result.bound), tuple(sorted(moves, key=lambda move: move[3]))


@dataclass(frozen=True)
class Robust:
    """A schedule with its time in the worst scenario, the proved bound, and the scenarios that were needed."""

    worst: int
    bound: int
    moves: Moves
    scenarios: int


def solve(net: Net, steps: int, budget: int, chunks: int = 1, limit: int | None = None) -> Robust:
    """Find the schedule of at most so many steps whose worst time is the least, with a limit on its usual time."""
    master = Master(net, steps, chunks)
    master.add(frozenset())
    if limit is not None:
        m = master.model
        m.limit = pyo.Constraint(expr=pyo.quicksum(m.step_time[0, s] for s in m.S) <= limit)
    best: tuple[int, Moves] | None = None
    while True:
        bound, moves = master.solve()
        most, slow = worst(net, moves, budget)
        if best is None or most < best[0]:
            best = most, moves
        if best[0] <= bound:
            return Robust(best[0], bound, best[1], master.scenarios)
        master.add(slow)


def gather_of(net: Net, slow: frozenset[Ends], chunks: int) -> Instance:
    """Return the all-gather in a scenario; a chunk has 1,000 bytes, so that its time gives the link's rate."""
    us, size = Fraction(1, 10**6), Fraction(1000)
    links = [Link(str(a), str(b), size / (c * us), late * us) for (a, b), (late, c) in net.cost(slow).items()]
    topology = Topology(tuple(Node(str(rank)) for rank in range(net.ranks)), tuple(links))
    demand = Demand(Collective.ALL_GATHER, size * chunks * net.ranks, chunks, None)
    return Instance("uncertain", topology, demand=demand)


def time_by_simulator(net: Net, moves: Moves, slow: frozenset[Ends], chunks: int) -> float:
    """Return the microseconds of a schedule in a scenario, verified and simulated by cwb, where steps wait."""
    instance = gather_of(net, slow, chunks)
    topology = instance.network
    assert isinstance(topology, Topology)
    link = {ends: number for number, ends in enumerate(topology.link_ends)}
    chunk, source, target, step = np.array(moves, dtype=np.int64).T
    paths = np.array([link[a, b] for _, a, b, _ in moves], dtype=np.int64)
    owner = np.arange(net.ranks * chunks, dtype=np.int64) // chunks
    held = chunks_of_kind(owner, net.ranks, Fraction(1000) * len(owner), TreeKind.OUT)
    sends = Sends(chunk, source, target, np.zeros(len(moves), dtype=np.bool_), np.arange(len(moves) + 1), paths)
    schedule = StepSchedule(instance.sha256, held, sends, step)
    report = verify(instance, schedule)
    assert report.ok, report.violations[:1]
    return float(simulate(instance, schedule, barrier=True).end_s.max()) * 1e6


def both_ways(pairs: dict[Ends, Interval]) -> dict[Ends, Interval]:
    """Return links in both directions of every pair."""
    return {ends: each for (a, b), each in pairs.items() for ends in ((a, b), (b, a))}


def nets() -> Iterator[tuple[str, Net, int, int]]:
    """Yield networks with their names, steps and chunks of a rank."""
    ring, inside, steady = {(i, (i + 1) % 4) for i in range(4)}, Interval(1, 1, 1, 1), Interval(3, 3, 3, 3)
    yield "ring", Net(4, both_ways(dict.fromkeys(ring, Interval(2, 6, 2, 6)))), 3, 1
    chords = dict.fromkeys(((0, 2), (1, 3)), Interval(1, 8, 1, 8))
    yield "ring with chords", Net(4, both_ways(dict.fromkeys(ring, steady) | chords)), 3, 1
    boxes = dict.fromkeys(((0, 1), (2, 3)), inside)
    shared = boxes | {(0, 2): Interval(2, 2, 2, 10), (1, 3): Interval(4, 4, 4, 4)}
    yield "boxes, one shared link", Net(4, both_ways(shared)), 4, 1
    wide = Interval(5, 15, 4, 8)
    yield "boxes, two shared links", Net(4, both_ways(boxes | {(0, 2): wide, (1, 3): wide})), 4, 1
    yield "the same, two chunks", Net(4, both_ways(boxes | {(0, 2): wide, (1, 3): wide})), 4, 2


def random_net(seed: int) -> Net:
    """Return links of random intervals: a ring both ways, and chords with probability one half."""
    random = np.random.default_rng(seed)
    pairs = {(i, (i + 1) % 4) for i in range(4)} | {pair for pair in ((0, 2), (1, 3)) if random.random() < 0.5}

    def interval() -> Interval:
        latency, chunk = random.integers(1, 5, size=2).tolist()
        factor = int(random.integers(1, 5))
        return Interval(latency, latency * factor, chunk, chunk * factor)

    return Net(4, both_ways({pair: interval() for pair in sorted(pairs)}))


@dataclass(frozen=True)
class Comparison:
    """Times in microseconds of the fastest schedule, of the fastest one that is best in the worst case, and of any."""

    usual: int
    its_worst: int  #: Of the schedule that the program finds for usual values.
    least_worst: int  #: Of all schedules that are fastest for usual values.
    robust: int  #: Of all schedules.
    robust_usual: int
    bound: int
    scenarios: int


def compare(net: Net, steps: int, budget: int, chunks: int = 1) -> Comparison:
    """Solve without slow links, and with them, and hold the worst time against cwb's simulator."""
    usual = solve(net, steps, 0, chunks)
    fastest, robust = solve(net, steps, budget, chunks, limit=usual.worst), solve(net, steps, budget, chunks)
    most, slow = worst(net, robust.moves, budget)
    assert (
        most == robust.worst == robust.bound and abs(time_by_simulator(net, robust.moves, slow, chunks) - most) < 1e-6
    )
    its_worst, usually = worst(net, usual.moves, budget)[0], seconds(net, robust.moves, frozenset())
    return Comparison(usual.worst, its_worst, fastest.worst, most, usually, robust.bound, robust.scenarios)


def forests() -> Iterator[tuple[str, Graph, Graph]]:
    """Yield networks for trees: at usual rates, and with all shared links slow."""
    inside = {pair: Fraction(4) for box in (0, 3) for pair in combinations(range(box, box + 3), 2)}
    for rate in (2, 4):
        across = {(i, i + 3): Fraction(rate) for i in range(3)}
        slow = {(i, i + 3): Fraction(rate if i else 1) for i in range(3)}
        yield (
            f"two triangles, rate 4, 3 links of {rate}, one shared",
            Graph(6, inside | across),
            Graph(6, inside | slow),
        )
    full = dict.fromkeys(combinations(range(5), 2), Fraction(4))
    yield (
        "complete, 5, links of one rank shared",
        Graph(5, full),
        Graph(5, {p: r / (1 + (p[0] == 0)) for p, r in full.items()}),
    )


def forest_row(usual: Graph, slow: Graph) -> tuple[str, ...]:
    """Return times of an all-reduce of 1 GB: the best at usual rates, its worst, the robust best, its usual time."""
    at, later = instance_of(usual), instance_of(slow)
    answers = [run(each, Request("forestcoll-allreduce")).answer for each in (at, later)]
    now, robust = (each for each in answers if isinstance(each, TreePacking))
    worst_time = busiest_s(later, now)
    assert busiest_s(at, now) == usual.seconds and busiest_s(later, robust) == slow.seconds
    return tuple(f"{float(each):.4f}" for each in (usual.seconds, worst_time, slow.seconds, busiest_s(at, robust)))


def main() -> None:
    """Print worst times of fastest and robust schedules, counts over random networks, and times of forests."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--networks", type=int, default=40, help="random networks")
    parser.add_argument("--smoke", action="store_true", help="two networks")
    given = parser.parse_args()
    console = Console(width=160)
    table = Table("network", "G", *(each.name for each in fields(Comparison)), "CPU s")
    for name, net, steps, chunks in list(nets())[: 2 if given.smoke else None]:
        for budget in (1,) if given.smoke else (1, 2, 4):
            begin = time.process_time()
            found = astuple(compare(net, steps, budget, chunks))
            table.add_row(name, str(budget), *map(str, found), f"{time.process_time() - begin:.1f}")
    console.print(table)
    trees = Table("network", "usual best", "its worst", "robust", "its usual time")
    for name, usual, slow in forests():
        trees.add_row(name, *forest_row(usual, slow))
    console.print(trees)
    if given.smoke:
        return
    counts = Table(
        "G", "networks", "fastest may lose", "mean", "most", "robust gains more", "mean", "most", "usual time"
    )
    for budget in (1, 2):
        rows = [compare(random_net(seed), 3, budget) for seed in range(given.networks)]
        careless = [each.its_worst / each.least_worst for each in rows if each.its_worst > each.least_worst]
        better = [each for each in rows if each.robust < each.least_worst]
        gains = [each.least_worst / each.robust for each in better]
        price = [each.robust_usual / each.usual for each in better]
        cells = (budget, len(rows), len(careless), mean(careless), max(careless), len(better), mean(gains), max(gains))
        counts.add_row(*(f"{each:.3g}" for each in (*cells, mean(price))))
    console.print(counts)


if __name__ == "__main__":
    main()
