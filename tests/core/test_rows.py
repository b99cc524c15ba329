"""Rules of constraints that are called once for all rows say what they say row by row, or are called row by row."""

from __future__ import annotations

import pickle
from functools import reduce
from itertools import islice
from types import SimpleNamespace

import numpy as np
import pyomo.environ as pyo
import pytest
from cwb.core.rows import Lists, Table, Variables, array_rows, row_by_row_reasons, rows, var_or_zero
from cwb.solvers.matrix import compile_matrix
from draws import draws
from hypothesis import given, settings
from hypothesis import strategies as st
from row_by_row import force_row_by_row


def network(rules, *, nodes=4, epochs=5):
    """A model with flows over a few links and the constraints that ``rules(m, data)`` declares."""
    m = pyo.ConcreteModel()
    m.V = pyo.RangeSet(0, nodes - 1)
    m.T = pyo.Set(initialize=list(range(3, 3 + epochs)))
    links = [(a, b) for a in range(nodes) for b in range(nodes) if (a + b) % 3]
    m.E = pyo.Set(initialize=[10 * e for e in range(len(links))])
    m.weight = pyo.Param(m.E, initialize={10 * e: 0.5 * e for e in range(len(links))})
    m.x = Variables(m.E, m.T, domain=pyo.NonNegativeReals)
    some = [(v, t) for v in m.V for t in m.T if (v + t) % 2]
    m.y = pyo.Var(some, bounds=(0, 3))
    m.z = pyo.Var()
    leaving = Lists()
    for e, (a, _) in enumerate(links):
        leaving[a].append(10 * e)
    cost = Table((10 * e, float(e) - 2.0) for e in range(len(links)))
    rules(m, leaving, cost)
    m.objective = pyo.Objective(expr=m.z)
    return m


def conservation(m, leaving, cost):
    """Sums over lists, indices with arithmetic, variables that may be missing, nested sums and numbers by index."""

    @rows(m, m.V, m.T)
    def balance(m, v, t):
        sent = sum(cost[e] * m.x[e, t] for e in leaving[v])
        return sent + var_or_zero(m.y, v, t + 1) - 2 * var_or_zero(m.y, v, t) <= 3 * m.z + t / 2 - 1

    @rows(m, m.V)
    def total(m, v):
        return sum(m.x[0, t] for t in m.T) == sum(m.weight[e] * (m.x[e, t] - 1) for e in leaving[v] for t in m.T)

    @rows(m, m.E, m.T)
    def most(m, e, t):
        return 0.25, (m.x[e, t] + m.z) / 2, cost.get(e, 0.0) + 100

    @rows(m, list(m.y))
    def departures(m, v, t):
        return 1 - m.y[v, t] >= -sum(m.x[e, 3] for e in leaving[v])


def dense(m):
    """Compiled, with the rows by name."""
    matrix = compile_matrix(m)
    return (
        [v.name for v in matrix.columns],
        [c.name for c in matrix.rows],
        matrix.A.toarray().tolist(),
        matrix.row_lower.tolist(),
        matrix.row_upper.tolist(),
    )


def test_rows_by_arrays_are_the_rows_one_by_one():
    """Every kind of term that rules have gives the same rows by arrays as one by one."""
    fast = network(conservation)
    with force_row_by_row():
        slow = network(conservation)
    for name in ("balance", "total", "most", "departures"):
        assert array_rows(fast.component(name)) is not None, name
        assert array_rows(slow.component(name)) is None
    assert dense(fast) == dense(slow)


def test_a_model_can_be_pickled():
    """An unpickled model has the same rows, still by arrays, though their rules are nested functions."""
    m = network(conservation)
    again = pickle.loads(pickle.dumps(m))  # noqa: S301 - its own
    assert array_rows(again.balance) is not None
    same, other = compile_matrix(m), compile_matrix(again)
    assert (same.A != other.A).nnz == 0
    assert (same.row_lower.tolist(), same.row_upper.tolist()) == (other.row_lower.tolist(), other.row_upper.tolist())
    assert str(again.total[1].expr) == str(m.total[1].expr)


def test_a_row_is_written_out_when_somebody_looks():
    """The expression of a row says what its rule says, and looking at it changes nothing for the compiler."""
    seen, unseen = network(conservation), network(conservation)
    said = str(seen.departures[1, 4].expr)
    assert " ".join(said.split()) == "- x[20,3] - x[30,3] - x[40,3] + y[1,4] <= 1"
    assert seen.total[1].equality
    assert seen.most[0, 3].lb == 0.25
    assert array_rows(seen.most) is None
    assert array_rows(seen.balance) is not None
    assert dense(seen) == dense(unseen)


