"""Quantities: from text to exact numbers and back."""

from __future__ import annotations

from fractions import Fraction
from math import gcd

import pytest
from cwb.core.errors import InputError
from cwb.core.units import SIZES, TIMES, UnitKind, common_unit, exact, parse, show, size_text, unit_for
from hypothesis import given
from hypothesis import strategies as st

KINDS_AND_UNITS = [(kind, unit) for kind in UnitKind for unit in kind.units]


@pytest.mark.parametrize(("kind", "unit"), KINDS_AND_UNITS, ids=lambda value: getattr(value, "name", value))
def test_every_unit_is_read_exactly(kind: UnitKind, unit: str) -> None:
    """Three of any unit are three times its size in base units, with and without a space before the unit."""
    assert parse(f"3 {unit}", kind) == parse(f"3{unit}", kind) == 3 * kind.units[unit]


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("1 GiB", UnitKind.SIZE, 2**30),
        ("1 kB", UnitKind.SIZE, 1000),
        ("8 Gb/s", UnitKind.RATE, 10**9),
        ("8 Gbps", UnitKind.RATE, 10**9),
        ("25 GiB/s", UnitKind.RATE, 25 * 2**30),
        ("0.7 us", UnitKind.TIME, Fraction(7, 10**7)),
        ("0.7 µs", UnitKind.TIME, Fraction(7, 10**7)),
        ("2 min", UnitKind.TIME, 120),
        ("15e6 USD", UnitKind.MONEY, 15 * 10**6),
        ("7.8 USD/(GB/s)", UnitKind.PRICE, Fraction(78, 10**10)),
        ("7.8 USD/GB/s", UnitKind.PRICE, Fraction(78, 10**10)),
        ("2 $/(GiB/s)", UnitKind.PRICE, Fraction(2, 2**30)),
        ("234 TFLOPS", UnitKind.SPEED, 234 * 10**12),
        (" +1.5e-3  s ", UnitKind.TIME, Fraction(15, 10**4)),
        ("100/3 GB/s", UnitKind.RATE, Fraction(10**11, 3)),
        ("+1/7us", UnitKind.TIME, Fraction(1, 7 * 10**6)),
        ("1/3 USD/(GB/s)", UnitKind.PRICE, Fraction(1, 3 * 10**9)),
    ],
)
def test_values_agree_with_hand_computation(text: str, kind: UnitKind, value: Fraction) -> None:
    """Binary and decimal prefixes, bits, money and exponents mean what they mean elsewhere."""
    assert parse(text, kind) == value


@given(st.decimals(min_value=0, max_value=10**12, places=12), st.sampled_from(KINDS_AND_UNITS))
def test_decimals_stay_exact(number: object, chosen: tuple[UnitKind, str]) -> None:
    """The fraction that is read is exactly the decimal that was written, to the last digit."""
    kind, unit = chosen
    text = f"{number:f}"
    assert parse(f"{text} {unit}", kind) == Fraction(text) * kind.units[unit]


@given(st.integers(0, 10**24), st.integers(1, 10**24), st.sampled_from(KINDS_AND_UNITS))
def test_fractions_are_written_exactly(above: int, below: int, chosen: tuple[UnitKind, str]) -> None:
    """Any fraction, of finite decimals or not, is read back as it was written, in every unit that it is sensible in."""
    kind, unit = chosen
    value = Fraction(above, below) * kind.units[unit]
    if not value or Fraction(1, 10**30) <= value <= 10**30:
        assert parse(exact(Fraction(above, below), unit), kind) == value


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Fraction(3125, 1000), "3.125 us"),
        (Fraction(1, 3), "1/3 us"),
        (Fraction(-1, 8), "-0.125 us"),
        (Fraction(0), "0 us"),
        (Fraction(1, 2**40), "1/1099511627776 us"),
        (Fraction(10**39), f"{10**39} us"),
    ],
)
def test_decimals_are_written_where_they_are_finite(value: Fraction, text: str) -> None:
    """A number is written as people write it where that is exact and short, and as a fraction elsewhere."""
    assert exact(value, "us") == text


def test_numbers_that_are_too_long_are_refused() -> None:
    """Numbers that could not be read back are not written."""
    with pytest.raises(InputError, match="expected a fraction of at most 40 digits above and below"):
        exact(Fraction(1, 10**40 + 1), "s")


