"""Measurements of `mtree_figures.py`: one method on one network, kept in a file, so that a run can be continued."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cache
from math import isnan, nan, sqrt
from pathlib import Path
from statistics import fmean, stdev
from time import process_time
from typing import Any, NamedTuple

import cwb
import numpy as np
from cwb import solvers
from cwb.algorithms.trees.trees import measures_of_rate, measures_of_trees, packing
from cwb.core.budget import Budget
from cwb.core.instance import Instance
from cwb.core.outcome import Outcome
from cwb.core.schedule import StepSchedule
from cwb.core.solver import SolverOptions
from cwb.core.topology import Topology
from cwb.core.trace import SimulationMode
from cwb.core.trees import TreePacking
from cwb.harness import Request, run
from cwb.heuristics.wan.gost import run_ith
from cwb.heuristics.wan.method import GostOptions
from cwb.models.mtree.answer import best_rates, measures_of_chunks, select
from cwb.models.mtree.method import ChunkOptions
from cwb.models.mtree.problem import CandidateTrees, TreeProblem, tree_problem
from cwb.schedules.simulate import simulate

#: Nodes of the search of MILP (1) over the trees of `gost`, which need not end on the larger networks.
NODES = 200

#: H of ITH, and K where a figure has one K only.
TALLEST, MOST = 8, 10

#: Most trees for which `mtree` may solve its exact models; with more it ends with a gap where value and bound do not
#: meet before.
EXACT = 3

METHODS: dict[str, tuple[str, dict[str, object]]] = {
    "mtree": ("mtree", {}),
    "blink-trees": ("blink-wan", {"cut": "trees", "trees": MOST}),
    "blink-unit": ("blink-wan", {"cut": "unit"}),
    "topoadopt": ("topoadopt", {"trees": MOST}),
    "plink": ("plink", {}),
    "psld": ("psld", {}),
}


class Measurement(NamedTuple):
    """One measurement; no height is the choice of ITH (`gost`) or any (`mtree`), no trees are as many as help."""

    network: str
    skewness: float
    seed: int
    method: str
    height: int | None = None
    trees: int | None = None


Row = dict[str, Any]
COLUMNS = (
    *Measurement._fields, "status", "throughput", "strength", "bound", "count", "pool", "ith", "mean_height",
    "max_fanout", "packing",
    "reduce_s", "message_s", "cpu_s",
)  # fmt: skip


class Store:
    """Rows by cell; with a file, they are written as they come, and what it has is not measured again."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.rows: dict[Measurement, Row] = {}
        if path is not None and path.exists():
            with path.open(newline="") as lines:
                for text in csv.DictReader(lines):
                    row = {name: _read(name, value) for name, value in text.items()}
                    self.rows[Measurement(*(row[name] for name in Measurement._fields))] = row

    def get(self, cell: Measurement) -> Row:
        """The row of a cell; measure it if it is not there."""
        if cell not in self.rows:
            row = dict.fromkeys(COLUMNS) | cell._asdict() | (self.implied_optimum(cell) or measure_cell(cell))
            self.rows[cell] = row
            if self.path is not None:
                fresh = not self.path.exists()
                with self.path.open("a", newline="") as lines:
                    writer = csv.DictWriter(lines, COLUMNS, lineterminator="\n")
                    if fresh:
                        writer.writeheader()
                    writer.writerow({name: f"{v:.6g}" if isinstance(v, float) else v for name, v in row.items()})
        return self.rows[cell]

    def implied_optimum(self, cell: Measurement) -> Row | None:
        """Return a known optimum for less height or fewer trees: the strength, or that of any number of trees."""
        if cell.method != "mtree":
            return None
        lower = self.rows.get(cell._replace(height=cell.height - 1)) if cell.height else None
        fewer = self.rows.get(cell._replace(trees=cell.trees - 1)) if cell.trees else None
        any_number = self.rows.get(cell._replace(trees=None)) if cell.trees else None
        for known in (lower, fewer):
            if known is None or not known["throughput"] or (cell.trees == MOST and known["reduce_s"] is None):
                continue
            most = [known["strength"], *([any_number["bound"]] if any_number else [])]
            if known["throughput"] >= min(most) * (1 - 1e-5):
                return known | cell._asdict() | {"status": "optimal", "cpu_s": 0.0}
        return None

    def select(self, keep: Callable[[Measurement], bool]) -> list[Row]:
        """The rows of some cells."""
        return [row for cell, row in self.rows.items() if keep(cell)]


def _read(name: str, value: str) -> Any:
    if name in ("network", "method", "status"):
        return value
    if value == "":
        return None
    return int(value) if name in ("seed", "height", "trees", "count", "pool", "ith") else float(value)


#: Fewer values give no interval worth a drawing.
LEAST = 5


class Mean(NamedTuple):
    """Mean, half of its 95 % interval by Student's t (nan for few values), and number."""

    mean: float
    half: float
    number: int

    @property
    def text(self) -> str:
        """Write it."""
        if not self.number:
            return "-"
        digits = 3 if abs(self.mean) < 2 else 1
        return f"{self.mean:.{digits}f}" + ("" if isnan(self.half) else f" ±{self.half:.{digits}f}")


def mean(values: Iterable[float | None]) -> Mean:
    """The mean of the values that are there."""
    from scipy.stats import t

    known = [value for value in values if value is not None]
    if len(known) < LEAST:
        return Mean(fmean(known) if known else nan, nan, len(known))
    return Mean(fmean(known), float(t.ppf(0.975, len(known) - 1)) * stdev(known) / sqrt(len(known)), len(known))


