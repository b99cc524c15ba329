"""Which question the objective of a record answers, and by which clock: numbers that answer different ones are never in one ranking.

Completion times are of one model for all answers (:data:`COMPLETION`), and are ranked across questions.
"""

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
        Clock("simulated", "the completion time itself", pays=_BOTH),
        Clock("flow", "trees in the flow model: the most loaded link, without latency", pays=_WIRE),
        Clock("pipeline", "chunks through the dimensions of a fabric, in turn"),
        Clock("te-ccl", "epochs as the code of TE-CCL counts them: some latency and wire is free"),
        Clock("te-ccl-paid-switch", "the same, the last link after a switch paid in full"),
        Clock("store-and-forward", "epochs in which every link is paid in full", pays=_BOTH),
        Clock(
            "circuit",
            "epochs in which a chunk holds its links for wire and latency, which are paid in full",
            pays=_BOTH,
        ),
        Clock("iteration", "the training iteration"),
        Clock("bound", "no schedule: a time that none can beat; not ranked", ranked=False, pays=_WIRE),
    )
}

#: What a completion time is, in every table.
COMPLETION = (
    "Time is the completion time, in one model for all answers: link by link, store and forward; latency delays and does not hold a link; "
    "a link serves one piece at a time, and trees have their shares of every link. algbw and busbw are by it."
)


@dataclass(frozen=True)
class Asked:
    """What the objective of a record is.

    Parameters
    ----------
    clock : str or None
        One of :data:`CLOCKS`; None where the record does not tell.
    question : str or None
        Everything that it is the answer to, in the judge's words.
    """

    clock: str | None = None
    question: str | None = None


def asked_of(record: RunRecord) -> Asked:
    """Tell what the objective of a record is, if it has one."""
    clock, question = record.metrics.get("clock"), record.metrics.get("question")
    if record.objective is None or not isinstance(clock, str) or clock not in CLOCKS:
        return Asked()
    return Asked(clock, question if isinstance(question, str) else None)


def all_asked(records: Sequence[RunRecord]) -> list[Asked]:
    """Tell it of every record; of one without an objective what the method's runs of the same problem tell, else all of its runs, if they agree."""
    told = [asked_of(record) for record in records]
    by_scope: dict[tuple[str, ...], set[Asked]] = {}
    for record, asked in zip(records, told, strict=True):
        if asked.clock is not None:
            for scope in _scopes(record):
                by_scope.setdefault(scope, set()).add(asked)
    return [asked if asked.clock else _agreed(record, by_scope) for record, asked in zip(records, told, strict=True)]


def _scopes(record: RunRecord) -> tuple[tuple[str, ...], ...]:
    return (record.model, record.instance_sha256, record.collective or ""), (record.model,)


def _agreed(record: RunRecord, by_scope: Mapping[tuple[str, ...], set[Asked]]) -> Asked:
    for scope in _scopes(record):
        if len(others := by_scope.get(scope, set())) == 1:
            return next(iter(others))
    return Asked()


def is_ranked(clock: str | None) -> bool:
    """Whether an objective may be the best of a table: one that tells its clock, and is no bound alone."""
    return clock is not None and CLOCKS[clock].ranked


def explained(clocks: Iterable[str | None], questions: Iterable[str | None] = ()) -> list[str]:
    """Say what the objectives of a table are; what is alone is told as well."""
    told = sorted({clock for clock in clocks if clock is not None})
    if not told:
        return []
    parts = "; ".join(f"{name}: {CLOCKS[name].meaning}" for name in told)
    several = len(told) > 1 or len({question for question in questions if question is not None}) > 1
    warning = " Objectives that answer different questions are not ranked against one another." if several else ""
    return [f"Objectives. {parts}.{warning}"]
