"""The example of a solver of one's own keeps the contract of the adapters."""

from __future__ import annotations

from pathlib import Path

import cwb
import pytest
from cwb.core.errors import InputError
from cwb.harness.registry import PLUGINS, load_plugin, solver
from exam import run_case
from exam_cases import CASES

EXAMPLE = Path(__file__).parents[2] / "examples" / "clarabel_solver.py"


@pytest.fixture(autouse=True)
def plug_in_example(monkeypatch: pytest.MonkeyPatch) -> None:
    """The example is known, and forgotten after the test."""
    pytest.importorskip("clarabel")
    monkeypatch.setenv(PLUGINS, "")
    load_plugin(EXAMPLE)


def test_it_takes_the_exam_of_the_adapters(tmp_path: Path) -> None:
    """It passes every question that it offers an answer to, re-solves and dual values included, and refuses the
    rest."""
    verdicts = {case.name: run_case(case, solver("clarabel"), tmp_path) for case in CASES}
    assert not {name: reason for name, (verdict, reason) in verdicts.items() if verdict == "FAIL"}
    assert sum(verdict == "pass" for verdict, _ in verdicts.values()) > 20
    assert {verdicts[name][0] for name in ("duals", "resolve", "qp-convex", "lp-unbounded")} == {"pass"}


@pytest.mark.parametrize("method", ["mcf/flow", "forestcoll-lp"])
def test_methods_run_on_it(method: str) -> None:
    """A declared model, and a method that changes a model and needs its dual values, find the optimum of HiGHS."""
    collective = "all_to_all" if method == "mcf/flow" else "all_gather"
    mine, other = (cwb.solve("ring(4)", method, collective=collective, solver=name) for name in ("clarabel", "highs"))
    assert (mine.solver, mine.status) == ("clarabel", other.status)
    assert mine.objective == pytest.approx(other.objective)


def test_its_options_are_checked() -> None:
    """Own options are taken by their names, and a slip is told what is meant."""
    own = {"max_iter": "1"}
    assert (
        cwb.solve("ring(4)", "mcf/flow", collective="all_to_all", solver="clarabel", solver_options=own).status
        == "limit"
    )
    with pytest.raises(InputError, match="did you mean 'max_iter"):
        solver("clarabel").check_options({"max_itr": 1})
