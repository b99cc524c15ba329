"""Groups of NPUs and how they map onto dimensions."""

from __future__ import annotations

from math import prod

import pytest
from cwb.core.errors import InputError
from cwb.core.fabric import Fabric, parse_fabric
from cwb.core.workload import check_span, map_groups
from hypothesis import assume, given
from hypothesis import strategies as st


@st.composite
def fabrics(draw: st.DrawFn) -> Fabric:
    """Draw a fabric of up to four rings."""
    sizes = draw(st.lists(st.integers(2, 24), min_size=1, max_size=4))
    return parse_fabric("_".join(f"RI({size})" for size in sizes))


def divisors(number: int) -> list[int]:
    """All divisors."""
    return [d for d in range(1, number + 1) if number % d == 0]


def test_tp_16_spans_a_part_of_the_second_dimension() -> None:
    """TP-16 and DP-256 of GPT-3 on the 4D-4K network span 4 x 4 and 2 x 4 x 32 NPUs (section 4.2.3)."""
    fabric = parse_fabric("RI(4)_FC(8)_RI(4)_SW(32)")
    assert map_groups(fabric, {"tp": 16, "dp": 256}) == {"tp": (4, 4, 1, 1), "dp": (1, 2, 4, 32)}
    assert map_groups(fabric, {"tp": 128, "dp": 32}) == {"tp": (4, 8, 4, 1), "dp": (1, 1, 1, 32)}
    assert map_groups(fabric, {"tp": 1, "dp": 4096}) == {"tp": (1, 1, 1, 1), "dp": (4, 8, 4, 32)}


@given(fabrics(), st.data())
def test_spans_multiply_to_degrees_and_to_the_network(fabric: Fabric, data: st.DataObject) -> None:
    """Whatever is mapped, every span multiplies to its degree, and the spans together fill every dimension."""
    first = data.draw(st.sampled_from(divisors(fabric.npus)))
    second = data.draw(st.sampled_from(divisors(fabric.npus // first)))
    degrees = {"tp": first, "pp": second, "dp": fabric.npus // first // second}
    try:
        spans = map_groups(fabric, degrees)
    except InputError as error:
        assert "does not fit" in str(error)
        assume(False)
    for name, span in spans.items():
        assert prod(span) == degrees[name]
        check_span(span, fabric)
    for index, size in enumerate(fabric.sizes):
        assert prod(span[index] for span in spans.values()) == size


@given(st.lists(st.integers(1, 5), min_size=1, max_size=4), st.data())
def test_powers_of_two_always_fit(exponents: list[int], data: st.DataObject) -> None:
    """On networks whose dimensions are powers of two, every power of two is a TP degree."""
    fabric = parse_fabric("_".join(f"SW({2**e})" for e in exponents))
    tensor = 2 ** data.draw(st.integers(0, sum(exponents)))
    assert prod(map_groups(fabric, {"tp": tensor, "dp": fabric.npus // tensor})["tp"]) == tensor


@pytest.mark.parametrize(
    ("degrees", "reason"),
    [
        ({"tp": 16, "dp": 16}, "tp=16 x dp=16 is 256 NPUs; RI\\(4\\)_SW\\(6\\) has 24"),
        ({"tp": 9, "dp": 1}, "is 9 NPUs"),
        ({"tp": 8, "dp": 3}, None),
    ],
)
def test_degrees_that_do_not_multiply_are_refused(degrees: dict[str, int], reason: str | None) -> None:
    """Degrees must multiply to the number of NPUs; TP-8 x DP-3 does on 4 x 6 and is laid out as 4 x 2 and 1 x 3."""
    fabric = parse_fabric("RI(4)_SW(6)")
    if reason is None:
        assert map_groups(fabric, degrees) == {"tp": (4, 2), "dp": (1, 3)}
        return
    with pytest.raises(InputError, match=reason):
        map_groups(fabric, degrees)


def test_a_group_that_cannot_be_laid_out_is_refused() -> None:
    """TP-9 divides 6 x 6 NPUs but takes 3 of the first 6 and 3 of the second; 16 of 36 does not divide at all."""
    fabric = parse_fabric("RI(6)_RI(6)")
    assert map_groups(fabric, {"tp": 9, "dp": 4}) == {"tp": (3, 3), "dp": (2, 2)}
    with pytest.raises(InputError, match="has 36"):
        map_groups(fabric, {"tp": 16, "dp": 2})


@pytest.mark.parametrize(
    ("span", "reason", "place"),
    [
        ((4,), "has 1 entries; expected one for each of the 2 dimensions", None),
        ((8, 1), "a communicator of 8 NPUs is larger than its dimension RI\\(4\\)", "[0]"),
        ((1, 4), "a communicator of 4 NPUs does not divide its dimension SW\\(6\\)", "[1]"),
        ((1, 0), "at least 1 NPU", "[1]"),
    ],
)
def test_spans_that_cannot_tile_are_refused(span: tuple[int, ...], reason: str, place: str | None) -> None:
    """A communicator must have an entry per dimension, no larger than it and dividing it; the error names the entry."""
    with pytest.raises(InputError, match=reason) as caught:
        check_span(span, parse_fabric("RI(4)_SW(6)"))
    assert caught.value.place == place
