"""Times of exported schedules in simulators that others wrote, beside those of ``cwb simulate``.

    python benchmarks/validators/compare.py --loggopsim FOLDER --astra PROGRAM --htsim PROGRAM --atlahs FOLDER -o x.csv

A schedule is solved, written to a file, exported, and run unmodified. Where the times differ by over 1 %, reruns find
the difference of the models that is the cause. README.md beside this file says how each program is got and built. One
that is not named or not there is left out, with a line on stderr. The tables of the page are on stdout;
``--table CSV`` prints them of a file with results alone.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import re
import subprocess
import sys
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import astuple, dataclass, fields, replace
from fractions import Fraction
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import cwb
import numpy as np
from cwb.core.equal_steps import TranslatedTrees
from cwb.core.errors import CwbError
from cwb.core.instance import Instance
from cwb.core.schedule import Schedule, StepSchedule
from cwb.core.topology import NodeKind, Topology
from cwb.core.trace import Trace
from cwb.core.trees import TreeOrbits, TreePacking
from cwb.exchange.chakra.files import read_trace
from cwb.schedules.files import read_schedule

sys.path.append(str(Path(__file__).parent))

from first_come import first_come_s

COLLECTIVES = ("all_gather", "reduce_scatter", "all_reduce", "all_to_all", "broadcast", "reduce", "gather", "scatter")
METHODS = (
    *("ring", "direct", "rhd", "bruck", "bine", "dbt", "knomial"),
    *("forestcoll", "multitree", "pccl", "tacos", "spff"),
)
SIZES = ("60 KiB", "1 MB", "12 MiB")
TREES = TreePacking, TreeOrbits, TranslatedTrees
PIECES = 8  #: Of trees: with many small ones, the rounding of the other programs adds up.
SECONDS = 300
NEAR = 0.01  #: Largest relative difference of times that agree.

#: Differences of the models, as results name them.
ROUNDED, PORTS, TIES, PACKETS = "whole ns", "order at a switch", "order of ties", "packets"
LARGER, ORDERS, ROUNDS = 1000, 32, 6


@dataclass(frozen=True)
class Row:
    """Times of a schedule in a simulator and in cwb, in ns; ``export`` is the digest of the exported files.

    If the two differ by over 1 %, ``cause`` names a difference of the models, and ``without_ns`` is the time of a rerun
    without it: see :func:`explain`.
    """

    simulator: str
    commit: str
    network: str
    collective: str
    size: str
    method: str
    export: str
    simulated_ns: int
    cwb_ns: float
    cause: str = ""
    without_ns: float | None = None

    @property
    def error(self) -> float:
        """Relative difference of the other simulator's time."""
        return self.simulated_ns / self.cwb_ns - 1

    @property
    def is_explained(self) -> bool:
        """True if the times agree within 1 %, or if the rerun without the named difference agrees with one of them."""
        reruns = [] if self.without_ns is None else [self.without_ns / self.cwb_ns, self.without_ns / self.simulated_ns]
        return any(abs(ratio - 1) <= NEAR for ratio in (1 + self.error, *reruns))


def export_goal(file: Path, folder: Path, pieces: int | None) -> str:
    """Write GOAL text, and return its digest."""
    return digest([str(cwb.export_goal(file, output=folder / "s.goal", pieces=pieces).content)])


def export_astra(file: Path, folder: Path, pieces: int | None) -> str:
    """Write the folder of ASTRA-sim, and return the digest of all its files."""
    cwb.export_astra(file, output=folder / "run", pieces=pieces)
    return digest(path.read_bytes().hex() for path in sorted((folder / "run").rglob("*.*")))


def export_htsim(file: Path, folder: Path, pieces: int | None) -> str:
    """Write a connection matrix, and return its digest."""
    return digest([str(cwb.export_htsim(file, output=folder / "s.cm", pieces=pieces).content)])


def digest(parts: Iterable[str]) -> str:
    """Return the first 16 digits of a digest."""
    return hashlib.sha256("".join(parts).encode()).hexdigest()[:16]


def run_loggopsim(program: Path, folder: Path) -> int:
    """Run LogGOPSim on the port of a switch: 1 ns per byte, and 4 us from rank to rank."""
    call([program / "txt2bin", "-i", "s.goal", "-o", "s.bin"], folder)
    model = ["-L", "4000", "-o", "0", "-g", "0", "-G", "1", "-O", "0", "-S", "2000000000"]  # never a rendezvous
    return latest(
        r"(?:Host \d+:|finishing time at host \d+:) (\d+)", call([program / "LogGOPSim", "-f", "s.bin", *model], folder)
    )


