"""Records to make reports from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from cwb.core.record import RunRecord


@pytest.fixture(scope="session")
def make_record() -> Callable[..., RunRecord]:
    """Make a record of LIBRA; every field can be replaced."""

    def make(instance: str = "gpt-3-4d", objective: str = "perf", total: int | None = 500, **changes: Any) -> RunRecord:
        options = {"objective": objective} | ({} if total is None else {"total_bandwidth": f"{total} GB/s"})
        unit = "s" if objective == "perf" else "s USD"
        fields: dict[str, Any] = {
            "cwb_version": "0.1.0",
            "model": "libra",
            "kind": "exact",
            "instance": instance,
            "instance_sha256": f"sha of {instance}",
            "collective": None,
            "solver": "highs",
            "solver_version": "1.15.1",
            "options": options,
            "seed": 0,
            "threads": 1,
            "status": "optimal",
            "objective": 0.75,
            "objective_unit": unit,
            "bound": 0.75 * (1 - 2e-9),
            "gap": 2e-9,
            "verified": True,
            "metrics": metrics(),
            "seconds": {"build": 0.001, "transfer": 0.002, "solve": 0.0105, "verify": 0.1, "total": 0.2},
            "started_at": "2026-11-21T12:00:00+00:00",
        }
        return RunRecord(**fields | changes)

    return make


@pytest.fixture(scope="session")
def make_metrics() -> Callable[..., dict[str, Any]]:
    """Make the metrics of a record of LIBRA."""
    return metrics


def metrics(
    speedup: float | None = 1.072858,
    cost: float | None = 9_527_164.84,
    gain: float | None = 3.88606,
    bandwidth: tuple[float, ...] = (338.45, 84.61, 58.16, 18.78),
) -> dict[str, Any]:
    return {
        "speedup": speedup,
        "network_cost_usd": cost,
        "perf_per_cost_gain": gain,
        "bandwidth_GBps": list(bandwidth),
        "equal_bandwidth_GBps": sum(bandwidth) / len(bandwidth),
        "workload_time_s": {"gpt-3": 0.75},
    }


@pytest.fixture(scope="session")
def handful(make_record: Callable[..., RunRecord]) -> list[RunRecord]:
    """Make a fixed handful of records: solved, of every kind of failure, repeated, of other methods, with odd names."""
    shape = (900.0, 60.0, 30.0, 10.0)
    no_answer: dict[str, Any] = {"bound": None, "gap": None, "verified": None, "metrics": {}}
    return [
        make_record(),
        make_record(objective="perf-per-cost", metrics=metrics(0.952785, 4_868_027.02, 6.754186), gap=3.25e-8),
        make_record(total=1000, metrics=metrics(1.037412, 19_054_329.61, 3.75767, shape)),
        # Equal to the digits that are shown, so that both are the best.
        make_record(objective="perf-per-cost", total=1000, metrics=metrics(1.0374, 19_054_329.0, 3.7577, shape)),
        make_record(total=100, status="limit", message="time limit", **no_answer),
        make_record(objective="perf-per-cost", total=100, verified=False, violations=("a total is missed",)),
        make_record("resnet-50-3d", status="unsupported", message="no", **no_answer),
        make_record("resnet-50-3d", "perf-per-cost", status="error", message="broken", **no_answer),
        make_record("dlrm-4d-multiple", total=None, metrics=metrics(None, None, 1.0, shape), gap=0.0),
        make_record("dlrm-4d-multiple", "perf-per-cost", None, status="infeasible", **no_answer),
        # An older run of the same cell, a lone objective, other methods, names with everything that TeX minds.
        make_record(metrics=metrics(9.9, 1.0, 9.9), started_at="2026-11-20T12:00:00+00:00"),
        make_record("[*]_50%&#~^\\{$}-4d", total=300, metrics=metrics(0.0001, 12.0, 1e12)),
        make_record(model="libra-equal", status="feasible"),
        make_record(model="libra-codesign"),
    ]
