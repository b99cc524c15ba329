"""Predictions beside measured times: named MPI algorithms on real machines.

    python benchmarks/measured.py FOLDER -o docs/benchmarks/measured.csv
    python docs/images/charts.py

FOLDER has ``pico.csv``, medians of the PICO series (github:HLC-Lab/pico, MIT licence); its columns are source, machine,
nodes, gpus, collective, size_bytes, algbw_GBps, busbw_GBps, time_us, nccl_version and notes. Every row whose algorithm
cwb has is simulated (cut-through, each rank in its own steps) on one switch with as many ports as there are ranks.
A message costs 0.5 us, chosen by hand for all machines. Three numbers of every machine are fitted on every second
size: bandwidth of a port, latency, and rate of adding. The table on stdout has errors on the other sizes. The fit
has not seen them, but the form of the model was chosen with all sizes in view.
"""

from __future__ import annotations

import argparse
import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, lru_cache
from itertools import combinations
from math import exp, log2, prod
from pathlib import Path
from statistics import median

import cwb
import numpy as np
from cwb.core.budget import Budget
from cwb.core.collective import Demand, collective_named
from cwb.core.instance import Instance
from cwb.core.schedule import Chunks, StepSchedule, sends_from_lists
from cwb.core.timing import RankCosts
from cwb.core.trace import SimulationMode
from cwb.harness import registry
from cwb.schedules.simulate import simulate

#: Overhead of a message on every machine: chosen by hand after a look at these series, so a fourth number from them.
OVERHEAD_S = Fraction(1, 2 * 10**6)

COLLECTIVES = {
    "allgather": "all_gather",
    "allreduce": "all_reduce",
    "alltoall": "all_to_all",
    "bcast": "broadcast",
    "reduce_scatter": "reduce_scatter",
} | {name: name for name in ("gather", "reduce", "scatter")}

#: Whole buffers exchanged at distances that double; no method of cwb.
DOUBLING = "doubling"

#: Algorithms of the series: a pattern of the collective and the name, and the method with the same messages on a
#: switch. Variants over several ports, in segments, in separate blocks and of hidden kinds (``default``) have none.
ALGORITHMS = {
    r"(allgather|reduce_scatter|allreduce) (default-ring|ring_ompi|ring_over)": "ring",
    r"allgather (default-recursive-doubling|recursive_doubling_ompi)": "rhd",
    r"reduce_scatter (default-recursive-halving|recursive_halving_ompi)": "rhd",
    r"allreduce (rabenseifner_ompi|RECDOUB-B_CONT-\w+-0-1)": "rhd",
    r"allreduce (recursive_doubling_\w+|default-recursive_doubling|bine_lat_over|(RECDOUB|BINE)-L-\w+-0-1)": DOUBLING,
    r"(allgather|alltoall) (default-bruck|k_bruck_over|default-modified-bruck|BRUCK-LOG-\w+-0-1)": "bruck",
    r"(allgather|scatter|gather|alltoall|reduce|bcast) "
    r"(default-(basic-)?linear|linear_nb_ompi|default-simple)": "direct",
    r"(allgather|allreduce|reduce_scatter) bine_(bdw|send|permute)_(remap|static)_over": "bine",
    r"allgather (bine_send_remap_over|BINE-VEC_DOUBLING_CONT_\w+-\w+-0-1)": "bine",
    r"(allreduce BINE-B_CONT|reduce_scatter BINE-VEC_HALVING_CONT_PERMUTE|alltoall BINE-LOG)-\w+-0-1": "bine",
    r"(scatter|gather) (bine_over|binomial_ompi|default-binomial|BINE-BINOMIAL_TREE_CONT_PERMUTE-\w+-\w+-0-1)": "bine",
    r"(bcast|reduce) (default-binomial|BINE-BINOMIAL_TREE(_TMPBUF)?-\w+-0-1)": "knomial",
}

#: Sends of a schedule that is simulated at most.
MOST_SENDS = 5_000_000


@dataclass(frozen=True)
class Row:
    """A measured time, the median of many.

    ``low_us`` and ``high_us`` are the interval that the source gives; a series was measured in one configuration.
    """

    machine: str
    ranks: int
    collective: str
    algorithm: str
    method: str
    size: int
    measured_us: float
    low_us: float
    high_us: float
    series: str

    @property
    def is_fitted(self) -> bool:
        """True for every second size, counted from 4 bytes in steps of eight times."""
        return round(log2(self.size / 4) / 3) % 2 == 0

    @property
    def task(self) -> tuple[int, str, str]:
        """Key of a schedule up to its size."""
        return self.ranks, self.collective, self.method


