"""Runs, suites and studies of an instance, with their results."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.answers import Answer
from ..core.bounds import Certificate
from ..core.budget import Budget, Start, ignore
from ..core.collective import Collective
from ..core.errors import InputError
from ..core.explanation import Explanation
from ..core.fields import run_validation
from ..core.formulation import Formulation
from ..core.grouping import group_by_key
from ..core.instance import Instance
from ..core.method import Method
from ..core.option_names import BOUND_LEVELS, RETRIES, check_name, verb
from ..core.record import RunRecord
from ..core.sensitivity import Sensitivity
from ..core.solver import Capability, Termination
from ..core.training import TrainingOptions
from ..harness import FinishedRun, Request, registry
from ..harness import run as run_method
from ..harness.clock import WallClock
from ..harness.request import LastModel, Listener
from ..harness.suite import Settings, run_suite
from ..schedules.files import ScheduleFile
from ..studies.explain import explain as explain_instance
from ..studies.grid import GridOptions, limits_of, suite_of
from ..studies.inputs import MAX_CHUNKS, Spec, at_least_0, load, seconds_or_none, whole
from ..studies.sensitivity import sensitivity as sensitivity_of
from ..studies.solve import finish_run, start_of
from ..studies.training import draw_timeline, measures
from ..studies.training import train as simulate_training
from .plots import Plot, plot_of_answer

if TYPE_CHECKING:
    from pandas import DataFrame

    from ..solvers.base import Adapter
    from ..solvers.matrix import MatrixModel


class Run(RunRecord):
    """A record with its problem and answer as objects.

    :meth:`~cwb.core.record.RunRecord.to_json` and files of results contain only the record.
    """

    _finished: FinishedRun | None = None
    _solved: tuple[Any, MatrixModel] | None = None  #: Pyomo model and its arrays, which alone would not keep it.

    @classmethod
    def of(cls, result: FinishedRun, model: tuple[Any, MatrixModel] | None = None) -> Run:
        """Return the record of a run with its instance, answer, certificate and model."""
        run = cls(**{each.name: getattr(result.record, each.name) for each in fields(RunRecord)})
        object.__setattr__(run, "_finished", result)
        object.__setattr__(run, "_solved", model)
        return run

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without the model, whose rules cannot be pickled."""
        return {**self.__dict__, "_solved": None}

    @property
    def finished_run(self) -> FinishedRun:
        """The run and its answer in the form of the harness; none of a record from a file."""
        if self._finished is None:
            raise InputError("a record read from a file contains no answer; solve it again", source="finished")
        return self._finished

    @property
    def problem(self) -> Instance:
        """The instance that the method solved; none of a record from a file."""
        if self._finished is None or self._finished.instance is None:
            raise InputError("a record read from a file contains no instance; solve it again", source="problem")
        return self._finished.instance

    @property
    def schedule(self) -> Answer:
        """The answer in full: a schedule, a packing of trees, bandwidths, or the orders of chunks."""
        if self._finished is None or self._finished.answer is None:
            why = self.message or "a record that is read has none"
            raise InputError(f"there is no answer, {self.status}: {why}", source="schedule")
        return self._finished.answer

    @property
    def proved_by(self) -> Certificate | None:
        """The full certificate of the bound; None without one."""
        return None if self._finished is None else self._finished.certificate

    @cached_property
    def _model_values(self) -> dict[str, DataFrame]:
        if self._solved is None or "model_objective" not in self.metrics or self.solver is None:
            text = f"there is no solved formulation, {self.status}; expected a run of one of 'cwb list formulations'"
            raise InputError(text, source="model_values")
        limit_s = self.limits.get("time_limit_s")
        budget = Budget(limit_s, self.threads, self.seed, clock=WallClock(limit_s))
        return _model_frames(*self._solved, registry.solver(self.solver), budget)

    def model_values(self) -> dict[str, DataFrame]:
        """Return the solution of a formulation, one table for each variable and constraint by its name.

        Columns are ``value``, ``lower`` and ``upper`` of every part, by its index in the model. For a constraint these
        are of its body; ``dual``, of linear programs, is the change of the optimal objective per unit of the side. A
        linear program is solved again for the dual values.
        """
        return self._model_values

    def plot(self, kind: str | None = None, *, mode: str | None = None) -> Plot:
        """Draw the answer, as ``cwb plot`` does.

        Parameters
        ----------
        kind : str, optional
            For a schedule ``heatmap``, the default, ``gantt`` or ``utilization``; for trees also ``trees``, ``network``
            and ``map``; or a plot of records, which is the default for a plan of bandwidths.
        mode : str, optional
            Model of the simulation that is drawn, as in :func:`simulate`.
        """
        return plot_of_answer(self, self.problem, self.schedule, self.proved_by, kind, mode)


