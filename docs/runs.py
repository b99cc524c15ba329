"""Numbers of pages: the command of each, and when, at which commit and on which machine it was run.

    python docs/runs.py                    # lists them, the oldest first
    python docs/runs.py pccl-grids ...     # runs the commands, and writes date, commit and machine
    python docs/runs.py --ran pccl-grids   # writes these alone, of numbers that a run by hand has just confirmed

The list is ``docs/benchmarks/runs.csv``; ``docs/page_blocks.py`` shows it on every page of numbers.
"""

from __future__ import annotations

import argparse
import csv
import os
import platform
import re
import subprocess
import tomllib
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).parents[1]
RUNS = ROOT / "docs" / "benchmarks" / "runs.csv"
#: A page of ``docs/``, a name of its numbers, the command from the root that makes them, and its last run.
HEADINGS = ("page", "numbers", "command", "date", "commit", "machine")

Row = dict[str, str]


def runs(page: str | None = None) -> list[Row]:
    """Return the runs of a page, or of all."""
    with RUNS.open(encoding="utf-8", newline="") as file:
        return [row for row in csv.DictReader(file) if page in (None, row["page"])]


def header(page: str) -> str:
    """Return what stands on a page: a sentence on its runs, and a table of them that can be unfolded."""
    rows = runs(page)
    dates = sorted({row["date"] for row in rows})
    when = dates[0] if len(dates) == 1 else f"from {dates[0]} to {dates[-1]}"
    machines = sorted({row["machine"] for row in rows})
    where = f"on {machines[0]}" if len(machines) == 1 else "on the machines of the table"
    old = [row["numbers"] for row in rows if row["date"] < release_date()]
    older = f"Older than this release: {', '.join(old)}.\n" if old else ""
    lines = [f"| {' | '.join(HEADINGS[1:])} |", "|---" * len(HEADINGS[1:]) + "|", *table_lines(rows)]
    table = "\n".join(lines)
    return f"Measured {when}, {where}.\n{older}\n:::{{dropdown}} Commands, dates and commits\n{table}\n:::\n"


def release_date() -> str:
    """Return the date of this version in the changelog, such as ``## 0.1.0 (2026-12-01)``; empty before the release."""
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    found = re.search(rf"^## {re.escape(version)} \((\d{{4}}-\d\d-\d\d)\)$", changelog, re.MULTILINE)
    return found[1] if found else ""


def table_lines(rows: Sequence[Row]) -> Iterator[str]:
    """Return a line for each command, the numbers of one command together."""
    together: dict[tuple[str, ...], list[str]] = {}
    for row in rows:
        name = row["numbers"]
        up = "../" * row["page"].count("/")
        shown = f"[{name}]({up}benchmarks/{name}.csv)" if (RUNS.parent / f"{name}.csv").is_file() else name
        together.setdefault((f"`{row['command']}`", row["date"], f"`{row['commit']}`", row["machine"]), []).append(
            shown
        )
    for cells, names in together.items():
        yield f"| {', '.join(names)} | {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def here() -> Row:
    """Return today's date, the commit and the machine, with its load, since other programs change times."""
    commit = subprocess.run(
        ["git", "describe", "--always", "--dirty=+"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.strip()
    names = re.findall(r"^model name\s*: (.+)$", Path("/proc/cpuinfo").read_text(encoding="utf-8"), re.MULTILINE)
    cores = os.cpu_count() or 1
    busy = "busy " if os.getloadavg()[0] > cores else ""
    machine = f"{cores} {busy}cores ({names[0] if names else platform.machine()})"
    return {"date": f"{datetime.now(UTC):%Y-%m-%d}", "commit": commit, "machine": machine}


def write(rows: Sequence[Row]) -> None:
    """Write the list."""
    with RUNS.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, HEADINGS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def main() -> None:
    """List the runs, or run commands."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NUMBERS")
    parser.add_argument("--ran", action="store_true", help="write date, commit and machine without running anything")
    asked = parser.parse_args()
    listed = runs()
    if unknown := set(asked.names) - {row["numbers"] for row in listed}:
        raise SystemExit(f"{RUNS}: no row of {', '.join(sorted(unknown))}")
    if not asked.names:
        for row in sorted(listed, key=lambda row: row["date"]):
            print(row["date"], row["commit"], row["page"], row["numbers"], sep="\t")
    commands = {row["command"] for row in listed if row["numbers"] in asked.names}
    for command in () if asked.ran else commands:
        subprocess.run(["bash", "-o", "pipefail", "-c", command], cwd=ROOT, check=True)
    write([{**row, **here()} if row["command"] in commands else row for row in listed])


if __name__ == "__main__":
    main()
