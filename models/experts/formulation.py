"""Pyomo model of replicas of experts on the slots of GPUs, and the placement of a solved model."""

from collections import Counter
from typing import Any

import pyomo.environ as pyo

from ...core.answers import Placement
from ...core.budget import require_buildable
from ...core.experts import Experts
from ...core.instance import Instance
from .packing import Slots, largest, placement_of


def index(instance: Instance, options: Any) -> Experts:
    """Return the experts of one layer (``Formulation.index``)."""
    experts = instance.experts
    assert experts is not None  # noqa: S101 (it is supported)
    require_buildable(experts.count * experts.most * experts.gpus, f"{experts.count} experts")
    return experts


def extract(model: Any, experts: Experts) -> Placement:
    """Return the placement of a solved model (``Formulation.extract``)."""
    return placement_of([slots_of_model(model, experts)])


def slots_of_model(model: Any, experts: Experts) -> Slots:
    """Return a solved model's slots of the layer."""
    return [
        [e for e in model.E for k in model.K for _ in range(round(model.y[e, k, g].value))] for g in range(experts.gpus)
    ]


def set_start(model: Any, experts: Experts, slots: Slots) -> None:
    """Set the model's variables to a placement."""
    count = Counter(e for gpu in slots for e in gpu)
    for e, k in model.x:
        model.x[e, k] = int(count[e] == k)
    for e, k, g in model.y:
        model.y[e, k, g] = slots[g].count(e) if count[e] == k else 0
    home = {experts.group(e): experts.node(g) for g, gpu in enumerate(slots) for e in gpu}
    for p, n in model.z:
        model.z[p, n] = int(home[p] == n)
    model.T = float(largest(experts.loads[0], slots))


def build(problem: Experts) -> Any:
    """Build the model: numbers and places of replicas, full slots, groups on nodes, largest load."""
    m = pyo.ConcreteModel("experts")
    variables(m, problem)
    one_count(m)
    all_placed(m)
    slots_filled(m, problem)
    largest_load(m, problem)
    if problem.nodes > 1:
        one_node(m)
        groups_of_node(m, problem)
        on_its_node(m, problem)
    objective(m)
    return m


def variables(m: Any, problem: Experts) -> None:
    """``x_{e,k}``, 1 for k replicas; ``y_{e,k,g}`` of them on g; ``z_{p,n}``, 1 if group p is on n; the load ``T``."""
    m.E = pyo.RangeSet(0, problem.count - 1)
    m.K = pyo.RangeSet(1, problem.most)
    m.G = pyo.RangeSet(0, problem.gpus - 1)
    m.P = pyo.RangeSet(0, problem.groups - 1)
    m.N = pyo.RangeSet(0, problem.nodes - 1)
    m.x = pyo.Var(m.E, m.K, domain=pyo.Binary)
    m.y = pyo.Var(m.E, m.K, m.G, domain=pyo.NonNegativeIntegers, bounds=(0, problem.slots))
    m.z = pyo.Var(m.P, m.N, domain=pyo.Binary)
    m.T = pyo.Var(domain=pyo.NonNegativeReals, bounds=(0, float(sum(problem.loads[0]))))


def one_count(m: Any) -> None:
    """``sum_k x_{e,k} = 1``: every expert has some number of replicas."""

    @m.Constraint(m.E)
    def one_count(m: Any, e: int) -> Any:
        return pyo.quicksum(m.x[e, k] for k in m.K) == 1


def all_placed(m: Any) -> None:
    """``sum_g y_{e,k,g} = k x_{e,k}``: all its replicas are on GPUs."""

    @m.Constraint(m.E, m.K)
    def all_placed(m: Any, e: int, k: int) -> Any:
        return pyo.quicksum(m.y[e, k, g] for g in m.G) == k * m.x[e, k]


def slots_filled(m: Any, problem: Experts) -> None:
    """``sum_{e,k} y_{e,k,g} = S``: every slot of a GPU holds a replica."""

    @m.Constraint(m.G)
    def slots_filled(m: Any, g: int) -> Any:
        return pyo.quicksum(m.y[e, k, g] for e in m.E for k in m.K) == problem.slots


def largest_load(m: Any, problem: Experts) -> None:
    """``sum_{e,k} (w_e / k) y_{e,k,g} <= T``: replicas share the load of an expert."""

    @m.Constraint(m.G)
    def largest_load(m: Any, g: int) -> Any:
        return pyo.quicksum(float(problem.loads[0][e] / k) * m.y[e, k, g] for e in m.E for k in m.K) <= m.T


def one_node(m: Any) -> None:
    """``sum_n z_{p,n} = 1``: every group is on a node."""

    @m.Constraint(m.P)
    def one_node(m: Any, p: int) -> Any:
        return pyo.quicksum(m.z[p, n] for n in m.N) == 1


def groups_of_node(m: Any, problem: Experts) -> None:
    """``sum_p z_{p,n} = P / N``: every node has as many groups."""

    @m.Constraint(m.N)
    def groups_of_node(m: Any, n: int) -> Any:
        return pyo.quicksum(m.z[p, n] for p in m.P) == problem.groups // problem.nodes


def on_its_node(m: Any, problem: Experts) -> None:
    """``sum_{g on n} y_{e,k,g} <= k z_{p(e),n}``: an expert is on the node of its group."""

    @m.Constraint(m.E, m.K, m.N)
    def on_its_node(m: Any, e: int, k: int, n: int) -> Any:
        here = pyo.quicksum(m.y[e, k, g] for g in m.G if problem.node(g) == n)
        return here <= k * m.z[problem.group(e), n]


def objective(m: Any) -> None:
    """Minimize ``T``, the largest load."""
    m.objective = pyo.Objective(expr=m.T, sense=pyo.minimize)
