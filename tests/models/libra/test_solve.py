"""``libra`` end to end: reference optima, certificates, agreement of solvers, and what cannot be solved."""

from __future__ import annotations

import csv
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import clarabel
import numpy as np
import pytest
from cwb.core.collective import Collective
from cwb.core.design import Design, Objective
from cwb.core.errors import InputError
from cwb.core.workload import Communication, Layer, Phase, TrainingLoop
from cwb.harness import Request, run_one
from cwb.instances import load
from cwb.models.libra.problem import ILL_POSED, pose_problem
from draws import draws
from hypothesis import given, settings
from hypothesis import strategies as st
from libra_instances import GB, without_total
from scipy import sparse

SLUGS = {"GPT_3": "gpt-3", "MSFT_1T": "msft-1t", "Turing_NLG": "turing-nlg", "ResNet_50": "resnet-50", "DLRM": "dlrm"}
OBJECTIVES = {"PerfOpt": "perf", "PerfPerCostOpt": "perf-per-cost"}
GAPS = {"perf": 1e-7, "perf-per-cost": 1e-6}


def reference_rows() -> list[dict[str, str]]:
    path = Path(__file__).parents[2] / "reference" / "libra.csv"
    with path.open() as lines:
        return [row for row in csv.DictReader(lines) if row["opt_e2e_ns"]]


def cell(row: dict[str, str]) -> tuple[str, dict[str, str]]:
    """Instance and options of a reference row."""
    name = f"{SLUGS[row['workload']]}-{row['net']}"
    options = {"objective": OBJECTIVES[row["objective"]]}
    if row["constraint"] == "multiple":
        return f"{name}-multiple", options
    return name, options | {"total_bandwidth": f"{row['constraint']} GB/s"}


def row_id(row: dict[str, str]) -> str:
    return "-".join(row[key] for key in ("workload", "net", "objective", "constraint"))


def solve(name: str, solver: str = "highs", **options: object):
    return run_one(load(name), Request("libra", solver, options))


@pytest.mark.parametrize(
    ("solver", "row"),
    [
        pytest.param(solver, row, marks=() if solver == "highs" or number % 3 == 0 else pytest.mark.nightly)
        for solver in ("highs", "gurobi", "scip")
        for number, row in enumerate(reference_rows())
    ],
    ids=lambda value: value if isinstance(value, str) else row_id(value),
)
def test_reference_optimum(row, solver):
    """Each solver reproduces the optimum of the original program within 1e-6, and HiGHS proves its gap."""
    name, options = cell(row)
    record = solve(name, solver, **options)
    seconds, dollars = float(row["opt_e2e_ns"]) / 1e9, float(row["opt_cost"])
    expected = seconds if options["objective"] == "perf" else seconds * dollars
    assert record.objective == pytest.approx(expected, rel=1e-6)
    assert record.verified is True, record.violations
    assert record.metrics["speedup"] == pytest.approx(
        float(row["equal_e2e_ns"]) / 1e9 / record.metrics["iteration_time_s"], rel=1e-6
    )
    if solver == "highs":
        assert record.status == "optimal"
        assert record.bound <= record.objective
        assert record.gap <= GAPS[options["objective"]]


@pytest.mark.slow
@settings(max_examples=draws(30), deadline=None)
@given(data=st.data())
def test_certified_optimum_of_random_instances(data, random_instances):
    """On random instances of both objectives HiGHS proves its gap, the verifier agrees, and no random plan is below the
    bound."""
    instance = data.draw(random_instances(data.draw(st.sampled_from(Objective))))
    problem = pose_problem(instance)
    if not problem.time.terms:
        return
    record = run_one(instance, Request("libra"))
    assert record.verified is True, record.violations
    assert record.status == "optimal"
    assert record.gap <= GAPS[problem.objective.value]
    shares = data.draw(
        st.lists(st.floats(0.01, 1), min_size=problem.dimensions, max_size=problem.dimensions), label="shares"
    )
    total = float(instance.design.total_Bps)
    plan = [total * share / sum(shares) for share in shares]
    assert problem.value(plan) >= record.bound * (1 - 1e-9)


@pytest.mark.parametrize("name", ["gpt-3-3d", "gpt-3-4d", "msft-1t-4d", "dlrm-4d", "llms-4d", "4d-2k"])
def test_clarabel_finds_the_same_time(name):
    """An interior-point method for second-order cones, called without any of cwb's layers, finds the same optimum."""
    problem = pose_problem(load(name))
    assert solve(name).objective == pytest.approx(second_order_cone_optimum(problem), rel=1e-7)