def run_astra(program: Path, folder: Path) -> int:
    """Run ASTRA-sim's analytical network with congestion."""
    options = {
        "workload": "workload/run",
        "system": "system.json",
        "network": "network.yml",
        "remote-memory": "memory.json",
    }
    words = [f"--{key}-configuration={value}" for key, value in options.items()]
    return latest(r"finished, (\d+) cycles", call([program, *words], folder / "run"))


def run_htsim(program: Path, folder: Path) -> int:
    """Run Ultra Ethernet's packet simulator on a fat tree of 16 hosts: 100 Gb/s and 1 us per link."""
    model = ["-nodes", 16, "-linkspeed", 100_000, "-hop_latency", 1, "-end", 10_000_000, "-o", "log"]
    text = call([program, "-tm", "s.cm", *model], folder)
    messages = sum("->" in line for line in (folder / "s.cm").read_text().splitlines())
    times = [round(float(time) * 1000) for time in re.findall(r"finished at ([\d.]+)", text)]
    if len(times) != messages:
        raise ValueError(f"{len(times)} of {messages} messages ended")
    return max(times)


def run_atlahs(program: Path, folder: Path) -> int:
    """Run the htsim of ATLAHS on GOAL: packets on a fat tree of 16 hosts, 100 Gb/s and 1 us per link; whole us."""
    call([program / "txt2bin", "-i", "s.goal", "-o", "s.bin"], folder)
    model = ["-linkspeed", 100_000, "-hop_latency", 1000, "-nodes", 16, "-mtu", 4096, "-q", 1_000_000, "-seed", 4]
    routes = ["-strat", "ecmp_host", "-paths", 128]
    text = call([program / "htsim_uec", "-goal", "s.bin", "-lgs_flow_stats", *model, *routes], folder)
    sends = sum(": send " in line for line in (folder / "s.goal").read_text().splitlines())
    ends = re.findall(r"^F \d+ - ST \d+ - ET (\d+)", text, re.MULTILINE)
    if len(ends) != sends:
        raise ValueError(f"{len(ends)} of {sends} messages ended")
    return max(map(int, ends)) * 1000


def call(words: list[object], folder: Path) -> str:
    """Return what a program prints."""
    done = subprocess.run(
        list(map(str, words)), cwd=folder, capture_output=True, text=True, timeout=SECONDS, check=True
    )
    return done.stdout


def latest(pattern: str, text: str) -> int:
    """Return the largest number that a pattern finds."""
    found = [int(number) for number in re.findall(pattern, text)]
    if not found:
        raise ValueError(f"no time in: {text[-200:]}")
    return max(found)


@dataclass(frozen=True)
class Simulator:
    """A program: its networks, the mode of cwb with the same model, its export, and how it is run."""

    commit: str
    networks: tuple[str, ...]
    mode: str
    export: Callable[[Path, Path, int | None], str]
    run: Callable[[Path, Path], int]
    sizes: tuple[str, ...] = SIZES
    methods: tuple[str, ...] = METHODS
    routing: str | None = None
    stores: bool = True  #: If its switches can keep messages, as those of cwb's generators do.


SIMULATORS = {
    "loggopsim": Simulator(
        "76451de",
        tuple(f"switch({n}, bandwidth='1 GB/s', latency='2 us')" for n in (8, 6, 4, 16)),
        "cut-through",
        export_goal,
        run_loggopsim,
        stores=False,
    ),
    "astra": Simulator(
        "518bd51",
        tuple(f"{kind}({n})" for n in (4, 8, 6, 5, 7) for kind in ("complete", "ring", "switch")),
        "congestion-aware",
        export_astra,
        run_astra,
    ),
    "htsim": Simulator(
        "40ccb05",
        ("fat_tree(4, bandwidth='12.5 GB/s', latency='1 us')",),
        "cut-through",
        export_htsim,
        run_htsim,
        sizes=("4 MB", "32 MB"),
        methods=METHODS[:5],  # routing spray is simulated for schedules in steps
        routing="spray",
    ),
    "atlahs": Simulator(
        "8837294",
        ("fat_tree(4, bandwidth='12.5 GB/s', latency='1 us')",),
        "cut-through",
        export_goal,
        run_atlahs,
        sizes=("4 MB",),
        methods=METHODS[:5],
        routing="spray",
    ),
}


