"""Model ``taccl-routing``: edges of every chunk (:mod:`cwb.models.taccl`)."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal

import pyomo.environ as pyo

from ....algorithms.schedules.problem import Commodity, RankEdge
from ....algorithms.schedules.stages import CopyStage
from ....core.topology import Topology

Connections = Literal["any", "min", "max"]  #: How many edges through switches are to be used.

#: Weight of the number of sends, and of the edges in use, against the time: too small to trade time for them.
LITTLE = 1e-4


@dataclass(frozen=True)
class RoutingProblem:
    """Input of the routing, in a unit of time that avoids tiny numbers in solvers."""

    chunks: Sequence[Commodity]
    edges: Sequence[RankEdge]
    stage: CopyStage
    usable: Sequence[Sequence[int]]  #: Edges that each chunk may take.
    same: Sequence[tuple[tuple[int, int], tuple[int, int]]] = ()  #: Pairs of (chunk, edge) alike by the sketch.
    connections: Connections = "any"
    unit_s: Fraction = Fraction(1)
    most: float | None = None  #: Known upper bound on the optimal time, in the unit.
    routes: frozenset[tuple[int, int]] = frozenset()  #: Chunks and edges of known routes, or empty.

    @property
    def topology(self) -> Topology:
        """Network of the stage, the reversed one of sums."""
        return self.stage.instance.topology

    @cached_property
    def sends(self) -> list[tuple[int, int]]:
        """Pairs of a chunk and an edge that it may take."""
        return [(c, e) for c, edges in enumerate(self.usable) for e in edges]

    @cached_property
    def into(self) -> dict[tuple[int, int], list[tuple[int, int]]]:
        """Sends that bring each chunk to each node."""
        into = defaultdict[tuple[int, int], list[tuple[int, int]]](list)
        for c, e in self.sends:
            into[c, self.edges[e].target].append((c, e))
        return into

    def load(self, chunk: int, link: int) -> float:
        """Return the time that a chunk keeps a link busy."""
        return float(self.chunks[chunk].bytes / self.topology.links[link].bandwidth_Bps / self.unit_s)

    def delay(self, edge: int) -> float:
        """Return the latency of an edge; through switches, that of the uplink alone."""
        return float(self.topology.links[self.edges[edge].links[0]].latency_s / self.unit_s)

    def passing(self, chunk: int, edge: int) -> float:
        """Return the time of a chunk over an edge; through switches, that of the uplink alone."""
        return self.delay(edge) + self.load(chunk, self.edges[edge].links[0])

    @property
    def horizon(self) -> float:
        """Upper bound on the optimum: the known one, or every edge once."""
        if self.most is not None:
            return self.most
        return sum(max(self.passing(c, e) for c in range(len(self.chunks))) for e in range(len(self.edges)))


def build(problem: RoutingProblem) -> Any:
    """Build the model: routes, times along routes, link loads, connections, symmetry, least time."""
    m = pyo.ConcreteModel("taccl-routing")
    variables(m, problem)
    delivery(m, problem)
    relay(m, problem)
    arrival(m, problem)
    busy(m, problem)
    last(m, problem)
    connection(m, problem)
    alike(m, problem)
    objective(m, problem)
    return m


def variables(m: Any, problem: RoutingProblem) -> None:
    """``x_{c,e}``, 1 if c takes e; ``t_{c,n}``, its arrival; ``u_e``, 1 if e is used; ``T``, the time."""
    nodes = sorted({n for edge in problem.edges for n in (edge.source, edge.target)})
    m.C = pyo.RangeSet(0, len(problem.chunks) - 1)
    m.E = pyo.RangeSet(0, len(problem.edges) - 1)
    m.through = pyo.Set(initialize=[e for e, edge in enumerate(problem.edges) if len(edge.links) > 1])
    m.sends = pyo.Set(initialize=problem.sends, dimen=2)
    m.x = pyo.Var(m.sends, domain=pyo.Binary)
    m.t = pyo.Var(m.C, pyo.Set(initialize=nodes), bounds=(0, problem.horizon))
    m.u = pyo.Var(m.through, domain=pyo.Binary)
    m.T = pyo.Var(bounds=(0, None))


def delivery(m: Any, problem: RoutingProblem) -> None:
    """``sum_i x_{c,(i,n)} = 1`` where n needs c."""
    needed = [(c, n) for c, chunk in enumerate(problem.chunks) for n in chunk.targets]

    @m.Constraint(needed)
    def one_send_in(m: Any, c: int, n: int) -> Any:
        into = problem.into[c, n]
        return pyo.quicksum(m.x[send] for send in into) == 1 if into else pyo.Constraint.Infeasible


def relay(m: Any, problem: RoutingProblem) -> None:
    """``x_{c,(i,j)} <= sum_h x_{c,(h,i)}``: a rank forwards only received chunks; ``x_{c,e} <= 0`` into the source."""

    @m.Constraint(m.sends)
    def relay(m: Any, c: int, e: int) -> Any:
        edge, source = problem.edges[e], problem.chunks[c].source
        if edge.target == source:
            return m.x[c, e] <= 0
        if edge.source == source:
            return pyo.Constraint.Skip
        return m.x[c, e] <= pyo.quicksum(m.x[send] for send in problem.into[c, edge.source])


def arrival(m: Any, problem: RoutingProblem) -> None:
    """``t_{c,j} >= t_{c,i} + p_ce - (M + p_ce) (1 - x_{c,e})``, ``p_ce = alpha_e + beta_ce``: time along the route.

    M bounds every time; the route has no cycle.
    """
    horizon = problem.horizon

    @m.Constraint(m.sends)
    def arrival(m: Any, c: int, e: int) -> Any:
        edge, takes = problem.edges[e], problem.passing(c, e)
        return m.t[c, edge.target] >= m.t[c, edge.source] + takes - (horizon + takes) * (1 - m.x[c, e])


def busy(m: Any, problem: RoutingProblem) -> None:
    """``sum_{c,e} beta_cl x_{c,e} <= T`` over all edges e through a link l: its chunks take turns."""
    users = defaultdict[int, list[tuple[int, int]]](list)
    for c, e in problem.sends:
        for link in problem.edges[e].links:
            users[link].append((c, e))

    @m.Constraint(sorted(users))
    def busy(m: Any, link: int) -> Any:
        return pyo.quicksum(problem.load(c, link) * m.x[c, e] for c, e in users[link]) <= m.T


def last(m: Any, problem: RoutingProblem) -> None:
    """``T >= t_{c,n}`` where n needs c."""
    needed = [(c, n) for c, chunk in enumerate(problem.chunks) for n in chunk.targets]

    @m.Constraint(needed)
    def last(m: Any, c: int, n: int) -> Any:
        return m.t[c, n] <= m.T


def connection(m: Any, problem: RoutingProblem) -> None:
    """``x_{c,e} <= u_e`` for uc-min; ``u_e <= sum_c x_{c,e}`` for uc-max."""
    through = [(c, e) for c, e in problem.sends if e in m.through]

    @m.Constraint(through if problem.connections == "min" else sorted({(0, e) for _, e in through}))
    def connection(m: Any, c: int, e: int) -> Any:
        if problem.connections == "min":
            return m.x[c, e] <= m.u[e]
        if problem.connections == "max":
            return m.u[e] <= pyo.quicksum(m.x[send] for send in through if send[1] == e)
        return pyo.Constraint.Skip


def alike(m: Any, problem: RoutingProblem) -> None:
    """``x_{c,e} = x_{c',e'}`` for sends that are alike in the sketch; 0 if one of them is not allowed."""

    @m.Constraint(range(len(problem.same)))
    def alike(m: Any, index: int) -> Any:
        one, other = problem.same[index]
        if one in m.x and other in m.x:
            return m.x[one] == m.x[other]
        left = [m.x[send] for send in (one, other) if send in m.x]
        return left[0] == 0 if left else pyo.Constraint.Skip


def objective(m: Any, problem: RoutingProblem) -> None:
    """Minimize ``T + eps (sum x_{c,e} + s sum u_e)``, s of uc-min 1, of uc-max -1, else 0.

    Of equal times, the fewest sends, and the fewest or the most edges through switches.
    """
    unit = min((problem.passing(c, e) for c, e in problem.sends), default=1.0)
    sign = {"any": 0, "min": 1, "max": -1}[problem.connections]
    extra = pyo.quicksum(m.x.values()) + sign * pyo.quicksum(m.u.values())
    m.objective = pyo.Objective(expr=m.T + LITTLE * unit * extra, sense=pyo.minimize)
