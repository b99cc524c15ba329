"""Expected times of NCCL's choice: its own prediction with the overheads that it leaves out.

NCCL compares algorithms by latency and bandwidth, which orders them well but leaves out the start of a kernel, and the
synchronization of channels before they are full. Six numbers are fitted to 161 published times of NVIDIA's and AMD's
machines; ``benchmarks/measured_gpus.py --fit`` fits them again and prints the errors. They do not change the choice.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from .constants import Algorithm
from .method import Prediction
from .model import Pick, seconds, table


@dataclass(frozen=True)
class Filling:
    """Seconds that channels lose before they are full: ``most_us * size / (size + half_bytes)``."""

    most_us: float
    half_bytes: float

    def us(self, size: float) -> float:
        """Return the loss in microseconds at a size in bytes."""
        return self.most_us * size / (size + self.half_bytes)


@dataclass(frozen=True)
class Overheads:
    """Overheads beside NCCL's own prediction."""

    launch_us: float  #: Start of the kernel.
    switches: Filling  #: Of NVLS and NVLSTree.
    links: Filling  #: Of all other algorithms.
    net_us: float  #: Latency of a network at most, whatever its plugin reports.


#: Fitted to the series of docs/methods/nccl.md.
OVERHEADS = Overheads(2.0, Filling(78.0, 11.5 * 2**20), Filling(260.0, 36 * 2**20), 27.0)

#: Sizes from which on an interval holds; 5th and 95th percentile of measured over expected times of the same series.
INTERVALS = ((2**26, (0.85, 1.42)), (2**20, (0.86, 2.1)), (0, (0.88, 2.65)))


def expected_seconds(found: Prediction, pick: Pick, size: float, overheads: Overheads = OVERHEADS) -> float:
    """Return the time that NCCL's choice is expected to take at a size in bytes."""
    net_us = min(found.machine.net_us, overheads.net_us)
    machine = found.machine if net_us == found.machine.net_us else replace(found.machine, net_us=net_us)
    costs = table(machine, found.tuning, found.problem.collective)
    predicted = seconds(machine, found.tuning, costs, (pick.algorithm, pick.protocol), size) or pick.seconds
    added = pick.algorithm in (Algorithm.NVLS, Algorithm.NVLS_TREE)
    filling = overheads.switches if added else overheads.links
    return predicted + (overheads.launch_us + filling.us(size)) * 1e-6


def interval(size: float, expected_s: float) -> tuple[float, float]:
    """Return the seconds between which nine of ten measured times of the fitted series are."""
    low, high = next(factors for least, factors in INTERVALS if size >= least)
    return low * expected_s, high * expected_s
