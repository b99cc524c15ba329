"""The page on reports has all of them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from cwb.reports.cards import CARDS
from cwb.reports.numbers import FAILED, INVALID, MARKS, MISSING
from cwb.reports.objective_types import CLOCKS
from cwb.reports.plots import PLOTS
from cwb.reports.tables import TABLES


@pytest.fixture(scope="module")
def page() -> str:
    return (Path(__file__).parents[2] / "docs" / "reporting.md").read_text(encoding="utf-8")


def test_every_table_and_plot_is_documented(page: str) -> None:
    """Every table and plot has a row of its own, every clock and mark is in one."""
    rows = "\n".join(re.findall(r"^\| (`.*?`) \|", page, re.MULTILINE))
    for name in (
        *TABLES,
        *PLOTS,
        *CLOCKS,
        *(mark.text for mark in (*MARKS.values(), FAILED, INVALID, MISSING) if mark),
    ):
        assert f"`{name}`" in rows, name


def test_every_plot_is_in_the_report() -> None:
    """The report draws every plot that is made from records."""
    assert set(CARDS) == set(PLOTS)
