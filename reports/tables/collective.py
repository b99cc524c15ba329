"""Tables of methods on collectives: keys, columns, and tables by family, over sizes, exact against heuristic."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from fractions import Fraction
from typing import Any

from ...core.record import ATTESTED, NONE, RECOMPUTED, RunRecord
from ...core.units import size_text
from ..bounds import Bounds
from ..numbers import NumberFormat, mark_of, number
from ..objective_types import COMPLETION, explanation_lines, is_ranked, question_of
from ..runs import OWN_SECONDS, LedgerRun, runs_of
from ..statistics import T_INTERVAL, count, t_half_width
from ..table import Column, ColumnGroup, Key, Label, RecordPlace, TableSpec

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
        problems = {
            run.problem[:2] for run in runs if not models or any(fnmatchcase(run.record.model, one) for one in models)
        }
        return join_matching_rows(keys, [entry_of(run, bounds, keys) for run in runs if run.problem[:2] in problems])

    return entries


def join_matching_rows(keys: Sequence[Key], entries: Sequence[RecordPlace]) -> list[RecordPlace]:
    """Move runs without answer and bound to the row of the others that differ in nothing else."""
    place = [key.name for key in keys].index("proof")

    def others(entry: RecordPlace) -> tuple[Label, ...]:
        return (*entry.labels[:place], *entry.labels[place + 1 :])

    labels = {others(entry): entry.labels for entry in entries if mark_of(entry.record) is None}
    return [
        entry if mark_of(entry.record) is None else replace(entry, labels=labels.get(others(entry), entry.labels))
        for entry in entries
    ]


def entry_of(run: LedgerRun, bounds: Bounds, keys: Sequence[Key], **facts: float | None) -> RecordPlace:
    """Place one run."""
    values = {"objective": run.objective, "bound": bounds.best(run), "gap": bounds.gap(run), "own_s": run.own_s}
    values["time_gap"] = None if run.completion_s is None else bounds.gap(run, timed=True)
    values |= attestation_fact(bounds.proof(run))
    labels = tuple(bounds.proof(run) if key is PROOF else _LABELS[key.name](run) for key in keys)
    # Columns of times are best where they are small; what is maximized is not ranked beside them.
    is_comparable = is_ranked(run.clock) and run.record.sense != "maximize"
    return RecordPlace(run.record, labels, facts={**values, **facts}, ranked=is_comparable)


#: What is said of bounds, by how they are known.
_PROOF_WORDS = {
    RECOMPUTED: "recomputed by the verifier, from certificates",
    ATTESTED: "attested, the word of a solver or a method",
}


def attestation_fact(proof: str) -> dict[str, float | None]:
    """Return the fact whether a bound is attested only; None without a bound."""
    return {"attested": None if proof == NONE else float(proof == ATTESTED)}


def bound_remarks(entries: Sequence[RecordPlace]) -> Sequence[str]:
    """Return remarks on the proofs of a table's bounds."""
    proofs = {entry.facts.get("attested") for entry in entries}
    remarks = [words for proof, words in _PROOF_WORDS.items() if float(proof == ATTESTED) in proofs]
    return [f"Bounds: {'; '.join(remarks)}."] if remarks else []


def question_remarks(entries: Sequence[RecordPlace]) -> Sequence[str]:
    """Return explanations of the objective types that occur, and of the proofs of bounds."""
    kinds = [question_of(entry.record) for entry in entries]
    return [*explanation_lines([one.clock for one in kinds], [one.question for one in kinds]), *bound_remarks(entries)]


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
        columns=tuple(columns),
        notes=tuple(notes),
        block=BLOCK,
        remarks=question_remarks,
    )


_ANSWERS = (TIME_GAP, OBJECTIVE, GAP, OWN, interval(OWN), RUNS)  #: The last columns of a table of one family.

#: Forests against Blink, MultiTree, rings and double binary trees (ForestColl, figures 10 to 14).
FORESTCOLL = collective_table(
    "forestcoll",
    "ForestColl against other trees and rings",
    ("forestcoll*",),
    (
        TIME,
        interval(TIME),
        ALGBW,
        BUSBW,
        metric_column("pieces", "Pieces", optional=True),
        metric_column("trees", "Trees", 6, optional=True),
        metric_column("max_height", "Height", 4, optional=True),
        *_ANSWERS,
    ),
)

_STEPS_AND_TIME = (
    "T_L and T_B are known of BFB's own schedules: steps, and bandwidth time in units of the data over the bandwidth "
    "of a node."
)

