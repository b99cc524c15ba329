"""Predictions beside measured times: named MPI algorithms on real machines.

    python benchmarks/measured.py FOLDER --most-ranks 64 -o docs/benchmarks/measured.csv
    python docs/images/charts.py

FOLDER has ``pico.csv``, medians of the PICO series (github:HLC-Lab/pico, MIT licence); its columns are source, machine,
nodes, gpus, collective, size_bytes, algbw_GBps, busbw_GBps, time_us, nccl_version and notes. Every row whose algorithm
cwb has is simulated (cut-through, each rank in its own steps) message by message. The network is a torus where the
series names one, and otherwise a switch. A message costs the processors of both of its ranks 0.5 us, chosen by hand
for all machines. Three numbers of every machine are fitted on every second size: bandwidth of ports and links, latency,
and rate of adding and copying. The table on stdout has errors on the other sizes. The fit has not seen them, but the
form of the model was chosen with all sizes in view.
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
from cwb.core.schedule import Chunks, Sends, StepSchedule
from cwb.core.timing import RankCosts
from cwb.core.topology import Link, Node, NodeKind, Topology
from cwb.core.trace import SimulationMode
from cwb.harness import registry
from cwb.schedules.simulate import simulate

#: Overhead of a message at either end, on every machine: chosen by hand after a look at these series, so a fourth
#: number from them.
OVERHEAD_S = Fraction(1, 2 * 10**6)

COLLECTIVES = {
    "allgather": "all_gather",
    "allreduce": "all_reduce",
    "alltoall": "all_to_all",
    "bcast": "broadcast",
    "reduce_scatter": "reduce_scatter",
} | {name: name for name in ("gather", "reduce", "scatter")}

#: Whole buffers exchanged at distances that double; no method of cwb.
#: Algorithms of the series: a pattern of the collective and the name, and the method with the same messages on a
#: switch. Variants over several ports, in segments, in separate blocks and of hidden kinds (``default``) have none.
#: Open MPI's linear all-gather is a gather and a broadcast of hidden kinds.
ALGORITHMS = {
    r"(allgather|reduce_scatter|allreduce) (default-ring|ring_ompi|ring_over)": "ring",
    r"allgather (default-recursive-doubling|recursive_doubling_ompi)": "rhd",
    r"reduce_scatter (default-recursive-halving|recursive_halving_ompi)": "rhd",
    r"allreduce (rabenseifner_ompi|RECDOUB-B_CONT-\w+-0-1)": "rhd",
    r"allreduce "
    r"(recursive_doubling_\w+|default-recursive_doubling|bine_lat_over|(RECDOUB|BINE)-L-\w+-0-1)": "rhd whole",
    r"(allgather|alltoall) (default-bruck|k_bruck_over|default-modified-bruck|BRUCK-LOG-\w+-0-1)": "bruck",
    r"(scatter|gather|alltoall|reduce|bcast) "
    r"(default-(basic-)?linear|linear_nb_ompi|default-simple)": "direct",
    r"(allgather|allreduce|reduce_scatter) bine_(bdw|send|permute)_(remap|static)_over": "bine",
    r"allgather (bine_send_remap_over|BINE-VEC_DOUBLING_CONT_\w+-\w+-0-1)": "bine",
    r"(allreduce BINE-B_CONT|reduce_scatter BINE-VEC_HALVING_CONT_PERMUTE|alltoall BINE-LOG)-\w+-0-1": "bine",
    r"(scatter|gather) (bine_over|binomial_ompi|default-binomial|BINE-BINOMIAL_TREE_CONT_PERMUTE-\w+-\w+-0-1)": "bine",
    r"(bcast|reduce) (default-binomial|BINE-BINOMIAL_TREE(_TMPBUF)?-\w+-0-1)": "knomial",
}

#: Network interfaces of a node that has several.
PORTS = {"Fugaku": 6}

#: Algorithms that start all messages at once, so that they use all interfaces.
AT_ONCE = r"(all_to_all|broadcast) default-(basic-)?linear|gather default-simple"

#: Algorithms that send every block once more, to the rank whose it is.
SENT_ON = r"all_gather BINE-VEC_DOUBLING_CONT_SEND-.*"

#: Sends of a schedule that is simulated at most, and messages of one in which every rank sends one for each other.
MOST_SENDS, MOST_MESSAGES = 5_000_000, 150_000


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
    sides: tuple[int, ...] = ()  #: Of the torus; none on a switch.

    @property
    def is_fitted(self) -> bool:
        """True for every second size, counted from 4 bytes in steps of eight times."""
        return round(log2(self.size / 4) / 3) % 2 == 0

    @property
    def shape(self) -> Shape:
        """All that its messages and their paths depend on."""
        named = f"{self.collective} {self.algorithm}"
        ports = PORTS.get(self.machine, 1) if re.fullmatch(AT_ONCE, named) else 1
        sent_on = re.fullmatch(SENT_ON, named) is not None
        return Shape(self.ranks, self.sides, self.collective, self.method, ports, sent_on)

    @property
    def buffer_copies(self) -> float:
        """Buffers that a rank copies within its memory, as the algorithm is described.

        Reductions first copy their input. Bruck's all-gather rotates its result; in an all-to-all half of a buffer is
        packed and unpacked in every step, and Bruck's rotates twice. Permutations of blocks are a copy.
        """
        permuted = "PERMUTE" in self.algorithm
        if self.collective == "all_to_all" and self.method != "direct":
            return log2(self.ranks) + (2 if self.method == "bruck" else 1)
        first = self.collective in ("all_reduce", "reduce_scatter", "reduce")
        return first + permuted + (self.collective == "all_gather" and self.method == "bruck")


@dataclass(frozen=True)
class Shape:
    """Ranks, network and algorithm of a row, without the machine's numbers and the size."""

    ranks: int
    sides: tuple[int, ...]
    collective: str
    method: str
    ports: int = 1
    sent_on: bool = False


