"""Newton's method on what binds: one linear program and a sharp minimum."""

from __future__ import annotations

import pytest
from cwb import solvers
from cwb.core.budget import Budget
from cwb.core.design import Objective
from cwb.core.solver import as_resolving_solver
from cwb.core.workload import TrainingLoop
from cwb.harness import Request, run_one
from cwb.instances import load
from cwb.models.libra.bounds import supporting_line
from cwb.models.libra.newton import Coefficients, sharpen
from cwb.models.libra.outer_approximation import Relaxation
from cwb.models.libra.problem import pose_problem
from libra_instances import two_dimensional


@pytest.mark.parametrize("loop", TrainingLoop)
def test_a_near_minimum_is_sharpened_to_the_last_digits(loop):
    """From the minimum of nearby weights Newton's method meets its own bound to 1e-12 where the same binds."""
    problem = pose_problem(two_dimensional(Objective.PERF_PER_COST, loop))
    relaxation = Relaxation(problem, as_resolving_solver(solvers.get("highs")), Budget())
    relaxation.start(relaxation.largest_bandwidths())
    weight = problem.time_unit_s / problem.cost_unit_usd
    near = relaxation.minimize(1.0, weight, 1e-6)
    found = sharpen(Coefficients(problem), near.plan_Bps, near.line.multipliers, 1.0, 1.01 * weight)
    plan, multipliers = found
    bound = supporting_line(problem, multipliers).value
    value = problem.time.seconds(plan) + 1.01 * weight * problem.cost_usd(plan)
    assert value == pytest.approx(bound, rel=1e-12)


@pytest.mark.parametrize("name", ["gpt-3-4d", "resnet-50-4d", "gpt-3-4d-multiple"])
def test_a_product_takes_few_linear_programs(name):
    """Time times cost on a network of four dimensions takes at most seven linear programs beside those of the
    limits."""
    record = run_one(load(name), Request("libra", "highs", {"objective": "perf-per-cost"}))
    assert record.proof == "recomputed" and record.gap <= 1e-6
    assert record.metrics["iterations"] <= 7