@dataclass(frozen=True)
class Machine:
    """The fitted numbers of a machine; the latency is that from rank to rank."""

    bandwidth_Bps: Fraction
    latency_s: Fraction
    reduce_rate_Bps: Fraction


def method_of(collective: str, algorithm: str) -> str | None:
    """Return the method with an algorithm's messages; None if there is none."""
    named = f"{collective} {algorithm}"
    return next((method for pattern, method in ALGORITHMS.items() if re.fullmatch(pattern, named)), None)


def read_rows(file: Path) -> tuple[list[Row], int]:
    """Return the rows that can be predicted, and the number of all rows."""
    with file.open(encoding="utf-8", newline="") as opened:
        cells = list(csv.DictReader(opened))
    found = [row for cell in cells if (row := _row(cell)) is not None]
    return sorted(found, key=lambda row: (row.machine, row.ranks, row.collective, row.algorithm, row.size)), len(cells)


def _row(cell: dict[str, str]) -> Row | None:
    algorithm = re.search(r"algorithm (\S+?);", cell["notes"])
    method = None if algorithm is None else method_of(cell["collective"], algorithm[1])
    each = re.search(r"(\d+) ranks per node", cell["gpus"])
    if algorithm is None or method is None or each is None or int(each[1]) > 1:
        return None
    ranks = prod(int(side) for side in cell["nodes"].split("x"))
    time = float(cell["time_us"])
    interval = re.search(r"CI of the mean ([\d.]+)-([\d.]+) us", cell["notes"])
    low, high = (float(end) for end in interval.groups()) if interval else (time, time)
    collective = COLLECTIVES[cell["collective"]]
    rails = re.search(r"RAILS=(\d+)", cell["notes"])
    series = cell["source"].rpartition("/")[2].partition(".")[0] + (f", {rails[1]} rails" if rails else "")
    row = Row(
        cell["machine"].split(" (")[0],
        ranks,
        collective,
        algorithm[1],
        method,
        int(cell["size_bytes"]),
        time,
        low,
        high,
        series,
    )
    return row if sends_of(row) <= MOST_SENDS else None


def sends_of(row: Row) -> int:
    """Return about how many sends a schedule has, before it is made."""
    n, steps = row.ranks, log2(row.ranks)
    if row.method in (DOUBLING, "knomial"):
        return int(n * steps)
    if row.collective in ("gather", "scatter", "broadcast", "reduce"):
        return int(n * steps)
    spread = row.collective == "all_to_all" and row.method != "direct"
    return int(n * n * (steps / 2 if spread else 2 if row.collective == "all_reduce" else 1))


#: Size of the buffer of which schedules are made, in bytes.
SIZE = 2**20


def instance_of(ranks: int, collective: str, machine: Machine) -> Instance:
    """Return a machine as a switch, with a collective of :data:`SIZE`."""
    links = f"bandwidth='{machine.bandwidth_Bps} B/s', latency='{machine.latency_s / 2} s'"
    network = cwb.load(f"switch({ranks}, {links})").network
    costs = RankCosts(OVERHEAD_S, machine.reduce_rate_Bps)
    return Instance("machine", network, Demand(collective_named(collective), Fraction(SIZE)), rank_costs=costs)


@lru_cache(maxsize=1)
def schedule_of(ranks: int, collective: str, method: str) -> StepSchedule:
    """Return the schedule of an algorithm for a buffer of :data:`SIZE`; the rates of links do not change it."""
    instance = instance_of(ranks, collective, Machine(Fraction(10**9), Fraction(1, 10**6), Fraction(10**9)))
    if method == DOUBLING:
        return doubling(instance)
    chosen = registry.get(method)
    options = chosen.options(ways="one-way") if method == "ring" else chosen.options()
    answer = chosen.run(instance, None, Budget(), options).answer
    assert isinstance(answer, StepSchedule)
    return answer


def doubling(instance: Instance) -> StepSchedule:
    """Return an all-reduce in which ranks that differ in one bit exchange their whole sums."""
    assert instance.demand is not None
    n, ends = instance.npus, {ends: link for link, ends in enumerate(instance.topology.link_ends)}
    hub = instance.topology.node_index[instance.topology.switches[0]]
    node = instance.topology.rank_nodes
    pairs = [(step, i, i ^ 2**step) for step in range(n.bit_length() - 1) for i in range(n)]
    up, down = [ends[rank, hub] for rank in node], [ends[hub, rank] for rank in node]
    sends = sends_from_lists(
        [0] * len(pairs),
        [node[i] for _, i, _ in pairs],
        [node[j] for *_, j in pairs],
        True,
        [(up[i], down[j]) for _, i, j in pairs],
    )
    zero, everybody = np.zeros(1, dtype=np.int64), (tuple(range(n)),)
    chunks = Chunks(zero + 1, instance.demand.size_bytes, everybody, zero, zero, zero == 0)
    return StepSchedule(instance.sha256, chunks, sends, np.array([step for step, *_ in pairs], dtype=np.int64))


