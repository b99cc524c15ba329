"""All-to-alls on grids: at the bound of the bisection, hence optimal."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from cwb.core.bounds import CutCertificate, LengthCertificate
from cwb.core.outcome import Status


def bisection(sides):
    """Chunks across the middle of the longest side over the links there."""
    nodes, longest = int(np.prod(sides)), max(sides)
    half = nodes // longest * (longest // 2)
    return Fraction(half * (nodes - half), nodes // longest)


@pytest.mark.parametrize("sides", [(k, k) for k in range(3, 11)] + [(2, 5), (3, 6), (4, 8), (3, 3, 3), (4, 4, 4), (7,)])
def test_an_all_to_all_takes_what_the_bisection_takes(pose, run, verify_schedule, sides):
    """Half of the ways in order, half in reverse, farthest to go first: never a step more than the bisection needs."""
    spec = ", ".join(map(str, sides))
    count = int(np.prod(sides))
    posed = pose(f"mesh({spec}, bandwidth='1 MB/s', latency='0 us')", size=count * 10**6)
    outcome = run(posed)
    assert outcome.status is Status.OPTIMAL
    assert isinstance(outcome.certificate, CutCertificate | LengthCertificate)
    assert verify_schedule(posed, outcome) == pytest.approx(float(bisection(sides)))


@pytest.mark.parametrize("sides", [(4, 4), (3, 6), (4, 4, 4)])
def test_latency_costs_that_of_one_link(pose, run, verify_schedule, sides):
    """With latency an all-to-all ends one latency later, which the bound counts: it is optimal."""
    spec = ", ".join(map(str, sides))
    with_latency, without = (pose(f"mesh({spec}, latency='{us} us')", size=2**24) for us in (5, 0))
    outcome = run(with_latency)
    assert outcome.status is Status.OPTIMAL
    assert verify_schedule(with_latency, outcome) == pytest.approx(verify_schedule(without, run(without)) + 5e-6)
