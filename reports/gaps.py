"""Matrix of gaps by method and problem, as heat maps of the report and ``cwb plot`` show it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import NamedTuple, TypeAlias

from ..core.record import RunRecord
from .bounds import Bounds
from .marks import MISSING, mark_of
from .numbers import size_text
from .plots.series import most_common, no_records_error, series_name, several_solvers
from .runs import LedgerRun, runs_of

#: A problem: name of the instance, collective, size.
Problem: TypeAlias = tuple[str, str, float]


class GapCell(NamedTuple):
    """A run and its relative gap to the best proved bound, if there is one."""

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
    """Gaps of methods on problems.

    Parameters
    ----------
    rows : tuple of Problem
        The problems with the most runs, in natural order.
    columns : tuple of str
        The methods with the most runs on them, in natural order.
    cells : mapping
        A cell for each pair of problem and method that was run.
    more : tuple of int
        Numbers of problems and of methods that are left out.
    proofs : str
        Kinds of proof behind the bounds.
    """

    rows: tuple[Problem, ...]
    columns: tuple[str, ...]
    cells: Mapping[tuple[Problem, str], GapCell]
    more: tuple[int, int]
    proofs: str

    @property
    def left_out(self) -> str:
        """Sentence that counts the problems and methods left out; empty without any."""
        problems, methods = self.more
        return f"{problems} more problems and {methods} more methods are not shown" if problems or methods else ""


def gap_matrix(records: Sequence[RunRecord], rows: int, columns: int) -> GapMatrix:
    """Compute the gaps.

    Parameters
    ----------
    rows, columns : int
        Problems and methods to keep at most.

    Raises
    ------
    InputError
        If no answer has a bound to be compared with.
    """
    everything = runs_of(records)
    runs = [run for run in everything if run.clock != "bound"]
    bounds, solvers = Bounds(everything), several_solvers(runs)
    if all(bounds.gap(run) is None for run in runs):
        raise no_records_error("gap-heatmap", records, "answers of problems with a proved bound")
    problems = [_problem(run) for run in runs]
    kept_rows = most_common(problems, rows)
    kept = [run for run in runs if _problem(run) in kept_rows]
    methods = [series_name(run, solvers) for run in kept]
    kept_columns = most_common(methods, columns)
    cells = {(_problem(run), series_name(run, solvers)): GapCell(run, _gap(run, bounds)) for run in kept}
    more = len(set(problems)) - len(kept_rows), len(set(methods)) - len(kept_columns)
    return GapMatrix(tuple(kept_rows), tuple(kept_columns), cells, more, bounds.proofs(kept))


def problem_name(problem: Problem) -> str:
    """Name a problem: instance, collective and size."""
    name, collective, size = problem
    parts = [name, *([collective.replace("_", "-")] if collective else []), *([size_text(size)] if size else [])]
    return ", ".join(parts)


def _problem(run: LedgerRun) -> Problem:
    return run.problem_name, run.record.collective or "", run.size_bytes or 0.0


def _gap(run: LedgerRun, bounds: Bounds) -> float | None:
    gap = bounds.gap(run)
    return None if gap is None or not isfinite(gap) else gap