def predict_s(row: Row, machine: Machine) -> float:
    """Simulate a row's algorithm on the machine: a larger buffer is one of :data:`SIZE` at lower rates."""
    scale = Fraction(SIZE, row.size)
    rates = {"bandwidth_Bps": machine.bandwidth_Bps * scale, "reduce_rate_Bps": machine.reduce_rate_Bps * scale}
    instance = instance_of(row.ranks, row.collective, replace(machine, **rates))
    schedule = replace(schedule_of(*row.task), instance_sha256=instance.sha256)
    return simulate(instance, schedule, SimulationMode.CUT_THROUGH, in_step=True).completion_s


#: Where slopes are taken: sizes in bytes at which messages, or bytes, take most of the time.
SLOPES_AT = (10**3, 10**5, 10**7)


@cache
def slopes(ranks: int, collective: str, method: str, machine: str) -> np.ndarray:
    """Return how a time grows with its causes, a row for each of a few sizes.

    A time is the longest of many sums, so it is nearly the largest of the sums that are longest at these sizes:
    seconds of overhead, buffers over bandwidth, hops times latency, and buffers over the rate of adding.
    """
    base = Machine(Fraction(10**10), Fraction(1, 10**6), Fraction(10**10))
    found = []
    for size in SLOPES_AT:
        row = Row(machine, ranks, collective, "", method, size, 0, 0, 0, "")
        at, buffer_s = predict_s(row, base), float(size / base.bandwidth_Bps)
        passed = predict_s(row, replace(base, bandwidth_Bps=base.bandwidth_Bps / 2)) - at
        sent = predict_s(row, replace(base, latency_s=base.latency_s * 2)) - at
        added = predict_s(row, replace(base, reduce_rate_Bps=base.reduce_rate_Bps / 2)) - at
        late = max(at - passed - sent - added, 0.0)
        found.append([late, passed / buffer_s, sent / float(base.latency_s), added / buffer_s])
    return np.array(found)


def fit(rows: Sequence[Row]) -> Machine:
    """Fit the three numbers of a machine by the least sum of absolute logarithms of ratios."""
    from scipy.optimize import minimize

    table = np.array([slopes(*row.task, row.machine) for row in rows])
    size = np.array([row.size for row in rows], dtype=np.float64)
    measured = np.log([row.measured_us * 1e-6 for row in rows])

    def misfit(numbers: np.ndarray) -> float:
        rate, latency, adding = np.exp(numbers)
        causes = np.stack([np.ones(len(size)), size / rate, np.full(len(size), latency), size / adding], axis=1)
        times = np.einsum("rsc,rc->rs", table, causes).max(axis=1)
        return float(np.abs(np.log(times) - measured).sum())

    starts = [np.log([rate, latency, 5e9]) for latency in (5e-7, 2e-6) for rate in (5e9, 2e10)]
    best = min((minimize(misfit, start, method="Nelder-Mead") for start in starts), key=lambda found: float(found.fun))
    return Machine(*(Fraction(f"{exp(number):.3g}") for number in best.x))


@dataclass(frozen=True)
class Prediction:
    """A row with its prediction."""

    row: Row
    predicted_us: float

    @property
    def error(self) -> float:
        """Prediction over measurement, less 1."""
        return self.predicted_us / self.row.measured_us - 1


def count_ordered_pairs(found: Iterable[Prediction]) -> tuple[int, int, int]:
    """Compare pairs of methods of equal task and size whose measured times differ by more than 10 %.

    Returns
    -------
    tuple of int
        Pairs that are predicted in the measured order, in the other one, and with equal times.
    """
    groups: dict[tuple[object, ...], list[Prediction]] = {}
    for each in found:
        row = each.row
        groups.setdefault((row.machine, row.series, row.ranks, row.collective, row.size), []).append(each)
    right = wrong = equal = 0
    for group in groups.values():
        for one, two in combinations(group, 2):
            slow, fast = (one, two) if one.row.measured_us > two.row.measured_us else (two, one)
            if one.row.method == two.row.method or slow.row.measured_us <= 1.1 * fast.row.measured_us:
                continue
            same = abs(slow.predicted_us - fast.predicted_us) < 1e-3 * fast.predicted_us
            equal += same
            right += not same and slow.predicted_us > fast.predicted_us
            wrong += not same and slow.predicted_us < fast.predicted_us
    return right, wrong, equal


