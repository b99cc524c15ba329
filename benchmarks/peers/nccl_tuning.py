"""NCCL's choices and times, from its own code and from cwb, on random machines, collectives and sizes.

    python benchmarks/peers/nccl_tuning.py --nccl CHECKOUT --headers FOLDER --cases 10000

``CHECKOUT`` is a clone of NVIDIA/nccl with its tags. Of each version, ``src/graph/tuning.cc`` is compiled as it is,
with ``nccl_times.cc`` in place of the rest; no GPU takes part. ``FOLDER`` has CUDA's headers: ``pip download --no-deps
nvidia-cuda-runtime-cu12 nvidia-cuda-nvcc-cu12 nvidia-cuda-cccl-cu12 nvidia-nvtx-cu12``, unpacked.

A case is one machine with a random graph for each algorithm, a collective and a size. Every algorithm's and protocol's
time must be the same to the precision of NCCL's 32-bit numbers, and so must the choice, unless its time is within that
precision of another's. What differs is printed. The table of ``tuning.cc`` is restricted as in ``src/enqueue.cc``,
which does not compile alone: in a box of more than 32 GPUs, NVLS is for an all-reduce only. ``--store CSV`` writes some
cases, for the test of the model.

For 2.30.7, ``src/sym_kernels.cc`` takes part in the same way: the symmetric kernel that NCCL takes, its SMs and its
time are compared too.
"""

from __future__ import annotations

import argparse
import io
import re
import subprocess
import tarfile
from collections import Counter
from collections.abc import Iterator, Sequence
from math import isclose
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import NamedTuple

from cwb.core.collective import Collective
from cwb.heuristics.nccl import model
from cwb.heuristics.nccl.constants import GENERATIONS, TUNINGS, Algorithm, Protocol, Tuning
from cwb.heuristics.nccl.symmetric import choose_symmetric

CAPABILITIES = dict(zip(GENERATIONS, (70, 80, 90, 100), strict=True))
CALLS = model.COLLECTIVES  # in NCCL's order
PRECISION = 1e-5
SYMMETRIC = "2.30.7"
#: Versions with ``src/graph/tuning.cc``; from 2.31 on, the model is in other files.
VERSIONS = {version: tuning for version, tuning in TUNINGS.items() if tuning.version < (2, 31)}


class Case(NamedTuple):
    """A call on a machine."""

    machine: model.Machine
    collective: Collective
    size: int
    nic_GBps: float

    def line(self) -> str:
        """Write the case for ``nccl_times.cc``."""
        one = self.machine
        tree = one.graphs[Algorithm.TREE]
        flags = [CAPABILITIES[one.gpu], one.cpu == "amd", one.nvlink, one.near_nics, one.collnet, tree.through_one_gpu]
        words: list[object] = [
            one.ranks,
            one.nodes,
            *map(int, flags),
            one.net_us,
            self.nic_GBps,
            CALLS.index(self.collective),
            self.size,
        ]
        for algorithm in Algorithm:
            words += one.graphs.get(algorithm, (0, 0, 0))[:3]
        return " ".join(map(str, words))


