"""Tables as LaTeX with booktabs, siunitx and longtable, in plain ASCII, since pdfTeX's fonts lack other letters.

A table becomes a ``table`` with caption and label, or a ``longtable`` if it has more rows than a page. Groups of
columns that are together too wide for a page stand below one another, with the same rows.
"""

import json
import re
import textwrap
import unicodedata
from collections.abc import Sequence
from dataclasses import replace
from math import ceil
from pathlib import Path

from .table import FooterRow, Row, Table, TableCell

_TABLES = json.loads(Path(__file__).with_name("latex.json").read_text())

#: Characters with a meaning in TeX, and those that ligatures or a preceding ``\\`` would take: ``[``, ``*``.
_ESCAPES: dict[str, str] = _TABLES["escapes"]

_ACCENTS: dict[str, str] = _TABLES["accents"]  #: Combining marks that the standard fonts can set over every letter.

_DOCUMENT = r"""\documentclass{article}
\usepackage[paperwidth=%(width)dmm,paperheight=%(height)dmm,margin=10mm]{geometry}
\usepackage{booktabs}
\usepackage{longtable}
\usepackage{siunitx}
\pagestyle{empty}
\setlength{\LTcapwidth}{\linewidth}
\begin{document}
%(table)s\end{document}
"""

LINES_OF_A_PAGE = 45  #: Lines of a table that fit on a page; one of more is broken over several.

#: Width of the text of the class ``article`` on A4 paper, and of small print that of a letter and between columns.
_TEXT_MM, _LETTER_MM, _BETWEEN_MM = 121, 1.55, 4.2

_TOGETHER = 3  #: So many groups of columns stay beside one another, however wide they are.
_MAX_MM = 5000  #: TeX knows no length beyond 5.7 m.
_LEAST_WIDTH_MM, _HEIGHT_MM = 110, 297  #: Room for a caption, and the height of a page whose table goes on.


def escape(text: str) -> str:
    """Escape text so that TeX prints it as it is."""
    output = "".join(map(_escape_character, " ".join(text.split())))
    # Two hyphens in a name are two hyphens; alone they are a dash.
    return re.sub(r"(?<!\S)--(?!\S)|-(?=-)", lambda match: match[0] if match[0] == "--" else "-{}", output)


def _escape_character(character: str) -> str:
    if character in _ESCAPES:
        return _ESCAPES[character]
    if " " <= character <= "~":
        return character
    parts = unicodedata.normalize("NFD", character)
    letter, accent = parts[:1], _ACCENTS.get(parts[1:])
    if letter.isascii() and letter.isalpha() and accent:
        dotless = {"i": r"\i", "j": r"\j"}.get(letter, letter)
        return f"{accent}{{{dotless}}}"
    return f"U+{ord(character):04X}"


def render(table: Table) -> str:
    """Write a table with caption and label, in parts if it is longer or wider than a page."""
    caption = rf"\caption{{{escape(table.spec.title)}}}\label{{tab:{table.spec.name}}}"
    parts = _parts(table)
    if is_long(table):
        return "".join(_longtable(part, caption if part is parts[0] else "") for part in parts)
    lines = [r"\begin{table}", r"\centering", r"\footnotesize", caption]
    for part in parts:
        lines += [r"\par\medskip"] if part is not parts[0] else []
        lines += [rf"\begin{{tabular}}{{{_columns(part)}}}", r"\toprule", *_headings(part), r"\midrule"]
        lines += [*_body(part), r"\end{tabular}"]
    return "\n".join([*lines, r"\end{table}"]) + "\n"


def _longtable(table: Table, caption: str) -> str:
    """Write a table over several pages, with its caption if there is one."""
    again = [r"\toprule", *_headings(table), r"\midrule"]
    first = [*([rf"{caption} \\"] if caption else []), *again, r"\endfirsthead"]
    goes_on = [r"\midrule", _line([_spanning(len(table.header_columns), "continued on the next page")]), r"\endfoot"]
    parts = [r"\begingroup", r"\footnotesize", rf"\begin{{longtable}}{{{_columns(table)}}}"]
    parts += [*first, *again, r"\endhead", *goes_on, r"\endlastfoot"]
    return "\n".join([*parts, *_body(table), r"\end{longtable}", r"\endgroup"]) + "\n"