@dataclass(frozen=True)
class Machine:
    """The fitted numbers of a machine; the latency is that from rank to rank."""

    bandwidth_Bps: Fraction
    latency_s: Fraction
    reduce_rate_Bps: Fraction  #: Bytes per second that a rank adds, or copies.


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
    sides = tuple(int(side) for side in cell["nodes"].split("x"))
    ranks = prod(sides)
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
        sides if "torus" in cell["machine"] else (),
    )
    many = row.method == "ring" or (row.method == "direct" and collective == "all_to_all")
    return row if sends_of(row) <= MOST_SENDS and not (many and ranks**2 > MOST_MESSAGES) else None


def sends_of(row: Row) -> int:
    """Return about how many sends a schedule has, before it is made."""
    n, steps = row.ranks, log2(row.ranks)
    if row.method in ("rhd whole", "knomial"):
        return int(n * steps)
    if row.collective in ("gather", "scatter", "broadcast", "reduce"):
        return int(n * steps)
    spread = row.collective == "all_to_all" and row.method != "direct"
    return int(n * n * (steps / 2 if spread else 2 if row.collective == "all_reduce" else 1))


#: Size of the buffer of which schedules are made, in bytes.
SIZE = 2**20


@dataclass(frozen=True, eq=False)
class Messages:
    """Messages of a schedule between ranks, by step: all data that a rank sends to another in a step is one message."""

    step: np.ndarray
    source: np.ndarray
    target: np.ndarray
    adds: np.ndarray
    part: np.ndarray  #: Bytes of a buffer of :data:`SIZE`.


@lru_cache(maxsize=2)
def messages_of(ranks: int, collective: str, method: str) -> Messages:
    """Return the messages of an algorithm for a buffer of :data:`SIZE`, from its schedule on a switch."""
    network = cwb.load(f"switch({ranks})").network
    instance = Instance("switch", network, Demand(collective_named(collective), Fraction(SIZE)))
    name, *rest = method.split()
    chosen = registry.get(name)
    options = chosen.options(ways="one-way") if name == "ring" else chosen.options(**dict.fromkeys(rest, True))
    schedule = chosen.run(instance, None, Budget(), options).answer
    assert isinstance(schedule, StepSchedule)
    sends, rank = schedule.sends, np.full(len(network.nodes), -1)
    rank[list(network.rank_nodes)] = np.arange(ranks)
    ends = rank[sends.source], rank[sends.target]
    assert min(ends[0].min(), ends[1].min()) >= 0
    key, first, place = np.unique(
        (schedule.step * ranks + ends[0]) * ranks + ends[1], return_index=True, return_inverse=True
    )
    part = np.bincount(place, weights=schedule.chunks.sizes_bytes[sends.chunk], minlength=len(key))
    return Messages(schedule.step[first], ends[0][first], ends[1][first], sends.reduce[first], part)


def messages_in(shape: Shape) -> Messages:
    """Return the messages of a shape, with those that send blocks on."""
    found = messages_of(shape.ranks, shape.collective, shape.method)
    if not shape.sent_on:
        return found
    n = shape.ranks
    bits = n.bit_length() - 1
    owner = np.array([int(f"{i:0{bits}b}"[::-1], 2) for i in range(n)])
    source = np.flatnonzero(owner != np.arange(n))
    each = np.ones(len(source), dtype=np.int64)
    return Messages(
        np.concatenate([found.step, each * (found.step.max() + 1)]),
        np.concatenate([found.source, source]),
        np.concatenate([found.target, owner[source]]),
        np.concatenate([found.adds, each == 0]),
        np.concatenate([found.part, each * (SIZE / n)]),
    )


