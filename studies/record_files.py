"""The verb ``table``: tables from files of records."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..core.errors import InputError, locate_errors
from ..core.files import write_whole
from ..core.option_names import check_name, verb
from ..core.record import RunRecord
from ..reports import latex
from ..reports.formats import FORMATS, format_of
from ..reports.records import Condition, filter_records, load_records, pivot_table, with_columns
from ..reports.table import build
from ..reports.tables import get

RECORDS = (Path("results"),)  #: Records that are read if nobody says which.


@verb
def table(
    name: str,
    *records: str | Path,
    where: str | Sequence[str] = (),
    only: str | None = None,
    columns: str | Sequence[str] | None = None,
    pivot: str | None = None,
    format: str | None = None,
    output: str | Path | None = None,
    standalone: bool = False,
) -> str:
    """Make a table of records, as ``cwb table`` does.

    Parameters
    ----------
    name : str
        Name of the table, as ``cwb list tables`` lists them.
    where, only : str or sequence of str
        Selected records: conditions such as ``"model=ring"``, and methods such as ``"ring,teccl*"``.
    columns : str or sequence of str, optional
        Columns to show, in this order.
    pivot : str, optional
        Labels of rows and columns, such as ``"method×size"``.
    format, output : optional
        ``text``, ``latex``, ``md``, ``csv`` or ``html``, and file for the table, whose suffix is the default; else
        ``text``.
    standalone : bool
        True for a LaTeX document that compiles by itself.
    """
    spec = get(name)
    target = None if output is None else Path(output)
    if format is None:
        format = format_of(target) if target is not None else "latex" if standalone else "text"
    check_name(format, tuple(FORMATS), "--format")
    if standalone and format != "latex":
        raise InputError(f"only LaTeX can be a complete document, not {format}", source="--standalone")
    finished = build(spec, chosen_records(records, (where,) if isinstance(where, str) else where, only))
    if columns is not None:
        with locate_errors(source="--columns"):
            finished = with_columns(finished, _split(columns) if isinstance(columns, str) else list(columns))
    if pivot is not None:
        with locate_errors(source="--pivot"):
            finished = pivot_table(
                finished if columns else with_columns(finished, [finished.spec.columns[0].name]), pivot
            )
    text = latex.standalone(finished) if standalone else FORMATS[format](finished)
    if target is not None:
        write_whole(target, text.encode(errors="backslashreplace"))
    return text


def chosen_records(records: Sequence[str | Path], where: Sequence[str], only: str | None) -> list[RunRecord]:
    """Read records, and return the selected ones."""
    with locate_errors(source="--where"):
        conditions = [Condition.parse(text) for text in where]
    rows = load_records(list(map(Path, records)) or RECORDS)
    return filter_records(rows, conditions, _split(only or "")) if conditions or only is not None else rows


def _split(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]
