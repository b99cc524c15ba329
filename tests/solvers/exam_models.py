"""The models of the exam; each is small enough to be solved by hand or by enumeration."""

from __future__ import annotations

from itertools import product
from typing import Any

import pyomo.environ as pe


def lp_min() -> Any:
    """Least cost: 2x + 3y, x + y >= 4, x <= 3; optimum 9 at (3, 1)."""
    m = pe.ConcreteModel()
    m.x = pe.Var(bounds=(0, 3))
    m.y = pe.Var(domain=pe.NonNegativeReals)
    m.c = pe.Constraint(expr=m.x + m.y >= 4)
    m.o = pe.Objective(expr=2 * m.x + 3 * m.y)
    return m


def lp_max() -> Any:
    """Two products, with a constant: 3x + 5y + 7 is 43 at (2, 6)."""
    m = pe.ConcreteModel()
    m.x = pe.Var(domain=pe.NonNegativeReals)
    m.y = pe.Var(domain=pe.NonNegativeReals)
    m.a = pe.Constraint(expr=m.x <= 4)
    m.b = pe.Constraint(expr=2 * m.y <= 12)
    m.c = pe.Constraint(expr=3 * m.x + 2 * m.y <= 18)
    m.o = pe.Objective(expr=3 * m.x + 5 * m.y + 7, sense=pe.maximize)
    return m


def lp_mixed_rows() -> Any:
    """A range with a constant in its body, an equality, a free and a fixed variable; optimum 1.5."""
    m = pe.ConcreteModel()
    m.x = pe.Var()
    m.y = pe.Var(bounds=(None, 5))
    m.z = pe.Var(bounds=(0, 10))
    m.z.fix(2.0)
    m.range = pe.Constraint(expr=(1, m.x + m.z + 0.5, 8))
    m.has_equal_arcs = pe.Constraint(expr=m.x + m.y == 4 * m.z - 6)
    m.o = pe.Objective(expr=m.x + 2 * m.z - 1)
    return m


def lp_degenerate() -> Any:
    """Many rows through the optimum (1, 1), and many optima on an edge."""
    m = pe.ConcreteModel()
    m.x = pe.Var([0, 1], bounds=(0, None))
    m.c = pe.Constraint(range(6), rule=lambda m, k: (k + 1) * m.x[0] + (6 - k) * m.x[1] <= 7)
    m.d = pe.Constraint(expr=m.x[0] + m.x[1] <= 2)
    m.o = pe.Objective(expr=m.x[0] + m.x[1], sense=pe.maximize)
    return m


def infeasible() -> Any:
    """Two rows that exclude each other."""
    m = pe.ConcreteModel()
    m.x = pe.Var(bounds=(0, None))
    m.y = pe.Var(bounds=(0, None))
    m.a = pe.Constraint(expr=m.x + m.y >= 3)
    m.b = pe.Constraint(expr=m.x + m.y <= 2)
    m.o = pe.Objective(expr=-m.x)
    return m


def lp_unbounded() -> Any:
    """A ray along which the objective grows."""
    m = pe.ConcreteModel()
    m.x = pe.Var(bounds=(0, None))
    m.y = pe.Var(bounds=(0, None))
    m.c = pe.Constraint(expr=m.x - m.y <= 1)
    m.o = pe.Objective(expr=m.x, sense=pe.maximize)
    return m


def mip() -> Any:
    """Knapsack of three: 4x + 5y + 3z with weights 3, 4, 2 in 5; optimum 7."""
    m = pe.ConcreteModel()
    m.x = pe.Var(range(3), domain=pe.Binary)
    m.c = pe.Constraint(expr=3 * m.x[0] + 4 * m.x[1] + 2 * m.x[2] <= 5)
    m.o = pe.Objective(expr=4 * m.x[0] + 5 * m.x[1] + 3 * m.x[2], sense=pe.maximize)
    return m


def mip_general() -> Any:
    """General integers with fractional bounds and a continuous variable: 3i + 2x is 14.4 at (4, 1.2)."""
    m = pe.ConcreteModel()
    m.i = pe.Var(domain=pe.Integers, bounds=(-2.5, 4.7))
    m.x = pe.Var(bounds=(0, 9))
    m.c = pe.Constraint(expr=m.i + 5 * m.x <= 10)
    m.o = pe.Objective(expr=3 * m.i + 2 * m.x, sense=pe.maximize)
    return m