@pytest.mark.parametrize("change", ["deactivate", "delete", "replace", "fix"])
def test_changes_after_the_declaration_count(change):
    """A row that is deactivated, deleted or replaced, and a variable that is fixed, are compiled as they are then."""

    def make_model():
        m = network(conservation)
        if change == "deactivate":
            m.balance[2, 5].deactivate()
        elif change == "delete":
            del m.balance[2, 5]
        elif change == "replace":
            m.balance[2, 5].set_value(m.z <= 7)
        else:
            m.x[0, 3].fix(2.0)
        return m

    fast = make_model()
    with force_row_by_row():
        slow = make_model()
    assert dense(fast) == dense(slow)
    assert dense(fast) != dense(network(conservation))


def odd_rules():
    """Rules that arrays cannot say, or would say wrongly."""
    plain = {0: 1.0, 1: 2.0, 2: 3.0, 3: 4.0}
    return {
        "condition": lambda m, v: m.z >= 1 if v == 2 else m.z <= 5,
        "truth": lambda m, v: m.z + (1 if v else 2) <= 5,
        "dictionary": lambda m, v: plain[v] * m.z <= 5,
        "membership": lambda m, v: m.z <= (1 if v in plain else 2),
        "range": lambda m, v: sum(m.x[0, t] for t in range(3, 4 + v)) <= 1,
        "filter": lambda m, v: sum(m.x[e, 3] for e in m.E if e != 10 * v) <= 1,
        "largest": lambda m, v: max(m.weight[e] for e in m.E) * m.z <= 5,
        "first": lambda m, v: next(m.x[e, 3] for e in m.E) <= v,
        "length": lambda m, v: len(list(m.E)) * m.z <= v,
        "count": lambda m, v: sum(1 for _ in m.E) * m.z <= v,
        "loop": lambda m, v: looped_sum(m, v) <= 5,
        "product": lambda m, v: m.z * m.x[0, 3] <= v,
        "power": lambda m, v: m.z * (v + 1) ** 2 <= 5,
        "rounded": lambda m, v: m.z * float(v) <= 5,
        "skip": lambda m, v: pyo.Constraint.Skip if v else m.z <= 5,
    }


def looped_sum(m, v):
    """A sum that begins before its loop."""
    total = m.z
    for e in m.E:
        total = total + v * m.x[e, 3]
    return total


def lengths():
    """Rules that are told from others only in rows whose loops are longer or shorter."""
    plain = {"2": 5.0, 2: 5.0}

    def caught_row(m, v):
        try:
            return m.z <= plain[v]
        except Exception:
            return m.z <= 0

    return {
        "count": lambda m, v, out: sum(1 for _ in out[v]) * m.z <= 5,
        "few": lambda m, v, out: sum(m.x[e, 3] for k, e in enumerate(out[v]) if k < 1) <= m.z,
        "islice": lambda m, v, out: sum(m.x[e, 3] for e in islice(out[v], 2)) <= m.z,
        "zip": lambda m, v, out: sum(w * m.x[e, 3] for e, w in zip(out[v], range(9), strict=False)) <= m.z,
        "list": lambda m, v, out: sum([m.x[e, 3] for e in out[v]][:1]) <= m.z,
        "largest": lambda m, v, out: m.z <= max((sum(e + t for t in m.T) for e in out[v]), default=1),
        "reduce": lambda m, v, out: reduce(lambda s, e: 2 * s + m.x[e, 3], out[v], 0) <= m.z,
        "any": lambda m, v, out: m.z <= v if [0 for _ in out[v]] else pyo.Constraint.Skip,
        "text": lambda m, v, out: m.z <= plain.get(str(v), 0),
        "format": lambda m, v, out: m.z <= plain.get(f"{v}", 0),
        "caught": lambda m, v, out: caught_row(m, v),
        "overflow": lambda m, v, out: m.z <= v * (6 - v) * (v - 3) * 10**9 * 10**9,
    }


@pytest.mark.parametrize("name", lengths())
def test_rows_are_compared_for_every_length_of_a_loop(name):
    """Rules that count elements, or continue after an exception, are detected although the first and last rows look
    alike."""

    def declare_rows():
        m = pyo.ConcreteModel()
        m.V, m.T = pyo.RangeSet(0, 6), pyo.RangeSet(3, 4)
        m.x, m.z = Variables(range(12), m.T), pyo.Var()
        out = Lists((v, range(v, v + count)) for v, count in enumerate([1, 2, 0, 1, 3, 5, 1]))

        @rows(m, m.V)
        def odd(m, v):
            return lengths()[name](m, v, out)

        m.objective = pyo.Objective(expr=m.z)
        return dense(m)

    with force_row_by_row():
        slow = declare_rows()
    assert declare_rows() == slow


