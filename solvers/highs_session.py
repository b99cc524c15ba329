"""One model inside one HiGHS; linear models that stay there, for changes and re-solves from the last basis.

Behaviour of HiGHS that an adapter must handle (measured with 1.11 to 1.16):

* highspy does not check options: every ``setOptionValue`` is checked here;
* it prunes a search when a bound comes within ``mip_feasibility_tolerance`` of the incumbent, *absolutely*, and
  then reports the incumbent as the bound. So the bound is reported that much weaker, and a search whose objective
  is too small for that to be within the gap is repeated with scaled costs;
* small coefficients are dropped with a warning: one that may matter is rejected;
* its scheduler belongs to the thread that first solved, with that thread's number of threads;
* PDLP prints to stdout unless all output is off, and has no callbacks;
* from an ill-conditioned basis it may call a point optimal that violates a row by far, and report the row as kept;
* its presolve calls some feasible integer programs infeasible (1.16), by a rule that is switched off;
* it calls some unbounded programs infeasible, and sometimes reports that it does not know: that is settled by
  solving again without costs.
"""

from dataclasses import replace
from math import ceil, inf, isfinite, log2
from typing import Any

import highspy
import numpy as np
from numpy.typing import NDArray

from ..core.budget import Budget
from ..core.errors import CwbError, InputError
from ..core.solver import SolverOptions, Termination
from . import highs_common
from .base import Adapter
from .compiled_model import CompiledLinearModel
from .guard import Worker
from .highs_quadratic import solve_quadratic
from .matrix import FloatArray, MatrixModel
from .session import WITHOUT_SOLUTION, NativeConflict, Session, SessionResult, Track, resolve_unclear, run_session

#: Bit of the presolve rule that enumerates small rows: 1.16 calls feasible programs infeasible with it.
_ENUMERATION = 1 << 16

#: A row is missed by what is above so many tolerances, and above this part of its terms.
_MISSED, _ROUNDING = 10.0, 1e-9


