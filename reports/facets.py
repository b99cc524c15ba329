"""Facets by which the runs of a report are filtered: method, instance and time model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from ..core.record import RunRecord
from .labels import natural
from .runs import LedgerRun, identity

#: Name and heading of each facet, in the order in which a page encodes them.
NAMES = ("method", "instance", "clock")

#: What may follow the name of a method in the name of a series.
_AFTER = (" (", ", ", " [", ": ")


@dataclass(frozen=True)
class Facets:
    """The methods, instances and time models of a ledger.

    Parameters
    ----------
    values : tuple of tuple of str
        Values that occur for each of :data:`NAMES`, in natural order.
    clock : mapping
        Known time models, by the identity of the run.
    """

    values: tuple[tuple[str, ...], ...]
    clock: Mapping[tuple[str, ...], str]

    def code(self, records: Iterable[RunRecord]) -> str:
        """Write the runs of a row or cell as space-separated numbers ``method,instance,clock``."""
        return " ".join(sorted({",".join(self._numbers(record)) for record in records}))

    def method_of(self, series: str) -> int | None:
        """Return the number of the method whose name a series begins with."""
        fits = [name for name in self.values[0] if series == name or series.startswith(tuple(name + a for a in _AFTER))]
        return self.values[0].index(max(fits, key=len)) if fits else None

    def _numbers(self, record: RunRecord) -> list[str]:
        of_run = record.model, record.instance, self.clock.get(identity(record), "")
        return [str(place.get(value, "")) for place, value in zip(self._places, of_run, strict=True)]

    @cached_property
    def _places(self) -> tuple[dict[str, int], ...]:
        return tuple({value: index for index, value in enumerate(values)} for values in self.values)


def facets_of(runs: Sequence[LedgerRun]) -> Facets:
    """Collect the facets of the runs of a ledger."""
    clock = {identity(run.record): run.clock for run in runs if run.clock is not None}
    found = {run.record.model for run in runs}, {run.record.instance for run in runs}, set(clock.values())
    return Facets(tuple(tuple(sorted(names, key=natural)) for names in found), clock)