#: Breadth-first broadcasts against textbook schedules: steps, bandwidth time, completion (BFB, section 6).
BFB = collective_table(
    "bfb",
    "BFB against other schedules",
    ("bfb*",),
    (
        metric_column("T_L", "T_L", unit="steps", optional=True),
        metric_column("T_B", "T_B", NumberFormat("fixed", 4), unit="M/B", optional=True, note=_STEPS_AND_TIME),
        TIME,
        interval(TIME),
        BUSBW,
        *_ANSWERS,
    ),
)

#: TE-CCL's models and search against SCCL, TACCL and shortest paths (TE-CCL, tables 3 to 8).
TECCL = collective_table(
    "teccl",
    "TE-CCL against other synthesizers",
    ("teccl*",),
    (
        metric_column("epochs", "Epochs", 6, optional=True),
        metric_column("epoch_duration_s", "Epoch", NumberFormat("general", 4, 1e-6), unit="us", optional=True),
        TIME,
        interval(TIME),
        ALGBW,
        *_ANSWERS,
    ),
    notes=("algbw is the full buffer over the time; the objective is the epochs times their length.",),
)

#: Aggregation trees over wide-area networks: rate, share of the strength, shape of the trees (MTree, section 5).
MTREE = collective_table(
    "mtree",
    "MTree against GOST and other all-reduces",
    ("mtree", "gost"),
    (
        metric_column("allreduce_rate_Bps", "Rate", NumberFormat("general", 5, 1e6 / 8), unit="Mb/s", best="largest"),
        metric_column("normalized_throughput", "Rate/N"),
        metric_column(
            "strength_share",
            "Share",
            NumberFormat("fixed", 1, 0.01),
            unit="percent",
            best="largest",
            note="Share is of the network's strength, the most that any schedule can reach.",
        ),
        metric_column("trees", "Trees"),
        metric_column("mean_tree_height", "Height", NumberFormat("fixed", 2)),
        metric_column("mean_max_fanout", "Fanout", NumberFormat("fixed", 2)),
        TIME,
        replace(ALGBW, best="largest", block=ACROSS),
        TIME_GAP,
        *_ANSWERS[2:],
    ),
)

#: Chunks over the dimensions of a fabric (dissertation, chapter 3).
THEMIS = collective_table(
    "themis", "Themis against BlueConnect", ("themis*", "blueconnect"), (TIME, ALGBW, BUSBW, *_ANSWERS)
)

#: All-to-all schedules against the flow that bounds them all.
ALL_TO_ALL = collective_table(
    "all-to-all",
    "All-to-all against the maximum concurrent flow",
    ("all-to-all-mcf", "teccl-all-to-all"),
    (TIME, interval(TIME), ALGBW, BUSBW, *_ANSWERS),
)

_TEXTBOOK_KEYS = (INSTANCE, COLLECTIVE, SIZE)

#: The textbook algorithms, each with the heading of its columns.
_TEXTBOOK = {"ring": "Ring", "direct": "Direct", "rhd": "Halving-doubling", "dbt": "Double binary tree"}


def _textbook_entries(records: Sequence[RunRecord]) -> list[RecordPlace]:
    """Return the cells of all runs of the textbook algorithms that set no option."""
    runs = [run for run in runs_of(records) if run.record.collective is not None]
    bounds = Bounds(runs)
    return [
        replace(entry_of(run, bounds, _TEXTBOOK_KEYS), group=run.record.model)
        for run in runs
        if run.record.model in _TEXTBOOK and not run.record.options
    ]


#: A row for each network and size, as in figures 5.1 and 5.2 of the dissertation.
TEXTBOOK = TableSpec(
    name="textbook",
    title="Textbook algorithms side by side",
    expects="records of the model 'ring', 'direct', 'rhd' or 'dbt' on a collective, without options",
    entries=_textbook_entries,
    keys=_TEXTBOOK_KEYS,
    groups=tuple(ColumnGroup(name, heading) for name, heading in _TEXTBOOK.items()),
    columns=(replace(ALGBW, best="largest"), replace(TIME_GAP, heading="Gap", best=None)),
    notes=("algbw is the full buffer over the completion time.",),
    remarks=bound_remarks,
)

_SIZES_KEYS = (INSTANCE, COLLECTIVE, METHOD, SOLVER, QUESTION, PROOF, replace(SIZE, optional=False))

