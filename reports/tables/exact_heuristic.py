"""``exact-heuristic``: gaps of heuristics to the best proved bound, and their speed relative to exact methods."""

from __future__ import annotations

from collections.abc import Sequence

from ...core.record import RunRecord
from ..bounds import Bounds
from ..numbers import NumberFormat
from ..runs import OWN_SECONDS, LedgerRun, runs_of
from ..spec import ALONE, Column, Key, RecordPlace, TableSpec
from .collective import (
    COLLECTIVE,
    INSTANCE,
    KIND,
    METHOD,
    PROOF,
    QUESTION,
    RUNS,
    SIZE,
    SOLVER,
    TIME,
    entry_of,
    fact,
    interval,
    join_matching_rows,
    question_remarks,
)

_KEYS = (
    INSTANCE,
    COLLECTIVE,
    SIZE,
    METHOD,
    KIND,
    SOLVER,
    QUESTION,
    PROOF,
    Key("objective_unit", "Unit", optional=True),
)

_HEURISTIC = "heuristic"

_OBJECTIVE = Column("objective", "Objective", fact("objective"), NumberFormat("general", 6), best="smallest")
_OWN = Column("own_s", "Own time", fact("own_s"), NumberFormat("fixed", 3), "s", note=OWN_SECONDS)


def _entries(records: Sequence[RunRecord]) -> list[RecordPlace]:
    """Place the runs of the problems that both an exact method, or a relaxation, and a heuristic were run on."""
    runs = runs_of(records)
    bounds = Bounds(runs)
    fastest: dict[tuple[str, ...], float] = {}
    kinds: dict[tuple[str, ...], set[bool]] = {}
    for run in runs:
        kinds.setdefault(run.problem, set()).add(run.record.kind == _HEURISTIC)
        if (seconds := _exact_seconds(run)) is not None:
            asked = (*run.problem, run.question or "")
            fastest[asked] = min(seconds, fastest.get(asked, seconds))
    entries = [
        entry_of(run, bounds, _KEYS, time_ratio=_ratio(run, fastest.get((*run.problem, run.question or ""))))
        for run in runs
        if len(kinds[run.problem]) == 2
    ]
    return join_matching_rows(_KEYS, entries)


def _exact_seconds(run: LedgerRun) -> float | None:
    """Own time of an exact method that proved its answer."""
    proved = run.record.kind == "exact" and run.record.status == "optimal" and run.record.verified is True
    return run.own_s if proved else None


def _ratio(run: LedgerRun, exact_s: float | None) -> float | None:
    return None if run.own_s is None or not exact_s else run.own_s / exact_s


SPEC = TableSpec(
    name="exact-heuristic",
    title="Exact methods against heuristics",
    expects="records of a heuristic and of an exact method or a relaxation on the same problem",
    entries=_entries,
    keys=_KEYS,
    groups=ALONE,
    columns=(
        TIME,
        _OBJECTIVE,
        Column("bound", "Best bound", fact("bound"), NumberFormat("general", 6), every=True),
        Column("gap", "Gap", fact("gap"), NumberFormat("fixed", 2, 0.01), "percent"),
        _OWN,
        interval(_OWN),
        Column("time_ratio", "Time ratio", fact("time_ratio"), NumberFormat("general", 3)),
        RUNS,
    ),
    notes=(
        "Gap is to the best proved bound of all records of the problem that holds for its question. Time ratio is "
        "over the own time of the fastest exact method that proved its answer to the same question optimal.",
    ),
    block=("instance", "collective", "size_bytes", "question", "objective_unit"),
    remarks=question_remarks,
)
