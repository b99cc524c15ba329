"""Common parts of the tables of collectives: keys, columns, places of records."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from fractions import Fraction
from typing import Any

from ...core.record import ATTESTED, NONE, RECOMPUTED, RunRecord
from ..bounds import Bounds
from ..numbers import NumberFormat, mark_of, number, size_text
from ..objective_types import COMPLETION, explanation_lines, is_ranked, question_of
from ..runs import OWN_SECONDS, LedgerRun, runs_of
from ..statistics import T_INTERVAL, count, t_half_width
from ..table import ALONE, Column, Key, Label, RecordPlace, TableSpec

#: How a label is taken out of a run.
_LABELS: dict[str, Callable[[LedgerRun], Label]] = {
    "instance": lambda run: run.problem_name,
    "collective": lambda run: run.record.collective,
    "size_bytes": lambda run: run.size_bytes,
    "ranks": lambda run: None if run.ranks is None else float(run.ranks),
    "method": lambda run: run.method,
    "kind": lambda run: run.record.kind,
    "solver": lambda run: run.record.solver,
    "question": lambda run: run.question,
    "seed": lambda run: float(run.record.seed),
    "objective_unit": lambda run: run.record.objective_unit,
}

#: Fractions as records write them; nothing that takes memory to read.
_FRACTION = re.compile(r"-?[0-9]{1,40}(?:/0*[1-9][0-9]{0,39})?")

INSTANCE = Key("instance", "Instance")
COLLECTIVE = Key("collective", "Collective", display=lambda name: name.replace("_", "-"), optional=True)
SIZE = Key("size_bytes", "Size", words=size_text, optional=True)
METHOD = Key("method", "Method")
KIND = Key("kind", "Kind")
SOLVER = Key("solver", "Solver", optional=True)
QUESTION = Key("question", "Question", optional=True)

#: How the bound is known that a run is held against; where it is the same everywhere, a remark says so.
PROOF = Key("proof", "Bound", optional=True)

KEYS = (INSTANCE, COLLECTIVE, SIZE, METHOD, SOLVER, QUESTION, PROOF)  #: The keys of a table with a row a method.

#: Rows compete that have these in common: by completion time all that ask for the same, by objective those that answer
#: the same question.
ACROSS = ("instance", "collective", "size_bytes")
BLOCK = (*ACROSS, "question")


def metric(name: str) -> Callable[[RecordPlace], float | None]:
    """Return a function that reads a metric of the record, a number or a fraction as text."""

    def read(entry: RecordPlace) -> float | None:
        value = entry.record.metrics.get(name)
        if isinstance(value, str):
            return float(Fraction(value)) if _FRACTION.fullmatch(value) else None
        return number(value)

    return read


def metric_column(name: str, heading: str, form: NumberFormat | int = 5, **more: Any) -> Column:
    """Return the column of a metric, by default with five significant digits."""
    form = NumberFormat("general", form) if isinstance(form, int) else form
    return Column(name, heading, metric(name), form, **more)


def fact(name: str) -> Callable[[RecordPlace], float | None]:
    """Return a function that reads a fact from other records."""
    return lambda entry: entry.facts.get(name)


def interval(column: Column) -> Column:
    """Return the column beside another with half of the interval of its mean."""
    form = NumberFormat("general", 2, column.form.scale)
    half = Column(f"{column.name}_half_width", "±", column.value, form, column.unit, over=t_half_width)
    return replace(half, optional=True, note=f"{T_INTERVAL}.")


_US = NumberFormat("general", 5, 1e-6)

TIME = metric_column("completion_time_s", "Time", _US, unit="us", best="smallest", block=ACROSS, note=COMPLETION)
OBJECTIVE = Column("objective_s", "Objective", fact("objective"), _US, "us", best="smallest")
ALGBW = metric_column("algbw_GBps", "algbw", unit="GB/s")
BUSBW = metric_column("busbw_GBps", "busbw", unit="GB/s", best="largest", block=ACROSS)
_GAP = "Gap is of the objective, to the best proved bound of all records of the problem that holds for its question."
GAP = Column("gap", "Gap", fact("gap"), NumberFormat("fixed", 2, 0.01), "percent", note=_GAP)
_TIME_GAP = "Time gap is of the completion time, to one bound for all methods on an instance and size."
_TIMED = replace(GAP, name="time_gap", heading="Time gap", value=fact("time_gap"), best="smallest")
TIME_GAP = replace(_TIMED, block=ACROSS, note=_TIME_GAP)
OWN = Column("own_s", "Own time", fact("own_s"), NumberFormat("fixed", 3), "s", note=OWN_SECONDS)
_VALID = Column("runs", "Runs", lambda each: float(each.record.verified is True), NumberFormat("fixed", 0), over=count)
_RUNS = "Runs counts all, also those that failed; numbers are over those that have one."
RUNS = replace(_VALID, every=True, note=_RUNS)


def entries_of(models: Sequence[str], keys: Sequence[Key] = KEYS) -> Callable[[Sequence[RunRecord]], list[RecordPlace]]:
    """Place all runs of every problem that a model was run on that matches a name, or a beginning with a ``*``.

    Without names, every run with a known collective fits.
    """

    def entries(records: Sequence[RunRecord]) -> list[RecordPlace]:
        runs = [run for run in runs_of(records) if run.record.collective is not None]
        bounds = Bounds(runs)
        wanted = {
            run.problem[:2] for run in runs if not models or any(fnmatchcase(run.record.model, one) for one in models)
        }
        return join_matching_rows(keys, [entry_of(run, bounds, keys) for run in runs if run.problem[:2] in wanted])

    return entries


def join_matching_rows(keys: Sequence[Key], entries: Sequence[RecordPlace]) -> list[RecordPlace]:
    """Move runs without answer and bound to the row of the others that differ in nothing else."""
    place = [key.name for key in keys].index("proof")

    def others(entry: RecordPlace) -> tuple[Label, ...]:
        return (*entry.labels[:place], *entry.labels[place + 1 :])

    known = {others(entry): entry.labels for entry in entries if mark_of(entry.record) is None}
    return [
        entry if mark_of(entry.record) is None else replace(entry, labels=known.get(others(entry), entry.labels))
        for entry in entries
    ]


def entry_of(run: LedgerRun, bounds: Bounds, keys: Sequence[Key], **facts: float | None) -> RecordPlace:
    """Place one run."""
    known = {"objective": run.objective, "bound": bounds.best(run), "gap": bounds.gap(run), "own_s": run.own_s}
    known["time_gap"] = None if run.completion_s is None else bounds.gap(run, timed=True)
    known |= attestation_fact(bounds.proof(run))
    labels = tuple(bounds.proof(run) if key is PROOF else _LABELS[key.name](run) for key in keys)
    # Columns of times are best where they are small; what is maximized is not ranked beside them.
    ranked = is_ranked(run.clock) and run.record.sense != "maximize"
    return RecordPlace(run.record, labels, facts={**known, **facts}, ranked=ranked)


#: What is said of bounds, by how they are known.
_TOLD = {
    RECOMPUTED: "recomputed by the verifier, from certificates",
    ATTESTED: "attested, the word of a solver or a method",
}


def attestation_fact(proof: str) -> dict[str, float | None]:
    """Return the fact whether a bound is attested only; None without a bound."""
    return {"attested": None if proof == NONE else float(proof == ATTESTED)}


def bound_remarks(entries: Sequence[RecordPlace]) -> Sequence[str]:
    """Return remarks on the proofs of a table's bounds."""
    found = {entry.facts.get("attested") for entry in entries}
    told = [words for proof, words in _TOLD.items() if float(proof == ATTESTED) in found]
    return [f"Bounds: {'; '.join(told)}."] if told else []


def question_remarks(entries: Sequence[RecordPlace]) -> Sequence[str]:
    """Return explanations of the objective types that occur, and of the proofs of bounds."""
    asked = [question_of(entry.record) for entry in entries]
    return [*explanation_lines([one.clock for one in asked], [one.question for one in asked]), *bound_remarks(entries)]


def collective_table(
    name: str, title: str, models: Sequence[str], columns: Sequence[Column], notes: Sequence[str] = ()
) -> TableSpec:
    """Describe a table with a row a method and problem."""
    which = " or ".join(map(repr, models))
    return TableSpec(
        name=name,
        title=title,
        expects=f"records of the model {which} on a collective" if models else "records of a collective",
        entries=entries_of(models),
        keys=KEYS,
        groups=ALONE,
        columns=tuple(columns),
        notes=tuple(notes),
        block=BLOCK,
        remarks=question_remarks,
    )
