"""The questions of the exam, in one list."""

from __future__ import annotations

import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import exam_models as models
import pyomo.environ as pe
from cwb.core.budget import Budget
from cwb.core.errors import InputError, Unsupported
from cwb.core.solver import Capability, ResolvingSolver, Solver, SolverOptions, Termination
from exam import Case, Expectation, check, check_point, close

C = Capability
LONG_S = 60.0
"""A limit that nothing here needs; it turns a hang into a failure."""


def time_limit(solver: Solver, folder: Path) -> None:
    model = models.hard_mip()
    result = solver.solve(model, Budget(time_limit_s=1.0))
    assert result.termination is Termination.TIME_LIMIT, result
    _check_unfinished(model, result)


def node_limit(solver: Solver, folder: Path) -> None:
    model = models.hard_mip(120, 40)
    result = solver.solve(model, Budget(time_limit_s=LONG_S), SolverOptions(node_limit=1))
    assert result.termination is Termination.NODE_LIMIT, result
    _check_unfinished(model, result)


def no_time(solver: Solver, folder: Path) -> None:
    result = solver.solve(models.mip(), Budget(time_limit_s=0.0))
    assert result.termination is Termination.TIME_LIMIT, result
    assert not result.has_solution


def stop(solver: Solver, folder: Path) -> None:
    model, budget = models.hard_mip(), Budget(time_limit_s=LONG_S)
    with _later(1.5, budget.stop.set):
        result = solver.solve(model, budget)
    assert result.termination is Termination.INTERRUPTED, result
    _check_unfinished(model, result)


def ctrl_c(solver: Solver, folder: Path) -> None:
    model, budget = models.hard_mip(), Budget(time_limit_s=LONG_S)
    before = signal.getsignal(signal.SIGINT)
    with _later(1.5, lambda: os.kill(os.getpid(), signal.SIGINT)):
        result = solver.solve(model, budget)
    assert result.termination is Termination.INTERRUPTED, result
    assert budget.stop.is_set()
    assert signal.getsignal(signal.SIGINT) is before
    _check_unfinished(model, result)
    _check_ctrl_c_is_python_s()


def early_stop(solver: Solver, folder: Path) -> None:
    budget = Budget()
    budget.stop.set()
    result = solver.solve(models.mip(), budget)
    assert result.termination is Termination.INTERRUPTED, result
    assert not result.has_solution


def progress(solver: Solver, folder: Path) -> None:
    lines: list[str] = []
    threads: set[int] = set()

    def show(line: str) -> None:
        lines.append(line)
        threads.add(threading.get_ident())

    solver.solve(models.hard_mip(), Budget(time_limit_s=1.5, progress=show))
    assert lines, "no progress was shown"
    assert lines[-1].startswith(solver.name)
    assert threads == {threading.get_ident()}, "progress came from another thread"


def start(solver: Solver, folder: Path) -> None:
    model = models.medium_mip()
    first = solver.solve(model, Budget(time_limit_s=LONG_S), SolverOptions(node_limit=20))
    assert first.objective is not None
    again = solver.solve(model, Budget(time_limit_s=LONG_S), SolverOptions(node_limit=1, use_start=True))
    assert again.objective is not None
    assert again.objective >= first.objective - 1e-6, "the start was better than the result"
    model.x[0].set_value(None)
    partial = solver.solve(model, Budget(time_limit_s=LONG_S), SolverOptions(node_limit=1, use_start=True))
    check_point(model, partial)


def seed(solver: Solver, folder: Path) -> None:
    def run(seed: int) -> tuple[object, ...]:
        result = solver.solve(
            models.hard_mip(60, 15), Budget(time_limit_s=LONG_S, seed=seed), SolverOptions(node_limit=20)
        )
        return result.objective, result.bound, result.nodes, result.iterations

    first = run(7)
    assert first == run(7), "two runs with the same seed differ"
    assert any(first != run(other) for other in (8, 9)), "the seed changes nothing"


def threads(solver: Solver, folder: Path) -> None:
    for count in (1, 2, 1, 2):
        model = models.mip()
        result = solver.solve(model, Budget(threads=count, time_limit_s=LONG_S))
        check(model, result, Expectation(objective=7.0))


def unknown_option(solver: Solver, folder: Path) -> None:
    try:
        solver.solve(models.mip(), Budget(), SolverOptions(extra={"no_such_option": 1}))
    except InputError as error:
        assert "no_such_option" in str(error)
        return
    raise AssertionError("an unknown option was accepted")


