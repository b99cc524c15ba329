"""Tables: what stands in their cells, and how each format writes them."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable
from typing import Any

import pytest
from cwb.core.errors import InputError
from cwb.core.record import RunRecord
from cwb.reports.formats import FORMATS
from cwb.reports.latex import standalone
from cwb.reports.numbers import MARKS
from cwb.reports.table import Row, Table, TableCell, TableSpec, build
from cwb.reports.tables import TABLES, get

Make = Callable[..., RunRecord]
SUFFIXES = {"latex": "tex", "md": "md", "csv": "csv", "text": "txt", "html": "html"}


@pytest.fixture(scope="module")
def spec() -> TableSpec:
    return get("libra-perf")


def row_of(table: Table, workload: str, budget: float | None) -> Row:
    found = [row for row in table.rows if (row.labels[0], row.labels[2]) == (workload, budget)]
    assert len(found) == 1
    return found[0]


def texts(cells: tuple[TableCell, ...]) -> list[str]:
    return [cell.text for cell in cells]


@pytest.mark.parametrize("form", sorted(set(FORMATS) - {"html"}))
def test_golden(form: str, spec: TableSpec, handful: list[RunRecord], golden: Callable[[str, str], None]) -> None:
    """Every format of a fixed handful of records is what it was, to the byte."""
    golden(f"reports/libra-perf.{SUFFIXES[form]}", FORMATS[form](build(spec, handful)))


def test_golden_document(spec: TableSpec, handful: list[RunRecord], golden: Callable[[str, str], None]) -> None:
    """The standalone document is what it was, to the byte."""
    golden("reports/libra-perf-standalone.tex", standalone(build(spec, handful)))


@pytest.mark.parametrize("form", FORMATS)
def test_the_order_of_records_does_not_matter(form: str, spec: TableSpec, handful: list[RunRecord]) -> None:
    """The same records in any order make the same bytes."""
    expected = FORMATS[form](build(spec, handful))
    for start in range(len(handful)):
        turned = [*handful[start:], *handful[:start]]
        assert FORMATS[form](build(spec, turned)) == expected
        assert FORMATS[form](build(spec, turned[::-1])) == expected


def test_the_latest_record_counts(spec: TableSpec, make_record: Make, make_metrics: Callable[..., Any]) -> None:
    """Of two runs of a cell the later one is shown, and of two in the same second the one that was written last."""
    old, new = make_record(metrics=make_metrics(1.0)), make_record(metrics=make_metrics(2.0))
    assert build(spec, [old, new]).rows[0].cells[0][0].value == 2.0
    newer = make_record(metrics=make_metrics(1.0), started_at="2026-11-21T12:00:01+00:00")
    assert build(spec, [newer, new]).rows[0].cells[0][0].value == 1.0


def test_every_failure_has_its_mark(spec: TableSpec, handful: list[RunRecord]) -> None:
    """A run without a number shows its mark in every column, and no cell of any row is blank."""
    table = build(spec, handful)
    assert texts(row_of(table, "gpt-3", 100).cells[0]) == ["t.o."] * 5
    assert texts(row_of(table, "gpt-3", 100).cells[1]) == ["inv."] * 5
    assert texts(row_of(table, "resnet-50", 500).cells[0]) == ["n/a"] * 5
    assert texts(row_of(table, "resnet-50", 500).cells[1]) == ["err."] * 5
    assert texts(row_of(table, "dlrm", 1000).cells[0])[:2] == ["--", "--"]
    assert texts(row_of(table, "dlrm", 1000).cells[1]) == ["inf."] * 5
    assert all(cell.text for row in table.rows for group in row.cells for cell in group)
    for mark in ("t.o.", "inv.", "n/a", "err.", "inf.", "--"):
        assert any(f"{mark} " in note for note in table.notes), mark


def test_every_status_of_a_record_is_known() -> None:
    """The statuses that methods can end with are those that have a mark or none."""
    from cwb.core.outcome import Status

    assert set(MARKS) == {status.value for status in Status}


def test_a_failed_run_finds_its_row(spec: TableSpec, make_record: Make, make_metrics: Callable[..., Any]) -> None:
    """A failed run that tells neither budget nor workload stands in the row of the other run of its instance."""
    shape = (900.0, 60.0, 30.0, 10.0)
    solved = make_record("4d", total=None, metrics=make_metrics(bandwidth=shape))
    failed = make_record("4d", "perf-per-cost", None, status="error", metrics={})
    table = build(spec, [failed, solved])
    assert [row.labels[:3] for row in table.rows] == [("gpt-3", "4d", 1000.0)]


def test_different_problems_do_not_share_a_row(spec: TableSpec, make_record: Make) -> None:
    """Options that change the problem, and the solver, keep runs apart and are told in the row."""
    options = {"objective": "perf", "total_bandwidth": "500 GB/s"}
    records = [
        make_record(),
        make_record(options={**options, "loop": "tp-dp-overlap"}),
        make_record(options={**options, "partial_use": "direct-links"}),
        make_record(options={**options, "algorithm": "direct", "gap": "0.01"}, solver="scip"),
    ]
    table = build(spec, records)
    assert len(table.rows) == 4
    assert {row.labels[1] for row in table.rows} == {"4d", "4d, loop=tp-dp-overlap", "4d, partial_use=direct-links"}
    assert [key.name for key in table.keys] == ["workload", "network", "budget_GBps", "solver"]
    assert [key.name for key in build(spec, records[:3]).keys] == ["workload", "network", "budget_GBps"]


def test_best_in_bold(spec: TableSpec, handful: list[RunRecord]) -> None:
    """The larger speedup and gain and the smaller cost stand out, both where they are written the same, none where it
    is alone."""
    table = build(spec, handful)
    best = [[cell.best for cell in group] for group in row_of(table, "gpt-3", 500).cells]
    assert best == [[True, False, False, False, False], [False, True, True, False, False]]
    tied = [[cell.best for cell in group][:3] for group in row_of(table, "gpt-3", 1000).cells]
    assert tied == [[True, True, True], [True, True, True]]
    assert not any(cell.best for group in row_of(table, "dlrm", 1000).cells for cell in group)


def test_footers(spec: TableSpec, make_record: Make, make_metrics: Callable[..., Any]) -> None:
    """The footer has the geometric mean and the maximum of what has numbers, and says so."""
    values = {100: 2.0, 300: 8.0, 500: 1.0}
    records = [make_record(total=total, metrics=make_metrics(speedup)) for total, speedup in values.items()]
    records.append(make_record(total=700, status="limit", metrics={}))
    mean, most = build(spec, records).footers
    assert math.isclose(mean.cells[0][0].value, 16 ** (1 / 3))
    assert most.cells[0][0].value == 8.0
    assert mean.cells[1][0].text == "--"
    assert build(spec, records).notes[-1] == "The last rows are over the cells that have a number."


def test_csv_is_for_programs(spec: TableSpec, make_record: Make) -> None:
    """CSV has every number in full, nan for those that are missing, and the status that says why."""
    records = [make_record(), make_record(objective="perf-per-cost", status="limit", metrics={}, gap=None)]
    lines = list(csv.DictReader(io.StringIO(FORMATS["csv"](build(spec, records)))))
    assert len(lines) == 1
    assert float(lines[0]["perf_network_cost_usd"]) == 9_527_164.84
    assert lines[0]["perf_status"] == "optimal"
    assert lines[0]["perf_per_cost_status"] == "limit"
    assert math.isnan(float(lines[0]["perf_per_cost_speedup"]))
    assert lines[0]["solver"] == "highs"


def test_no_record_fits(spec: TableSpec, make_record: Make) -> None:
    """Records of other methods alone are an error that says which records are expected."""
    with pytest.raises(InputError, match="none of 1 records fits; expected records of the model 'libra'"):
        build(spec, [make_record(model="libra-equal")])


def test_unknown_table() -> None:
    """An unknown name lists the known ones and the closest."""
    with pytest.raises(InputError, match=r"expected one of libra-perf, .*; did you mean 'libra-perf'"):
        get("libra-pref")


def test_the_register() -> None:
    """Every registered table has its own name and headings that CSV can tell apart."""
    for name in TABLES:
        spec = get(name)
        assert spec.name == name
        columns = [f"{group.name}_{column.name}".lstrip("_") for group in spec.groups for column in spec.columns]
        names = [key.name for key in spec.keys] + columns
        assert len(names) == len(set(names))
