"""The method ``forestcoll-allreduce``: proof before search, and trees of the linear program where they are better."""

from __future__ import annotations

from fractions import Fraction

import pytest
from cwb.core.collective import Collective, Demand
from cwb.harness import Request, run
from cwb.instances import load
from cwb.schedules.collective import exact_bound
from cwb.schedules.verify import heaviest_load

SIZE = Fraction(10**9)


def run_all_reduce(spec: str, **options: object):
    """A run on an all-reduce of 1 GB."""
    instance = load(spec).with_changes(demand=Demand(Collective.ALL_REDUCE, SIZE))
    return run(instance, Request("forestcoll-allreduce", options=options))


@pytest.mark.parametrize(
    ("spec", "rate_GBps", "options", "trees_of"),
    [
        ("dgx_a100(boxes=1)", Fraction(1200, 7), {}, None),
        ("dgx_a100(boxes=2)", Fraction(520, 3), {}, None),
        ("dgx_a100(boxes=2)", Fraction(520, 3), {"always_solve": True}, "halves"),
        ("mi250(boxes=1)", Fraction(1200, 7), {}, None),
        ("mi250_8(boxes=2)", Fraction(128), {}, "program"),
    ],
)
def test_it_is_proved_best(spec, rate_GBps, options, trees_of):
    """Time of the verified trees and the certificate's bound are the same fraction; the program is solved only where
    halves are not proved best."""
    done = run_all_reduce(spec, **options)
    assert (done.record.status, done.record.verified, done.record.gap) == ("optimal", True, 0.0)
    assert heaviest_load(done.instance, done.answer) == exact_bound(done.instance, done.certificate) == 1 / rate_GBps
    assert done.record.metrics.get("trees_of") == trees_of
    assert bool(done.record.size["variables"]) == (trees_of is not None)


def test_rounding_is_not_called_optimal():
    """With capacities rounded to multiples that are too coarse the answer is feasible, with its gap."""
    done = run_all_reduce("mi250_8(boxes=2)", k=3)
    assert done.record.verified is True
    assert (done.record.status == "optimal") == (
        heaviest_load(done.instance, done.answer) == exact_bound(done.instance, done.certificate)
    )
    assert done.record.bound <= done.record.objective
