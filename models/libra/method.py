"""LIBRA methods with their options, and the instances that these produce. None imports Pyomo."""

from dataclasses import replace
from functools import partial
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from ...core.answers import BandwidthPlan
from ...core.budget import Budget
from ...core.design import Design, Objective, PartialUse, parse_constraints
from ...core.errors import InputError, Refusal
from ...core.fabric import Fabric, network_price
from ...core.fields import Money, Rate, Strict
from ...core.formulation import Formulation
from ...core.instance import Instance
from ...core.method import Kind, Method, Metric
from ...core.network_views import NetworkView
from ...core.outcome import Outcome, Status
from ...core.solver import Solver
from ...core.workload import TrainingLoop
from .problem import pose_problem

PAPER = "dissertation behind ASTRA-sim 2.0, chapter 4 (LIBRA)"

_NONE = "none"


def _lines(value: object) -> object:
    return [value] if isinstance(value, str) else value


class DesignOptions(Strict):
    """Options of the design; each replaces the instance's own value."""

    objective: Objective | None = Field(None, description="perf (iteration time) or perf-per-cost (time times cost).")
    total_bandwidth: Rate | Literal["none"] | None = None
    """Bandwidth per NPU over all dimensions, used exactly; 'none' drops the instance's."""
    max_total_bandwidth: Rate | Literal["none"] | None = None
    """The same as an upper limit; replaces an exact total."""
    cost_budget: Money | Literal["none"] | None = None
    """Upper limit on the cost of the network (iso-cost: with total_bandwidth=none)."""
    constraints: Annotated[list[str] | None, BeforeValidator(_lines)] = None
    """Linear constraints such as 'B1 >= B2; B3 <= 50 GB/s'; replace the instance's."""
    partial_use: PartialUse | None = None
    """Share that a group can use of an FC dimension of which it spans a part: all of the bandwidth, or its direct links
    alone."""
    loop: TrainingLoop | None = Field(None, description="Training loop of all workloads: no-overlap or tp-dp-overlap.")


class LibraOptions(DesignOptions):
    """Options of ``libra``."""

    gap: Annotated[float, Field(ge=1e-9, le=0.1)] | None = None
    """Relative gap to certify: 1e-7 for perf and 1e-6 for perf-per-cost unless given."""
    algorithm: Literal["auto", "outer-approximation", "direct"] = "auto"
    """outer-approximation solves linear programs; direct passes the bilinear model to the solver; auto does so where
    the solver supports it."""


class CodesignOptions(LibraOptions):
    """Options of ``libra-codesign``."""

    tensor_parallel: list[Annotated[int, Field(ge=1, le=10**9)]] | None = None
    """TP degrees to try, such as [8,16,32]; by default every power of two that fits."""


def pose(instance: Instance, options: DesignOptions) -> Instance:
    """Return the instance with the problem that the options state."""
    if options.total_bandwidth is not None and options.max_total_bandwidth not in (None, _NONE):
        raise InputError("give total_bandwidth (exactly) or max_total_bandwidth (at most), not both", source="-O")
    for text in options.constraints or ():
        try:
            parse_constraints(text, len(instance.fabric.dimensions))
        except InputError as error:
            raise error.at(source="-O constraints") from None
    settings = {
        "objective": options.objective,
        "total_Bps": options.total_bandwidth,
        "max_total_Bps": options.max_total_bandwidth,
        "cost_budget_usd": options.cost_budget,
        "constraints": None if options.constraints is None else tuple(options.constraints),
        "partial_use": options.partial_use,
    }
    changes: dict[str, Any] = {
        name: None if value == _NONE else value for name, value in settings.items() if value is not None
    }
    if options.total_bandwidth is not None:
        changes["max_total_Bps"] = None
    elif changes.get("max_total_Bps") is not None:
        changes["total_Bps"] = None
    design = instance.design or Design()
    variant = instance.with_changes(design=replace(design, **changes))
    if options.loop is None:
        return variant
    return variant.with_changes(
        workloads=tuple(replace(w, loop=options.loop) for w in variant.workloads),
        transformers=tuple(replace(t, loop=options.loop) for t in variant.transformers),
    )


