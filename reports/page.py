"""Pages and tables as HTML: one style, light and dark, one small script, no external resource.

The policy in the head lets a browser load nothing and run no script but this one, whatever a record holds.
"""

import base64
import hashlib
import re
from collections.abc import Iterable, Sequence
from importlib.resources import files

from ..core.text import escape_html
from .numbers import MISSING
from .runs import Facets
from .table import Row, Table, TableCell

#: A heat table as lines: every problem with the cells of its methods, which say their names.
_LINES = """TABLE, TABLE tbody { display: block; } TABLE thead, TABLE td.empty, TABLE td.off { display: none; }
TABLE tr { display: flex; flex-wrap: wrap; gap: 3px; padding: .35rem 0; border-top: 1px solid var(--line); }
TABLE tbody { columns: 26rem; column-gap: 1.5rem; } TABLE tr { break-inside: avoid; }
TABLE tr[hidden] { display: none; }
TABLE th { flex-basis: 100%; white-space: normal; overflow-wrap: anywhere; }
TABLE td { white-space: normal; overflow-wrap: anywhere; text-align: left; } TABLE td span { display: inline; }
"""

#: Backgrounds of gaps from small to large: even samples of matplotlib's cividis, which colour-blind readers can tell
#: apart; the first four with dark text, the others with light text, so that the contrast is 4.9 or more.
_TONES = ("#fee838", "#d9c55c", "#b1a570", "#8e8978", "#6c6e72", "#4c556c", "#213b6e", "#00224e")


def page(title: str, body: str, *, wide: bool = False, frames: Sequence[str] = ()) -> str:
    """Write a page of markup in which everything foreign is escaped; ``wide`` if tables have their full height.

    ``frames`` are scripts of pages that the body holds in frames.
    """
    style, script = (files("cwb.reports").joinpath(f"page.{kind}").read_text("utf-8") for kind in ("css", "js"))
    digests = (base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (script, *frames))
    scripts = " ".join(f"'sha256-{digest}'" for digest in digests)
    policy = f"default-src 'none'; base-uri 'none'; form-action 'none'; style-src 'unsafe-inline'; script-src {scripts}"
    tones = "".join(
        f".h{k} {{ background: {tone}; color: {'#111' if k < 4 else '#fff'}; }}\n" for k, tone in enumerate(_TONES)
    )
    lines = _LINES.replace("TABLE", ".heat.lines"), _LINES.replace("TABLE", ".heat")
    style += f"{tones}{lines[0]}@media (max-width: 45rem) {{\n{lines[1]}}}\n"
    style += ".scroll { max-height: none; } thead th { white-space: normal; vertical-align: bottom; }\n" if wide else ""
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="generator" content="cwb">\n'
        f'<meta name="referrer" content="no-referrer">\n<title>{escape_html(title)}</title>\n'
        f"<style>{style}</style>\n</head>\n<body>\n{body}\n<script>{script}</script>\n</body>\n</html>\n"
    )


_PROLOG = re.compile(r"\A.*?(?=<svg\b)", re.DOTALL)
_METADATA = re.compile(r"<metadata>.*?</metadata>", re.DOTALL)
#: matplotlib's one style sheet, which would hold for the whole page.
_SHEET = re.compile(r"<style[^>]*>.*?</style>", re.DOTALL)
_NAME = re.compile(r"""(\bid="|href="#|url\(#)""")

#: What belongs to an entry of the legend (:mod:`cwb.reports.cards`): a class, since lines share it.
_SERIES = re.compile(r"""<g id="series-([0-9]+)">""")

#: Ink, paper and grid of the look, as the page calls them.
_COLOURS = (("#000000", "currentColor"), ("#ffffff", "var(--card)"), ("#dddddd", "var(--grid)"))


def inline(svg: bytes, name: str, label: str) -> str:
    """Convert an SVG file that matplotlib wrote into a part of a page; black and white follow the page's colours.

    ``name`` (letters, digits and hyphens) is the prefix of every identifier, so that plots do not clash. ``label`` is
    escaped text for screen readers; empty for a plot that repeats the text beside it.
    """
    text = _PROLOG.sub("", svg.decode(), count=1)
    text = _SHEET.sub("", _METADATA.sub("", text))
    text = _SERIES.sub(r'<g class="series" data-s="\1">', text)
    text = _NAME.sub(rf"\g<1>{name}-", text)
    for colour, page in _COLOURS:
        text = re.sub(rf"((?:fill|stroke): ?){colour}\b", rf"\g<1>{page}", text)
    role = f'role="img" aria-label="{label}"' if label else 'aria-hidden="true"'
    start = f'<svg {role} fill="currentColor" stroke-linejoin="round" stroke-linecap="butt"'
    return text.replace("<svg", start, 1)


_LONG = 36  #: Letters of a label from which it is broken into lines.
_FILTERED = 25  #: Rows from which a table has a field to filter them.


def render(table: Table) -> str:
    """Write a page that holds only the table."""
    return page(table.spec.title, f"<main>{fragment(table, table.spec.name)}</main>", wide=True)


