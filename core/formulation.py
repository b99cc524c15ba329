"""Contract of a formulation: a declared optimization model.

It can be listed, built, written to a file, and solved by any solver with the capabilities that it needs.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import reduce, wraps
from importlib import import_module
from io import StringIO
from itertools import islice
from logging import WARNING, getLogger
from math import inf
from operator import or_
from typing import Any

from pydantic import BaseModel

from .answers import Answer, BoundOnly, is_same
from .bounds import SolverBound
from .budget import Budget
from .errors import CwbError, InputError, Refusal, Unsupported, one_of, show_value
from .fields import Strict
from .instance import Instance
from .network_views import InstanceSupport, NetworkView, links_of, with_refusals
from .outcome import NO_ANSWER, NO_TIME, Alternative, Outcome, Status
from .solver import Capability, Solver, SolverOptions, SolverResult, Termination, as_pooling_solver

_Function = Callable[..., Any]

#: What a formulation may need of a solver, by the words that it is declared with.
NEEDS = {
    "linear": Capability.LP,
    "integers": Capability.MIP,
    "convex-quadratic": Capability.CONVEX_QP,
    "nonconvex-quadratic": Capability.NONCONVEX_QP,
    "quadratic-constraints": Capability.QUADRATIC_CONSTRAINTS,
}

#: So many solutions of a model are looked at, at most, for one answer that differs from those before.
_SOLUTIONS_PER_ANSWER = 20

#: What Pyomo says of a component whose name is an attribute of every model.
_RESERVED = re.compile(r"name of a reserved attribute:\s*(\S+)")

#: Why a solve without a point stopped, as the status of a run.
_STATUS = {
    Termination.INFEASIBLE: Status.INFEASIBLE,
    Termination.UNBOUNDED: Status.UNBOUNDED,
    Termination.NUMERICAL: Status.ERROR,
    Termination.ERROR: Status.ERROR,
}


class NoOptions(Strict):
    """Empty options of a formulation or method."""


class Formulation(InstanceSupport):
    """Declared model: index sets, parameters, algebra, and extraction of an answer from its solution.

    Parameters
    ----------
    name : str
        Name ``family/model``, such as ``mtree/selection``.
    index : callable or str, optional
        ``index(instance, options)``, by default the instance itself: the sets and parameters of the model, typed,
        without a variable. Here and below a string is the place of a function, ``"package.module:function"``,
        imported when it is called.
    build : callable or str
        ``build(index) -> pyomo.environ.ConcreteModel``, with one function per constraint.
    extract : callable or str, optional
        ``extract(model, index) -> Answer or None`` from a solved model; without it the model only bounds the objective.
    needs : iterable of str
        Capabilities that a solver must have, of :data:`NEEDS`.
    supports, networks, pose, objective_unit, restricted_to
        Same meaning as in :class:`~cwb.core.method.Method`.
    value : callable or str, optional
        ``value(index, objective) -> float or None``: the bound that the model's objective gives in the unit of the
        run, such as seconds from a rate, by default the objective; None if it bounds nothing.
    agrees_with : str
        Method whose faster algorithm has the same optimum; empty if there is none.
    bounds : bool, callable or str
        If the model's bound, and its infeasibility, hold for every answer to the instance, or for those that
        ``restricted_to`` names. Otherwise the model seeks the best answer of a kind and proves nothing about
        others. A function ``bounds(index) -> bool`` if this depends on the index.
    dual : bool
        If the model is a dual: its solutions bound the objective, not the solver's bound on better ones.
    rel_gap : float
        Relative gap at which a search stops unless the run sets another.
    explains : iterable of str
        Methods that have no answer if the model has no solution; by default the one that it agrees with.
    labels : callable or str, optional
        ``labels(index)`` returns names for the indices of constraints, one function per argument of their rules:
        with ``{"e": ...}`` a row of link 3 is shown as ``e=3 (a->b)``.
    start : callable or str, optional
        ``start(model, index, answer) -> str`` sets values of variables to an answer for the search to start from, and
        returns what does not fit, empty if the answer does. Values that are missing are left to the solver.
    """

    def __init__(
        self,
        name: str,
        *,
        index: Callable[[Instance, Any], Any] | str | None = None,
        build: Callable[[Any], Any] | str,
        extract: Callable[[Any, Any], Answer | None] | str | None = None,
        needs: Iterable[str] = ("linear",),
        summary: str = "",
        paper: str = "",
        equations: str = "",
        options: type[BaseModel] = NoOptions,
        supports: Callable[[Instance], Refusal | None] = lambda instance: None,
        networks: NetworkView = NetworkView.LINKS,
        pose: Callable[[Instance, Any], Instance] = lambda instance, options: instance,
        objective_unit: Callable[[Instance], str] = lambda instance: "s",
        value: Callable[[Any, float], float | None] | str | None = None,
        agrees_with: str = "",
        bounds: bool | Callable[[Any], bool] | str = True,
        dual: bool = False,
        restricted_to: Callable[[Any], str] = lambda options: "",
        rel_gap: float = 1e-6,
        explains: Iterable[str] = (),
        labels: Callable[[Any], Mapping[str, Callable[[Any], str]]] | str = lambda index: {},
        start: Callable[[Any, Any, Answer], str] | str | None = None,
    ) -> None:
        self._declaration = {key: value for key, value in locals().items() if key not in ("self", "name", "explains")}
        if not isinstance(name, str) or not name.strip():
            raise InputError(f"{show_value(name)} is no name of a formulation; expected one such as 'mine/model'")
        self.name = name
        self.needs = frozenset(needs) | {"linear"}
        if unknown := self.needs - NEEDS.keys():
            raise ValueError(f"formulation {name!r} needs {sorted(unknown)}; known are {sorted(NEEDS)}")
        self.summary, self.paper, self.equations = summary, paper, equations
        self.options, self.pose = options, self._wrap_errors(pose)
        self.supports, self.networks = with_refusals(self._wrap_errors(supports)), networks
        self.objective_unit, self.agrees_with, self.rel_gap = objective_unit, agrees_with, rel_gap
        self.bounds, self.dual, self.restricted_to = bounds is not False, dual, restricted_to
        self._bounds = bounds
        self._index, self._build, self._extract, self._value = index, build, extract, value
        self._changes: tuple[_Function, ...] = ()
        self.explains = tuple(explains) or ((agrees_with,) if agrees_with else ())
        self._labels, self._start = labels, start

    def __repr__(self) -> str:
        return f"Formulation({self.name!r})"

    @property
    def capabilities(self) -> Capability:
        """Capabilities that a solver must have."""
        return reduce(or_, (NEEDS[need] for need in self.needs))

    @property
    def model_class(self) -> str:
        """Class of the model: LP, MILP, QP, MIQP, QCP or MIQCP."""
        mixed = "MI" if "integers" in self.needs else ""
        if "quadratic-constraints" in self.needs:
            return f"{mixed}QCP"
        if self.needs & {"convex-quadratic", "nonconvex-quadratic"}:
            return f"{mixed}QP"
        return f"{mixed}LP"

    @property
    def places(self) -> dict[str, str]:
        """Places of its functions, ``package.module:function``, by purpose."""
        parts: dict[str, _Function | str | None] = {
            "index": self._index,
            "build": self._build,
            "extract": self._extract,
            "value": self._value,
            "start": self._start,
        }
        return {
            part: place if isinstance(place, str) else f"{place.__module__}:{place.__qualname__}"
            for part, place in parts.items()
            if place is not None
        }

    @property
    def answers(self) -> bool:
        """True if an answer can be extracted from the solved model; otherwise it has only a bound."""
        return self._extract is not None

    def derive(
        self,
        name: str,
        *,
        add: _Function | Iterable[_Function] = (),
        drop: str | Iterable[str] = (),
        replace: Mapping[str, _Function] | None = None,
        objective: _Function | None = None,
        **declaration: Any,
    ) -> "Formulation":
        """Return a variant of the model under another name, with the same options and index.

        If constraints are dropped, the optimum bounds the same answers as before, and is only a bound: a solution may
        violate what was dropped. If some are added or replaced, it bounds the answers that these allow. With another
        objective it bounds nothing.

        Parameters
        ----------
        name : str
            Name ``family/model`` of the variant, such as ``mine/relaxed``.
        add : callable or iterable of callable
            ``add(model, index)`` declares variables and constraints in the model.
        drop : str or iterable of str
            Names of constraints to remove.
        replace : mapping of str to callable
            ``function(model, index)`` declares the constraint of this name anew.
        objective : callable, optional
            ``objective(model, index)`` declares an objective instead of the model's.
        **declaration
            Arguments of :class:`Formulation` to change, such as ``extract=base.extract`` for the answers of a variant
            with fewer constraints, or ``bounds=True`` if additions exclude no answer.

        Returns
        -------
        Formulation
            Known by its name at the top level of a plug-in file, or after :func:`cwb.register`.
        """
        additions = (add,) if callable(add) else tuple(add)
        drops, replacements = (drop,) if isinstance(drop, str) else tuple(drop), dict(replace or {})
        for function in (*additions, *replacements.values(), *([objective] if objective is not None else [])):
            if not callable(function):
                raise InputError(f"{show_value(function)} is no function of model and index", source=name)
        new = [*(getattr(function, "__name__", "an addition") for function in additions), *replacements]
        parts = {"without ": drops, "with ": new, "with the objective ": [objective.__name__] if objective else ()}
        changes = ", ".join(f"{word}{' and '.join(names)}" for word, names in parts.items() if names)

        def restricted_to(options: Any) -> str:
            return "; ".join(filter(None, (self.restricted_to(options), f"{' and '.join(new)} of {name}")))

        arguments: dict[str, Any] = {
            "extract": None if drops and self.bounds else self._extract,
            "summary": f"{self.name} {changes}",
            "equations": ", ".join(filter(None, (self.equations, changes))),
            "agrees_with": "",
            "bounds": False if objective else self._bounds,
            "restricted_to": restricted_to if new and "bounds" not in declaration else self.restricted_to,
        }
        variant = Formulation(name, **(self._declaration | arguments | declaration))
        functions = [variant._wrap_errors(function) for function in additions]
        again = {constraint: variant._wrap_errors(function) for constraint, function in replacements.items()}
        aim = variant._wrap_errors(objective) if objective else None

        def change(model: Any, index: Any) -> None:
            for constraint in (*drops, *again):
                variant._drop_constraint(model, constraint)
            for constraint, function in again.items():
                function(model, index)
                if model.component(constraint) is None:
                    raise InputError(f"its replacement declares no constraint {constraint!r}", source=name)
            for function in functions:
                function(model, index)
            if aim is not None:
                _replace_objective(model, index, aim, name)

        variant._changes = (*self._changes, change)
        return variant

    def _drop_constraint(self, model: Any, constraint: str) -> None:
        from pyomo.environ import Constraint

        names = [component.local_name for component in model.component_objects(Constraint)]
        if constraint not in names:
            text = f"the model of this instance has no constraint {constraint!r}{one_of(constraint, names)}"
            raise InputError(text, source=self.name)
        model.del_component(constraint)

    def index(self, instance: Instance, options: Any = None) -> Any:
        """Return the sets and parameters of the model of a posed instance, by default with default options."""
        if self._index is None:
            return instance
        return self._resolve_function(self._index)(instance, self.options() if options is None else options)

    def build(self, problem: Any, **options: Any) -> Any:
        """Build the Pyomo model of an instance, which is posed and indexed first, or of a result of :meth:`index`."""
        if isinstance(problem, Instance):
            instance, settings = self.validate_and_pose(problem, options)
            problem = self.index(instance, settings)
        try:
            return _build_quietly((self._resolve_function(self._build), *self._changes), problem)
        except (ValueError, InputError) as error:
            if (match := _RESERVED.search(getattr(error, "problem", str(error)))) is None:
                raise
            raise InputError(
                f"the model has a component {match[1]!r}, a name that Pyomo reserves; expected another name",
                source=self.name,
            ) from error

    def extract(self, model: Any, index: Any) -> Answer | None:
        """Extract the answer from a solved model; None if the model has only a bound."""
        return None if self._extract is None else self._resolve_function(self._extract)(model, index)

    @property
    def takes_start(self) -> bool:
        """True if a search can start from an answer."""
        return self._start is not None

    def start(self, model: Any, index: Any, answer: Answer) -> str:
        """Set values of the model's variables to an answer; return what does not fit."""
        assert self._start is not None  # noqa: S101 (asked before)
        misfit: str = self._resolve_function(self._start)(model, index, answer)
        return misfit

    def _start_search(self, model: Any, index: Any, instance: Instance, solver: Solver, budget: Budget) -> str:
        """Start from the budget's answer; return ``taken`` or what does not fit, empty without an answer."""
        if budget.start is None:
            return ""
        start, misfit = budget.start, ""
        if Capability.MIP_START not in solver.capabilities:
            misfit = f"{solver.name} takes none"
        elif links_of(start.instance.network).link_ends != links_of(instance.network).link_ends:
            misfit = "it is one on other links"
        misfit = misfit or self.start(model, index, start.answer)
        budget.progress(f"the start is left out: {misfit}" if misfit else "the search begins with the start")
        return misfit or "taken"

    def value(self, index: Any, objective: float) -> float | None:
        """Return the bound that the model's objective gives, in the unit of the run."""
        value = objective if self._value is None else self._resolve_function(self._value)(index, objective)
        return None if value is None else float(value)

    def labels(self, index: Any) -> Mapping[str, Callable[[Any], str]]:
        """Return functions that name the indices of constraints, for each argument of their rules."""
        labels: Mapping[str, Callable[[Any], str]] = self._resolve_function(self._labels)(index)
        return labels

    def is_bound(self, index: Any) -> bool:
        """Check if the optimum of the model bounds every answer."""
        return self._bounds if isinstance(self._bounds, bool) else bool(self._resolve_function(self._bounds)(index))

    def _resolve_function(self, place: _Function | str) -> _Function:
        return self._wrap_errors(resolve_function(place))

    def _wrap_errors(self, function: _Function) -> _Function:
        """Wrap a function from outside the package so that its errors become one line with its name."""
        if getattr(function, "__module__", "").startswith("cwb."):
            return function

        @wraps(function)
        def wrapper(*arguments: Any) -> Any:
            try:
                return function(*arguments)
            except CwbError:
                raise
            except (Exception, SystemExit) as error:
                name = getattr(function, "__name__", "its function")
                raise InputError(f"{name}: {type(error).__name__}: {error}", source=self.name) from error

        return wrapper

    def solve(self, instance: Instance, solver: Solver, budget: Budget, options: Any) -> Outcome:
        """Build and solve the model of a posed instance as declared, and extract the answer (``Method.solve``).

        The bound is attested by the solver. The verifier computes the objective of an answer.
        """
        if missing := self.capabilities & ~solver.capabilities:
            names = ", ".join(need for need, can in NEEDS.items() if can & missing)
            raise Unsupported(f"{self.name} needs a solver for {names}, and {solver.name} is none")
        if budget.pool > 1:
            self._require_choices(solver)
        with budget.clock.phase("build"):
            index = self.index(instance, options)
            model = self.build(index)
            start = self._start_search(model, index, instance, solver, budget)
        gap = self.rel_gap if budget.gap is None else budget.gap
        if budget.pool > 1:
            results = as_pooling_solver(solver).pool(model, budget, SolverOptions(rel_gap=gap), budget.pool)
            return self._pool_outcome(results, model, index, budget.pool)
        result = solver.solve(model, budget, SolverOptions(rel_gap=gap, use_start=start == "taken"))
        with budget.clock.phase("extract"):
            outcome = self._outcome(model, index, result)
        return replace(outcome, metrics={**outcome.metrics, "start": start}) if start else outcome

    def _require_choices(self, solver: Solver) -> None:
        """Reject a search for several solutions if they cannot be distinguished or are no answers."""
        as_pooling_solver(solver)
        if not self.answers:
            raise Unsupported(f"{self.name} gives only a bound: there are no answers for a pool")
        if "integers" not in self.needs:
            raise Unsupported(f"{self.name} has no integer variables to distinguish the solutions of a pool")

    def _pool_outcome(self, results: Iterable[SolverResult], model: Any, index: Any, count: int) -> Outcome:
        """Return the best outcome with up to ``count`` different answers, each proved next best."""
        outcomes: list[Outcome] = []
        pool: list[Alternative] = []
        why = ""
        for result in islice(results, _SOLUTIONS_PER_ANSWER * count):
            is_next = result.termination is Termination.OPTIMAL
            if outcomes and not is_next:
                why = "" if result.termination is Termination.INFEASIBLE else result.message
                break
            outcome = self._outcome(model, index, result)
            outcomes.append(outcome)
            answer = outcome.answer
            if answer is not None and not any(is_same(answer, other.answer) for other in pool):
                pool.append(Alternative(answer, result.objective))
            if not is_next:
                why = result.message or result.termination.value
            if why or len(pool) == count:
                break
        message = outcomes[0].message
        if pool and len(pool) < count:
            reason = why or f"no more among the {len(outcomes):,} solutions that differ in binary variables"
            message = f"{len(pool)} of {count} answers: {reason}"
        return replace(outcomes[0], pool=tuple(pool), message=message)

    def _outcome(self, model: Any, index: Any, result: SolverResult) -> Outcome:
        proves = self.is_bound(index)
        proved = result.objective if self.dual else result.bound
        bound = None if proved is None or not proves else self.value(index, proved)
        answer = self.extract(model, index) if result.has_solution else None
        optimal = result.termination is Termination.OPTIMAL and bound is not None
        objective, message = None, result.message or result.termination.value
        if not self.answers and optimal:
            answer, objective = BoundOnly(), bound
        status = Status.OPTIMAL if optimal else Status.FEASIBLE
        if answer is None:
            status = _STATUS.get(result.termination, Status.LIMIT)
        if status is Status.INFEASIBLE and not proves:
            status, message = Status.LIMIT, "the model has no solution, which proves nothing of the instance"
        if result.has_solution:
            optimum = result.termination is Termination.OPTIMAL
            message = NO_ANSWER if optimum else f"{message}; the model's best solution is no answer to the instance"
        if bound == inf:  # such as the time at a rate of 0
            status, answer, objective, bound, message = Status.INFEASIBLE, None, None, None, NO_TIME
        return Outcome(
            status,
            answer,
            objective=objective,
            bound=bound,
            certificate=None if bound is None else SolverBound(result.solver, result.version),
            message="" if answer is not None else message,
            reports=(result,),
            size=result.size,
            iterations=result.iterations or 0,
            metrics={} if result.objective is None else {"model_objective": result.objective},
        )


def resolve_function(place: Callable[..., Any] | str) -> Callable[..., Any]:
    """Return the function at a place, imported only now; or the function itself."""
    if not isinstance(place, str):
        return place
    module, _, name = place.partition(":")
    function: Callable[..., Any] = getattr(import_module(module), name)
    return function


def _replace_objective(model: Any, index: Any, objective: _Function, name: str) -> None:
    from pyomo.environ import Objective

    for component in list(model.component_objects(Objective, active=True)):
        model.del_component(component)
    objective(model, index)
    if (count := len(list(model.component_data_objects(Objective, active=True)))) != 1:
        raise InputError(f"{objective.__name__} declares {count} objectives; expected one", source=name)


def _build_quietly(functions: Sequence[_Function], index: Any) -> Any:
    """Build a model and change it; Pyomo's log is dropped if an error is raised, and otherwise passed on."""
    from pyomo.common.log import LoggingIntercept

    words = StringIO()
    with LoggingIntercept(words, "pyomo", WARNING):
        model = functions[0](index)
        for change in functions[1:]:
            change(model, index)
    if log := words.getvalue().strip():
        getLogger("pyomo").warning(log)
    return model