class HighsSession(Session):
    """See :class:`~cwb.solvers.session.Session`."""

    def __init__(self, adapter: Adapter, budget: Budget, options: SolverOptions) -> None:
        self.track = Track("highs")
        self.options = options
        self.threads = budget.threads
        self.highs: Any = highs_common.new_highs(budget.threads)
        self.version = f"{self.highs.version()} ({self.highs.githash()[:8]})"
        self.scale = 1.0
        self._log_file = budget.log_file
        self._scheduler_threads: int | None = None
        self._seed = budget.seed
        self._apply(adapter, options)

    def _apply(self, adapter: Adapter, options: SolverOptions) -> None:
        tolerance = options.feasibility_tolerance
        settings: dict[str, object] = {
            "random_seed": self._seed % 2**31,
            "mip_rel_gap": options.rel_gap,
            # HiGHS would stop at an absolute gap of 1e-6, whatever the objective's unit.
            "mip_abs_gap": 0.0,
            "primal_feasibility_tolerance": tolerance,
            "mip_feasibility_tolerance": tolerance,
            "mip_min_logging_interval": 1.0,
            "presolve_rule_off": _ENUMERATION,
        }
        if options.node_limit is not None:
            settings["mip_max_nodes"] = options.node_limit
        for name, value in settings.items():
            highs_common.set_option(self.highs, name, value)
        for name, value in adapter.own_options(options):
            highs_common.set_own_option(self.highs, name, value)
        self._uses_pdlp = self.highs.getOptionValue("solver")[1] == "pdlp"
        if self._log_file is None:
            return
        if self._uses_pdlp:
            raise InputError("HiGHS's pdlp writes to the screen instead of its log file: leave out one of the two")
        highs_common.set_option(self.highs, "output_flag", True)
        highs_common.set_option(self.highs, "log_file", self._log_file)

    def load(self, matrix: MatrixModel, *, start: bool) -> None:
        """Transfer the model; only mixed-integer models use a start."""
        self.matrix = matrix
        self.scale = matrix.cost_scale
        highs_common.refuse_lost_coefficients(matrix)
        highs_common.pass_model(self.highs, matrix, self.scale)
        if matrix.Q is not None:
            highs_common.pass_hessian(self.highs, matrix, self.scale)
        if not matrix.is_mixed_integer:
            return
        if start:
            values = matrix.start()
            self._set_start(np.flatnonzero(~np.isnan(values)), values)
        # Without output HiGHS tells nothing of a search.
        highs_common.set_option(self.highs, "output_flag", not self._uses_pdlp)
        self.highs.cbMipImprovingSolution.subscribe(self._take_in_solution)
        self.highs.cbMipLogging.subscribe(self._take_in_progress)
        self.highs.cbMipInterrupt.subscribe(self._stop_if_asked)

    def run(self, limit_s: float | None) -> SessionResult:
        """Solve; a re-solve starts from the last basis."""
        if self._scheduler_threads not in {None, self.threads}:
            highspy.Highs.resetGlobalScheduler(True)
        self._scheduler_threads = self.threads
        if self.matrix.Q is not None:
            return solve_quadratic(self.highs, self.matrix, self.scale, self.options, self.track, limit_s)
        outcome = self._settle_unclear(self._solve(limit_s), limit_s)
        if not self.tells_conflict or outcome.termination is not Termination.INFEASIBLE:
            return outcome
        left_s = None if limit_s is None else limit_s - self._last_run_s
        return replace(outcome, conflict=self._conflict(left_s))

    def _conflict(self, limit_s: float | None) -> NativeConflict | None:
        """Return HiGHS's irreducible infeasible subset of a linear program; of others it may take arbitrarily long."""
        if self.matrix.is_mixed_integer:
            return None
        highs_common.set_option(self.highs, "iis_strategy", int(highspy.IisStrategy.kIisStrategyIrreducible))
        highs_common.set_option(self.highs, "iis_time_limit", inf if limit_s is None else max(limit_s, 1e-3))
        status, iis = self.highs.getIis()
        if status != highspy.HighsStatus.kOk or not iis.valid_:
            return None
        kinds = highspy.IisBoundStatus
        bounds = list(zip(iis.col_index_, iis.col_bound_, strict=True))
        return NativeConflict(
            list(iis.row_index_),
            [j for j, bound in bounds if bound in (int(kinds.kIisBoundStatusLower), int(kinds.kIisBoundStatusBoxed))],
            [j for j, bound in bounds if bound in (int(kinds.kIisBoundStatusUpper), int(kinds.kIisBoundStatusBoxed))],
        )

    def request_stop(self) -> None:
        """Ask to stop, by a callback that is switched on only now. At every simplex iteration it is expensive."""
        self.track.cancel.set()
        if not self.matrix.is_mixed_integer:
            for callback in (self.highs.cbSimplexInterrupt, self.highs.cbIpmInterrupt):
                callback.subscribe(self._stop_if_asked)

    def fall_silent(self) -> None:
        """Remove the callbacks: one that runs after Python's end would abort the process."""
        self.highs.disableCallbacks()

    def close(self) -> None:
        """Free the model and release the callbacks, which hold this session."""
        self.highs.clearCallbacks()
        self.highs.clear()

    def _solve(self, limit_s: float | None) -> SessionResult:
        outcome = self._run_once(limit_s)
        if outcome.termination in {Termination.NUMERICAL, Termination.ERROR}:
            outcome = self._again(outcome, limit_s)
        if not self.matrix.is_mixed_integer or outcome.termination is not Termination.OPTIMAL:
            return outcome
        factor = self._missing_scale(outcome)
        if factor == 1.0:
            return outcome
        self.scale *= factor
        self.set_costs(self.matrix.c)
        if outcome.values is not None:
            self._set_start(np.arange(outcome.values.size), outcome.values)
        left_s = None if limit_s is None else limit_s - self._last_run_s
        again = outcome if left_s is not None and left_s <= 0 else self._run_once(left_s)
        return again if again.values is not None else outcome

    def _again(self, outcome: SessionResult, limit_s: float | None) -> SessionResult:
        """Solve again from scratch, since an earlier basis may be too ill-conditioned to start from.

        After an error it runs without scaling, which may have lost the tolerances of the original problem, and then
        without presolve, which may have lost a feasible point.
        """
        changes: tuple[dict[str, object], ...] = ({"simplex_scale_strategy": 0}, {"presolve": "off"})
        for change in ({},) if outcome.termination is Termination.NUMERICAL else changes:
            if limit_s is not None and (limit_s := limit_s - self._last_run_s) <= 0:
                return outcome
            self.highs.clearSolver()
            before = {name: self.highs.getOptionValue(name)[1] for name in change}
            for name, value in change.items():
                highs_common.set_option(self.highs, name, value)
            outcome = self._run_once(limit_s)
            for name, value in before.items():
                highs_common.set_option(self.highs, name, value)
            if outcome.termination is not Termination.ERROR:
                return outcome
        return outcome

    def _run_once(self, limit_s: float | None) -> SessionResult:
        # HiGHS holds its limit against the seconds of all runs of a model together.
        before = self.highs.getRunTime()
        highs_common.set_option(self.highs, "time_limit", inf if limit_s is None else before + max(limit_s, 1e-3))
        self.highs.run()
        self._last_run_s = self.highs.getRunTime() - before
        return self._read()

    def _read(self) -> SessionResult:
        status = self.highs.getModelStatus()
        words = self.highs.modelStatusToString(status)
        termination = highs_common.TERMINATIONS.get(status, Termination.ERROR)
        info = self.highs.getInfo()
        mip = self.matrix.is_mixed_integer
        if termination is Termination.ERROR:
            # Nothing was solved, and the numbers of a solve are not set.
            return SessionResult(termination, message=f"HiGHS has not solved the model: {words}")
        values = None
        if info.primal_solution_status == highs_common.FEASIBLE and termination not in WITHOUT_SOLUTION:
            values = np.array(self.highs.getSolution().col_value)
            if termination is Termination.OPTIMAL and not mip and not self._uses_pdlp and self._misses_a_row(values):
                return SessionResult(
                    Termination.NUMERICAL, message="what HiGHS calls optimal does not keep to the rows"
                )
        return SessionResult(
            termination,
            values,
            self._search_bound(info) if mip else self._linear_bound(info, termination),
            int(info.mip_node_count) if mip else None,
            # Algorithms that were not used report -1.
            sum(max(0, int(getattr(info, f"{by}_iteration_count"))) for by in ("simplex", "ipm", "pdlp")),
            "" if termination is Termination.OPTIMAL else words,
            self.highs.getSolution().row_dual if self.keeps_duals and termination is Termination.OPTIMAL else None,
        )

    def _misses_a_row(self, values: FloatArray) -> bool:
        """Check if values violate a row by far more than the tolerance, against activities computed here.

        HiGHS itself checks activities that it stores separately. Rows added since the arrays were created are ignored.
        """
        A = self.matrix.A
        x, rows = values[: A.shape[1]], A.shape[0]
        activity = A @ x
        excess = np.maximum(self.matrix.row_lower[:rows] - activity, activity - self.matrix.row_upper[:rows])
        if excess.max(initial=0.0) <= _MISSED * self.options.feasibility_tolerance:
            return False
        return bool((excess > _MISSED * self.options.feasibility_tolerance + _ROUNDING * (abs(A) @ abs(x))).any())

    def _search_bound(self, info: Any) -> float | None:
        if not isfinite(info.mip_dual_bound):
            return None
        # Nodes are pruned that are better than the incumbent by less than the tolerance.
        cutoff = info.objective_function_value - self.options.feasibility_tolerance
        if not self.matrix.c.any():
            cutoff = info.objective_function_value
        return float(min(info.mip_dual_bound, cutoff)) / self.scale

    def _linear_bound(self, info: Any, termination: Termination) -> float | None:
        """Return the dual objective; for a basis it is the objective, within tolerances."""
        if termination is not Termination.OPTIMAL:
            return None
        objective = info.objective_function_value
        if info.basis_validity:
            return float(objective) / self.scale
        error = info.primal_dual_objective_error
        return float(objective - error * (1.0 + 2.0 * abs(objective))) / self.scale if isfinite(error) else None

    def _missing_scale(self, outcome: SessionResult) -> float:
        """Return the power of two by which costs must grow for the tolerance to be within the gap."""
        bound = self.matrix.tighten_bound(outcome.bound)
        if outcome.values is None or bound is None:
            return 1.0
        least = self.matrix.minimized_objective(outcome.values)
        gap = max(self.options.rel_gap, 1e-9)
        size = self.scale * abs(least)
        least_size = 2.0 * self.options.feasibility_tolerance / gap
        if size == 0.0 or size >= least_size or least - bound <= gap * abs(least):
            return 1.0
        return float(2.0 ** ceil(log2(least_size / size)))

    def _settle_unclear(self, outcome: SessionResult, limit_s: float | None) -> SessionResult:
        """Distinguish infeasible from unbounded by solving without costs, if HiGHS cannot or may be wrong."""

        def without_costs() -> SessionResult:
            self.set_costs(np.zeros_like(self.matrix.c))
            again = self._run_once(limit_s)
            self.set_costs(self.matrix.c)
            return again

        if outcome.termination is not Termination.INFEASIBLE:
            return resolve_unclear(outcome, self.matrix, without_costs)
        c, lower, upper = self.matrix.c, self.matrix.lower, self.matrix.upper
        if not (((c > 0) & (lower == -inf)) | ((c < 0) & (upper == inf))).any():
            return outcome  # HiGHS's presolve calls some unbounded programs infeasible, but not this one
        free = without_costs()
        if free.termination is not Termination.OPTIMAL:
            return SessionResult(free.termination, message=free.message)
        presolve = self.highs.getOptionValue("presolve")[1]
        highs_common.set_option(self.highs, "presolve", "off")
        again = self._run_once(limit_s)
        highs_common.set_option(self.highs, "presolve", presolve)
        if again.termination is Termination.INFEASIBLE:
            return SessionResult(Termination.NUMERICAL, free.values, message="infeasible with costs only")
        return again

    def set_costs(self, c: FloatArray) -> None:
        """Replace the costs, given unscaled."""
        self.highs.changeColsCost(c.size, np.arange(c.size, dtype=np.int32), c * self.scale)
        self.highs.changeObjectiveOffset(self.matrix.offset * self.scale)

    def _set_start(self, columns: Any, values: FloatArray) -> None:
        self.highs.setSolution(columns.size, columns.astype(np.int32), values[columns])

    def _take_in_solution(self, event: Any) -> None:
        self.track.values = np.array(event.data_out.mip_solution)

    def _take_in_progress(self, event: Any) -> None:
        out = event.data_out
        self.track.tell(int(out.mip_node_count), out.mip_primal_bound, out.mip_dual_bound, self.scale)

    def _stop_if_asked(self, event: Any) -> None:
        # What was said once stays said, also in the next solve of the same model.
        event.interrupt(self.track.cancel.is_set())


