"""Expert placement: the usual placement, the optimum beside it, and bad input."""

from __future__ import annotations

from fractions import Fraction

import pytest
from cwb import solvers
from cwb.core.budget import Budget
from cwb.core.errors import InputError
from cwb.core.fields import validated
from cwb.core.solver import SolverOptions
from cwb.instances import load
from cwb.models.experts.formulation import build
from cwb.models.experts.method import PlacementOptions
from cwb.models.experts.problem import greedy, index, placed

#: The example of EPLB: loads of the experts of its first layer.
LAYER = [90, 132, 40, 61, 104, 165, 39, 4, 73, 56, 183, 86]


def posed(gpus, **options):
    return index(load(f"star({gpus})"), PlacementOptions(**options))


def test_the_usual_placement_of_the_published_example():
    """The usual placement has a largest load of 156, as the published program's, with groups on their nodes and all slots full."""
    problem = posed(8, loads=LAYER, replicas=16, groups=4, nodes=2)
    placement = greedy(problem)
    assert problem.largest(placement) == 156
    assert [len(slots) for slots in placement] == [2] * 8
    where = {(problem.group(e), problem.node(g)) for g, slots in enumerate(placement) for e in slots}
    assert len(where) == 4


@pytest.mark.slow
def test_the_optimum_of_the_published_example():
    """The model proves 151, and its placement has that load."""
    problem = posed(8, loads=LAYER, replicas=16, groups=4, nodes=2)
    model = build(problem)
    result = solvers.get("highs").solve(model, Budget(), SolverOptions())
    assert result.bound == pytest.approx(151)
    assert problem.largest(placed(model, problem)) == Fraction(151)


@pytest.mark.parametrize(
    ("options", "place"),
    [
        ({}, "loads"),
        ({"loads": [1, 2, 3], "replicas": 5}, "replicas"),
        ({"loads": [1, 2, 3, 4], "replicas": 2}, "replicas"),
        ({"loads": [1, 2, 3], "groups": 2}, "groups"),
        ({"loads": [1, 2, 3], "groups": 3, "nodes": 2}, "nodes"),
    ],
)
def test_bad_input(options, place):
    """What does not divide, or is missing, is said with its place."""
    with pytest.raises(InputError) as caught:
        posed(2, **options)
    assert caught.value.place == place


@pytest.mark.parametrize("number", [-3.0, 1e300, float("inf"), float("nan")])
def test_loads_are_numbers_from_zero_on(number):
    """Loads that are negative, not finite or larger than a solver takes are refused with their place."""
    with pytest.raises(InputError) as caught:
        validated(lambda: PlacementOptions.model_validate({"loads": [1.0, number]}), PlacementOptions.model_fields)
    assert caught.value.place == "loads[1]"
