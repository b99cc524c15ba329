"""Draw the layers of the package: ``python docs/images/architecture.py`` writes ``architecture.svg`` beside itself."""

from __future__ import annotations

import argparse
from pathlib import Path

#: Name, what it contains, left and right end, first and last row, colour. A package may import what lies below it.
BOXES = [
    ("cli", "commands: arguments and printing", 0, 900, 0, 0, "#e8edf3"),
    ("api", "what import cwb offers: verbs, graphs and tables, plots of answers", 0, 900, 1, 1, "#e8edf3"),
    ("studies", "questions that take many solves: advice, repair, failures, topologies", 0, 900, 2, 2, "#e8edf3"),
    ("harness", "runs, suites, worker processes, ledger, registry of methods", 0, 720, 3, 3, "#e8edf3"),
    ("reports", "records to tables|and plots", 730, 900, 3, 6, "#f3ecdf"),
    ("heuristics", "methods without a proof of their own", 0, 350, 4, 4, "#dfeee5"),
    ("models", "exact methods and their Pyomo models", 0, 350, 5, 5, "#dfeee5"),
    ("algorithms", "combinatorial engines: arrays in, arrays out", 0, 350, 6, 6, "#dfeee5"),
    ("solvers", "adapters: HiGHS,|Gurobi, SCIP", 360, 490, 4, 6, "#ece4f1"),
    ("exchange", "files of other programs", 500, 720, 4, 4, "#ece4f1"),
    ("instances", "loader,|generators", 500, 605, 5, 6, "#ece4f1"),
    ("schedules", "verifier,|simulators,|bounds", 615, 720, 5, 6, "#ece4f1"),
    ("core", "vocabulary: instance, schedule, bound, method, solver, record", 0, 900, 7, 7, "#e8edf3"),
]
ROW, GAP, EDGE = 74, 10, 8


def svg() -> str:
    """The figure."""
    height = 8 * ROW + 7 * GAP + 2 * EDGE
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {900 + 2 * EDGE} {height}" role="img"'
        ' font-family="Helvetica, Arial, sans-serif" text-anchor="middle" fill="#1b2430">',
        "<title>Packages of cwb; each may import what lies below it</title>",
        f'<rect width="{900 + 2 * EDGE}" height="{height}" fill="#ffffff"/>',
    ]
    for name, text, left, right, first, last, colour in BOXES:
        top, tall = EDGE + first * (ROW + GAP), (last - first) * (ROW + GAP) + ROW
        x = EDGE + (left + right) / 2
        parts = text.split("|")
        y = top + tall / 2 - 9 * len(parts) + 3
        lines.append(
            f'<rect x="{EDGE + left}" y="{top}" width="{right - left}" height="{tall}" rx="5" fill="{colour}"'
            ' stroke="#8793a3"/>'
        )
        lines.append(f'<text x="{x:g}" y="{y:g}" font-size="16" font-weight="bold">{name}/</text>')
        lines += [
            f'<text x="{x:g}" y="{y + 19 + 17 * i:g}" font-size="13">{part}</text>' for i, part in enumerate(parts)
        ]
    return "\n".join([*lines, "</svg>", ""])


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__.partition("\n")[0]).parse_args()
    Path(__file__).with_suffix(".svg").write_text(svg(), encoding="utf-8")
