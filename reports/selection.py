"""Table of the schedules chosen for each range of sizes."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from typing import Any

HEADINGS = ("from B", "to B", "schedule", "time from us", "to us", "algbw from GB/s", "to GB/s", "file")


def rows(found: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """Return a row for each range of sizes, in the columns of :data:`HEADINGS`.

    Parameters
    ----------
    found : mapping
        The object ``select.json`` of ``cwb select``.
    """
    return [
        (
            f"{one['min_bytes']:,}",
            f"{one['max_bytes']:,}",
            one["schedule"],
            *(f"{seconds * 1e6:,.6g}" for seconds in one["seconds"]),
            *(f"{rate:,.6g}" for rate in one["algbw_GBps"]),
            one["file"],
        )
        for one in found["ranges"]
    ]


def markdown(found: Mapping[str, Any]) -> str:
    """Return the table in Markdown."""
    lines = [HEADINGS, ("---:", "---:", "---", "---:", "---:", "---:", "---:", "---"), *rows(found)]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines)


def csv_text(found: Mapping[str, Any]) -> str:
    """Return all ranges as comma-separated values, numbers in full and in base units."""
    stream = io.StringIO()
    out = csv.writer(stream, lineterminator="\n")
    out.writerow(
        ["min_bytes", "max_bytes", "schedule", "first_s", "last_s", "first_GBps", "last_GBps", "steps", "file"]
    )
    for one in found["ranges"]:
        numbers = [*one["seconds"], *one["algbw_GBps"], one["steps"]]
        out.writerow([one["min_bytes"], one["max_bytes"], one["schedule"], *numbers, one["file"]])
    return stream.getvalue()
