"""Draw the gap of every method in records: ``python examples/gap_chart.py results/mine gaps.svg``."""

from __future__ import annotations

import sys

import cwb


def draw_gaps(folder: str, output: str) -> int:
    """Draw a bar for the mean gap of each method, and return the number of methods."""
    records = cwb.records(folder)
    gaps = records.dropna(subset=["objective", "bound"]).assign(
        gap=lambda each: (each["objective"] - each["bound"]) / each["objective"]
    )
    mean = gaps.groupby("model")["gap"].mean().sort_values()
    axes = mean.plot.barh(xlabel="mean gap to the method's own bound", figsize=(6, 0.5 + 0.4 * len(mean)))
    axes.figure.savefig(output, bbox_inches="tight")
    return len(mean)


if __name__ == "__main__":
    print(f"{draw_gaps(*sys.argv[1:])} methods")
