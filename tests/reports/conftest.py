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
            "proof": "recomputed",
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


@pytest.fixture(scope="session")
def make_run() -> Callable[..., RunRecord]:
    """Make a record of a method on a collective; its metrics tell question and clock, as in records that were made."""
    return collective_run


#: What a record by each clock has that those by others have not.
_BY_CLOCK: dict[str, dict[str, Any]] = {
    "simulated": {"alpha_beta_time_s": 1e-6, "question": "completion time"},
    "flow": {"pieces": 64, "trees": 8, "max_height": 2, "question": "flow, latency left out"},
    "pipeline": {"dimension_busy_s": [1e-6], "question": "dimensions of a fabric in turn, whole chunks, c = 1"},
    "te-ccl": {"epochs": 4, "epoch_duration_s": 1e-6, "question": "epochs of 1 us (te-ccl), whole chunks, c = 1"},
    "store-and-forward": {
        "epochs": 4,
        "epoch_duration_s": 1e-6,
        "question": "epochs of 1 us (store-and-forward), whole chunks, c = 1",
    },
    "circuit": {"epochs": 4, "epoch_duration_s": 1e-6, "question": "epochs of 1 us (circuit), whole chunks, c = 1"},
    "bound": {"question": "a bound alone, no schedule"},
}

#: How much longer than its objective an answer takes by the one model of completion times.
_LONGER = {"flow": 1.25, "te-ccl": 1.5}

_RANKS = {"torus(2,2)": 4, "torus(3,3)": 9, "torus(4,4)": 16}


def collective_run(
    model: str = "ring",
    time_s: float | None = 2e-5,
    instance: str = "torus(3,3)",
    bytes_: float = 2**20,
    clock: str = "simulated",
    **changes: Any,
) -> RunRecord:
    """Make the record; without a time it has no answer."""
    ranks = _RANKS.get(instance, 8)
    measured: dict[str, Any] = {"iterations": 0}
    if time_s is not None:
        seconds = time_s * _LONGER.get(clock, 1.0)
        for prefix, time in (("flow_", time_s), ("", seconds))[: {"bound": 1}.get(clock, 2)]:
            algbw = bytes_ / time / 1e9
            measured |= {f"{prefix}algbw_GBps": algbw, f"{prefix}busbw_GBps": algbw * (ranks - 1) / ranks}
            measured |= {f"{prefix}time_s" if prefix else "completion_time_s": time}
        measured |= _BY_CLOCK[clock] | {"clock": clock}
    fields: dict[str, Any] = {
        "cwb_version": "0.1.0",
        "model": model,
        "kind": "heuristic",
        "instance": instance,
        "instance_sha256": f"{hash_of(instance, bytes_)}",
        "collective": "all_gather",
        "solver": None,
        "solver_version": None,
        "options": {},
        "seed": 0,
        "threads": 1,
        "status": "limit" if time_s is None else "feasible",
        "objective": time_s,
        "objective_unit": "s",
        "bound": None if time_s is None else 1e-5,
        "gap": None,
        "verified": None if time_s is None else True,
        "metrics": measured | changes.pop("metrics", {}),
        "seconds": {"build": 0.01, "solve": 0.02, "verify": 0.5, "total": 1.0},
        "size": {"variables": 10 * ranks},
        "answer": {"answer": "bound-only"} if clock == "bound" else {"answer": "schedule"},
        "certificate": {"certificate": "cut", "nodes": [0]},
        "host": "machine",
        "started_at": "2026-11-21T12:00:00+00:00",
        "limits": {"time_limit_s": 60.0},
        "environment": {
            "cpu": "a CPU",
            "cores": 2,
            "platform": "Linux",
            "python": "3.11.7",
            "packages": {"pyomo": "6.9"},
        },
    }
    told = fields | changes
    checked = told["bound"] is not None and told["certificate"] not in (None, {"certificate": "solver"})
    return RunRecord(**{"proof": "recomputed" if checked else "none"} | told)


def hash_of(instance: str, size: float) -> str:
    """Tell instances and sizes apart as digests do."""
    import hashlib

    return hashlib.sha256(f"{instance} {size}".encode(errors="replace")).hexdigest()


def report_at(seconds: float, objective: float, of: str = "method") -> dict[str, Any]:
    """Make a report of a run in progress."""
    return {"objective": objective, "bound": None, "of": of, "seconds": seconds}