def supports(instance: Instance) -> Refusal | None:
    """Refuse all but fabrics with a workload, whose bandwidths can be chosen; return the reason or None."""
    if not isinstance(instance.network, Fabric):
        return Refusal("network", "it designs multi-dimensional networks such as RI(4)_SW(32), not explicit graphs")
    if not instance.workloads and not instance.transformers:
        return Refusal("workload", "the instance has no workload to design a network for")
    return None


def codesign_supports(instance: Instance) -> Refusal | None:
    """Refuse what LIBRA does not support, and all but transformers, which can be parallelized anew."""
    if (reason := supports(instance)) is not None:
        return reason
    if not instance.transformers or instance.workloads:
        return Refusal(
            "workload", "the parallelization can be chosen only if every workload is described as a transformer"
        )
    return None


def objective_unit(instance: Instance) -> str:
    """Return seconds, or seconds times dollars, as the unit."""
    perf_per_cost = instance.design is not None and instance.design.objective is Objective.PERF_PER_COST
    return "s USD" if perf_per_cost else "s"


def split_equally(instance: Instance, solver: Solver, budget: Budget, options: DesignOptions) -> Outcome:
    """Compute EqualBW, equal bandwidth in every dimension (section 4.5.2); infeasible if it breaks a constraint."""
    problem = pose_problem(instance)
    prices = None if instance.cost_model is None else network_price(instance.fabric, instance.cost_model)
    equal = (instance.design or Design()).equal_bandwidth_Bps(problem.dimensions, prices)
    if equal is None:
        raise InputError("EqualBW needs a total bandwidth or a cost budget", place="design")
    for constraint in problem.constraints:
        if constraint.comparison.excess(equal * sum(constraint.coefficients) - constraint.limit) > 0:
            rate = f"{float(equal) / 1e9:.6g} GB/s"
            return Outcome(Status.INFEASIBLE, message=f"{rate} in every dimension does not meet {constraint.label!r}")
    plan = (float(equal),) * problem.dimensions
    return Outcome(Status.FEASIBLE, BandwidthPlan(plan), problem.value(plan))


_method = partial(
    Method,
    paper=PAPER,
    answer_type=BandwidthPlan,
    objective_unit=objective_unit,
    networks=NetworkView.FABRIC,
    pose=pose,
)

LIBRA = _method(
    name="libra",
    kind=Kind.EXACT,
    summary="bandwidth per dimension for the best iteration time, or time times cost",
    options=LibraOptions,
    solve=f"{__package__}.solve:run",
    supports=supports,
)

LIBRA_EQUAL = _method(
    name="libra-equal",
    kind=Kind.HEURISTIC,
    summary="EqualBW, the same bandwidth in every dimension: the baseline",
    options=DesignOptions,
    solve=split_equally,
    supports=supports,
    needs_solver=False,
)

LIBRA_CODESIGN = _method(
    name="libra-codesign",
    kind=Kind.EXACT,
    summary="TP and DP degree of a transformer together with the bandwidth per dimension",
    options=CodesignOptions,
    solve=f"{__package__}.solve:run_codesign",
    supports=codesign_supports,
    metrics={
        "strategies": Metric("every strategy that was tried, with its status, objective, bound and bandwidths"),
        "tensor_parallel": Metric("degree of tensor parallelism of the best one"),
        "data_parallel": Metric("degree of data parallelism of the best one"),
    },
)

ALLOCATION = Formulation(
    "libra/allocation",
    summary="bandwidths of all dimensions, with one product of a bandwidth and its inverse each",
    paper=PAPER,
    equations="sections 4.4.2 to 4.4.5",
    index=f"{__package__}.problem:pose_problem",
    build=f"{__package__}.formulation:build",
    extract=f"{__package__}.formulation:plan_of",
    labels=lambda problem: {"c": lambda number: problem.constraints[number - 1].label},
    value=f"{__package__}.problem:in_units",
    needs=("nonconvex-quadratic", "quadratic-constraints"),
    options=DesignOptions,
    supports=supports,
    networks=NetworkView.FABRIC,
    pose=pose,
    objective_unit=objective_unit,
    agrees_with="libra",
    rel_gap=1e-8,
)
