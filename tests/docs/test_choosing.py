"""The page that helps to choose a method: its tables and its figure are what their scripts make today."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from cwb.core.network_views import supported_view
from cwb.harness import registry
from cwb.instances import load
from cwb.instances.demand import with_demand

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def script() -> dict[str, Any]:
    """Run the script that writes the tables, without writing."""
    return runpy.run_path(str(DOCS / "method_table.py"))


def test_every_method_has_one_row(script: dict[str, Any]) -> None:
    """Every method stands under one heading, and a class of origin that the page explains."""
    listed = [name for methods in script["GROUPS"].values() for name in methods]
    assert sorted(listed) == sorted(registry.METHODS)
    page = script["PAGE"].read_text(encoding="utf-8")
    for methods in script["GROUPS"].values():
        for about in methods.values():
            assert f"| `{about.origin}` |" in page


def test_the_tables_are_what_the_script_writes(script: dict[str, Any]) -> None:
    """The page has the tables as the methods declare themselves today."""
    page = script["PAGE"].read_text(encoding="utf-8")
    assert script["fill_page"](page) == page, "run python docs/method_table.py"


@pytest.mark.parametrize("name", ["choose", "architecture"])
def test_figures_are_what_their_scripts_draw(name: str) -> None:
    """The figure in the repository is that of its command."""
    drawn = runpy.run_path(str(DOCS / "images" / f"{name}.py"))["svg"]()
    assert (DOCS / "images" / f"{name}.svg").read_text(encoding="utf-8") == drawn


def test_the_call_tree_is_that_of_a_run(tmp_path: Path) -> None:
    """The figure of the calls of ``cwb solve`` in the repository is that of a run today."""
    drawn = tmp_path / "call_tree.svg"
    script = str(DOCS / "images" / "call_tree.py")
    subprocess.run([sys.executable, script, str(drawn)], check=True, capture_output=True)
    stored = (DOCS / "images" / "call_tree.svg").read_text(encoding="utf-8")
    assert stored == drawn.read_text(encoding="utf-8"), f"run python {script}"


def test_concept_figures_are_what_their_script_draws() -> None:
    """The figures that explain concepts are those that their script draws, times of the simulator included."""
    for name, draw in runpy.run_path(str(DOCS / "images" / "figures.py"))["FIGURES"].items():
        assert (DOCS / "images" / f"{name}.svg").read_text(encoding="utf-8") == draw(), name


def test_charts_are_what_their_script_draws() -> None:
    """Every file of results whose chart is shown has the chart that its script draws of it."""
    for name, draw in runpy.run_path(str(DOCS / "images" / "charts.py"))["CHARTS"].items():
        assert (DOCS / "benchmarks" / f"{name}.svg").read_text(encoding="utf-8") == draw(), name


def test_tables_become_files_of_results() -> None:
    """Tables in Markdown are read with empty cells filled, and without marks and commas in numbers."""
    script = runpy.run_path(str(DOCS / "tables.py"))
    text = "| a | b, s |\n|---|---:|\n| `x(1,200)` | 1,024 |\n| | **2** |\n"
    assert list(script["tables"](text)) == [[["a", "b, s"], ["x(1,200)", "1024"], ["x(1,200)", "2"]]]


def test_the_figure_leads_to_methods() -> None:
    """Every method that the figure names is there, and no text is wider than its box."""
    figure = runpy.run_path(str(DOCS / "images" / "choose.py"))
    for question, what, methods in figure["QUESTIONS"]:
        assert set(methods) <= set(registry.METHODS)
        assert max(map(len, question.split("|"))) <= 29
        assert len(what) <= 30
        assert len(" · ".join(methods)) <= 30


def test_every_answer_of_the_figure_takes_the_collectives_that_lead_to_it() -> None:
    """Whoever follows the questions with a collective comes to a method that takes it, each named method takes one (but
    two, which need more than an instance), and a small all-reduce does not lead to ``teccl``, which takes none."""
    figure = runpy.run_path(str(DOCS / "images" / "choose.py"))
    for (question, _, methods), (name, collectives) in zip(figure["QUESTIONS"], figure["CASES"], strict=True):
        taken = {method: {one for one in collectives if takes(method, name, one)} for method in methods}
        assert set().union(*taken.values()) == set(collectives), question
        assert {method for method, found in taken.items() if not found} <= {"libra-codesign", "mtree-repair"}, question
        assert not ("teccl" in methods and "all_reduce" in collectives)


def takes(method: str, name: str, collective: str) -> bool:
    """Check if a method supports a shipped or generated instance."""
    instance = with_demand(load(name), collective or None, None, None)
    return supported_view(registry.get(method), instance)[1] is None


def test_the_page_is_linked() -> None:
    """README and the front page of the documentation lead to it."""
    readme = (DOCS.parent / "README.md").read_text(encoding="utf-8")
    assert re.search(r"\[[Cc]hoose a method\]\(docs/methods/index\.md\)", readme)
    assert re.search(r"\[[Cc]hoose a method\]\(methods/index\.md\)", (DOCS / "index.md").read_text(encoding="utf-8"))
