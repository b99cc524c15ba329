"""``libra-perf``: LIBRA against EqualBW by workload, network and budget (dissertation, section 4.6.1)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import fsum

from ...core.record import RunRecord
from ..libra import PERF, PERF_PER_COST, libra_runs, network_name, workload_name
from ..numbers import NumberFormat, number
from ..records import latest
from ..spec import Column, ColumnGroup, Footer, Key, RecordPlace, TableSpec
from ..statistics import geometric_mean
from .collective import attestation_fact, bound_remarks

#: Phases that a comparison of solvers is about; verification is the verifier's time.
_SOLVING = ("build", "transfer", "solve")


def _metric(name: str) -> Callable[[RecordPlace], float | None]:
    return lambda entry: number(entry.record.metrics.get(name))


def _seconds(entry: RecordPlace) -> float | None:
    known = [s for phase in _SOLVING if (s := number(entry.record.seconds.get(phase))) is not None]
    return fsum(known) if known else None


def _entries(records: Sequence[RunRecord]) -> list[RecordPlace]:
    entries = [
        RecordPlace(
            run.record,
            (run.workload, run.network, run.budget_GBps, run.record.solver),
            run.objective,
            attestation_fact(run.record.proof),
        )
        for run in libra_runs(records)
    ]
    # Runs of a cell differ in ways to the same optimum, if at all: the latest stands for all of them.
    return list(latest(entries, lambda e: (e.labels, e.group), lambda e: e.record).values())


SPEC = TableSpec(
    name="libra-perf",
    title="LIBRA over EqualBW: speedup and performance per cost",
    expects="records of the model 'libra' with the objective perf or perf-per-cost",
    entries=_entries,
    keys=(
        Key("workload", "Workload", display=workload_name),
        Key("network", "Network", display=network_name),
        Key("budget_GBps", "Budget", "GB/s", NumberFormat("general", 6)),
        Key("solver", "Solver", optional=True),
    ),
    groups=(ColumnGroup(PERF, "Objective: perf"), ColumnGroup(PERF_PER_COST, "Objective: perf-per-cost")),
    columns=(
        Column("speedup", "Speedup", _metric("speedup"), NumberFormat("fixed", 3), best="largest"),
        Column(
            "network_cost_usd",
            "Cost",
            _metric("network_cost_usd"),
            NumberFormat("fixed", 2, 1e6),
            unit="MUSD",
            best="smallest",
        ),
        Column(
            "perf_per_cost_gain", "Perf/cost", _metric("perf_per_cost_gain"), NumberFormat("fixed", 3), best="largest"
        ),
        Column("gap", "Gap", lambda entry: number(entry.record.gap), NumberFormat("scientific", 1)),
        Column("seconds", "Time", _seconds, NumberFormat("fixed", 3), unit="s"),
    ),
    footers=(
        Footer("Geometric mean", ("speedup", "perf_per_cost_gain"), geometric_mean),
        Footer(
            "Maximum", ("speedup", "perf_per_cost_gain", "gap", "seconds"), lambda values: max(values, default=None)
        ),
    ),
    notes=(
        "Speedup and Perf/cost are ratios over EqualBW of the same budget. Gap is relative, to the proved bound. "
        "Time is that of building, transferring and solving.",
    ),
    remarks=bound_remarks,
)
