"""Models of plain sums are read into the same arrays that Pyomo's compiler gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyomo.environ as pe
import pytest
from cwb.solvers import linearize
from cwb.solvers.plain_rows import NotPlain, PlainRows
from draws import draws
from hypothesis import given, settings
from hypothesis import strategies as st
from pyomo.core.expr import LinearExpression

number = st.sampled_from([-3.0, -1, -0.5, 1, 1.0, 2, 7.5])


@st.composite
def plain_models(draw: Any) -> Any:
    """Draw a model of plain sums: variables in two components, constants on both sides, rows of every kind."""
    m = pe.ConcreteModel()
    m.x = pe.Var(range(draw(st.integers(1, 4))), domain=draw(st.sampled_from([pe.Reals, pe.Binary])))
    m.y = pe.Var(bounds=(0, 3))
    variables = st.sampled_from([*m.x.values(), m.y])

    def form() -> Any:
        terms = draw(st.lists(st.tuples(number, variables), min_size=1, max_size=4))
        way = draw(st.integers(0, 4))
        if way == 0:
            return terms[0][1]
        if way == 1:
            return LinearExpression([v for _, v in terms])
        if way == 2:
            return pe.quicksum(a * v for a, v in terms) + draw(number)
        if way == 3:
            return sum(v for _, v in terms) + (terms[0][1] - terms[0][0])
        return terms[0][0] * terms[0][1]

    m.c = pe.ConstraintList()
    for _ in range(draw(st.integers(1, 6))):
        kind = draw(st.sampled_from(["le", "ge", "eq", "range", "both", "both equal", "left"]))
        body, side = form(), draw(number)
        row = {
            "le": lambda b=body, s=side: b <= s,
            "ge": lambda b=body, s=side: b >= s,
            "eq": lambda b=body, s=side: b == s,
            "range": lambda b=body, s=side: (s, b, s + 2),
            "both": lambda b=body: b <= form(),
            "both equal": lambda b=body: b == form(),
            "left": lambda b=body, s=side: s == b,
        }[kind]()
        if not isinstance(row, bool):
            m.c.add(row)
    if draw(st.booleans()):
        m.o = pe.Objective(expr=form(), sense=draw(st.sampled_from([pe.minimize, pe.maximize])))
    return m


def objective_of(m: Any) -> Any:
    """Objective, or None."""
    return m.component("o")


@pytest.mark.slow
@settings(max_examples=draws(200))
@given(plain_models())
def test_both_ways_give_the_same_arrays(m: Any) -> None:
    """Rows, columns, sides and coefficients are those of Pyomo's compiler, in its order."""
    try:
        mine = linearize.from_plain_rows(m, objective_of(m))
    except NotPlain:  # a row in which everything cancels out
        return
    theirs = linearize.from_compiler(m, objective_of(m))
    for name in ("columns", "rows", "unused"):
        assert [id(a) for a in getattr(mine, name)] == [id(a) for a in getattr(theirs, name)], name
    assert (mine.sign, mine.contradiction) == (theirs.sign, theirs.contradiction)
    assert mine.offset == pytest.approx(theirs.offset)
    for name in ("c", "row_lower", "row_upper"):
        assert np.allclose(getattr(mine, name), getattr(theirs, name), atol=1e-12), name
    assert np.array_equal(mine.A.toarray(), theirs.A.toarray())
    assert (mine.A.nnz, mine.A.shape) == (theirs.A.nnz, theirs.A.shape)


def model(expression: Any) -> Any:
    """A model with one row."""
    m = pe.ConcreteModel()
    m.x = pe.Var([0, 1], bounds=(0, 1))
    m.p = pe.Param(initialize=2.0, mutable=True)
    m.c = pe.Constraint(expr=expression(m))
    return m


@pytest.mark.parametrize(
    "expression",
    [
        lambda m: m.x[0] * m.x[1] <= 1,
        lambda m: m.p * m.x[0] <= 1,
        lambda m: m.x[0] <= m.p,
        lambda m: pe.inequality(0, m.x[0], m.p),
        lambda m: m.x[0] - m.x[0] <= 1,
        lambda m: 1 / (1 + m.x[0]) <= 1,
        lambda m: float("nan") * m.x[0] <= 1,
    ],
    ids=["product", "parameter", "side", "range", "cancels", "quotient", "not a number"],
)
def test_the_rest_is_left_to_the_compiler(expression: Any) -> None:
    """Rules that are no plain sum are refused instead of misread."""
    with pytest.raises(NotPlain):
        PlainRows(model(expression), None)


def test_fixed_variables_are_left_to_the_compiler() -> None:
    """A fixed variable is a constant, which the plain reader does not know."""
    m = model(lambda m: m.x[0] + m.x[1] <= 1)
    assert len(PlainRows(m, None).columns) == 2
    m.x[1].fix(1)
    with pytest.raises(NotPlain):
        PlainRows(m, None)
    assert linearize.linear_parts(m).row_upper.tolist() == [0.0]
