"""Tables of solvers against each other on the same models, and of settings of a method over seeds."""

from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from ...core.grouping import group_by_key
from ...core.record import ATTESTED, RunRecord
from ..numbers import FAILED, INVALID, UNANSWERED, NumberFormat, mark_of, number
from ..runs import (
    OWN_SECONDS,
    LedgerRun,
    canonical_json,
    identity,
    latest,
    options_text,
    own_seconds,
    problem_options,
    runs_of,
)
from ..statistics import BOOTSTRAP, SHIFT_S, sgm_end, shifted_geometric_mean, total
from ..table import Column, Key, RecordPlace, TableSpec
from .collective import SOLVER, fact

TIE = 0.05  #: Times that differ by less are a tie.

#: A task that every solver of a model was given: the same instance, options, seed and threads.
_SolverTask = tuple[str, ...]


def _solver_entries(records: Sequence[RunRecord]) -> list[RecordPlace]:
    """Place the runs of the tasks that all solvers of a model attempted; unsupported tasks do not count."""
    tasks: dict[str, dict[_SolverTask, dict[str, RunRecord]]] = {}
    refusals: dict[str, list[RecordPlace]] = {}
    for record in latest(records, identity, lambda record: record).values():
        if record.solver is None:
            continue
        if record.status == "unsupported":
            entry = RecordPlace(record, (record.model, solver_label(record)), facts={"unsupported": 1.0})
            refusals.setdefault(record.model, []).append(entry)
        else:
            tasks.setdefault(record.model, {}).setdefault(_task(record), {})[solver_label(record)] = record
    entries: list[RecordPlace] = []
    for model, by_task in tasks.items():
        solvers = {solver for runs in by_task.values() for solver in runs}
        unable = refusals.get(model, [])
        if len({*solvers, *(entry.labels[1] for entry in unable)}) < 2:
            continue
        entries += unable
        common = [runs for _, runs in sorted(by_task.items()) if set(runs) == solvers]
        longest = max((s for runs in common for r in runs.values() if (s := own_seconds(r)) is not None), default=0.0)
        for runs in common:
            times = {solver: own_seconds(record) if has_ended(record) else None for solver, record in runs.items()}
            for solver, record in runs.items():
                entries.append(_entry(model, solver, record, times, longest))
    return entries


def solver_label(record: RunRecord) -> str:
    """Return the name of the solver with its options."""
    return f"{record.solver} ({options_text(record.solver_options)})" if record.solver_options else str(record.solver)


def _task(record: RunRecord) -> _SolverTask:
    return (
        record.instance,
        record.instance_sha256,
        record.collective or "",
        canonical_json(record.options),
        f"{record.seed:012d}",
        str(record.threads),
    )


def is_solved(record: RunRecord) -> bool:
    """Return whether a run is a verified proof, an answer of a heuristic, or an attested bound alone."""
    if record.verified is False or own_seconds(record) is None:
        return False
    if record.verified is None:
        return record.status == "optimal" and record.proof == ATTESTED
    return record.status == "optimal" or (record.status == "feasible" and record.kind != "exact")


def has_ended(record: RunRecord) -> bool:
    """Return whether the solver has solved the model, also where its solution is no answer."""
    return is_solved(record) or (mark_of(record) is UNANSWERED and own_seconds(record) is not None)


def seconds_or_limit(record: RunRecord, longest: float, seconds: float | None = None) -> float:
    """Return own time or given part of a run that has ended; else its limit or the longest."""
    mine, limit = own_seconds(record), number(record.limits.get("time_limit_s"))
    if mine is not None and has_ended(record):
        return mine if seconds is None else seconds
    return longest if limit is None else limit


def _entry(model: str, solver: str, record: RunRecord, times: dict[str, float | None], longest: float) -> RecordPlace:
    mine = times[solver]
    others = [seconds for other, seconds in times.items() if other != solver and seconds is not None]
    facts: dict[str, float | None] = {
        "time": seconds_or_limit(record, longest),
        "solve": seconds_or_limit(record, longest, number(record.seconds.get("solve")) or 0.0),
        "tasks": 1.0,
        "solved": float(is_solved(record)),
        "unanswered": float(mark_of(record) is UNANSWERED),
        "failed": float(mark_of(record) in (FAILED, INVALID)),
        "attested": float(is_solved(record) and record.proof == ATTESTED),
        **{"win": 0.0, "tie": 0.0, "loss": 0.0},
    }
    if len(times) > 1:  # otherwise all others reject the model
        if mine is not None and (not others or mine < min(others) * (1 - TIE)):
            facts["win"] = 1.0
        elif mine is not None and mine <= min(others) * (1 + TIE):
            facts["tie"] = 1.0
        else:
            facts["loss"] = 1.0
    return RecordPlace(record, (model, solver), facts=facts)


FAILURES = "A task that failed or reached a limit counts with its limit, or without one with the longest time of all."

SECONDS = NumberFormat("fixed", 3)
COUNT = NumberFormat("fixed", 0)

_REJECTED = Column("unsupported", "Rejected", fact("unsupported"), COUNT, over=total, every=True)
_REFUSED = "Rejected are tasks that the method does not support, or not with that solver; they count for none."

