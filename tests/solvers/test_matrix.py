"""A compiled model says the same as the Pyomo model it came from."""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np
import pyomo.environ as pe
import pytest
from cwb.core.errors import InputError, Unsupported
from cwb.core.solver import Termination
from cwb.solvers.matrix import compile_matrix
from draws import draws
from hypothesis import given, settings
from hypothesis import strategies as st

coefficient = st.sampled_from([-3.0, -1.0, -0.5, 0.0, 0.0, 1.0, 2.0, 7.0])
side = st.sampled_from([None, -4.0, 0.0, 2.5, 9.0])


@st.composite
def models(draw: Any) -> Any:
    """Draw a model with everything in it: rows of all kinds, fixed variables, products, constants, a sense."""
    n = draw(st.integers(1, 5))
    m = pe.ConcreteModel()
    m.x = pe.Var(range(n), domain=draw(st.sampled_from([pe.Reals, pe.NonNegativeReals, pe.Integers, pe.Binary])))
    m.y = pe.Var(bounds=(draw(st.sampled_from([None, -2.0])), draw(st.sampled_from([None, 6.0]))))
    for i in range(n):
        if draw(st.integers(0, 4)) == 0:
            m.x[i].fix(1.0)
    variables = [*m.x.values(), m.y]

    def form() -> Any:
        linear = sum(draw(coefficient) * v for v in variables) + draw(coefficient)
        if draw(st.integers(0, 2)):
            return linear
        return linear + sum(draw(coefficient) * draw(st.sampled_from(variables)) * v for v in variables)

    m.c = pe.ConstraintList()
    for _ in range(draw(st.integers(0, 5))):
        low, up = draw(side), draw(side)
        body = form() + 0 * m.y
        if low is not None and up is not None and low > up:
            low, up = up, low
        if low is not None or up is not None:
            m.c.add((low, body, up))
    m.o = pe.Objective(expr=form(), sense=draw(st.sampled_from([pe.minimize, pe.maximize])))
    return m


@pytest.mark.slow
@settings(max_examples=draws(150))
@given(models(), st.lists(st.floats(-5, 5, width=32), min_size=6, max_size=6))
def test_arrays_equal_expressions(m: Any, point: list[float]) -> None:
    """At any point the arrays give the values of the objective and of every body, and the same sides."""
    matrix = compile_matrix(m)
    free = [v for v in [*m.x.values(), m.y] if not v.fixed]
    for v, value in zip(free, point, strict=False):
        v.set_value(value, skip_validation=True)
    x = np.array([column.value for column in matrix.columns], dtype=float)
    assert matrix.sign * matrix.minimized_objective(x) == pytest.approx(pe.value(m.o.expr), abs=1e-9)
    activity = matrix.activity(x)
    kept = {id(row): i for i, row in enumerate(matrix.rows)}
    constants = matrix.body_constants()
    for constraint in m.c.values():
        body, low, up = pe.value(constraint.body), constraint.lb, constraint.ub
        if id(constraint) not in kept:
            inside = (low is None or body >= low - 1e-7) and (up is None or body <= up + 1e-7)
            assert inside or matrix.contradiction is not None
            continue
        i = kept[id(constraint)]
        assert activity[i] + constants[i] == pytest.approx(body, abs=1e-9)
        assert matrix.row_lower[i] + constants[i] == pytest.approx(-inf if low is None else low, abs=1e-9)
        assert matrix.row_upper[i] + constants[i] == pytest.approx(inf if up is None else up, abs=1e-9)
    assert not {id(column) for column in matrix.columns} & {id(v) for v in matrix.unused}
    assert len(matrix.columns) + len(matrix.unused) == len(free)


@settings(max_examples=50)
@given(models())
def test_the_model_is_left_as_it_was(m: Any) -> None:
    """Compiling changes nothing: what was set aside for a while is active again."""
    before = [(c.name, c.active) for c in m.component_data_objects((pe.Constraint, pe.Objective))]
    values = [v.value for v in m.component_data_objects(pe.Var)]
    compile_matrix(m)
    assert [(c.name, c.active) for c in m.component_data_objects((pe.Constraint, pe.Objective))] == before
    assert [v.value for v in m.component_data_objects(pe.Var)] == values


def test_range_is_one_row() -> None:
    """A range is one row with two sides, and the order of the rows is that of the model."""
    m = pe.ConcreteModel()
    m.x = pe.Var([0, 1])
    m.a = pe.Constraint(expr=m.x[0] + m.x[1] >= 1)
    m.b = pe.Constraint(expr=(2, m.x[0] - m.x[1] + 1, 5))
    m.c = pe.Constraint(expr=m.x[0] == 3)
    m.o = pe.Objective(expr=m.x[0])
    matrix = compile_matrix(m)
    assert [row.name for row in matrix.rows] == ["a", "b", "c"]
    assert matrix.row_lower.tolist() == [1, 1, 3]
    assert matrix.row_upper.tolist() == [inf, 4, 3]
    assert matrix.body_constants() == [0, 1, 0]
    assert matrix.size.nonzeros == 5


