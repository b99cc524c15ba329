"""``seeds``: settings of a method against each other over several seeds.

Shifted geometric means with their range over the seeds, failures at the limit, and how good the answers are.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from typing import NamedTuple

from ...core.record import RunRecord
from ..numbers import NumberFormat
from ..runs import OWN_SECONDS, LedgerRun, runs_of, shown, stated
from ..spec import ALONE, Column, Key, RecordPlace, TableSpec
from ..statistics import SHIFT_S, shifted_geometric_mean, total
from .collective import SOLVER, fact
from .solvers import COUNT, FAILURES, SECONDS, seconds_or_limit, solved, solver_label


class _Task(NamedTuple):
    """What every setting of a method is given."""

    problem: tuple[str, ...]
    threads: int
    seed: int


class _Setting(NamedTuple):
    """What is tuned: options of the method's own, and the solver with its options."""

    options: str
    solver: str | None


_Runs = Mapping[_Setting, Mapping[_Task, LedgerRun]]


def _entries(records: Sequence[RunRecord]) -> list[RecordPlace]:
    """Place the runs of the tasks that all settings of a method were given, of methods with several seeds."""
    models: dict[str, dict[_Setting, dict[_Task, LedgerRun]]] = defaultdict(lambda: defaultdict(dict))
    for run in runs_of(records):
        if run.record.status != "unsupported":
            task = _Task(run.problem, run.record.threads, run.record.seed)
            models[run.record.model][_setting(run.record)][task] = run
    return [entry for model, runs in models.items() for entry in _of_model(model, runs)]


def _setting(record: RunRecord) -> _Setting:
    own = {name: value for name, value in record.options.items() if name not in stated(record)}
    return _Setting(shown(own) or "defaults", None if record.solver is None else solver_label(record))


def _of_model(model: str, runs: _Runs) -> list[RecordPlace]:
    """The runs of one method on the tasks that its settings share."""
    shared = sorted(set.intersection(*(set(of) for of in runs.values())))
    if len({task.seed for task in shared}) < 2:
        return []
    every = [of[task] for of in runs.values() for task in shared]
    longest = max((seconds_or_limit(run.record, 0.0) for run in every if solved(run.record)), default=0.0)
    costs = defaultdict[Hashable, list[float]](list)
    for run in every:
        for asked in _asked(run):
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
                "failed": float(not solved(run.record)),
                **_standing(run, costs, alone=len(runs) == 1),
            }
            entries.append(RecordPlace(run.record, (model, *setting), facts=facts))
    return entries


def _asked(run: LedgerRun) -> tuple[Hashable, ...]:
    """What an answer is held against: answers to the same question with any seed, and with its own; nothing if none."""
    if run.objective is None or run.question is None:
        return ()
    return (run.problem, run.question), (run.problem, run.question, run.record.threads, run.record.seed)


def _cost(run: LedgerRun) -> float:
    """The objective of an answer, to be small."""
    return -(run.objective or 0.0) if run.record.sense == "maximize" else run.objective or 0.0


def _standing(run: LedgerRun, costs: Mapping[Hashable, Sequence[float]], *, alone: bool) -> dict[str, float | None]:
    """How much worse an answer is than the best; whether no setting has a better one to the task, and whether it is tied."""
    if not (asked := _asked(run)):
        return {"excess": None, "best": None if alone else 0.0, "tied": None if alone else 0.0}
    cost, best, task = _cost(run), min(costs[asked[0]]), costs[asked[1]]
    return {
        "excess": (cost - best) / abs(best) if best else None,
        "best": None if alone else float(cost == min(task)),
        "tied": None if alone else float(cost == min(task) and task.count(cost) > 1),
    }


def _number(values: Sequence[float]) -> float:
    """How many different values there are."""
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
        f"SGM is the shifted geometric mean, shift {SHIFT_S:g} s, over all tasks; least and largest are the least and the "
        f"largest of the means over the tasks of one seed. {FAILURES}",
        "Failed counts tasks that were not solved: proved optimal, of a heuristic answered, and verified.",
        "Excess is how much worse the objective is than the best of all settings and seeds on the problem, over the tasks "
        "that were answered: the mean, and the largest. Objectives that answer different questions are not compared.",
        "Best: no other setting has a better objective on the task. Tied: of these, another one has the very same number.",
        OWN_SECONDS,
    ),
    block=("model",),
)
