"""Statements of the pages about options, metrics and equations, compared with the declarations in code."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest
from cwb.harness import registry

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def script() -> dict[str, Any]:
    """Run the script that writes the blocks, without writing."""
    return runpy.run_path(str(DOCS / "page_blocks.py"))


def test_blocks_are_what_the_script_writes(script: dict[str, Any]) -> None:
    """Every generated block of every page is what the code declares today."""
    for path in script["pages"]():
        page = path.read_text(encoding="utf-8")
        assert script["fill_page"](page) == page, f"{path}: run python docs/page_blocks.py"


def test_every_method_has_its_blocks(script: dict[str, Any]) -> None:
    """Options and metrics of every method that has some stand on one page each, and so do the equations of
    formulations."""
    found = [
        (kind, name)
        for path in script["pages"]()
        for kind, names in script["blocks"](path.read_text())
        for name in names
    ]
    assert len(found) == len(set(found))
    for name in registry.names():
        method = registry.get(name)
        assert ("options", name) in found or not method.options.model_fields, name
        assert ("metrics", name) in found or not method.metrics, name
    assert {name for kind, name in found if kind == "equations"} == set(registry.FORMULATIONS)


def test_formulas_of_docstrings_become_mathematics(script: dict[str, Any]) -> None:
    """Indices, words and signs of a docstring's formula are written in LaTeX; a name of the code stays one."""
    formula = runpy.run_path(str(DOCS / "equations.py"))["formula"]
    assert formula("sum_{e into v} f^t_e <= rbar") == r"$\sum_{e\text{ into }v} f^{t}_{e} \le \bar r$"
    assert formula("y_{v,e} in {0, 1, ..., P}") == r"$y_{v,e} \in \{0, 1, \dots, P\}$"
    assert formula("add_tree") == "`add_tree`"
