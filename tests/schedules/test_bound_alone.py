"""The verifier of answers that are a bound alone."""

from __future__ import annotations

from fractions import Fraction

import pytest
from cwb.core.answers import BoundOnly
from cwb.core.bounds import CutCertificate, SolverBound
from cwb.core.collective import Collective, Demand
from cwb.instances import load
from cwb.schedules import verdict_of


def gathering():
    """An all-gather of three gigabytes on a ring of three ranks with 1 GB/s in either direction."""
    demand = Demand(Collective.ALL_GATHER, Fraction(3 * 10**9))
    return load("ring(3, bandwidth='1 GB/s')").with_changes(demand=demand)


def test_objective_and_bound_are_what_the_certificate_proves():
    """Two of three parts must leave two ranks over two links: one second."""
    verdict = verdict_of(gathering(), BoundOnly(), CutCertificate((0, 1)))
    assert verdict.ok
    assert verdict.objective == verdict.bound == verdict.metrics["lower_bound_s"] == 1


def test_of_an_attested_bound_nothing_is_found():
    """The word of a solver is neither wrong nor recomputed."""
    verdict = verdict_of(gathering(), BoundOnly(), SolverBound("highs", "1"))
    assert (verdict.violations, verdict.objective, verdict.bound) == ((), None, None)
    assert set(verdict.metrics) == {"clock", "question"}


@pytest.mark.parametrize("certificate", [None, CutCertificate((7,))])
def test_a_bound_without_proof_is_refused(certificate):
    """Nothing, and a cut through nodes that there are not, are violations."""
    verdict = verdict_of(gathering(), BoundOnly(), certificate)
    assert not verdict.ok
    assert verdict.objective is None


def test_a_record_says_that_there_is_no_schedule():
    """There is nothing in the answer but its kind."""
    assert BoundOnly().to_json() == {"answer": "bound-only"}