class HighsCompiled(CompiledLinearModel):
    """Compiled model whose changes are made in HiGHS at once."""

    def __init__(
        self, adapter: Adapter, matrix: MatrixModel, options: SolverOptions, transfer_s: float, session: Session
    ) -> None:
        if not isinstance(session, HighsSession):
            raise TypeError("a HiGHS session is needed")
        try:
            super().__init__(adapter, matrix, options, transfer_s)
        except BaseException:
            session.close()
            raise
        if matrix.is_settled:
            # A plain solve needs no HiGHS for such a model, but rows and columns may still be added to this one.
            session.load(matrix, start=False)
        self._session = session
        self._worker = Worker("highs")
        session.keeps_duals = not matrix.is_mixed_integer

    def run(self, budget: Budget) -> tuple[SessionResult, str]:
        """Solve from the last basis."""
        if self._worker.abandoned:
            raise CwbError("HiGHS did not stop in an earlier solve of this compiled model: compile the model again")
        session = self._session
        session.threads = budget.threads
        outcome = run_session(session, self._matrix, self._worker, budget, self.assemble)
        self._scale = session.scale
        return outcome, session.version

    def native_row(self, lower: float, upper: float, columns: NDArray[np.int32], coefficients: NDArray[Any]) -> None:
        """Add a row."""
        self._require(self._session.highs.addRow(lower, upper, columns.size, columns, coefficients))

    def native_column(self, lower: float, upper: float, *, is_integer: bool) -> None:
        """Add a column."""
        highs = self._session.highs
        self._require(highs.addCol(0.0, lower, upper, 0, np.zeros(0, dtype=np.int32), np.zeros(0)))
        if is_integer:
            self._require(highs.changeColIntegrality(len(self._matrix.columns), highspy.HighsVarType.kInteger))

    def native_costs(self, c: FloatArray) -> None:
        """Replace the costs."""
        self._session.scale = self._matrix.cost_scale
        self._session.set_costs(c)

    def native_column_bounds(self, columns: NDArray[np.int32], lower: FloatArray, upper: FloatArray) -> None:
        """Replace bounds of columns."""
        self._require(self._session.highs.changeColsBounds(columns.size, columns, lower, upper))

    def native_row_bounds(self, rows: NDArray[np.int32], lower: FloatArray, upper: FloatArray) -> None:
        """Replace the sides of rows."""
        self._require(self._session.highs.changeRowsBounds(rows.size, rows, lower, upper))

    def _replace(self, **changes: Any) -> None:
        super()._replace(**changes)
        self._session.matrix = self._matrix

    @staticmethod
    def _require(status: Any) -> None:
        if status == highspy.HighsStatus.kError:
            raise CwbError("HiGHS rejects the change: a number is out of the range that it takes")
