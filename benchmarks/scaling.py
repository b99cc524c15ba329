"""Time and memory of methods against the size of the network, with fitted exponents, and what ends each series.

    python benchmarks/scaling.py                                # all series: some ten minutes
    python benchmarks/scaling.py --only forestcoll ring         # these methods
    python benchmarks/scaling.py --page docs/scaling.md         # and write the table of the page
    python benchmarks/scaling.py --smoke                        # two small series

A series is a method on one kind of network in growing sizes. Each size is a process of its own, which first runs the
smallest size, so that imports and compiled code do not count; then the network is made, the method run and its answer
verified and simulated. Seconds are those of the process's own processor time, of one thread, which other programs on
the machine change less than those of the wall. Memory is the largest that the process had, with Python and its
libraries. A series ends where a size needs more than the limit, or the method says that it can do no more. An exponent
is the slope of the logarithms over the last three sizes that took at least a tenth of a second, or that grew by 20 MiB.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import log
from multiprocessing.connection import Connection
from pathlib import Path
from time import process_time

import cwb
from cwb.core.collective import Collective, Demand
from cwb.core.errors import CwbError
from cwb.core.instance import Instance
from cwb.core.workload import Layer, TrainingLoop
from cwb.harness.request import Request
from cwb.harness.run import run

GATHER, REDUCE, ALL_TO_ALL = Collective.ALL_GATHER, Collective.ALL_REDUCE, Collective.ALL_TO_ALL
LATE = Collective.LATE_ALL_REDUCE

#: Processor seconds of one size, and its memory.
LIMIT_S, LIMIT_BYTES = 30, 4 * 2**30

MARKS = ("<!-- begin: python benchmarks/scaling.py --page docs/scaling.md -->", "<!-- end -->")
HEADINGS = ("method", "network", "ranks: seconds", "time ~ n^", "largest: MiB", "memory ~ n^", "ended by")


@dataclass(frozen=True)
class Series:
    """A method on one kind of network.

    Parameters
    ----------
    method : str
        Its name.
    network : str
        Expression with ``{}`` for the size; or what :func:`layers` makes, for methods that train.
    sizes : tuple of int
        What is put there.
    collective : Collective
        What is asked.
    options : tuple of (str, str)
        Of the method.
    """

    method: str
    network: str
    sizes: tuple[int, ...]
    collective: Collective | None = GATHER
    options: tuple[tuple[str, object], ...] = ()

    @property
    def label(self) -> str:
        """The method with its options."""
        return " ".join([self.method, *(f"{name}={value}" for name, value in self.options)])

    def instance(self, size: int) -> Instance:
        """Return the instance of one size."""
        if self.collective is None:
            return layers(size)
        instance = cwb.load(self.network.format(size))
        return instance.with_changes(demand=Demand(self.collective, Fraction(2**20)))


#: The network of :func:`layers`, in the table.
LAYERS = "gpt-3-4d, {} kinds of layers"


def layers(count: int) -> Instance:
    """GPT-3 with so many layers of different sizes, whose gradients are exchanged while the next ones are computed."""
    base = cwb.load("gpt-3-4d")
    (workload,) = base.workloads
    kinds: list[Layer] = []
    for index in range(count):
        layer = workload.layers[index % len(workload.layers)]
        part = Fraction(count + index, count)
        phases = {
            name: replace(
                phase := getattr(layer, name),
                compute_s=phase.compute_s * part,
                communication=tuple(replace(c, size_bytes=c.size_bytes * part) for c in phase.communication),
            )
            for name in ("forward", "input_gradient", "weight_gradient")
        }
        kinds.append(replace(layer, name=f"layer {index}", repeat=1, **phases))
    return base.with_changes(workloads=(replace(workload, layers=tuple(kinds), loop=TrainingLoop.TP_DP_OVERLAP),))


@dataclass(frozen=True)
class Point:
    """One size: ranks, seconds and MiB; or why there are none."""

    ranks: int
    seconds: float = 0.0
    mebibytes: float = 0.0
    ended: str = ""


SERIES = (
    Series("forestcoll", "dgx_a100(boxes={})", (16, 128, 512, 2048, 12500)),
    Series("forestcoll", "mi250(boxes={})", (8, 64, 256, 1024, 6250)),
    Series("forestcoll", "dgx_a100(boxes={})", (16, 32, 64, 128, 256), GATHER, (("symmetry", "none"),)),
    Series("forestcoll", "rail({},8,missing_nics=1)", (4, 8, 16, 32, 64)),
    Series("ring", "torus({0},{0})", (8, 16, 24, 32), REDUCE),
    Series("bfb", "torus({0},{0})", (8, 16, 24, 32)),
    Series("multitree", "torus({0},{0})", (8, 12, 16, 24, 32), REDUCE),
    Series("tacos", "mesh({0},{0})", (6, 8, 12, 16, 20)),
    Series("pccl", "mesh({0},{0},{0})", (3, 4, 5, 6, 7, 8), ALL_TO_ALL),
    Series("teccl", "torus({0},{0})", (8, 12, 16, 22, 32)),
    Series("bine", "torus({0},{0})", (8, 16, 32), REDUCE),
    Series("nccl", "dgx_h100(boxes={})", (4, 16, 32, 64)),
    Series("blink", "torus({0},{0})", (4, 6, 8, 12), REDUCE),
    Series("fast", "dgx_h100(boxes={})", (4, 8, 16, 32), ALL_TO_ALL, (("rails", "optimal"),)),
    Series("straggler", "switch({}, latency='0 s')", (32, 128, 512, 1024), LATE),
    Series("taccl", "a100(boxes={})", (2, 4, 6, 8), GATHER, (("sketch", "shift 8; shift 1 of 8"),)),
    Series("sccl", "ring({})", (4, 6, 8, 10)),
    Series("mtree", "random_regular(n={}, degree=6, seed=1)", (10, 20, 40, 80), REDUCE, (("height", 4), ("trees", 4))),
    Series("libra", LAYERS, (4, 8, 16, 32, 64), None, (("objective", "perf-per-cost"),)),
    Series("all-to-all-mcf", "torus({0},{0})", (4, 6, 8, 12), ALL_TO_ALL),
    Series("forestcoll-lp", "dgx_a100(boxes={})", (2, 4, 8, 16)),
)
SMOKE = (
    Series("forestcoll", "dgx_a100(boxes={})", (2, 4, 8)),
    Series("ring", "torus({0},{0})", (2, 3, 4), REDUCE),
)


def measure(series: Series, size: int, sender: Connection) -> None:
    """Run one size and send its point."""
    _once(series, series.sizes[0])
    resource.setrlimit(resource.RLIMIT_AS, (LIMIT_BYTES, LIMIT_BYTES))
    begin = process_time()
    try:
        point = _once(series, size)
    except MemoryError:
        point = Point(0, ended=f"memory: more than {LIMIT_BYTES // 2**30} GiB")
    except CwbError as error:
        point = Point(0, ended=str(error))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
    sender.send(Point(point.ranks, process_time() - begin, peak, point.ended))


def _once(series: Series, size: int) -> Point:
    instance = series.instance(size)
    record = run(instance, Request(series.method, options=dict(series.options), time_limit_s=20 * LIMIT_S)).record
    right = record.verified and record.status in ("optimal", "feasible")
    return Point(
        size if series.collective is None else instance.npus,
        ended="" if right else f"{record.status}: {record.message}",
    )


def point_of(series: Series, size: int) -> Point:
    """Measure a size in a process of its own, which is ended by its limit of processor time."""
    receiver, sender = multiprocessing.get_context("spawn").Pipe(duplex=False)
    process = multiprocessing.get_context("spawn").Process(target=_measure_within_limit, args=(series, size, sender))
    process.start()
    sender.close()
    try:
        found: Point = receiver.recv()
    except EOFError:
        found = Point(0, ended=f"time: more than {LIMIT_S} s of CPU time")
    process.join()
    return found


def _measure_within_limit(series: Series, size: int, sender: Connection) -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (LIMIT_S + 15, LIMIT_S + 15))
    measure(series, size, sender)


def exponent(ranks: Sequence[int], values: Sequence[float]) -> str:
    """Slope of the logarithms by least squares."""
    if len(ranks) < 2:
        return ""
    xs, ys = [log(n) for n in ranks], [log(value) for value in values]
    x, y = sum(xs) / len(xs), sum(ys) / len(ys)
    return f"{sum((a - x) * (b - y) for a, b in zip(xs, ys, strict=True)) / sum((a - x) ** 2 for a in xs):.1f}"


def row(series: Series) -> tuple[str, ...]:
    """Measure a series, and give a row of the table."""
    points: list[Point] = []
    ended = ""
    for size in series.sizes:
        point = point_of(series, size)
        if point.ended:
            ended = f"{series.network.format(size)}: {point.ended}"
            break
        points.append(point)
        if point.seconds > LIMIT_S:
            ended = f"{point.ranks:,} ranks: more than {LIMIT_S} s of CPU time"
            break
    slow = [point for point in points if point.seconds >= 0.1][-3:]
    base = points[0].mebibytes if points else 0.0
    large = [point for point in points if point.mebibytes >= base + 20][-3:]
    return (
        f"`{series.label}`",
        f"`{series.network.format('n')}`",
        ", ".join(f"{point.ranks:,}:\N{NO-BREAK SPACE}{point.seconds:.2f}" for point in points),
        exponent([point.ranks for point in slow], [point.seconds for point in slow]),
        f"{points[-1].mebibytes:,.0f}" if points else "",
        exponent([point.ranks for point in large], [point.mebibytes - base for point in large]),
        ended.replace("|", "/").partition("\n")[0][:160],
    )


def main() -> None:
    """Measure the series, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--only", nargs="+", metavar="METHOD", help="these methods alone")
    parser.add_argument("--page", type=Path, help="write the table into this page")
    parser.add_argument("--smoke", action="store_true", help="two small series")
    asked = parser.parse_args()
    chosen = SMOKE if asked.smoke else [one for one in SERIES if not asked.only or one.method in asked.only]
    lines = [f"| {' | '.join(HEADINGS)} |", "|---" * len(HEADINGS) + "|"]
    print("\n".join(lines), flush=True)
    for series in chosen:
        lines.append(f"| {' | '.join(row(series))} |")
        print(lines[-1], flush=True)
    if asked.page is not None:
        before, rest = asked.page.read_text(encoding="utf-8").split(MARKS[0])
        after = rest.split(MARKS[1])[1]
        table = "\n".join(lines)
        asked.page.write_text(f"{before}{MARKS[0]}\n\n{table}\n\n{MARKS[1]}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