def test_constraints_that_cancel_out() -> None:
    """x - x <= -1 is false and x - x <= 1 is no row, also beside quadratic rows."""
    m = pe.ConcreteModel()
    m.x = pe.Var(bounds=(0, 1))
    m.q = pe.Constraint(expr=m.x * m.x <= 1)
    m.true = pe.Constraint(expr=m.x - m.x <= 1)
    m.o = pe.Objective(expr=m.x)
    matrix = compile_matrix(m)
    assert matrix.contradiction is None
    assert [row.name for row in matrix.rows] == ["q"]
    m.false = pe.Constraint(expr=m.x - m.x <= -1)
    assert "constraint false is false" in (compile_matrix(m).contradiction or "")
    assert compile_matrix(m).trivial_termination() is Termination.INFEASIBLE
    assert m.false.active


def test_products_that_cancel_out_are_linear() -> None:
    """x*y - x*y + x is linear, so no solver has to refuse it."""
    m = pe.ConcreteModel()
    m.x = pe.Var(bounds=(0, 4))
    m.y = pe.Var()
    m.c = pe.Constraint(expr=m.x * m.y - m.x * m.y + m.x >= 1)
    m.o = pe.Objective(expr=m.x)
    matrix = compile_matrix(m)
    assert matrix.quadratic_rows == ()
    assert matrix.row_lower.tolist() == [1.0]


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        (lambda m: 1 / m.x <= 1, "constraint c is neither linear nor quadratic"),
        (lambda m: m.x**3 <= 1, "neither linear nor quadratic"),
        (lambda m: pe.exp(m.x) <= 1, "neither linear nor quadratic"),
        (lambda m: m.x * m.y * m.x <= 1, "neither linear nor quadratic"),
    ],
)
def test_nonlinear_is_refused_by_name(expression: Any, words: str) -> None:
    """Terms that are neither linear nor quadratic are refused in a sentence that names the constraint."""
    m = pe.ConcreteModel()
    m.x = pe.Var(bounds=(1, 2))
    m.y = pe.Var(bounds=(1, 2))
    m.c = pe.Constraint(expr=expression(m))
    m.o = pe.Objective(expr=m.x)
    with pytest.raises(Unsupported, match=words):
        compile_matrix(m)
    assert m.c.active


def test_nonlinear_objective_is_refused() -> None:
    """A nonlinear objective is refused, too."""
    m = pe.ConcreteModel()
    m.x = pe.Var(bounds=(1, 2))
    m.o = pe.Objective(expr=pe.log(m.x))
    with pytest.raises(Unsupported, match="objective o is neither"):
        compile_matrix(m)


def test_two_objectives() -> None:
    """Two active objectives are an error; with one of them deactivated there is one."""
    m = pe.ConcreteModel()
    m.x = pe.Var(bounds=(0, 1))
    m.a = pe.Objective(expr=m.x)
    m.b = pe.Objective(expr=-m.x)
    with pytest.raises(InputError, match="2 active objectives, but a solver supports one: a, b"):
        compile_matrix(m)
    m.a.deactivate()
    assert compile_matrix(m).c.tolist() == [-1.0]


def test_missing_and_infinite_numbers() -> None:
    """A fixed variable without a value and an infinite coefficient are told by name."""
    m = pe.ConcreteModel()
    m.x = pe.Var()
    m.y = pe.Var()
    m.y.fix()
    m.c = pe.Constraint(expr=m.x + m.y >= 1)
    m.o = pe.Objective(expr=m.x)
    with pytest.raises(InputError, match="'y' evaluated to a nonnumeric value"):
        compile_matrix(m)
    m.y.unfix()
    m.p = pe.Param(initialize=inf, mutable=True, domain=pe.Any)
    m.d = pe.Constraint(expr=m.p * m.x + m.y >= 1)
    with pytest.raises(InputError, match="constraint d has a coefficient that is not finite"):
        compile_matrix(m)


def test_other_components_are_refused() -> None:
    """Special ordered sets and other components that a matrix cannot hold are refused, not forgotten."""
    m = pe.ConcreteModel()
    m.x = pe.Var([0, 1], bounds=(0, 1))
    m.o = pe.Objective(expr=m.x[0])
    m.s = pe.SOSConstraint(var=m.x, sos=1)
    with pytest.raises(Unsupported, match="SOSConstraint"):
        compile_matrix(m)


def test_domains_with_gaps_are_refused() -> None:
    """A domain such as {1, 3, 5} is refused instead of being taken for an interval."""
    m = pe.ConcreteModel()
    m.x = pe.Var(domain=pe.Set(initialize=[1, 3, 5]))
    m.o = pe.Objective(expr=m.x)
    with pytest.raises(Unsupported, match="variable x has the domain"):
        compile_matrix(m)


