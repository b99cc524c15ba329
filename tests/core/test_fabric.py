"""Building-block notation."""

from __future__ import annotations

import pytest
from cwb.core.errors import InputError
from cwb.core.fabric import TIERS, Block, default_tiers, looks_like_fabric, parse_fabric
from hypothesis import given
from hypothesis import strategies as st

BLOCKS = st.sampled_from(["RI", "FC", "SW"])


def test_the_notation_says_blocks_sizes_and_tiers() -> None:
    """The 4D-4K network of table 4.3 has the blocks and sizes that are written, 4,096 NPUs, and all four tiers."""
    fabric = parse_fabric("RI(4)_FC(8)_RI(4)_SW(32)")
    assert [d.block for d in fabric.dimensions] == [Block.RING, Block.FULLY_CONNECTED, Block.RING, Block.SWITCH]
    assert fabric.sizes == (4, 8, 4, 32)
    assert fabric.npus == 4096
    assert tuple(d.tier for d in fabric.dimensions) == TIERS


@given(st.lists(st.tuples(BLOCKS, st.integers(2, 12)), min_size=1, max_size=4))
def test_notation_is_read_and_written_alike(parts: list[tuple[str, int]]) -> None:
    """Writing a fabric gives the notation that it was read from, for every stack of blocks."""
    notation = "_".join(f"{block}({size})" for block, size in parts)
    fabric = parse_fabric(notation)
    assert str(fabric) == notation
    assert looks_like_fabric(notation)
    assert fabric.sizes == tuple(size for _, size in parts)


def test_r_is_short_for_ri_and_case_does_not_matter() -> None:
    """The dissertation writes R(4) as well as RI(4)."""
    assert parse_fabric("r(4)_Fc(2)") == parse_fabric("RI(4)_FC(2)")


def test_tiers_default_to_the_outermost_ones() -> None:
    """A 3D network ends in the pod and has no chiplets (figure 4.2)."""
    assert default_tiers(3) == ("inter-package", "inter-node", "inter-pod")
    with pytest.raises(InputError, match="name a tier for each"):
        default_tiers(5)
    assert parse_fabric("RI(2)", ("mine",)).dimensions[0].tier == "mine"


def test_in_network_reduction_is_set_per_dimension() -> None:
    """Only the dimensions that are named reduce in their switches."""
    fabric = parse_fabric("SW(2)_SW(4)").with_in_network(frozenset({1}))
    assert [d.in_network for d in fabric.dimensions] == [False, True]


@pytest.mark.parametrize(
    ("notation", "reason"),
    [
        ("", "expected RI"),
        ("XX(4)", "dimension 1 is 'XX\\(4\\)'; expected RI"),
        ("RI(4)_TORUS(8)", "dimension 2"),
        ("RI(4)_", "dimension 2"),
        ("RI(4)-FC(8)", "dimension 1"),
        ("RI(-4)", "expected RI"),
        ("RI(4.0)", "expected RI"),
        ("RI()", "expected RI"),
        ("RI(٤)", "expected RI"),
        ("RI(99999999)", "expected RI"),
        ("RI(1)", "at least 2"),
        ("RI(0)", "at least 2"),
        ("SW(9999999)_SW(9999999)", "more than 1,000,000,000 NPUs"),
        ("_".join(["RI(2)"] * 17), "17 dimensions"),
    ],
)
def test_wrong_notation_is_refused_with_the_dimension(notation: str, reason: str) -> None:
    """The error names the dimension, shows it and says what a dimension looks like."""
    with pytest.raises(InputError, match=reason):
        parse_fabric(notation)


def test_tiers_must_match_the_dimensions() -> None:
    """Two tiers for one dimension are an error."""
    with pytest.raises(InputError, match="2 tiers for 1 dimensions"):
        parse_fabric("RI(4)", ("a", "b"))


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        ("RI(4)_SW(8)", True),
        ("XX(4)", True),
        ("RI(4)_TORUS(8)", True),
        ("AMD(2)", False),
        ("RI(4)_SW(123456789)", True),
        ("torus(4)", False),
        ("RI(4,4)", False),
        ("RI", False),
        ("", False),
        ("4d.json", False),
    ],
)
def test_notation_is_told_from_other_texts(text: str, is_one: bool) -> None:
    """A wrong block is still meant as notation, so that its error speaks of blocks; files and generators are not."""
    assert looks_like_fabric(text) is is_one