def log_file(solver: Solver, folder: Path) -> None:
    log = folder / f"{solver.name}.log"
    solver.solve(models.medium_mip(), Budget(log_file=str(log)), SolverOptions(node_limit=1))
    first = log.stat().st_size
    assert first > 100, "the log is empty"
    solver.solve(models.medium_mip(), Budget(log_file=str(log)), SolverOptions(node_limit=1))
    assert log.stat().st_size > first, "the second solve has overwritten the log of the first"


def log_file_not_writable(solver: Solver, folder: Path) -> None:
    try:
        solver.solve(models.mip(), Budget(log_file=str(folder / "missing" / "x.log")))
    except InputError:
        return
    raise AssertionError("a log that cannot be written was accepted")


def two_alive(solver: Solver, folder: Path) -> None:
    one, two = models.lp_min(), models.mip()
    check(one, solver.solve(one, Budget()), Expectation(objective=9.0, values=(("x", 3.0),)))
    check(two, solver.solve(two, Budget()), Expectation(objective=7.0))
    assert close(one.x.value, 3.0), "solving one model has changed another"
    one.c.set_value(one.x + one.y >= 2)
    check(one, solver.solve(one, Budget()), Expectation(objective=4.0))


def concurrent(solver: Solver, folder: Path) -> None:
    def objective(_: int) -> object:
        return solver.solve(models.mip(), Budget(time_limit_s=LONG_S)).objective

    with ThreadPoolExecutor(3) as pool:  # its results raise what a thread raised, such as SolverUnavailable
        results = list(pool.map(objective, range(15)))
    assert results == [7.0] * 15, results
    _check_ctrl_c_is_python_s()


def nothing_left(solver: Solver, folder: Path) -> None:
    before = threading.active_count()
    for _ in range(5):
        solver.solve(models.lp_min(), Budget())
    assert threading.active_count() == before, "threads were left behind"


def second_solve(solver: Solver, folder: Path) -> None:
    model = models.lp_max()
    check(model, solver.solve(model, Budget()), Expectation(objective=43.0))
    model.x.fix(1.0)
    check(model, solver.solve(model, Budget()), Expectation(objective=40.0))
    assert model.x.value == 1.0, "a fixed variable was changed"
    model.x.unfix()
    check(model, solver.solve(model, Budget()), Expectation(objective=43.0))


def infeasible_keeps_values(solver: Solver, folder: Path) -> None:
    model = models.infeasible()
    model.x.set_value(1.25)
    result = solver.solve(model, Budget())
    assert result.termination is Termination.INFEASIBLE, result
    assert model.x.value == 1.25, "values were loaded without a solution"


def nonlinear(solver: Solver, folder: Path) -> None:
    try:
        solver.solve(models.nonlinear(), Budget())
    except Unsupported as error:
        assert "constraint c " in str(error)
        return
    raise AssertionError("1/x was accepted")


def resolve(solver: Solver, folder: Path) -> None:
    assert isinstance(solver, ResolvingSolver)
    budget, model = Budget(), models.max_flow()
    compiled = solver.compile(model, budget)
    check(model, compiled.solve(budget), Expectation(objective=5.0))
    compiled.set_variable_bounds([model.f["s", "a"], model.f["a", "b"]], [0, 0], [9, 0])
    check(model, compiled.solve(budget), Expectation(objective=4.0))
    compiled.set_objective([(model.f["a", "t"], 2.0), (model.f["b", "t"], 1.0)], offset=10.0)
    assert close(compiled.solve(budget).objective or 0.0, 16.0)
    model.less = pe.Constraint(expr=model.f["a", "t"] + model.f["b", "t"] + 1 <= 4)
    compiled.add_constraint(model.less)
    assert close(compiled.solve(budget).objective or 0.0, 15.0)
    compiled.set_constraint_bounds([model.less], [0], [2.5])
    assert close(compiled.solve(budget).objective or 0.0, 13.0)
    compiled.set_constraint_bounds([model.less], [8], [9])
    assert compiled.solve(budget).termination is Termination.INFEASIBLE
    compiled.set_constraint_bounds([model.less], [3], [2])
    assert compiled.solve(budget).termination is Termination.INFEASIBLE, "sides that cross"
    compiled.set_constraint_bounds([model.less], [0], [9])
    compiled.set_variable_bounds([model.f["s", "a"]], [2], [1])
    assert compiled.solve(budget).termination is Termination.INFEASIBLE, "bounds that cross"
    compiled.set_variable_bounds([model.f["s", "a"]], [0], [9])
    assert close(compiled.solve(budget).objective or 0.0, 16.0)


def resolve_two_alive(solver: Solver, folder: Path) -> None:
    assert isinstance(solver, ResolvingSolver)
    budget, one, two = Budget(), models.max_flow(), models.lp_min()
    first, second = solver.compile(one, budget), solver.compile(two, budget)
    for _ in range(2):
        check(one, first.solve(budget), Expectation(objective=5.0))
        check(two, second.solve(budget), Expectation(objective=9.0))
    one_thread, two_threads = Budget(threads=1), Budget(threads=2)
    for each in (one_thread, two_threads, one_thread):
        check(one, first.solve(each), Expectation(objective=5.0))


