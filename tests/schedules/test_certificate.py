"""The judge of certificates: recomputes what is true and believes nothing else."""

from __future__ import annotations

from dataclasses import replace

import pytest
from cwb import solvers
from cwb.core.bounds import LagrangianCertificate
from cwb.core.budget import Budget
from cwb.core.cost import network_price
from cwb.instances import load
from cwb.models.libra import solve
from cwb.models.libra.options import LibraOptions, pose
from cwb.schedules.certificate import recomputed_bound, smallest_product
from hypothesis import given
from hypothesis import strategies as st

CASES = [
    ("gpt-3-4d", {}),
    ("gpt-3-4d", {"objective": "perf-per-cost"}),
    ("gpt-3-4d-multiple", {"objective": "perf-per-cost"}),
    ("msft-1t-3d", {"loop": "tp-dp-overlap"}),
    ("3d-torus", {"objective": "perf-per-cost"}),
]


def proved(name: str, given_options: dict[str, str]):
    options = LibraOptions.model_validate(given_options)
    instance = pose(load(name), options)
    return instance, solve.run(instance, solvers.get("highs"), Budget(), options)


@pytest.fixture(scope="module", params=CASES, ids=lambda case: f"{case[0]}-{'-'.join(case[1].values())}")
def case(request):
    return proved(*request.param)


def test_the_claimed_bound_is_recomputed(case):
    """From the multipliers alone the judge finds at least the bound that the method claims, and hardly more."""
    instance, outcome = case
    bound = recomputed_bound(instance, outcome.certificate)
    assert outcome.bound * (1 - 1e-12) <= bound <= outcome.bound * (1 + 1e-7)


@given(data=st.data())
def test_no_change_of_the_multipliers_proves_more_than_the_optimum(case, data):
    """Whatever is done to shares and multipliers, the recomputed bound stays below the best plan: the check is sound."""
    instance, outcome = case
    lines = list(outcome.certificate.lines)
    index = data.draw(st.integers(0, len(lines) - 1))
    line = lines[index]
    factor = st.sampled_from([-1.0, 0.0, 0.5, 0.9, 0.999, 1.001, 1.1, 2.0, 100.0])
    shares = [(*where, tuple(s * data.draw(factor) for s in share)) for *where, share in line.shares]
    size = max(map(abs, line.multipliers), default=0.0) or line.cost_weight or 1e-12
    multipliers = tuple(
        u * data.draw(factor) + size * data.draw(st.sampled_from([0, 0, -1, 1, 10])) for u in line.multipliers
    )
    weights = {name: getattr(line, name) * data.draw(factor) for name in ("time_weight", "cost_weight")}
    overlaps = tuple((*where, share * data.draw(factor)) for *where, share in line.overlaps)
    lines[index] = replace(line, shares=tuple(shares), overlaps=overlaps, multipliers=multipliers, **weights)
    bound = recomputed_bound(instance, LagrangianCertificate(tuple(lines), outcome.certificate.scale_free))
    assert bound is None or bound <= outcome.objective * (1 + 1e-9)


def test_a_forged_scale_free_certificate_proves_nothing():
    """A huge weight of cost against a multiplier that takes it back proves no more than the optimum: limits charge nothing at scale 0."""
    instance, outcome = proved("3d-torus", {"objective": "perf-per-cost"})
    (line,) = outcome.certificate.lines
    prices = network_price(instance.fabric, instance.cost_model)
    for weight in (1e-6, 1.0, 1e6):
        forged = replace(line, cost_weight=weight, multipliers=(-weight * float(min(prices)),))
        bound = recomputed_bound(instance, LagrangianCertificate((forged,), scale_free=True))
        assert bound is None or bound <= outcome.objective


def test_lines_without_weights_prove_nothing():
    """A line of weights 0 and 0 is no line."""
    instance, outcome = proved("gpt-3-4d", {})
    nothing = replace(outcome.certificate.lines[0], time_weight=0.0)
    assert recomputed_bound(instance, LagrangianCertificate((nothing,))) is None


def test_shares_that_sum_to_more_than_one_prove_nothing(case):
    """A maximum is at least an average, but not more than that: inflated shares are refused."""
    instance, outcome = case
    inflated = tuple(
        replace(line, shares=tuple((*where, tuple(1.01 * s + 0.01 for s in share)) for *where, share in line.shares))
        for line in outcome.certificate.lines
    )
    assert recomputed_bound(instance, LagrangianCertificate(inflated, outcome.certificate.scale_free)) is None


def test_a_missing_multiplier_proves_nothing(case):
    """A certificate must have a multiplier for every linear constraint."""
    instance, outcome = case
    short = tuple(replace(line, multipliers=line.multipliers[:-1]) for line in outcome.certificate.lines)
    assert recomputed_bound(instance, LagrangianCertificate(short, outcome.certificate.scale_free)) is None


@given(st.lists(st.tuples(st.floats(0.1, 10), st.floats(0.1, 10)), min_size=1, max_size=6))
def test_smallest_product_of_supporting_lines(points):
    """Lines that support a set of points never prove more than the smallest product of a point."""
    lines = [(a, 1.0, min(a * t + c for t, c in points)) for a in (0.1, 0.5, 1.0, 2.0, 10.0)]
    lines += [(1.0, 0.0, min(t for t, _ in points)), (0.0, 1.0, min(c for _, c in points))]
    assert smallest_product(lines) <= min(t * c for t, c in points) * (1 + 1e-9)