def fragment(table: Table, anchor: str, most: int | None = None, facets: Facets | None = None) -> str:
    """Write a table with its title above and its notes below.

    At most ``most`` rows are written, and the number of omitted ones. ``facets`` are those of the page's filters.
    """
    spec = table.spec
    rows = table.rows[:most]
    notes = list(table.notes)
    if len(rows) < len(table.rows):
        notes.insert(0, f"The first {len(rows):,} of {len(table.rows):,} rows; cwb table {spec.name} has all.")
    body = [_row(table, row, previous, facets) for row, previous in zip(rows, [None, *rows], strict=False)]
    foot = [
        f'<tr><th scope="row" colspan="{len(table.keys)}">{escape_html(footer.heading)}</th>'
        f"{_cells(cell for group in footer.cells for cell in group)}</tr>"
        for footer in table.footers
    ]
    inside = f"<thead>{_head(table)}</thead><tbody>{''.join(body)}</tbody>"
    inside += f"<tfoot>{''.join(foot)}</tfoot>" if foot else ""
    return section(anchor, spec.title, inside, notes, len(rows), is_open=facets is None)


def section(anchor: str, title: str, inside: str, notes: Iterable[str], rows: int, is_open: bool = False) -> str:
    """Write a titled section around the parts of a table; a long one gets a filter field.

    The notes below it are folded, unless it ``is_open``.
    """
    field = (
        '<label class="filter"><span>filter</span>'
        f'<input type="search" aria-label="filter {escape_html(title)}"></label>'
        if rows >= _FILTERED
        else ""
    )
    body = "".join(f"<p>{escape_html(note)}</p>" for note in notes)
    below = (
        f'<details class="notes"{" open" if is_open else ""}><summary>Notes</summary>{body}</details>' if body else ""
    )
    return (
        f'<section class="card" id="{escape_html(anchor)}"><header><h3>{escape_html(title)}</h3>'
        f'<span class="count">{rows:,} row{"s" if rows != 1 else ""}</span>{field}</header>'
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape_html(title)}"><table '
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
        f'<th scope="col"{" class=n" if _is_number(value) else ""}>{escape_html(heading)}</th>'
        for heading, value in zip(headings, first, strict=True)
    )
    lines = [
        "".join(_plain(value, heading == long) for heading, value in zip(headings, row, strict=True)) for row in rows
    ]
    attributes = [f' data-f="{code}"' for code in codes] or [""] * len(lines)
    body = "".join(f"<tr{code}>{line}</tr>" for code, line in zip(attributes, lines, strict=True))
    return f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody>"


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _plain(value: object, long: bool) -> str:
    if _is_number(value):
        return f'<td class="n" data-v="{value!r}">{value:,}</td>'
    style = " class=reason" if long else " class=long" if len(str(value)) > _LONG else ""
    return f"<td{style}>{escape_html(value)}</td>"


def _head(table: Table) -> str:
    """Write the headings, below those of the groups where there are any."""
    spec = table.spec
    lines = ""
    if any(group.heading for group in spec.groups):
        spans = "".join(
            f'<th class="group" scope="colgroup" colspan="{len(spec.columns)}">{escape_html(group.heading)}</th>'
            for group in spec.groups
        )
        lines = f'<tr><td colspan="{len(table.keys)}"></td>{spans}</tr>'
    cells: list[str] = []
    for index, item in enumerate(table.header_columns):
        unit = f' <span class="unit">{escape_html(item.unit)}</span>' if item.unit else ""
        number = index >= len(table.keys) or table.keys[index].form is not None
        cells.append(f'<th scope="col"{" class=n" if number else ""}>{escape_html(item.heading)}{unit}</th>')
    return f"{lines}<tr>{''.join(cells)}</tr>"


def _row(table: Table, row: Row, previous: Row | None, facets: Facets | None) -> str:
    """Write a row; leading labels that repeat the row above are faint."""
    texts = table.label_texts(row)
    above: tuple[str, ...] = table.label_texts(previous) if previous is not None else ()
    repeats = bool(above)
    cells: list[str] = []
    for index, text in enumerate(texts):
        repeats = repeats and text == above[index] and index < len(texts) - 1
        label = row.labels[table.visible[index]]
        value = f' data-v="{label!r}"' if isinstance(label, int | float) else ""
        form = table.keys[index].form is not None
        classes = {"n": form, "same": repeats, "long": len(text) > _LONG}
        names = " ".join(name for name, holds in classes.items() if holds)
        attribute = f' class="{names}"' if names else ""
        cells.append(f"<td{attribute}{value}>{escape_html(text)}</td>")
    new = previous is not None and texts[:1] != above[:1]
    numbers = _cells(cell for group in row.cells for cell in group)
    code = "" if facets is None else f' data-f="{facets.code(row.records)}"'
    return f"<tr{' class=new' if new else ''}{code}>{''.join(cells)}{numbers}</tr>"


def _cells(cells: Iterable[TableCell | None]) -> str:
    return "".join("<td></td>" if cell is None else _cell(cell) for cell in cells)


def _cell(cell: TableCell) -> str:
    if cell.value is None:
        return f'<td class="n {"none" if cell.text == MISSING.text else "mark"}">{escape_html(cell.text)}</td>'
    text = f"<b>{escape_html(cell.text)}</b>" if cell.best else escape_html(cell.text)
    return f'<td class="n" data-v="{cell.value!r}">{text}</td>'
