"""Contract of a method: supported instances, call and result."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from fractions import Fraction
from typing import Any, NamedTuple, Self

from pydantic import BaseModel

from .answers import BoundOnly
from .budget import Budget
from .errors import Refusal
from .formulation import Formulation, resolve_function
from .instance import Instance
from .network_views import InstanceSupport, NetworkView, with_refusals
from .outcome import Outcome
from .solver import Solver


class Kind(Enum):
    """Meaning of a method's objective."""

    EXACT = "exact"
    RELAXATION = "relaxation"
    HEURISTIC = "heuristic"


class Metric(NamedTuple):
    """Number, list or text that records have."""

    meaning: str
    unit: str = ""  #: Empty for a count, a ratio or a text.


@dataclass(frozen=True)
class Method(InstanceSupport):
    """Way to solve instances."""

    name: str
    kind: Kind  #: Exact optimum, bound of a relaxation, or value of a heuristic.
    summary: str
    paper: str
    answer_type: type
    options: type[BaseModel]  #: Its options, each field with a description.
    #: ``solve(instance, solver, budget, options) -> Outcome``, or its place ``"package.module:function"``: imported
    #: when the method runs, so that listing methods imports neither Pyomo nor compiled kernels.
    solve: Callable[[Instance, Solver, Budget, Any], Outcome] | str
    #: ``objective_unit(instance) -> str``, the unit of its objective.
    objective_unit: Callable[[Instance], str] = lambda instance: "s"
    #: ``supports(instance) -> Refusal | None``: the reason against. A plain string becomes a refusal without a code.
    supports: Callable[[Instance], Refusal | None] = lambda instance: None
    #: Supported views of a network; an instance is converted to one of them if possible.
    networks: NetworkView = NetworkView.LINKS
    #: ``pose(instance, options) -> Instance``: folds options that state the problem (a budget, an objective) into the
    #: instance, so that the verifier sees the same problem as the method.
    pose: Callable[[Instance, Any], Instance] = lambda instance, options: instance
    #: ``restricted_to(options) -> str``: for an exact method, the restriction in words on the answers among which its
    #: optimum is the best; empty if these are all answers to the posed instance.
    restricted_to: Callable[[Any], str] = lambda options: ""
    needs_solver: bool = True  #: If it calls the solver that is passed to it.
    #: ``proved(instance, options) -> Fraction or None``, or its place: the bound in seconds that the method proves for
    #: a posed instance, in exact arithmetic and without a search, for sensitivities; None if options require more.
    proved: Callable[[Instance, Any], Fraction | None] | str | None = None
    sense: str = "minimize"  #: Direction of the objective, ``minimize`` or ``maximize``.
    #: Metrics that its outcomes may have, beside those of the verifier (``docs/metrics.md``).
    metrics: Mapping[str, Metric] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "supports", with_refusals(self.supports))

    @classmethod
    def of(cls, formulation: Formulation, name: str = "", summary: str = "", kind: Kind | None = None) -> Self:
        """Return a method that solves a formulation as declared, without heuristics or another algorithm.

        Name and summary are by default those of the formulation, the kind the one that follows from the model's bound.
        """
        if kind is None:
            kind = Kind.HEURISTIC if not formulation.bounds else Kind.EXACT if formulation.answers else Kind.RELAXATION
        same = ("paper", "options", "solve", "supports", "networks", "pose", "restricted_to", "objective_unit")
        return cls(
            name=name or formulation.name,
            kind=kind,
            summary=summary or formulation.summary,
            answer_type=object if formulation.answers else BoundOnly,
            **{field: getattr(formulation, field) for field in same},
        )

    @property
    def formulation(self) -> Formulation | None:
        """The formulation that it solves as declared; None for other methods."""
        owner = getattr(self.solve, "__self__", None)
        return owner if isinstance(owner, Formulation) else None

    def run(self, instance: Instance, solver: Solver, budget: Budget, options: Any) -> Outcome:
        """Solve a posed instance."""
        outcome: Outcome = resolve_function(self.solve)(instance, solver, budget, options)
        return outcome

    def proved_bound(self, instance: Instance, options: Any) -> Fraction | None:
        """Return the exact bound of a posed instance, if the method proves it without a run."""
        if self.proved is None:
            return None
        bound: Fraction | None = resolve_function(self.proved)(instance, options)
        return bound
