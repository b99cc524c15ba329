"""Tasks: cells with everything needed to run them on any machine, and the keys of their records."""

import hashlib
import json
import platform
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from math import inf
from pathlib import Path
from typing import Any

from .. import instances
from ..core.budget import Budget, Progress, ignore, limited_by
from ..core.errors import CwbError, ExitStatus, InputError, OutOfTime
from ..core.instance import Instance, plain
from ..core.record import RunRecord
from ..instances.demand import with_demand
from ..instances.edits import Edit, edit_instance
from . import registry
from .clock import WallClock
from .environment import cwb_version, environment, package_version, time_stamp
from .interrupt import RunInterrupted, time_limited
from .plan import Cell
from .request import Listener, plain_option
from .run import FinishedRun, run, unsupported_record, write_found
from .suite_file import is_file

#: Name, digest and collective of an instance; of one that could not be loaded, its specification and no digest.
_Named = tuple[str, str, str | None]


@dataclass(frozen=True)
class Task:
    """One run, with all fields of its record that do not depend on its result; can be pickled."""

    cell: Cell
    key: str  #: Digest of the whole specification, which identifies the record.
    facts: Mapping[str, Any] = field(default_factory=dict)  #: Fields of the record that are known before it runs.
    grace_s: float = 10.0  #: Seconds after the time limit at which the run is stopped.
    #: Its record, if known without a run: the instance or an option is wrong, or not supported.
    record: RunRecord | None = None
    #: Folder for the schedule of a verified answer, in a file named after the key; None to keep none.
    schedules: Path | None = None

    def failure(self, message: str, started_at: str, exit_status: int = ExitStatus.FAILURE) -> RunRecord:
        """Return the record of an error, described in one line."""
        return RunRecord(
            **self.facts,
            key=self.key,
            status="error",
            message=" ".join(message.split()),
            host=platform.node(),
            started_at=started_at,
            exit_status=int(exit_status),
            environment=environment(),
        )


@dataclass(frozen=True)
class Limits:
    """Limits of every run that replace those of the suite."""

    time_limit_s: float | None = None
    memory_bytes: int | None = None
    grace_s: float = 10.0  #: Seconds after the time limit at which a run in progress is stopped.

    def of(self, cell: Cell) -> Cell:
        """Return a cell with these limits."""
        limit_s = cell.request.time_limit_s if self.time_limit_s is None else self.time_limit_s
        memory = cell.memory_bytes if self.memory_bytes is None else self.memory_bytes
        return replace(cell, request=replace(cell.request, time_limit_s=limit_s), memory_bytes=memory)


def tasks(
    plan: Iterable[Cell], limits: Limits | None = None, progress: Progress = ignore, load_s: float = inf
) -> list[Task]:
    """Convert cells to tasks; equal cells are one task.

    Every instance is loaded, since its digest is a part of the key. Invalid or unsupported cells get their records
    at once; an instance that cannot be loaded within the limit of its run, or ``load_s`` seconds, is reported when
    it runs.
    """
    limits = limits or Limits()
    plan = [limits.of(cell) for cell in plan]
    problems: dict[tuple[Any, ...], list[int]] = {}
    for index, cell in enumerate(plan):
        problem = cell.instance, cell.collective, cell.size, cell.chunks, cell.request.time_limit_s, tuple(cell.edits)
        problems.setdefault(problem, []).append(index)
    task_at: dict[int, Task] = {}
    for indices in problems.values():
        cell = plan[indices[0]]
        instance = _load_for_record(cell, progress, load_s)
        identity: _Named = cell.instance, "", cell.collective
        if isinstance(instance, Instance):
            identity = instance.name, instance.sha256, instance.collective_name
        for index in indices:
            task_at[index] = settle_task(task_of(plan[index], identity, limits.grace_s), instance)
    by_key: dict[str, Task] = {}
    for index in range(len(plan)):
        by_key.setdefault(task_at[index].key, task_at[index])
    return list(by_key.values())


def settle_task(task: Task, instance: Instance | CwbError | None) -> Task:
    """Return the task with its record, if that is known without a run."""
    started_at = time_stamp()
    record: RunRecord | None = None
    if isinstance(instance, InputError):
        record = task.failure(str(instance), started_at, instance.exit_status)
    elif isinstance(instance, Instance):
        try:
            record = unsupported_record(instance, task.cell.request)
        except InputError as error:
            record = task.failure(str(error), started_at, error.exit_status)
        except Exception:  # the method's own mistake, which its run tells
            return task
    if record is None:
        return task
    return replace(task, record=replace(record, key=task.key, limits=task.facts["limits"]))


def load_cell(cell: Cell) -> Instance:
    """Load the instance of a cell, with its changes and its collective, and compute its digest."""
    network = edit_instance(instances.load(cell.instance), [Edit(*edit) for edit in cell.edits])
    instance = with_demand(network, cell.collective, cell.size, cell.chunks)
    _ = instance.sha256  # computed and kept within the limits of loading
    return instance


