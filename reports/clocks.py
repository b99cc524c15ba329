"""By which clock the objective of a record was measured: numbers by different clocks stand in one table, never in one ranking."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ..core.record import RunRecord


@dataclass(frozen=True)
class Clock:
    """A way to count time.

    Parameters
    ----------
    name : str
        What tables call it.
    meaning : str
        What is told below them.
    ranked : bool
        Whether a number by it belongs to something that can be run: a bound alone is never the best of anything.
    pays : frozenset of str
        What it charges a schedule for, of ``wire`` (bytes over bandwidth) and ``latency``; a bound from these alone holds under it.
    """

    name: str
    meaning: str
    ranked: bool = True
    pays: frozenset[str] = frozenset()


_WIRE = frozenset({"wire"})
_BOTH = frozenset({"wire", "latency"})

CLOCKS: Mapping[str, Clock] = {
    clock.name: clock
    for clock in (
        Clock("simulated", "the judge's congestion-aware simulation", pays=_BOTH),
        Clock("flow", "trees in the flow model: the most loaded link, without latency", pays=_WIRE),
        Clock("pipeline", "chunks through the dimensions of a fabric, in turn"),
        Clock("te-ccl", "epochs as the code of TE-CCL counts them: some latency and wire is free"),
        Clock("te-ccl-paid-switch", "the same, the last link after a switch paid in full"),
        Clock("store-and-forward", "epochs in which every link is paid in full", pays=_BOTH),
        Clock("iteration", "the training iteration"),
        Clock("bound", "no schedule: a time that none can beat; not ranked", ranked=False, pays=_WIRE),
    )
}

#: Which metric tells the clock; the first that a record has.
_TOLD_BY = (
    ("pieces", "flow"),
    ("dimension_busy_s", "pipeline"),
    ("alpha_beta_time_s", "simulated"),
    ("iteration_time_s", "iteration"),
)


def clock_of(record: RunRecord) -> str | None:
    """Tell the clock of a record's objective; None where it has none, or does not tell."""
    if record.objective is None:
        return None
    timing = record.metrics.get("timing")
    if isinstance(timing, str) and timing in CLOCKS:
        return timing
    for metric, clock in _TOLD_BY:
        if metric in record.metrics:
            return clock
    alone = record.answer is not None and record.answer.get("answer") == "bound-only"
    return "bound" if alone or record.kind == "relaxation" else None


def clocks_of(records: Sequence[RunRecord]) -> list[str | None]:
    """Tell the clock of every record; of one without an objective that of the method's other runs, where they have but one."""
    told = [clock_of(record) for record in records]
    by_model: dict[str, set[str]] = {}
    for record, clock in zip(records, told, strict=True):
        if clock is not None:
            by_model.setdefault(record.model, set()).add(clock)
    found: list[str | None] = []
    for record, clock in zip(records, told, strict=True):
        others = by_model.get(record.model, set())
        found.append(clock or (next(iter(others)) if len(others) == 1 else None))
    return found


def is_ranked(clock: str | None) -> bool:
    """Whether a number by this clock may be the best of a table."""
    return clock is None or CLOCKS[clock].ranked


def explained(clocks: Iterable[str | None]) -> list[str]:
    """Say what the clocks of a table are; one that is alone is told as well."""
    told = sorted({clock for clock in clocks if clock is not None})
    if not told:
        return []
    parts = "; ".join(f"{name}: {CLOCKS[name].meaning}" for name in told)
    warning = " Numbers by different clocks are not ranked against one another." if len(told) > 1 else ""
    return [f"Clocks. {parts}.{warning}"]