def mip_infeasible() -> Any:
    """Even equals odd, with a direction in which the relaxation is unbounded."""
    m = pe.ConcreteModel()
    m.i = pe.Var([0, 1], domain=pe.NonNegativeIntegers)
    m.x = pe.Var(bounds=(0, None))
    m.c = pe.Constraint(expr=6 * m.i[0] - 4 * m.i[1] == 1)
    m.o = pe.Objective(expr=m.x, sense=pe.maximize)
    return m


def mip_unbounded() -> Any:
    """Integers that grow together for ever."""
    m = pe.ConcreteModel()
    m.i = pe.Var([0, 1], domain=pe.NonNegativeIntegers)
    m.c = pe.Constraint(expr=m.i[0] - m.i[1] <= 1)
    m.o = pe.Objective(expr=m.i[0], sense=pe.maximize)
    return m


def constant_objective() -> Any:
    """Find any point; the objective is 7 everywhere."""
    m = pe.ConcreteModel()
    m.x = pe.Var(bounds=(0, 5))
    m.c = pe.Constraint(expr=m.x >= 2)
    m.o = pe.Objective(expr=7.0)
    return m


def no_objective() -> Any:
    """A feasibility problem: no objective at all."""
    m = pe.ConcreteModel()
    m.x = pe.Var(bounds=(0, 5), domain=pe.Integers)
    m.c = pe.Constraint(expr=2 * m.x == 6)
    return m


def empty() -> Any:
    """Nothing at all."""
    return pe.ConcreteModel()


def only_constants() -> Any:
    """No free variables: a fixed one in the objective and in a true constraint; optimum 6."""
    m = pe.ConcreteModel()
    m.x = pe.Var()
    m.x.fix(3)
    m.c = pe.Constraint(expr=m.x <= 4)
    m.o = pe.Objective(expr=2 * m.x)
    return m


def false_constant() -> Any:
    """A constraint without free variables that is false."""
    m = pe.ConcreteModel()
    m.x = pe.Var(bounds=(0, 9))
    m.y = pe.Var()
    m.y.fix(3)
    m.c = pe.Constraint(expr=m.y <= 2)
    m.d = pe.Constraint(expr=m.x >= 1)
    m.o = pe.Objective(expr=m.x)
    return m


def nearly_false_constant() -> Any:
    """A constraint without free variables that only rounding makes false: 0.1 + 0.2 <= 0.3."""
    m = pe.ConcreteModel()
    m.x = pe.Var(bounds=(1, 9))
    m.y = pe.Var()
    m.y.fix(0.1 + 0.2)
    m.c = pe.Constraint(expr=m.y <= 0.3)
    m.o = pe.Objective(expr=m.x)
    return m


def crossed_bounds() -> Any:
    """A variable whose lower bound is above its upper bound."""
    m = pe.ConcreteModel()
    m.x = pe.Var(bounds=(3, 1))
    m.y = pe.Var(bounds=(0, 1))
    m.o = pe.Objective(expr=m.x + m.y)
    return m


def leftovers() -> Any:
    """Unused variables, a deactivated constraint and a deactivated block whose variable is used; optimum 1."""
    m = pe.ConcreteModel()
    m.x = pe.Var(bounds=(0, 5))
    m.unused = pe.Var([0, 1], bounds=(2, 3))
    m.off = pe.Constraint(expr=m.x >= 4)
    m.off.deactivate()
    m.b = pe.Block()
    m.b.y = pe.Var(bounds=(0, 1))
    m.b.off = pe.Constraint(expr=m.x >= 5)
    m.b.deactivate()
    m.c = pe.Constraint(expr=m.x + m.b.y >= 2)
    m.o = pe.Objective(expr=m.x)
    return m