def draw(random: Random, tuning: Tuning) -> Case:
    """Draw a machine that the version knows, with a graph for every algorithm that such a machine can have."""
    known = 2 if tuning.version < (2, 20) else 3 if tuning.version < (2, 27) else 4
    gpu = random.choice(GENERATIONS[:known])
    nodes = random.choice([1, 1, 2, 2, 3, 4, 8, 16, 32, 100])
    per_node = random.choice([1, 2, 4, 8, 8, 16] if nodes > 1 else [2, 3, 4, 8, 16, 72])
    modern = gpu in ("hopper", "blackwell")
    through_one = random.random() < 0.3
    collnet = nodes > 1 and per_node <= 8 and random.random() < 0.3
    wanted = [Algorithm.TREE, Algorithm.RING]
    wanted += [Algorithm.COLLNET_DIRECT, Algorithm.COLLNET_CHAIN] * collnet
    wanted += [Algorithm.NVLS, Algorithm.NVLS_TREE] * (modern and per_node > 2)
    wanted += [Algorithm.PAT]
    graphs = {
        algorithm: model.Graph(
            random.randint(1, 24),
            random.choice([3.0, 12.0, 20.0, 24.0, 40.0, 48.0, 60.0, 90.0]),
            random.choice([3.0, 6.0, 12.0, 24.0, 48.0]),
            through_one,
        )
        for algorithm in wanted
    }
    if tuning.version < (2, 17):
        graphs = {a: graph for a, graph in graphs.items() if a.value in ("tree", "ring", "collnet-direct")}
    machine = model.Machine(
        ranks=nodes * per_node,
        nodes=nodes,
        gpu=gpu,
        graphs=graphs,
        cpu=random.choice(["intel", "amd"]),
        nvlink=random.random() < 0.8 or modern,
        near_nics=random.random() < 0.8,
        net_us=random.choice([0.0, 1.5, 5.0]),
        collnet=collnet,
    )
    return Case(
        machine, random.choice(CALLS), int(2 ** random.uniform(0, 37)), random.choice([12.5, 25.0, 50.0, 100.0])
    )


def compile_files(
    checkout: Path, headers: Path, version: str, folder: Path, driver: str, parts: Sequence[str], *words: str
) -> Path:
    """Compile files of NCCL at a version with a driver beside this file; what nothing calls may be missing."""
    tag = subprocess.run(
        ["git", "-C", checkout, "archive", f"v{version}-1", "src"], capture_output=True, check=True
    ).stdout
    with tarfile.open(fileobj=io.BytesIO(tag)) as archive:
        archive.extractall(folder, filter="data")
    source = folder / "src"
    major, minor, patch = version.split(".")
    values = {"Major": major, "Minor": minor, "Patch": patch, "Suffix": ""}
    values["Version"] = f"{int(major) * 10000 + int(minor) * 100 + int(patch)}"
    text = re.sub(r"\$\{nccl:(\w+)\}", lambda found: values[found[1]], (source / "nccl.h.in").read_text())
    (folder / "nccl.h").write_text(text)
    include = [folder, source / "include", source / "include" / "plugin", source, source / "graph"]
    include += sorted(headers.glob("nvidia/*/include"))
    program = folder / "program"
    files = [Path(__file__).with_name(driver), *(source / part for part in parts)]
    command = ["g++", "-std=c++17", "-O1", "-w", "-DNCCL_OS_LINUX", *(f"-I{path}" for path in include), *files]
    lazy = ["-no-pie", "-Wl,--unresolved-symbols=ignore-all", "-Wl,-z,lazy"]
    subprocess.run(list(map(str, [*command, *words, *lazy, "-o", program, "-ldl"])), check=True)
    return program


def compile_times(checkout: Path, headers: Path, version: str, folder: Path) -> Path:
    """Compile NCCL's model of a version."""
    parts, words = ["graph/tuning.cc"], []
    if version == SYMMETRIC:
        parts.append("sym_kernels.cc")
        words.append("-DSYMMETRIC")
    return compile_files(checkout, headers, version, folder, "nccl_times.cc", parts, *words)