#: Messages to one rank that may be on their way at once: enough for a latency of 64 overheads.
LANES = 64


class Wiring:
    """Links of a network, and the paths of messages over them.

    A message passes its source's processor and port, the network, and its target's port and processor, then the
    latency. Processors are links that a message holds for the overhead, and so are lanes, of which there are enough
    for all messages, for the latency. A torus has links between neighbours; paths are shortest and take one dimension
    after the other. At half way around, odd ranks go backward.
    """

    def __init__(self, shape: Shape, messages: Messages) -> None:
        """Lay the links of a shape."""
        n, sides = shape.ranks, shape.sides
        rank, into, out = ([f"{kind}{i}" for i in range(n)] for kind in ("r", "i", "o"))
        hub = [f"t{i}" for i in range(n)] if sides else ["hub"] * n
        self.lanes = int(min(LANES, np.bincount(messages.target).max()))
        self.nodes = [*rank, *into, *out, *dict.fromkeys(hub)]
        self.ranks = n
        self.ends = [*zip(rank, into, strict=True), *zip(into, out, strict=True)]
        self.ends += [*zip(out, hub, strict=True), *zip(hub, into, strict=True)]
        self.ends += [(out[i], rank[i]) for i in range(n) for _ in range(self.lanes)]
        self.first_hop = len(self.ends)
        stride = 1
        for side in reversed(sides):
            for way in (1, -1):
                at = np.arange(n) // stride % side
                self.ends += [(hub[i], hub[j]) for i, j in enumerate(np.arange(n) + ((at + way) % side - at) * stride)]
            stride *= side
        self.paths = self._paths(sides, messages)

    def _paths(self, sides: tuple[int, ...], messages: Messages) -> np.ndarray:
        """Return a row of links for every message, with -1 where a path is shorter."""
        n, here, there = self.ranks, messages.source.copy(), messages.target
        hops: list[np.ndarray] = []
        stride = 1
        for number, side in enumerate(reversed(sides)):
            ahead = (there // stride - here // stride) % side
            back = (2 * ahead > side) | ((2 * ahead == side) & (here // stride % 2 == 1))
            left = np.where(back, side - ahead, ahead)
            while (left > 0).any():
                hops.append(np.where(left > 0, self.first_hop + (2 * number + back) * n + here, -1))
                at = here // stride % side
                moved = here + ((at + np.where(back, -1, 1)) % side - at) * stride
                here, left = np.where(left > 0, moved, here), left - (left > 0)
            stride *= side
        order = np.argsort(there, kind="stable")
        count = np.bincount(there, minlength=n)
        place = np.empty(len(there), dtype=np.int64)
        place[order] = np.arange(len(there)) - np.repeat(np.cumsum(count) - count, count)
        lane = 4 * n + there * self.lanes + place % self.lanes
        source = messages.source
        return np.stack([source, n + source, 2 * n + source, *hops, 3 * n + there, n + there, lane], axis=1)

    def network(self, shape: Shape, machine: Machine) -> Topology:
        """Return the network with the machine's numbers."""
        n, rate, fast = self.ranks, machine.bandwidth_Bps, machine.bandwidth_Bps * 10**6
        zero, port = Fraction(0), rate * shape.ports
        kinds = [(n, fast, zero), (n, fast, OVERHEAD_S), (2 * n, port, zero)]
        kinds += [(n * self.lanes, fast, machine.latency_s), (len(self.ends) - self.first_hop, rate, zero)]
        numbers = [(each, late) for count, each, late in kinds for _ in range(count)]
        links = tuple(Link(*ends, *number) for ends, number in zip(self.ends, numbers, strict=True))
        compute, switch = NodeKind.COMPUTE, NodeKind.SWITCH
        return Topology(tuple(Node(name, compute if i < n else switch) for i, name in enumerate(self.nodes)), links)


@lru_cache(maxsize=2)
def schedule_of(shape: Shape) -> tuple[Wiring, StepSchedule]:
    """Return the links of a shape, and its messages as the sends of a schedule."""
    messages = messages_in(shape)
    wiring, count = Wiring(shape, messages), len(messages.step)
    zero, unit = np.zeros(count, dtype=np.int64), Fraction(1, 16)
    units = np.maximum(1, np.round(messages.part * 16)).astype(np.int64)
    chunks = Chunks(units, unit, (tuple(range(shape.ranks)),), zero, zero, zero != 0)
    hops = np.concatenate([[0], np.cumsum((wiring.paths >= 0).sum(axis=1))])
    ends = messages.source, messages.target
    sends = Sends(np.arange(count), *ends, messages.adds, hops, wiring.paths[wiring.paths >= 0])
    return wiring, StepSchedule("", chunks, sends, messages.step)


def predict_s(row: Row, machine: Machine) -> float:
    """Simulate a row's algorithm on the machine, and add the time of its copies."""
    return simulate_s(row.shape, row.size, machine) + row.buffer_copies * row.size / float(machine.reduce_rate_Bps)


def simulate_s(shape: Shape, size: int, machine: Machine) -> float:
    """Simulate a shape: a larger buffer is one of :data:`SIZE` at lower rates."""
    scale = Fraction(SIZE, size)
    adding = machine.reduce_rate_Bps * scale
    scaled = Machine(machine.bandwidth_Bps * scale, machine.latency_s, adding)
    wiring, schedule = schedule_of(shape)
    demand = Demand(collective_named(shape.collective), Fraction(SIZE))
    costs = RankCosts(reduce_rate_Bps=adding)
    instance = Instance("machine", wiring.network(shape, scaled), demand, rank_costs=costs)
    asked = replace(schedule, instance_sha256=instance.sha256)
    return simulate(instance, asked, SimulationMode.CUT_THROUGH, in_step=True, hold_latency=True).completion_s


#: Where slopes are taken: sizes in bytes at which messages, or bytes, take most of the time.
SLOPES_AT = (10**3, 10**5, 10**7)


@cache
def slopes(shape: Shape) -> np.ndarray:
    """Return how a time grows with its causes, a row for each of a few sizes.

    A time is the longest of many sums, so it is nearly the largest of the sums that are longest at these sizes:
    seconds of overhead, buffers over bandwidth, hops times latency, and buffers over the rate of adding.
    """
    base = Machine(Fraction(10**10), Fraction(1, 10**6), Fraction(10**10))
    found = []
    for size in SLOPES_AT:
        at, buffer_s = simulate_s(shape, size, base), float(size / base.bandwidth_Bps)
        passed = simulate_s(shape, size, replace(base, bandwidth_Bps=base.bandwidth_Bps / 2)) - at
        sent = simulate_s(shape, size, replace(base, latency_s=base.latency_s * 2)) - at
        added = simulate_s(shape, size, replace(base, reduce_rate_Bps=base.reduce_rate_Bps / 2)) - at
        late = max(at - passed - sent - added, 0.0)
        found.append([late, passed / buffer_s, sent / float(base.latency_s), added / buffer_s])
    return np.array(found)


def fit(rows: Sequence[Row]) -> Machine:
    """Fit the three numbers of a machine by the least sum of absolute logarithms of ratios."""
    from scipy.optimize import minimize

    copies = np.array([[0, 0, 0, row.buffer_copies] for row in rows])
    table = np.array([slopes(row.shape) for row in rows]) + copies[:, None, :]
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


def without_libraries(found: Sequence[Prediction]) -> list[Prediction]:
    """Put the median of all times of a method in place of its predictions: no model of messages alone orders better."""
    times: dict[tuple[object, ...], list[float]] = {}
    for each in found:
        times.setdefault((each.row.series, each.row.size, each.row.method, each.row.collective), []).append(
            each.row.measured_us
        )
    rows = [each.row for each in found]
    return [Prediction(row, median(times[row.series, row.size, row.method, row.collective])) for row in rows]


def write(file: Path, found: Sequence[Prediction]) -> None:
    """Write a table of all predictions."""
    with file.open("w", encoding="utf-8", newline="") as opened:
        out = csv.writer(opened, lineterminator="\n")
        heads = "machine,ranks,collective,algorithm,method,bytes,"
        heads += "measured us,low us,high us,predicted us,error,fitted,series,torus"
        out.writerow(heads.split(","))
        for each in found:
            row = each.row
            named = row.machine, row.ranks, row.collective, row.algorithm, row.method, row.size
            times = row.measured_us, row.low_us, row.high_us, f"{each.predicted_us:.4g}", f"{each.error:.3f}"
            out.writerow([*named, *times, "yes" if row.is_fitted else "no", row.series, "x".join(map(str, row.sides))])


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
                    tuple(map(int, filter(None, cell["torus"].split("x")))),
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
            key = row.shape, row.buffer_copies, row.size
            if key not in known:
                known[key] = predict_s(row, machine) * 1e6
            found.append(Prediction(row, known[key]))
    print()
    for line in summary(found):
        print(line)
    best = count_ordered_pairs(without_libraries([each for each in found if not each.row.is_fitted]))
    print(f"\nWith the median time of each method in place of a prediction, {best[0] / sum(best):.0%} are in order")
    if given.output is not None:
        write(given.output, found)


if __name__ == "__main__":
    main()