def _model_frames(model: Any, matrix: MatrixModel, solver: Adapter, budget: Budget) -> dict[str, DataFrame]:
    """Return the values of variables and constraints of a solved model; see :meth:`Run.model_values`."""
    import numpy as np

    x = np.array([column.value for column in matrix.columns], dtype=float)
    constants = np.array(matrix.body_constants())
    variables = {"value": x, "lower": matrix.lower, "upper": matrix.upper}
    sides = {"lower": matrix.row_lower + constants, "upper": matrix.row_upper + constants}
    rows = {"value": matrix.activity(x) + constants, **sides}
    is_linear = not matrix.is_mixed_integer and matrix.Q is None and not matrix.quadratic_rows
    if is_linear and Capability.DUALS in solver.capabilities:
        compiled = solver.compile(model, budget)
        if compiled.solve(budget).termination is Termination.OPTIMAL:
            rows["dual"] = np.array([compiled.dual(row) for row in matrix.rows])
    return _frames(matrix.columns, variables) | _frames(matrix.rows, rows)


def _frames(parts: Sequence[Any], values: dict[str, Any]) -> dict[str, DataFrame]:
    """Return a table for each component, with a row for each of its parts, without a -0.0."""
    import pandas as pd

    from ..solvers.conflict import index_names

    places = group_by_key((part.parent_component().name, place) for place, part in enumerate(parts))
    frames = {}
    for name, here in places.items():
        index = None
        if parts[here[0]].index() is not None:
            keys = [key if isinstance(key, tuple) else (key,) for key in (parts[place].index() for place in here)]
            component = parts[here[0]].parent_component()
            names: list[str] | list[None] = index_names(component, len(keys[0])) or [None] * len(keys[0])
            index = (
                pd.MultiIndex.from_tuples(keys, names=names)
                if len(names) > 1
                else pd.Index([key for (key,) in keys], name=names[0])
            )
        frames[name] = pd.DataFrame({column: array[here] + 0.0 for column, array in values.items()}, index=index)
    return frames


