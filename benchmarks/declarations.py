"""Seconds until a linear program is in the solver: declared, as a raw matrix, and by linopy.

    python benchmarks/declarations.py [--columns 100000 1000000] [--routes matrix linopy declared rules] [--repeat 3]

The program is TE-CCL's linear program in its plainest form: flows F[s, e, t] over links, stocks B[s, n, t] at nodes and
reads R[s, n, t], on 16 nodes with six links each, of so many epochs that it has about the columns that are asked for.

``matrix`` builds arrays with numpy and calls HiGHS's ``passModel``, which nothing can beat; ``linopy`` (left out where
it is not installed: ``pip install linopy``) is a modelling library on labelled arrays; ``declared`` is a Pyomo model in
the style of this package, whose rules are called once for all rows (``cwb.core.rows``), and ``rules`` the same model
with one call of a rule for every row. Both go through this package's compiler. Every route runs in a process of its
own, after one small model, so that imports do not count; it tells the optimum of that model, which must be the same.
Seconds are of the processor, in brackets by the clock on the wall: the best of the repeats.
"""

from __future__ import annotations

import argparse
import importlib.util
import resource
import subprocess
import sys
from functools import partial
from time import perf_counter, process_time
from typing import Any

NODES, DEGREE = 16, 6
SMALL = 6
ROUTES = ("matrix", "linopy", "declared", "rules")


def links() -> list[tuple[int, int]]:
    """Every node has a link to the next six."""
    return [(n, (n + step) % NODES) for n in range(NODES) for step in range(1, DEGREE + 1)]


def epochs_for(columns: int) -> int:
    """Epochs that give about so many columns."""
    return max(SMALL, round(columns / (NODES * (NODES * DEGREE + 2 * NODES))))


def model_of(epochs: int, *, one_row_at_a_time: bool) -> Any:
    """The declared model."""
    import pyomo.environ as pyo
    from cwb.core.rows import Lists, Table, Variables, rows
    from pyomo.common.gc_manager import PauseGC

    leaving, entering = Lists(), Lists()
    for e, (a, b) in enumerate(links()):
        leaving[a].append(e)
        entering[b].append(e)
    supply = Table({(s, n): float(NODES) if s == n else 0.0 for s in range(NODES) for n in range(NODES)})
    with PauseGC():
        m = pyo.ConcreteModel("flows")
        m.N = pyo.RangeSet(0, NODES - 1)
        m.E = pyo.RangeSet(0, NODES * DEGREE - 1)
        m.T = pyo.RangeSet(0, epochs - 1)
        m.Later = pyo.RangeSet(1, epochs - 1)
        declare = m.Constraint if one_row_at_a_time else partial(rows, m)
        m.F = Variables(m.N, m.E, m.T, domain=pyo.NonNegativeReals)
        m.B = Variables(m.N, m.N, m.T, domain=pyo.NonNegativeReals)
        m.R = Variables(m.N, m.N, m.T, domain=pyo.NonNegativeReals)

        @declare(m.E, m.T)
        def capacity(m: Any, e: int, t: int) -> Any:
            return sum(m.F[s, e, t] for s in m.N) <= 1.0

        @declare(m.N, m.N, m.Later)
        def conservation(m: Any, s: int, n: int, t: int) -> Any:
            came = m.B[s, n, t - 1] + sum(m.F[s, e, t - 1] for e in entering[n])
            return came == m.B[s, n, t] + m.R[s, n, t] + sum(m.F[s, e, t] for e in leaving[n])

        @declare(m.N, m.N)
        def start(m: Any, s: int, n: int) -> Any:
            return m.R[s, n, 0] + sum(m.F[s, e, 0] for e in leaving[n]) + m.B[s, n, 0] == supply[s, n]

        @declare(m.N, m.N)
        def demand(m: Any, s: int, n: int) -> Any:
            return sum(m.R[s, n, t] for t in m.T) <= 1.0

        early = ((1.0 / (t + 1), m.R[s, n, t]) for s in m.N for n in m.N for t in m.T)
        m.objective = pyo.Objective(expr=sum(weight * read for weight, read in early), sense=pyo.maximize)
    return m


def by_compiler(epochs: int, *, one_row_at_a_time: bool) -> tuple[Any, Any, float]:
    """Declare, compile and transfer; the HiGHS, what must stay alive, and the seconds of building."""
    from cwb.core.budget import Budget
    from cwb.core.solver import SolverOptions
    from cwb.solvers import get

    begin = process_time()
    model = model_of(epochs, one_row_at_a_time=one_row_at_a_time)
    build_s = process_time() - begin
    session, matrix = get("highs").transfer(model, Budget(), SolverOptions())
    return session.highs, (model, session, matrix), build_s  # type: ignore[attr-defined]


