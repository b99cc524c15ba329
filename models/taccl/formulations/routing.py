"""Model ``taccl-routing``: edges of every chunk (:mod:`cwb.models.taccl`)."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal, TypeVar

import pyomo.environ as pyo

from ....algorithms.schedules.problem import Commodity, RankEdge
from ....algorithms.schedules.stages import CopyStage
from ....core.grouping import group_by_key
from ....core.topology import Topology

Connections = Literal["any", "min", "max"]  #: How many edges through switches are to be used.

Item = TypeVar("Item", int, tuple[int, int])

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
    #: Pairs alike by symmetries of the sketch that change nothing else: one variable, and one row for all images.
    images: Sequence[tuple[tuple[int, int], tuple[int, int]]] = ()

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
        return group_by_key(((c, self.edges[e].target), (c, e)) for c, e in self.sends)

    @cached_property
    def first(self) -> dict[tuple[int, int], tuple[int, int]]:
        """First image of every send, whose variable it shares."""
        return _first_images(self.sends, self.images)

    @cached_property
    def first_edge(self) -> dict[int, int]:
        """First image of every edge."""
        return _first_images(range(len(self.edges)), {(one[1], other[1]) for one, other in self.images})

    @cached_property
    def leaders(self) -> list[int]:
        """Chunks that are no images of earlier ones."""
        pairs = {(one[0], other[0]) for one, other in self.images}
        return [c for c, first in _first_images(range(len(self.chunks)), pairs).items() if c == first]

    @property
    def demands(self) -> list[tuple[int, int]]:
        """Leaders and the nodes that need them."""
        return [(c, n) for c in self.leaders for n in self.chunks[c].targets]

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


def _first_images(items: Iterable[Item], pairs: Iterable[tuple[Item, Item]]) -> dict[Item, Item]:
    """Map each item to the smallest of those that pairs join with it."""
    import networkx as nx

    graph = nx.from_edgelist(pairs)
    graph.add_nodes_from(items)
    return {item: min(part) for part in nx.connected_components(graph) for item in part}


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
    """``x_{c,e}``, 1 if c takes e; ``t_{c,n}``, its arrival; ``u_e``, 1 if e is used; ``T``, the time.

    Sends and edges that symmetries map to one another share a variable, and only the first chunk has times.
    """
    nodes = sorted({n for edge in problem.edges for n in (edge.source, edge.target)})
    m.C = pyo.Set(initialize=problem.leaders)
    first_edges = sorted({*problem.first_edge.values()})
    m.through = pyo.Set(initialize=[e for e in first_edges if len(problem.edges[e].links) > 1])
    m.sends = pyo.Set(initialize=[(c, e) for c in problem.leaders for e in problem.usable[c]], dimen=2)
    m.x = pyo.Var(sorted({*problem.first.values()}), domain=pyo.Binary)
    m.t = pyo.Var(m.C, pyo.Set(initialize=nodes), bounds=(0, problem.horizon))
    m.u = pyo.Var(m.through, domain=pyo.Binary)
    m.T = pyo.Var(bounds=(0, None))


def delivery(m: Any, problem: RoutingProblem) -> None:
    """``sum_i x_{c,(i,n)} = 1`` where n needs c."""

    @m.Constraint(problem.demands)
    def one_send_in(m: Any, c: int, n: int) -> Any:
        into = problem.into[c, n]
        return pyo.quicksum(m.x[problem.first[send]] for send in into) == 1 if into else pyo.Constraint.Infeasible


def relay(m: Any, problem: RoutingProblem) -> None:
    """``x_{c,(i,j)} <= sum_h x_{c,(h,i)}``: a rank forwards only received chunks; ``x_{c,e} <= 0`` into the source."""

    @m.Constraint(m.sends)
    def relay(m: Any, c: int, e: int) -> Any:
        edge, source, x = problem.edges[e], problem.chunks[c].source, m.x[problem.first[c, e]]
        if edge.target == source:
            return x <= 0
        if edge.source == source:
            return pyo.Constraint.Skip
        return x <= pyo.quicksum(m.x[problem.first[send]] for send in problem.into[c, edge.source])


def arrival(m: Any, problem: RoutingProblem) -> None:
    """``t_{c,j} >= t_{c,i} + p_ce - (M + p_ce) (1 - x_{c,e})``, ``p_ce = alpha_e + beta_ce``: time along the route.

    M bounds every time; the route has no cycle.
    """
    horizon = problem.horizon

    @m.Constraint(m.sends)
    def arrival(m: Any, c: int, e: int) -> Any:
        edge, takes = problem.edges[e], problem.passing(c, e)
        return m.t[c, edge.target] >= m.t[c, edge.source] + takes - (horizon + takes) * (1 - m.x[problem.first[c, e]])


def busy(m: Any, problem: RoutingProblem) -> None:
    """``sum_{c,e} beta_cl x_{c,e} <= T`` over all edges e through a link l: its chunks take turns."""
    loads = defaultdict[int, defaultdict[tuple[int, int], float]](lambda: defaultdict(float))
    for c, e in problem.sends:
        for link in problem.edges[e].links:
            loads[link][problem.first[c, e]] += problem.load(c, link)

    @m.Constraint(sorted(loads))
    def busy(m: Any, link: int) -> Any:
        return pyo.quicksum(load * m.x[send] for send, load in loads[link].items()) <= m.T


def last(m: Any, problem: RoutingProblem) -> None:
    """``T >= t_{c,n}`` where n needs c."""

    @m.Constraint(problem.demands)
    def last(m: Any, c: int, n: int) -> Any:
        return m.t[c, n] <= m.T


def connection(m: Any, problem: RoutingProblem) -> None:
    """``x_{c,e} <= u_e`` for uc-min; ``u_e <= sum_c x_{c,e}`` for uc-max."""
    through = [(c, e) for c, e in problem.sends if e in m.through]

    @m.Constraint(through if problem.connections == "min" else sorted({(0, e) for _, e in through}))
    def connection(m: Any, c: int, e: int) -> Any:
        if problem.connections == "min":
            return m.x[problem.first[c, e]] <= m.u[e]
        if problem.connections == "max":
            return m.u[e] <= pyo.quicksum(m.x[problem.first[send]] for send in through if send[1] == e)
        return pyo.Constraint.Skip


def alike(m: Any, problem: RoutingProblem) -> None:
    """``x_{c,e} = x_{c',e'}`` for sends that are alike in the sketch; 0 if one of them is not allowed."""

    @m.Constraint(range(len(problem.same)))
    def alike(m: Any, index: int) -> Any:
        pair = [m.x[problem.first[send]] for send in problem.same[index] if send in problem.first]
        if len(pair) == 2:
            return pair[0] == pair[1]
        return pair[0] == 0 if pair else pyo.Constraint.Skip


def objective(m: Any, problem: RoutingProblem) -> None:
    """Minimize ``T + eps (sum x_{c,e} + s sum u_e)``, s of uc-min 1, of uc-max -1, else 0.

    Of equal times, the fewest sends, and the fewest or the most edges through switches.
    """
    unit = min((problem.passing(c, e) for c, e in problem.sends), default=1.0)
    sign = {"any": 0, "min": 1, "max": -1}[problem.connections]
    sends, edges = Counter(problem.first.values()), Counter(problem.first_edge.values())
    extra = pyo.quicksum(sends[send] * x for send, x in m.x.items())
    extra += sign * pyo.quicksum(edges[e] * u for e, u in m.u.items())
    m.objective = pyo.Objective(expr=m.T + LITTLE * unit * extra, sense=pyo.minimize)
