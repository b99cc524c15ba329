"""Coverage by package: ``coverage json -o build/coverage.json``, then this script with that file.

Prints a table of lines and branches by package, and the modules with the most lines that no test reached.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from pathlib import Path

COUNTS = ("num_statements", "covered_lines", "num_branches", "covered_branches")


def counts_by_package(files: dict[str, dict[str, dict[str, int]]]) -> dict[str, list[int]]:
    """Return the numbers of lines, reached lines, branches and taken branches of every package, and of all."""
    sums: dict[str, list[int]] = defaultdict(lambda: [0] * len(COUNTS))
    for name, file in files.items():
        package = name.split("/")[0] if "/" in name else "cwb"
        for key in (package, "all"):
            sums[key] = [a + file["summary"][count] for a, count in zip(sums[key], COUNTS, strict=True)]
    return sums


def main() -> None:
    """Print the table and the list."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("report", type=Path)
    parser.add_argument("--modules", type=int, default=20, help="number of modules in the list")
    arguments = parser.parse_args()
    files = json.loads(arguments.report.read_text(encoding="utf-8"))["files"]
    print("| package | lines | reached | branches | taken |\n|---|---|---|---|---|")
    sums = counts_by_package(files)
    for package in sorted(sums, key=lambda name: (name == "all", name)):
        lines, reached, branches, taken = sums[package]
        print(f"| {package} | {lines:,} | {reached / lines:.1%} | {branches:,} | {taken / max(branches, 1):.1%} |")
    missing = sorted(files, key=lambda name: -files[name]["summary"]["missing_lines"])
    for name in missing[: arguments.modules]:
        summary = files[name]["summary"]
        print(f"{name}: {summary['missing_lines']} of {summary['num_statements']} lines")


if __name__ == "__main__":
    main()
