"""``taccl``: the method, as the registry knows it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from ...core.budget import Budget
from ...core.errors import InputError, Unsupported
from ...core.fields import Strict
from ...core.instance import Instance
from ...core.method import Kind, Method, Outcome, Status
from ...core.schedule import StepSchedule
from ...core.solver import Solver, SolverOptions
from ...core.topology import Topology
from ..common.hyper_edges import edges_of
from ..common.schedule_bounds import best_bound
from ..common.step_sends import step_schedule
from ..common.whole_chunks import unfit, whole_chunks
from .sketch import parse_sketch

if TYPE_CHECKING:
    from .ordering import Plan
    from .routing import Routing


#: Times of sends that the integer program can hold beside one another: its big constants are sums of the longest ones.
WIDEST = 10**6


class Options(Strict):
    """Options of ``taccl``."""

    sketch: str = Field(
        "",
        max_length=10_000,
        description="Statements such as 'avoid box0.* -> box1.*; shift 8', separated by semicolons.",
    )
    connections: Literal["any", "min", "max"] = Field(
        "any", description="Whether few (uc-min) or many (uc-max) of the edges through switches are used."
    )
    contiguity: bool = Field(True, description="Whether neighbours in an order may be sent together.")
    routing_gap: float = Field(0.01, ge=0, le=1, description="Relative gap at which the routing may stop.")


def run(instance: Instance, solver: Solver, budget: Budget, options: Options) -> Outcome:
    """Route, order, join (``Method.run``)."""
    from .contiguity import build as build_contiguity
    from .ordering import plan_of, symmetric
    from .routing import Routing
    from .routing import build as build_routing

    topology = instance.network
    if not isinstance(topology, Topology):
        raise Unsupported("expected an explicit network")
    sketch = parse_sketch(options.sketch, instance.npus)
    chunks, columns = whole_chunks(instance)
    edges = sketch.allowed(topology, edges_of(topology))
    if not edges:
        raise InputError("the sketch leaves no edge", place="sketch")
    bound, certificate = best_bound(instance)
    same = symmetric(topology, chunks, edges, sketch.shift) if sketch.shift is not None else ()
    routing = _in_units(Routing(chunks, edges, topology, same, options.connections))
    with budget.clock.phase("build"):
        model = build_routing(routing)
    result = solver.solve(model, budget, SolverOptions(rel_gap=budget.gap or options.routing_gap))
    base: dict[str, Any] = {"bound": float(bound), "certificate": certificate, "size": result.size}
    if not result.has_solution:
        message = f"no routes were found: the solver says {result.termination.value}"
        return Outcome(Status.LIMIT, message=message, reports=(result,), **base)
    taken = [(c, e) for c in model.C for e in model.E if model.x[c, e].value > 0.5]
    plan = plan_of(routing, taken)
    metrics: dict[str, object] = {"routing_s": model.T.value * float(routing.unit_s), "sends": len(plan.sends)}
    reports = [result]
    begin = plan.begin
    if options.contiguity and not budget.exhausted:
        joined = build_contiguity(plan.orders)
        second = solver.solve(joined, budget, SolverOptions(rel_gap=budget.gap or options.routing_gap))
        reports.append(second)
        if second.has_solution:
            begin = [joined.b[k].value for k in joined.K]
            metrics["joined"] = sum(round(g.value) for g in joined.g.values())
            metrics["taccl_cost_s"] = joined.T.value * float(routing.unit_s)
    schedule = _schedule(instance, plan, begin, columns)
    return Outcome(Status.FEASIBLE, schedule, reports=tuple(reports), iterations=len(reports), metrics=metrics, **base)


def _in_units(routing: Routing) -> Routing:
    """Count times in what the quickest send takes.

    Raises
    ------
    Unsupported
        If the slowest takes so much longer that a solver could not tell whether a send is made.
    """
    links = [routing.topology.links[edge.links[0]] for edge in routing.edges]
    times = [link.latency_s + chunk.bytes / link.bandwidth_Bps for chunk in routing.chunks for link in links]
    if max(times) > WIDEST * min(times):
        factor = f"{float(max(times) / min(times)):.2g}"
        raise Unsupported(
            f"sends differ in time by a factor of {factor}; the integer program holds for up to {WIDEST:,}"
        )
    return replace(routing, unit_s=min(times))


def _schedule(instance: Instance, plan: Plan, begin: list[float], columns: Any) -> StepSchedule:
    """Make steps of the beginnings; a send comes after the one that brings its chunk, however times are rounded."""
    step: dict[int, int] = {}
    times = {value: index for index, value in enumerate(sorted({round(value, 12) for value in begin}))}
    for k in plan.by_time:
        before = plan.orders.after[k]
        step[k] = max(times[round(begin[k], 12)], -1 if before is None else step[before] + 1)
    rows = [(step[k], chunk, plan.edges[edge]) for k, (chunk, edge) in enumerate(plan.sends)]
    return step_schedule(instance.sha256, columns, rows)


METHOD = Method(
    name="taccl",
    kind=Kind.HEURISTIC,
    summary="routing as an integer program, then ordering and contiguity, guided by a sketch",
    paper="Shah et al., TACCL: Guiding Collective Algorithm Synthesis using Communication Sketches, NSDI 2023",
    answer_type=StepSchedule,
    options=Options,
    run=run,
    supports=unfit,
)
