"""Linear model that stays inside HiGHS, for changes and re-solves from the last basis."""

from __future__ import annotations

from typing import Any

import highspy
import numpy as np
from numpy.typing import NDArray

from ..core.budget import Budget
from ..core.errors import CwbError
from ..core.solver import SolverOptions
from .base import Adapter
from .compiled_model import CompiledLinearModel
from .guard import Worker
from .guarded_solve import run_session
from .highs_session import HighsSession
from .matrix import MatrixModel
from .session import Session, SessionResult


class HighsCompiled(CompiledLinearModel):
    """Compiled model whose changes are made in HiGHS at once.

    Other parameters are those of :class:`~cwb.solvers.compiled_model.CompiledLinearModel`.
    """

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

    def native_costs(self, c: NDArray[np.float64]) -> None:
        """Replace the costs."""
        self._session.scale = self._matrix.cost_scale
        self._session.set_costs(c)

    def native_column_bounds(
        self, columns: NDArray[np.int32], lower: NDArray[np.float64], upper: NDArray[np.float64]
    ) -> None:
        """Replace bounds of columns."""
        self._require(self._session.highs.changeColsBounds(columns.size, columns, lower, upper))

    def native_row_bounds(
        self, rows: NDArray[np.int32], lower: NDArray[np.float64], upper: NDArray[np.float64]
    ) -> None:
        """Replace the sides of rows."""
        self._require(self._session.highs.changeRowsBounds(rows.size, rows, lower, upper))

    def _replace(self, **changes: Any) -> None:
        super()._replace(**changes)
        self._session.matrix = self._matrix

    @staticmethod
    def _require(status: Any) -> None:
        if status == highspy.HighsStatus.kError:
            raise CwbError("HiGHS rejects the change: a number is out of the range that it takes")