def compare(name: str, program: Path) -> Iterator[Row]:
    """Yield the times of all schedules that a simulator can express."""
    one = SIMULATORS[name]
    for network in one.networks:
        for collective in COLLECTIVES:
            for method in one.methods:
                for size in one.sizes:
                    with TemporaryDirectory() as folder:
                        found = solve(one, network, collective, method, size, Path(folder))
                        if found is None:
                            break
                        try:
                            simulated = one.run(program, Path(folder))
                        except (OSError, ValueError, subprocess.SubprocessError) as error:
                            print(f"{name} {network} {collective} {method} {size}: {error}", file=sys.stderr)
                            continue
                        row = Row(name, one.commit, network, collective, size, method, found[0], simulated, found[1])
                        if abs(row.error) > NEAR:
                            row = explain(one, program, row, Path(folder))
                    yield row


def solve(
    one: Simulator, network: str, collective: str, method: str, size: str, folder: Path, times: int = 1
) -> tuple[str, float] | None:
    """Solve and export a schedule; return the digest of the export and cwb's time in ns, or None if there is none.

    ``times`` multiplies the size and all latencies.
    """
    file = folder / "s.json"
    number, unit = size.split()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            there = network_of(one, network, times)
            run = cwb.solve(there, method, collective=collective, size=f"{int(number) * times} {unit}", output=file)
            pieces = pieces_of(read_schedule(file).answer)
            time_s = cwb.simulate(run, mode=one.mode, routing=one.routing, pieces=pieces).completion_s
            return one.export(file, folder, pieces), time_s * 1e9
    except CwbError:
        return None


def network_of(one: Simulator, network: str, times: int = 1) -> Topology:
    """Make the network of a simulator, with latencies multiplied, and switches that store only if its own do."""
    made = cwb.load(network).topology
    links = tuple(replace(link, latency_s=link.latency_s * times) for link in made.links)
    if one.stores:
        return replace(made, links=links)
    switches = {node: replace(node, buffer_bytes=Fraction(0)) for node in made.nodes if node.kind is NodeKind.SWITCH}
    return Topology(tuple(switches.get(node, node) for node in made.nodes), links)


def pieces_of(answer: object) -> int | None:
    """Return the number of pieces of every tree; None for schedules."""
    return PIECES if isinstance(answer, TREES) else None


def explain(one: Simulator, program: Path, row: Row, folder: Path) -> Row:
    """Find the difference of the models that makes the times differ, by reruns without it.

    A packet simulator has no rerun without packets. With sizes and latencies :data:`LARGER` times as large, whole
    nanoseconds do not matter. Then cwb simulates the messages in other orders, in which links serve what comes first.
    If none of them has the other time, :func:`~first_come.first_come_s` is tried. An unexplained case has no cause.
    """
    if one.routing is not None:
        return replace(row, cause=PACKETS)
    if one.export is export_astra:
        with TemporaryDirectory() as other:
            found = solve(one, row.network, row.collective, row.method, row.size, Path(other), LARGER)
            if found is not None and abs(found[1] / row.cwb_ns / LARGER - 1) < 1e-6:  # the same schedule
                without = replace(row, cause=ROUNDED, without_ns=one.run(program, Path(other)) / LARGER)
                if abs(without.without_ns / row.cwb_ns - 1) <= NEAR:
                    return without
    read = read_schedule(folder / "s.json")
    cause = PORTS if isinstance(read.answer, Schedule) and "switch" in row.network else TIES
    for time_ns in other_orders(one, row, read.instance, read.answer, folder):
        if abs(row.simulated_ns / time_ns - 1) <= NEAR:
            return replace(row, cause=cause, without_ns=time_ns)
    if one.export is export_astra and "switch" in row.network:
        time_ns = float(first_come_s(read_trace(folder / "run" / "traces"), read.instance.topology) * 10**9)
        if abs(row.simulated_ns / time_ns - 1) <= NEAR:
            return replace(row, cause=cause, without_ns=time_ns)
    return row


def other_orders(one: Simulator, row: Row, instance: Instance, answer: Any, folder: Path) -> Iterator[float]:
    """Yield cwb's times in ns if links serve messages in other orders.

    These are the orders of arrival in a schedule with times or as steps, or the order that the exported messages have
    when they are read back. Latencies that are up to a millionth longer put messages that arrive together in random
    orders.
    """
    asked = [(instance, answer)]
    pieces = pieces_of(answer)
    if isinstance(answer, Schedule):  # as steps it has an order of ties alone
        step = np.unique(np.round(answer.start_s * 1e12), return_inverse=True)[1]
        asked.append((instance, StepSchedule(instance.sha256, answer.chunks, answer.sends, step)))
    with suppress(CwbError):
        cwb.export_chakra(folder / "s.json", output=folder / "messages", pieces=pieces)
        again = cwb.import_chakra(folder / "messages", topology=row.network, collective=row.collective, size=row.size)
        asked.append((again.instance, again.schedule))
    for seed in range(ORDERS):
        chance = Random(seed)  # noqa: S311
        for one_instance, one_answer in asked:
            network = one_instance.topology
            links = [replace(a, latency_s=a.latency_s * (1 + Fraction(chance.random() / 10**6))) for a in network.links]
            here = one_instance.with_changes(network=replace(network, links=tuple(links)) if seed else network)
            sent = replace(one_answer, instance_sha256=here.sha256)
            for _ in range(ROUNDS if isinstance(sent, Schedule) else 1):
                trace = cwb.simulate(here, sent, mode=one.mode, pieces=pieces if one_answer is answer else None)
                yield trace.completion_s * 1e9
                if isinstance(sent, Schedule):
                    sent = first_come(here.topology, sent, trace, chance)


