"""Sets and Pyomo model of the k-synchronous schedules of SCCL, and the schedule of a solved model."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isinf
from typing import Any

import numpy as np
import pyomo.environ as pyo

from ...algorithms.graphs.distances import distances
from ...algorithms.schedules.problem import (
    MAX_SWITCHES,
    Commodity,
    RankEdge,
    commodities_of,
    edge_labels,
    edges_of,
    needed_sends,
    parallel_uses,
)
from ...algorithms.schedules.stages import CopyStage, stages_of
from ...core.budget import require_buildable
from ...core.errors import InputError, Unsupported
from ...core.grouping import group_by_key
from ...core.instance import Instance
from ...core.schedule import StepSchedule
from ...core.topology import NodeKind

COLUMN_S = 8e-6  #: Seconds that a column takes to be built.


@dataclass(frozen=True)
class SynchronousSteps:
    """Chunks, edges between ranks, steps and rounds of a stage of copies."""

    chunks: Sequence[Commodity]
    edges: Sequence[RankEdge]
    room: Sequence[int]  #: Chunks that each link of the network carries in a round.
    steps: int
    rounds: int
    stage: CopyStage

    @property
    def columns(self) -> int:
        """Number of variables of possession, sends and rounds."""
        return len(self.chunks) * (len(self.nodes) * (self.steps + 1) + len(self.edges) * self.steps) + self.steps

    @property
    def nodes(self) -> list[int]:
        """Nodes at the ends of edges."""
        return sorted({n for edge in self.edges for n in (edge.source, edge.target)})

    @property
    def users(self) -> dict[int, list[int]]:
        """Edges over each link, several where paths through switches share it."""
        users = group_by_key((link, e) for e, edge in enumerate(self.edges) for link in edge.links)
        return dict(sorted(users.items()))

    @property
    def has_every_path(self) -> bool:
        """True if data has no other way between ranks: no switch has a link to another, copies or adds."""
        topology, backwards = self.stage.instance.topology, self.stage.backwards
        switches = {index for index, node in enumerate(topology.nodes) if node.kind is NodeKind.SWITCH}
        joining = (topology.nodes[switch] for switch in switches)
        if any(node.may_add if backwards else node.copies for node in joining):
            return False
        return not any(switches.issuperset(ends) for ends in topology.link_ends)


def pose_steps(stage: CopyStage, steps: int | None, rounds: int | None) -> SynchronousSteps:
    """Return the chunks and edges of a stage.

    By default there are as many steps as links between a source and a target at most, the fewest possible, and as many
    rounds as all chunks over all edges of one link in every step need, which always suffice.
    """
    chunks, edges = commodities_of(stage.instance), edges_of(stage.instance.topology)
    if len({chunk.bytes for chunk in chunks}) != 1:
        raise Unsupported("rounds need chunks of one size")
    if steps is None:
        tail, head = np.array([(edge.source, edge.target) for edge in edges], dtype=np.int64).T
        far = distances(len(stage.instance.topology.nodes), tail, head, [1] * len(edges))
        most = max(far[chunk.source, list(chunk.targets)].max(initial=0) for chunk in chunks)
        if isinf(most):
            text = f"a rank cannot be reached by paths through at most {MAX_SWITCHES} switches"
            raise InputError(text, place="network.links")
        steps = int(most)
    problem = SynchronousSteps(chunks, edges, parallel_uses(stage.instance.topology), steps, 0, stage)
    most_sends = len(chunks) * max(map(len, problem.users.values()))
    return replace(problem, rounds=rounds or steps * most_sends)


def index(instance: Instance, options: Any) -> SynchronousSteps:
    """Return chunks, edges, steps and rounds (``Formulation.index``)."""
    problem = pose_steps(stages_of(instance)[0], options.steps, options.rounds)
    require_buildable(problem.columns, f"{problem.steps} steps", COLUMN_S)
    return problem


def schedule_of(model: Any, problem: SynchronousSteps) -> StepSchedule:
    """Return a solved model's schedule, without sends that serve no target (``Formulation.extract``)."""
    sends: list[tuple[int, int, RankEdge]] = []
    for c, chunk in enumerate(problem.chunks):
        starts = [(s, problem.edges[e]) for e in model.E for s in model.S if model.y[c, e, s].value > 0.5]
        sends += [(s, c, edge) for s, edge in needed_sends(chunk.source, chunk.targets, starts)]
    return problem.stage.schedule(sends)


