"""cwb: an optimization-modelling workbench for collective communication.

The verbs of the command line for a notebook: :func:`load` an instance, :func:`solve` it with a method, :func:`compare`
methods by a suite, :func:`verify` and :func:`simulate` an answer. Importing ``cwb`` imports no solver and no modelling
library.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from .core.answers import Answer
    from .core.bounds import Certificate
    from .core.explanation import Explanation
    from .core.formulation import Formulation
    from .core.instance import Instance
    from .core.method import Method
    from .core.record import RunRecord
    from .core.sensitivity import Sensitivity
    from .core.trace import Trace
    from .core.verdict import Verdict
    from .solvers.base import Adapter

__all__ = [
    "Formulation",
    "Method",
    "compare",
    "explain",
    "formulation",
    "load",
    "register",
    "sensitivity",
    "simulate",
    "solve",
    "verify",
]


def load(spec: str | Path) -> Instance:
    """Load an instance: a path, a shipped name (``"4d"``), building blocks, or an expression (``"torus(8,8)"``).

    Raises
    ------
    InputError
        If there is none, or it is wrong.
    """
    from .instances import load as load_instance

    return load_instance(spec)


def solve(
    instance: Instance | str | Path,
    model: str | Method,
    *,
    collective: str | None = None,
    size: str | None = None,
    solver: str = "highs",
    seed: int = 0,
    threads: int = 1,
    time_limit_s: float | None = None,
    gap: float | None = None,
    log_file: str | None = None,
    solver_options: Mapping[str, Any] | None = None,
    progress: Callable[[str], None] | None = None,
    **options: Any,
) -> RunRecord:
    """Solve an instance with one method and have the answer verified, as ``cwb solve`` does.

    Parameters
    ----------
    instance : Instance, str or Path
        The instance or what :func:`load` takes.
    model : str or Method
        Name of the method, or of a formulation that is solved as it is declared; or a method of your own.
    collective, size : str, optional
        Of the collective, such as ``"all_gather"`` and ``"1 GiB"``, in place of the instance's.
    solver : str
        Name of the solver.
    seed, threads, time_limit_s, gap, log_file
        Limits of the run.
    solver_options : mapping, optional
        Options of the solver by its own names, such as ``{"presolve": "off"}`` of HiGHS.
    progress : callable, optional
        Called with one line at a time.
    **options
        The method's options, such as ``total_bandwidth="500 GB/s"``.

    Returns
    -------
    RunRecord
        Status, objective, bound, metrics and the answer.

    Raises
    ------
    InputError
        If a name or an option is wrong.
    """
    from .core.budget import silent
    from .core.instance import Instance as InstanceType
    from .harness import Request, run_one
    from .harness.demand import with_demand

    if not isinstance(model, str):
        register(model)
        model = model.name
    loaded = with_demand(
        instance if isinstance(instance, InstanceType) else load(instance), collective, size, chunks=None
    )
    request = Request(model, solver, options, seed, threads, time_limit_s, gap, log_file, solver_options or {})
    return run_one(loaded, request, progress or silent)


def explain(
    instance: Instance | str | Path,
    model: str,
    *,
    collective: str | None = None,
    size: str | None = None,
    solver: str = "highs",
    time_limit_s: float | None = None,
    **options: Any,
) -> Explanation:
    """Say why an instance has no answer, as ``cwb solve --explain`` does.

    Parameters
    ----------
    instance : Instance, str or Path
        The instance or what :func:`load` takes.
    model : str
        Name of a formulation, or of a method that one explains.
    collective, size, solver, time_limit_s, **options
        As of :func:`solve`; without a limit, the search for clashing conditions ends after a minute.

    Returns
    -------
    Explanation
        ``print(explanation.text())`` shows it.

    Raises
    ------
    InputError
        If a name is wrong.
    SolverUnavailable
        If the solver is missing.
    """
    from .core.instance import Instance as InstanceType
    from .harness import Request
    from .harness.demand import with_demand
    from .harness.explain import explain as explained

    known = instance if isinstance(instance, InstanceType) else load(instance)
    request = Request(model, solver, options, time_limit_s=time_limit_s)
    return explained(with_demand(known, collective, size, chunks=None), request)


def sensitivity(
    instance: Instance | str | Path,
    model: str,
    *,
    collective: str | None = None,
    size: str | None = None,
    solver: str = "highs",
    time_limit_s: float | None = None,
    **options: Any,
) -> Sensitivity:
    """Tell what more bandwidth is worth, as ``cwb solve --sensitivity`` does.

    Parameters
    ----------
    instance : Instance, str or Path
        The instance or what :func:`load` takes.
    model : str
        Name of a method, or of a formulation that is solved as it is declared.
    collective, size, solver, time_limit_s, **options
        As of :func:`solve`; the limit is that of all solves together.

    Returns
    -------
    Sensitivity
        ``print(found.text())`` shows it.

    Raises
    ------
    InputError
        If a name is wrong.
    Unsupported
        If the method proves no time of the instance, or there is no bandwidth to change.
    SolverUnavailable
        If the solver is missing.
    """
    from .core.instance import Instance as InstanceType
    from .harness import Request
    from .harness.demand import with_demand
    from .harness.sensitivity import sensitivity as found

    known = instance if isinstance(instance, InstanceType) else load(instance)
    request = Request(model, solver, options, time_limit_s=time_limit_s)
    return found(with_demand(known, collective, size, chunks=None), request)


def formulation(name: str) -> Formulation:
    """A declared model by its name, such as ``"mtree/selection"``; its ``build(instance)`` gives the Pyomo model.

    Raises
    ------
    InputError
        If there is none of that name.
    """
    from .harness import registry

    return registry.formulation(name)


def register(entry: Method | Formulation | Adapter) -> None:
    """Make a method, formulation or solver of your own known by its name in this process.

    Raises
    ------
    InputError
        If another one has the name.
    """
    from .harness import registry

    registry.register(entry)


def __getattr__(name: str) -> Any:
    """Classes for methods and formulations of your own, imported when they are asked for."""
    if name == "Formulation":
        from .core.formulation import Formulation

        return Formulation
    if name == "Method":
        from .core.method import Method

        return Method
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def verify(instance: Instance | str | Path, answer: Answer, certificate: Certificate | None = None) -> Verdict:
    """Have an answer verified: violations, the objective recomputed, the bound that the certificate proves."""
    from .core.instance import Instance as InstanceType
    from .schedules import judge

    return judge(instance if isinstance(instance, InstanceType) else load(instance), answer, certificate)


def simulate(instance: Instance | str | Path, answer: Answer, mode: str | None = None, **settings: Any) -> Trace:
    """Simulate a schedule: when everything happens, and how busy the links are.

    Parameters
    ----------
    instance : Instance, str or Path
        The instance or what :func:`load` takes.
    answer : StepSchedule, Schedule or TreePacking
        The schedule.
    mode : str, optional
        ``alpha-beta``, ``congestion-aware``, ``cut-through``, ``fair-share`` or, of trees, ``shares``. By default the
        model of all completion times: ``shares`` for trees, ``congestion-aware`` for all else.
    **settings
        ``barrier``, ``pieces`` and ``hold_latency``, see :func:`cwb.schedules.simulate.simulate`. Without ``pieces``,
        trees have as many as for their completion time.
    """
    from .core.instance import Instance as InstanceType
    from .core.trace import SimulationMode
    from .core.trees import TreePacking
    from .schedules.completion import completion_of, mode_of
    from .schedules.simulate import simulate as run

    loaded = instance if isinstance(instance, InstanceType) else load(instance)
    chosen = mode_of(answer) if mode is None else SimulationMode(mode)
    if isinstance(answer, TreePacking) and "pieces" not in settings:
        settings["pieces"] = completion_of(loaded, answer).pieces or 1
    return run(loaded, answer, chosen, **settings)


def compare(
    suite: str | Path,
    output: str | Path,
    progress: Callable[[str], None] | None = None,
    seeds: int | None = None,
) -> list[RunRecord]:
    """Run every cell of a suite, as ``cwb compare`` does, and append the records to ``output/records.jsonl``.

    With ``seeds``, every run is made with so many seeds, from 0, instead of the suite's.
    """
    from pathlib import Path as PathType

    from .core.budget import silent
    from .harness.suite import run_suite

    return run_suite(suite, PathType(output), progress or silent, seeds=seeds)