def tiny_costs() -> Any:
    """Knapsack whose profits are about 1e-8: absolute tolerances of a solver must not make it stop early."""
    weights = [3, 5, 7, 11, 13, 17]
    m = pe.ConcreteModel()
    m.x = pe.Var(range(6), domain=pe.Binary)
    m.c = pe.Constraint(expr=sum(w * m.x[k] for k, w in enumerate(weights)) <= 29.5)
    m.o = pe.Objective(expr=1e-8 * sum((w + 0.1 * k) * m.x[k] for k, w in enumerate(weights)), sense=pe.maximize)
    return m


def tiny_costs_optimum() -> float:
    """Enumerate :func:`tiny_costs`."""
    weights = [3, 5, 7, 11, 13, 17]
    picks = (p for p in product([0, 1], repeat=6) if sum(w * x for w, x in zip(weights, p, strict=True)) <= 29.5)
    return max(1e-8 * sum((w + 0.1 * k) * p[k] for k, w in enumerate(weights)) for p in picks)


def tiny_costs_lp() -> Any:
    """Costs of 1e-9 and 2e-9: below every dual tolerance; optimum 4e-9."""
    m = pe.ConcreteModel()
    m.x = pe.Var(bounds=(0, None))
    m.y = pe.Var(bounds=(0, None))
    m.c = pe.Constraint(expr=m.x + m.y >= 4)
    m.o = pe.Objective(expr=1e-9 * m.x + 2e-9 * m.y)
    return m


def small_makespan() -> Any:
    """Balance jobs over two machines: the makespan, 11/2**17 s, is far below any absolute gap tolerance of 1e-4."""
    jobs = [7, 5, 4, 3, 2, 1]
    m = pe.ConcreteModel()
    m.x = pe.Var(range(6), [0, 1], domain=pe.Binary)
    m.T = pe.Var(bounds=(0, None))
    m.one = pe.Constraint(range(6), rule=lambda m, j: m.x[j, 0] + m.x[j, 1] == 1)
    m.work = pe.Constraint([0, 1], rule=lambda m, k: sum(jobs[j] * m.x[j, k] for j in range(6)) <= 2**17 * m.T)
    m.o = pe.Objective(expr=m.T)
    return m


def convex_qp() -> Any:
    """(x - 3)^2 + (y - 2)^2 + 1 with x + y <= 4; optimum 1.5 at (2.5, 1.5)."""
    m = pe.ConcreteModel()
    m.x = pe.Var(bounds=(0, 9))
    m.y = pe.Var()
    m.c = pe.Constraint(expr=m.x + m.y <= 4)
    m.o = pe.Objective(expr=(m.x - 3) ** 2 + (m.y - 2) ** 2 + 1)
    return m


def convex_qp_max() -> Any:
    """A concave form maximized without any row: -(x - 0.25)^2 - (x - y)^2 + 2; optimum 2."""
    m = pe.ConcreteModel()
    m.x = pe.Var(bounds=(-1, 1))
    m.y = pe.Var(bounds=(-1, 1))
    m.o = pe.Objective(expr=2 - (m.x - 0.25) ** 2 - (m.x - m.y) ** 2, sense=pe.maximize)
    return m


def singular_qp() -> Any:
    """A form with a flat direction, held by a row: (x - y)^2 + x, x + y >= 2; optimum 0.9375."""
    m = pe.ConcreteModel()
    m.x = pe.Var()
    m.y = pe.Var()
    m.c = pe.Constraint(expr=m.x + m.y >= 2)
    m.o = pe.Objective(expr=(m.x - m.y) ** 2 + m.x)
    return m


def unbounded_qp() -> Any:
    """A convex form with a flat direction along which the objective falls for ever."""
    m = pe.ConcreteModel()
    m.x = pe.Var(bounds=(0, None))
    m.y = pe.Var(bounds=(0, None))
    m.c = pe.Constraint(expr=m.x - m.y <= 3)
    m.o = pe.Objective(expr=(m.x - m.y) ** 2 - m.x)
    return m


def infeasible_qp() -> Any:
    """A convex form over nothing."""
    m = infeasible()
    m.o.set_value(m.x**2 + m.y**2)
    return m


