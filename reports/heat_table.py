"""Gaps of a report as a coloured table whose text is legible at every page width.

Where few pairs of method and problem were run, or the page is narrow, a problem is a line of cells that name their
method; otherwise methods are columns.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from ..core.record import RunRecord
from ..core.text import markup
from .facets import Facets
from .gaps import GapCell, GapMatrix, Problem, gap_matrix, problem_name
from .marks import mark_of

#: Problems and methods of the table at most.
_ROWS, _COLUMNS = 200, 80

#: Gaps up to which a cell has the colour of a class, from light to dark.
_LIMITS = (0.0005, 0.01, 0.05, 0.1, 0.25, 0.5, 1.0)

#: Share of pairs that were run, and number of methods, between which methods are columns.
_DENSE, _MANY = 0.4, 24


def heat_table(records: Sequence[RunRecord], facets: Facets) -> tuple[str, str]:
    """Write the table and its scale, and count what is left out.

    Raises
    ------
    InputError
        If no answer has a bound to be compared with.
    """
    matrix = gap_matrix(records, _ROWS, _COLUMNS)
    head = "".join(f'<th scope="col"><span>{markup(name)}</span></th>' for name in matrix.columns)
    body = "".join(_row(matrix, row, facets) for row in matrix.rows)
    dense = len(matrix.cells) >= _DENSE * len(matrix.rows) * len(matrix.columns) and len(matrix.columns) <= _MANY
    table = (
        f'<table class="heat{"" if dense else " lines"}"><thead><tr><td></td>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table>"
    )
    marks = {mark for cell in matrix.cells.values() if (mark := mark_of(cell.run.record)) is not None}
    legend = "; ".join(f"{mark.text} {mark.meaning}" for mark in sorted(marks, key=lambda mark: mark.text))
    remark = "; ".join(part for part in (f"bounds: {matrix.proofs}", legend, matrix.left_out) if part)
    return f'{_scale()}<div class="heat-scroll" tabindex="0">{table}</div>', remark


def _row(matrix: GapMatrix, problem: Problem, facets: Facets) -> str:
    """Write a problem with a cell for each method; one that was not run is empty."""
    cells = "".join(_cell(matrix.cells.get((problem, name)), name, facets) for name in matrix.columns)
    return f'<tr><th scope="row">{markup(problem_name(problem))}</th>{cells}</tr>'


def _cell(cell: GapCell | None, method: str, facets: Facets) -> str:
    if cell is None:
        return '<td class="empty"></td>'
    tone = "none" if cell.gap is None else f"h{bisect_left(_LIMITS, cell.gap)}"
    code = facets.code([cell.run.record])
    return f'<td class="{tone}" data-f="{code}"><span>{markup(method)}</span> <b>{markup(cell.text)}</b></td>'


def _scale() -> str:
    steps = [f'<li class="h{index}">{_percent(limit)}</li>' for index, limit in enumerate(_LIMITS)]
    return f'<ul class="scale"><li>gap up to</li>{"".join(steps)}<li class="h{len(_LIMITS)}">more</li></ul>'


def _percent(limit: float) -> str:
    return "0 %" if limit < 0.001 else f"{limit:.0%}".replace("%", " %")
