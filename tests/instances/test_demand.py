"""The collective that the command line asks for."""

from __future__ import annotations

from fractions import Fraction

import pytest
from cwb.core.collective import Collective, Demand
from cwb.core.errors import InputError
from cwb.instances import load
from cwb.instances.demand import with_demand


def test_a_collective_without_any_size_has_one_gibibyte():
    """If neither the instance nor the command line gives a size, it is 1 GiB."""
    asked = with_demand(load("ring(4)"), "all_gather", None, None)
    assert asked.demand == Demand(Collective.ALL_GATHER, Fraction(2**30))


def test_the_instance_keeps_what_the_command_line_leaves_open():
    """The size, chunks and ranks of the instance's own collective stay unless they are replaced."""
    demand = Demand(Collective.ALL_REDUCE, Fraction(1000), 3, (0, 2))
    known = load("ring(4)").with_changes(demand=demand)
    assert with_demand(known, None, None, None) is known
    assert with_demand(known, "all_gather", None, None).demand == Demand(
        Collective.ALL_GATHER, Fraction(1000), 3, (0, 2)
    )
    assert with_demand(known, None, "2 KiB", 5).demand == Demand(Collective.ALL_REDUCE, Fraction(2048), 5, (0, 2))


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("gossip", None, None), "--collective: 'gossip' is unknown"),
        ((None, "1 GiB", None), "--collective: missing"),
        (("all_gather", "0", None), "--size"),
        (("all_gather", "large", None), "--size"),
    ],
)
def test_bad_input(arguments, problem):
    """A size alone names no collective, and wrong words are errors that name their option."""
    with pytest.raises(InputError) as caught:
        with_demand(load("ring(4)"), *arguments)
    assert problem in str(caught.value)


def test_a_matrix_of_bytes_becomes_messages(tmp_path):
    """Row r of the file is what rank r sends to each rank, as bytes or sizes; a rank's own part and zeros are left
    out."""
    path = tmp_path / "demand.csv"
    path.write_text("9,1 KiB,0\n5,0,0\n0,7,0\n")
    asked = with_demand(load("ring(3)"), f"all_to_all_v('{path}')", None, 2)
    found = [(demand.ranks, demand.size_bytes, demand.chunks) for demand in asked.demands]
    assert found == [((0, 1), 1024, 2), ((1, 0), 5, 2), ((2, 1), 7, 2)]
    assert {demand.collective for demand in asked.demands} == {Collective.POINT_TO_POINT}


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        ("0,1\n1,0\n", "2 rows; expected 3, one for each rank"),
        ("0,1,2\n1,0\n1,2,0\n", "[1]: 2 sizes; expected 3, one for each rank"),
        ("0,1,2\n1,0,nan\n1,2,0\n", "[1][2]: 'nan' is not a quantity"),
        ("0,1,2\n1,0,-5\n1,2,0\n", "[1][2]: '-5' has no unit"),
        ("9" * 200_000, "not a CSV file: field larger than"),
        ("9,0,0\n0,9,0\n0,0,9\n", "no rank has data for another one"),
    ],
)
def test_bad_matrices(rows, problem, tmp_path):
    """An error in a matrix is reported with its row and column."""
    path = tmp_path / "demand.csv"
    path.write_text(rows)
    with pytest.raises(InputError) as caught:
        with_demand(load("ring(3)"), f"all_to_all_v('{path}')", None, None)
    assert problem in str(caught.value)


def test_a_generated_matrix_is_skewed_and_repeatable():
    """Every rank sends the size in all, its own part included, most to one rank; the seed decides to which."""
    one, again, other = (
        with_demand(load("ring(4)"), f"all_to_all_v(skew=2, seed={seed})", "1 MB", None).demands for seed in (1, 1, 2)
    )
    assert one == again != other
    alike = with_demand(load("ring(4)"), "all_to_all_v(skew=0)", "1 MB", None).demands
    assert {demand.size_bytes for demand in alike} == {250_000}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("all_to_all_v", "expected all_to_all_v(FILE.csv)"),
        ("gather_v", "expected gather_v(FILE.csv)"),
        ("all_to_all_v(3, 4)", "expected all_to_all_v(FILE.csv)"),
        ("all_to_all_v(skew=-1)", "from 0 to 10"),
        ("all_to_all_v(seed=0.5)", "seed"),
        ("all_to_all_v(shape=1)", "unknown 'shape'"),
        ("all_to_all_v('no.csv')", "no.csv"),
    ],
)
def test_bad_messages(text, problem):
    """An error in the expression or its file is reported."""
    with pytest.raises(InputError) as caught:
        with_demand(load("ring(3)"), text, None, None)
    assert problem in str(caught.value)
