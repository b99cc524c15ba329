"""One model inside one Gurobi.

Gurobi prints its licence and every parameter to stdout unless it is started silent. While it runs it handles Ctrl-C
itself and prints about it; if two of its solves overlap, it may keep the handler for good. So the system's handler
is restored as soon as it runs and again when it has run, by the C interface: ``signal.signal`` works in the main
thread only.
"""

import ctypes
import signal
from dataclasses import replace
from typing import Any

import gurobipy as gp
import numpy as np
import scipy.sparse as sp
from gurobipy import GRB

from ..core.budget import Budget
from ..core.errors import CwbError, SolverUnavailable
from ..core.solver import SolverOptions, Termination
from .base import Adapter
from .matrix import MatrixModel
from .options import INFINITY, NativeOption, check_option, rejected_value_error, unknown_option_error
from .session import WITHOUT_SOLUTION, NativeConflict, Session, SessionResult, Track, resolve_unclear

_TERMINATIONS = {
    GRB.OPTIMAL: Termination.OPTIMAL,
    GRB.INFEASIBLE: Termination.INFEASIBLE,
    GRB.INF_OR_UNBD: Termination.INFEASIBLE_OR_UNBOUNDED,
    GRB.UNBOUNDED: Termination.UNBOUNDED,
    GRB.TIME_LIMIT: Termination.TIME_LIMIT,
    **dict.fromkeys((GRB.NODE_LIMIT, GRB.ITERATION_LIMIT, GRB.SOLUTION_LIMIT), Termination.NODE_LIMIT),
    **dict.fromkeys((GRB.WORK_LIMIT, GRB.USER_OBJ_LIMIT, GRB.CUTOFF), Termination.NODE_LIMIT),
    GRB.INTERRUPTED: Termination.INTERRUPTED,
    GRB.NUMERIC: Termination.NUMERICAL,
    GRB.SUBOPTIMAL: Termination.NUMERICAL,
}

_WORDS = {getattr(GRB.Status, name): name.lower() for name in dir(GRB.Status) if name.isupper()}

_BEST = 2  #: Gurobi's number for a search for the best solutions, not for one.

_TOO_LARGE = GRB.Error.SIZE_LIMIT_EXCEEDED
_FREE_LIMIT = "2000 variables and 2000 rows, 200 variables with quadratic terms"

_set_handler = ctypes.pythonapi.PyOS_setsig
_set_handler.argtypes, _set_handler.restype = (ctypes.c_int, ctypes.c_void_p), ctypes.c_void_p
_get_handler = ctypes.pythonapi.PyOS_getsig
_get_handler.argtypes, _get_handler.restype = (ctypes.c_int,), ctypes.c_void_p
_PYTHON_S_HANDLER = _get_handler(signal.SIGINT)


def _give_ctrl_c_back() -> None:
    """Restore the system handler by which Ctrl-C reaches Python."""
    _set_handler(signal.SIGINT, _PYTHON_S_HANDLER)


def _environment() -> Any:
    try:
        environment = gp.Env(empty=True)
        environment.setParam("OutputFlag", 0)
        environment.start()
    except gp.GurobiError as error:
        raise SolverUnavailable(
            f"Gurobi cannot be used: {_one_line(error)}; use --solver highs or scip, or install a licence"
        ) from None
    return environment


def licence() -> str:
    """Return the expiry of the licence as text, after trying it; raise SolverUnavailable without one."""
    environment = _environment()
    try:
        model = gp.Model(env=environment)
        expires = str(model.LicenseExpiration)
        model.dispose()
    finally:
        environment.dispose()
    day = "never" if expires == "99999999" else f"{expires[:4]}-{expires[4:6]}-{expires[6:]}"
    version = ".".join(map(str, gp.gurobi.version()))
    return f"Gurobi {version}, licence expires {day}; the free pip licence takes {_FREE_LIMIT}"


