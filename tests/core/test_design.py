"""Budgets and linear constraints of a design."""

from __future__ import annotations

from fractions import Fraction

import pytest
from cwb.core.design import Comparison, Design, parse_constraints
from cwb.core.errors import InputError
from hypothesis import given
from hypothesis import strategies as st

GBPS = 10**9


def read(text: str, dimensions: int = 3) -> list[tuple[list[str], str, Fraction]]:
    """Read constraints as coefficients, relation and limit in GB/s."""
    return [
        ([str(c) for c in found.coefficients], found.comparison.value, found.limit / GBPS)
        for found in parse_constraints(text, dimensions)
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("B1 + B2 = 500 GB/s", [(["1", "1", "0"], "=", 500)]),
        ("B1+B2==500GB/s", [(["1", "1", "0"], "=", 500)]),
        ("B1 >= B2 >= B3", [(["1", "-1", "0"], ">=", 0), (["0", "1", "-1"], ">=", 0)]),
        ("B1 ≥ B2 ≤ B3", [(["1", "-1", "0"], ">=", 0), (["0", "1", "-1"], "<=", 0)]),
        ("25 GB/s <= B3 <= 150 GB/s", [(["0", "0", "-1"], "<=", -25), (["0", "0", "1"], "<=", 150)]),
        ("B1 = B2 = B3", [(["1", "-1", "0"], "=", 0), (["0", "1", "-1"], "=", 0)]),
        ("2 B1 <= 3*B2", [(["2", "-3", "0"], "<=", 0)]),
        ("2B1 <= 0.5 b2", [(["2", "-1/2", "0"], "<=", 0)]),
        ("1/3*B1 - 1/2 B2 >= -B3", [(["1/3", "-1/2", "1"], ">=", 0)]),
        ("- B1 + B2 <= 10 GB/s - 4 GB/s", [(["-1", "1", "0"], "<=", 6)]),
        ("B1 + B1 <= 1e+2 GB/s", [(["2", "0", "0"], "<=", 100)]),
        ("B1 <= 1e-1 GB/s", [(["1", "0", "0"], "<=", Fraction(1, 10))]),
        ("B1 >= 0", [(["1", "0", "0"], ">=", 0)]),
        (" B1  <=5 GB/s ;B2<= 6 GB/s; ", [(["1", "0", "0"], "<=", 5), (["0", "1", "0"], "<=", 6)]),
    ],
)
def test_constraints_are_read_as_they_are_written(text: str, expected: list[tuple[list[str], str, int]]) -> None:
    """Chains, signs, fractions, factors, constants on both sides and any spacing give the linear form that they say."""
    assert read(text) == expected


TERM = st.tuples(st.sampled_from("+-"), st.integers(0, 9), st.integers(1, 9), st.integers(1, 4))


