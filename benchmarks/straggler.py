"""Rounds of an all-reduce with one late rank, beside those of the program that the paper's authors have published.

    python benchmarks/straggler.py            # the numbers of ranks that the program was run for
    python benchmarks/straggler.py --all      # every number from 2 to 64 as well
    python benchmarks/straggler.py --smoke    # up to 12

The program is arjundevraj/stragglar on GitHub; its rounds were counted in its schedules. Every schedule here is
verified, and its bound recomputed.
"""

from __future__ import annotations

import argparse

import cwb
from rich.console import Console
from rich.table import Table

#: Rounds of the published program.
PUBLISHED = {6: 7, 12: 15, 24: 27, 48: 57, 96: 108, 192: 208}


def main() -> None:
    """Print a line for every number of ranks."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--all", action="store_true", help="every number of ranks from 2 to 64")
    parser.add_argument("--smoke", action="store_true", help="up to 12 ranks")
    arguments = parser.parse_args()
    numbers = sorted({*PUBLISHED, *(range(2, 65) if arguments.all else ())})
    table = Table("ranks", "bound", "published program", "here", "status", "seconds")
    for n in numbers:
        if arguments.smoke and n > 12:
            continue
        record = cwb.solve(f"switch({n}, latency='0 s')", "straggler", collective="late_all_reduce")
        assert record.verified
        found = record.metrics
        cells = (
            n,
            found["fewest_rounds"],
            PUBLISHED.get(n, "-"),
            found["rounds"],
            record.status,
            f"{sum(record.seconds.values()):.2f}",
        )
        table.add_row(*map(str, cells))
    Console().print(table)


if __name__ == "__main__":
    main()
