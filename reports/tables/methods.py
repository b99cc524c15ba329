"""Tables of methods on collectives: by family, over sizes, exact against heuristic, and all runs."""

from collections.abc import Sequence
from dataclasses import replace

from ...core.record import RunRecord
from ..bounds import Bounds
from ..numbers import NumberFormat, number
from ..runs import OWN_SECONDS, LedgerRun, runs_of
from ..table import ALONE, Column, ColumnGroup, Key, RecordPlace, TableSpec
from .collective import (
    ACROSS,
    ALGBW,
    BLOCK,
    BUSBW,
    COLLECTIVE,
    GAP,
    INSTANCE,
    KIND,
    METHOD,
    OBJECTIVE,
    OWN,
    PROOF,
    QUESTION,
    RUNS,
    SIZE,
    SOLVER,
    TIME,
    TIME_GAP,
    bound_remarks,
    collective_table,
    entries_of,
    entry_of,
    fact,
    interval,
    join_matching_rows,
    metric_column,
    question_remarks,
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
    groups=ALONE,
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
        proved = record.kind == "exact" and record.status == "optimal" and record.verified is True
        if proved and run.own_s is not None:
            asked = (*run.problem, run.question or "")
            fastest[asked] = min(run.own_s, fastest.get(asked, run.own_s))

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
    groups=ALONE,
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
    groups=ALONE,
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