def labels(index: SynchronousSteps) -> Mapping[str, Callable[[Any], str]]:
    """Name nodes, edges and the chunks' sources (``Formulation.labels``)."""
    return edge_labels(index.stage.instance.topology, index.edges, index.chunks)


def build(problem: SynchronousSteps) -> Any:
    """Build the model: chunks at ranks, sends, rounds, and the least number of rounds."""
    m = pyo.ConcreteModel("sccl")
    variables(m, problem)
    start(m, problem)
    receive(m, problem)
    has_first(m, problem)
    bandwidth(m, problem)
    rounds(m, problem)
    post(m, problem)
    objective(m)
    return m


def variables(m: Any, problem: SynchronousSteps) -> None:
    """``v_{c,n,s}``, 1 if n has c before step s; ``y_{c,e,s}``, 1 if e carries it; ``1 <= r_s <= R``, rounds."""
    m.C = pyo.RangeSet(0, len(problem.chunks) - 1)
    m.N = pyo.Set(initialize=problem.nodes)
    m.E = pyo.RangeSet(0, len(problem.edges) - 1)
    m.S = pyo.RangeSet(0, problem.steps - 1)
    m.v = pyo.Var(m.C, m.N, pyo.RangeSet(0, problem.steps), domain=pyo.Binary)
    m.y = pyo.Var(m.C, m.E, m.S, domain=pyo.Binary)
    m.r = pyo.Var(m.S, domain=pyo.NonNegativeIntegers, bounds=(1, problem.rounds))


def start(m: Any, problem: SynchronousSteps) -> None:
    """``v_{c,n,0} = 1`` at the source of c and 0 elsewhere (precondition)."""

    @m.Constraint(m.C, m.N)
    def start(m: Any, c: int, n: int) -> Any:
        return m.v[c, n, 0] == int(problem.chunks[c].source == n)


def receive(m: Any, problem: SynchronousSteps) -> None:
    """``v_{c,n,s+1} = v_{c,n,s} + sum_i y_{c,(i,n),s}``: a rank keeps what it had and receives nothing twice."""
    into = {n: [e for e, edge in enumerate(problem.edges) if edge.target == n] for n in problem.nodes}

    @m.Constraint(m.C, m.N, m.S)
    def receive(m: Any, c: int, n: int, s: int) -> Any:
        return m.v[c, n, s + 1] == m.v[c, n, s] + pyo.quicksum(m.y[c, e, s] for e in into[n])


def has_first(m: Any, problem: SynchronousSteps) -> None:
    """``y_{c,(i,j),s} <= v_{c,i,s}``: a rank sends only chunks that it had before the step."""

    @m.Constraint(m.C, m.E, m.S)
    def has_first(m: Any, c: int, e: int, s: int) -> Any:
        return m.y[c, e, s] <= m.v[c, problem.edges[e].source, s]


def bandwidth(m: Any, problem: SynchronousSteps) -> None:
    """``sum_c sum_{e over l} y_{c,e,s} <= b_l r_s``: what all edges over a link carry fits into the step's rounds.

    Paths through switches that begin or end at one link share it: SCCL's bandwidth relation of sets of edges.
    """
    users = problem.users

    @m.Constraint(list(users), m.S)
    def bandwidth(m: Any, link: int, s: int) -> Any:
        sends = [m.y[c, e, s] for c in m.C for e in users[link]]
        return pyo.quicksum(sends) <= min(problem.room[link], len(sends)) * m.r[s]


def rounds(m: Any, problem: SynchronousSteps) -> None:
    """``sum_s r_s <= R`` (with ``R = S + k``: k-synchronous)."""

    @m.Constraint()
    def rounds(m: Any) -> Any:
        return pyo.quicksum(m.r[s] for s in m.S) <= problem.rounds


def post(m: Any, problem: SynchronousSteps) -> None:
    """``v_{c,n,S} = 1`` where n needs c (postcondition)."""
    demand = [(c, n) for c, chunk in enumerate(problem.chunks) for n in chunk.targets]

    @m.Constraint(demand)
    def post(m: Any, c: int, n: int) -> Any:
        return m.v[c, n, problem.steps] == 1


def objective(m: Any) -> None:
    """Minimize ``sum_s r_s``, the rounds."""
    m.objective = pyo.Objective(expr=pyo.quicksum(m.r[s] for s in m.S), sense=pyo.minimize)
