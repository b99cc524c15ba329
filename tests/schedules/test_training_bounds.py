"""The verifier of certificates: recomputes what is true and believes nothing else."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest
from cwb import solvers
from cwb.core.bounds import LagrangianCertificate, SupportingLine
from cwb.core.budget import Budget
from cwb.core.fabric import network_price
from cwb.instances import load
from cwb.models.libra import solve
from cwb.models.libra.method import LibraOptions, pose
from cwb.schedules.training import recomputed_bound, smallest_product
from hypothesis import given
from hypothesis import strategies as st

pytestmark = pytest.mark.slow  # random programs are solved

CASES = [
    ("gpt-3-4d", {}),
    ("gpt-3-4d", {"objective": "perf-per-cost"}),
    ("gpt-3-4d-multiple", {"objective": "perf-per-cost"}),
    ("msft-1t-3d", {"loop": "tp-dp-overlap"}),
    ("3d-torus", {"objective": "perf-per-cost"}),
]


def solve_instance(name: str, given_options: dict[str, str]):
    options = LibraOptions.model_validate(given_options)
    instance = pose(load(name), options)
    return instance, solve.run(instance, solvers.get("highs"), Budget(), options)


@pytest.fixture(scope="module", params=CASES, ids=lambda case: f"{case[0]}-{'-'.join(case[1].values())}")
def case(request):
    return solve_instance(*request.param)


def test_the_claimed_bound_is_recomputed(case):
    """From the multipliers alone the verifier finds at least the bound that the method claims, and hardly more."""
    instance, outcome = case
    bound = recomputed_bound(instance, outcome.certificate)
    assert outcome.bound * (1 - 1e-12) <= bound <= outcome.bound * (1 + 1e-7)


@given(data=st.data())
def test_no_change_of_the_multipliers_proves_more_than_the_optimum(case, data):
    """Whatever is done to shares and multipliers, the recomputed bound stays below the best plan: the check is
    sound."""
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
    """A huge weight of cost against a multiplier that takes it back proves no more than the optimum: limits charge
    nothing at scale 0."""
    instance, outcome = solve_instance("3d-torus", {"objective": "perf-per-cost"})
    (line,) = outcome.certificate.lines
    prices = network_price(instance.fabric, instance.cost_model)
    for weight in (1e-6, 1.0, 1e6):
        forged = replace(line, cost_weight=weight, multipliers=(-weight * float(min(prices)),))
        bound = recomputed_bound(instance, LagrangianCertificate((forged,), scale_free=True))
        assert bound is None or bound <= outcome.objective


def test_lines_without_weights_prove_nothing():
    """A line of weights 0 and 0 is no line."""
    instance, outcome = solve_instance("gpt-3-4d", {})
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
    exact = [(Fraction(t), Fraction(c)) for t, c in points]
    one, zero = Fraction(1), Fraction(0)
    lines = [(a, one, min(a * t + c for t, c in exact)) for a in map(Fraction, (0.1, 0.5, 1.0, 2.0, 10.0))]
    lines += [(one, zero, min(t for t, _ in exact)), (zero, one, min(c for _, c in exact))]
    assert smallest_product(lines) <= min(t * c for t, c in exact)


def scale_line(line: SupportingLine, factor: Fraction) -> SupportingLine:
    """Multiply weights and multipliers by a factor, which proves the same as long as nothing is rounded."""
    return replace(
        line,
        time_weight=float(line.time_weight * factor),
        cost_weight=float(line.cost_weight * factor),
        multipliers=tuple(float(u * factor) for u in map(Fraction, line.multipliers)),
    )


@given(exponent=st.integers(-1070, 1000))
def test_multiples_of_a_line_prove_the_same(case, exponent):
    """A certificate times a power of two proves the same bound, to the last digit, as long as its numbers keep theirs;
    else never more."""
    instance, outcome = case
    factor = Fraction(2) ** exponent
    certificate = outcome.certificate
    proved = recomputed_bound(instance, certificate)
    try:
        lines = tuple(
            scale_line(
                replace(line, time_weight=Fraction(line.time_weight), cost_weight=Fraction(line.cost_weight)), factor
            )
            for line in certificate.lines
        )
    except OverflowError:
        return
    bound = recomputed_bound(instance, replace(certificate, lines=lines))
    kept = all(
        Fraction(x) == Fraction(y) * factor
        for new, old in zip(lines, certificate.lines, strict=True)
        for x, y in zip(
            (new.time_weight, new.cost_weight, *new.multipliers),
            (old.time_weight, old.cost_weight, *old.multipliers),
            strict=True,
        )
    )
    assert bound == proved if kept else bound is None or bound <= outcome.objective * (1 + 1e-12)


@pytest.mark.parametrize("factor", [1e-320, 1e-308, 1e-200, 2.36e-159, 1e-20, 1e20, 1e160, 1e250, 1e300])
@pytest.mark.parametrize("which", ["all", "weights", "multipliers", "one line"])
def test_no_scaling_proves_more_than_the_optimum(case, factor, which):
    """Whatever is scaled, and however far, the bound is a number no larger than the best plan's, or there is none."""
    instance, outcome = case
    lines = []
    for index, line in enumerate(outcome.certificate.lines):
        whole = which == "all" or (which == "one line" and index == 0)
        weights = factor if whole or which == "weights" else 1.0
        multipliers = factor if whole or which == "multipliers" else 1.0
        lines.append(
            replace(
                line,
                time_weight=line.time_weight * weights,
                cost_weight=line.cost_weight * weights,
                multipliers=tuple(u * multipliers for u in line.multipliers),
            )
        )
    bound = recomputed_bound(instance, replace(outcome.certificate, lines=tuple(lines)))
    assert bound is None or bound <= outcome.objective * (1 + 1e-12)


@pytest.mark.parametrize("number", [float("inf"), float("-inf"), float("nan")])
def test_a_line_with_what_is_no_number_proves_nothing(case, number):
    """Infinities and NaN, wherever they stand, make a line that proves nothing."""
    instance, outcome = case
    line = outcome.certificate.lines[0]
    (*where, share), *rest = line.shares
    forged = [
        replace(line, time_weight=number),
        replace(line, cost_weight=number),
        replace(line, multipliers=(number,) * len(line.multipliers)),
        replace(line, shares=((*where, (number,) * len(share)), *rest)),
    ]
    for wrong in forged:
        if wrong.multipliers or wrong is not forged[2]:
            assert recomputed_bound(instance, replace(outcome.certificate, lines=(wrong,))) is None
