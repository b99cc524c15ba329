"""Graphs that NCCL's own search finds on random machines, and what follows, from its own code and from cwb.

    python benchmarks/peers/nccl_search.py --nccl CHECKOUT --headers FOLDER --cases 10000

``CHECKOUT`` is a clone of NVIDIA/nccl with its tags. Of each version, ``src/graph/*.cc`` are compiled as they are, with
``nccl_graphs.cc`` in place of the rest; no GPU takes part. ``FOLDER`` has CUDA's headers, as for ``nccl_tuning.py``.

A machine is a file as NCCL writes it (``NCCL_TOPO_DUMP_FILE``), for one box, and a number of such boxes. NCCL reads and
searches it; cwb imports it (``cwb import nccl``) and predicts a collective of a size. Compared are the graphs of rings,
trees and NVLS (channels, and GB/s within and between boxes), the order of the first ring, the choice of algorithm and
protocol, and the time of NCCL's choice. Of the machine, cwb is told what no instance says: the processor's maker and
the way to the NICs (options ``cpu`` and ``near_nics``).
"""

from __future__ import annotations

import argparse
import subprocess
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from math import isclose
from pathlib import Path
from random import Random
from statistics import median
from tempfile import TemporaryDirectory
from typing import NamedTuple

from cwb.core.collective import Collective, Demand
from cwb.core.errors import InputError
from cwb.exchange.box import Layout
from cwb.exchange.link_rates import Rates
from cwb.exchange.nccl_topology import import_nccl
from cwb.heuristics.nccl.constants import Algorithm, Protocol
from cwb.heuristics.nccl.method import NcclOptions, Prediction, prediction
from cwb.heuristics.nccl.model import COLLECTIVES
from cwb.instances.loader import from_data
from nccl_tuning import PRECISION, compile_files

VERSIONS = ("2.23.4", "2.27.3", "2.29.7", "2.30.7")  # the interfaces of older ones differ
PARTS = ("topo", "paths", "search", "connect", "rings", "trees", "xml", "tuning")
CALLS = 100  #: Cases of a machine.
SWITCH, GPU, NIC = "0x060400", "0x030200", "0x020700"
GENERATIONS = {
    "volta": (70, 6, "8.0"),
    "ampere": (80, 12, "16.0"),
    "hopper": (90, 18, "32.0"),
    "blackwell": (100, 18, "32.0"),
}
CUBE = {
    (0, 1): 1,
    (0, 2): 1,
    (0, 3): 2,
    (1, 2): 2,
    (1, 3): 1,
    (2, 3): 1,
    (4, 5): 1,
    (4, 6): 1,
    (4, 7): 2,
    (5, 6): 2,
    (5, 7): 1,
    (6, 7): 1,
    (0, 4): 2,
    (1, 5): 2,
    (2, 6): 2,
    (3, 7): 2,
}  # the hybrid cube mesh of V100


