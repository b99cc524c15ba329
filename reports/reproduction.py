"""Table of a reproduction: paper, ours, difference, verdict; reasons below."""

from __future__ import annotations

from collections.abc import Sequence

from ..core.paper_results import Finding, PublishedFile, parse_printed
from .marks import MISSING
from .numbers import NumberFormat
from .spec import Column, ColumnGroup, Key, TableSpec
from .table import Row, Table, TableCell

#: Our numbers have two digits more than most printed ones, so that rounding is seen.
_OURS = NumberFormat("general", 6)
_PERCENT = NumberFormat("fixed", 2, 0.01)


def table(paper: PublishedFile, findings: Sequence[Finding]) -> Table:
    """Make the table; equal reasons share a number and are printed below once."""
    reasons = list(dict.fromkeys(f.reason for f in findings if f.reason))
    notes = [paper.note] if paper.note else []
    notes += [f"({number}) {reason}" for number, reason in enumerate(reasons, 1)]
    rows = tuple(_row(finding, reasons) for finding in findings)
    keys = tuple(Key(name.lower(), name) for name in ("Where", "Section", "Row", "Quantity", "Verdict"))
    spec = TableSpec(
        name="reproduce",
        title=f"{paper.title}: printed numbers and ours",
        expects="published numbers",
        entries=lambda records: [],
        keys=keys,
        groups=(ColumnGroup("", ""),),
        columns=(
            Column("paper", "Paper", lambda record: None, _OURS),
            Column("ours", "Ours", lambda record: None, _OURS),
            Column("difference", "Difference", lambda record: None, _PERCENT, "%"),
        ),
    )
    return Table(spec, tuple(range(len(keys))), rows, (), tuple(notes))


def _row(finding: Finding, reasons: Sequence[str]) -> Row:
    row = finding.row
    verdict = finding.agreement.value + (f" ({reasons.index(finding.reason) + 1})" if finding.reason else "")
    quantity = f"{row.column} ({row.unit})" if row.unit and row.column else row.column or row.unit
    place = row.section if row.page is None else f"{row.section}, p. {row.page}"
    labels = (row.table, place, row.row, quantity, verdict)
    cells = (_paper(row.printed), _ours(finding.ours), _difference(finding.difference))
    return Row(labels, (cells,), (finding.agreement.value,))


def _paper(text: str) -> TableCell:
    read = parse_printed(text)
    return TableCell(text, words=text) if read.value is None or not read.exact else TableCell(text, float(read.value))


def _ours(value: float | str | None) -> TableCell:
    if value is None:
        return TableCell(MISSING.text)
    return TableCell(value, words=value) if isinstance(value, str) else TableCell(_OURS.show(value), value)


def _difference(value: float | None) -> TableCell:
    if value is None:
        return TableCell(MISSING.text)
    return TableCell(f"{100 * value:.2f}" if abs(value) >= 5e-5 else "0", value)