def nonconvex_qp() -> Any:
    """x * y on [-1, 1]^2: the optimum is -1; a solver that takes it for convex says 0."""
    m = pe.ConcreteModel()
    m.x = pe.Var(bounds=(-1, 1))
    m.y = pe.Var(bounds=(-1, 1))
    m.o = pe.Objective(expr=m.x * m.y)
    return m


def miqp() -> Any:
    """(i - 2.4)^2 over integers; optimum 0.16 at 2."""
    m = pe.ConcreteModel()
    m.i = pe.Var(domain=pe.Integers, bounds=(0, 9))
    m.o = pe.Objective(expr=(m.i - 2.4) ** 2)
    return m


def bilinear() -> Any:
    """y * B >= 1 with y <= 5: least B is 0.2."""
    m = pe.ConcreteModel()
    m.B = pe.Var(bounds=(0, 10))
    m.y = pe.Var(bounds=(0, 5))
    m.c = pe.Constraint(expr=m.y * m.B >= 1)
    m.o = pe.Objective(expr=m.B)
    return m


def convex_quadratic_constraint() -> Any:
    """The point of the unit disc that is farthest to the upper right, with a linear term; optimum sqrt(2)."""
    m = pe.ConcreteModel()
    m.x = pe.Var(bounds=(-2, 2))
    m.y = pe.Var(bounds=(-2, 2))
    m.c = pe.Constraint(expr=m.x**2 + m.y**2 + 0 * m.x <= 1)
    m.d = pe.Constraint(expr=m.x - m.y <= 1)
    m.o = pe.Objective(expr=m.x + m.y, sense=pe.maximize)
    return m


def fixed_product() -> Any:
    """A product with a fixed factor is linear: 2 * x >= 3; optimum 1.5."""
    m = pe.ConcreteModel()
    m.x = pe.Var(bounds=(0, 9))
    m.y = pe.Var()
    m.y.fix(2)
    m.c = pe.Constraint(expr=m.x * m.y >= 3)
    m.o = pe.Objective(expr=m.x)
    return m


def nonlinear() -> Any:
    """1/x is neither linear nor quadratic."""
    m = pe.ConcreteModel()
    m.x = pe.Var(bounds=(0.5, 9))
    m.c = pe.Constraint(expr=1 / m.x <= 1)
    m.o = pe.Objective(expr=m.x)
    return m


def medium_mip() -> Any:
    """A knapsack that needs a search of some dozens of nodes at least."""
    return hard_mip(30, 8)


def hard_mip(n: int = 300, rows: int = 80) -> Any:
    """A knapsack with many resources: points are found at once, none of the solvers proves the best in minutes."""
    # A multiplicative generator, so that the model is the same everywhere.
    state = 12345
    numbers = []
    for _ in range(n * (rows + 1)):
        state = state * 16807 % 2147483647
        numbers.append(20 + state % 60)
    m = pe.ConcreteModel()
    m.x = pe.Var(range(n), domain=pe.Binary)
    m.c = pe.Constraint(
        range(rows),
        rule=lambda m, r: sum(numbers[r * n + j] * m.x[j] for j in range(n)) <= sum(numbers[r * n : r * n + n]) // 3,
    )
    m.o = pe.Objective(expr=sum(numbers[rows * n + j] * m.x[j] for j in range(n)), sense=pe.maximize)
    return m


def max_flow() -> Any:
    """Flow from s to t over five arcs whose capacities are bounds; optimum 5."""
    m = pe.ConcreteModel()
    m.arcs = pe.Set(initialize=[("s", "a"), ("s", "b"), ("a", "b"), ("a", "t"), ("b", "t")], dimen=2)
    capacity = {("s", "a"): 3, ("s", "b"): 2, ("a", "b"): 5, ("a", "t"): 2, ("b", "t"): 3}
    m.f = pe.Var(m.arcs, bounds=lambda m, i, j: (0, capacity[i, j]))
    m.keep = pe.Constraint(
        ["a", "b"],
        rule=lambda m, n: sum(m.f[a] for a in m.arcs if a[1] == n) - sum(m.f[a] for a in m.arcs if a[0] == n) == 0,
    )
    m.o = pe.Objective(expr=m.f["s", "a"] + m.f["s", "b"], sense=pe.maximize)
    return m
