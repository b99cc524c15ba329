"""One model inside one SCIP.

A quadratic objective becomes a variable that bounds it from above: SCIP's objective is linear. ``optimize`` would
hold the Python lock, so that nobody could wait with a limit; ``optimizeNogil`` does not. SCIP's own Ctrl-C handler
is switched off, its clock is switched from processor to wall time, and its screen output is off: a captured pipe
would fill and block forever.
"""

from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyscipopt
import scipy.sparse as sp
from pyscipopt import SCIP_EVENTTYPE, SCIP_PARAMSETTING, Eventhdlr, ExprCons

from ..core.budget import Budget
from ..core.solver import SolverOptions, Termination
from .base import Adapter
from .matrix import MatrixModel
from .options import INFINITY, NativeOption, check_option, read_options, rejected_value_error
from .session import WITHOUT_SOLUTION, Session, SessionResult, Track, resolve_unclear

#: Limits of nodes and solutions, which users set by SCIP's own options.
_OWN_LIMITS = "nodelimit totalnodelimit stallnodelimit sollimit bestsollimit restartlimit primallimit duallimit"

_TERMINATIONS = {
    **dict.fromkeys(("optimal", "gaplimit"), Termination.OPTIMAL),
    **dict.fromkeys(_OWN_LIMITS.split(), Termination.NODE_LIMIT),
    "infeasible": Termination.INFEASIBLE,
    "unbounded": Termination.UNBOUNDED,
    "inforunbd": Termination.INFEASIBLE_OR_UNBOUNDED,
    "timelimit": Termination.TIME_LIMIT,
    "userinterrupt": Termination.INTERRUPTED,
}


@cache
def offered_parameters() -> dict[str, NativeOption]:
    """Return the parameters of SCIP from its own descriptions, so that a wrong value prints nothing."""
    model = pyscipopt.Model()
    model.hideOutput()
    with TemporaryDirectory(prefix="cwb-") as folder:
        path = Path(folder) / "scip.set"
        model.writeParams(str(path), comments=True, onlychanged=False, verbose=False)
        return read_options(path.read_text(encoding="utf-8"))