def second_order_cone_optimum(problem) -> float:
    """Minimize sum of t_k with t_k >= m_kd y_d and y_d B_d >= 1, as ||(2, y - B)|| <= y + B."""
    count, terms = problem.dimensions, [problem.time.terms[k] for k in problem.time.serial]
    n = 2 * count + len(terms)  # B, y, t
    rows: list[np.ndarray] = []
    right: list[float] = []
    scale = problem.bandwidth_unit_Bps
    for constraint in problem.constraints:
        row = np.zeros(n)
        row[:count] = [float(a) for a in constraint.coefficients]
        rows.append(row)
        right.append(float(constraint.limit) / scale)
    equalities = len(rows)
    for k, term in enumerate(terms):
        for d, m in enumerate(term.traffic):
            if m:
                row = np.zeros(n)
                row[count + d], row[2 * count + k] = float(m) / scale / problem.time_unit_s, -1
                rows.append(row)
                right.append(0.0)
    inequalities = len(rows) - equalities
    for d in range(count):
        for coefficients, value in (((-1, -1), 0.0), ((0, 0), 2.0), ((1, -1), 0.0)):
            row = np.zeros(n)
            row[d], row[count + d] = coefficients
            rows.append(row)
            right.append(value)
    cones = [clarabel.ZeroConeT(equalities), clarabel.NonnegativeConeT(inequalities)]
    cones += [clarabel.SecondOrderConeT(3) for _ in range(count)]
    settings_ = clarabel.DefaultSettings()
    settings_.verbose = False
    cost = np.concatenate([np.zeros(2 * count), np.ones(len(terms))])
    solver = clarabel.DefaultSolver(
        sparse.csc_matrix((n, n)), cost, sparse.csc_matrix(np.array(rows)), np.array(right), cones, settings_
    )
    return float(problem.time.constant_s) + solver.solve().obj_val * problem.time_unit_s


def test_the_small_instance_by_hand(two_dimensional):
    """T = 4 + 24/B1 + max(12/B1, 2/B2) with B1 + B2 = 4 falls until the two dimensions meet, at B1 = 24/7: T = 14.5
    exactly."""
    record = run_one(two_dimensional(), Request("libra"))
    assert record.objective == pytest.approx(14.5, rel=1e-8)
    assert record.metrics["bandwidth_GBps"] == pytest.approx([24 / 7, 4 / 7], rel=1e-6)


@pytest.mark.parametrize("solver", ["highs", "scip"])
def test_a_dimension_of_hardly_any_traffic(solver, unequal_traffic):
    """Dimension 4 needs 10 KB/s of 667 GB/s for a message that a computation hides: it gets them, and the gap
    closes."""
    record = run_one(unequal_traffic(objective=Objective.PERF_PER_COST), Request("libra", solver))
    assert record.status == "optimal"
    assert record.verified is True, record.violations
    assert record.objective == pytest.approx(5655681.2107, rel=1e-7)
    assert record.metrics["bandwidth_GBps"][3] == pytest.approx(1.04e-5, rel=0.1)
    assert record.metrics["iterations"] < 500


@pytest.mark.parametrize("objective", Objective)
@pytest.mark.parametrize("hidden_bytes", [1, 10**12])
@pytest.mark.parametrize("constraints", [(), ("B2 <= 10 GB/s",), ("B3 <= 30 KB/s",)], ids=str)
def test_traffic_and_limits_of_many_scales(objective, hidden_bytes, constraints, unequal_traffic):
    """A message of one byte or a terabyte, and a limit far below the other dimensions', leave the optimum provable."""
    instance = unequal_traffic(hidden_bytes, 667 * 10**9, *constraints, objective=objective)
    record = run_one(instance, Request("libra"))
    assert record.status == "optimal"
    assert record.verified is True, record.violations
    assert record.gap <= GAPS[objective.value]


@pytest.mark.parametrize(
    ("name", "cap"), [("4d", "B4 <= 20 KB/s"), ("4d", "B1 <= 20 KB/s"), ("msft-1t-4d", "B1 <= 20 KB/s")]
)
@pytest.mark.parametrize("objective", OBJECTIVES.values())
def test_a_limit_far_below_the_total(name, cap, objective):
    """The dimension with the limit determines the time, 1e5 times the one without: it is the unit of time."""
    record = solve(name, objective=objective, constraints=cap)
    assert record.status == "optimal"
    assert record.verified is True, record.violations