def test_a_division_by_zero_in_any_row_is_an_error():
    """No row gets an infinite side because numpy would go on."""

    def declare(m, *_):
        @rows(m, m.T)
        def wrong(m, t):
            return m.z <= 1 / (t - 4)

    with pytest.raises(ZeroDivisionError):
        network(declare)


@pytest.mark.parametrize("is_seen", [False, True])
def test_data_and_variables_that_come_later_change_no_row(is_seen):
    """A row is what its rule said when it was declared, also if it is looked at when data and variables are others."""

    def declare_rows():
        m = pyo.ConcreteModel()
        m.I, m.T = pyo.Set(initialize=range(6)), pyo.Set(initialize=[0, 1])
        m.x, m.y = pyo.Var(m.I, m.T), pyo.Var(m.I)
        most = Table((i, 1.0 + i) for i in range(6))
        for name, factor in (("once", 1), ("twice", 2)):

            def rule(m, i):
                return m.x[i, 1] <= factor * most[i] + var_or_zero(m.y, i + 1)  # noqa: B023 - meant

            rule.__name__ = name
            rows(m, m.I)(rule)
        most[2] = 50.0
        m.T.add(2)
        for i in m.I if is_seen else ():
            m.x.add((i, 2))
        if is_seen:
            m.x[1, 1].fix(0.5)
        m.objective = pyo.Objective(expr=m.y[0])
        return dense(m)

    with force_row_by_row():
        slow = declare_rows()
    fast = declare_rows()
    assert sorted(named_rows(fast)) == sorted(named_rows(slow))


def named_rows(compiled):
    """The rows with the names of their variables."""
    columns, names, matrix, lower, upper = compiled
    for name, row, low, up in zip(names, matrix, lower, upper, strict=True):
        yield name, sorted((v, a) for v, a in zip(columns, row, strict=True) if a), low + 0.0, up + 0.0


@pytest.mark.parametrize("name", odd_rules())
def test_what_arrays_cannot_say_is_said_row_by_row(name):
    """A rule with conditions, ranges, lengths or other things of single rows makes the rows that Pyomo makes."""
    rule = odd_rules()[name]

    def declare(m, *_):
        def odd(m, v):
            return rule(m, v)

        rows(m, m.V)(odd)

    fast = network(declare)
    with force_row_by_row():
        slow = network(declare)
    assert [str(c.expr) for c in fast.odd.values()] == [str(c.expr) for c in slow.odd.values()]


def test_a_row_that_says_nothing_is_left_out():
    """Rows without variables that are true are left out; a false one is the error that it always is."""

    def declare(m, leaving, cost):
        @rows(m, m.V, list(range(3)))
        def some(m, v, t):
            return sum(var_or_zero(m.y, u, t) for u in leaving[v] if u < 0) + var_or_zero(m.y, v, t) <= 4

        @rows(m, m.V, m.T)
        def others(m, v, t):
            return var_or_zero(m.y, v, t) <= 4

    m = network(declare)
    assert len(m.some) == 0
    assert len(m.others) == len(m.y)
    assert array_rows(m.others) is not None

    def false(m, *_):
        @rows(m, m.V, m.T)
        def never(m, v, t):
            return var_or_zero(m.y, v, t) >= 4

    with pytest.raises(ValueError, match="trivial"):
        network(false)


def test_errors_are_those_of_a_single_row():
    """A rule that asks for a variable that there is not raises the error that Pyomo raises."""

    def declare(m, *_):
        @rows(m, m.V)
        def wrong(m, v):
            return m.x[5, v] <= 1

    with pytest.raises(KeyError, match="not valid for indexed component"):
        network(declare)


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.tuples(st.integers(-9, 9), st.integers(-9, 9), st.floats(-4, 4)), min_size=3, max_size=12), st.data()
)
def test_any_index_is_found(keys, data):
    """Sparse and negative indices are found where they are, and missing ones are missing."""
    shift = data.draw(st.integers(-2, 2))
    numbers = {(1000003 * a, b): c for a, b, c in keys}

    def declare():
        m = pyo.ConcreteModel()
        m.x = Variables(list(numbers))
        m.z = pyo.Var()
        table = Table(numbers)

        @rows(m, list(numbers))
        def near(m, a, b):
            return m.x[a, b] + var_or_zero(m.x, a, b + shift) - m.z <= table.get((a, b + shift), 7) + table[a, b]

        return m

    fast = declare()
    with force_row_by_row():
        slow = declare()
    assert (array_rows(fast.near) is not None) == (len(numbers) >= 3)
    fast_rows, slow_rows = compile_matrix(fast), compile_matrix(slow)
    np.testing.assert_array_equal(fast_rows.A.toarray(), slow_rows.A.toarray())
    np.testing.assert_array_equal(fast_rows.row_upper, slow_rows.row_upper)


