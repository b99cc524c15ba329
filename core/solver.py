"""The contract of a solver adapter: what it can do, what it is asked, and what it answers.

An adapter receives a Pyomo model and loads values into it; it decides nothing else. Why a solve stopped
(:class:`Termination`) and what it has found (:attr:`SolverResult.has_solution`) are two answers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import Enum, Flag, auto
from typing import Any, Protocol, runtime_checkable

from .budget import Budget
from .errors import Unsupported


class Capability(Flag):
    """What a solver can do; a model that needs more is rejected before anything is transferred."""

    LP = auto()
    MIP = auto()
    CONVEX_QP = auto()
    NONCONVEX_QP = auto()
    QUADRATIC_CONSTRAINTS = auto()
    MIP_START = auto()
    PROGRESS = auto()
    INTERRUPT = auto()
    DUALS = auto()
    RESOLVE = auto()
    POOL = auto()


class Termination(Enum):
    """Why a solve stopped."""

    OPTIMAL = "optimal"
    INFEASIBLE = "infeasible"
    UNBOUNDED = "unbounded"
    INFEASIBLE_OR_UNBOUNDED = "infeasible-or-unbounded"
    TIME_LIMIT = "time-limit"
    NODE_LIMIT = "node-limit"
    INTERRUPTED = "interrupted"
    NUMERICAL = "numerical"
    ERROR = "error"


@dataclass(frozen=True)
class Availability:
    """Whether a solver can be used, and if not, why; with the version that was found."""

    ok: bool
    message: str
    version: str | None = None


@dataclass(frozen=True)
class SolverOptions:
    """What a solve is asked for beside the model.

    Parameters
    ----------
    rel_gap : float
        Relative gap at which a MIP or nonconvex search stops.
    feasibility_tolerance : float
        Largest violation of a row, where the solver lets it be chosen.
    node_limit : int or None
        Nodes of a search; reproducible where a time limit is not.
    use_start : bool
        Whether the values that the model's variables have are given to the solver as a start.
    extra : mapping of str to object
        The solver's own options by their own names; an unknown one is an error.
    """

    rel_gap: float = 1e-6
    feasibility_tolerance: float = 1e-7
    node_limit: int | None = None
    use_start: bool = False
    extra: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class ModelSize:
    """Size of a compiled model."""

    variables: int = 0
    integers: int = 0
    constraints: int = 0
    nonzeros: int = 0


@dataclass(frozen=True)
class SolverResult:
    """What came out of one solve.

    Parameters
    ----------
    solver, version : str
        Who solved, exactly.
    termination : Termination
        Why it stopped.
    has_solution : bool
        Whether the model's variables now hold a feasible point.
    objective : float or None
        Value of that point.
    bound : float or None
        Proved bound on the optimum: from below when minimizing, from above when maximizing.
    nodes, iterations : int or None
        Work done, where the solver counts it.
    transfer_s, solve_s : float
        Seconds to hand the model over and to solve it, by the clock of the budget.
    size : ModelSize
        Size of what was passed on.
    message : str
        The solver's own words where they help.
    """

    solver: str
    version: str
    termination: Termination
    has_solution: bool
    objective: float | None = None
    bound: float | None = None
    nodes: int | None = None
    iterations: int | None = None
    transfer_s: float = 0.0
    solve_s: float = 0.0
    size: ModelSize = field(default_factory=ModelSize)
    message: str = ""

    @property
    def gap(self) -> float | None:
        """Relative gap ``|objective - bound| / |objective|``, computed here and not by the solver."""
        return relative_gap(self.objective, self.bound)

    def to_json(self) -> dict[str, Any]:
        """Plain data for a record."""
        return asdict(self) | {"termination": self.termination.value, "gap": self.gap}


def relative_gap(objective: float | None, bound: float | None) -> float | None:
    """``|objective - bound| / |objective|``; 0 when both are equal, None when either is missing."""
    if objective is None or bound is None:
        return None
    if objective == bound:
        return 0.0
    if objective == 0 or abs(objective) == float("inf") or abs(bound) == float("inf"):
        return None
    return abs(objective - bound) / abs(objective)


class Solver(Protocol):
    """A solver adapter."""

    @property
    def name(self) -> str:
        """Name on the command line."""
        ...

    @property
    def capabilities(self) -> Capability:
        """Everything the solver can do."""
        ...

    def installed(self) -> Availability:
        """Whether the solver's library can be imported; cheap."""
        ...

    def licensed(self) -> Availability:
        """Whether it may be used: tries its licence, where it needs one."""
        ...

    def solve(self, model: Any, budget: Budget, options: SolverOptions = ...) -> SolverResult:
        """Solve a Pyomo model and load the best point found into its variables.

        Raises
        ------
        SolverUnavailable
            If the solver or its licence is missing, or the licence is too small for the model.
        Unsupported
            If the model needs a capability that the solver does not have.
        InputError
            If an option of ``options.extra`` is unknown to the solver.
        """
        ...


@runtime_checkable
class ResolvingSolver(Solver, Protocol):
    """A solver that keeps a linear model between solves (:attr:`Capability.RESOLVE`)."""

    def compile(self, model: Any, budget: Budget, options: SolverOptions = ...) -> CompiledModel:
        """Hand a linear Pyomo model over once, to be changed and solved again, warm."""
        ...


@runtime_checkable
class PoolingSolver(Solver, Protocol):
    """A solver that finds more than one solution (:attr:`Capability.POOL`)."""

    def pool(self, model: Any, budget: Budget, options: SolverOptions, count: int) -> Iterator[SolverResult]:
        """Solutions that differ in a binary variable, the best first, each loaded into the model while it is the last.

        ``count`` is how many are likely to be taken.
        """
        ...


class CompiledModel(Protocol):
    """A linear model inside a solver; rows and columns are named by their Pyomo components."""

    @property
    def size(self) -> ModelSize:
        """Size as it is now."""
        ...

    def solve(self, budget: Budget) -> SolverResult:
        """Solve from the last basis and load the values into the Pyomo variables."""
        ...

    def add_constraint(self, constraint: Any) -> None:
        """Add a linear Pyomo constraint that was created after compiling."""
        ...

    def set_objective(self, coefficients: Sequence[tuple[Any, float]], offset: float = 0.0) -> None:
        """Replace the objective by a linear one, given as (variable, coefficient) pairs."""
        ...

    def set_variable_bounds(self, variables: Sequence[Any], lower: Sequence[float], upper: Sequence[float]) -> None:
        """Replace the bounds of variables."""
        ...

    def set_constraint_bounds(self, constraints: Sequence[Any], lower: Sequence[float], upper: Sequence[float]) -> None:
        """Replace the two sides of constraints."""
        ...

    def dual(self, constraint: Any) -> float:
        """Dual value of a constraint after an optimal solve.

        Change of the objective per unit of its right-hand side.
        """
        ...


def pooling(solver: Solver) -> PoolingSolver:
    """The solver as one that finds more than one solution.

    Raises
    ------
    Unsupported
        If it is none.
    """
    if isinstance(solver, PoolingSolver) and Capability.POOL in solver.capabilities:
        return solver
    raise Unsupported(f"{solver.name} does not find more than one solution of a model")


def resolving(solver: Solver) -> ResolvingSolver:
    """The solver as one that keeps a linear model between solves and gives its dual values.

    Raises
    ------
    Unsupported
        If it is none.
    """
    if isinstance(solver, ResolvingSolver) and Capability.RESOLVE | Capability.DUALS in solver.capabilities:
        return solver
    raise Unsupported(f"{solver.name} does not keep a linear model between solves or report its dual values")
