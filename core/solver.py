"""Contract of a solver adapter: capabilities, options and results.

An adapter receives a Pyomo model and loads values into it; it decides nothing else. The reason why a solve stopped
(:class:`Termination`) and the existence of a solution (:attr:`SolverResult.has_solution`) are separate results.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import Enum, Flag, auto
from typing import Any, Protocol, runtime_checkable

from .budget import Budget
from .errors import Unsupported


class Capability(Flag):
    """Capabilities of a solver; a model that needs more is rejected before it is transferred."""

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
    """Reason why a solve stopped."""

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
    """Availability of a solver, with its version, or the reason why it cannot be used."""

    ok: bool
    message: str
    version: str | None = None


@dataclass(frozen=True)
class SolverOptions:
    """Options of a solve."""

    rel_gap: float = 1e-6  #: Relative gap at which a MIP or nonconvex search stops.
    feasibility_tolerance: float = 1e-7  #: Largest violation of a row, if the solver lets it be chosen.
    node_limit: int | None = None  #: Nodes of a search; reproducible, unlike a time limit. None is no limit.
    use_start: bool = False  #: If the values of the model's variables are passed to the solver as a start.
    #: The solver's own options by their own names; an unknown one is an error.
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
    """Result of one solve."""

    solver: str
    version: str
    termination: Termination
    has_solution: bool  #: If the model's variables now hold a feasible point.
    objective: float | None = None
    bound: float | None = None  #: Proved bound on the optimum: from below when minimizing, from above when maximizing.
    #: ``nodes`` and ``iterations``: work done, if the solver counts it.
    nodes: int | None = None
    iterations: int | None = None
    #: ``transfer_s`` and ``solve_s``: seconds to transfer the model and to solve it, by the clock of the budget.
    transfer_s: float = 0.0
    solve_s: float = 0.0
    size: ModelSize = field(default_factory=ModelSize)
    message: str = ""  #: The solver's own message if it helps.
    #: Constraints whose rule was called row by row, and why (:func:`cwb.core.rows.row_by_row_reasons`).
    row_by_row: Mapping[str, str] = field(default_factory=dict)

    @property
    def gap(self) -> float | None:
        """Relative gap ``|objective - bound| / |objective|``, computed here and not by the solver."""
        return relative_gap(self.objective, self.bound)

    def to_json(self) -> dict[str, Any]:
        """Return plain data for a record."""
        return asdict(self) | {"termination": self.termination.value, "gap": self.gap}


def relative_gap(objective: float | None, bound: float | None) -> float | None:
    """Compute ``|objective - bound| / |objective|``; 0 if both are equal, None if either is missing."""
    if objective is None or bound is None:
        return None
    if objective == bound:
        return 0.0
    if objective == 0 or abs(objective) == float("inf") or abs(bound) == float("inf"):
        return None
    return abs(objective - bound) / abs(objective)


class Solver(Protocol):
    """Adapter of a solver."""

    @property
    def name(self) -> str:
        """Name on the command line."""
        ...

    @property
    def capabilities(self) -> Capability:
        """All capabilities of the solver."""
        ...

    def installation(self) -> Availability:
        """Check cheaply if the solver's library can be imported."""
        ...

    def licence(self) -> Availability:
        """Check if the solver may be used, by trying its licence if it needs one."""
        ...

    def solve(self, model: Any, budget: Budget, options: SolverOptions = ...) -> SolverResult:
        """Solve a Pyomo model and load the best point found into its variables.

        Raises SolverUnavailable if the solver or its licence is missing, or the licence too small for the model;
        Unsupported if the solver lacks a capability that the model needs; InputError for an unknown option in
        ``options.extra``.
        """
        ...


@runtime_checkable
class ResolvingSolver(Solver, Protocol):
    """Solver that keeps a linear model between solves (:attr:`Capability.RESOLVE`)."""

    def compile(self, model: Any, budget: Budget, options: SolverOptions = ...) -> "CompiledModel":
        """Transfer a linear Pyomo model once, for changes and warm solves."""
        ...


@runtime_checkable
class PoolingSolver(Solver, Protocol):
    """Solver that finds more than one solution (:attr:`Capability.POOL`)."""

    def pool(self, model: Any, budget: Budget, options: SolverOptions, count: int) -> Iterator[SolverResult]:
        """Yield up to about ``count`` solutions that differ in a binary variable, best first, each loaded."""
        ...


class CompiledModel(Protocol):
    """Linear model inside a solver; rows and columns are named by their Pyomo components."""

    @property
    def size(self) -> ModelSize:
        """Present size of the model."""
        ...

    def solve(self, budget: Budget) -> SolverResult:
        """Solve from the last basis and load the values into the Pyomo variables."""
        ...

    def add_constraint(self, constraint: Any) -> None:
        """Add a linear Pyomo constraint that was created after compiling."""

    def set_objective(self, coefficients: Sequence[tuple[Any, float]], offset: float = 0.0) -> None:
        """Replace the objective by a linear one, given as (variable, coefficient) pairs."""

    def set_variable_bounds(self, variables: Sequence[Any], lower: Sequence[float], upper: Sequence[float]) -> None:
        """Replace the bounds of variables."""

    def set_constraint_bounds(self, constraints: Sequence[Any], lower: Sequence[float], upper: Sequence[float]) -> None:
        """Replace the two sides of constraints."""

    def dual(self, constraint: Any) -> float:
        """Return the dual value after an optimal solve: change of the objective per unit of right-hand side."""
        ...


def as_pooling_solver(solver: Solver) -> PoolingSolver:
    """Return the solver as one that finds several solutions; raise Unsupported if it cannot."""
    if isinstance(solver, PoolingSolver) and Capability.POOL in solver.capabilities:
        return solver
    raise Unsupported(f"{solver.name} does not find more than one solution of a model")


def as_resolving_solver(solver: Solver) -> ResolvingSolver:
    """Return the solver as one that re-solves linear models and has duals, or raise Unsupported."""
    if isinstance(solver, ResolvingSolver) and Capability.RESOLVE | Capability.DUALS in solver.capabilities:
        return solver
    raise Unsupported(f"{solver.name} does not keep a linear model between solves or report its dual values")
