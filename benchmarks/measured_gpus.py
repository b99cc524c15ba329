"""NCCL's predicted times beside measured times of GPU machines.

    python benchmarks/measured_gpus.py FOLDER -o errors.csv
    python benchmarks/measured_gpus.py FOLDER --fit    # overheads again, and errors on families that were left out
    python benchmarks/measured_gpus.py FOLDER --tables # launches by generation and protocol instead, left out likewise

FOLDER has ``gpu.csv``: results of nccl-tests and the like that others have published, with the columns source, machine,
nodes, gpus, collective, size_bytes, algbw_GBps, busbw_GBps, time_us, nccl_version and notes. A row is predicted by the
method ``nccl`` on the generator of its product, with the newest constants whichever version ran: they are NVIDIA's last
measurements. In NCCL's own prediction no number is fitted: rates and constants are those of data sheets, of NCCL, and
of the network plugin aws-ofi-nccl. The expected time has its six overheads (``cwb.heuristics.nccl.method``). Rows
without a known product, number of GPUs, size or NCCL are counted and left out.
"""

from __future__ import annotations

import argparse
import csv
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from math import inf, log1p
from pathlib import Path
from statistics import median
from typing import Any

import cwb
import numpy as np
from cwb.core.collective import Demand, collective_named
from cwb.heuristics.nccl.method import (
    OVERHEADS,
    Filling,
    NcclOptions,
    Overheads,
    Prediction,
    expected_seconds,
    interval,
    prediction,
)
from cwb.heuristics.nccl.model import COLLECTIVES
from numpy.typing import NDArray
from scipy.optimize import minimize

#: A machine by a pattern of its product: generator, and GPUs of a full box.
PRODUCTS = (
    (r"G[BH]300|GB200", "nvl72(racks={boxes}, gpus={gpus})", 72),
    (r"GH200", "", 4),
    (r"\bB200|p6-b200", "dgx_b200(boxes={boxes})", 8),
    (r"\bH200|p5en|p5e\.", "dgx_h200(boxes={boxes})", 8),
    (r"\bH100|\bp5\b|p5\.", "dgx_h100(boxes={boxes})", 8),
    (r"\bA100|p4d|GPU4", "dgx_a100(boxes={boxes})", 8),
    (r"MI300X", "mi300x(boxes={boxes})", 8),
)

#: Latency in us that the plugin aws-ofi-nccl reports for machines on EFA (its src/platform-aws.cpp).
PLUGIN_US = ((r"p5en|p6|B200.*EFA", 35.0), (r"EFA|\bp5|p4d", 75.0))

#: Words of rows that NCCL did not make, or made with settings that the source calls wrong, or in a fabric that adds.
OTHERS = r"MSCCL|DeepEP|Mooncake|\(\*\)|SHARP job|with(out)? care"

#: Sizes from which on an error counts into a class, and its name.
CLASSES = ((64 * 2**20, "from 64 MiB"), (2**20, "1 to 64 MiB"), (0, "below 1 MiB"))


@dataclass(frozen=True)
class Row:
    """A measured time, with the machine that stands for it; ``part`` is the number of its GPUs in a box, 0 is all."""

    machine: str
    spec: str
    part: int
    options: tuple[tuple[str, Any], ...]
    collective: str
    size: int
    measured_us: float


@dataclass(frozen=True)
class Error:
    """A row with its prediction."""

    row: Row
    nccl_us: float
    expected_us: float
    choice: str

    @property
    def error(self) -> float:
        """Expected time over measurement, less 1."""
        return self.expected_us / self.row.measured_us - 1

    @property
    def nccl_error(self) -> float:
        """NCCL's own prediction over measurement, less 1."""
        return self.nccl_us / self.row.measured_us - 1

    @property
    def size_class(self) -> str:
        """Name of the class of sizes."""
        return _class_of(self.row)


def read_rows(file: Path) -> tuple[list[Row], Counter[str]]:
    """Return the rows that can be predicted, and how many others there are, by reason."""
    kept: list[Row] = []
    left: Counter[str] = Counter()
    with file.open(encoding="utf-8", newline="") as opened:
        for cell in csv.DictReader(opened):
            found = _row(cell)
            if isinstance(found, Row):
                kept.append(found)
            else:
                left[found] += 1
    return sorted(kept, key=lambda row: (row.machine, row.collective, row.size)), left


