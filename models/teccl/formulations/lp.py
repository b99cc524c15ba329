"""TE-CCL's linear program (section 4.1, appendices A and B): index sets and Pyomo model.

Nothing is copied, and the chunks of a source are one commodity.
"""

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyomo.environ as pyo
from pyomo.common.gc_manager import PauseGC

from ....core.rows import Lists, Table, Variables, rows, var_or_zero
from ..problem import EpochProblem


@dataclass(frozen=True, eq=False)
class LpIndexSets:
    """Index sets of the linear program for fluid chunks, which have all arrived by index K.

    The objective is ``makespan``, the largest part of all demands that can be met in K epochs, or ``paper``.
    """

    problem: EpochProblem
    epochs: int
    objective: str = "makespan"

    @property
    def columns(self) -> int:
        """Number of flows, buffers and reads."""
        return len(self.flows) + len(self.buffers) + len(self.reads)

    @cached_property
    def demand(self) -> dict[int, Counter[int]]:
        """Chunks that each node needs of each source; a chunk with several destinations is sent to each."""
        demand: dict[int, Counter[int]] = {}
        for commodity in self.problem.commodities:
            demand.setdefault(commodity.source, Counter()).update(commodity.targets)
        return demand

    @cached_property
    def first(self) -> dict[int, list[int]]:
        """Earliest index at which data of a source can be at each node."""
        return {s: self.problem.distance[s].tolist() for s in self.demand}

    @cached_property
    def last(self) -> dict[int, list[int]]:
        """Latest index at which data of a source at each node is of use."""
        far = self.problem.distance
        return {s: (self.epochs - far[:, list(t)].min(axis=1)).tolist() for s, t in self.demand.items()}

    @cached_property
    def flows(self) -> list[tuple[int, int, int]]:
        """Index of F: source, link, epoch."""
        return [
            (s, e, k)
            for s in self.demand
            for e, link in enumerate(self.problem.links)
            if link.target != s
            for k in range(self.first[s][link.source], self.last[s][link.target] - link.delay + 1)
        ]

    @cached_property
    def buffers(self) -> list[tuple[int, int, int]]:
        """Index of B: source, node that stores, index in time."""
        return [(s, n, k) for s, n, k in self.nodes if self.problem.holds[n] != 0 and k < self.last[s][n]]

    @cached_property
    def nodes(self) -> list[tuple[int, int, int]]:
        """Source, node and index in time at which data can be there."""
        pairs = [(s, n) for s in self.demand for n in range(self.problem.nodes)]
        return [(s, n, k) for s, n in pairs for k in range(self.first[s][n], self.last[s][n] + 1)]

    @cached_property
    def reads(self) -> list[tuple[int, int, int]]:
        """Index of R: source, destination, index in time."""
        pairs = [(s, d) for s, targets in self.demand.items() for d in targets]
        return [(s, d, k) for s, d in pairs for k in range(self.first[s][d], self.epochs + 1)]


def build(sets: LpIndexSets) -> Any:
    """Build the model: flows, capacities, buffers, conservation, reads, destinations, objective."""
    with PauseGC():
        m = pyo.ConcreteModel("teccl-lp")
        variables(m, sets, whole=sets.objective == "paper")
        capacity(m, sets)
        flow_conservation(m, sets)
        destination(m, sets)
        if any(limit is not None for limit in sets.problem.room):
            limited_buffers(m, sets)
        if sets.objective == "makespan":
            makespan(m)
        else:
            paper_objective(m, sets)
    return m


def variables(m: Any, sets: LpIndexSets, *, whole: bool) -> None:
    """``F[s, e, k]`` flows; ``B[s, n, k]`` kept from k to ``k + 1``; ``R[s, d, k]`` read at k.

    ``part`` of all demands is met. With the paper's objective the part is 1.
    """
    m.flows = pyo.Set(dimen=3, initialize=sets.flows)
    m.buffers = pyo.Set(dimen=3, initialize=sets.buffers)
    m.reads = pyo.Set(dimen=3, initialize=sets.reads)
    m.F = Variables(m.flows, domain=pyo.NonNegativeReals)
    m.B = Variables(m.buffers, domain=pyo.NonNegativeReals)
    m.R = Variables(m.reads, domain=pyo.NonNegativeReals)
    m.part = pyo.Var(bounds=(1 if whole else 0, 1))