@pytest.fixture(scope="session")
def wide(handful: list[RunRecord]) -> list[RunRecord]:
    """Make a ledger that every table and plot has records in: methods by every clock, solvers, sizes, seeds, every
    status."""
    records = list(handful)
    for ranks, instance in enumerate(_RANKS, start=1):
        for step, size in enumerate((2.0**10, 2.0**20, 2.0**30)):
            t = ranks * 1e-5 * 10**step
            at: dict[str, Any] = {"instance": instance, "bytes_": size}
            records += [
                collective_run("ring", 4 * t, **at, bound=0.8 * t),
                collective_run(
                    "bfb",
                    2 * t,
                    **at,
                    bound=0.8 * t,
                    metrics={"T_L": ranks, "T_B": "8/9"},
                    seconds={"balance": 0.01 * ranks**2},
                    history=[report_at(0.001, 8 * t), report_at(0.003, 3 * t)],
                ),
                collective_run(
                    "forestcoll", 0.9 * t, **at, kind="exact", status="optimal", bound=0.9 * t, clock="flow"
                ),
                collective_run(
                    "forestcoll-lp", 0.9 * t, **at, kind="relaxation", status="optimal", bound=0.9 * t, clock="bound"
                ),
                collective_run("blink", None, **at, status="unsupported", message="trees from one root do not gather"),
            ]
            for seed, solver in ((0, "highs"), (1, "highs"), (2, "highs"), (0, "scip"), (1, "scip"), (2, "scip")):
                own = {"build": 0.01, "solve": (1 + seed) * ranks / (7 if solver == "highs" else 3)}
                milp: dict[str, Any] = {**at, "kind": "exact", "solver": solver, "solver_version": "1", "seed": seed}
                if solver == "scip" and seed == 2:
                    records.append(collective_run("teccl-milp", None, **milp, message="time limit", stopped="time"))
                else:
                    proved: dict[str, Any] = {
                        "status": "optimal",
                        "bound": 3 * t,
                        "certificate": {"certificate": "epoch-distance"},
                    }
                    told = [report_at(0.02, 5 * t, "solver"), report_at(0.02 + 0.1 * seed, 3 * t, "solver")]
                    proved |= {"clock": "te-ccl", "seconds": own, "history": told}
                    records.append(collective_run("teccl-milp", 3 * t, **milp, **proved))
    failed: dict[str, Any] = {"instance": "torus(2,2)", "bytes_": 2.0**10}
    records += [
        collective_run("sccl", None, **failed, status="infeasible", message="no schedule in 1 step"),
        collective_run(
            "taccl",
            None,
            **failed,
            status="error",
            message="the solver crashed",
            incumbent={"objective": 1.0, "of": "solver"},
        ),
        collective_run("multitree", 1e-5, **failed, verified=False, violations=("rank 3 lacks chunk 2",)),
        collective_run("spff", None, **failed, status="unbounded"),
        collective_run("teccl", 4e-5, **failed, bound=5e-6, kind="exact", clock="store-and-forward"),
    ]
    for model, share in (("mtree", 0.98), ("gost", 0.93)):
        rate = {
            "allreduce_rate_Bps": share * 1e8,
            "normalized_throughput": share,
            "strength_share": share,
            "mean_tree_height": 3.5,
        }
        records.append(
            collective_run(
                model, 1 / share, "gscale", 1e9, "flow", collective="all_reduce", metrics=rate, kind="exact", bound=1.0
            )
        )
    wired: dict[str, Any] = {
        "instance": "RI(4)_SW(2)",
        "collective": "all_reduce",
        "clock": "pipeline",
        "options": {"bandwidth": ["2 GB/s", "1 GB/s"]},
    }
    records += [
        collective_run(model, t, **wired)
        for model, t in (("themis", 2e-3), ("themis-lp", 1.5e-3), ("blueconnect", 3e-3))
    ]
    spread: dict[str, Any] = {"collective": "all_to_all", "instance": "torus(2,2)"}
    records += [
        collective_run("all-to-all-mcf", 1e-5, **spread, clock="bound", kind="relaxation", status="optimal"),
        collective_run("direct", 1.5e-5, **spread),
    ]
    return records
