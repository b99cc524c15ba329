"""No method proves more than the truth where a switch adds and copies."""

from __future__ import annotations

from fractions import Fraction

import pytest
from cwb.core.collective import Demand, collective_named
from cwb.harness import Request, registry, run_one
from cwb.instances import load
from cwb.reports.objective_types import question_of

#: Seconds of the best schedules of 1 GB on the instance ``sharp``: what a rank has to send or to receive.
BEST_S = {"all_reduce": 1, "reduce": 1, "broadcast": 1, "all_gather": 0.75, "reduce_scatter": 0.75}
SUMS = ("all_reduce", "reduce", "reduce_scatter")


@pytest.mark.parametrize("name", registry.names())
def test_no_method_proves_more_than_the_best_on_a_switch_that_adds_and_copies(name):
    """Whatever is proved or called optimal holds for the best schedule, too; on grids of epochs, where nothing adds in
    passing, sums are refused."""
    for kind, best_s in BEST_S.items():
        demand = Demand(collective_named(kind), Fraction(10**9))
        record = run_one(load("sharp").with_changes(demand=demand), Request(name, time_limit_s=20))
        assert record.status in ("optimal", "feasible", "unsupported"), (kind, record.message)
        if record.status == "unsupported":
            assert record.message
        elif question_of(record).clock == "te-ccl":
            assert kind not in SUMS
        elif record.bound is not None:
            assert record.bound <= best_s * (1 + 1e-9), kind