def by_matrix(epochs: int) -> tuple[Any, Any, float]:
    """Arrays made with numpy, and one ``passModel``."""
    import highspy
    import numpy as np
    import scipy.sparse as sp

    begin = process_time()
    edges = NODES * DEGREE
    ends = np.array(links())
    F = np.arange(NODES * edges * epochs).reshape(NODES, edges, epochs)
    B = F.size + np.arange(NODES * NODES * epochs).reshape(NODES, NODES, epochs)
    R = B + B.size
    columns = F.size + B.size + R.size
    T, N = epochs, NODES
    capacity = np.arange(edges * T).reshape(edges, T)
    balance = capacity.size + np.arange(N * N * T).reshape(N, N, T)
    demand = capacity.size + balance.size + np.arange(N * N).reshape(N, N)
    tail, head = ends.T
    parts = [
        (np.broadcast_to(capacity, F.shape), F, 1.0),
        (balance[:, head, 1:], F[:, :, :-1], 1.0),
        (balance[:, :, 1:], B[:, :, :-1], 1.0),
        (balance[:, tail, :], F, -1.0),
        (balance, B, -1.0),
        (balance, R, -1.0),
        (np.broadcast_to(demand[:, :, None], R.shape), R, 1.0),
    ]
    row = np.concatenate([rows.ravel() for rows, _, _ in parts])
    column = np.concatenate([places.ravel() for _, places, _ in parts])
    data = np.concatenate([np.full(places.size, factor) for _, places, factor in parts])
    rows = demand.size + balance.size + capacity.size
    A = sp.coo_array((data, (row, column)), shape=(rows, columns)).tocsr()
    lower, upper = np.full(rows, -np.inf), np.ones(rows)
    lower[balance.ravel()] = upper[balance.ravel()] = 0.0
    start = balance[np.arange(N), np.arange(N), 0]
    lower[start] = upper[start] = -float(N)
    cost = np.zeros(columns)
    cost[R] = -1.0 / (np.arange(T) + 1)
    build_s = process_time() - begin
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    highs.passModel(
        columns, rows, A.nnz, int(highspy.MatrixFormat.kRowwise), int(highspy.ObjSense.kMinimize), 0.0, cost,
        np.zeros(columns), np.full(columns, np.inf), lower, upper,
        A.indptr.astype(np.int32), A.indices.astype(np.int32), A.data, np.zeros(columns, dtype=np.int32),
    )  # fmt: skip
    return highs, A, build_s


def by_linopy(epochs: int) -> tuple[Any, Any, float]:
    """linopy, on arrays with labels."""
    import linopy
    import numpy as np
    import pandas as pd
    import xarray as xr

    begin = process_time()
    N = pd.RangeIndex(NODES, name="s")
    n, e, t = pd.RangeIndex(NODES, name="n"), pd.RangeIndex(NODES * DEGREE, name="e"), pd.RangeIndex(epochs, name="t")
    ends = np.array(links())
    tail, head = (xr.DataArray(side, coords=[e], name="n") for side in ends.T)
    m = linopy.Model()
    F = m.add_variables(lower=0, coords=[N, e, t], name="F")
    B = m.add_variables(lower=0, coords=[N, n, t], name="B")
    R = m.add_variables(lower=0, coords=[N, n, t], name="R")
    m.add_constraints(F.sum("s") <= 1, name="capacity")
    came = F.groupby(head).sum()
    went = F.groupby(tail).sum()
    m.add_constraints(
        came.shift(t=1) + B.shift(t=1) - B - R - went
        == xr.DataArray(
            np.where((np.eye(NODES) > 0)[:, :, None] & (np.arange(epochs) == 0), -float(NODES), 0.0), coords=[N, n, t]
        ),
        name="conservation",
    )
    m.add_constraints(R.sum("t") <= 1, name="demand")
    weight = xr.DataArray(1.0 / (np.arange(epochs) + 1), coords=[t])
    m.add_objective((weight * R).sum(), sense="max")
    build_s = process_time() - begin
    highs = linopy.io.to_highspy(m)
    return highs, m, build_s


def measure(route: str, epochs: int) -> None:
    """Print the optimum of the small model, and seconds and size of the large one."""
    build = {
        "matrix": by_matrix,
        "linopy": by_linopy,
        "declared": lambda size: by_compiler(size, one_row_at_a_time=False),
        "rules": lambda size: by_compiler(size, one_row_at_a_time=True),
    }[route]
    small, _alive, _ = build(SMALL)
    small.setOptionValue("output_flag", False)
    small.run()
    optimum = abs(small.getInfo().objective_function_value)
    begin, wall = process_time(), perf_counter()
    highs, _also, build_s = build(epochs)
    total_s, wall_s = process_time() - begin, perf_counter() - wall
    peak_GB = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    columns, rows, nonzeros = highs.getNumCol(), highs.getNumRow(), highs.getNumNz()
    print(optimum, build_s, total_s, wall_s, peak_GB, columns, rows, nonzeros)


def run(command: list[str]) -> str:
    """The last line that a command prints: HiGHS may have printed others."""
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[-1]


def main() -> None:
    """Every route at every size, each in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--columns", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--routes", nargs="+", choices=ROUTES, default=list(ROUTES))
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--measure", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        measure(options.measure[0], int(options.measure[1]))
        return
    print(f"{'route':10}{'columns':>10}{'rows':>9}{'nonzeros':>10}{'build s':>9}{'total s':>9}{'(wall)':>9}{'GB':>6}")
    optima = set()
    for columns in options.columns:
        for route in options.routes:
            if route == "linopy" and importlib.util.find_spec("linopy") is None:
                print(f"{route:10} is not installed")
                continue
            command = [sys.executable, __file__, "--measure", route, str(epochs_for(columns))]
            runs = [list(map(float, run(command).split())) for _ in range(options.repeat)]
            optimum, build_s, total_s, wall_s, peak, cols, rows, nonzeros = min(runs, key=lambda run: run[2])
            optima.add(round(optimum, 6))
            print(
                f"{route:10}{cols:>10.0f}{rows:>9.0f}{nonzeros:>10.0f}"
                f"{build_s:>9.2f}{total_s:>9.2f}{f'({wall_s:.2f})':>9}{peak:>6.2f}",
                flush=True,
            )
    if len(optima) > 1:
        sys.exit(f"the routes build different programs: their optima are {sorted(optima)}")


if __name__ == "__main__":
    main()