def capacity(m: Any, sets: LpIndexSets) -> None:
    """``sum_s F[s, (i, j), k] <= T[(i, j), k] tau``, with the bandwidth of that epoch."""
    sources = Lists()
    for s, e, k in sets.flows:
        sources[e, k].append(s)
    links, timing = sets.problem.links, sets.problem.timing
    room = Table(((e, k), float(links[e].rate * timing.factor(e, k))) for e, k in sources)

    @rows(m, list(sources))
    def capacity(m: Any, e: int, k: int) -> Any:
        return sum(m.F[s, e, k] for s in sources[e, k]) <= room[e, k]


def flow_conservation(m: Any, sets: LpIndexSets) -> None:
    """``part G[s,n,k] + sum_j F[s,(j,n),k-delta] + B[s,n,k-1] = B[s,n,k] + R[s,n,k] + sum_j F[s,(n,j),k]``.

    G is ``sum_d D[s, d]`` at the source and index 0, else 0 (appendix A). A switch that cannot store has no B, and
    nothing is read there.
    """
    problem = sets.problem
    supply = Table(((s, s, 0), sum(targets.values())) for s, targets in sets.demand.items())
    entering, leaving = Lists(enumerate(problem.entering)), Lists(enumerate(problem.leaving))
    delay = Table((e, link.delay) for e, link in enumerate(problem.links))

    @rows(m, sets.nodes)
    def flow_conservation(m: Any, s: int, n: int, k: int) -> Any:
        came = sum(var_or_zero(m.F, s, e, k - delay[e]) for e in entering[n]) + var_or_zero(m.B, s, n, k - 1)
        went = sum(var_or_zero(m.F, s, e, k) for e in leaving[n]) + var_or_zero(m.B, s, n, k)
        return supply.get((s, n, k), 0) * m.part + came == went + var_or_zero(m.R, s, n, k)


def destination(m: Any, sets: LpIndexSets) -> None:
    """``sum_k R[s, d, k] - D[s, d] part = 0``: reads up to the last epoch meet the demand.

    All is on one side: compared with a single read, Python would make ``part`` the left side, with other signs.
    """
    demand = Table(((s, d), count) for s, targets in sets.demand.items() for d, count in targets.items())
    spans = Lists(((s, d), range(sets.first[s][d], sets.epochs + 1)) for s, d in demand)

    @rows(m, list(demand))
    def destination(m: Any, s: int, d: int) -> Any:
        return sum(m.R[s, d, k] for k in spans[s, d]) - demand[s, d] * m.part == 0


def limited_buffers(m: Any, sets: LpIndexSets) -> None:
    """``sum_s B[s, n, k] <= L`` (appendix B), over data that a rank stores for others."""
    room = Table((n, limit) for n, limit in enumerate(sets.problem.room) if limit is not None)
    sources = Lists()
    for s, n, k in sets.buffers:
        if n != s and n in room and not sets.problem.switch[n]:
            sources[n, k].append(s)

    @rows(m, list(sources))
    def limited_buffers(m: Any, n: int, k: int) -> Any:
        return sum(m.B[s, n, k] for s in sources[n, k]) <= room[n]


def makespan(m: Any) -> None:
    """Maximize ``part``: K epochs suffice if and only if it is 1."""
    m.objective = pyo.Objective(expr=m.part, sense=pyo.maximize)


def paper_objective(m: Any, sets: LpIndexSets) -> None:
    """Maximize ``sum_{k, s, d} 1 / (k + 1)`` of the data read by the end of epoch k.

    A read at index k counts 1/k + ... + 1/K.
    """
    tail = [0.0] * (sets.epochs + 2)
    for k in range(sets.epochs, 0, -1):
        tail[k] = tail[k + 1] + 1.0 / k
    m.objective = pyo.Objective(expr=pyo.quicksum(tail[k] * m.R[s, d, k] for s, d, k in sets.reads), sense=pyo.maximize)
