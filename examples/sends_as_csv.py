"""Write the sends of a schedule file as CSV: ``python examples/sends_as_csv.py schedule.json sends.csv``."""

from __future__ import annotations

import sys
from pathlib import Path

import cwb
from cwb.schedules.files import read_schedule

COLUMNS = ["source", "target", "chunk", "size_bytes", "step"]


def write_sends(schedule: str, output: str) -> int:
    """Verify a schedule, write its sends, and return their number."""
    file = read_schedule(Path(schedule))
    verdict = cwb.verify(file)
    if not verdict.ok:
        sys.exit(f"{schedule}: {verdict.violations[0]}")
    sends = cwb.sends(file)[COLUMNS]
    sends.to_csv(output, index=False)
    return len(sends)


if __name__ == "__main__":
    print(f"{write_sends(*sys.argv[1:])} sends")
