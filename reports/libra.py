"""Records of LIBRA by workload, network, budget and objective."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..core.errors import InputError
from ..core.record import RunRecord
from ..core.units import UnitKind, parse
from .numbers import number

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
    found = [record for record in records if record.model == MODEL]
    budgets = {_problem(record): budget for record in found if (budget := budget_GBps(record)) is not None}
    trained = {record.instance_sha256: names for record in found if (names := _workload_names(record))}
    runs: list[LibraRun] = []
    for record in found:
        if (objective := objective_of(record)) is not None:
            workload, network = _workload_and_network(record)
            workload = workload or _workload_names(record) or trained.get(record.instance_sha256) or record.instance
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
    """Return the names of the timed workloads, if the record has them."""
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