@verb
def solve(
    instance: Spec,
    model: str | Method | Formulation,
    *,
    collective: str | None = None,
    size: str | None = None,
    chunks: int | None = None,
    solver: str = "highs",
    seed: int = 0,
    threads: int = 1,
    time_limit_s: float | None = None,
    gap: float | None = None,
    log_file: str | None = None,
    solver_options: Mapping[str, Any] | None = None,
    output: str | Path | None = None,
    append: str | Path | None = None,
    write_model: str | Path | None = None,
    pool: int = 1,
    bounds: str = "cheap",
    start: Run | ScheduleFile | str | Path | None = None,
    explain: bool = False,
    sensitivity: bool = False,
    picture: str | Path | None = None,
    progress: Callable[[str], None] | None = None,
    **options: Any,
) -> Run:
    """Solve an instance with one method and verify the answer, as ``cwb solve`` does.

    Parameters
    ----------
    instance : Instance or other
        The instance or what :func:`load` takes.
    model : str, Method or Formulation
        Name of the method, or of a formulation that is solved as it is declared; or one of your own.
    collective, size, chunks : optional
        Of the collective, such as ``"all_gather"``, ``"1 GiB"`` and 4, in place of the instance's. Of a method that has
        an option ``chunks``, it is the option.
    solver, solver_options : optional
        Name of the solver, and options by its own names, such as ``{"presolve": "off"}`` of HiGHS.
    seed, threads, time_limit_s, gap, log_file
        Seed and limits of the run, as on the command line.
    output, append, write_model : str or Path, optional
        Files for the answer, for the record (JSONL), and for the last model passed to the solver (.mps or .lp).
    pool : int
        Number of best different answers of a formulation, in files with their ranks in the names.
    bounds : str
        Bounds of other methods for the answer: ``cheap``, within seconds, ``all`` or ``none``. The record's
        ``bound_of`` names the method whose bound is the best.
    start : Run, ScheduleFile, str or Path, optional
        Schedule, also as a file, from which a formulation starts; the metric ``start`` says if it fits. Of a method
        with an option of this name, the option.
    explain, sensitivity, picture : optional
        Whether the record says why there is no answer, and what more bandwidth is worth, and a file for a drawing of
        the latter; a failure is a warning.
    progress : callable, optional
        Called with one line at a time.
    **options
        The method's options, such as ``total_bandwidth="500 GB/s"``.

    Returns
    -------
    Run
        The record, with status, objective, bound and metrics, and the answer as ``schedule``.
    """
    if not isinstance(model, str):
        register(model)
        model = model.name
    chunks = None if chunks is None else whole(chunks, "chunks", 1, MAX_CHUNKS)
    own_names = registry.get(model).options.model_fields
    if chunks is not None and "chunks" in own_names:
        options, chunks = {**options, "chunks": chunks}, None
    if start is not None and "start" in own_names:
        options, start = {**options, "start": start}, None
    problem = load(instance, collective=collective, size=size, chunks=chunks)
    seed, threads = whole(seed, "seed", 0, 2**31 - 1), whole(threads, "threads", 1, 1024)
    time_limit_s, gap = seconds_or_none(time_limit_s, "time_limit_s"), seconds_or_none(gap, "gap")
    own, pool = solver_options or {}, whole(pool, "pool", 1, 1000)
    check_name(bounds, BOUND_LEVELS, "--bounds")
    if isinstance(start, Run):
        begin: Start | None = Start(start.problem, start.schedule)
    else:
        begin = None if start is None else start_of(start)
    request = Request(model, solver, options, seed, threads, time_limit_s, gap, log_file, own, pool, begin, bounds)
    last_model = None if write_model is None else LastModel(Path(write_model))
    report = progress or ignore
    pairs: list[tuple[Any, MatrixModel]] = []
    is_declared = registry.get(model).formulation is not None

    def keep(matrix: Callable[[], MatrixModel]) -> None:
        if last_model is not None:
            last_model(matrix)
        if is_declared:
            arrays = matrix()
            pairs[:] = [(arrays.columns[0].model(), arrays)]

    run = run_method(problem, request, listener=Listener(report, on_model=keep))
    if last_model is not None:
        last_model.write()
    record, studies = finish_run(
        run,
        request,
        lambda: problem,
        output=None if output is None else Path(output),
        append=None if append is None else Path(append),
        explain=explain,
        sensitivity=sensitivity,
        picture=None if picture is None else Path(picture),
        progress=report,
        notice=report,
    )
    if studies.error is not None and progress is None:
        warnings.warn(f"a study failed: {studies.error!r}", stacklevel=3)
    return Run.of(replace(run, record=record), pairs[0] if pairs else None)


@verb
def train(
    spec: Spec,
    *,
    chunks: int = 1,
    seed: int = 0,
    time_limit_s: float | None = None,
    timeline: str | Path | None = None,
    progress: Callable[[str], None] | None = None,
    **options: Any,
) -> dict[str, Any]:
    """Simulate a training iteration, as ``cwb train`` does, and return the output of its ``--json``.

    Parameters
    ----------
    spec : Instance or other
        An instance, or what :func:`load` takes.
    chunks, seed, time_limit_s
        Chunks of each rank's part of a collective; seed and time limit of each run of a method.
    timeline : str or Path, optional
        File for a drawing of the tasks over time, .svg, .pdf or .png.
    **options
        Those of ``cwb train`` by name: ``workload="gpt-2"``, ``method={"all_reduce": "bfb"}``,
        ``group={"tp": "16"}``, ``bucket=["25 MiB"]``; ``options`` maps methods to their options.

    Raises
    ------
    Unsupported
        If a method does not support a collective.
    """
    names = TrainingOptions.model_fields
    setup = run_validation(lambda: TrainingOptions.model_validate(options), names)
    chunks, seed = whole(chunks, "chunks", 1, MAX_CHUNKS), whole(seed, "seed", 0, 2**31 - 1)
    limit_s = seconds_or_none(time_limit_s, "time_limit_s")
    iteration = simulate_training(load(spec), setup, progress or ignore, chunks=chunks, seed=seed, time_limit_s=limit_s)
    if timeline is not None:
        draw_timeline(Path(timeline), iteration)
    return measures(iteration)


