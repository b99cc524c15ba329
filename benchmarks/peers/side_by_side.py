"""Public programs and cwb on the same instances, in turn and in one run: CPU seconds, memory, and what they reach.

    python benchmarks/peers/side_by_side.py --forestcoll FOLDER --tacos PROGRAM --eplb FOLDER --teccl FOLDER
    python benchmarks/peers/side_by_side.py ... --page docs/scaling.md   # and write the table of the page
    python benchmarks/peers/side_by_side.py --smoke                      # cwb alone, small instances

What the programs are and what each option names is in the README beside this file; none is part of cwb. A program that
is not given is left out. Every run is a process of its own that solves a small instance first, so that imports and
compiled loops do not count (TACOS's program needs neither). Seconds are the middle of some runs of each.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from math import gcd
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any

import cwb
import numpy as np
from cwb.core.answers import Answer, Placement
from cwb.core.budget import Budget
from cwb.core.collective import Collective, Demand
from cwb.core.instance import Instance
from cwb.core.topology import Topology
from cwb.core.trees import TreeKind, TreePacking
from cwb.harness import registry
from cwb.harness.clock import WallClock
from cwb.schedules import verdict_of
from program import peak_mib

MARKS = ("<!-- begin: python benchmarks/peers/side_by_side.py --page docs/scaling.md -->", "<!-- end of the peers -->")
HEADINGS = ("program", "instance", "its CPU s", "MiB", "reaches", "cwb's CPU s", "verified", "MiB", "reaches", "times")

#: Seconds of a program after which it is not run again.
ENOUGH_S = 20.0

#: The example of EPLB's README.
LOADS = "[[90,132,40,61,104,165,39,4,73,56,183,86],[20,107,104,64,19,197,187,157,172,86,16,27]]"
EXAMPLE = f"experts(gpus=8, slots=2, groups=4, nodes=2, loads={LOADS})"

#: A chunk of TACOS is a whole number of bytes; with a power of two no program rounds its time.
CHUNK, RATE, LATENCY = 2**20, 50, 0.5


@dataclass(frozen=True)
class Row:
    """One instance.

    Parameters
    ----------
    program : str
        Which one it is compared with.
    method, instance, small : str
        Of cwb; and an instance of the same kind to begin with.
    size : int
        Bytes of the all-gather; on TACOS's networks a chunk of each rank.
    options : tuple of (str, object)
        Of the method.
    given : dict
        What TE-CCL's input says beside the network.
    """

    program: str
    method: str
    instance: str
    small: str
    size: int = 2**30
    options: tuple[tuple[str, object], ...] = ()
    given: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The instance and options that are not the method's defaults."""
        return f"`{self.instance.replace(LOADS, '…')}`" + "".join(f", `{k}={v}`" for k, v in self.options)

    def load(self, text: str) -> Instance:
        """An instance as cwb poses it."""
        if self.program == "tacos":
            text = text.replace(")", f", bandwidth='{RATE} GiB/s', latency='{LATENCY} us')")
        instance = cwb.load(text)
        if self.program == "eplb":
            return instance
        size = instance.npus * CHUNK if self.program == "tacos" else self.size
        return instance.with_changes(demand=Demand(Collective.ALL_GATHER, Fraction(size)))


#: An all-gather of 25 KB a GPU in epochs of 1 µs, the slowest link's, of which 5 are the most that the licence allows.
DGX1 = {
    "TopologyParams": {"name": "DGX1", "chassis": 1, "chunk_size": 2.5e-5, "alpha": [7e-7, 7e-7]},
    "GurobiParams": {"output_flag": 0},
    "InstanceParams": {"collective": 1, "epoch_type": 2, "num_epochs": 5, "objective_type": 3, "solution_method": 1},
}
PREFILLING = "experts(gpus=32, slots=9, experts=256, layers=58, groups=8, nodes=4)"
DECODING = "experts(gpus=144, slots=2, experts=256, layers=58)"
ROWS = (
    Row("forestcoll", "forestcoll", "dgx_a100(boxes=1)", "ring(3)"),
    Row("forestcoll", "forestcoll", "mi250(boxes=1)", "ring(3)"),
    Row("forestcoll", "forestcoll", "dgx_a100(boxes=2)", "dgx_a100(boxes=1)"),
    Row("forestcoll", "forestcoll", "mi250(boxes=2)", "mi250(boxes=1)"),
    Row("forestcoll", "forestcoll", "dgx_a100(boxes=3)", "dgx_a100(boxes=1)"),
    *(Row("tacos", "tacos", f"{kind}({n},{n})", f"{kind}(8,8)") for n in (10, 20, 30) for kind in ("mesh", "torus")),
    Row("eplb", "expert-placement", EXAMPLE, EXAMPLE),
    Row("eplb", "expert-placement", PREFILLING, EXAMPLE, options=(("search", "published"),)),
    Row("eplb", "expert-placement", PREFILLING, EXAMPLE),
    Row("eplb", "expert-placement", DECODING, EXAMPLE),
    Row("teccl", "teccl", "dgx1()", "dgx1()", 200_000, (("epoch", "slow"), ("chunks", 1)), DGX1),
)