def duals(solver: Solver, folder: Path) -> None:
    assert isinstance(solver, ResolvingSolver)
    budget = Budget()
    for build, name in (
        (models.lp_min, "c"),
        (models.lp_max, "b"),
        (models.lp_max, "c"),
        (models.lp_mixed_rows, "range"),
    ):
        model = build()
        compiled = solver.compile(model, budget)
        base = compiled.solve(budget).objective
        row = model.find_component(name)
        dual, step = compiled.dual(row), 1e-3
        low = -1e30 if row.lb is None else row.lb
        up = 1e30 if row.ub is None else row.ub
        compiled.set_constraint_bounds([row], [low + step], [up + step])
        moved = compiled.solve(budget).objective
        assert base is not None
        assert moved is not None
        assert abs((moved - base) / step - dual) < 1e-4, f"{build.__name__}: {name} has {dual}"


def _check_ctrl_c_is_python_s() -> None:
    """A library that takes Ctrl-C for itself has given it back."""
    try:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(1.0)
    except KeyboardInterrupt:
        return
    raise AssertionError("Ctrl-C is lost")


def _check_unfinished(model: object, result: object) -> None:
    """A search that was cut short keeps its point and its bound, and they leave a gap."""
    check_point(model, result)
    assert result.has_solution
    assert result.bound is not None
    assert result.gap is not None
    assert 0 < result.gap < 1


class _later:  # noqa: N801 - used like a function
    """Do something a little later, unless it is over by then."""

    def __init__(self, seconds: float, action: object) -> None:
        self.timer = threading.Timer(seconds, action)

    def __enter__(self) -> None:
        self.timer.start()

    def __exit__(self, *_: object) -> None:
        self.timer.cancel()
        self.timer.join()


def _plain(
    name: str,
    proves: str,
    needs: Capability,
    build: object,
    *expected: object,
    not_for: object = None,
    **values: float,
) -> Case:
    termination = next((e for e in expected if isinstance(e, Termination)), Termination.OPTIMAL)
    objective = next((float(e) for e in expected if isinstance(e, int | float)), None)
    wanted = Expectation(termination, objective, tuple(values.items()))
    return Case(name, proves, needs, build, wanted, not_for=not_for or {})


_NEVER_ENDS = {"scip": "SCIP bounds a form by branching, which need not end on variables without bounds"}


def _act(name: str, proves: str, needs: Capability, act: object, not_for: object = None) -> Case:
    return Case(name, proves, needs, act=act, not_for=not_for or {})


_LOSES = "a GLPK that is ended by a signal writes nothing: what it had found is lost"


_INFEASIBLE, _UNBOUNDED = Termination.INFEASIBLE, Termination.UNBOUNDED

