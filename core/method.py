"""The contract of a method: what it solves, how it is called, and what it gives back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from fractions import Fraction
from importlib import import_module
from typing import TYPE_CHECKING, Any

from .answers import Answer, BoundOnly
from .bounds import Certificate
from .budget import Budget
from .described import Metric
from .instance import Instance
from .solver import ModelSize, Solver, SolverResult

if TYPE_CHECKING:
    from pydantic import BaseModel

    from .formulation import Formulation


class Kind(Enum):
    """What a method's objective is worth."""

    EXACT = "exact"
    RELAXATION = "relaxation"
    HEURISTIC = "heuristic"


class Status(Enum):
    """How a run ended."""

    OPTIMAL = "optimal"
    FEASIBLE = "feasible"
    INFEASIBLE = "infeasible"
    UNBOUNDED = "unbounded"
    LIMIT = "limit"
    UNSUPPORTED = "unsupported"
    ERROR = "error"


@dataclass(frozen=True)
class Alternative:
    """One of several solutions of a declared model.

    Parameters
    ----------
    answer : Answer
        What is read out of the solved model.
    model_objective : float or None
        The model's own objective.
    """

    answer: Answer
    model_objective: float | None


@dataclass(frozen=True)
class Outcome:
    """What a method claims; the verifier recomputes the objective and checks the certificate.

    Parameters
    ----------
    status : Status
        ``optimal`` only with an answer and a bound that meet within the method's stated gap.
    answer : Answer or None
        The best answer found.
    objective, bound : float or None
        Claimed value of the answer, and proved bound on the best possible one.
    certificate : Certificate or None
        What proves the bound.
    message : str
        Why there is no answer, or what the user should know about it.
    reports : tuple of SolverResult
        Every solve, in order.
    size : ModelSize
        The largest model that was passed to a solver.
    iterations : int
        Steps of the method's own algorithm.
    metrics : mapping of str to object
        The method's own numbers, of those that :attr:`Method.metrics` declares; never a score.
    pool : tuple of Alternative
        The best solutions, where more than one was asked for; the first is :attr:`answer`.
    """

    status: Status
    answer: Answer | None = None
    objective: float | None = None
    bound: float | None = None
    certificate: Certificate | None = None
    message: str = ""
    reports: tuple[SolverResult, ...] = ()
    size: ModelSize = field(default_factory=ModelSize)
    iterations: int = 0
    metrics: Mapping[str, Any] = field(default_factory=dict)
    pool: tuple[Alternative, ...] = ()


def always(instance: Instance) -> str | None:
    """Support every instance."""
    del instance
    return None


def in_seconds(instance: Instance) -> str:
    """Measure an answer in seconds."""
    del instance
    return "s"


def as_it_is(instance: Instance, options: Any) -> Instance:
    """Leave the instance as it is."""
    del options
    return instance


def nothing_more(options: Any) -> str:
    """Ask nothing of answers beyond the instance."""
    del options
    return ""


@dataclass(frozen=True)
class Method:
    """A way to solve instances.

    Parameters
    ----------
    name : str
        Name on the command line.
    kind : Kind
        What its objective is worth.
    summary : str
        One line for ``cwb list models``.
    paper : str
        Where it comes from.
    answer_type : type
        Class of its answers.
    options : type of pydantic.BaseModel
        Its options, each field with a description.
    solve : callable or str
        ``solve(instance, solver, budget, options) -> Outcome``, or where it is, ``"package.module:function"``: imported
        when the method runs, so that listing methods imports neither Pyomo nor compiled kernels.
    supports : callable
        ``supports(instance) -> str | None``: the reason why not.
    pose : callable
        ``pose(instance, options) -> Instance``: folds those options that state the problem (a budget, an objective)
        into the instance, so that the verifier sees the same problem as the method.
    restricted_to : callable
        ``restricted_to(options) -> str``: of an exact method, what options ask of the answers that its optimum is the
        best of, in words; empty where these are all answers to the posed instance.
    needs_solver : bool
        Whether it calls the solver that is passed to it.
    proved : callable or str, optional
        ``proved(instance, options) -> Fraction or None``, or where it is: the bound in seconds that the method proves of
        a posed instance, in exact arithmetic and without a search, for sensitivities; None where options ask for more.
    sense : str
        ``minimize`` or ``maximize``.
    metrics : mapping of str to Metric
        The metrics that its outcomes may have, beside those of the verifier
        (:data:`cwb.schedules.metrics.VERIFIED`).
    objective_unit : callable
        ``objective_unit(instance) -> str``.
    """

    name: str
    kind: Kind
    summary: str
    paper: str
    answer_type: type
    options: type[BaseModel]
    solve: Callable[[Instance, Solver, Budget, Any], Outcome] | str
    objective_unit: Callable[[Instance], str] = in_seconds
    supports: Callable[[Instance], str | None] = always
    pose: Callable[[Instance, Any], Instance] = as_it_is
    restricted_to: Callable[[Any], str] = nothing_more
    needs_solver: bool = True
    proved: Callable[[Instance, Any], Fraction | None] | str | None = None
    sense: str = "minimize"
    metrics: Mapping[str, Metric] = field(default_factory=dict)

    @classmethod
    def of(cls, formulation: Formulation, name: str = "", summary: str = "", kind: Kind | None = None) -> Method:
        """Method that solves a formulation as it is declared: no heuristic before it, no other algorithm in its place.

        Parameters
        ----------
        formulation : Formulation
            What is solved.
        name, summary : str
            Of the method; by default those of the formulation.
        kind : Kind, optional
            What its objective is worth; by default what the model's bound makes it.
        """
        if kind is None:
            kind = Kind.HEURISTIC if not formulation.bounds else Kind.EXACT if formulation.answers else Kind.RELAXATION
        return cls(
            name=name or formulation.name,
            kind=kind,
            summary=summary or formulation.summary,
            paper=formulation.paper,
            answer_type=object if formulation.answers else BoundOnly,
            options=formulation.options,
            solve=formulation.solve,
            supports=formulation.supports,
            pose=formulation.pose,
            restricted_to=formulation.restricted_to,
            objective_unit=formulation.objective_unit,
        )

    def run(self, instance: Instance, solver: Solver, budget: Budget, options: Any) -> Outcome:
        """Solve a posed instance.

        Parameters
        ----------
        instance : Instance
            As :attr:`pose` gives it.
        solver : Solver
            What solves the method's models.
        budget : Budget
            Limits, seed and clock of the run.
        options : pydantic.BaseModel
            Of the type :attr:`options`.

        Returns
        -------
        Outcome
        """
        outcome: Outcome = _called(self.solve)(instance, solver, budget, options)
        return outcome

    def proved_bound(self, instance: Instance, options: Any) -> Fraction | None:
        """The bound of a posed instance in exact arithmetic, where the method reports it without being run."""
        if self.proved is None:
            return None
        bound: Fraction | None = _called(self.proved)(instance, options)
        return bound


def _called(place: Callable[..., Any] | str) -> Callable[..., Any]:
    """The function, imported if its place is given."""
    if not isinstance(place, str):
        return place
    module, _, name = place.partition(":")
    function: Callable[..., Any] = getattr(import_module(module), name)
    return function
