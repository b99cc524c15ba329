"""NCCL's predicted times beside measured times of GPU machines.

    python benchmarks/measured_gpus.py FOLDER -o errors.csv

FOLDER has ``gpu.csv``: results of nccl-tests and the like that others have published, with the columns source, machine,
nodes, gpus, collective, size_bytes, algbw_GBps, busbw_GBps, time_us, nccl_version and notes. A row is predicted by the
method ``nccl`` on the generator of its product. No number is fitted: rates and constants are those of data sheets, of
NCCL, and of the network plugin aws-ofi-nccl. Rows without a known product, number of GPUs, size or NCCL are counted and
left out.
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
from pathlib import Path
from statistics import median
from typing import Any

import cwb
from cwb.core.choices import NCCL_COLLECTIVES
from cwb.core.collective import Demand, collective_named
from cwb.heuristics.nccl.method import NcclOptions, Prediction, prediction

#: A box by a pattern of its product: generator, GPUs of a full box, and what part of a box is made of.
PRODUCTS = (
    (r"G[BH]300|GB200", "nvl72(racks={boxes}, gpus={gpus})", 72, ""),
    (r"GH200", "", 4, ""),
    (r"\bB200|p6-b200", "dgx_b200(boxes={boxes})", 8, "900 GB/s"),
    (r"\bH200|p5en|p5e\.", "dgx_h200(boxes={boxes})", 8, "450 GB/s"),
    (r"\bH100|\bp5\b|p5\.", "dgx_h100(boxes={boxes})", 8, "450 GB/s"),
    (r"\bA100|p4d|GPU4", "dgx_a100(boxes={boxes})", 8, "300 GB/s"),
    (r"MI300X", "mi300x(boxes={boxes})", 8, ""),
)

#: Latency in us that the plugin aws-ofi-nccl reports for machines on EFA (its src/platform-aws.cpp).
PLUGIN_US = ((r"p5en|p6|B200.*EFA", 35.0), (r"EFA|\bp5|p4d", 75.0))

#: Words of rows that NCCL did not make, or made with settings that the source calls wrong, or in a fabric that adds.
OTHERS = r"MSCCL|DeepEP|Mooncake|\(\*\)|SHARP job|with(out)? care"

#: Sizes from which on an error counts into a class, and its name.
CLASSES = ((64 * 2**20, "from 64 MiB"), (2**20, "1 to 64 MiB"), (0, "below 1 MiB"))


@dataclass(frozen=True)
class Row:
    """A measured time, with the machine that stands for it."""

    machine: str
    spec: str
    options: tuple[tuple[str, Any], ...]
    collective: str
    size: int
    measured_us: float
    version: str


@dataclass(frozen=True)
class Error:
    """A row with its prediction."""

    row: Row
    predicted_us: float
    choice: str

    @property
    def error(self) -> float:
        """Prediction over measurement, less 1."""
        return self.predicted_us / self.row.measured_us - 1

    @property
    def size_class(self) -> str:
        """Name of the class of sizes."""
        return next(name for least, name in CLASSES if self.row.size >= least)


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
    if cell["collective"] not in NCCL_COLLECTIVES:
        return "a collective that NCCL does not tune"
    if not (cell["size_bytes"] and (cell["time_us"] or cell["algbw_GBps"])):
        return "no size or no time"
    found = next((product for product in PRODUCTS if re.search(product[0], cell["machine"])), None)
    if found is None or not cell["gpus"]:
        return "no known product, or no number of GPUs"
    gpus = int(cell["gpus"])
    boxes = -(-gpus // found[2])
    spec, options = _machine(found[1], found[3], boxes, gpus // boxes, found[2], cell["machine"])
    if boxes > 1:
        latency = next((us for pattern, us in PLUGIN_US if re.search(pattern, cell["machine"])), 0.0)
        options |= {"net_latency_us": latency}
    size = int(cell["size_bytes"])
    measured = float(cell["time_us"]) if cell["time_us"] else size / float(cell["algbw_GBps"]) * 1e-3
    version = cell["nccl_version"] if re.fullmatch(r"[0-9]+\.[0-9]+\.[0-9]+", cell["nccl_version"]) else ""
    named = cell["machine"].split(" (")[0]
    return Row(named, spec, tuple(options.items()), cell["collective"], size, measured, version)


def _machine(spec: str, link: str, boxes: int, gpus: int, full: int, name: str) -> tuple[str, dict[str, Any]]:
    """Return the expression of a machine and the options that it needs."""
    if gpus == full or not link:
        return spec.format(boxes=boxes, gpus=gpus) or name, {}
    return f'rail(boxes={boxes}, per_box={gpus}, nvlink="{link}")', {"nvls": not re.search("A100", name)}


def gh200(boxes: int) -> cwb.Instance:
    """Return nodes of four GH200, six NVLinks of 25 GB/s between two, a Slingshot NIC of 200 Gb/s each."""
    from cwb.core.topology import Link, Node, Topology
    from cwb.instances.generators.boxes import bufferless, gpu

    pairs = [(gpu(b, i), gpu(b, j), 150) for b in range(boxes) for i in range(4) for j in range(4) if i != j]
    for b in range(boxes):
        pairs += [ends for i in range(4) for ends in ((gpu(b, i), "network", 25), ("network", gpu(b, i), 25))]
    nodes = (*(Node(gpu(b, i)) for b in range(boxes) for i in range(4)), bufferless("network"))
    links = tuple(Link(a, b, Fraction(rate * 10**9), Fraction(0)) for a, b, rate in pairs)
    return cwb.load("ring(4)").with_changes(network=Topology(nodes, links))


@cache
def predictor(spec: str, options: tuple[tuple[str, Any], ...], collective: str, version: str) -> Prediction:
    """Return NCCL's predictions on a machine; a version that cwb does not have is the default one."""
    chosen = dict(options) | ({"version": version} if version else {})
    instance = gh200(2) if "GH200" in spec else cwb.load(spec)
    posed = instance.with_changes(demand=Demand(collective_named(collective), Fraction(2**30)), also=())
    return prediction(posed, NcclOptions.model_validate(chosen))


