"""The collective that the command line asks ``cwb solve`` for."""

from __future__ import annotations

import json
from fractions import Fraction

import pytest
from click.testing import CliRunner
from cwb.bench.demand import with_demand
from cwb.cli.solve import solve
from cwb.core.collective import CollectiveKind, Demand
from cwb.core.errors import InputError
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


def test_loading_counts_against_the_limit():
    """A network that cannot be loaded in the time given is a record with status limit, and exit status 4."""
    arguments = ["torus(300,300)", "--model", "ring", "--collective", "all_gather", "--time-limit", "1 ns", "--json"]
    result = CliRunner().invoke(solve, arguments, catch_exceptions=False, standalone_mode=False)
    record = json.loads(result.stdout)
    assert result.return_value == record["exit_status"] == 4
    assert (record["status"], record["instance"], record["collective"]) == ("limit", "torus(300,300)", "all_gather")
    assert record["limits"] == {"time_limit_s": 1e-9}
    assert set(record["seconds"]) == {"load", "total"}
    assert "the time limit of 1e-09 s ran out while loading the instance: 16,384 of 90,000 nodes" in record["message"]