def test_of_equally_fast_plans_the_cheapest_is_taken():
    """If the constraints allow several plans of the same time, the record's plan costs less than the original's."""
    record = solve("resnet-50-4d-multiple")
    assert record.metrics["iteration_time_s"] == pytest.approx(1248331.472e-9, rel=1e-8)
    assert record.metrics["network_cost_usd"] < 0.5 * 32276817.52


def test_iso_cost():
    """A cost budget alone is spent to the last dollar, and speedup is against EqualBW of the same cost."""
    record = solve("gpt-3-4d", total_bandwidth="none", cost_budget="15e6 USD")
    assert record.metrics["network_cost_usd"] == pytest.approx(15e6, rel=1e-7)
    assert record.metrics["perf_per_cost_gain"] == pytest.approx(record.metrics["speedup"], rel=1e-6)
    assert record.metrics["speedup"] > 1


def test_weighted_group_of_workloads():
    """The optimum for a group is no better for any member than the member's own, and the notes' optimum is found."""
    record = solve("llms-4d")
    assert record.metrics["bandwidth_GBps"] == pytest.approx([630.3, 183.8, 87.0, 98.9], abs=0.15)
    own = sum(solve(f"{name}-4d").objective for name in ("turing-nlg", "gpt-3", "msft-1t"))
    assert own <= record.objective <= 1.01 * own


def test_overlap_is_never_slower():
    """The TP-DP-overlap loop needs no more time than the loop without overlap, at its own best network."""
    assert solve("msft-1t-4d", loop="tp-dp-overlap").objective < solve("msft-1t-4d").objective


def test_contradictory_constraints_are_named():
    """Of three constraints only the two that clash are named, with exit status 3."""
    record = solve("4d", constraints="B1 <= 100 GB/s; B2 <= 900 GB/s; B1 >= 200 GB/s")
    assert (record.status, record.exit_status) == ("infeasible", 3)
    assert "'B1 <= 100 GB/s'" in record.message
    assert "'B1 >= 200 GB/s'" in record.message
    assert "B2" not in record.message


def test_a_starved_dimension_is_named():
    """A dimension with traffic that must have no bandwidth makes the instance infeasible, and is named."""
    record = solve("4d", constraints="B4 <= 0")
    assert record.status == "infeasible"
    assert "dimension 4" in record.message


@pytest.mark.parametrize("name", ["4d", "llms-4d"])
def test_perf_per_cost_with_only_an_upper_limit_is_refused(name):
    """The ill-posed problem is refused with the sentence that says why."""
    with pytest.raises(InputError, match=r"ill-posed \(the optimum tends to zero bandwidth\)"):
        solve(name, objective="perf-per-cost", max_total_bandwidth="1000 GB/s")
    assert "perf-per-cost with only an upper limit on bandwidth is ill-posed" in ILL_POSED


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"max_total_bandwidth": "1000 GB/s"},
        {"total_bandwidth": "none", "constraints": "B1 >= 30 GB/s"},
        {"total_bandwidth": "none", "constraints": "B1 >= 30 GB/s; B2 >= 30 GB/s"},
    ],
)
def test_without_computation_the_product_has_no_scale(options):
    """Without computation perf-per-cost depends on the proportions alone, and is proved in one minimization."""
    record = solve("3d-torus", objective="perf-per-cost", **options)
    assert record.status == "optimal"
    assert record.verified is True, record.violations
    if "B2" not in str(options):
        assert record.objective == pytest.approx(solve("3d-torus", objective="perf-per-cost").objective, rel=1e-6)


def test_perf_without_any_limit_is_refused():
    """Without a limit the fastest network has infinite bandwidth: the user is told to give one."""
    with pytest.raises(InputError, match="no limit on the bandwidth"):
        solve("4d", total_bandwidth="none")


