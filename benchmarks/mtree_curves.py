"""Figures 9 and 10 of the MTree paper as curves: times over the number of chunks and over offsets.

    python benchmarks/mtree_curves.py -o DIR  # Equinix's size, skewness 0.7, as in the paper: table and plot
    python benchmarks/mtree_curves.py --smoke # GScale, few offsets, to see that it runs

1 GB is reduced along at most ten trees of `gost`, with r* the tree's own bottleneck, so that MILP (1) ends. Rates and
data are those with which all trees end together in their best numbers of chunks lambda*. Curves are of the closed form
(equation 4, all leaves of a tree); in figure 10 every tree is given max(lambda* + delta, 1) chunks, and points are
simulated, event by event.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import cwb
import numpy as np
from cwb.core.instance import Instance
from cwb.core.pipelining import Forest, LatencyModel, RateReservation, forest_of, reserve_rates
from cwb.core.schedule import Floats, Ints
from cwb.core.trees import TreePacking
from cwb.harness import Request, run
from cwb.reports.plots.look import COLOURS, LINES, look, new_figure, to_bytes
from cwb.schedules.simulate.pipeline import simulate_reserved

HELD = LatencyModel.OCCUPANCY

#: The paper's range of offsets, and the largest number of chunks of figure 9.
OFFSETS, MOST_CHUNKS = range(-50, 101), 200

#: Offsets at which trees are simulated and that the table has.
SHOWN = (-50, -20, -10, -5, 0, 5, 10, 20, 50, 100)


@dataclass(frozen=True)
class Trees:
    """Trees of a reduction, with rates and data such that all end together."""

    instance: Instance
    packing: TreePacking
    plan: RateReservation
    forest: Forest

    @property
    def flow_s(self) -> Floats:
        """Seconds that all data of each tree takes on a link."""
        return np.asarray(self.packing.units * float(self.packing.unit_bytes) / self.plan.rates_Bps, dtype=np.float64)

    def seconds(self, chunks: Ints) -> Floats:
        """Time of every tree, by the closed form."""
        return self.forest.seconds(self.flow_s, chunks)

    def offset(self, delta: int) -> Ints:
        """Numbers of chunks that are so many above the best."""
        return np.maximum(self.plan.chunks + delta, 1)

    def simulated_s(self, delta: int) -> float:
        """Completion time of all trees, event by event."""
        plan = RateReservation(self.plan.seconds, self.plan.rates_Bps, self.offset(delta))
        return float(simulate_reserved(self.instance, self.packing, plan, HELD, overhead_s=Fraction(0)).completion_s)


def trees_of(network: str) -> Trees:
    """The trees of `gost` on a network, for the reduction alone."""
    instance = cwb.load(network).with_changes(demand=cwb.load("gscale").demand)
    done = run(instance, Request("gost", options={"trees": 10, "rate": "bottleneck"}))
    if not isinstance(done.answer, TreePacking) or done.answer.reduction is None:
        raise SystemExit(f"{network}: {done.record.status}")
    packing = done.answer.reduction
    topology = instance.topology
    return Trees(instance, packing, reserve_rates(topology, packing, HELD), forest_of(topology, packing, HELD))


def lines(trees: Trees) -> list[str]:
    """Tables of both figures."""
    number = trees.plan.chunks
    alone = trees.seconds(np.ones_like(number))
    made = ["| tree | chunks, best | time, s | in one message, s |", "|---|---|---|---|"]
    made += [
        f"| {tree} | {number[tree]} | {trees.seconds(number)[tree]:.2f} | {alone[tree]:.2f} |"
        for tree in range(len(number))
    ]
    made += ["", "| offset | closed form, s | simulated, s |", "|---|---|---|"]
    made += [f"| {d} | {trees.seconds(trees.offset(d)).max():.2f} | {trees.simulated_s(d):.2f} |" for d in SHOWN]
    return made


def draw(trees: Trees, path: Path) -> None:
    """Draw both figures side by side."""
    from matplotlib.ticker import StrMethodFormatter

    with look():
        figure = new_figure(2.6, 6.4)
        left, right = figure.subplots(1, 2, sharey=True)
        counts = np.arange(1, MOST_CHUNKS + 1)
        every = np.array([trees.seconds(np.full_like(trees.plan.chunks, count)) for count in counts])
        for tree, best in enumerate(trees.plan.chunks.tolist()):
            look_of = {"color": COLOURS[tree % len(COLOURS)], "linestyle": LINES[tree // len(COLOURS) % 4]}
            left.plot(counts, every[:, tree], label=f"tree {tree}", **look_of)
            left.plot([best], [trees.seconds(trees.plan.chunks)[tree]], marker=".", color=look_of["color"])
        right.plot(
            OFFSETS, [trees.seconds(trees.offset(d)).max() for d in OFFSETS], color=COLOURS[0], label="closed form"
        )
        right.plot(
            SHOWN, [trees.simulated_s(d) for d in SHOWN], linestyle="", marker="o", color=COLOURS[1], label="simulated"
        )
        left.set_xscale("log")
        left.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        left.set_xlabel("chunks of a tree (point: the best number)")
        left.set_ylabel("reduction of 1 GB, s")
        right.set_xlabel("chunks beyond the best number, every tree")
        right.legend()
        for panel in (left, right):
            panel.set_ylim(bottom=0)
            panel.grid(axis="y")
        for form in ("svg", "png"):
            path.with_suffix(f".{form}").write_bytes(to_bytes(figure, form))


def main() -> None:
    """Solve, print, draw."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smoke", action="store_true", help="GScale")
    parser.add_argument("-o", type=Path, metavar="DIR", help="where the plot goes")
    arguments = parser.parse_args()
    trees = trees_of("gscale(0.7, 0)" if arguments.smoke else "equinix_size(0.7, 0)")
    print("\n".join(lines(trees)))
    if arguments.o:
        arguments.o.mkdir(parents=True, exist_ok=True)
        draw(trees, arguments.o / "mtree-chunks")


if __name__ == "__main__":
    main()