@given(st.integers(1, 999_999), st.integers(-9, 9), st.sampled_from(KINDS_AND_UNITS))
def test_what_is_shown_is_read_back(digits: int, exponent: int, chosen: tuple[UnitKind, str]) -> None:
    """A quantity of six digits survives being shown and read again, in every unit."""
    kind, unit = chosen
    value = parse(f"{digits}e{exponent} {unit}", kind)
    assert parse(show(value, unit), kind) == value


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("50", "has no unit"),
        (50, "has no unit"),
        (50.0, "has no unit"),
        (None, "has no unit"),
        (True, "has no unit"),
        (["50 GB/s"], "has no unit"),
        ("", "is not a quantity"),
        ("GB/s", "is not a quantity"),
        ("fast", "is not a quantity"),
        ("1..2 GB/s", "is not a quantity"),
        ("1e GB/s", "is not a quantity"),
        ("1/0 GB/s", "is not a quantity"),
        ("-1/3 GB/s", "must not be negative"),
        ("1.5/3 GB/s", "is not a quantity"),
        ("1/" + "9" * 41 + " GB/s", "is not a quantity"),
        ("1_000 GB/s", "is not a quantity"),
        ("٣ GB/s", "is not a quantity"),
        ("1 GB/s more", "is not a quantity"),
        ("nan GB/s", "is not a quantity"),
        ("NaN GB/s", "is not a quantity"),
        ("inf GB/s", "is not a quantity"),
        ("Infinity GB/s", "is not a quantity"),
        ("50 GB", "unknown unit"),
        ("50 gb/s", "unknown unit"),
        ("50 parsecs", "unknown unit"),
        ("-1 GB/s", "must not be negative"),
        ("1e999 GB/s", "is too large"),
        ("1e-999 GB/s", "is too small"),
        ("1e9999 GB/s", "is not a quantity"),
        ("9" * 41 + " GB/s", "is not a quantity"),
    ],
)
def test_wrong_quantities_are_refused_with_value_and_expectation(value: object, reason: str) -> None:
    """A missing or wrong unit, a sign, NaN, infinity and absurd numbers are told in one line that shows how to write
    it."""
    with pytest.raises(InputError, match=reason) as caught:
        parse(value, UnitKind.RATE)
    assert "expected a bandwidth with its unit, such as '50 GB/s'" in str(caught.value)
    assert len(str(caught.value)) < 200


def test_zero_is_refused_only_where_it_makes_no_sense() -> None:
    """Zero is a size, but no bandwidth, if the caller says so."""
    assert parse("0 GB/s", UnitKind.RATE) == 0
    with pytest.raises(InputError, match="must be greater than zero"):
        parse("0 GB/s", UnitKind.RATE, allow_zero=False)


@given(st.one_of(st.text(max_size=30), st.from_regex(r"[0-9.eE+-]{0,12} ?[A-Za-z/()$]{0,8}", fullmatch=True)))
def test_no_text_breaks_the_parser(text: str) -> None:
    """Whatever the text, there is a number that fits a float, or an input error, and nothing else."""
    for kind in UnitKind:
        try:
            value = parse(text, kind)
        except InputError:
            continue
        assert value >= 0
        assert float(value) < 1e31


@given(st.lists(st.fractions(0, 1000, max_denominator=1000), max_size=5))
def test_the_common_unit_is_the_largest(values: list[Fraction]) -> None:
    """All values are whole multiples of their common unit, and these multiples have no common divisor."""
    unit = common_unit(values)
    if not any(values):
        assert unit == 0
        return
    multiples = [value / unit for value in values]
    assert all(multiple.denominator == 1 for multiple in multiples)
    assert gcd(*(multiple.numerator for multiple in multiples)) == 1


def test_an_unknown_unit_cannot_be_shown() -> None:
    """Asking for a unit that does not exist is a mistake of the program and says so."""
    with pytest.raises(ValueError, match="unknown unit"):
        show(1, "parsecs")


def test_the_unit_fits_the_quantity() -> None:
    """The largest unit of which there is one at least is chosen, and the smallest for less."""
    assert unit_for(3 * 2**20, SIZES) == ("MiB", 2**20)
    assert unit_for(0.0, SIZES) == ("B", 1)
    assert unit_for(2e-3, TIMES) == ("ms", 1e-3)
    assert unit_for(Fraction(10**9, 8), ("Gb/s", "Mb/s")) == ("Gb/s", 1.25e8)


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (1024, "1 KiB"),
        (2**20, "1 MiB"),
        (3 * 2**29, "1536 MiB"),
        (1e9, "1 GB"),
        (1e6, "1 MB"),
        (1000, "1 kB"),
        (999, "999 B"),
        (10**12, "1 TB"),
        (12_345_678, "12345678 B"),
    ],
)
def test_size_text(size: float, text: str) -> None:
    """Sizes are written in the largest unit that divides them, binary before decimal."""
    assert size_text(size) == text