def first_come(network: Topology, sent: Schedule, trace: Trace, chance: Random) -> Schedule:
    """Give sends the times of a simulation, and those from switches the times at which their data arrived there.

    Of data that arrives together, any may be first.
    """
    start, end = trace.start_s.copy(), trace.end_s
    arrived, left = defaultdict(list), defaultdict(list)
    for send, (chunk, source, target) in enumerate(
        zip(*(sent.sends.chunk, sent.sends.source, sent.sends.target), strict=True)
    ):
        arrived[chunk, target].append(send)
        left[chunk, source].append(send)
    for chunk, node in left:
        if network.nodes[node].kind is NodeKind.SWITCH:
            first = sorted(arrived[chunk, node], key=end.__getitem__)
            for before, send in zip(first, sorted(left[chunk, node], key=start.__getitem__), strict=True):
                start[send] = end[before] * (1 + chance.random() / 10**9)
    return replace(sent, start_s=start, end_s=np.maximum(start, end))


def read(path: Path) -> list[Row]:
    """Read results."""
    kinds = {"simulated_ns": int, "cwb_ns": float, "without_ns": lambda text: float(text) if text else None}
    with path.open(encoding="utf-8", newline="") as file:
        return [Row(**{key: kinds.get(key, str)(value) for key, value in row.items()}) for row in csv.DictReader(file)]


def table(rows: list[Row]) -> Iterator[str]:
    """Yield the table of the page."""
    groups = defaultdict(list)
    for row in rows:
        groups[row.simulator, row.network.partition("(")[0]].append(row)
    yield "| simulator | network | schedules | within 0.1 % | within 1 % | shortest | longest |"
    yield "|---|---|---:|---:|---:|---:|---:|"
    for (simulator, network), some in groups.items():
        errors = [row.error for row in some]
        near = [sum(abs(error) <= most for error in errors) / len(errors) for most in (0.001, NEAR)]
        shares = " | ".join(f"{share:.1%}" for share in near)
        yield f"| {simulator} | {network} | {len(errors)} | {shares} | {min(errors):+.2%} | {max(errors):+.2%} |"


def causes(rows: list[Row]) -> Iterator[str]:
    """Yield the table of the causes of differences over 1 %."""
    groups = Counter((row.simulator, row.cause or "none found", row.method) for row in rows if abs(row.error) > NEAR)
    yield "| simulator | cause | schedules | methods |"
    yield "|---|---|---:|---|"
    for simulator, cause in dict.fromkeys(key[:2] for key in groups):
        methods = {method: count for (*key, method), count in groups.items() if key == [simulator, cause]}
        told = ", ".join(f"`{method}` {count}" for method, count in methods.items())
        yield f"| {simulator} | {cause} | {sum(methods.values())} | {told} |"


def main() -> None:
    """Run what the command line names."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--loggopsim", type=Path, help="folder of LogGOPSim and txt2bin")
    parser.add_argument("--astra", type=Path, help="AstraSim_Analytical_Congestion_Aware")
    parser.add_argument("--htsim", type=Path, help="htsim_uec")
    parser.add_argument("--atlahs", type=Path, help="folder of htsim_uec and txt2bin")
    parser.add_argument("-o", "--output", type=Path, default=Path("validators.csv"))
    parser.add_argument("--table", type=Path)
    given = parser.parse_args()
    if given.table:
        rows = read(given.table)
        print("\n".join((*table(rows), "", *causes(rows))))
        return
    with given.output.open("w", encoding="utf-8", newline="") as file:
        lines = csv.writer(file, lineterminator="\n")
        lines.writerow([field.name for field in fields(Row)])
        for name in SIMULATORS:
            program = getattr(given, name)
            if program is None or not program.exists():
                print(f"{name} is left out: {program or 'it'} is not there", file=sys.stderr)
                continue
            for row in compare(name, program.resolve()):
                lines.writerow(astuple(row))
                file.flush()
    rows = read(given.output)
    print("\n".join((*table(rows), "", *causes(rows))))


if __name__ == "__main__":
    main()