def differences(case: Case, tuning: Tuning, answer: list[str]) -> Iterator[str]:
    """Compare all times, then the choices."""
    old = tuning.version < (2, 17)
    algorithms = list(Algorithm)[: 3 if old else 6 if tuning.version < (2, 23) else 7]
    cells = [(algorithm, protocol) for algorithm in algorithms for protocol in Protocol]
    theirs = {cell: 1e-6 * time for cell, time in zip(cells, map(float, answer), strict=True) if time >= 0}
    if case.machine.per_node > 32 and case.collective is not Collective.ALL_REDUCE:
        theirs.pop((Algorithm.NVLS, Protocol.SIMPLE), None)
    table = model.table(case.machine, tuning, case.collective)
    times = {cell: model.seconds(case.machine, tuning, table, cell, case.size) for cell in table}
    ours = {cell: time for cell, time in times.items() if time is not None}
    for cell in cells:
        if cell not in theirs or cell not in ours:
            if (cell in theirs) != (cell in ours):
                yield f"{cell[0].value} {cell[1].value} {'only NCCL' if cell in theirs else 'only cwb'}"
        elif not isclose(theirs[cell], ours[cell], rel_tol=PRECISION):
            yield f"{cell[0].value} {cell[1].value} time"
    if theirs and ours:
        choice = min(cells, key=lambda cell: theirs.get(cell, float("inf")))
        pick = model.choose(case.machine, tuning, table, case.size)
        assert pick is not None
        if (pick.algorithm, pick.protocol) != choice and not isclose(pick.seconds, theirs[choice], rel_tol=PRECISION):
            yield "choice"


def symmetric_differences(case: Case, tuning: Tuning, kernel: str, sms: str, time_us: str) -> Iterator[str]:
    """Compare the symmetric kernel."""
    pick = choose_symmetric(case.machine, tuning, case.collective, case.size, case.nic_GBps)
    if pick is None or kernel == "Unknown":
        if (pick is None) != (kernel == "Unknown"):
            yield f"{kernel} only {'NCCL' if pick is None else 'cwb'}"
        return
    # NCCL gives this kernel's time in seconds where it has microseconds for all others
    unit = 1.0 if kernel == "AllGather_RailRing_LsaSTMC" else 1e-6
    if (pick.kernel, pick.sms) != (kernel, int(sms)):
        yield f"{kernel} {sms} is {pick.kernel} {pick.sms}"
    elif not isclose(pick.seconds, float(time_us) * unit, rel_tol=PRECISION):
        yield f"{kernel} time"


def main() -> None:
    """Compare all versions."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--nccl", type=Path, required=True, help="a clone of NVIDIA/nccl")
    parser.add_argument("--headers", type=Path, required=True, help="a folder with CUDA's headers")
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--store", type=Path, help="write 20 cases of each version, 60 of the last, with all times in us"
    )
    given = parser.parse_args()
    rows = ["version,case,times_us_and_kernel"]
    print("| NCCL | cases | times | symmetric kernels | different |\n|---|---:|---:|---:|---:|")
    for version, tuning in VERSIONS.items():
        random = Random(given.seed)  # noqa: S311 - cases are drawn
        cases = [draw(random, tuning) for _ in range(given.cases // len(VERSIONS) + 1)]
        with TemporaryDirectory() as folder:
            program = compile_times(given.nccl, given.headers, version, Path(folder))
            text = "".join(f"{case.line()}\n" for case in cases)
            answers = subprocess.run([program], input=text, capture_output=True, text=True, check=True).stdout
        lines = [line.split() for line in answers.splitlines()]
        kernels = [line[-3:] for line in lines] if version == SYMMETRIC else []
        times = [line[: len(line) - 3 * bool(kernels)] for line in lines]
        rows += [
            f"{version},{case.line()},{' '.join(line)}"
            for case, line in list(zip(cases, lines, strict=True))[: 60 if kernels else 20]
        ]
        found: Counter[str] = Counter()
        first: dict[str, Case] = {}
        for case, one in zip(cases, times, strict=True):
            for difference in differences(case, tuning, one):
                found[difference] += 1
                first.setdefault(difference, case)
        for case, kernel in zip(cases, kernels, strict=bool(kernels)):
            for difference in symmetric_differences(case, tuning, *kernel):
                found[difference] += 1
                first.setdefault(difference, case)
        compared = sum(float(time) >= 0 for one in times for time in one)
        chosen = sum(kernel != "Unknown" for kernel, _, _ in kernels)
        print(f"| {version} | {len(cases):,} | {compared:,} | {chosen:,} | {found.total():,} |", flush=True)
        for difference, count in found.most_common():
            print(f"  {count} {difference}: {first[difference]}")
    if given.store:
        given.store.write_text("\n".join(rows) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