@cache
def load(network: str, skewness: float, seed: int) -> Instance:
    """An instance: all-reduce of 1 GB."""
    return cwb.load(f"{network}({skewness}, {seed})").with_changes(demand=cwb.load("gscale").demand)


@cache
def pose_cell(network: str, skewness: float, seed: int, height: int) -> TreeProblem | Outcome:
    """Read an instance for trees of a height, with the paper's grid as the smallest rate; strength takes longest."""
    options = GostOptions.model_validate({})
    return tree_problem(load(network, skewness, seed), height, options.min_rate, Budget())


def measure_cell(cell: Measurement) -> Row:
    """Run a method; CPU seconds are of the whole cell."""
    started = process_time()
    row = greedy(cell) if cell.method.startswith("gost") else solve_cell(cell)
    return row | {"cpu_s": process_time() - started}


def greedy(cell: Measurement) -> Row:
    """Run GBST at a height, or ITH; then the linear program for any K, or MILP (1)."""
    reading = "bottleneck" if cell.method == "gost-bottleneck" else "global_min"
    options = GostOptions.model_validate(
        {"rate": reading, "height": cell.height or TALLEST, "improve": cell.height is None}
    )
    asked = pose_cell(*cell[:3], cell.height or TALLEST)
    if isinstance(asked, Outcome):
        return {"status": "infeasible", "throughput": 0.0, "count": 0, "pool": 0}
    wan, budget, solver = asked.wan, Budget(seed=cell.seed), solvers.get()
    grown, height, _ = run_ith(asked, options, budget)
    strength = float(asked.strength.rate / wan.normaliser)
    row: Row = {"strength": strength, "pool": len(grown.trees), "ith": height}
    if not len(grown.trees):
        return row | {"status": "limit", "throughput": 0.0, "count": 0}
    trees = np.sort(grown.trees, axis=1)
    if cell.trees is None:
        rated, report = best_rates(wan, trees, solver, budget)
    else:
        limits = SolverOptions(rel_gap=1e-4, node_limit=NODES)
        rated, report = select(CandidateTrees(wan, trees, cell.trees, asked.floor), solver, budget, limits)
    if rated is None or not rated.rates:
        return row | {"status": "limit", "throughput": 0.0, "count": 0}
    root_of = {tuple(tree): root for tree, root in zip(trees.tolist(), grown.roots.tolist(), strict=True)}
    roots = np.array([root_of[tuple(tree)] for tree in rated.trees.tolist()], dtype=np.int64)
    metrics = measures_of_rate(wan, rated.total, asked.strength) | measures_of_trees(wan, rated, roots.tolist())
    row |= {"status": report.termination.value, "count": len(rated.rates)} | metrics_row(metrics)
    if cell.height is None and cell.trees == MOST:
        row |= times(asked.instance, packing(asked.instance, wan, rated, roots))
    return row


def solve_cell(cell: Measurement) -> Row:
    """Run a registered method, which is verified."""
    model, options = METHODS[cell.method]
    if cell.method == "mtree":
        asked = {"height": cell.height, "trees": cell.trees}
        options = {name: value for name, value in asked.items() if value is not None}
        options["exact"] = (cell.trees or 0) <= EXACT
    done = run(load(*cell[:3]), Request(model, options=options, seed=cell.seed))
    metrics = done.record.metrics
    if done.answer is None:
        return {"status": done.record.status, "throughput": 0.0, "count": 0}
    if not done.record.verified:
        raise SystemExit(f"{cell}: {done.record.violations}")
    row = {"status": done.record.status, "count": metrics.get("trees")} | metrics_row(metrics)
    if cell.method != "mtree" or cell.trees == MOST:
        row |= times(done.instance, done.answer)
    return row


def metrics_row(metrics: dict[str, Any]) -> Row:
    """Keep some metrics; rates over the paper's normaliser."""
    normaliser = metrics["allreduce_rate_Bps"] / metrics["normalized_throughput"]
    return {
        "throughput": metrics["normalized_throughput"],
        "strength": metrics["strength_Bps"] / normaliser,
        "bound": metrics["exact_bound_Bps"] / normaliser if "exact_bound_Bps" in metrics else None,
        "packing": metrics["packing_rate_Bps"] / normaliser if "packing_rate_Bps" in metrics else None,
        "mean_height": metrics.get("mean_tree_height"),
        "max_fanout": metrics.get("mean_max_fanout"),
    }


def times(instance: Instance, answer: object) -> Row:
    """Return seconds of the reduction: in the best chunks at reserved rates, and whole with max-min fair shares."""
    if isinstance(answer, StepSchedule):
        up = answer.sends.reduce
        half = replace(answer, sends=answer.sends.take(up), step=answer.step[up])
        return {"message_s": simulate(instance, half, SimulationMode.FAIR_SHARE).completion_s}
    if not isinstance(answer, TreePacking) or not isinstance(instance.network, Topology):
        raise SystemExit(f"{instance.name}: no trees")
    chunks = measures_of_chunks(instance.network, answer, ChunkOptions.model_validate({}))
    whole = simulate(instance, answer.passes[0], SimulationMode.FAIR_SHARE).completion_s
    return {"reduce_s": chunks["reduce_time_s"], "message_s": whole}