@verb
def explain(
    instance: Spec,
    model: str,
    *,
    collective: str | None = None,
    size: str | None = None,
    solver: str = "highs",
    time_limit_s: float | None = None,
    **options: Any,
) -> Explanation:
    """Return why an instance has no answer, as ``cwb solve --explain`` does; print its ``text()``.

    Parameters
    ----------
    model : str
        Name of a formulation, or of a method that has one.
    collective, size, solver, time_limit_s, **options
        As in :func:`solve`; without a limit, the search for conflicting conditions ends after a minute.
    """
    limit_s, problem = seconds_or_none(time_limit_s, "time_limit_s"), load(instance, collective=collective, size=size)
    return explain_instance(problem, Request(model, solver, options, time_limit_s=limit_s))


@verb
def sensitivity(
    instance: Spec,
    model: str,
    *,
    collective: str | None = None,
    size: str | None = None,
    solver: str = "highs",
    time_limit_s: float | None = None,
    **options: Any,
) -> Sensitivity:
    """Return the value of more bandwidth, as ``cwb solve --sensitivity`` does; print its ``text()``.

    Parameters
    ----------
    model : str
        Name of a method, or of a formulation that is solved as declared.
    collective, size, solver, time_limit_s, **options
        As in :func:`solve`; the limit is for all solves together.

    Raises
    ------
    Unsupported
        If the method proves no time for the instance, or there is no bandwidth to change.
    """
    limit_s, problem = seconds_or_none(time_limit_s, "time_limit_s"), load(instance, collective=collective, size=size)
    return sensitivity_of(problem, Request(model, solver, options, time_limit_s=limit_s))


@verb
def compare(
    suite: str | Path | None = None,
    output: str | Path = "results",
    progress: Callable[[str], None] | None = None,
    seeds: int | None = None,
    *,
    models: str | None = None,
    instances: str | None = None,
    collectives: str | None = None,
    sizes: str | None = None,
    solvers: str | None = None,
    options: Mapping[str, Any] | None = None,
    retry: str | Sequence[str] = (),
    jobs: int | None = None,
    time_limit_s: float | None = None,
    grace_s: float = 10.0,
    memory: str | None = None,
    executor: str = "local",
    schedules: bool = False,
) -> list[RunRecord]:
    """Run every cell of a suite, as ``cwb compare`` does, and return the records, appended to ``output/records.jsonl``.

    Parameters
    ----------
    suite : str or Path, optional
        File or name of a suite; None if ``models`` and ``instances`` are given instead.
    output : str or Path
        Folder of the records; runs that have one are not repeated.
    progress : callable, optional
        Called with one line at a time.
    seeds : int, optional
        Number of seeds of every run, from 0, instead of the suite's.
    models, instances, collectives, sizes, solvers : str, optional
        Comma-separated names in place of a suite; sizes such as ``"1KiB..1GiB"``.
    options : mapping, optional
        Options of the models; the values of a list are tried in turn.
    retry : str or sequence of str
        Recorded runs to repeat: ``failed``, ``limit`` or ``all``.
    jobs : int, optional
        Threads of all runs in progress; by default the number of cores.
    time_limit_s, grace_s, memory : optional
        Seconds of a run instead of the suite's, further seconds until it is killed, and its largest resident memory,
        such as ``"4 GiB"``.
    executor : str
        ``local``, ``dask://HOST:PORT``, ``slurm`` or ``slurm-local``.
    schedules : bool
        True to keep the schedules of verified answers in ``output/schedules``, for :func:`report` to play.

    Raises
    ------
    KeyboardInterrupt
        After Ctrl-C; records up to then are written.
    """
    limits = limits_of(seconds_or_none(time_limit_s, "time_limit_s"), at_least_0(grace_s, "grace_s"), memory)
    again = (retry,) if isinstance(retry, str) else tuple(retry)
    settings = Settings(limits, [check_name(one, RETRIES, "--retry") for one in again], executor, jobs, schedules)
    grid = GridOptions(models, instances, collectives, sizes, solvers, options or {})
    with grid.locate_option_errors():
        spec = suite if suite is not None and not grid.given_options else suite_of(suite, grid, progress or ignore)
    return run_suite(spec, Path(output), progress or ignore, settings, seeds)


@verb
def formulation(name: str) -> Formulation:
    """Return a declared model; its ``build(instance)`` returns the Pyomo model.

    Parameters
    ----------
    name : str
        Name ``family/model``, such as ``"mtree/selection"``.
    """
    return registry.formulation(name)


@verb
def register(entry: Method | Formulation | Adapter | Collective) -> None:
    """Register a method, formulation, solver or collective of your own by its name, in this process.

    Parameters
    ----------
    entry : Method, Formulation, Adapter or Collective
        Its name must differ from those of all others.
    """
    registry.register(entry)
