"""``textbook``: ring, direct, halving-doubling and double binary tree side by side.

A row is one network and size, as in figures 5.1 and 5.2 of the dissertation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ...core.record import RunRecord
from ..bounds import Bounds
from ..runs import runs_of
from ..spec import ColumnGroup, RecordPlace, TableSpec
from .collective import ALGBW, COLLECTIVE, GAP, INSTANCE, SIZE, bound_remarks, entry_of

#: The algorithms, each with the heading of its columns.
_MODELS = {"ring": "Ring", "direct": "Direct", "rhd": "Halving-doubling", "dbt": "Double binary tree"}

_KEYS = (INSTANCE, COLLECTIVE, SIZE)


def _entries(records: Sequence[RunRecord]) -> list[RecordPlace]:
    """Return the cells of all runs of these algorithms that set no option."""
    runs = [run for run in runs_of(records) if run.record.collective is not None]
    bounds = Bounds(runs)
    return [
        replace(entry_of(run, bounds, _KEYS), group=run.record.model)
        for run in runs
        if run.record.model in _MODELS and not run.record.options
    ]


SPEC = TableSpec(
    name="textbook",
    title="Textbook algorithms side by side",
    expects="records of the model 'ring', 'direct', 'rhd' or 'dbt' on a collective, without options",
    entries=_entries,
    keys=_KEYS,
    groups=tuple(ColumnGroup(name, heading) for name, heading in _MODELS.items()),
    columns=(replace(ALGBW, best="largest"), GAP),
    notes=("algbw is the full buffer over the completion time.",),
    remarks=bound_remarks,
)