class GurobiSession(Session):
    """See :class:`~cwb.solvers.session.Session`."""

    def __init__(self, adapter: Adapter, budget: Budget, options: SolverOptions) -> None:
        self.track = Track("gurobi")
        self.version = ".".join(map(str, gp.gurobi.version()))
        self.environment = _environment()
        self.model: Any = gp.Model(env=self.environment)
        self._tolerance = options.feasibility_tolerance
        self._took_ctrl_c = False
        try:
            self._apply(adapter, budget, options)
        except BaseException:
            self.close()
            raise

    def _apply(self, adapter: Adapter, budget: Budget, options: SolverOptions) -> None:
        tolerance = options.feasibility_tolerance
        settings: dict[str, object] = {
            "LogToConsole": 0,
            "Threads": budget.threads,
            "Seed": budget.seed % GRB.MAXINT,
            "MIPGap": options.rel_gap,
            "MIPGapAbs": 0.0,
            "FeasibilityTol": max(tolerance, 1e-9),
            "IntFeasTol": max(tolerance, 1e-9),
        }
        if options.node_limit is not None:
            settings["NodeLimit"] = options.node_limit
        for name, value in settings.items():
            self._set(name, value)
        for name, value in adapter.own_options(options):
            self._set(name, self._check_parameter(name, value))
        if budget.log_file is not None:
            self._set("LogFile", budget.log_file)
            self._set("OutputFlag", 1)

    def _set(self, name: str, value: object) -> None:
        try:
            self.model.setParam(name, value)
        except (gp.GurobiError, TypeError, ValueError) as error:
            raise rejected_value_error("Gurobi", name, value, _one_line(error), what="parameter") from None

    def _check_parameter(self, name: str, value: object) -> object:
        """Convert a parameter's value to its type; Gurobi itself accepts 0.5 as the integer 0."""
        names = {parameter.lower(): parameter for parameter in dir(GRB.Param) if not parameter.startswith("_")}
        if name.lower() not in names:
            raise unknown_option_error("Gurobi", name, names.values(), what="parameter")
        _, kind, _, *limits, _ = self.model.getParamInfo(name)
        return check_option("Gurobi", name, value, {name: NativeOption(kind, *limits)}, what="parameter")

    def load(self, matrix: MatrixModel, *, start: bool) -> None:
        """Transfer the model as matrices; a range becomes two rows."""
        self.matrix = matrix
        self.scale = matrix.cost_scale
        model = self.model
        self.x = model.addMVar(
            len(matrix.columns),
            lb=np.maximum(matrix.lower, -GRB.INFINITY),
            ub=np.minimum(matrix.upper, GRB.INFINITY),
            vtype=np.where(matrix.integer, GRB.INTEGER, GRB.CONTINUOUS),
        )
        Q = None if matrix.Q is None else sp.csr_matrix(matrix.Q * (0.5 * self.scale))
        model.setMObjective(Q, matrix.c * self.scale, matrix.offset * self.scale, self.x, self.x, self.x, GRB.MINIMIZE)
        self._add_rows()
        if start:
            values = matrix.start()
            self.x.Start = np.where(np.isnan(values), GRB.UNDEFINED, values)

    def _add_rows(self) -> None:
        matrix, model = self.matrix, self.model
        self._linear_rows: list[tuple[Any, Any]] = []
        quadratic = {row.row: row.Q for row in matrix.quadratic_rows}
        equal = matrix.row_lower == matrix.row_upper
        has_lower, has_upper = np.isfinite(matrix.row_lower) & ~equal, np.isfinite(matrix.row_upper) & ~equal
        linear = np.ones(len(matrix.rows), dtype=bool)
        linear[list(quadratic)] = False
        sides = (
            (GRB.EQUAL, equal, matrix.row_lower),
            (GRB.GREATER_EQUAL, has_lower, matrix.row_lower),
            (GRB.LESS_EQUAL, has_upper, matrix.row_upper),
        )
        for sense, where, right in sides:
            rows = np.flatnonzero(where & linear)
            if rows.size:
                block = model.addMConstr(sp.csr_matrix(matrix.A[rows]), self.x, sense, right[rows])
                self._linear_rows.append((rows, block))
            for i, Q in quadratic.items():
                if where[i]:
                    part = slice(matrix.A.indptr[i], matrix.A.indptr[i + 1])
                    a = np.zeros(len(matrix.columns))
                    a[matrix.A.indices[part]] = matrix.A.data[part]
                    model.addMQConstr(sp.csr_matrix(0.5 * Q), a, sense, float(right[i]), self.x, self.x, self.x)

    def run(self, limit_s: float | None) -> SessionResult:
        """Solve; infeasible is distinguished from unbounded by solving again without costs."""

        def without_costs() -> SessionResult:
            self.model.setObjective(0.0)
            return self._optimize(limit_s)

        outcome = resolve_unclear(self._optimize(limit_s), self.matrix, without_costs)
        has_conflict = self.tells_conflict and outcome.termination is Termination.INFEASIBLE
        return replace(outcome, conflict=self._conflict()) if has_conflict else outcome

    def _optimize(self, limit_s: float | None) -> SessionResult:
        self._set("TimeLimit", GRB.INFINITY if limit_s is None else limit_s)
        self._took_ctrl_c = True
        try:
            self.model.optimize(self._callback)
        except gp.GurobiError as error:
            if error.errno == _TOO_LARGE:
                size = self.matrix.size
                raise SolverUnavailable(
                    f"Gurobi's licence is too small: the model has {size.variables} variables and {size.constraints} "
                    f"rows, the free pip licence takes {_FREE_LIMIT}; use --solver highs or scip, or install a licence"
                ) from None
            raise CwbError(f"Gurobi failed: {_one_line(error)}") from None
        finally:
            _give_ctrl_c_back()
        return self._read()

    def _conflict(self) -> NativeConflict | None:
        """Return Gurobi's irreducible infeasible subset of a model without quadratic rows."""
        if self.matrix.quadratic_rows:
            return None
        try:
            self.model.computeIIS()
            rows = [i for index, block in self._linear_rows for i in index[np.flatnonzero(block.IISConstr)].tolist()]
            lower, upper = (np.flatnonzero(flags).tolist() for flags in (self.x.IISLB, self.x.IISUB))
        except gp.GurobiError:
            return None
        return NativeConflict(sorted(set(rows)), lower, upper)

    def _read(self) -> SessionResult:
        model = self.model
        termination = _TERMINATIONS.get(model.Status, Termination.ERROR)
        values = None
        if model.SolCount > 0 and termination not in WITHOUT_SOLUTION:
            values = np.array(self.x.X)
            # A linear program that was stopped has a point, but it need not be feasible.
            if termination is not Termination.OPTIMAL and self.matrix.violation(values) > 10 * self._tolerance:
                values = None
        return SessionResult(
            termination,
            values,
            self._bound(termination),
            int(model.NodeCount),
            int(model.IterCount + model.BarIterCount),
            "" if termination is Termination.OPTIMAL else _WORDS.get(model.Status, str(model.Status)),
            self._duals() if self.keeps_duals and termination is Termination.OPTIMAL else None,
            pool=self._pool() if values is not None and model.Params.PoolSearchMode == _BEST else (),
        )

    def _pool(self) -> list[Any]:
        points = []
        for number in range(self.model.SolCount):
            self.model.Params.SolutionNumber = number
            points.append(np.array(self.x.Xn))
        return points

    def _duals(self) -> list[float]:
        """Return the dual values; a row with two sides has the sum of both."""
        rows = np.zeros(len(self.matrix.rows))
        for index, block in self._linear_rows:
            rows[index] += block.Pi
        return list(map(float, rows))

    def _bound(self, termination: Termination) -> float | None:
        """Return the bound of the search, or the objective of a solved continuous convex model."""
        try:
            bound = self.model.ObjBound
        except (AttributeError, gp.GurobiError):
            bound = GRB.INFINITY
        if abs(bound) >= INFINITY and termination is Termination.OPTIMAL:
            bound = self.model.ObjVal
        return float(bound) / self.scale if abs(bound) < INFINITY else None

    def _callback(self, model: Any, where: int) -> None:
        if self._took_ctrl_c:
            self._took_ctrl_c = False
            _give_ctrl_c_back()
        if self.track.cancel.is_set():
            model.terminate()
        elif where == GRB.Callback.MIPSOL:
            self.track.values = np.array(model.cbGetSolution(self.x))
        elif where == GRB.Callback.MIP:
            best, bound = model.cbGet(GRB.Callback.MIP_OBJBST), model.cbGet(GRB.Callback.MIP_OBJBND)
            self.track.tell(int(model.cbGet(GRB.Callback.MIP_NODCNT)), best, bound, self.scale)

    def request_stop(self) -> None:
        """Ask to stop."""
        self.track.cancel.set()
        self.model.terminate()

    def close(self) -> None:
        """Free the model and release the licence."""
        self.model.dispose()
        self.environment.dispose()


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