@given(st.lists(TERM, min_size=1, max_size=5), st.sampled_from(list(Comparison)), st.integers(0, 999), st.booleans())
def test_coefficients_add_up_exactly(
    terms: list[tuple[str, int, int, int]], comparison: Comparison, limit: int, spaces: bool
) -> None:
    """A sum of terms with fractional factors becomes exactly the sum of its coefficients, whatever the spacing."""
    gap = " " if spaces else ""
    left = gap.join(f"{sign}{gap}{a}/{b}{gap}B{d}" for sign, a, b, d in terms)
    coefficients = [Fraction(0)] * 4
    for sign, a, b, d in terms:
        coefficients[d - 1] += Fraction(a, b) * (-1 if sign == "-" else 1)
    text = f"{left}{gap}{comparison.value}{gap}{limit} GB/s"
    if not any(coefficients):
        with pytest.raises(InputError, match="has a side without a dimension"):
            parse_constraints(text, 4)
        return
    (found,) = parse_constraints(text, 4)
    assert list(found.coefficients) == coefficients
    assert (found.comparison, found.limit) == (comparison, limit * GBPS)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "contains no constraint"),
        (" ; ;", "contains no constraint"),
        ("B1", "has no <=, >= or ="),
        ("B1 < B2", "has no <=, >= or ="),
        ("B4 <= 5 GB/s", "names B4, but the network has 3 dimensions"),
        ("B0 <= 5 GB/s", "names B0, but the network has 3 dimensions"),
        ("B1 = 500", "'500' has no unit"),
        ("B1 <= 5 GB", "unknown unit 'GB'"),
        ("B1 <= nan GB/s", "is not a quantity"),
        ("B1 <= 1e999 GB/s", "is too large"),
        ("B1 <=", "is not a quantity"),
        ("<= B1", "is not a quantity"),
        ("B1 <= <= B2", "is not a quantity"),
        ("B1 + <= B2", "is not a quantity"),
        ("1/0 B1 <= 5 GB/s", "unknown unit .B1."),
        ("9" * 5000 + " B1 <= 5 GB/s", "is not a quantity"),
        ("B1 * B2 <= 5 GB/s", "is not a quantity"),
        ("B1 <= B1", "has a side without a dimension"),
        ("5 GB/s <= 6 GB/s", "has a side without a dimension"),
        ("__import__('os') <= B1", "is not a quantity"),
    ],
)
def test_wrong_constraints_are_refused(text: str, reason: str) -> None:
    """A constraint that cannot be read, or names a dimension that is not there, is told with the constraint."""
    with pytest.raises(InputError, match=reason):
        parse_constraints(text, 3)


@given(st.text(alphabet="B0123456789+-*/<>=; .eEGsbx", max_size=40))
def test_no_text_breaks_the_parser(text: str) -> None:
    """Whatever the text, there are constraints or an input error, and nothing else."""
    try:
        found = parse_constraints(text, 3)
    except InputError:
        return
    assert all(any(constraint.coefficients) for constraint in found)


def test_budgets_become_constraints_with_labels() -> None:
    """Totals, the cost budget and the written constraints become linear constraints that speak the user's words."""
    design = Design(
        total_Bps=Fraction(500 * GBPS),
        max_total_Bps=Fraction(600 * GBPS),
        cost_budget_usd=Fraction(15 * 10**6),
        constraints=("B1 >= B2",),
    )
    found = design.linear_constraints(2, [Fraction(1), Fraction(2)])
    assert [c.label for c in found] == [
        "total bandwidth = 500 GB/s",
        "total bandwidth <= 600 GB/s",
        "network cost <= 1.5e+07 USD",
        "B1 >= B2",
    ]
    assert [c.coefficients for c in found] == [(1, 1), (1, 1), (1, 2), (1, -1)]
    assert [c.comparison.value for c in found] == ["=", "<=", "<=", ">="]


def test_errors_of_a_design_name_the_place() -> None:
    """A cost budget without prices, and a wrong constraint, are told with their place in the file."""
    with pytest.raises(InputError, match=r"design\.cost_budget: a cost budget needs a cost model"):
        Design(cost_budget_usd=Fraction(1)).linear_constraints(2)
    with pytest.raises(InputError, match=r"design.constraints\[1\]: constraint 'B9 = B1' names B9"):
        Design(constraints=("B1 = B2", "B9 = B1")).linear_constraints(2)


def test_equal_bandwidth_is_the_total_or_what_the_budget_buys() -> None:
    """EqualBW splits the total; a cost budget lowers it to what can be paid; without either there is none."""
    prices = [Fraction(1), Fraction(3)]
    assert Design(total_Bps=Fraction(10)).equal_bandwidth_Bps(2) == 5
    assert Design(max_total_Bps=Fraction(10)).equal_bandwidth_Bps(2) == 5
    assert Design(total_Bps=Fraction(10), cost_budget_usd=Fraction(8)).equal_bandwidth_Bps(2, prices) == 2
    assert Design(cost_budget_usd=Fraction(8)).equal_bandwidth_Bps(2, prices) == 2
    assert Design().equal_bandwidth_Bps(2, prices) is None