class ScipSession(Session):
    """See :class:`~cwb.solvers.session.Session`."""

    def __init__(self, adapter: Adapter, budget: Budget, options: SolverOptions) -> None:
        self.track = Track("scip")
        self.watch: _SolverEvents | None = None
        self.model: Any = pyscipopt.Model()
        self.model.hideOutput()
        self.version = f"{pyscipopt.__version__} (SCIP {self.model.version():g})"
        settings: dict[str, object] = {
            "display/verblevel": 0 if budget.log_file is None else 4,
            "misc/catchctrlc": False,
            "timing/clocktype": 2,
            "randomization/randomseedshift": budget.seed % 2**31,
            "limits/gap": options.rel_gap,
            "numerics/feastol": options.feasibility_tolerance,
        }
        if options.node_limit is not None:
            settings["limits/totalnodes"] = options.node_limit
        for name, value in settings.items():
            self._set(name, value)
        for name, value in adapter.own_options(options):
            self._set(name, check_option("SCIP", name, value, offered_parameters(), what="parameter"))
        if budget.log_file is not None:
            self.model.setLogfile(budget.log_file)

    def _set(self, name: str, value: object) -> None:
        try:
            self.model.setParam(name, value)
        except (TypeError, ValueError, LookupError, OverflowError):
            raise rejected_value_error(
                "SCIP", name, value, offered_parameters()[name].allowed_values, what="parameter"
            ) from None

    def load(self, matrix: MatrixModel, *, start: bool) -> None:
        """Transfer the model row by row, since pyscipopt accepts no sparse matrices."""
        self.matrix = matrix
        self.scale = matrix.cost_scale
        model = self.model
        self.variables = [
            model.addVar(name=f"x{j}", vtype="I" if integer else "C", lb=lower, ub=upper, obj=cost)
            for j, (integer, lower, upper, cost) in enumerate(
                zip(
                    matrix.integer.tolist(),
                    _none_where_infinite(matrix.lower),
                    _none_where_infinite(matrix.upper),
                    (matrix.c * self.scale).tolist(),
                    strict=True,
                )
            )
        ]
        self.rows: list[Any] = []
        quadratic = {row.row: row.Q for row in matrix.quadratic_rows}
        lower, upper = np.maximum(matrix.row_lower, -INFINITY), np.minimum(matrix.row_upper, INFINITY)
        for i in range(len(matrix.rows)):
            part = slice(matrix.A.indptr[i], matrix.A.indptr[i + 1])
            terms = zip(matrix.A.indices[part].tolist(), matrix.A.data[part].tolist(), strict=True)
            self._add_row(terms, quadratic.get(i), float(lower[i]), float(upper[i]))
        self.above: Any = None
        if matrix.Q is not None:
            self.above = model.addVar(name="objective", lb=None, ub=None, obj=1.0)
            model.addCons(ExprCons(self._form(matrix.Q * self.scale) - self.above, lhs=-INFINITY, rhs=0.0))
        model.addObjoffset(matrix.offset * self.scale)
        if start:
            self._add_start()
        self.watch = _SolverEvents(self)
        model.includeEventhdlr(self.watch, "cwb", "tells of progress and stops on demand")

    def _add_row(self, terms: Iterable[tuple[int, float]], Q: Any, lower: float, upper: float) -> None:
        if Q is None:
            # Adding coefficients to an empty row is faster than building an expression.
            row = self.model.addCons(ExprCons(0.0 * self.variables[0], lhs=lower, rhs=upper))
            self.rows.append(row)
            for j, a in terms:
                self.model.addConsCoeff(row, self.variables[j], a)
            return
        linear = pyscipopt.quicksum(a * self.variables[j] for j, a in terms)
        self.model.addCons(ExprCons(self._form(Q) + linear, lhs=lower, rhs=upper))

    def _form(self, Q: Any) -> Any:
        """Return 1/2 x' Q x as an expression."""
        upper = sp.coo_array(sp.triu(Q))
        x = self.variables
        return pyscipopt.quicksum(
            (0.5 * a if i == j else a) * x[i] * x[j]
            for i, j, a in zip(upper.row.tolist(), upper.col.tolist(), upper.data.tolist(), strict=True)
        )

    def _add_start(self) -> None:
        values = self.matrix.start()
        solution = self.model.createPartialSol()
        for variable, value in zip(self.variables, values.tolist(), strict=True):
            if value == value:  # noqa: PLR0124 - not NaN: the variable has a value
                self.model.setSolVal(solution, variable, value)
        if self.above is not None and np.isfinite(values).all():
            self.model.setSolVal(solution, self.above, 0.5 * self.scale * float(values @ (self.matrix.Q @ values)))
        self.model.addSol(solution)

    def run(self, limit_s: float | None) -> SessionResult:
        """Solve; infeasible is distinguished from unbounded by solving again without costs."""

        def without_costs() -> SessionResult:
            self.model.freeTransform()
            self.model.setObjective(0.0 * self.variables[0])
            return self._optimize(limit_s)

        return resolve_unclear(self._optimize(limit_s), self.matrix, without_costs)

    def _optimize(self, limit_s: float | None) -> SessionResult:
        if self.keeps_duals:
            # Dual values are those of the linear program as it was passed on: nothing may change it first.
            self.model.setPresolve(SCIP_PARAMSETTING.OFF)
            self.model.setHeuristics(SCIP_PARAMSETTING.OFF)
            self.model.disablePropagation()
        self._set("limits/time", 1e20 if limit_s is None else limit_s)
        self.model.optimizeNogil()
        words = self.model.getStatus()
        termination = _TERMINATIONS.get(words, Termination.ERROR)
        has_solution = self.model.getNSols() > 0 and termination not in WITHOUT_SOLUTION
        bound = self.model.getDualbound()
        if abs(bound) >= INFINITY and self._may_branch_for_ever():
            words += "; SCIP bounds a quadratic form by branching, which needs bounds on its variables"
        return SessionResult(
            termination,
            self.best() if has_solution else None,
            None if abs(bound) >= INFINITY else float(bound) / self.scale,
            int(self.model.getNTotalNodes()),
            int(self.model.getNLPIterations()),
            "" if termination is Termination.OPTIMAL else words,
            self._duals() if self.keeps_duals and termination is Termination.OPTIMAL else None,
        )

    def _duals(self) -> list[float]:
        """Return the rows' duals; SCIP has that of a row with one variable as the variable's reduced cost."""
        model, matrix = self.model, self.matrix
        rows = np.array([model.getDualsolLinear(row) for row in self.rows])
        columns = np.array([model.getVarRedcost(variable) for variable in self.variables])
        single = np.flatnonzero(np.diff(matrix.A.indptr) == 1)
        index, factor = matrix.A.indices[matrix.A.indptr[single]], matrix.A.data[matrix.A.indptr[single]]
        low, up = matrix.row_lower[single] / factor, matrix.row_upper[single] / factor
        # Of a variable that is to shrink the largest lower bound holds it; of one that is to grow, the smallest upper
        # one.
        lower, upper = np.minimum(low, up), np.maximum(low, up)
        for column in np.unique(index).tolist():
            here = np.flatnonzero(index == column)
            if columns[column] > 0:
                best = here[np.argmax(lower[here])]
                is_tighter = lower[best] > matrix.lower[column]
            else:
                best = here[np.argmin(upper[here])]
                is_tighter = upper[best] < matrix.upper[column]
            if is_tighter:
                rows[single[best]] = columns[column] / factor[best]
        return list(map(float, rows))

    def _may_branch_for_ever(self) -> bool:
        forms = ([] if self.matrix.Q is None else [self.matrix.Q]) + [row.Q for row in self.matrix.quadratic_rows]
        unbounded = ~(np.isfinite(self.matrix.lower) & np.isfinite(self.matrix.upper))
        return any(unbounded[np.diff(Q.indptr) > 0].any() for Q in forms)

    def best(self) -> Any:
        """Return the best point found so far as an array."""
        solution = self.model.getBestSol()
        return np.array([self.model.getSolVal(solution, variable) for variable in self.variables])

    def request_stop(self) -> None:
        """Ask to stop: SCIP checks between its steps, and the event handler asks once more."""
        self.track.cancel.set()
        # Between two stages SCIP refuses to be interrupted; then the event handler does it, at the next event.
        with suppress(Exception):
            self.model.interruptSolve()

    def close(self) -> None:
        """Free the problem and release the event handler, which holds this session."""
        self.model.setLogfile(None)
        self.model.freeProb()
        self.variables = []
        self.watch = None
        self.model = None


class _SolverEvents(Eventhdlr):  # type: ignore[misc] # pyscipopt has no types
    """Event handler that records new solutions and bounds, and stops SCIP on request."""

    def __init__(self, session: ScipSession) -> None:
        self.session = session

    def eventinit(self) -> None:
        """Register for the events."""
        for kind in (SCIP_EVENTTYPE.BESTSOLFOUND, SCIP_EVENTTYPE.NODESOLVED, SCIP_EVENTTYPE.PRESOLVEROUND):
            self.model.catchEvent(kind, self)

    def eventexec(self, event: Any) -> None:
        """Handle one event."""
        session, track = self.session, self.session.track
        if track.cancel.is_set():
            self.model.interruptSolve()
            return
        is_solution = event.getType() == SCIP_EVENTTYPE.BESTSOLFOUND
        if is_solution:
            track.values = session.best()
        if event.getType() != SCIP_EVENTTYPE.PRESOLVEROUND:
            best, bound = self.model.getPrimalbound(), self.model.getDualbound()
            track.tell(int(self.model.getNTotalNodes()), best, bound, session.scale)


def _none_where_infinite(bounds: Any) -> list[float | None]:
    return [bound if abs(bound) < INFINITY else None for bound in bounds.tolist()]
