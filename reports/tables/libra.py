"""Records of LIBRA by workload, network, budget and objective, and ``libra-perf``, its table over EqualBW.

The table is that of the dissertation, section 4.6.1.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import fsum

from ...core.errors import InputError
from ...core.record import RunRecord
from ...core.units import UnitKind, parse
from ..numbers import NumberFormat, number
from ..runs import latest
from ..statistics import geometric_mean
from ..table import Column, ColumnGroup, Footer, Key, RecordPlace, TableSpec
from .collective import attestation_fact, bound_remarks, metric

MODEL = "libra"

PERF, PERF_PER_COST = "perf", "perf-per-cost"  #: The objectives, as options and reports name them.

#: How papers write the names of workloads.
WORKLOADS = {
    "gpt-3": "GPT-3",
    "msft-1t": "MSFT-1T",
    "turing-nlg": "Turing-NLG",
    "resnet-50": "ResNet-50",
    "dlrm": "DLRM",
}

#: Options that change neither the problem nor the row: they are columns, keys, or the way to the same optimum.
_NOT_THE_PROBLEM = ("objective", "total_bandwidth", "gap", "algorithm")

#: ``gpt-3-4d-multiple`` is the workload gpt-3 on the network 4d-multiple; ``4d`` is a network alone.
_NAME = re.compile(r"(?:(?P<workload>.+?)-)?(?P<network>[0-9]+d(?:-.+)?)")


@dataclass(frozen=True)
class LibraRun:
    """A record of LIBRA with the workload and network that the instance's name tells.

    The budget is the bandwidth per NPU over all dimensions, and the objective ``perf`` or ``perf-per-cost``.
    """

    record: RunRecord
    workload: str
    network: str
    budget_GBps: float | None
    objective: str


def libra_runs(records: Sequence[RunRecord]) -> list[LibraRun]:
    """Return the records of LIBRA with a known objective.

    Facts that a failed run lacks are taken from another run of the same instance.
    """
    of_libra = [record for record in records if record.model == MODEL]
    budgets = {_problem(record): budget for record in of_libra if (budget := budget_GBps(record)) is not None}
    workloads = {record.instance_sha256: names for record in of_libra if (names := _workload_names(record))}
    runs: list[LibraRun] = []
    for record in of_libra:
        if (objective := objective_of(record)) is not None:
            workload, network = _workload_and_network(record)
            workload = workload or _workload_names(record) or workloads.get(record.instance_sha256) or record.instance
            budget = budget_GBps(record)
            budget = budgets.get(_problem(record)) if budget is None else budget
            runs.append(LibraRun(record, workload, network, budget, objective))
    return runs


def objective_of(record: RunRecord) -> str | None:
    """Return the objective from the option, or from the unit where the instance sets it."""
    if (option := record.options.get("objective")) is not None:
        return option if option in (PERF, PERF_PER_COST) else None
    return {"s": PERF, "s USD": PERF_PER_COST}.get(record.objective_unit or "")


def _workload_and_network(record: RunRecord) -> tuple[str | None, str]:
    """Split the name of the instance; options that change the problem go with the network."""
    match = _NAME.fullmatch(record.instance)
    workload, network = (match["workload"], match["network"]) if match else (record.instance, "")
    changes = [f"{name}={value}" for name, value in sorted(record.options.items()) if name not in _NOT_THE_PROBLEM]
    return workload, ", ".join([*([network] if network else []), *changes])


def _workload_names(record: RunRecord) -> str:
    times = record.metrics.get("workload_time_s")
    return " + ".join(map(str, times)) if isinstance(times, Mapping) else ""


def budget_GBps(record: RunRecord) -> float | None:
    """Return the total bandwidth per NPU: the requested one, else the used one."""
    for option in ("total_bandwidth", "max_total_bandwidth"):
        try:
            return float(parse(record.options.get(option), UnitKind.RATE)) / 1e9
        except InputError:
            continue
    bandwidths = bandwidth_GBps(record)
    # Shares that a solver found add up to the total but for rounding; the row of the total is meant.
    return None if bandwidths is None else float(f"{sum(bandwidths):.6g}")


def bandwidth_GBps(record: RunRecord) -> list[float] | None:
    """Return the bandwidth of every dimension; None if the record has none."""
    values = record.metrics.get("bandwidth_GBps")
    if not isinstance(values, list | tuple) or not values:
        return None
    numbers = [n for value in values if (n := number(value)) is not None]
    return numbers if len(numbers) == len(values) and sum(numbers) > 0 else None


def workload_name(workload: str) -> str:
    """Return the name of a workload as papers print it."""
    return WORKLOADS.get(workload, workload)


def network_name(network: str) -> str:
    """Return the name of a network as papers print it: ``3d`` is ``3D``; no name is a dash."""
    return re.sub(r"^([0-9]+)d\b", r"\1D", network) or "--"


def _problem(record: RunRecord) -> tuple[str, str, str]:
    """Return the key of runs that differ only in the objective."""
    return (record.instance, record.instance_sha256, _workload_and_network(record)[1])


#: Phases that a comparison of solvers is about; verification is the verifier's time.
_SOLVING = ("build", "transfer", "solve")


def _seconds(entry: RecordPlace) -> float | None:
    seconds = [s for phase in _SOLVING if (s := number(entry.record.seconds.get(phase))) is not None]
    return fsum(seconds) if seconds else None


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


_MILLIONS = NumberFormat("fixed", 2, 1e6)

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
        Column("speedup", "Speedup", metric("speedup"), NumberFormat("fixed", 3), best="largest"),
        Column("network_cost_usd", "Cost", metric("network_cost_usd"), _MILLIONS, unit="MUSD", best="smallest"),
        Column(
            "perf_per_cost_gain", "Perf/cost", metric("perf_per_cost_gain"), NumberFormat("fixed", 3), best="largest"
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