def test_bounds_are_made_alike_for_all_solvers() -> None:
    """Integer bounds lose their fractions, huge bounds are none, and dust between bounds is no contradiction."""
    m = pe.ConcreteModel()
    m.i = pe.Var(domain=pe.Integers, bounds=(0.3, 4.6))
    m.big = pe.Var(bounds=(-1e21, 1e20))
    m.dust = pe.Var(bounds=(1.0 + 1e-12, 1.0))
    m.o = pe.Objective(expr=m.i + m.big + m.dust)
    matrix = compile_matrix(m)
    assert matrix.contradiction is None
    assert matrix.lower.tolist() == [1.0, -inf, 1.0 + 1e-12]
    assert matrix.upper.tolist() == [4.0, inf, 1.0 + 1e-12]
    m.none = pe.Var(domain=pe.Integers, bounds=(0.3, 0.6))
    m.use = pe.Constraint(expr=m.none + m.i >= 0)
    assert "variable none exclude every value" in (compile_matrix(m).contradiction or "")


def test_polishing() -> None:
    """Integers within the tolerance become exact, others stay; values outside their bounds come back to them."""
    m = pe.ConcreteModel()
    m.i = pe.Var([0, 1], domain=pe.Integers, bounds=(0, 9))
    m.x = pe.Var(bounds=(0, 1))
    m.o = pe.Objective(expr=m.i[0] + m.i[1] + m.x)
    polished = compile_matrix(m).polish_point(np.array([2.000001, 3.4, -1e-9]))
    assert polished.tolist() == [2.0, 3.4, 0.0]
    assert not np.signbit(polished).any()


def test_loading() -> None:
    """Values go to free variables; an unused one keeps its value or gets the nearest to zero that it may have."""
    m = pe.ConcreteModel()
    m.x = pe.Var(bounds=(0, 9))
    m.fixed = pe.Var()
    m.fixed.fix(5.0)
    m.unused = pe.Var([0, 1], bounds=(-7, -3))
    m.unused[1].set_value(-4.0)
    m.o = pe.Objective(expr=m.x + m.fixed)
    compile_matrix(m).load(np.array([2.0]))
    assert (m.x.value, m.fixed.value, m.unused[0].value, m.unused[1].value) == (2.0, 5.0, -3, -4.0)
    assert not m.x.stale
    assert m.unused[1].stale


def test_bounds_of_whole_objectives_are_rounded_up() -> None:
    """An objective that can only be a multiple of 3, plus 1, has such bounds; one with a continuous part has not."""
    m = pe.ConcreteModel()
    m.i = pe.Var([0, 1], domain=pe.NonNegativeIntegers)
    m.x = pe.Var(bounds=(0, 1))
    m.c = pe.Constraint(expr=m.i[0] + m.x >= 1)
    m.o = pe.Objective(expr=6 * m.i[0] - 3 * m.i[1] + 1)
    matrix = compile_matrix(m)
    assert matrix.tighten_bound(1.5) == 4.0
    assert matrix.tighten_bound(4.0000001) == 4.0
    assert matrix.tighten_bound(inf) is None
    m.o.set_value(6 * m.i[0] + m.x)
    assert compile_matrix(m).tighten_bound(1.5) == 1.5


def test_cost_scale() -> None:
    """Costs below one are lifted by a power of two, others are left alone."""
    m = pe.ConcreteModel()
    m.x = pe.Var([0, 1], bounds=(0, 1))
    m.o = pe.Objective(expr=3e-9 * m.x[0] + 1e-10 * m.x[1])
    scale = compile_matrix(m).cost_scale
    assert 1.0 <= 3e-9 * scale < 2.0
    assert np.log2(scale) == round(np.log2(scale))
    m.o.set_value(1e6 * m.x[0])
    assert compile_matrix(m).cost_scale == 1.0
    m.o.set_value(0 * m.x[0])
    assert compile_matrix(m).cost_scale == 1.0


def test_templates_give_the_same_arrays() -> None:
    """Pyomo's templates, where a model asks for them, come to the same arrays."""
    from pyomo.core.base import constraint

    def build() -> Any:
        m = pe.ConcreteModel()
        m.I = pe.RangeSet(3)
        m.w = pe.Param(m.I, initialize={1: 2.0, 2: 3.0, 3: 5.0})
        m.x = pe.Var(m.I, bounds=(0, 4))
        m.c = pe.Constraint(m.I, rule=lambda m, i: (1, m.w[i] * m.x[i] + sum(m.x[j] for j in m.I), 9))
        m.o = pe.Objective(expr=sum(m.x[i] for i in m.I))
        return m

    plain = compile_matrix(build())
    before = constraint.TEMPLATIZE_CONSTRAINTS
    constraint.TEMPLATIZE_CONSTRAINTS = True
    try:
        templated = compile_matrix(build())
    finally:
        constraint.TEMPLATIZE_CONSTRAINTS = before
    assert (plain.A.toarray() == templated.A.toarray()).all()
    assert plain.row_lower.tolist() == templated.row_lower.tolist()
    assert plain.row_upper.tolist() == templated.row_upper.tolist()