def _row(cell: Mapping[str, str]) -> Row | str:
    """Return a row, or the reason why there is none."""
    if re.search(OTHERS, " ".join(cell.values())):
        return "not NCCL, or not as intended"
    if cell["collective"] not in {kind.name for kind in COLLECTIVES}:
        return "a collective that NCCL does not predict"
    if not (cell["size_bytes"] and (cell["time_us"] or cell["algbw_GBps"] or cell["busbw_GBps"])):
        return "no size or no time"
    found = next((product for product in PRODUCTS if re.search(product[0], cell["machine"])), None)
    if found is None or not cell["gpus"]:
        return "no known product, or no number of GPUs"
    gpus = int(cell["gpus"])
    boxes = -(-gpus // found[2])
    options: dict[str, Any] = {}
    if re.search("NVLS_ENABLE=0|NVLS off", cell["notes"]):
        options |= {"nvls": False}
    if boxes > 1:
        latency = next((us for pattern, us in PLUGIN_US if re.search(pattern, cell["machine"])), 0.0)
        options |= {"net_latency_us": latency}
    size = int(cell["size_bytes"])
    measured = float(cell["time_us"]) if cell["time_us"] else _from_bandwidth(cell, size, gpus)
    named = cell["machine"] + (", no NVLS" if options.get("nvls") is False else "")
    spec = found[1].format(boxes=boxes, gpus=gpus // boxes)
    part = 0 if spec.startswith("nvl72") else gpus // boxes % found[2]
    return Row(named, spec, part, tuple(options.items()), cell["collective"], size, measured)


def _from_bandwidth(cell: Mapping[str, str], size: int, gpus: int) -> float:
    """Return the time in us by the algorithm's or the bus bandwidth."""
    if cell["algbw_GBps"]:
        return size / float(cell["algbw_GBps"]) * 1e-3
    return size * float(collective_named(cell["collective"]).busbw_factor(gpus)) / float(cell["busbw_GBps"]) * 1e-3


def gh200(boxes: int) -> cwb.Instance:
    """Return nodes of four GH200, six NVLinks of 25 GB/s between two, a Slingshot NIC of 200 Gb/s each."""
    from cwb.core.topology import Link, Node, Topology
    from cwb.instances.generators.building import bufferless, gpu

    pairs = [(gpu(b, i), gpu(b, j), 150) for b in range(boxes) for i in range(4) for j in range(4) if i != j]
    for b in range(boxes):
        pairs += [ends for i in range(4) for ends in ((gpu(b, i), "network", 25), ("network", gpu(b, i), 25))]
    nodes = (*(Node(gpu(b, i)) for b in range(boxes) for i in range(4)), bufferless("network"))
    links = tuple(Link(a, b, Fraction(rate * 10**9), Fraction(0)) for a, b, rate in pairs)
    return cwb.load("ring(4)").with_changes(network=Topology(nodes, links))


@cache
def predictor(spec: str, part: int, options: tuple[tuple[str, Any], ...], collective: str) -> Prediction:
    """Return NCCL's predictions on a machine."""
    instance = cwb.load(spec) if spec else gh200(2)
    ranks = tuple(r for r in range(instance.npus) if r % 8 < part) if part else None
    posed = instance.with_changes(demand=Demand(collective_named(collective), Fraction(2**30), ranks=ranks), also=())
    return prediction(posed, NcclOptions.model_validate(dict(options)))


def predictor_of(row: Row) -> Prediction:
    """Return NCCL's predictions on the machine of a row."""
    return predictor(row.spec, row.part, row.options, row.collective)


def predict(row: Row, overheads: Overheads = OVERHEADS) -> Error:
    """Predict a row."""
    found = predictor_of(row)
    pick = found.pick(row.size)
    assert pick is not None
    seconds = expected_seconds(found, pick, row.size, overheads)
    return Error(row, pick.seconds * 1e6, seconds * 1e6, f"{pick.algorithm.value} {pick.protocol.value}")


def fit(rows: Sequence[Row]) -> Overheads:
    """Return the overheads of the least mean logarithmic error, cut at 0.4, with equal weights of the size classes."""
    counts = Counter(_class_of(row) for row in rows)

    def loss(x: Sequence[float]) -> float:
        if min(x) < 0:
            return inf
        errors = ((row, log1p(predict(row, _overheads(x)).error)) for row in rows)
        return sum(min(0.4, abs(error)) / counts[_class_of(row)] for row, error in errors)

    return _overheads(minimize(loss, (2, 70, 10, 260, 36, 27), method="Nelder-Mead", options={"maxiter": 150}).x)


def _overheads(x: Sequence[float]) -> Overheads:
    launch, most, half, most_links, half_links, net = x
    return Overheads(launch, Filling(most, half * 2**20), Filling(most_links, half_links * 2**20), net)


def held_out(rows: Sequence[Row]) -> list[Error]:
    """Return the errors of every family of machines with overheads that are fitted to the others."""
    families = {product[0] for product in PRODUCTS}
    found: list[Error] = []
    for family in sorted(families):
        inside = [row for row in rows if _family(row) == family]
        others = fit([row for row in rows if _family(row) != family]) if inside else OVERHEADS
        found += [predict(row, others) for row in inside]
    return found


def _family(row: Row) -> str:
    return next(pattern for pattern, *_ in PRODUCTS if re.search(pattern, row.machine))


#: Generation of a generator's GPUs, by its name.
GENERATION = (("a100", "Ampere"), ("mi300", "AMD"), ("b200|nvl72", "Blackwell"), ("", "Hopper"))


class Table:
    """Launches by group, or factors of NCCL's own time by group; losses of channels and 27 us of network for all."""

    def __init__(self, rows: Sequence[Row], groups: Sequence[str], *, factors: bool) -> None:
        bare = Overheads(0.0, Filling(0.0, 1.0), Filling(0.0, 1.0), OVERHEADS.net_us)
        found = [predict(row, bare) for row in rows]
        self.own = np.array([one.expected_us for one in found])
        self.switches = np.array([one.choice.startswith("nvls") for one in found])
        self.sizes = np.array([row.size / 2**20 for row in rows])
        self.measured = np.array([row.measured_us for row in rows])
        self.groups, self.factors = np.array(groups), factors
        self.classes = np.array([_class_of(row) for row in rows])

    def errors(self, left: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Return expected over measured times, less 1, of rows that are left out of the fit."""
        names = sorted(set(self.groups[~left]))
        at = np.array([names.index(name) if name in names else -1 for name in self.groups])  # -1: mean of the others
        weights = sum((self.classes == name) / max(((self.classes == name) & ~left).sum(), 1) for _, name in CLASSES)

        def times_of(x: NDArray[np.float64]) -> NDArray[np.float64]:
            most, half = np.where(self.switches, x[0], x[2]), np.where(self.switches, x[1], x[3])
            each = np.append(x[4:], x[4:].mean())[at]
            filled = most * self.sizes / (self.sizes + half)
            return filled + (self.own * each + OVERHEADS.launch_us if self.factors else self.own + each)

        def loss(x: NDArray[np.float64]) -> float:
            if x.min() < 0:
                return inf
            return float((weights * np.minimum(0.4, abs(np.log(times_of(x) / self.measured))))[~left].sum())

        starts = [np.array([70, 10, 260, 36, *[one] * len(names)]) for one in ((1, 1.3) if self.factors else (2, 10))]
        options = {"maxiter": 4000, "maxfev": 4000, "adaptive": True}
        best = min((minimize(loss, x, method="Nelder-Mead", options=options) for x in starts), key=lambda one: one.fun)
        return (times_of(best.x) / self.measured - 1)[left]


def tables(rows: Sequence[Row]) -> Iterator[str]:
    """Yield the median errors of left-out machines and families, by class of sizes, for launches by group."""
    generation = [next(name for pattern, name in GENERATION if re.search(pattern, row.spec)) for row in rows]
    protocol = [predict(row).choice.split()[1] for row in rows]
    both = [f"{one} {other}" for one, other in zip(generation, protocol, strict=True)]
    kinds = {"for all": [""] * len(rows), "by generation": generation, "by protocol": protocol, "by both": both}
    names = [name for _, name in CLASSES]
    yield "| fitted | " + " | ".join(f"{name}, {left}" for left in ("machine", "family") for name in names) + " |"
    yield "|---|" + "---:|" * 6
    for factors in (False, True):
        for kind, groups in kinds.items():
            cells, table = [], Table(rows, groups, factors=factors)
            for part in ([row.machine for row in rows], [_family(row) for row in rows]):
                errors = np.zeros(len(rows))
                for name in sorted(set(part)):
                    left = np.array(part) == name
                    errors[left] = table.errors(left)
                cells += [f"{np.median(abs(errors[table.classes == name])):.1%}" for name in names]
            yield f"| {'factor' if factors else 'launch'} {kind} | " + " | ".join(cells) + " |"


def _class_of(row: Row) -> str:
    return next(name for least, name in CLASSES if row.size >= least)


def by_machine(found: Sequence[Error]) -> Iterator[str]:
    """Yield the errors of every machine at every eighth power of two that it has."""
    shown = [2**power for power in (10, 15, 18, 20, 22, 24, 26, 28, 30, 32, 33, 34)]
    yield "| machine | collective | " + " | ".join(_short(size) for size in shown) + " |"
    yield "|---|---|" + "---:|" * len(shown)
    for machine, kind in sorted({(one.row.machine, one.row.collective) for one in found}):
        mine = [one for one in found if (one.row.machine, one.row.collective) == (machine, kind)]
        errors = [[one.error for one in mine if one.row.size == size] for size in shown]
        cells = [f"{100 * median(some):+.0f} %" if some else "" for some in errors]
        if any(cells):
            yield f"| {machine} | {kind} | " + " | ".join(cells) + " |"


def _short(size: int) -> str:
    unit = next(unit for unit in (30, 20, 10) if size >= 2**unit)
    return f"{size >> unit} {({30: 'GiB', 20: 'MiB', 10: 'KiB'})[unit]}"


def summary(found: Sequence[Error]) -> Iterator[str]:
    """Yield the median errors by class of sizes: over times, and over machines of their medians."""
    yield "| sizes | times | median error | NCCL's own | within the interval | machines | median of their medians |"
    yield "|---|---:|---:|---:|---:|---:|---:|"
    for _, name in CLASSES:
        some = [one for one in found if one.size_class == name]
        each = [
            median(abs(one.error) for one in some if one.row.machine == machine)
            for machine in sorted({one.row.machine for one in some})
        ]
        if some:
            ends = ((one, interval(predictor_of(one.row), one.row.size, one.expected_us)) for one in some)
            inside = sum(low <= one.row.measured_us <= high for one, (low, high) in ends)
            errors = [
                median(abs(e) for e in es) for es in zip(*((one.error, one.nccl_error) for one in some), strict=True)
            ]
            yield f"| {name} | {len(some)} | {errors[0]:.1%} | {errors[1]:.1%} | {inside / len(some):.0%} | " + (
                f"{len(each)} | {median(each):.1%} |"
            )


def main() -> None:
    """Predict and print."""
    parser = argparse.ArgumentParser(description="NCCL's predicted times beside measured ones.")
    parser.add_argument("folder", type=Path, help="folder of gpu.csv")
    parser.add_argument("-o", "--output", type=Path, help="CSV file of all rows")
    parser.add_argument("--tables", action="store_true", help="compare launches by generation and protocol")
    parser.add_argument("--fit", action="store_true", help="fit the overheads, and again without each family")
    given = parser.parse_args()
    rows, left = read_rows(given.folder / "gpu.csv")
    if given.tables:
        print(*tables(rows), sep="\n")
        return
    if given.fit:
        print(fit(rows))
        print(*summary(held_out(rows)), sep="\n")
        return
    found = [predict(row) for row in rows]
    for line in (*by_machine(found), "", *summary(found), ""):
        print(line)
    print(f"{len(found)} times; left out: " + ", ".join(f"{count} with {why}" for why, count in sorted(left.items())))
    if given.output is not None:
        with given.output.open("w", encoding="utf-8", newline="") as opened:
            out = csv.writer(opened, lineterminator="\n")
            out.writerow(
                [
                    "machine",
                    "instance",
                    "collective",
                    "bytes",
                    "measured us",
                    "NCCL us",
                    "expected us",
                    "error",
                    "choice",
                ]
            )
            for one in found:
                row = one.row
                us = (f"{value:.5g}" for value in (row.measured_us, one.nccl_us, one.expected_us))
                times = *us, f"{one.error:.3f}"
                out.writerow([row.machine, row.spec, row.collective, row.size, *times, one.choice])


if __name__ == "__main__":
    main()
