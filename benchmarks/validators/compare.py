"""Times of exported schedules in simulators that others wrote, beside those of ``cwb simulate``.

    python benchmarks/validators/compare.py --loggopsim FOLDER --astra PROGRAM --htsim PROGRAM -o validators.csv

A schedule is solved, written to a file, exported, and run unmodified. README.md beside this file says how each program
is got and built. One that is not named or not there is left out, with a line on stderr. The table of the page is on
stdout; ``--table CSV`` prints it of a file with results alone.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import re
import subprocess
import sys
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import astuple, dataclass, fields, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import cwb
from cwb.core.equal_steps import TranslatedTrees
from cwb.core.errors import CwbError
from cwb.core.trees import TreeOrbits, TreePacking
from cwb.schedules.files import read_schedule

COLLECTIVES = ("all_gather", "reduce_scatter", "all_reduce", "all_to_all", "broadcast", "reduce", "gather", "scatter")
METHODS = (
    *("ring", "direct", "rhd", "bruck", "bine", "dbt", "knomial"),
    *("forestcoll", "multitree", "pccl", "tacos", "spff"),
)
SIZES = ("60 KiB", "1 MB", "12 MiB")
TREES = TreePacking, TreeOrbits, TranslatedTrees
PIECES = 8  #: Of trees: with many small ones, the rounding of the other programs adds up.
SECONDS = 300


@dataclass(frozen=True)
class Row:
    """Times of a schedule in a simulator and in cwb, in ns; ``export`` is the digest of the exported files.

    ``file_ns`` is cwb's time of the exported messages, read back as a schedule, if the first two differ by over 1 %.
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
    file_ns: float | None = None

    @property
    def error(self) -> float:
        """Relative difference of the other simulator's time."""
        return self.simulated_ns / self.cwb_ns - 1

    @property
    def error_of_file(self) -> float:
        """Relative difference to the nearer one of cwb's times: of the schedule, or of the exported messages."""
        read = self.error if self.file_ns is None else self.simulated_ns / self.file_ns - 1
        return min(self.error, read, key=abs)


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


SIMULATORS = {
    "loggopsim": Simulator(
        "76451de",
        tuple(f"switch({n}, bandwidth='1 GB/s', latency='2 us')" for n in (8, 6, 4, 16)),
        "cut-through",
        export_goal,
        run_loggopsim,
    ),
    "astra": Simulator(
        "518bd51",
        tuple(f"{kind}({n})" for n in (4, 8, 6, 5) for kind in ("complete", "ring", "switch")),
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
                        if abs(row.error) > 0.01 and one.routing is None:
                            row = replace(row, file_ns=time_of_file(one, row, Path(folder)))
                    yield row


def solve(
    one: Simulator, network: str, collective: str, method: str, size: str, folder: Path
) -> tuple[str, float] | None:
    """Solve and export a schedule; return the digest of the export and cwb's time in ns, or None if there is none."""
    file = folder / "s.json"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            run = cwb.solve(network, method, collective=collective, size=size, output=file)
            pieces = PIECES if isinstance(read_schedule(file).answer, TREES) else None
            time_s = cwb.simulate(run, mode=one.mode, routing=one.routing, pieces=pieces).completion_s
            return one.export(file, folder, pieces), time_s * 1e9
    except CwbError:
        return None


def time_of_file(one: Simulator, row: Row, folder: Path) -> float | None:
    """Return cwb's time in ns of the messages that are exported, which joins what passes switches and has no times."""
    file = folder / "s.json"
    pieces = PIECES if isinstance(read_schedule(file).answer, TREES) else None
    try:
        cwb.export_chakra(file, output=folder / "messages", pieces=pieces)
        found = cwb.import_chakra(folder / "messages", topology=row.network, collective=row.collective, size=row.size)
        return cwb.simulate(found.instance, found.schedule, mode=one.mode).completion_s * 1e9
    except CwbError:
        return None


def read(path: Path) -> list[Row]:
    """Read results."""
    kinds = {"simulated_ns": int, "cwb_ns": float, "file_ns": lambda text: float(text) if text else None}
    with path.open(encoding="utf-8", newline="") as file:
        return [Row(**{key: kinds.get(key, str)(value) for key, value in row.items()}) for row in csv.DictReader(file)]


def table(rows: list[Row]) -> Iterator[str]:
    """Yield the table of the page."""
    groups = defaultdict(list)
    for row in rows:
        groups[row.simulator, row.network.partition("(")[0]].append(row)
    yield "| simulator | network | schedules | within 0.1 % | within 1 % | file within 1 % | shortest | longest |"
    yield "|---|---|---:|---:|---:|---:|---:|---:|"
    for (simulator, network), some in groups.items():
        errors = [row.error for row in some]
        near = [sum(abs(error) <= most for error in errors) / len(errors) for most in (0.001, 0.01)]
        near.append(sum(abs(row.error_of_file) <= 0.01 for row in some) / len(some))
        shares = " | ".join(f"{share:.1%}" for share in near)
        yield f"| {simulator} | {network} | {len(errors)} | {shares} | {min(errors):+.2%} | {max(errors):+.2%} |"


def main() -> None:
    """Run what the command line names."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--loggopsim", type=Path, help="folder of LogGOPSim and txt2bin")
    parser.add_argument("--astra", type=Path, help="AstraSim_Analytical_Congestion_Aware")
    parser.add_argument("--htsim", type=Path, help="htsim_uec")
    parser.add_argument("-o", "--output", type=Path, default=Path("validators.csv"))
    parser.add_argument("--table", type=Path)
    given = parser.parse_args()
    if given.table:
        print("\n".join(table(read(given.table))))
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
    print("\n".join(table(read(given.output))))


if __name__ == "__main__":
    main()
