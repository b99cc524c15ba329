"""``solvers``: solver against solver on the same models.

Solved tasks, shifted geometric means, wins, ties and losses.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from ...core.record import ATTESTED, RunRecord
from ..numbers import NumberFormat, number
from ..records import latest
from ..runs import OWN_SECONDS, canonical_json, identity, options_text, own_seconds
from ..spec import ALONE, Column, Key, RecordPlace, TableSpec
from ..statistics import BOOTSTRAP, SHIFT_S, sgm_high, sgm_low, shifted_geometric_mean, total
from .collective import fact

#: Times that differ by less are a tie.
TIE = 0.05

#: A task that every solver of a model was given: the same instance, options, seed and threads.
_Task: TypeAlias = tuple[str, ...]


def _entries(records: Sequence[RunRecord]) -> list[RecordPlace]:
    """Place the runs of the tasks that all solvers of a model attempted.

    Failures count at the limit; unsupported tasks do not count.
    """
    tasks: dict[str, dict[_Task, dict[str, RunRecord]]] = {}
    refused: dict[str, list[RecordPlace]] = {}
    for record in latest(records, identity, lambda record: record).values():
        if record.solver is None:
            continue
        if record.status == "unsupported":
            entry = RecordPlace(record, (record.model, solver_label(record)), facts={"unsupported": 1.0})
            refused.setdefault(record.model, []).append(entry)
        else:
            tasks.setdefault(record.model, {}).setdefault(_task(record), {})[solver_label(record)] = record
    entries: list[RecordPlace] = []
    for model, by_task in tasks.items():
        solvers = {solver for runs in by_task.values() for solver in runs}
        unable = refused.get(model, [])
        if len({*solvers, *(entry.labels[1] for entry in unable)}) < 2:
            continue
        entries += unable
        shared = [runs for _, runs in sorted(by_task.items()) if set(runs) == solvers]
        longest = max((s for runs in shared for r in runs.values() if (s := own_seconds(r)) is not None), default=0.0)
        for runs in shared:
            times = {solver: own_seconds(record) if is_solved(record) else None for solver, record in runs.items()}
            for solver, record in runs.items():
                entries.append(_entry(model, solver, record, times, longest))
    return entries


def solver_label(record: RunRecord) -> str:
    """Return the name of the solver with its options."""
    return f"{record.solver} ({options_text(record.solver_options)})" if record.solver_options else str(record.solver)


def _task(record: RunRecord) -> _Task:
    return (
        record.instance,
        record.instance_sha256,
        record.collective or "",
        canonical_json(record.options),
        f"{record.seed:012d}",
        str(record.threads),
    )


def is_solved(record: RunRecord) -> bool:
    """Return whether a run achieved what its method is for.

    That is a verified proof, for a heuristic a verified answer, or a bound alone that a solver attests.
    """
    if record.verified is False or own_seconds(record) is None:
        return False
    if record.verified is None:
        return record.status == "optimal" and record.proof == ATTESTED
    return record.status == "optimal" or (record.status == "feasible" and record.kind != "exact")


def seconds_or_limit(record: RunRecord, longest: float) -> float:
    """Return the own time of a solved run, else its limit, or the longest time without one."""
    mine, limit = own_seconds(record), number(record.limits.get("time_limit_s"))
    if mine is not None and is_solved(record):
        return mine
    return longest if limit is None else limit


def _entry(model: str, solver: str, record: RunRecord, times: dict[str, float | None], longest: float) -> RecordPlace:
    mine = times[solver]
    others = [seconds for other, seconds in times.items() if other != solver and seconds is not None]
    facts: dict[str, float | None] = {
        "time": seconds_or_limit(record, longest),
        "tasks": 1.0,
        "solved": float(mine is not None),
        "attested": float(mine is not None and record.proof == ATTESTED),
        **{"win": 0.0, "tie": 0.0, "loss": 0.0},
    }
    if len(times) == 1:
        pass  # all others reject the model
    elif mine is None:
        facts["loss"] = 1.0
    elif not others or mine < min(others) * (1 - TIE):
        facts["win"] = 1.0
    elif mine <= min(others) * (1 + TIE):
        facts["tie"] = 1.0
    else:
        facts["loss"] = 1.0
    return RecordPlace(record, (model, solver), facts=facts)


FAILURES = "A task that was not solved counts with its time limit, or without one with the longest time of the model."

SECONDS = NumberFormat("fixed", 3)
COUNT = NumberFormat("fixed", 0)

SPEC = TableSpec(
    name="solvers",
    title="Solver against solver",
    expects="records of one model, instance and options with at least two solvers",
    entries=_entries,
    keys=(Key("model", "Model"), Key("solver", "Solver")),
    groups=ALONE,
    columns=(
        Column("tasks", "Tasks", fact("tasks"), COUNT, over=total, every=True),
        Column("solved", "Solved", fact("solved"), COUNT, best="largest", over=total, every=True),
        Column("attested", "Attested", fact("attested"), COUNT, over=total, every=True),
        Column("time_s", "Time (SGM)", fact("time"), SECONDS, "s", "smallest", over=shifted_geometric_mean, every=True),
        Column("time_low_s", "from", fact("time"), SECONDS, "s", over=sgm_low, every=True, optional=True),
        Column("time_high_s", "to", fact("time"), SECONDS, "s", over=sgm_high, every=True, optional=True),
        Column("win", "Win", fact("win"), COUNT, over=total, every=True),
        Column("tie", "Tie", fact("tie"), COUNT, over=total, every=True),
        Column("loss", "Loss", fact("loss"), COUNT, over=total, every=True),
        Column(
            "unsupported",
            "Rejected",
            fact("unsupported"),
            COUNT,
            over=total,
            every=True,
            optional=True,
            note="Rejected are tasks that the method does not support, or not with that solver; they count for none.",
        ),
    ),
    notes=(
        f"SGM is the shifted geometric mean, shift {SHIFT_S:g} s, over the tasks that all solvers of the model took "
        f"on; {BOOTSTRAP}. {FAILURES}",
        "Solved is proved optimal, of a heuristic answered, and verified; Attested counts those whose bound is the "
        "solver's word.",
        f"Win, Tie, Loss: own time against the fastest "
        f"other solver, a tie within {TIE:.0%}; what was not solved is a loss.".replace("%", " percent"),
        OWN_SECONDS,
    ),
    block=("model",),
)
