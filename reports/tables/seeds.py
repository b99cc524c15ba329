"""``seeds``: settings of a method against each other over several seeds.

Shifted geometric means with their range over the seeds, failures at the limit, and how good the answers are.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from typing import NamedTuple

from ...core.record import RunRecord
from ..numbers import NumberFormat
from ..runs import OWN_SECONDS, LedgerRun, options_text, problem_options, runs_of
from ..spec import ALONE, Column, Key, RecordPlace, TableSpec
from ..statistics import SHIFT_S, shifted_geometric_mean, total
from .collective import SOLVER, fact
from .solvers import COUNT, FAILURES, SECONDS, is_solved, seconds_or_limit, solver_label


class _Task(NamedTuple):
    """Problem and limits given to every setting of a method."""

    problem: tuple[str, ...]
    threads: int
    seed: int


class _Setting(NamedTuple):
    """A setting: options of the method's own, and the solver with its options."""

    options: str
    solver: str | None


_Runs = Mapping[_Setting, Mapping[_Task, LedgerRun]]


def _entries(records: Sequence[RunRecord]) -> list[RecordPlace]:
    """Place the runs of the tasks common to all settings of a method, for methods with several seeds."""
    models: dict[str, dict[_Setting, dict[_Task, LedgerRun]]] = defaultdict(lambda: defaultdict(dict))
    for run in runs_of(records):
        if run.record.status != "unsupported":
            task = _Task(run.problem, run.record.threads, run.record.seed)
            models[run.record.model][_setting(run.record)][task] = run
    return [entry for model, runs in models.items() for entry in _of_model(model, runs)]


def _setting(record: RunRecord) -> _Setting:
    own = {name: value for name, value in record.options.items() if name not in problem_options(record)}
    return _Setting(options_text(own) or "defaults", None if record.solver is None else solver_label(record))


def _of_model(model: str, runs: _Runs) -> list[RecordPlace]:
    """Place the runs of one method on the tasks that its settings share."""
    shared = sorted(set.intersection(*(set(of) for of in runs.values())))
    if len({task.seed for task in shared}) < 2:
        return []
    every = [of[task] for of in runs.values() for task in shared]
    longest = max((seconds_or_limit(run.record, 0.0) for run in every if is_solved(run.record)), default=0.0)
    costs = defaultdict[Hashable, list[float]](list)
    for run in every:
        for asked in _question_keys(run):
            costs[asked] += [_cost(run)]
    entries: list[RecordPlace] = []
    for setting, of in runs.items():
        of_seed = defaultdict[int, list[float]](list)
        for task in shared:
            of_seed[task.seed].append(seconds_or_limit(of[task].record, longest))
        for task in shared:
            run = of[task]
            facts = {
                "time": seconds_or_limit(run.record, longest),
                "seed_time": shifted_geometric_mean(of_seed[task.seed]),
                "seed": float(task.seed),
                "tasks": 1.0,
                "failed": float(not is_solved(run.record)),
                **_standing(run, costs, alone=len(runs) == 1),
            }
            entries.append(RecordPlace(run.record, (model, *setting), facts=facts))
    return entries


def _question_keys(run: LedgerRun) -> tuple[Hashable, ...]:
    """Return the keys of comparable answers: same objective type with any seed, and with its own."""
    if run.objective is None or run.question is None:
        return ()
    return (run.problem, run.question), (run.problem, run.question, run.record.threads, run.record.seed)


def _cost(run: LedgerRun) -> float:
    """Return the objective of an answer as a cost to minimize."""
    return -(run.objective or 0.0) if run.record.sense == "maximize" else run.objective or 0.0


def _standing(run: LedgerRun, costs: Mapping[Hashable, Sequence[float]], *, alone: bool) -> dict[str, float | None]:
    """Return the excess of an answer over the best, whether it is a best one, and whether tied."""
    if not (asked := _question_keys(run)):
        return {"excess": None, "best": None if alone else 0.0, "tied": None if alone else 0.0}
    cost, best, task = _cost(run), min(costs[asked[0]]), costs[asked[1]]
    return {
        "excess": (cost - best) / abs(best) if best else None,
        "best": None if alone else float(cost == min(task)),
        "tied": None if alone else float(cost == min(task) and task.count(cost) > 1),
    }


def _number(values: Sequence[float]) -> float:
    """Return the number of different values."""
    return float(len(set(values)))


_PERCENT = NumberFormat("fixed", 2, 0.01)

SPEC = TableSpec(
    name="seeds",
    title="Settings over seeds",
    expects="records of a model with at least two seeds on the same problem",
    entries=_entries,
    keys=(Key("model", "Model"), Key("options", "Options", optional=True), SOLVER),
    groups=ALONE,
    columns=(
        Column("tasks", "Tasks", fact("tasks"), COUNT, over=total, every=True),
        Column("seeds", "Seeds", fact("seed"), COUNT, over=_number, every=True),
        Column("failed", "Failed", fact("failed"), COUNT, best="smallest", over=total, every=True),
        Column("time_s", "Time (SGM)", fact("time"), SECONDS, "s", "smallest", over=shifted_geometric_mean, every=True),
        Column("time_least_s", "least", fact("seed_time"), SECONDS, "s", over=min, every=True),
        Column("time_largest_s", "largest", fact("seed_time"), SECONDS, "s", over=max, every=True),
        Column("excess", "Excess", fact("excess"), _PERCENT, "percent", "smallest", optional=True),
        Column("excess_largest", "largest", fact("excess"), _PERCENT, "percent", over=max, optional=True),
        Column("best", "Best", fact("best"), COUNT, best="largest", over=total, every=True, optional=True),
        Column("tied", "Tied", fact("tied"), COUNT, over=total, every=True, optional=True),
    ),
    notes=(
        "A task is a problem with a seed; they are those that all settings of a model were given and supported.",
        f"SGM is the shifted geometric mean, shift {SHIFT_S:g} s, over all tasks; least and largest are the least and "
        f"the largest of the means over the tasks of one seed. {FAILURES}",
        "Failed counts tasks that were not solved: proved optimal, of a heuristic answered, and verified.",
        "Excess is how much worse the objective is than the best of all settings and seeds on the problem, over the "
        "tasks that were answered: the mean, and the largest. Objectives that answer different questions are not "
        "compared.",
        "Best: no other setting has a better objective on the task. Tied: of these, another one has the very same "
        "number.",
        OWN_SECONDS,
    ),
    block=("model",),
)
