"""The collective that the command line asks for."""

from __future__ import annotations

from fractions import Fraction

import pytest
from cwb.core.collective import CollectiveKind, Demand
from cwb.core.errors import InputError
from cwb.harness.demand import with_demand
from cwb.instances import load


def test_a_collective_without_any_size_has_one_gibibyte():
    """Where neither the instance nor the command line says a size, it is 1 GiB."""
    asked = with_demand(load("ring(4)"), "all_gather", None, None)
    assert asked.demand == Demand(CollectiveKind.ALL_GATHER, Fraction(2**30))


def test_the_instance_keeps_what_the_command_line_leaves_open():
    """The size, chunks and ranks of the instance's own collective stay unless they are replaced."""
    demand = Demand(CollectiveKind.ALL_REDUCE, Fraction(1000), 3, (0, 2))
    known = load("ring(4)").with_changes(demand=demand)
    assert with_demand(known, None, None, None) is known
    assert with_demand(known, "all_gather", None, None).demand == Demand(
        CollectiveKind.ALL_GATHER, Fraction(1000), 3, (0, 2)
    )
    assert with_demand(known, None, "2 KiB", 5).demand == Demand(CollectiveKind.ALL_REDUCE, Fraction(2048), 5, (0, 2))


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
