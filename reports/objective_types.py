"""Objective type and time model of a record.

Numbers of different objective types never share a ranking. Completion times use one time model for all answers
(:data:`COMPLETION`), and are ranked across objective types.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ..core.record import RunRecord


@dataclass(frozen=True)
class ClockModel:
    """A time model, with its meaning for the notes below tables."""

    name: str
    meaning: str
    #: Whether a number by it belongs to something that can be run: a bound alone is never the best of anything
    ranked: bool = True
    #: Costs that it charges, of ``wire`` (bytes over bandwidth) and ``latency``; a bound from these alone holds in it
    pays: frozenset[str] = frozenset()


_WIRE = frozenset({"wire"})
_BOTH = frozenset({"wire", "latency"})

CLOCKS: Mapping[str, ClockModel] = {
    clock.name: clock
    for clock in (
        ClockModel("simulated", "the completion time itself", pays=_BOTH),
        ClockModel("flow", "trees in the flow model: the most loaded link, without latency", pays=_WIRE),
        ClockModel("pipeline", "chunks through the dimensions of a fabric, in turn"),
        ClockModel("te-ccl", "epochs as the code of TE-CCL counts them: some latency and wire is free"),
        ClockModel("te-ccl-paid-switch", "the same, the last link after a switch paid in full"),
        ClockModel("store-and-forward", "epochs in which every link is paid in full", pays=_BOTH),
        ClockModel(
            "circuit",
            "epochs in which a chunk holds its links for wire and latency, which are paid in full",
            pays=_BOTH,
        ),
        ClockModel("iteration", "the training iteration"),
        ClockModel("load", "the largest load of a GPU, added up over layers"),
        ClockModel("bound", "no schedule: a time that none can beat; not ranked", ranked=False, pays=_WIRE),
    )
}

#: What a completion time is, in every table.
COMPLETION = (
    "Time is the completion time, in one model for all answers: link by link, store and forward; latency delays and "
    "does not hold a link; a link serves one piece at a time, and trees have their shares of every link. algbw and "
    "busbw are by it."
)


@dataclass(frozen=True)
class RecordQuestion:
    """Objective type of a record: its clock, of :data:`CLOCKS`, and the whole type in the verifier's words, if any."""

    clock: str | None = None
    question: str | None = None


def question_of(record: RunRecord) -> RecordQuestion:
    """Return the objective type of a record that has an objective."""
    clock, question = record.metrics.get("clock"), record.metrics.get("question")
    if record.objective is None or not isinstance(clock, str) or clock not in CLOCKS:
        return RecordQuestion()
    return RecordQuestion(clock, question if isinstance(question, str) else None)


def questions_of(records: Sequence[RunRecord]) -> list[RecordQuestion]:
    """Return the objective type of every record.

    A record without an objective gets that of the method's runs of the same problem, else that of all of its runs, if
    they agree.
    """
    questions = [question_of(record) for record in records]
    by_scope: dict[tuple[str, ...], set[RecordQuestion]] = {}
    for record, question in zip(records, questions, strict=True):
        if question.clock is not None:
            for scope in _scopes(record):
                by_scope.setdefault(scope, set()).add(question)
    for index, (record, question) in enumerate(zip(records, questions, strict=True)):
        matches = [others for scope in _scopes(record) if len(others := by_scope.get(scope, set())) == 1]
        if question.clock is None and matches:
            questions[index] = next(iter(matches[0]))
    return questions


def _scopes(record: RunRecord) -> tuple[tuple[str, ...], ...]:
    return (record.model, record.instance_sha256, record.collective or ""), (record.model,)


def is_ranked(clock: str | None) -> bool:
    """Return whether an objective may be ranked: its time model is known, and it is no bound alone."""
    return clock is not None and CLOCKS[clock].ranked


def explanation_lines(clocks: Iterable[str | None], questions: Iterable[str | None] = ()) -> list[str]:
    """Return explanations of the objectives of a table, also if there is only one type."""
    names = sorted({clock for clock in clocks if clock is not None})
    if not names:
        return []
    parts = "; ".join(f"{name}: {CLOCKS[name].meaning}" for name in names)
    several = len(names) > 1 or len({question for question in questions if question is not None}) > 1
    warning = " Objectives that answer different questions are not ranked against one another." if several else ""
    return [f"Objectives. {parts}.{warning}"]