CASES = (
    _plain("lp-min", "a least-cost linear program", C.LP, models.lp_min, 9, x=3, y=1),
    _plain("lp-max", "a maximum with a constant", C.LP, models.lp_max, 43, x=2, y=6),
    _plain("lp-mixed-rows", "ranges, equalities, free and fixed variables", C.LP, models.lp_mixed_rows, 1.5, z=2),
    _plain("lp-degenerate", "a degenerate optimum", C.LP, models.lp_degenerate, 2),
    _plain("lp-infeasible", "no feasible point", C.LP, models.infeasible, _INFEASIBLE),
    _plain(
        "lp-unbounded",
        "no optimum",
        C.LP,
        models.lp_unbounded,
        _UNBOUNDED,
        not_for={"highs-pdlp": "a first-order method has no proof that a program is unbounded"},
    ),
    _plain("lp-tiny-costs", "costs below every dual tolerance", C.LP, models.tiny_costs_lp, 4e-9),
    _plain("mip", "a knapsack", C.MIP, models.mip, 7),
    _plain(
        "mip-general", "general integers, fractional bounds, a continuous one", C.MIP, models.mip_general, 14.4, i=4
    ),
    _plain(
        "mip-infeasible",
        "no integers, though the relaxation is unbounded",
        C.MIP,
        models.mip_infeasible,
        _INFEASIBLE,
        not_for={"pyomo:glpk": "GLPK branches for ever on integers without bounds"},
    ),
    _plain("mip-unbounded", "integers without an optimum", C.MIP, models.mip_unbounded, _UNBOUNDED),
    _plain("mip-tiny-costs", "profits of 1e-8", C.MIP, models.tiny_costs, models.tiny_costs_optimum()),
    _plain("mip-small-objective", "an optimum of 8e-5", C.MIP, models.small_makespan, 11 / 2**17),
    _plain("constant-objective", "an objective without variables", C.LP, models.constant_objective, 7),
    _plain("no-objective", "a feasibility problem", C.MIP, models.no_objective, 0, x=3),
    _plain("empty", "a model without anything", C.LP, models.empty, 0),
    _plain("only-constants", "a model without free variables", C.LP, models.only_constants, 6),
    _plain("false-constant", "a constraint that is false by itself", C.LP, models.false_constant, _INFEASIBLE),
    _plain(
        "nearly-false-constant", "a constraint that only rounding makes false", C.LP, models.nearly_false_constant, 1
    ),
    _plain("crossed-bounds", "a variable without a value", C.LP, models.crossed_bounds, _INFEASIBLE),
    _plain("leftovers", "unused variables, deactivated components", C.LP, models.leftovers, 1, x=1),
    _plain("fixed-product", "a product with a fixed factor is linear", C.LP, models.fixed_product, 1.5),
    _plain("qp-convex", "a convex form with a row", C.CONVEX_QP, models.convex_qp, 1.5, x=2.5, y=1.5),
    _plain("qp-convex-max", "a concave form maximized, no rows", C.CONVEX_QP, models.convex_qp_max, 2),
    _plain("qp-singular", "a form with a flat direction", C.CONVEX_QP, models.singular_qp, 0.9375, not_for=_NEVER_ENDS),
    _plain(
        "qp-unbounded", "a form falling for ever", C.CONVEX_QP, models.unbounded_qp, _UNBOUNDED, not_for=_NEVER_ENDS
    ),
    _plain("qp-infeasible", "a form over nothing", C.CONVEX_QP, models.infeasible_qp, _INFEASIBLE),
    _plain("qp-nonconvex", "x*y is -1, or refused", C.NONCONVEX_QP, models.nonconvex_qp, -1),
    _plain("miqp", "a form over integers", C.NONCONVEX_QP, models.miqp, 0.16, i=2),
    _plain("bilinear", "y*B >= 1", C.QUADRATIC_CONSTRAINTS, models.bilinear, 0.2),
    _plain("disc", "a convex quadratic row", C.QUADRATIC_CONSTRAINTS, models.convex_quadratic_constraint, 2**0.5),
    _act("nonlinear", "what is not quadratic is refused by name", C.LP, nonlinear),
    _act("infeasible-keeps-values", "no values are loaded without a solution", C.LP, infeasible_keeps_values),
    _act("solved-again", "a model may be changed and solved again", C.LP, second_solve),
    _act("two-alive", "two models do not touch each other", C.MIP, two_alive),
    _act("concurrent", "three threads solve at once", C.MIP, concurrent),
    _act("threads", "the number of threads may change", C.MIP, threads),
    _act("nothing-left", "no threads are left behind", C.LP, nothing_left),
    _act("unknown-option", "an unknown option is an error", C.LP, unknown_option),
    _act("log-file", "a log is written, and appended to", C.MIP, log_file),
    _act("log-not-writable", "a log that cannot be written is an error", C.LP, log_file_not_writable),
    _act("no-time", "a limit of zero ends at once", C.MIP, no_time),
    _act("stopped-before", "a stop that came before ends at once", C.MIP, early_stop),
    _act("time-limit", "a limit keeps the point and the bound", C.MIP, time_limit),
    _act(
        "node-limit",
        "a limit of nodes keeps the point and the bound",
        C.MIP,
        node_limit,
        not_for={"pyomo:glpk": "GLPK has no limit of nodes"},
    ),
    _act(
        "stopped",
        "budget.stop keeps the point and the bound",
        C.MIP | C.INTERRUPT,
        stop,
        not_for={"pyomo:glpk": _LOSES},
    ),
    _act("ctrl-c", "Ctrl-C keeps the point and the bound", C.MIP | C.INTERRUPT, ctrl_c, not_for={"pyomo:glpk": _LOSES}),
    _act("progress", "progress is shown by the calling thread", C.MIP | C.PROGRESS, progress),
    _act("start", "a start is never lost", C.MIP | C.MIP_START, start),
    _act(
        "seed",
        "the seed decides",
        C.MIP,
        seed,
        not_for={"pyomo:glpk": "GLPK has no seed", "pyomo:cbc": "CBC's seed does not reach so short a search"},
    ),
    _act("resolve", "a compiled model changes and is solved again", C.LP | C.RESOLVE, resolve),
    _act("resolve-two-alive", "two compiled models take turns", C.LP | C.RESOLVE, resolve_two_alive),
    _act("duals", "a dual is the change per unit of right-hand side", C.LP | C.RESOLVE | C.DUALS, duals),
)
