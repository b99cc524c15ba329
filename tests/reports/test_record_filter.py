"""A part of the records, and other forms of a table: conditions, columns, pivots."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from cwb.core.errors import InputError
from cwb.core.record import RunRecord
from cwb.reports.formats import FORMATS
from cwb.reports.records import Condition, filter_records, pivot_table, with_columns
from cwb.reports.table import Table, build
from cwb.reports.tables import get

Make = Callable[..., RunRecord]


@pytest.fixture
def records(make_record: Make, make_metrics: Callable[..., Any]) -> list[RunRecord]:
    """LIBRA's records of two instances and three budgets, of which one is missing."""
    return [
        make_record(name, total=total, metrics=make_metrics(total / 100, 2.0, 3.0), seconds={"solve": total / 100})
        for name in ("gpt-3-4d", "dlrm-4d")
        for total in (100, 200, 300)
        if (name, total) != ("dlrm-4d", 300)
    ]


@pytest.fixture
def table(records: list[RunRecord]) -> Table:
    """Every run of them."""
    return build(get("summary"), records)


@pytest.mark.parametrize(
    ("condition", "count"),
    [
        ("instance=gpt-3-4d", 3),
        ("instance=*-4d", 5),
        ("instance != gpt*", 2),
        ("seconds.solve<=2", 4),
        ("seconds.solve > 2", 1),
        ("seconds.solve = 2.0", 2),
        ("verified=true", 5),
        ("options.nothing!=1", 5),
        ("seed>=0", 5),
    ],
)
def test_conditions(condition: str, count: int, records: list[RunRecord]) -> None:
    """Fields, also those inside others, are compared as text, patterns, numbers or truth."""
    assert len(filter_records(records, [Condition.parse(condition)])) == count


@pytest.mark.parametrize(
    ("condition", "problem"),
    [
        ("instance", "'instance' is not a condition; expected one such as model=ring"),
        ("=ring", "'=ring' is not a condition"),
        ("modl=ring", r"no record has a field 'modl'; expected one of .*; did you mean 'model'\?"),
        ("seconds.total<soon", "'soon' is not a number; expected one after '<'"),
    ],
)
def test_what_is_no_condition(condition: str, problem: str) -> None:
    """A wrong condition is told with what is expected."""
    with pytest.raises(InputError, match=problem):
        Condition.parse(condition)


def test_a_field_with_parts_is_no_value(records: list[RunRecord]) -> None:
    """A condition on a field that holds several is refused, and told one of them."""
    with pytest.raises(InputError, match=r"--where: seconds has parts; expected one of them, such as seconds\.\w+"):
        filter_records(records, [Condition.parse("seconds<1")])


def test_methods_by_name_or_pattern(records: list[RunRecord]) -> None:
    """Records of one method, or of several by a pattern, are left; none is an error that names those that there are."""
    assert filter_records(records, [], ["lib*"]) == records
    with pytest.raises(
        InputError, match=r"--only: none of 5 records is left; their models are libra; did you mean 'libra'"
    ):
        filter_records(records, [], ["libr"])
    with pytest.raises(InputError, match=r"--where and --only: none of 5 records"):
        filter_records(records, [Condition.parse("seed=7")], ["libra"])


def test_columns(table: Table) -> None:
    """Columns are chosen by their names in CSV files or their headings, and stand in the order that was asked for."""
    made = with_columns(table, ["total_s", "Objective"])
    assert [item.heading for item in made.header_columns] == [
        *(key.heading for key in table.keys),
        "Total",
        "Objective",
    ]
    assert [cell.text for cell in made.rows[0].cells[0]] == [table.rows[0].cells[0][i].text for i in (4, 0)]
    assert [key.name for key in with_columns(table, ["method"]).keys] == ["method"]
    with pytest.raises(
        InputError, match=r"no column 'objctive'; expected one of instance, .*; did you mean 'objective'\?"
    ):
        with_columns(table, ["objctive"])


def test_the_question_stays_with_its_columns(table: Table) -> None:
    """The question is a label of a table as long as a column that answers it is shown."""
    at = next(i for i, key in enumerate(table.spec.keys) if key.name == "question")
    asked = replace(table, visible=(*table.visible, at))
    for columns, there in ((["total_s"], False), (["total_s", "gap"], True), (["total_s", "question"], True)):
        assert ("question" in [key.name for key in with_columns(asked, columns).keys]) == there


def test_pivots(table: Table) -> None:
    """Values of one label are columns, of another one rows; a cell that no run is of has a mark that is explained."""
    made = pivot_table(with_columns(table, ["objective"]), "method×instance")
    assert len(made.spec.groups) == len({row.labels[0] for row in table.rows})
    assert [key.name for key in made.keys] == ["method"]
    cells = sum(cell.value is not None for row in made.rows for group in row.cells for cell in group)
    assert cells == sum(row.cells[0][0].value is not None for row in table.rows)
    for form in FORMATS.values():
        assert form(made)


def test_a_wide_pivot_is_cut_in_latex(make_record: Make) -> None:
    """Columns that no page has room for stand below one another; every row and the notes, once, are there."""
    wide = [make_record(f"network-{n}", total=100) for n in range(11)]
    made = pivot_table(with_columns(build(get("summary"), wide), ["objective"]), "method×instance")
    text = FORMATS["latex"](made)
    assert text.count(r"\begin{tabular}") == text.count(r"\bottomrule") >= 2
    assert text.count(r"\caption") == 1
    assert all(text.count(f"network-{n} ") == 1 for n in range(11))
    assert all(len(line.split("&")) <= 8 for line in text.splitlines() if r"\multicolumn" not in line)


@pytest.mark.parametrize(
    ("asked", "problem"),
    [
        ("method", "'method' is no pair of columns; expected one such as method×size"),
        ("method×sze", r"no column 'sze'; expected one of .*; did you mean 'size'\?"),
        ("solver×seed", "two rows have the same solver×seed"),
    ],
)
def test_what_is_no_pivot(asked: str, problem: str, table: Table) -> None:
    """A pivot that there is not is told with what is expected."""
    table = with_columns(table, ["solver", "seed"]) if "seed" in asked else table
    with pytest.raises(InputError, match=problem):
        pivot_table(table, asked)


def test_groups_are_not_pivoted(records: list[RunRecord]) -> None:
    """A table whose columns are in groups is no table for a pivot."""
    with pytest.raises(InputError, match="already grouped"):
        pivot_table(build(get("libra-perf"), records), "instance×total")