#: Terms of one row: variables with one and two indices that may be missing, sums over lists and sets, one in another.
TERMS = [
    lambda m, d, v, t: m.x[v, t],
    lambda m, d, v, t: m.z / 2 - 3,
    lambda m, d, v, t: var_or_zero(m.y, v - 2),
    lambda m, d, v, t: d.cost[v] * var_or_zero(m.x, v + 1, t - 1),
    lambda m, d, v, t: sum(m.x[u, t] for u in d.out[v]),
    lambda m, d, v, t: sum(d.cost[u] * var_or_zero(m.x, u, s + 1) - v for u in d.out[v] for s in m.T),
    lambda m, d, v, t: d.some.get((v, t), -1.0) * sum(m.x[v, s] + m.z for s in m.T),
    lambda m, d, v, t: sum(d.cost[u] for u in d.out[v]) * m.z + t % 2,
    lambda m, d, v, t: m.p[v] * sum(sum(m.x[w, t] for w in d.out[u]) - m.x[u, t] for u in d.out[v]),
    lambda m, d, v, t: v // 2 - d.cost[v],
]


@settings(max_examples=draws(30), deadline=None)
@given(
    st.lists(st.lists(st.integers(0, 5), max_size=4), min_size=6, max_size=6),
    st.lists(st.tuples(st.sampled_from(TERMS), st.sampled_from([-2, 1, 0.5]), st.booleans()), min_size=1, max_size=4),
    st.sampled_from(["<=", ">=", "=="]),
    st.booleans(),
)
def test_any_sum_of_terms_is_the_same_row_by_row(lists, terms, sign, is_fixed):
    """Whatever stands on both sides, the rows by arrays are those that Pyomo makes of the same rule one by one; an
    equation may be written with all signs turned."""

    def declare_rows():
        m, d = pyo.ConcreteModel(), SimpleNamespace()
        m.V, m.T = pyo.RangeSet(0, 5), pyo.Set(initialize=[4, 2, 3])
        m.x, m.y, m.z = Variables(m.V, m.T), Variables([0, 3]), pyo.Var()
        m.p = pyo.Param(m.V, initialize={v: 1.5 * v - 3 for v in range(6)})
        d.out, d.cost = Lists(enumerate(lists)), Table((v, 0.25 * v - 0.5) for v in range(6))
        d.some = Table({(v, 3): v - 2.0 for v in range(6)})

        @rows(m, m.V, m.T)
        def any_row(m, v, t):
            sides = [m.x[v, t] + 0, m.z + 0]
            for term, factor, is_left in terms:
                sides[not is_left] += factor * term(m, d, v, t)
            return {"<=": sides[0] <= sides[1], ">=": sides[0] >= sides[1], "==": sides[0] == sides[1]}[sign]

        m.objective = pyo.Objective(expr=m.z)
        if is_fixed:
            m.x[2, 3].fix(0.5)
        return {name: (row, low, up) for name, row, low, up in named_rows(dense(m))}

    fast = declare_rows()
    with force_row_by_row():
        slow = declare_rows()
    assert fast.keys() == slow.keys()
    for name, (row, low, up) in slow.items():
        turned = -1 if sign == "==" and dict(fast[name][0]) != pytest.approx(dict(row), abs=1e-12) else 1
        assert dict(fast[name][0]) == pytest.approx({key: turned * of for key, of in dict(row).items()}, abs=1e-12)
        assert fast[name][1:] == pytest.approx((turned * low, turned * up), abs=1e-12)


def test_constraints_written_row_by_row_are_named_with_the_reason():
    """The line of a rule that arrays cannot evaluate, the error of one that they break, and the index of a
    difference."""

    def rules(m, leaving, cost):
        @rows(m, m.E, m.T)
        def conditional(m, e, t):
            return m.x[e, t] <= (1 if t > 4 else 2)

        @rows(m, m.V)
        def counted_row(m, v):
            return sum(1 for _ in leaving[v]) * m.z <= 3

        @rows(m, m.V)
        def fine(m, v):
            return sum(cost[e] * m.x[e, 3] for e in leaving[v]) <= 3

    reasons = row_by_row_reasons(network(rules))
    assert reasons.keys() == {"conditional", "counted_row"}
    assert reasons["conditional"].startswith("test_rows.py, line ")
    assert "1 if t > 4 else 2" in reasons["conditional"]
    assert "index" in reasons["counted_row"]
    assert compile_matrix(network(rules)).row_by_row == reasons
    with force_row_by_row():
        assert not row_by_row_reasons(network(rules))
