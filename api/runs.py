"""One run, a suite or a study of an instance, and their results."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.errors import InputError
from ..core.record import RunRecord
from .inputs import MAX_CHUNKS, Spec, at_least_0, keyword_names, load, whole

if TYPE_CHECKING:
    from ..core.answers import Answer
    from ..core.bounds import Certificate
    from ..core.explanation import Explanation
    from ..core.formulation import Formulation
    from ..core.instance import Instance
    from ..core.method import Method
    from ..core.sensitivity import Sensitivity
    from ..harness.request import Request
    from ..harness.run import FinishedRun
    from ..solvers.base import Adapter
    from .plots import Plot


class Run(RunRecord):
    """A record together with the problem and the answer as objects.

    :meth:`~cwb.core.record.RunRecord.to_json` and results files have only the record.
    """

    _finished: FinishedRun | None = None

    @classmethod
    def of(cls, finished: FinishedRun) -> Run:
        """The record of a run, with its instance, answer and certificate."""
        made = cls(**{each.name: getattr(finished.record, each.name) for each in fields(RunRecord)})
        object.__setattr__(made, "_finished", finished)
        return made

    @property
    def problem(self) -> Instance:
        """The instance as it was posed to the method.

        Raises
        ------
        InputError
            If the record was read, and not made here.
        """
        if self._finished is None or self._finished.instance is None:
            raise InputError("a record that is read holds no instance; solve it again", source="problem")
        return self._finished.instance

    @property
    def schedule(self) -> Answer:
        """The answer in full: a schedule, a packing of trees, bandwidths, or the orders of chunks.

        Raises
        ------
        InputError
            If there is none.
        """
        if self._finished is None or self._finished.answer is None:
            why = self.message or "a record that is read has none"
            raise InputError(f"there is no answer, {self.status}: {why}", source="schedule")
        return self._finished.answer

    @property
    def proved_by(self) -> Certificate | None:
        """The certificate of the bound, in full; None if there is none."""
        return None if self._finished is None else self._finished.certificate

    def plot(self, kind: str | None = None, *, mode: str | None = None) -> Plot:
        """Draw the answer, as ``cwb plot`` does.

        Parameters
        ----------
        kind : str, optional
            Of a schedule ``heatmap``, the default, ``gantt`` or ``utilization``, of trees also ``trees``, ``network``
            and ``map``; or the name of a plot of records, which a plan of bandwidths has by default.
        mode : str, optional
            Of the simulation that is drawn, as of :func:`simulate`.

        Returns
        -------
        Plot
            A notebook shows it; ``save("file.pdf")`` writes it.

        Raises
        ------
        InputError
            If there is no answer, or no such plot of it.
        """
        from .plots import plot_of

        return plot_of(self, kind, mode)


def solve(
    instance: Spec,
    model: str | Method,
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
    progress: Callable[[str], None] | None = None,
    **options: Any,
) -> Run:
    """Solve an instance with one method and verify the answer, as ``cwb solve`` does.

    Parameters
    ----------
    instance : Instance or other
        The instance or what :func:`load` takes.
    model : str or Method
        Name of the method, or of a formulation that is solved as it is declared; or a method of your own.
    collective, size, chunks : optional
        Of the collective, such as ``"all_gather"``, ``"1 GiB"`` and 4, in place of the instance's. Of a method that has
        an option ``chunks``, it is the option.
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
    Run
        The record, with status, objective, bound and metrics, and the answer as ``schedule``.

    Raises
    ------
    InputError
        If a name or an option is wrong.
    """
    from ..core.budget import silent
    from ..harness import Request, registry, run

    if not isinstance(model, str):
        register(model)
        model = model.name
    with keyword_names():
        chunks = None if chunks is None else whole(chunks, "chunks", 1, MAX_CHUNKS)
        if chunks is not None and "chunks" in registry.get(model).options.model_fields:
            options, chunks = {**options, "chunks": chunks}, None
        asked = load(instance, collective=collective, size=size, chunks=chunks)
        seed, threads = whole(seed, "seed", 0, 2**31 - 1), whole(threads, "threads", 1, 1024)
        time_limit_s, gap = _limit(time_limit_s, "time_limit_s"), _limit(gap, "gap")
        request = Request(model, solver, options, seed, threads, time_limit_s, gap, log_file, solver_options or {})
        return Run.of(run(asked, request, progress or silent))


def train(
    spec: Spec, *, chunks: int = 1, seed: int = 0, time_limit_s: float | None = None, **options: Any
) -> dict[str, Any]:
    """Simulate a training iteration, as ``cwb train`` does.

    Parameters
    ----------
    spec : instance
        An instance, or what :func:`load` takes.
    chunks : int
        Chunks that each rank's part of a collective is cut into.
    seed, time_limit_s
        Of each run of a method.
    **options
        Those of ``cwb train`` by their names: ``workload="gpt-2"``, ``method={"all_reduce": "bfb"}``,
        ``group={"tp": "16"}``, ``bucket=["25 MiB"]``; ``options`` are those of each method.

    Returns
    -------
    dict
        What ``cwb train --json`` prints.

    Raises
    ------
    InputError
        If an option, the workload, a group or a method is wrong.
    Unsupported
        If a method does not take a collective.
    """
    from ..core.fields import validated
    from ..core.training import TrainingOptions
    from ..harness.training import measures, request_of
    from ..harness.training import train as simulated

    with keyword_names():
        known = TrainingOptions.model_fields
        asked = validated(lambda: TrainingOptions.model_validate(options), known)
        chunks, seed = whole(chunks, "chunks", 1, MAX_CHUNKS), whole(seed, "seed", 0, 2**31 - 1)
        request = request_of(asked, chunks, seed, _limit(time_limit_s, "time_limit_s"))
        return measures(simulated(load(spec), request))


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
    """Return why an instance has no answer, as ``cwb solve --explain`` does.

    Parameters
    ----------
    instance : Instance or other
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
    from ..harness.explain import explain as explained

    with keyword_names():
        return explained(*_study(instance, model, collective, size, solver, time_limit_s, options))


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
    """Return what more bandwidth is worth, as ``cwb solve --sensitivity`` does.

    Parameters
    ----------
    instance : Instance or other
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
    from ..harness.sensitivity import sensitivity as found

    with keyword_names():
        return found(*_study(instance, model, collective, size, solver, time_limit_s, options))


def _study(
    instance: Spec,
    model: str,
    collective: str | None,
    size: str | None,
    solver: str,
    time_limit_s: float | None,
    options: Mapping[str, Any],
) -> tuple[Instance, Request]:
    from ..harness import Request

    asked = load(instance, collective=collective, size=size)
    return asked, Request(model, solver, options, time_limit_s=_limit(time_limit_s, "time_limit_s"))


def _limit(value: float | None, name: str) -> float | None:
    return None if value is None else at_least_0(value, name)


def compare(
    suite: str | Path,
    output: str | Path,
    progress: Callable[[str], None] | None = None,
    seeds: int | None = None,
) -> list[RunRecord]:
    """Run every cell of a suite, as ``cwb compare`` does, and append the records to ``output/records.jsonl``.

    ``seeds`` is the number of seeds of every run, from 0, instead of the suite's.
    """
    from ..core.budget import silent
    from ..harness.suite import run_suite

    return run_suite(suite, Path(output), progress or silent, seeds=seeds)


def formulation(name: str) -> Formulation:
    """Return a declared model by name, such as ``"mtree/selection"``; its ``build(instance)`` returns the Pyomo model.

    Raises
    ------
    InputError
        If there is none with that name.
    """
    from ..harness import registry

    return registry.formulation(name)


def register(entry: Method | Formulation | Adapter) -> None:
    """Register a method, formulation or solver of your own by its name, in this process.

    Raises
    ------
    InputError
        If another one has the name.
    """
    from ..harness import registry

    registry.register(entry)
