"""Reasons for infeasibility: conflicting constraints of a declared model."""

from ..core.budget import Budget, Progress, ignore, limited_by
from ..core.errors import InputError, OutOfTime, SolverUnavailable, Unsupported
from ..core.explanation import Explanation
from ..core.formulation import Formulation
from ..core.instance import Instance
from ..core.solver import SolverOptions
from ..harness import registry
from ..harness.clock import WallClock
from ..harness.interrupt import RunInterrupted, time_limited
from ..harness.request import Request
from ..solvers.base import Adapter

DEFAULT_LIMIT_S = 60.0  #: Seconds for the search where the request has no limit.


def explain(instance: Instance, request: Request, progress: Progress = ignore) -> Explanation:
    """Return the reason why the declared model of a method has no solution.

    The explanation has no conditions if no declared model of the method is infeasible; its message then states what is
    known. Options of the request that a formulation does not have are ignored.
    """
    adapter = registry.solver(request.solver)
    if not (installation := adapter.installation()).ok:
        raise SolverUnavailable(installation.message)
    limit_s = DEFAULT_LIMIT_S if request.time_limit_s is None else request.time_limit_s
    budget = WallClock(limit_s).budget(threads=request.threads, seed=request.seed, progress=progress)
    attempts: list[Explanation] = []
    for formulation in explaining_formulations(request.model):
        try:
            with time_limited(budget), limited_by(budget):
                attempts.append(_explain_model(formulation, instance, request, adapter, budget))
        except RunInterrupted as error:
            message = f"{str(error) or budget.why_exhausted}, and the search for clashing conditions was broken off"
            return Explanation(formulation.name, adapter.name, message=message)
        if attempts[-1].conditions:
            return attempts[-1]
    if len(attempts) == 1:
        return attempts[0]
    message = (
        "; ".join(f"{one.model}: {one.message}" for one in attempts) or "it has no declared model that could explain it"
    )
    return Explanation(request.model, adapter.name, message=message)


def explaining_formulations(model: str) -> list[Formulation]:
    """Return the formulations whose infeasibility explains why a method has no answer."""
    if model in registry.formulation_names():
        return [registry.formulation(model)]
    registry.get(model)  # an unknown name is rejected
    every = map(registry.formulation, registry.formulation_names())
    return [formulation for formulation in every if model in formulation.explains]


def _explain_model(
    formulation: Formulation, instance: Instance, request: Request, adapter: Adapter, budget: Budget
) -> Explanation:
    from ..solvers.conflict import conditions_of, false_conditions, find_conflict
    from ..solvers.matrix import compile_matrix

    def without(message: str) -> Explanation:
        return Explanation(formulation.name, adapter.name, message=message)

    shared = {name: value for name, value in request.options.items() if name in formulation.options.model_fields}
    try:
        index = formulation.index(*formulation.validate_and_pose(instance, shared))
        model = formulation.build(index)
        matrix = compile_matrix(model)
        labels = formulation.labels(index)
        if matrix.is_false_for_good and (clash := false_conditions(model, labels)):
            return Explanation(formulation.name, adapter.name, clash, irreducible=True, by="no variable is left in it")
        options = adapter.with_own(SolverOptions(), request.solver_options)
        conflict = find_conflict(adapter, matrix, budget, options)
    except (InputError, OutOfTime, Unsupported) as error:
        return without(str(error))
    if conflict is None:
        undecided = budget.is_exhausted or budget.clock.remaining_s() == 0
        return without("the time was over before it was solved" if undecided else "it has a solution")
    return Explanation(
        formulation.name,
        adapter.name,
        conditions_of(matrix, conflict.parts, labels),
        conflict.whole,
        conflict.irreducible,
        conflict.by,
        conflict.solves,
    )