class Shape(NamedTuple):
    """A machine that was drawn."""

    kind: str  #: ``nvswitch``, ``mesh``, ``cube`` or ``pcie``.
    gpu: str
    gpus: int
    sockets: int
    per_switch: int  #: GPUs of a PCIe switch; 0 if they are at the processor.
    nics: int
    nic_mbps: int
    cpu: str
    boxes: int
    latency_us: float

    def text(self) -> str:
        """Write a box as NCCL dumps it."""
        sm, links, speed = GENERATIONS[self.gpu]
        vendor = "AuthenticAMD" if self.cpu == "amd" else "GenuineIntel"
        lines = ['<system version="1">']
        groups: list[list[int]] = []
        size = self.per_switch or self.gpus
        for socket in range(self.sockets):
            own = [g for g in range(self.gpus) if g * self.sockets // self.gpus == socket]
            lines.append(
                f'<cpu host_hash="0x0" numaid="{socket}" affinity="ffffffff" arch="x86_64" vendor="{vendor}" '
                f'familyid="6" modelid="143">'
            )
            parts = [own[i : i + size] for i in range(0, len(own), size)]
            for part in parts:
                number = len(groups) + 1
                nics = [n for n in range(self.nics) if part[0] <= n * self.gpus // self.nics <= part[-1]]
                inside = [self._gpu(g, sm, links, speed) for g in part] + [self._nic(n, speed) for n in nics]
                if self.per_switch:
                    bus = f"0000:{number:02x}:00.0"
                    lines.append(f'<pci busid="{bus}" class="{SWITCH}" link_speed="{speed} GT/s PCIe" link_width="16">')
                    inside.append("</pci>")
                lines += inside
                groups.append(part)
            lines.append("</cpu>")
        return "\n".join([*lines, "</system>"])

    def _gpu(self, g: int, sm: int, links: int, speed: str) -> str:
        inside = ""
        if self.kind == "nvswitch":
            inside = f'<nvlink target="0000:fe:00.0" count="{links}" tclass="0x068000"/>'
        elif self.kind in ("mesh", "cube"):
            pairs = (
                CUBE
                if self.kind == "cube"
                else {(i, j): links // (self.gpus - 1) for j in range(self.gpus) for i in range(j)}
            )
            for (i, j), count in pairs.items():
                if g in (i, j):
                    inside += (
                        f'<nvlink target="0000:{0x40 + i + j - g:02x}:00.0" count="{count}" tclass="{GPU[:4]}0200"/>'
                    )
        return (
            f'<pci busid="0000:{0x40 + g:02x}:00.0" class="{GPU}" link_speed="{speed} GT/s PCIe" link_width="16">'
            f'<gpu dev="{g}" sm="{sm}" rank="{g}" gdr="1">{inside}</gpu></pci>'
        )

    def _nic(self, n: int, speed: str) -> str:
        return (
            f'<pci busid="0000:{0x80 + n:02x}:00.0" class="{NIC}" link_speed="{speed} GT/s PCIe" link_width="16"><nic>'
            f'<net name="mlx5_{n}" dev="{n}" speed="{self.nic_mbps}" port="1" latency="{self.latency_us}" '
            f'guid="0x{n + 1:x}" maxconn="131072" gdr="1"/></nic></pci>'
        )


def draw(random: Random, version: str) -> Shape:
    """Draw a machine: one of the kinds that are sold, in any number of GPUs, NICs and boxes."""
    kind = random.choice(["nvswitch", "nvswitch", "nvswitch", "mesh", "cube", "pcie"])
    modern = [gpu for gpu in GENERATIONS if gpu != "blackwell" or version >= "2.27"]
    gpu = {"cube": "volta"}.get(kind) or random.choice(modern if kind == "nvswitch" else modern[:3])
    gpus = {"nvswitch": random.choice([2, 4, 8, 8, 8]), "mesh": random.choice([2, 3, 4]), "cube": 8}.get(
        kind, random.choice([2, 4, 8])
    )
    sockets = random.choice([1, 2]) if gpus % 2 == 0 else 1
    per_switch = random.choice([0, 1, 2, 4])
    nics = random.choice([n for n in (1, 2, 4, 8, 16) if n <= 2 * gpus and n <= 16])
    return Shape(
        kind,
        gpu,
        gpus,
        sockets,
        min(per_switch, gpus),
        nics,
        random.choice([25_000, 100_000, 200_000, 400_000, 800_000]),
        random.choice(["intel", "amd"]),
        random.choice([1, 1, 2, 2, 3, 4, 8]),
        random.choice([0.0, 0.0, 5.0, 35.0]),
    )


class Channels(NamedTuple):
    """A graph."""

    channels: int
    intra: float
    inter: float
    through_one_gpu: bool


class Answer(NamedTuple):
    """Answer of NCCL: three graphs, whether LL128 is safe, the first ring, channels, and times by call."""

    graphs: dict[str, Channels]
    near_nics: bool
    ring: tuple[int, ...]
    channels: int
    times: list[list[float]]

    @classmethod
    def read(cls, line: str) -> Answer:
        """Read a line of ``nccl_graphs.cc``."""
        *graphs, channels = line.split("|")[:4]
        found: dict[str, Channels] = {}
        for name, text in zip(("ring", "tree", "nvls"), graphs, strict=True):
            count, intra, inter, _, near, _, one, order = text.split()
            found[name] = Channels(int(count), float(intra), float(inter), one == "1")
            if name == "ring":
                safe, ring = near == "1", tuple(map(int, order.split(",")))
        times = [list(map(float, words.split())) for words in line.split("|")[4:-1]]
        return cls(found, safe, ring, int(channels), times)


def graph_differences(found: Prediction, answer: Answer) -> Iterator[str]:
    """Name the graphs that differ; in a box that is alone, GB/s between boxes mean nothing."""
    alone = found.machine.nodes == 1
    for name, graph in answer.graphs.items():
        own = found.machine.graphs.get(Algorithm(name))
        ours, theirs = Channels(0, 0, 0, False) if own is None else Channels(*own[:4]), graph
        if alone:
            ours, theirs = (
                ours._replace(inter=0, through_one_gpu=False),
                theirs._replace(inter=0, through_one_gpu=False),
            )
        if name != "tree":
            ours, theirs = ours._replace(through_one_gpu=False), theirs._replace(through_one_gpu=False)
        if (ours.channels or theirs.channels) and not all(
            isclose(a, b, rel_tol=PRECISION) for a, b in zip(ours, theirs, strict=True)
        ):
            yield name


def cells(version: str) -> list[tuple[Algorithm, Protocol]]:
    """Return algorithms and protocols in the order of the answers."""
    count = 6 if version < "2.23" else 7
    return [(algorithm, protocol) for algorithm in list(Algorithm)[:count] for protocol in Protocol]


def predict(shape: Shape, file: Path, version: str, call: Collective, answer: Answer) -> Prediction:
    """Import the machine and predict a collective on it."""
    data = import_nccl(file, Layout(boxes=shape.boxes, rails=True), Rates())
    posed = from_data(data, file.stem).with_changes(demand=Demand(call, Fraction(2**30)))
    options = NcclOptions(
        version=version, gpu=shape.gpu, cpu=shape.cpu, near_nics=answer.near_nics, net_latency_us=shape.latency_us
    )
    return prediction(posed, options)


class Result(NamedTuple):
    """A case: which graphs differ, whether the choice is the same, and our time over NCCL's."""

    kind: str
    boxes: int
    different: tuple[str, ...]
    same_ring: bool
    same_choice: bool
    ratio: float


def compare(shape: Shape, file: Path, version: str, calls: list[tuple[Collective, int]], line: str) -> Iterator[Result]:
    """Compare the cases of a machine."""
    answer = Answer.read(line)
    known: dict[Collective, Prediction] = {}
    for (call, size), times in zip(calls, answer.times, strict=True):
        if call not in known:
            known[call] = predict(shape, file, version, call, answer)
        found = known[call]
        of = {cell: 1e-6 * time for cell, time in zip(cells(version), times, strict=True) if time >= 0}
        choice = min(of, key=of.__getitem__)
        pick = found.pick(size)
        assert pick is not None
        same = (pick.algorithm, pick.protocol) == choice or isclose(pick.seconds, of[choice], rel_tol=PRECISION)
        order = found.rings.channels[0][0].order
        ring = order == answer.ring or tuple(reversed(order[1:])) == answer.ring[1:]
        different = tuple(graph_differences(found, answer))
        yield Result(shape.kind, shape.boxes, different, ring, same, pick.seconds / of[choice])


def table_rows(results: list[Result]) -> Iterator[str]:
    """Write a row for each kind of machine, and one for all."""
    for kind in ("nvswitch", "mesh", "cube", "pcie", "all"):
        own = [one for one in results if kind in (one.kind, "all")]
        if own:
            parts = [sum(name not in one.different for one in own) for name in ("ring", "tree", "nvls")]
            parts += [sum(not one.different for one in own), sum(one.same_choice for one in own)]
            parts += [sum(isclose(one.ratio, 1, rel_tol=PRECISION) for one in own)]
            parts += [sum(abs(one.ratio - 1) <= 0.1 for one in own)]
            yield f"| {kind} | {len(own):,} | " + " | ".join(f"{100 * part / len(own):.0f} %" for part in parts) + " |"


def main() -> None:
    """Compare all versions."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--nccl", type=Path, required=True, help="a clone of NVIDIA/nccl")
    parser.add_argument("--headers", type=Path, required=True, help="a folder with CUDA's headers")
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--verbose", action="store_true", help="print machines whose graphs differ")
    given = parser.parse_args()
    results: list[Result] = []
    missing: Counter[str] = Counter()
    random = Random(given.seed)  # noqa: S311 - cases are drawn
    for version in VERSIONS:
        with TemporaryDirectory() as name:
            folder = Path(name)
            parts = [f"graph/{part}.cc" for part in PARTS]
            program = compile_files(given.nccl, given.headers, version, folder, "nccl_graphs.cc", parts)
            for number in range(given.cases // len(VERSIONS) // CALLS):
                shape, file = draw(random, version), folder / f"box{number}.xml"
                file.write_text(shape.text())
                calls = [(random.choice(COLLECTIVES), int(2 ** random.uniform(10, 34))) for _ in range(CALLS)]
                words = [f"{COLLECTIVES.index(call)}:{size}" for call, size in calls]
                line = subprocess.run(
                    [program],
                    input=f"{file} {shape.boxes} {' '.join(words)}\n",
                    capture_output=True,
                    text=True,
                    check=True,
                ).stdout.strip()
                if "failed" in line:
                    missing[f"NCCL {line[line.index('failed') :]}"] += CALLS
                    continue
                try:
                    found = list(compare(shape, file, version, calls, line))
                except InputError as error:
                    missing[f"cwb: {error.problem}"] += CALLS
                    continue
                results += found
                if given.verbose and found[0].different:
                    print(version, shape, *found[0].different, flush=True)
        print(f"NCCL {version}: {len(results):,} cases so far", flush=True)
    print("| machines | cases | rings | trees | NVLS | all graphs | choice | time | within 10 % |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|---:|")
    print("\n".join(table_rows(results)))
    alike = [one for one in results if not one.different]
    exact = sum(isclose(one.ratio, 1, rel_tol=PRECISION) for one in alike)
    print(f"same graphs: {exact:,} of {len(alike):,} times are the same")
    print(
        f"first rings in the same order: {sum(one.same_ring for one in results):,}; without an answer: {dict(missing)}"
    )
    print(f"median of the larger over the smaller time: {median(max(one.ratio, 1 / one.ratio) for one in results):.3f}")


if __name__ == "__main__":
    main()
