"""Seconds and memory until a TE-CCL model of a million variables is in the solver.

    python benchmarks/teccl_models.py [--columns 1000000]

The general form of an all-gather and the linear program of an all-to-all on NDv2, of so many epochs that the model
has about the columns that are asked for. Each is built, compiled to arrays and handed to HiGHS in a process of its
own, whose peak memory is told. Aims: at most 15 s and 2 GB for 10^6 columns. Seconds are of the processor, since a
machine that others use as well says little by the clock on the wall; that is told in brackets.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction
from time import perf_counter, process_time
from typing import Any

AIM_S, AIM_GB = 15.0, 2.0


def problem(kind: str) -> Any:
    """NDv2 of two chassis with the published epoch of 1.25 ms."""
    from cwb.core.collective import Collective, Demand
    from cwb.core.timing import Semantics, Timing
    from cwb.instances import load
    from cwb.models.teccl.problem import epoch_problem

    fluid = kind == "lp"
    demand = Demand(Collective.ALL_TO_ALL if fluid else Collective.ALL_GATHER, Fraction(10**9))
    timing = Timing(Semantics.TE_CCL, Fraction(125, 100_000), fluid)
    return epoch_problem(replace(load("ndv2(chassis=2)"), demand=demand, timing=timing))


def plan_of(kind: str, epochs: int) -> Any:
    """Index sets of a model."""
    from cwb.models.teccl.formulations.lp import LpIndexSets
    from cwb.models.teccl.index_sets import index_sets

    return LpIndexSets(problem(kind), epochs) if kind == "lp" else index_sets(problem(kind), epochs)


def columns(kind: str, epochs: int) -> int:
    """Variables of a model."""
    plan = plan_of(kind, epochs)
    return (
        len(plan.flows) + len(plan.buffers) + len(plan.reads) if kind == "lp" else len(plan.sends) + len(plan.holdings)
    )


def epochs_for(kind: str, wanted: int) -> int:
    """Epochs that come nearest: the columns grow in a straight line."""
    few, many = columns(kind, 40), columns(kind, 80)
    return round(40 + (wanted - few) * 40 / (many - few))


def measure(kind: str, epochs: int) -> None:
    """Build, compile and transfer one model, and print a row."""
    import highspy
    import pyomo.environ  # noqa: F401 (imported before the clock starts)
    from cwb.models.teccl.formulations import lp, milp
    from cwb.solvers.highs_common import pass_model
    from cwb.solvers.matrix import compile_matrix

    wall = perf_counter()
    begin = process_time()
    plan = plan_of(kind, epochs)
    model = (lp if kind == "lp" else milp).build(plan)
    built = process_time()
    matrix = compile_matrix(model)
    compiled = process_time()
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    pass_model(highs, matrix, 1.0)
    done = process_time()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    size = matrix.size
    times = f"{built - begin:6.1f} {compiled - built:8.1f} {done - compiled:9.1f} {done - begin:6.1f}"
    times += f" ({perf_counter() - wall:.0f})"
    print(f"{kind:5} {epochs:6} {size.variables:9,} {size.constraints:9,} {size.nonzeros:10,} {times} {peak:7.2f}")
    if size.variables >= 900_000 and (done - begin > AIM_S or peak > AIM_GB):
        print(f"{kind}: more than {AIM_S} s or {AIM_GB} GB", file=sys.stderr)


def main() -> None:
    """Measure both models."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--columns", type=int, default=1_000_000)
    parser.add_argument("--one", nargs=2, metavar=("KIND", "EPOCHS"))
    arguments = parser.parse_args()
    if arguments.one:
        measure(arguments.one[0], int(arguments.one[1]))
        return
    print("model epochs   columns      rows   nonzeros  build  compile  transfer  total (wall)  GB", flush=True)
    for kind in ("milp", "lp"):
        subprocess.run([sys.executable, __file__, "--one", kind, str(epochs_for(kind, arguments.columns))], check=True)


if __name__ == "__main__":
    main()
