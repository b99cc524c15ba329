"""``summary``: every run of a ledger."""

from __future__ import annotations

from collections.abc import Sequence

from ...core.record import RunRecord
from ..bounds import Bounds
from ..numbers import NumberFormat, number
from ..runs import OWN_SECONDS, runs_of
from ..spec import ALONE, Column, Key, RecordPlace, TableSpec
from .collective import COLLECTIVE, INSTANCE, METHOD, PROOF, QUESTION, SIZE, SOLVER, entry_of, fact, question_remarks

_KEYS = (
    INSTANCE,
    COLLECTIVE,
    SIZE,
    METHOD,
    SOLVER,
    QUESTION,
    PROOF,
    Key("seed", "Seed", form=NumberFormat("general", 10), optional=True),
    Key("objective_unit", "Unit", optional=True),
)


def _entries(records: Sequence[RunRecord]) -> list[RecordPlace]:
    runs = runs_of(records)
    bounds = Bounds(runs)
    return [entry_of(run, bounds, _KEYS) for run in runs]


SPEC = TableSpec(
    name="summary",
    title="All runs",
    expects="any record",
    entries=_entries,
    keys=_KEYS,
    groups=ALONE,
    columns=(
        Column("objective", "Objective", fact("objective"), NumberFormat("general", 6)),
        Column("bound", "Best bound", fact("bound"), NumberFormat("general", 6), every=True),
        Column("gap", "Gap", fact("gap"), NumberFormat("fixed", 2, 0.01), "percent"),
        Column("own_s", "Own time", fact("own_s"), NumberFormat("fixed", 3), "s", every=True),
        Column(
            "total_s",
            "Total",
            lambda entry: number(entry.record.seconds.get("total")),
            NumberFormat("fixed", 3),
            "s",
            every=True,
        ),
    ),
    notes=(
        "Best bound is the best that any record of the problem proved and that holds for its question; Gap is to it.",
        OWN_SECONDS,
    ),
    remarks=question_remarks,
)