SOLVERS = TableSpec(
    name="solvers",
    title="Solver against solver",
    expects="records of one model, instance and options with at least two solvers",
    entries=_solver_entries,
    keys=(Key("model", "Model"), Key("solver", "Solver")),
    columns=(
        Column("tasks", "Tasks", fact("tasks"), COUNT, over=total, every=True),
        Column("solved", "Solved", fact("solved"), COUNT, best="largest", over=total, every=True),
        Column("unanswered", "No answer", fact("unanswered"), COUNT, over=total, every=True),
        Column("failed", "Failed", fact("failed"), COUNT, over=total, every=True),
        Column("attested", "Attested", fact("attested"), COUNT, over=total, every=True),
        Column("time_s", "Time (SGM)", fact("time"), SECONDS, "s", "smallest", over=shifted_geometric_mean, every=True),
        Column("time_low_s", "from", fact("time"), SECONDS, "s", over=partial(sgm_end, 0), every=True, optional=True),
        Column("time_high_s", "to", fact("time"), SECONDS, "s", over=partial(sgm_end, 1), every=True, optional=True),
        Column("solve_s", "Solve (SGM)", fact("solve"), SECONDS, "s", over=shifted_geometric_mean, every=True),
        Column("win", "Win", fact("win"), COUNT, over=total, every=True),
        Column("tie", "Tie", fact("tie"), COUNT, over=total, every=True),
        Column("loss", "Loss", fact("loss"), COUNT, over=total, every=True),
        replace(_REJECTED, optional=True, note=_REFUSED),
    ),
    notes=(
        f"SGM is the shifted geometric mean, shift {SHIFT_S:g} s, over the tasks that all solvers of the model took "
        f"on; {BOOTSTRAP}. {FAILURES}",
        "Solved is proved optimal, of a heuristic answered, and verified; Attested counts those whose bound is the "
        "solver's word. No answer: the model was solved, and its solution is no answer. Failed: an error, or an answer "
        "that is wrong. All other tasks reached a limit. Solve is the time in the solver alone, without building.",
        f"Win, Tie, Loss: own time against the fastest "
        f"other solver, a tie within {TIE:.0%}; a model that was not solved is a loss.".replace("%", " percent"),
        OWN_SECONDS,
    ),
    block=("model",),
)


class _SeedTask(NamedTuple):
    """Problem and limits given to every setting of a method."""

    problem: tuple[str, ...]
    threads: int
    seed: int


_Setting = tuple[str, str | None]  #: Options of the method's own, and the solver with its options.
_Runs = Mapping[_Setting, Mapping[_SeedTask, LedgerRun]]


def _seed_entries(records: Sequence[RunRecord]) -> list[RecordPlace]:
    """Place the runs of the tasks common to all settings of a method, for methods with several seeds."""
    models: dict[str, dict[_Setting, dict[_SeedTask, LedgerRun]]] = defaultdict(lambda: defaultdict(dict))
    for run in runs_of(records):
        if run.record.status != "unsupported":
            record, options = run.record, problem_options(run.record)
            own = options_text({name: value for name, value in record.options.items() if name not in options})
            setting = (own or "defaults", None if record.solver is None else solver_label(record))
            models[record.model][setting][_SeedTask(run.problem, record.threads, record.seed)] = run
    return [entry for model, runs in models.items() for entry in _of_model(model, runs)]


def _of_model(model: str, runs: _Runs) -> list[RecordPlace]:
    """Place the runs of one method on the tasks that its settings share."""
    common = sorted(set.intersection(*(set(of) for of in runs.values())))
    if len({task.seed for task in common}) < 2:
        return []
    every = [of[task] for of in runs.values() for task in common]
    longest = max((seconds_or_limit(run.record, 0.0) for run in every if is_solved(run.record)), default=0.0)
    costs = group_by_key((key, _cost(run)) for run in every for key in _question_keys(run))
    entries: list[RecordPlace] = []
    for setting, of in runs.items():
        of_seed = group_by_key((task.seed, seconds_or_limit(of[task].record, longest)) for task in common)
        for task in common:
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
    return -(run.objective or 0.0) if run.record.sense == "maximize" else run.objective or 0.0


def _standing(run: LedgerRun, costs: Mapping[Hashable, Sequence[float]], *, alone: bool) -> dict[str, float | None]:
    """Return the excess of an answer over the best, whether it is a best one, and whether tied."""
    if not (keys := _question_keys(run)):
        return {"excess": None, "best": None if alone else 0.0, "tied": None if alone else 0.0}
    cost, best, task = _cost(run), min(costs[keys[0]]), costs[keys[1]]
    return {
        "excess": (cost - best) / abs(best) if best else None,
        "best": None if alone else float(cost == min(task)),
        "tied": None if alone else float(cost == min(task) and task.count(cost) > 1),
    }


_PERCENT = NumberFormat("fixed", 2, 0.01)

SEEDS = TableSpec(
    name="seeds",
    title="Settings over seeds",
    expects="records of a model with at least two seeds on the same problem",
    entries=_seed_entries,
    keys=(Key("model", "Model"), Key("options", "Options", optional=True), SOLVER),
    columns=(
        Column("tasks", "Tasks", fact("tasks"), COUNT, over=total, every=True),
        Column("seeds", "Seeds", fact("seed"), COUNT, over=lambda seeds: float(len(set(seeds))), every=True),
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
