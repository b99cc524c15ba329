"""Infeasible instances of every family that has one are explained by their declared models."""

from __future__ import annotations

import json
from typing import Any

import cwb
import pytest
from command_line import cwb as command
from cwb import solvers
from cwb.core.errors import InputError, SolverUnavailable
from cwb.core.explanation import Condition, Explanation
from cwb.harness import registry
from cwb.instances.demand import with_demand
from cwb.solvers.conflict import find_conflict
from cwb.solvers.matrix import compile_matrix
from cwb.studies.explain import explaining_formulations
from irreducible import budget, require_irreducible

CASES: list[tuple[str, str, str | None, dict[str, Any], str]] = [
    ("libra", "4d", None, {"constraints": ["B1 >= 900 GB/s", "B2 >= 200 GB/s", "B3 >= 10 GB/s"]}, "design"),
    ("mtree", "ring(6)", "all_reduce", {"height": 2}, "next_layer"),
    ("mtree", "gscale", None, {"height": "1 ms"}, "farther"),
    ("teccl-milp", "ring(5)", "all_to_all", {"epochs": 2}, "capacity"),
    ("sccl/rounds", "ring(5)", "all_gather", {"steps": 1}, "has_first"),
    ("ten-ilp", "ring(5)", "all_to_all", {"horizon": 2}, "link"),
]


@pytest.mark.parametrize(("model", "network", "collective", "options", "component"), CASES)
def test_families_are_explained(
    model: str, network: str, collective: str | None, options: dict[str, Any], component: str
) -> None:
    """The conditions exclude one another, and without any one of them they do not, as another program says."""
    explanation = cwb.explain(network, model, collective=collective, **options)
    assert explanation.irreducible
    assert component in {condition.component for condition in explanation.conditions}
    assert all(c.equation and c.algebra for c in explanation.conditions if c.kind == "constraint")
    formulation = registry.formulation(explanation.model)
    instance = with_demand(cwb.load(network), collective, None, chunks=None)
    pyomo_model = formulation.build(instance, **options)
    matrix = compile_matrix(pyomo_model)
    conflict = find_conflict(solvers.get("highs"), matrix, budget())
    assert conflict is not None
    assert len(conflict.parts) == len(explanation.conditions)
    require_irreducible(matrix, conflict)


def test_a_rank_without_a_way_is_named() -> None:
    """A sketch that leaves no way to a rank is told without a solver."""
    explanation = cwb.explain("ring(4)", "taccl", collective="all_gather", sketch="avoid * -> 2")
    (condition,) = explanation.conditions
    assert (condition.component, condition.index, condition.algebra) == ("one_send_in", "c=0, n=2", "1 <= 0")
    assert "this condition cannot be met" in explanation.text()


def test_what_is_not_explained_is_told() -> None:
    """A model with a solution, a method without a declared model, and an unknown name are told apart."""
    assert cwb.explain("ring(4)", "sccl", collective="all_gather").message == "it has a solution"
    assert cwb.explain("ring(4)", "ring", collective="all_gather").message.startswith("it has no declared model")
    assert "does not define all_gather" in cwb.explain("ring(4)", "mcf/flow", collective="all_gather").message
    with pytest.raises(InputError, match="did you mean 'sccl'"):
        cwb.explain("ring(4)", "scl")
    with pytest.raises(SolverUnavailable):
        cwb.explain("ring(4)", "sccl", collective="all_gather", solver="pyomo:nope")


def test_formulations_explain_the_methods_that_they_agree_with() -> None:
    """By default a formulation speaks for the method with the same optimum."""
    assert [formulation.name for formulation in explaining_formulations("ten-ilp")] == ["ten/ilp"]
    assert "mtree/pricing" in [formulation.name for formulation in explaining_formulations("mtree")]
    assert [formulation.name for formulation in explaining_formulations("teccl-milp")] == ["teccl/milp"]


def test_the_command_prints_and_records_the_explanation(capsys: pytest.CaptureFixture[str]) -> None:
    """The text is on stdout after the summary, the same conditions are in the record, and the status stays."""
    arguments = (
        "solve",
        "-q",
        "--formulation",
        "sccl/rounds",
        "ring(5)",
        "--collective",
        "all_gather",
        "-O",
        "steps=1",
    )
    status = command(*arguments, "--explain")
    assert "these 7 conditions exclude one another" in capsys.readouterr().out
    assert command(*arguments, "--explain", "--json") == status
    record = json.loads(capsys.readouterr().out)
    assert len(record["explanation"]["conditions"]) == 7
    assert command("solve", "-q", "--model", "ring", "ring(4)", "--collective", "all_reduce", "--explain") == 0
    assert "--explain: there is an answer" in capsys.readouterr().err


def test_long_lists_are_cut_in_the_text_alone() -> None:
    """Of many conditions of one component the text shows some, and says how many more there are."""
    conditions = tuple(Condition("constraint", "row", f"i={i}", "0 = 1", "of i") for i in range(9))
    told = Explanation("a/b", "highs", conditions, whole=True, by="deletion filter", solves=3)
    assert "and 3 more" in told.text()
    assert "in whole numbers" in told.text()
    assert "not shown to be irreducible" in told.text()
    assert len(told.to_json()["conditions"]) == 9
