"""Matrix of gaps by method and problem, for ``cwb plot``, and as a coloured table of the report."""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import NamedTuple, TypeAlias

from ..core.record import RunRecord
from ..core.text import escape_html
from ..core.units import size_text
from .bounds import Bounds
from .numbers import MISSING, mark_of
from .plots.look import most_common, no_records_error, series_name, several_solvers
from .runs import Facets, LedgerRun, runs_of

Problem: TypeAlias = tuple[str, str, float]  #: A problem: name of the instance, collective, size.


class GapCell(NamedTuple):
    """A run and its relative gap in completion time to the best proved bound, if there is one."""

    run: LedgerRun
    gap: float | None

    @property
    def text(self) -> str:
        """The gap in percent, or the mark that explains its absence."""
        if self.gap is None:
            return (mark_of(self.run.record) or MISSING).text
        return f"{100 * self.gap:.0f}" if self.gap >= 0.0995 or abs(self.gap) < 0.0005 else f"{100 * self.gap:.1f}"


@dataclass(frozen=True)
class GapMatrix:
    """Gaps of the methods and problems with the most runs, in natural order."""

    rows: tuple[Problem, ...]
    columns: tuple[str, ...]
    cells: Mapping[tuple[Problem, str], GapCell]
    omissions: tuple[int, int]  #: numbers of problems and of methods that are left out
    proofs: str  #: kinds of proof behind the bounds

    @property
    def left_out(self) -> str:
        """Sentence that counts the problems and methods left out; empty without any."""
        problems, methods = self.omissions
        return f"{problems} more problems and {methods} more methods are not shown" if problems or methods else ""


def gap_matrix(records: Sequence[RunRecord], rows: int, columns: int) -> GapMatrix:
    """Compute the gaps of the problems and methods with the most runs, at most so many rows and columns.

    It is an error if no answer has a bound to be compared with.
    """
    everything = runs_of(records)
    runs = [run for run in everything if run.clock != "bound"]
    bounds, solvers = Bounds(everything), several_solvers(runs)
    if all(bounds.gap(run) is None for run in runs):
        raise no_records_error("gap-heatmap", records, "answers of problems with a proved bound")
    problems = [problem_of(run) for run in runs]
    kept_rows = most_common(problems, rows)
    top_runs = [run for run in runs if problem_of(run) in kept_rows]
    methods = [series_name(run, solvers) for run in top_runs]
    kept_columns = most_common(methods, columns)
    cells: dict[tuple[Problem, str], GapCell] = {}
    for run in top_runs:
        gap = bounds.gap(run, timed=True)
        cells[problem_of(run), series_name(run, solvers)] = GapCell(run, gap if gap is None or isfinite(gap) else None)
    omissions = len(set(problems)) - len(kept_rows), len(set(methods)) - len(kept_columns)
    return GapMatrix(tuple(kept_rows), tuple(kept_columns), cells, omissions, bounds.proofs(top_runs))


def problem_name(problem: Problem) -> str:
    """Name a problem: instance, collective and size."""
    name, collective, size = problem
    parts = [name, *([collective.replace("_", "-")] if collective else []), *([size_text(size)] if size else [])]
    return ", ".join(parts)


def problem_of(run: LedgerRun) -> Problem:
    """Return the problem of a run."""
    return run.problem_name, run.record.collective or "", run.size_bytes or 0.0


_MAX_ROWS, _MAX_COLUMNS = 200, 80  #: Largest numbers of problems and methods in the table.
_CLASS_LIMITS = (0.0005, 0.01, 0.05, 0.1, 0.25, 0.5, 1.0)  #: Largest gap of every colour class, from light to dark.

#: Methods are columns if at least this share of the pairs was run, and there are at most so many methods.
_MIN_DENSITY, _MAX_DENSE_COLUMNS = 0.4, 24


def heat_table(records: Sequence[RunRecord], facets: Facets) -> tuple[str, str]:
    """Return the coloured table with its scale as HTML, and a remark on bounds, marks and what is left out.

    Where few pairs of method and problem were run, or the page is narrow, a problem is a line of cells that name their
    method; otherwise methods are columns.
    """
    matrix = gap_matrix(records, _MAX_ROWS, _MAX_COLUMNS)
    head = "".join(f'<th scope="col"><span>{escape_html(name)}</span></th>' for name in matrix.columns)
    body = "".join(
        f'<tr><th scope="row">{escape_html(problem_name(row))}</th>'
        f"{''.join(_cell(matrix.cells.get((row, name)), name, facets) for name in matrix.columns)}</tr>"
        for row in matrix.rows
    )
    is_dense = (
        len(matrix.cells) >= _MIN_DENSITY * len(matrix.rows) * len(matrix.columns)
        and len(matrix.columns) <= _MAX_DENSE_COLUMNS
    )
    table = (
        f'<table class="heat{"" if is_dense else " lines"}"><thead><tr><td></td>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table>"
    )
    marks = {mark for cell in matrix.cells.values() if (mark := mark_of(cell.run.record)) is not None}
    legend = "; ".join(f"{mark.text} {mark.meaning}" for mark in sorted(marks, key=lambda mark: mark.text))
    remark = "; ".join(part for part in (f"bounds: {matrix.proofs}", legend, matrix.left_out) if part)
    return f'{_scale()}<div class="heat-scroll" tabindex="0">{table}</div>', remark


def _cell(cell: GapCell | None, method: str, facets: Facets) -> str:
    if cell is None:
        return '<td class="empty"></td>'
    tone = "none" if cell.gap is None else f"h{bisect_left(_CLASS_LIMITS, cell.gap)}"
    code = facets.code([cell.run.record])
    return f'<td class="{tone}" data-f="{code}"><span>{escape_html(method)}</span> <b>{escape_html(cell.text)}</b></td>'


def _scale() -> str:
    texts = ["0 %" if limit < 0.001 else f"{100 * limit:.0f} %" for limit in _CLASS_LIMITS]
    steps = [f'<li class="h{index}">{text}</li>' for index, text in enumerate(texts)]
    return f'<ul class="scale"><li>gap up to</li>{"".join(steps)}<li class="h{len(_CLASS_LIMITS)}">more</li></ul>'