def predict(row: Row) -> Error:
    """Predict a row."""
    pick = predictor(row.spec, row.options, row.collective, row.version).pick(row.size)
    assert pick is not None
    return Error(row, pick.seconds * 1e6, f"{pick.algorithm.value} {pick.protocol.value}")


def by_machine(found: Sequence[Error]) -> Iterator[str]:
    """Yield the errors of every machine at every eighth power of two that it has."""
    shown = [2**power for power in (10, 12, 15, 18, 20, 22, 24, 26, 28, 30, 33, 34)]
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
    yield "| sizes | times | median error | machines | median of their medians |"
    yield "|---|---:|---:|---:|---:|"
    for _, name in CLASSES:
        some = [one for one in found if one.size_class == name]
        each = [
            median(abs(one.error) for one in some if one.row.machine == machine)
            for machine in sorted({one.row.machine for one in some})
        ]
        if some:
            yield f"| {name} | {len(some)} | {median(abs(one.error) for one in some):.0%} | {len(each)} | " + (
                f"{median(each):.0%} |"
            )


def main() -> None:
    """Predict and print."""
    parser = argparse.ArgumentParser(description="NCCL's predicted times beside measured ones.")
    parser.add_argument("folder", type=Path, help="folder of gpu.csv")
    parser.add_argument("-o", "--output", type=Path, help="CSV file of all rows")
    given = parser.parse_args()
    rows, left = read_rows(given.folder / "gpu.csv")
    found = [predict(row) for row in rows]
    for line in (*by_machine(found), "", *summary(found), ""):
        print(line)
    print(f"{len(found)} times; left out: " + ", ".join(f"{count} with {why}" for why, count in sorted(left.items())))
    if given.output is not None:
        with given.output.open("w", encoding="utf-8", newline="") as opened:
            out = csv.writer(opened, lineterminator="\n")
            out.writerow("machine,instance,collective,bytes,measured us,predicted us,error,choice,version".split(","))
            for one in found:
                row = one.row
                times = f"{row.measured_us:.5g}", f"{one.predicted_us:.5g}", f"{one.error:.3f}"
                out.writerow([row.machine, row.spec, row.collective, row.size, *times, one.choice, row.version])


if __name__ == "__main__":
    main()
