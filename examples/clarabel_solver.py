"""A solver of one's own: Clarabel, an interior-point method for linear and convex quadratic programs.

cwb solve --plugin examples/clarabel_solver.py --solver clarabel --formulation mcf/flow "torus(3,3)" --collective
all_to_all
"""

import clarabel
import numpy as np
import scipy.sparse as sp
from cwb.core.solver import Capability, Termination
from cwb.solvers.base import THREADS, TIME_LIMIT, Adapter, Session, SessionResult, Track
from cwb.solvers.options import NativeOption, check_option

TERMINATIONS = {
    "Solved": Termination.OPTIMAL,
    "PrimalInfeasible": Termination.INFEASIBLE,
    "DualInfeasible": Termination.INFEASIBLE_OR_UNBOUNDED,
    "MaxIterations": Termination.NODE_LIMIT,
    "MaxTime": Termination.TIME_LIMIT,
    "CallbackTerminated": Termination.INTERRUPTED,
}


class Clarabel(Adapter):
    """Clarabel's name, its capabilities, and the options that cwb sets by other means."""

    name = "clarabel"
    title = "Clarabel"
    package = "clarabel"
    requirement = "clarabel"
    capabilities = Capability.LP | Capability.CONVEX_QP | Capability.INTERRUPT | Capability.DUALS | Capability.RESOLVE
    elsewhere = {"time_limit": TIME_LIMIT, "max_threads": THREADS, "tol_feas": "feasibility_tolerance"}  # noqa: RUF012

    def open(self, budget, options):
        """Begin a session."""
        return ClarabelSession(budget, options)


class ClarabelSession(Session):
    """One model inside one Clarabel: minimize 1/2 x'Px + q'x where b - Ax is zero, then not negative."""

    def __init__(self, budget, options):
        self.track, self.version = Track("clarabel"), clarabel.__version__
        self.settings = clarabel.DefaultSettings()
        self.tolerance = options.feasibility_tolerance
        self.settings.max_threads, self.settings.tol_feas = budget.threads, self.tolerance / 10
        offered = {
            n: NativeOption(type(v))
            for n in dir(self.settings)
            if type(v := getattr(self.settings, n)) in (bool, int, float)
        }
        for name, value in options.extra.items():
            setattr(self.settings, name, check_option("Clarabel", name, value, offered))
        self.settings.verbose = False

    def load(self, matrix, *, start):
        """Sort the rows by their sides; bounds of columns are rows too."""
        A = sp.vstack([matrix.A, sp.eye_array(len(matrix.columns))], format="csr")
        lower, upper = np.append(matrix.row_lower, matrix.lower), np.append(matrix.row_upper, matrix.upper)
        equal = lower == upper
        self.sides = [
            (np.flatnonzero(where), sign)
            for where, sign in ((equal, 1), (np.isfinite(upper) & ~equal, 1), (np.isfinite(lower) & ~equal, -1))
        ]
        self.A = sp.vstack([sign * A[rows] for rows, sign in self.sides], format="csc")
        self.b = np.concatenate([sign * (upper if sign > 0 else lower)[rows] for rows, sign in self.sides])
        self.matrix = matrix

    def run(self, limit_s):
        """Solve; without costs once more where it is infeasible or unbounded."""
        if limit_s is not None:
            self.settings.time_limit = limit_s
        outcome = self.solve(self.matrix.cost_scale)
        if outcome.termination is Termination.INFEASIBLE_OR_UNBOUNDED:
            feasible = self.solve(0.0).termination is Termination.OPTIMAL
            return SessionResult(Termination.UNBOUNDED if feasible else Termination.INFEASIBLE)
        return outcome

    def solve(self, scale):
        """Solve with costs times a factor."""
        m, columns = self.matrix, len(self.matrix.columns)
        P = sp.csc_array((columns, columns)) if m.Q is None else sp.triu(m.Q * scale, format="csc")
        cones = [
            clarabel.ZeroConeT(len(self.sides[0][0])),
            clarabel.NonnegativeConeT(sum(len(r) for r, _ in self.sides[1:])),
        ]
        solver = clarabel.DefaultSolver(
            sp.csc_matrix(P), m.c * scale, sp.csc_matrix(self.A), self.b, cones, self.settings
        )
        solver.set_termination_callback(lambda _: self.track.cancel.is_set())
        found = solver.solve()
        termination = TERMINATIONS.get(str(found.status), Termination.NUMERICAL)
        if termination is not Termination.OPTIMAL or scale == 0.0:
            return SessionResult(termination, message=str(found.status))
        duals, start = np.zeros(len(m.rows) + columns), 0
        for rows, sign in self.sides:
            duals[rows] -= sign * np.array(found.z[start : start + len(rows)])
            start += len(rows)
        # The dual values nearly keep to the rows of the dual, so their objective is nearly a bound.
        error = self.tolerance * (1.0 + abs(found.obj_val_dual))
        bound = (found.obj_val_dual - error) / scale + m.offset
        return SessionResult(
            termination, np.array(found.x), bound, iterations=found.iterations, duals=duals[: len(m.rows)]
        )

    def request_stop(self):
        """Ask to stop; the callback sees it."""
        self.track.cancel.set()

    def close(self):
        """Let go of everything."""
        self.A = self.b = self.matrix = None


SOLVER = Clarabel()