def _load_for_record(cell: Cell, progress: Progress, load_s: float) -> Instance | CwbError | None:
    """Return the instance of a cell, or its error; None if only the run can tell."""
    limit_s = min(load_s, inf if cell.request.time_limit_s is None else cell.request.time_limit_s)
    try:
        with limited_by(Budget(limit_s, clock=WallClock(limit_s), progress=progress), "loading the instance"):
            return load_cell(cell)
    except CwbError as error:
        return error
    except Exception:
        return None


def task_of(cell: Cell, instance: _Named, grace_s: float = 10.0) -> Task:
    """Create the task of a cell from name, digest and collective of its instance."""
    name, sha256, collective = instance
    if is_file(path := Path(cell.instance)):
        cell = replace(cell, instance=str(path.resolve()))  # found from any folder
    request = cell.request
    kind, options, solver = _of_method(cell)
    spec = {
        "instance": [name, sha256] if sha256 else [cell.instance, cell.collective, cell.size, cell.chunks],
        "model": request.model,
        "options": options,
        "solver": [solver, _solver_version(solver)],
        "seed": request.seed,
        "threads": request.threads,
        "limits": limits_of(cell),
        "versions": {"cwb": cwb_version(), "pyomo": package_version("pyomo")},
    }
    own = {name: plain_option(value) for name, value in request.solver_options.items()} if solver else {}
    if own:
        spec["solver_options"] = own
    text = json.dumps(spec, sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=str)
    facts = {
        "cwb_version": cwb_version(),
        "model": request.model,
        "kind": kind,
        "instance": name,
        "instance_sha256": sha256,
        "collective": collective,
        "solver": solver,
        "solver_version": _solver_version(solver),
        "options": {name: plain_option(value) for name, value in request.options.items()},
        "seed": request.seed,
        "threads": request.threads,
        "limits": limits_of(cell),
        "solver_options": own,
    }
    return Task(cell, hashlib.sha256(text.encode()).hexdigest(), facts, grace_s)


def limits_of(cell: Cell) -> dict[str, float]:
    """Return the limits of a run, as in its record."""
    memory = {} if cell.memory_bytes is None else {"memory_bytes": cell.memory_bytes}
    return {**cell.request.limits(), **memory}


def _of_method(cell: Cell) -> tuple[str, Any, str | None]:
    """Return kind, options with defaults, and solver; wrong options are left to the run's report."""
    request = cell.request
    try:
        method = registry.get(request.model)
    except Exception:
        return "", dict(request.options), request.solver
    try:
        options = plain(dict(method.options.model_validate(dict(request.options))))
    except ValueError:
        options = dict(request.options)
    return method.kind.value, options, request.solver if method.needs_solver else None


def _solver_version(name: str | None) -> str | None:
    try:
        return None if name is None else registry.solver(name).installation().version
    except CwbError:
        return None


def run_cell(cell: Cell, stop: threading.Event | None = None) -> RunRecord:
    """Run a cell and return its record; if it cannot run, the record states the reason."""
    return run_task(tasks([cell])[0], stop)


def run_task(task: Task, stop: threading.Event | None = None, listener: Listener | None = None) -> RunRecord:
    """Run a task and return its record, even if it fails."""
    from ..schedules.files import Written

    started_at = time_stamp()
    try:
        result = load_and_run(task.cell, stop, listener)
        if task.schedules is not None and result.record.verified and isinstance(result.answer, Written):
            write_found(task.schedules / f"{task.key}.npz", result, key=task.key)
        return replace(result.record, key=task.key, limits=task.facts["limits"])
    except CwbError as error:
        return task.failure(str(error), started_at, error.exit_status)
    except Exception as error:
        return task.failure(f"internal error: {type(error).__name__}: {error}", started_at, ExitStatus.FAILURE)


def load_and_run(cell: Cell, stop: threading.Event | None = None, listener: Listener | None = None) -> FinishedRun:
    """Load the instance of a cell and run its method, both within the run's time limit.

    If this ends the loading, the result has no instance.
    """
    listener, stop = listener or Listener(), stop or threading.Event()
    started_at = time_stamp()
    clock = WallClock(cell.request.time_limit_s)
    budget = Budget(cell.request.time_limit_s, clock=clock, progress=listener.progress, stop=stop)
    try:
        with clock.phase("load"), limited_by(budget, "loading the instance"), time_limited(budget):
            instance = load_cell(cell)
    except (OutOfTime, RunInterrupted) as error:
        task = task_of(cell, (cell.instance, "", cell.collective))
        message = str(error) or f"{budget.why_exhausted} while loading the instance"
        record = task.failure(message, started_at, ExitStatus.LIMIT)
        return FinishedRun(replace(record, key="", status="limit", seconds=clock.seconds()), None, None, None)
    return run(instance, cell.request, stop=stop, listener=listener, clock=clock)