def _parts(table: Table) -> list[Table]:
    """Split a table by groups of columns to fit a page's width; the last part has the notes."""
    if len(table.spec.groups) <= _TOGETHER:
        return [table]
    keys, count = len(table.keys), len(table.spec.columns)
    widths = [_BETWEEN_MM + _LETTER_MM * max(map(len, texts)) for texts in _column_texts(table)]
    groups = [
        max(sum(widths[keys + g * count : keys + (g + 1) * count]), _BETWEEN_MM + _LETTER_MM * len(group.heading))
        for g, group in enumerate(table.spec.groups)
    ]
    most = max(1, int((_TEXT_MM - sum(widths[:keys])) // max(groups)))
    each = ceil(len(groups) / ceil(len(groups) / most))
    slices = [slice(first, first + each) for first in range(0, len(groups), each)]
    return [
        replace(
            table,
            spec=replace(table.spec, groups=table.spec.groups[some]),
            rows=tuple(replace(row, cells=row.cells[some], statuses=row.statuses[some]) for row in table.rows),
            footers=tuple(replace(row, cells=row.cells[some]) for row in table.footers),
            notes=() if some is not slices[-1] else table.notes,
        )
        for some in slices
    ]


def is_long(table: Table) -> bool:
    """Return whether a table is longer than a page."""
    return len(table.rows) + len(table.footers) + len(_note_lines(table)) > LINES_OF_A_PAGE


def _columns(table: Table) -> str:
    """Return the column types: text to the left, numbers aligned at the point and as wide as the longest."""
    labels = list(zip(*map(table.label_texts, table.rows), strict=True)) or [()] * len(table.keys)
    types = ["l" if key.form is None else _aligned_column(texts) for key, texts in zip(table.keys, labels, strict=True)]
    lines: list[Row | FooterRow] = [*table.rows, *table.footers]
    for g in range(len(table.spec.groups)):
        for c in range(len(table.spec.columns)):
            cells = [line.cells[g][c] for line in lines]
            types.append(_aligned_column([cell.text for cell in cells if cell is not None and cell.value is not None]))
    return "".join(types)


def _body(table: Table) -> list[str]:
    width, lines = len(table.keys), list[str]()
    previous: tuple[str, ...] | None = None
    for row in table.rows:
        labels = table.label_texts(row)
        if previous is not None and labels[:1] != previous[:1]:
            lines.append(r"\addlinespace")
        lines.append(_line([*_labels(table, labels, previous), *row.texts(_cell)]))
        previous = labels
    if table.footers:
        lines.append(r"\midrule")
    lines += [_line([_spanning(width, footer.heading), *footer.texts(_cell)]) for footer in table.footers]
    lines.append(r"\bottomrule")
    if table.notes:
        lines.append(r"\addlinespace")
    return lines + [_line([_spanning(len(table.header_columns), text)]) for text in _note_lines(table)]


def standalone(table: Table) -> str:
    """Write a document that holds only the table, on paper of its size, at most as high as A4."""
    lines = len(table.rows) + len(table.footers) + len(_note_lines(table))
    # An upper estimate of each column's width in small print, in which ``e`` becomes a multiplication.
    letters = (
        max(len(text) + (5 if _NUMBER.fullmatch(text) and "e" in text else 0) for text in texts)
        for texts in _column_texts(table)
    )
    width = max(_LEAST_WIDTH_MM, 25 + sum(5 + count * 9 // 5 for count in letters))
    return _DOCUMENT % {
        "width": min(_MAX_MM, width),
        "height": _HEIGHT_MM if is_long(table) else 70 + 9 * lines // 2,
        "table": render(table),
    }


def _column_texts(table: Table) -> list[list[str]]:
    texts = [[escape(item.heading)] for item in table.header_columns]
    for row in table.rows:
        cells = row.texts(lambda cell: cell.text)
        for column, text in zip(texts, [*map(escape, table.label_texts(row)), *cells], strict=True):
            column.append(text)
    return texts


def _note_lines(table: Table) -> list[str]:
    width = max(40, 8 * len(table.header_columns))
    return [line for note in table.notes for line in textwrap.wrap(note, width)]


def _headings(table: Table) -> list[str]:
    """Write up to three lines: groups with a rule under each, headings, units if there are any."""
    spec, width = table.spec, len(table.keys)
    count = len(spec.columns)
    lines: list[str] = []
    if any(group.heading for group in spec.groups):
        spans = [rf"\multicolumn{{{count}}}{{c}}{{{escape(group.heading)}}}" for group in spec.groups]
        rules = [
            rf"\cmidrule(lr){{{width + 1 + g * count}-{width + (g + 1) * count}}}" for g in range(len(spec.groups))
        ]
        lines += [_line([""] * width + spans), " ".join(rules)]
    items = table.header_columns
    lines.append(_line([f"{{{escape(item.heading)}}}" for item in items]))
    if any(item.unit for item in items):
        lines.append(_line([f"{{{escape(item.unit)}}}" for item in items]))
    return lines


def _labels(table: Table, labels: Sequence[str], previous: Sequence[str] | None) -> list[str]:
    """Write the labels of a row; leading ones that repeat the row above are blank."""
    texts: list[str] = []
    repeats = previous is not None
    for index, text in enumerate(labels):
        repeats = repeats and previous is not None and text == previous[index] and index < len(labels) - 1
        if repeats:
            texts.append("")
        else:
            texts.append(text if _NUMBER.fullmatch(text) and table.keys[index].form else f"{{{escape(text)}}}")
    return texts


def _cell(cell: TableCell) -> str:
    if cell.value is None:
        return f"{{{escape(cell.text)}}}"
    return rf"\bfseries {cell.text}" if cell.best else cell.text


def _spanning(columns: int, text: str) -> str:
    return rf"\multicolumn{{{columns}}}{{l}}{{{escape(text)}}}"


def _line(cells: Sequence[str]) -> str:
    return " & ".join(cells).rstrip() + r" \\"


_NUMBER = re.compile(r"(?P<sign>-?)(?P<whole>[0-9]+)(?:\.(?P<part>[0-9]+))?(?:e(?P<exponent>-?[0-9]+))?")


def _aligned_column(texts: Sequence[str]) -> str:
    """Return an S column; ``detect-weight`` lets bold numbers be bold in siunitx 2 and 3 alike."""
    matches = [match for text in texts if (match := _NUMBER.fullmatch(text))]
    whole = max((len(match["whole"]) for match in matches), default=1)
    part = max((len(match["part"] or "") for match in matches), default=0)
    sign = "-" if any(match["sign"] for match in matches) else ""
    exponents = [match["exponent"] for match in matches if match["exponent"]]
    form = f"{sign}{whole}.{part}"
    if exponents:
        minus = "-" if any(e.startswith("-") for e in exponents) else ""
        form += f"e{minus}{max(len(e.lstrip('-')) for e in exponents)}"
    return f"S[table-format={form},detect-weight]"