def summary(found: Sequence[Prediction]) -> Iterator[str]:
    """Yield a table of errors on sizes that were not fitted, by machine and collective."""
    yield (
        "| machine | collective | times | median error | within 20 % "
        "| pairs in order | in the other | predicted equal |"
    )
    yield "|---|---|---:|---:|---:|---:|---:|---:|"
    unseen = [each for each in found if not each.row.is_fitted]
    keys = sorted({(each.row.machine, each.row.collective) for each in unseen})
    machines = [(name, "all") for name in sorted({machine for machine, _ in keys})]
    for machine, collective in [*keys, *machines, ("all", "all")]:
        some = [
            each
            for each in unseen
            if machine in (each.row.machine, "all") and collective in (each.row.collective, "all")
        ]
        off, (right, wrong, equal) = [abs(each.error) for each in some], count_ordered_pairs(some)
        near = sum(error <= 0.2 for error in off) / len(off)
        told = right + wrong + equal
        pairs = f"{right} of {told} ({right / told:.0%}) | {wrong} | {equal}" if told else "none | |"
        yield f"| {machine} | {collective} | {len(some)} | {median(off):.0%} | {near:.0%} | {pairs} |"


def write(file: Path, found: Sequence[Prediction]) -> None:
    """Write a table of all predictions."""
    with file.open("w", encoding="utf-8", newline="") as opened:
        out = csv.writer(opened, lineterminator="\n")
        heads = "machine,ranks,collective,algorithm,method,bytes,"
        heads += "measured us,low us,high us,predicted us,error,fitted,series"
        out.writerow(heads.split(","))
        for each in found:
            row = each.row
            named = row.machine, row.ranks, row.collective, row.algorithm, row.method, row.size
            times = row.measured_us, row.low_us, row.high_us, f"{each.predicted_us:.4g}", f"{each.error:.3f}"
            out.writerow([*named, *times, "yes" if row.is_fitted else "no", row.series])


def read(file: Path) -> list[Prediction]:
    """Read a table of predictions."""
    with file.open(encoding="utf-8", newline="") as opened:
        return [
            Prediction(
                Row(
                    cell["machine"],
                    int(cell["ranks"]),
                    cell["collective"],
                    cell["algorithm"],
                    cell["method"],
                    int(cell["bytes"]),
                    *(float(cell[f"{which} us"]) for which in ("measured", "low", "high")),
                    cell["series"],
                ),
                float(cell["predicted us"]),
            )
            for cell in csv.DictReader(opened)
        ]


def main() -> None:
    """Fit, predict and print."""
    parser = argparse.ArgumentParser(description="Predictions beside the measured times of named MPI algorithms.")
    parser.add_argument("folder", type=Path, help="folder of pico.csv")
    parser.add_argument("-o", "--output", type=Path, help="CSV file of all rows")
    parser.add_argument("--most-ranks", type=int, default=10**6, help="leave out larger runs")
    given = parser.parse_args()
    rows, total = read_rows(given.folder / "pico.csv")
    rows = [row for row in rows if row.ranks <= given.most_ranks]
    print(f"{len(rows):,} of {total:,} rows have an algorithm of cwb, one rank per node and a schedule of this size\n")
    found: list[Prediction] = []
    print("| machine | GB/s of a port | latency us | adding GB/s |\n|---|---:|---:|---:|")
    for name in sorted({row.machine for row in rows}):
        mine = [row for row in rows if row.machine == name]
        machine = fit([row for row in mine if row.is_fitted])
        numbers = (float(machine.bandwidth_Bps) / 1e9, float(machine.latency_s) * 1e6)
        print(
            f"| {name} | {numbers[0]:.3g} | {numbers[1]:.3g} | {float(machine.reduce_rate_Bps) / 1e9:.3g} |", flush=True
        )
        known: dict[tuple[object, ...], float] = {}
        for row in mine:
            key = (*row.task, row.size)
            if key not in known:
                known[key] = predict_s(row, machine) * 1e6
            found.append(Prediction(row, known[key]))
    print()
    for line in summary(found):
        print(line)
    if given.output is not None:
        write(given.output, found)


if __name__ == "__main__":
    main()
