"""Of a first-order method nothing is believed: bounds are exact, points are feasible, and optimal is what is proved."""

from __future__ import annotations

from fractions import Fraction
from math import inf, isfinite

import numpy as np
import pyomo.environ as pe
import pytest
from cwb import solvers
from cwb.core.budget import Budget
from cwb.core.errors import InputError
from cwb.core.solver import SolverOptions, Termination
from cwb.solvers import first_order_session, pyomo_session
from cwb.solvers.dual_bounds import correct_multipliers, implied_bounds, lower_bound
from cwb.solvers.first_order_session import FirstOrderSession, repair_point
from cwb.solvers.matrix import compile_matrix
from cwb.solvers.options import KnownSolver
from draws import draws
from hypothesis import given, settings
from hypothesis import strategies as st

PDLP = solvers.get("highs-pdlp")
number = st.integers(-4, 4).map(lambda k: k / 3)


@st.composite
def programs(draw):
    """Small linear programs with sides and bounds of every kind, most of them feasible at 1."""
    m = pe.ConcreteModel()
    m.x = pe.Var(range(draw(st.integers(1, 4))))
    for variable in m.x.values():
        variable.setlb(draw(st.sampled_from([None, 0, -1.1])))
        variable.setub(draw(st.sampled_from([None, None, 3.3])))
    m.c = pe.ConstraintList()
    for _ in range(draw(st.integers(1, 4))):
        body = sum(draw(number) * v for v in m.x.values())
        if isinstance(body, float | int) or all(a == 0 for a in (pe.value(body, exception=False) or 0,)):
            continue
        at_one = draw(st.sampled_from([0.0, 0.7, 2.0]))
        side = draw(number)
        m.c.add({0: body <= side + at_one, 1: body >= side - at_one, 2: body == side}[draw(st.integers(0, 2))])
    m.o = pe.Objective(expr=sum(draw(number) * v for v in m.x.values()) + 0.1)
    return m


def exactly(matrix, y, lower, upper):
    """Return the value that multipliers prove, in fractions; None if they prove nothing."""
    A, total = matrix.A.toarray(), Fraction(matrix.offset)
    for i, factor in enumerate(y.tolist()):
        side = matrix.row_lower[i] if factor > 0 else matrix.row_upper[i]
        if factor and isfinite(side):
            total += Fraction(factor) * Fraction(side)
    used = [factor if isfinite(matrix.row_lower[i] if factor > 0 else matrix.row_upper[i]) else 0.0
            for i, factor in enumerate(y.tolist())]  # fmt: skip
    for j in range(len(matrix.columns)):
        d = Fraction(matrix.c[j]) - sum(Fraction(A[i, j]) * Fraction(used[i]) for i in range(len(used)))
        side = lower[j] if d > 0 else upper[j]
        if d and not isfinite(side):
            return None
        total += d * Fraction(side) if d else 0
    return total


@settings(max_examples=draws(60), deadline=None)
@given(programs(), st.lists(st.floats(-5, 5), min_size=4, max_size=4))
def test_a_bound_is_never_more_than_the_multipliers_prove(model, multipliers):
    """Whatever the multipliers are, the bound is at most what they prove in exact arithmetic, and nearly that."""
    matrix = compile_matrix(model)
    if matrix.is_settled:
        return
    y = np.array(multipliers[: len(matrix.rows)])
    bounds = implied_bounds(matrix)
    for each in (y, correct_multipliers(matrix, y, *bounds)):
        bound, proved = lower_bound(matrix, each, *bounds), exactly(matrix, each, *bounds)
        if bound is not None:
            assert proved is not None
            assert Fraction(bound) <= proved
            assert float(proved) - bound <= 1e-9 * (1 + abs(float(proved)))


@settings(max_examples=draws(40), deadline=None)
@given(programs())
def test_it_agrees_with_the_simplex_method_or_says_less(model):
    """Optimal and infeasible are claimed where they are true, and every bound and every point is right."""
    matrix = compile_matrix(model)
    result = PDLP.solve(model, Budget(time_limit_s=5.0), SolverOptions(extra={"pdlp_iteration_limit": 20_000}))
    if result.has_solution:
        assert matrix.violation(np.array([v.value for v in matrix.columns])) <= 1e-7
    exact = solvers.get("highs").solve(model, Budget())
    if result.termination is Termination.OPTIMAL:
        assert exact.termination is Termination.OPTIMAL
        assert result.gap is not None
        assert result.objective is not None
        assert exact.objective is not None
        assert abs(result.objective - exact.objective) <= 2e-6 * (1 + abs(exact.objective))
    if result.termination is Termination.INFEASIBLE:
        assert exact.termination is Termination.INFEASIBLE
    if result.bound is not None and exact.objective is not None:
        assert result.bound <= exact.objective + 1e-6 * (1 + abs(exact.objective))


