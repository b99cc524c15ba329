"""The verb ``reproduce``: a table of a paper's printed numbers beside computed ones."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..core.budget import Progress, ignore
from ..core.files import write_whole
from ..core.option_names import check_name, verb
from ..core.paper_results import Finding, PublishedFile
from ..reports.formats import FORMATS, format_of
from ..reports.reproduction import table as table_of
from .inputs import seconds_or_none
from .reproduce import findings_of, load_paper, select_rows


@dataclass(frozen=True, eq=False)
class Reproduction:
    """Rows of a paper, compared."""

    paper: PublishedFile
    findings: list[Finding]
    interrupted: bool

    @property
    def is_explained(self) -> bool:
        """True if every row that should be reproduced is, or differs for a known reason."""
        return all(finding.is_explained for finding in self.findings)

    def to_json(self) -> list[dict[str, Any]]:
        """Return the output of ``cwb reproduce --format json``."""
        return [_plain(finding) for finding in self.findings]

    def text(self, format: str = "text") -> str:
        """Return the rows as ``text``, ``latex``, ``md``, ``csv`` or ``json``."""
        if format == "json":
            return json.dumps(self.to_json(), indent=1, allow_nan=False) + "\n"
        return FORMATS[format](table_of(self.paper, self.findings))


@verb
def reproduce(
    paper: str,
    table: str | None = None,
    *,
    quick: bool = False,
    time_limit_s: float | None = None,
    format: str | None = None,
    output: str | Path | None = None,
    progress: Progress = ignore,
) -> Reproduction:
    """Compute the printed numbers of a paper or of one of its tables, and compare, as ``cwb reproduce`` does.

    Parameters
    ----------
    paper, table : str
        Names, as ``cwb reproduce`` lists them.
    time_limit_s : float, optional
        Seconds of each run; verdicts then depend on the machine.
    output, format : optional
        File for the rows, .tex, .md, .csv, .txt or .json, and its format, by default that of the suffix.
    """
    if format is not None:
        check_name(format, (*FORMATS, "json"), "--format")
    published = load_paper(paper)
    rows = select_rows(published, table)
    target = None if output is None else Path(output)
    if target is not None:
        format = format or ("json" if target.suffix == ".json" else format_of(target))
    limit_s, stop = seconds_or_none(time_limit_s, "time_limit_s"), threading.Event()
    findings = findings_of(published, rows, quick=quick, time_limit_s=limit_s, progress=progress, stop=stop)
    found = Reproduction(published, findings, stop.is_set())
    if target is not None:
        write_whole(target, found.text(format or "text").encode())
    return found


def _plain(finding: Finding) -> dict[str, Any]:
    row = finding.row
    return {
        "table": row.table,
        "row": row.row,
        "column": row.column,
        "section": row.section,
        "page": row.page,
        "unit": row.unit,
        "printed": row.printed,
        "ours": finding.ours,
        "difference": finding.difference,
        "verdict": finding.agreement.value,
        "reason": finding.reason,
    }