#: Time, algbw and busbw of every method over the sizes of a collective, as nccl-tests prints them.
SIZES = TableSpec(
    name="sizes",
    title="Bandwidth over size",
    expects="records of a collective",
    entries=entries_of((), _SIZES_KEYS),
    keys=_SIZES_KEYS,
    columns=(TIME, interval(TIME), TIME_GAP, ALGBW, BUSBW, OBJECTIVE, GAP),
    notes=(
        "algbw is the full buffer over the time, busbw that times the factor of nccl-tests; "
        "sizes are binary, rates decimal.",
    ),
    block=BLOCK,
    remarks=question_remarks,
)

_UNIT = Key("objective_unit", "Unit", optional=True)
_PLAIN_OBJECTIVE = Column("objective", "Objective", fact("objective"), NumberFormat("general", 6))
_BEST_BOUND = Column("bound", "Best bound", fact("bound"), NumberFormat("general", 6), every=True)
_PLAIN_GAP, _PLAIN_OWN = replace(GAP, note=""), replace(OWN, every=True, note="")
_TOTAL = replace(_PLAIN_OWN, name="total_s", heading="Total", value=lambda e: number(e.record.seconds.get("total")))
_RATIO = Column("time_ratio", "Time ratio", fact("time_ratio"), NumberFormat("general", 3))
_LEAST = replace(_PLAIN_OBJECTIVE, best="smallest")

_EXACT_KEYS = (INSTANCE, COLLECTIVE, SIZE, METHOD, KIND, SOLVER, QUESTION, PROOF, _UNIT)


def _exact_entries(records: Sequence[RunRecord]) -> list[RecordPlace]:
    """Place the runs of the problems that both an exact method, or a relaxation, and a heuristic were run on."""
    runs = runs_of(records)
    bounds = Bounds(runs)
    fastest: dict[tuple[str, ...], float] = {}
    kinds: dict[tuple[str, ...], set[bool]] = {}
    for run in runs:
        record = run.record
        kinds.setdefault(run.problem, set()).add(record.kind == "heuristic")
        is_proved = record.kind == "exact" and record.status == "optimal" and record.verified is True
        if is_proved and run.own_s is not None:
            key = (*run.problem, run.question or "")
            fastest[key] = min(run.own_s, fastest.get(key, run.own_s))

    def ratio(run: LedgerRun) -> float | None:
        exact_s = fastest.get((*run.problem, run.question or ""))
        return None if run.own_s is None or not exact_s else run.own_s / exact_s

    entries = [
        entry_of(run, bounds, _EXACT_KEYS, time_ratio=ratio(run)) for run in runs if len(kinds[run.problem]) == 2
    ]
    return join_matching_rows(_EXACT_KEYS, entries)


#: Gaps of heuristics to the best proved bound, and their speed relative to exact methods.
EXACT_HEURISTIC = TableSpec(
    name="exact-heuristic",
    title="Exact methods against heuristics",
    expects="records of a heuristic and of an exact method or a relaxation on the same problem",
    entries=_exact_entries,
    keys=_EXACT_KEYS,
    columns=(TIME, TIME_GAP, _LEAST, _BEST_BOUND, _PLAIN_GAP, OWN, interval(OWN), _RATIO, RUNS),
    notes=(
        "Gap is to the best proved bound of all records of the problem that holds for its question. Time ratio is "
        "over the own time of the fastest exact method that proved its answer to the same question optimal.",
    ),
    block=(*BLOCK, "objective_unit"),
    remarks=question_remarks,
)

_SEED = Key("seed", "Seed", form=NumberFormat("general", 10), optional=True)
_SUMMARY_KEYS = (INSTANCE, COLLECTIVE, SIZE, METHOD, SOLVER, QUESTION, PROOF, _SEED, _UNIT)


def _summary_entries(records: Sequence[RunRecord]) -> list[RecordPlace]:
    bounds = Bounds(runs := runs_of(records))
    return [entry_of(run, bounds, _SUMMARY_KEYS) for run in runs]


#: Every run of a ledger.
SUMMARY = TableSpec(
    name="summary",
    title="All runs",
    expects="any record",
    entries=_summary_entries,
    keys=_SUMMARY_KEYS,
    columns=(
        replace(TIME, optional=True),
        replace(TIME_GAP, optional=True),
        _PLAIN_OBJECTIVE,
        _BEST_BOUND,
        _PLAIN_GAP,
        _PLAIN_OWN,
        _TOTAL,
    ),
    notes=(
        "Best bound is the best that any record of the problem proved and that holds for its question; Gap is to it.",
        OWN_SECONDS,
    ),
    remarks=question_remarks,
)