def test_codesign_finds_the_best_strategy():
    """The chosen pair is the best of the single runs, all strategies are in the record, and the bound holds for all of
    them."""
    record = run_one(load("msft-1t-hp-4d"), Request("libra-codesign", options={"tensor_parallel": [8, 32, 64, 128]}))
    sweep = record.metrics["strategies"]
    assert [s["tensor_parallel"] for s in sweep] == [8, 32, 64, 128]
    best = min(sweep, key=lambda s: s["objective"])
    assert record.metrics["tensor_parallel"] == best["tensor_parallel"]
    assert record.answer["parallelism"] == [best["tensor_parallel"], 4096 // best["tensor_parallel"]]
    assert record.status == "optimal"
    assert record.verified is True, record.violations
    assert record.bound <= min(s["objective"] for s in sweep)


@pytest.mark.parametrize("limits", [{"total_Bps": Fraction(10**9)}, {"max_total_Bps": Fraction(10**9)}, {}])
def test_what_takes_no_time_is_solved(limits, two_dimensional):
    """Time times cost of training that neither computes nor communicates is 0, by a plan that keeps all limits."""
    small = two_dimensional()
    idle = Phase(Fraction(0), ())
    work = replace(small.workloads[0], layers=(Layer("idle", idle, idle, idle),))
    asked = small.with_changes(workloads=(work,), design=Design(Objective.PERF_PER_COST, **limits))
    record = run_one(asked, Request("libra"))
    assert (record.status, record.objective, record.bound) == ("optimal", 0.0, 0.0)
    assert record.verified is True, record.violations


COPIED = Communication(Collective.ALL_GATHER, Fraction(2**20), "tp")
SENT = Communication(Collective.POINT_TO_POINT, Fraction(9427), "tp")


@pytest.mark.parametrize(
    ("instance", "best"),
    [
        # of the least cost the multipliers of an order of bandwidths are off by a rounding error
        (
            without_total(
                "RI(2)_SW(2)",
                COPIED,
                {"tp": (2, 1)},
                [(12, 57, 79), (56, 47, 58)],
                *("B1 >= 10 GB/s", "B2 >= 50 GB/s", "B1 >= B2"),
            ),
            11672.821755,
        ),
        # HiGHS calls optimal what misses a limit by a thousandth, from an ill-conditioned basis
        (
            without_total(
                "RI(8)_FC(6)_RI(6)",
                SENT,
                {"tp": (8, 2, 3)},
                [(77, 10, 100), (82, 39, 83), (27, 79, 5)],
                *("B1 >= 1 GB/s", "B2 >= 10 GB/s", "B3 >= 0.1 GB/s", "B3 <= 60 GB/s", "B3 >= B1"),
                most_Bps=1504 * GB,
                loop=TrainingLoop.TP_DP_OVERLAP,
            ),
            89773.465276,
        ),
    ],
    ids=["rounded multipliers", "missed limit"],
)
def test_perf_per_cost_without_a_total_is_proved(instance, best):
    """Lower limits alone leave a vertex at which solvers round: the plan keeps to all limits, and the bound is near."""
    record = run_one(instance, Request("libra"))
    assert (record.status, record.violations) == ("optimal", ())
    assert record.objective == pytest.approx(best, rel=1e-6)
    assert 0 <= record.gap <= GAPS["perf-per-cost"]


@pytest.mark.parametrize("seconds", [0, 1], ids=["no computation", "computation overlapped with communication"])
def test_nothing_but_overlapped_computation_is_proved(seconds):
    """No iteration is faster than the overlapped computation, and without any all multiples of a plan are alike."""
    instance = without_total(
        "RI(2)_RI(2)_RI(2)",
        Communication(Collective.ALL_REDUCE, Fraction(2**30), "tp"),
        {"tp": (2, 2, 2)},
        [(77, 10, 100), (82, 39, 83), (27, 79, 5)],
        *("B1 >= 1 GB/s", "B2 >= 1 GB/s", "B3 >= 1 GB/s", "B1 >= B2"),
        loop=TrainingLoop.TP_DP_OVERLAP,
        seconds=(Fraction(0), Fraction(0), Fraction(seconds)),
    )
    record = run_one(instance, Request("libra", time_limit_s=60))
    assert (record.status, record.violations) == ("optimal", ())
    assert record.gap <= GAPS["perf-per-cost"]


@pytest.mark.slow
@settings(max_examples=draws(20))
@given(data=st.data())
def test_random_limits_without_a_total_are_proved(data, random_instances):
    """Random lower limits of all dimensions, orders of two and upper limits leave nothing unproved."""
    instance = data.draw(random_instances(Objective.PERF_PER_COST))
    count = len(instance.fabric.dimensions)
    limits = [f"B{d} >= {data.draw(st.sampled_from([1, 2, 10, 50]))} GB/s" for d in range(1, count + 1)]
    first, second = data.draw(st.permutations(range(1, count + 1)))[:2] if count > 1 else (1, 1)
    order = [f"B{first} >= B{second}"] if first != second else []
    most_Bps = data.draw(st.none() | st.integers(400, 2000).map(lambda total: total * GB))
    design = Design(Objective.PERF_PER_COST, max_total_Bps=most_Bps, constraints=(*limits, *order))
    record = run_one(replace(instance, design=design), Request("libra"))
    assert (record.status, record.violations) == ("optimal", ())
    assert record.gap <= GAPS["perf-per-cost"]