def test_rows_imply_bounds_along_a_chain():
    """A variable without a bound gets one from its row, and so do those that follow from it."""
    m = pe.ConcreteModel()
    m.x = pe.Var(range(4), domain=pe.NonNegativeReals)
    m.z = pe.Var()
    m.first = pe.Constraint(expr=2 * m.x[0] <= 6)
    m.chain = pe.Constraint([1, 2, 3], rule=lambda m, k: m.x[k] <= m.x[k - 1] + 1)
    m.free = pe.Constraint(expr=m.z + m.x[3] == 1)
    m.o = pe.Objective(expr=m.z)
    lower, upper = implied_bounds(compile_matrix(m))
    names = {v.name: j for j, v in enumerate(compile_matrix(m).columns)}
    for k in range(4):
        assert upper[names[f"x[{k}]"]] == pytest.approx(3 + k, abs=1e-6)
        assert upper[names[f"x[{k}]"]] >= 3 + k
    assert lower[names["z"]] == pytest.approx(-5, abs=1e-6)


def test_variables_that_only_the_objective_limits():
    """If no row bounds a variable, the points better than a known one are bounded, which is enough."""
    m = pe.ConcreteModel()
    m.flow = pe.Var(range(3), domain=pe.NonNegativeReals)
    m.time = pe.Var(domain=pe.NonNegativeReals)
    m.all = pe.Constraint(expr=sum(m.flow.values()) >= 7)
    m.most = pe.Constraint(range(3), rule=lambda m, k: m.flow[k] <= (k + 1) / 3 * m.time)
    m.o = pe.Objective(expr=m.time)
    assert np.isinf(implied_bounds(compile_matrix(m))[1]).all()
    result = PDLP.solve(m, Budget())
    assert result.termination is Termination.OPTIMAL
    assert result.bound == pytest.approx(3.5, rel=1e-6)
    assert result.bound is not None
    assert result.bound <= 3.5


def flow():
    """The most that three links in a row carry."""
    m = pe.ConcreteModel()
    m.f = pe.Var(range(3), bounds=(0, 4))
    m.f[1].setub(2.5)
    m.pass_on = pe.Constraint([1, 2], rule=lambda m, k: m.f[k] <= m.f[k - 1])
    m.o = pe.Objective(expr=m.f[2], sense=pe.maximize)
    return m


@pytest.mark.parametrize(
    ("x", "y", "says"),
    [
        ([4.0, 4.0, 4.0], [0.0, 0.0], "violate a row"),
        ([0.0, 0.0, 0.0], [0.0, -1.0], "proved gap"),
        ([2.5, 2.5, 2.4], [0.0, -1.0], "proved gap"),
        ([9.0, -3.0, 7.0], [5.0, 5.0], "proved gap"),
        ([2.5, 2.5, 2.5], [np.nan, inf], "proved gap"),
        (None, None, "no solution"),
    ],
)
def test_a_first_order_method_that_lies_is_not_believed(monkeypatch, x, y, says):
    """Wrong points, wrong multipliers and none at all never end as optimal or infeasible, whatever was said of them."""

    def lie(*_, **__):
        return (None, None) if x is None else (np.array(x), np.array(y))

    monkeypatch.setattr(FirstOrderSession, "_run_once", lie)
    monkeypatch.setattr(first_order_session, "least_violation", lambda matrix, bounds: matrix)
    model = flow()
    result = PDLP.solve(model, Budget())
    assert result.termination is Termination.NUMERICAL
    assert says in result.message
    assert result.bound is None or result.bound >= 2.5
    assert result.objective is None or result.objective <= 2.5 + 1e-6


def test_a_point_is_put_onto_its_rows_and_bounds():
    """A point that violates rows by a little is moved by about as much, and nearly active bounds become active."""
    matrix = compile_matrix(flow())
    x, violation = repair_point(matrix, np.array([2.6, 2.4999999, 2.5000002]), 1e-9)
    assert violation <= 1e-9
    assert x.tolist() == pytest.approx([2.6, 2.5, 2.5], abs=1e-6)
    assert x[1] == 2.5


def test_both_implementations_and_no_other():
    """HiGHS's newer implementation can be chosen; its simplex method, a log file and integers are refused."""
    result = PDLP.solve(flow(), Budget(), SolverOptions(extra={"solver": "hipdlp"}))
    assert result.termination is Termination.OPTIMAL
    assert result.objective == pytest.approx(2.5)
    with pytest.raises(InputError, match="expected pdlp or hipdlp"):
        PDLP.solve(flow(), Budget(), SolverOptions(extra={"solver": "simplex"}))
    with pytest.raises(InputError, match="log file"):
        PDLP.solve(flow(), Budget(log_file="/dev/null"))


def test_no_bound_is_taken_of_a_driven_first_order_method(monkeypatch, require_solver):
    """A solver of Pyomo's that may use a first-order method is taken at its point, not at its word."""
    glpk = require_solver("pyomo:glpk")
    monkeypatch.setattr(pyomo_session, "known_solver", lambda name: KnownSolver(is_first_order=True))
    result = glpk.solve(flow(), Budget())
    assert result.termination is Termination.NUMERICAL
    assert result.objective == pytest.approx(2.5)
    assert result.bound is None
