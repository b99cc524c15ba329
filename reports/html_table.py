"""Tables as HTML: a fragment for the report, or a page of its own with style."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..core.text import markup
from .numbers import MISSING
from .page import page
from .runs import Facets
from .table import Row, Table, TableCell

_LONG = 36  #: Letters of a label from which it is broken into lines.
_FILTERED = 25  #: Rows from which a table has a field to filter them.


def render(table: Table) -> str:
    """Write a page that holds only the table."""
    return page(table.spec.title, f"<main>{fragment(table, table.spec.name)}</main>", wide=True)


def fragment(table: Table, anchor: str, most: int | None = None, facets: Facets | None = None) -> str:
    """Write a table with its title above and its notes below.

    Parameters
    ----------
    most : int or None
        Rows to write at most; the number of omitted rows is stated.
    facets : Facets or None
        Facets of the page's filters, if it has any.
    """
    spec = table.spec
    rows = table.rows[:most]
    notes = list(table.notes)
    if len(rows) < len(table.rows):
        notes.insert(0, f"The first {len(rows):,} of {len(table.rows):,} rows; cwb table {spec.name} has all.")
    body = [_row(table, row, previous, facets) for row, previous in zip(rows, [None, *rows], strict=False)]
    foot = [
        f'<tr><th scope="row" colspan="{len(table.keys)}">{markup(footer.heading)}</th>'
        f"{_cells(cell for group in footer.cells for cell in group)}</tr>"
        for footer in table.footers
    ]
    inside = f"<thead>{_head(table)}</thead><tbody>{''.join(body)}</tbody>"
    inside += f"<tfoot>{''.join(foot)}</tfoot>" if foot else ""
    return section(anchor, spec.title, inside, notes, len(rows), opened=facets is None)


def section(anchor: str, title: str, inside: str, notes: Iterable[str], rows: int, opened: bool = False) -> str:
    """Write a titled section around the parts of a table; a long one gets a filter field.

    The notes below it are folded, unless they are ``opened``.
    """
    field = (
        f'<label class="filter"><span>filter</span><input type="search" aria-label="filter {markup(title)}"></label>'
        if rows >= _FILTERED
        else ""
    )
    said = "".join(f"<p>{markup(note)}</p>" for note in notes)
    below = (
        f'<details class="notes"{" open" if opened else ""}><summary>Notes</summary>{said}</details>' if said else ""
    )
    return (
        f'<section class="card" id="{markup(anchor)}"><header><h3>{markup(title)}</h3>'
        f'<span class="count">{rows:,} row{"s" if rows != 1 else ""}</span>{field}</header>'
        f'<div class="scroll" tabindex="0" role="region" aria-label="{markup(title)}"><table '
        f'class="sortable">{inside}</table></div>'
        f"{below}</section>"
    )


def plain_table(
    headings: Sequence[str], rows: Sequence[Sequence[object]], long: str = "", codes: Sequence[str] = ()
) -> str:
    """Write the parts of a table of texts and numbers.

    Texts of the column ``long`` are broken into lines; ``codes`` are the facet codes of the rows.
    """
    first = rows[0] if rows else headings
    head = "".join(
        f'<th scope="col"{" class=n" if _is_number(value) else ""}>{markup(heading)}</th>'
        for heading, value in zip(headings, first, strict=True)
    )
    lines = [
        "".join(_plain(value, heading == long) for heading, value in zip(headings, row, strict=True)) for row in rows
    ]
    told = [f' data-f="{code}"' for code in codes] or [""] * len(lines)
    body = "".join(f"<tr{code}>{line}</tr>" for code, line in zip(told, lines, strict=True))
    return f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody>"


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _plain(value: object, long: bool) -> str:
    if _is_number(value):
        return f'<td class="n" data-v="{value!r}">{value:,}</td>'
    return f"<td{' class=reason' if long else ' class=long' if len(str(value)) > _LONG else ''}>{markup(value)}</td>"


def _head(table: Table) -> str:
    """Write the headings, below those of the groups where there are any."""
    spec = table.spec
    lines = ""
    if any(group.heading for group in spec.groups):
        spans = "".join(
            f'<th class="group" scope="colgroup" colspan="{len(spec.columns)}">{markup(group.heading)}</th>'
            for group in spec.groups
        )
        lines = f'<tr><td colspan="{len(table.keys)}"></td>{spans}</tr>'
    cells: list[str] = []
    for index, item in enumerate(table.header_columns):
        unit = f' <span class="unit">{markup(item.unit)}</span>' if item.unit else ""
        number = index >= len(table.keys) or table.keys[index].form is not None
        cells.append(f'<th scope="col"{" class=n" if number else ""}>{markup(item.heading)}{unit}</th>')
    return f"{lines}<tr>{''.join(cells)}</tr>"


def _row(table: Table, row: Row, previous: Row | None, facets: Facets | None) -> str:
    """Write a row; leading labels that repeat the row above are faint."""
    texts = table.label_texts(row)
    above: tuple[str, ...] = table.label_texts(previous) if previous is not None else ()
    repeated = bool(above)
    cells: list[str] = []
    for index, text in enumerate(texts):
        repeated = repeated and text == above[index] and index < len(texts) - 1
        label = row.labels[table.shown[index]]
        value = f' data-v="{label!r}"' if isinstance(label, int | float) else ""
        form = table.keys[index].form is not None
        names = " ".join(
            name for name, holds in (("n", form), ("same", repeated), ("long", len(text) > _LONG)) if holds
        )
        named = f' class="{names}"' if names else ""
        cells.append(f"<td{named}{value}>{markup(text)}</td>")
    new = previous is not None and texts[:1] != above[:1]
    numbers = _cells(cell for group in row.cells for cell in group)
    code = "" if facets is None else f' data-f="{facets.code(row.records)}"'
    return f"<tr{' class=new' if new else ''}{code}>{''.join(cells)}{numbers}</tr>"


def _cells(cells: Iterable[TableCell | None]) -> str:
    return "".join("<td></td>" if cell is None else _cell(cell) for cell in cells)


def _cell(cell: TableCell) -> str:
    if cell.value is None:
        return f'<td class="n {"none" if cell.text == MISSING.text else "mark"}">{markup(cell.text)}</td>'
    text = f"<b>{markup(cell.text)}</b>" if cell.best else markup(cell.text)
    return f'<td class="n" data-v="{cell.value!r}">{text}</td>'
