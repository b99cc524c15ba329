"""Variables whose objects are created late are those that Pyomo creates at once."""

from __future__ import annotations

import pickle

import numpy as np
import pyomo.environ as pyo
import pytest
from cwb.core.budget import Budget
from cwb.core.errors import InputError
from cwb.core.rows import Variables, array_rows, rows
from cwb.core.variables import is_lazy
from cwb.solvers import get
from cwb.solvers.matrix import compile_matrix
from pyomo.core.base.var import IndexedVar

SLOTS = ("_value", "_lb", "_ub", "_domain", "_fixed", "_stale", "_index")


def flow(kind, **keywords):
    """A model with two rows for each of four links, over variables of this kind."""
    m = pyo.ConcreteModel()
    m.E, m.T = pyo.RangeSet(0, 3), pyo.RangeSet(0, 2)
    m.x = kind(m.E, m.T, **({"domain": pyo.NonNegativeReals} | keywords))
    m.idle = kind(m.E, bounds=(2, 5))

    @rows(m, m.E, [0, 1])
    def loads(m, e, t):
        return m.x[e, t] + 2 * m.x[e, t + 1] >= 3 + e

    @rows(m, m.T)
    def most(m, t):
        return sum(m.x[e, t] for e in m.E) <= 20

    m.z = pyo.Var(bounds=(0, 9))
    m.objective = pyo.Objective(expr=m.z, sense=pyo.minimize)
    return m


def objects(component):
    """Index and contents of every variable."""
    return [(key, v.name, *(getattr(v, slot) for slot in SLOTS)) for key, v in component.items()]


@pytest.mark.parametrize(
    "keywords",
    [{}, {"domain": pyo.Binary}, {"bounds": (0, 4)}, {"bounds": (None, 7.5), "domain": pyo.Integers}, {"dense": False}],
)
def test_the_objects_are_those_of_pyomo(keywords):
    """All variables have the contents and the order that Pyomo gives them, once one is accessed."""
    late, plain = flow(Variables, **keywords), flow(pyo.Var, **keywords)
    assert is_lazy(late.x) is ("dense" not in keywords)
    assert len(late.x) == len(plain.x)
    assert ((0, 1) in late.x, (9, 9) in late.x) == ((0, 1) in plain.x, (9, 9) in plain.x)
    assert is_lazy(late.x) is ("dense" not in keywords)
    assert objects(late.x) == objects(plain.x)
    assert type(late.x) is IndexedVar


@pytest.mark.parametrize(
    "keywords",
    [{"initialize": 1.0}, {"bounds": lambda m, e, t: (0, e)}, {"domain": lambda m, e, t: pyo.Reals}],
)
def test_variables_that_differ_are_created_at_once(keywords):
    """A rule for bounds or domain, and an initial value, leave nothing to wait for."""
    late, plain = flow(Variables, **keywords), flow(pyo.Var, **keywords)
    assert type(late.x) is IndexedVar
    assert objects(late.x) == objects(plain.x)


def test_declaring_and_compiling_create_no_objects():
    """The arrays are those of a model whose variables exist, names included, which ends the waiting."""
    late, plain = flow(Variables), flow(pyo.Var)
    fast, slow = compile_matrix(late), compile_matrix(plain)
    assert is_lazy(late.x) and is_lazy(late.idle)
    for part in ("c", "row_lower", "row_upper", "lower", "upper", "integer"):
        np.testing.assert_array_equal(getattr(fast, part), getattr(slow, part))
    assert (fast.A != slow.A).nnz == 0
    assert len(fast.columns) == 13 and len(fast.unused) == 4
    assert is_lazy(late.x)
    assert [v.name for v in fast.columns] == [v.name for v in slow.columns]
    assert [v.name for v in fast.unused] == [v.name for v in slow.unused]


def test_a_solution_is_loaded():
    """Values after a solve are those of plain variables, of unused ones too."""
    values = []
    for kind in (Variables, pyo.Var):
        m = flow(kind)
        get("highs").solve(m, Budget())
        values.append([(v.name, v.value, v.stale) for v in m.component_data_objects(pyo.Var)])
    assert values[0] == values[1]
    assert all(value is not None for _, value, _ in values[0])


def test_an_index_set_that_changes_is_an_error():
    """Variables that wait cannot be created for another index set than they were declared for."""
    m = pyo.ConcreteModel()
    m.I = pyo.Set(initialize=[1, 2])
    m.x = Variables(m.I)
    m.I.add(3)
    with pytest.raises(InputError, match="an index set of x has changed since its declaration"):
        _ = m.x[1]


def test_bounds_that_exclude_every_value_are_found_while_they_wait():
    """A contradiction of bounds is found in used and in unused variables."""
    for keywords in ({"bounds": (3, 2)}, {}):
        m = flow(Variables, **keywords)
        if not keywords:
            m.empty = Variables(m.E, bounds=(3, 2))
        name = "x[0,0]" if keywords else "empty[0]"
        assert compile_matrix(m).contradiction == f"the bounds of variable {name} exclude every value: 3 to 2"


def test_a_change_of_one_variable_counts():
    """A variable that is fixed or bounded after the declaration is compiled so, and rows are still read by arrays."""
    compiled = []
    for kind in (Variables, pyo.Var):
        m = flow(kind)
        m.x[1, 1].fix(2.0)
        m.x[2, 0].setub(4.0)
        assert array_rows(m.loads) is not None
        matrix = compile_matrix(m)
        compiled.append((matrix.A.toarray().tolist(), matrix.upper.tolist(), matrix.row_lower.tolist()))
    assert compiled[0] == compiled[1]


def test_a_model_that_waits_is_cloned_and_pickled():
    """Copies have the same variables and rows."""
    m = flow(Variables)
    for copy in (pickle.loads(pickle.dumps(m)), m.clone()):  # noqa: S301 - its own
        matrix = compile_matrix(copy)
        assert [v.name for v in matrix.columns] == [v.name for v in compile_matrix(flow(pyo.Var)).columns]
        assert all(v.model() is copy for v in matrix.columns)
        assert str(copy.loads[1, 1].expr) == str(flow(pyo.Var).loads[1, 1].expr)


def test_a_change_of_a_copy_counts():
    """A copy of a model that waits is compiled with its own bounds and domains, as relaxations need them."""
    compiled = []
    for kind in (Variables, pyo.Var):
        m = flow(kind, domain=pyo.Integers, bounds=(0, 9))
        relaxed = pyo.TransformationFactory("core.relax_integer_vars").create_using(m)
        relaxed.x[1, 1].setub(4.0)
        matrices = compile_matrix(m), compile_matrix(relaxed)
        compiled.append([(matrix.upper.tolist(), matrix.integer.tolist()) for matrix in matrices])
    assert compiled[0] == compiled[1]
    assert compiled[0][0] != compiled[0][1]


def test_references_have_no_columns():
    """A reference to variables adds neither columns nor unused variables."""
    m = flow(Variables)
    m.other = pyo.Reference(m.x[:, 1])
    matrix = compile_matrix(m)
    assert len(matrix.columns) == 13
    assert {id(v) for v in matrix.unused} == {id(v) for v in m.idle.values()}