def program_instance(row: Row, instance: Instance) -> Any:
    """The same instance for the program."""
    if (experts := instance.experts) is not None:
        loads = [[float(load) for load in layer] for layer in experts.loads]
        sizes = {"replicas": experts.replicas, "groups": experts.groups, "nodes": experts.nodes, "gpus": experts.gpus}
        return {"loads": loads, **sizes}
    if row.program == "teccl":
        return row.given
    topology = instance.network
    assert isinstance(topology, Topology)
    if row.program == "tacos":
        family, _, sides = row.instance.rstrip(")").partition("(")
        return [family, *sides.split(","), str(RATE), str(LATENCY), str(CHUNK)]
    rates = [int(link.bandwidth_Bps) for link in topology.links]
    capacities = [rate // gcd(*rates) for rate in rates]
    links = [(*ends, capacity) for ends, capacity in zip(topology.link_ends, capacities, strict=True)]
    return {"links": links, "ranks": list(topology.rank_nodes)}


def answer_of(instance: Instance, found: Mapping[str, Any]) -> Answer | None:
    """Return a program's answer in a form that cwb's verifier reads; None if it reports only its time."""
    if "experts" in found:
        assert instance.experts is not None
        each = instance.experts.slots
        return Placement(
            tuple(tuple(tuple(sorted(row[i : i + each])) for i in range(0, len(row), each)) for row in found["experts"])
        )
    if "trees" not in found:
        return None
    topology, demand = instance.network, instance.demand
    assert isinstance(topology, Topology) and demand is not None
    rank = {node: number for number, node in enumerate(topology.rank_nodes)}
    link = {ends: number for number, ends in enumerate(topology.link_ends)}
    paths = [path for _, _, tree in found["trees"] for path in tree]
    part_bytes = demand.size_bytes / instance.npus
    return TreePacking(
        instance.sha256,
        TreeKind.OUT,
        np.array([rank[root] for root, _, _ in found["trees"]]),
        np.array([parts for _, parts, _ in found["trees"]]),
        part_bytes / found["parts"],
        np.cumsum([0, *(len(tree) for _, _, tree in found["trees"])]),
        np.array([rank[path[0]] for path in paths]),
        np.array([rank[path[-1]] for path in paths]),
        np.cumsum([0, *(len(path) - 1 for path in paths)]),
        np.array([link[ends] for path in paths for ends in pairwise(path)]),
    )


def run_program(row: Row, path: Path, python: str) -> dict[str, Any]:
    """Run a program in a process of its own; what it takes, and what cwb's verifier says that it reaches."""
    instance = row.load(row.instance)
    asked = {"program": row.program, "path": str(path), "small": program_instance(row, row.load(row.small))}
    asked["asked"] = program_instance(row, instance)
    here = Path(__file__).parent / "program.py"
    text = json.dumps(asked) + "\n"
    ended = subprocess.run([python, str(here)], check=False, input=text, capture_output=True, text=True)
    if ended.returncode:
        raise SystemExit(f"{row.program} on {row.instance}: {ended.stderr.strip().splitlines()[-1]}")
    found: dict[str, Any] = json.loads(ended.stdout.splitlines()[-1])
    return {**found, "reaches": reached_objective(instance, answer_of(instance, found), found.get("time"))}


def run_cwb(row: Row) -> dict[str, Any]:
    """Run cwb's method in this process, and have its answer verified."""
    method, solver = registry.get(row.method), registry.solver("highs")
    options = method.options.model_validate(dict(row.options))
    found: dict[str, Any] = {}
    for text in (row.small, row.instance):
        instance = row.load(text)
        begin = process_time()
        posed = method.pose(instance, options)
        outcome = method.run(posed, solver, Budget(clock=WallClock()), options)
        seconds = process_time() - begin
        assert outcome.answer is not None
        reaches = reached_objective(posed, outcome.answer, None)
        found = {"seconds": seconds, "verified": process_time() - begin, "reaches": reaches}
    return {**found, "mib": peak_mib()}


def reached_objective(instance: Instance, answer: Answer | None, seconds: float | None) -> str:
    """The objective that the verifier computes, of trees with their heights; or a time that is only reported."""
    if answer is None:
        return f"{seconds * 1e6:.2f} µs" if seconds is not None else ""
    verdict = verdict_of(instance, answer)
    assert verdict.ok and verdict.objective is not None, verdict.violations
    if instance.experts is not None:
        return f"{verdict.objective:.8g}"
    heights = [verdict.metrics.get(name) for name in ("max_height", "mean_height")]
    tall = f", {heights[0]} / {heights[1]:.2f}" if None not in heights else ""
    return f"{verdict.objective * 1e6:.2f} µs{tall}"


def compare_row(row: Row, path: Path | None, python: str, rounds: int) -> list[str]:
    """Cells of a row: the program and cwb in turn."""
    theirs: list[dict[str, Any]] = []
    ours: list[dict[str, Any]] = []
    context = multiprocessing.get_context("spawn")
    for _ in range(rounds):
        if path is not None and sum(each["seconds"] for each in theirs) < ENOUGH_S:
            theirs.append(run_program(row, path, python))
        with ProcessPoolExecutor(1, mp_context=context) as pool:
            ours.append(pool.submit(run_cwb, row).result())
    mine = _middle(ours, "seconds")
    cells = [f"`{row.program}`", row.name, "", "", ""]
    if theirs:
        cells[2:] = [_seconds(_middle(theirs, "seconds")), f"{_middle(theirs, 'mib'):,.0f}", theirs[0]["reaches"]]
    cells += [_seconds(mine), _seconds(_middle(ours, "verified")), f"{_middle(ours, 'mib'):,.0f}", ours[0]["reaches"]]
    times = _middle(theirs, "seconds") / mine if theirs else 0.0
    return [*cells, "" if not theirs else f"{times:,.0f}" if times >= 10 else f"{times:.2g}"]


def _middle(runs: list[dict[str, Any]], name: str) -> float:
    return float(median(run[name] for run in runs))


def _seconds(value: float) -> str:
    return f"{value:.3g}" if value < 100 else f"{value:,.0f}"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    programs = list(dict.fromkeys(row.program for row in ROWS))
    for program in programs:
        parser.add_argument(f"--{program}", type=Path, metavar="PATH", help="where it is; see the README")
    parser.add_argument("--python", default=sys.executable, help="an interpreter that has what the programs import")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each")
    parser.add_argument("--page", type=Path, help="write the table into this page")
    parser.add_argument("--smoke", action="store_true", help="cwb alone on one small instance of each kind")
    asked = parser.parse_args()
    paths = {program: getattr(asked, program) for program in programs}
    for missing in (program for program in programs if paths[program] is None):
        print(f"{missing}: not given, left out")
    if asked.smoke:
        rows = [next(row for row in ROWS if row.program == program) for program in programs]
    else:
        rows = [row for row in ROWS if paths[row.program] is not None]
    lines = [f"| {' | '.join(HEADINGS)} |", "|---" * len(HEADINGS) + "|"]
    print("\n".join(lines), flush=True)
    for row in rows:
        path = paths[row.program]
        cells = compare_row(row, path and path.resolve(), asked.python, 1 if asked.smoke else asked.rounds)
        lines.append(f"| {' | '.join(cells)} |")
        print(lines[-1], flush=True)
    if asked.page is not None:
        before, rest = asked.page.read_text(encoding="utf-8").split(MARKS[0])
        table = "\n".join(lines)
        asked.page.write_text(f"{before}{MARKS[0]}\n\n{table}\n\n{MARKS[1]}{rest.split(MARKS[1])[1]}", encoding="utf-8")


if __name__ == "__main__":
    main()
