"""NCCL's symmetric kernels: predicted times, and which of them is taken at a size (docs/methods/nccl.md).

Kernels are told apart by how data moves within a box: with flags (``LL``), by loads and stores (``LD``, ``ST``), or
through switches that add and copy (``LDMC``, ``STMC``). Between boxes, those with ``Rail`` send over the NICs of each
rail. Written after ``src/sym_kernels.cc`` at the tag ``v2.30.7-1``; in one box, 2.27.3 has the same numbers. Kernels
with ``Tma`` are off in NCCL unless an environment variable asks for them, and left out here. Copies by copy engines are
those of ``src/tuning/ce_model.cc`` in 2.31.2.
"""

from math import ceil, exp, log1p
from typing import NamedTuple

from ...core.collective import Collective
from .constants import Algorithm, Hardware, Tuning
from .model import Machine

_ADDED_PART = 0.025  #: Every SM counts as this part of the time more, so that a kernel with few SMs is preferred.
_NEARLY = 1.025  #: As few SMs are used as take at most this times the time with all.
_CELL = 1024  #: Bytes are rounded up to cells.
_LL_BYTES = 9  #: Bytes on the wires per byte of data with flags.
_RAIL_CHUNK, _SCATTER_CHUNK = 2**20, 2**17  #: Bytes sent at once over a rail: of an all-gather, of a reduce-scatter.
#: Copy engines by generation: us of a call and of each rank, by copies for each rank and by one for all; NVLink's GB/s.
_ENGINES = {"hopper": ((17.5, 1.957), (14.9, 0.726), 392.0), "blackwell": ((32.04, 0.13), (29.14, 0.137), 779.0)}
_HOST_GBps = 106.0  #: Copy engines over PCIe, which a GPU's own part and copies for all take with drivers before 13.4.
_SCATTER_RATES = {"LD": (13.7e9, 26.6e9), "LDMC": (4.22e9, 8.44e9)}  #: Bytes per second of an SM: Hopper, Blackwell.


class SymmetricPick(NamedTuple):
    """NCCL's choice: a kernel, its streaming multiprocessors (SMs), and its predicted time."""

    kernel: str
    sms: int
    seconds: float


def choose_symmetric(
    machine: Machine, tuning: Tuning, collective: Collective, size: float, nic_GBps: float = 0.0, most_sms: int = 64
) -> SymmetricPick | None:
    """Return the symmetric kernel that NCCL takes, or None if it has none here.

    Parameters
    ----------
    size
        Bytes of the whole data, as everywhere in cwb; sums are of 16- or 32-bit numbers.
    nic_GBps
        Rate of the slowest NIC.
    most_sms
        NCCL's ``maxCTAs``, at most 64.
    """
    direct = machine.nvlink or machine.per_node == 1
    if tuning.version < (2, 27) or not direct:
        return None
    reduces = collective is Collective.ALL_REDUCE
    own = size if reduces else size / machine.ranks  # NCCL counts what one rank gives or gets
    cells = ceil(own / _CELL) * _CELL
    if cells * (1 if reduces else machine.ranks) >= 2**36:  # counts of 32 bytes are 32-bit integers
        return None
    if machine.nodes > 1:
        picks = _over_rails(machine, tuning, collective, cells, nic_GBps * 1e9, most_sms)
    else:
        picks = _in_a_box(machine, collective, cells, most_sms)
    return min(picks, key=lambda pick: pick.seconds * (1 + _ADDED_PART * pick.sms), default=None)


def choose_copies(machine: Machine, tuning: Tuning, collective: Collective, size: float) -> SymmetricPick | None:
    """Return copies by copy engines, out of place and in no CUDA graph; None if NCCL has none here."""
    is_offered = tuning.version >= (2, 31) and machine.nvlink and machine.nodes == 1 and machine.gpu in _ENGINES
    if not is_offered or collective is not Collective.ALL_GATHER:
        return None
    n, part = machine.ranks, size / machine.ranks
    each, once, rate = _ENGINES[machine.gpu]
    moved_us = max((n - 1) * part / rate, part / _HOST_GBps) / 1e3
    picks = [SymmetricPick("CE_AllGather_UC", 0, (each[0] + each[1] * n + moved_us) * 1e-6)]
    if _adds(machine):
        copied_us = part / min(_HOST_GBps, rate / n) / 1e3
        picks.append(SymmetricPick("CE_AllGather_MC", 0, (once[0] + once[1] * n + copied_us) * 1e-6))
    return min(picks, key=lambda pick: pick.seconds)


def _adds(machine: Machine) -> bool:
    """Return whether the switches of a box add and copy for the kernels: NCCL asks for more than two GPUs."""
    return Algorithm.NVLS in machine.graphs and machine.per_node > 2


def _in_a_box(machine: Machine, collective: Collective, size: int, most_sms: int) -> list[SymmetricPick]:
    """Predict the kernels of one box. ``size`` is that of a rank, in bytes."""
    n, older = machine.ranks, machine.gpu != "blackwell"
    reduces, gathers = collective is Collective.ALL_REDUCE, collective is Collective.ALL_GATHER
    flags_us = 4.5 if older else 8.5 if gathers else 11.0
    plain_us = 7.8 if older else 19.5 if reduces else 13.0
    sm_rate = (65 if reduces else 44) if older else 55
    peak = 320 if older else 600
    through = min(most_sms, ceil((16 if older else 32) / n))  # of SMs, with switches that add and copy
    small = size * (1 if reduces else n) < 2**31  # with flags, counts are 32-bit integers
    # name, bytes, latency, SMs, times that an SM's bytes count, peak in GiB/s, needs switches
    kernels: list[tuple[str, int, float, int, float, int, bool]] = []
    if collective not in (Collective.ALL_REDUCE, Collective.ALL_GATHER, Collective.REDUCE_SCATTER):
        return []
    name = {Collective.ALL_REDUCE: "AllReduce", Collective.ALL_GATHER: "AllGather"}.get(collective, "ReduceScatter")
    if small:
        flagged = ("AGxLL_R", "AGxLLMC_R") if reduces else ("LL", "LLMC")
        kernels.append((flagged[0], n * size * _LL_BYTES, flags_us, most_sms, 1.0, peak, False))
        if reduces or gathers:
            kernels.append((flagged[1], n * size * _LL_BYTES, flags_us, most_sms, 1.1, peak, True))
    if reduces:
        kernels.append(("RSxLD_AGxST", 2 * size * (n - 1) // n, plain_us, most_sms, 1.0, peak, False))
        most = 480 if older else 1000
        kernels.append(("RSxLDMC_AGxSTMC", size // n + size, plain_us, through, float(n), most, True))
    else:
        plain = "ST" if gathers else "LD"
        kernels.append((plain, (n - 1) * size, plain_us, most_sms, 1.0, peak, False))
        kernels.append((f"{plain}MC", (n - 1) * size, plain_us, through, 0.55 * n, peak, True))
    return [
        SymmetricPick(f"{name}_{kind}", *_fewest_sms(total, base_us, sms, factor, sm_rate * _GIB, top * _GIB))
        for kind, total, base_us, sms, factor, top, needs_switches in kernels
        if _adds(machine) or not needs_switches
    ]


_GIB = 2**30 / 1e6  #: GiB/s in bytes per microsecond.


def _fewest_sms(total: int, base_us: float, most: int, factor: float, sm_rate: float, peak: float) -> tuple[int, float]:
    """Return the fewest SMs that are nearly as fast as all, and their time in seconds."""

    def time(sms: int) -> float:
        # the smaller of the SMs' rate and the peak, rounded off where they meet; then the same of bytes and nothing
        rate = peak - sm_rate * log1p((exp(peak / sm_rate) - 1) * exp(-sms * factor))
        excess = total / rate - 1
        return base_us + (excess if excess >= 100 else log1p(exp(excess)))

    least = time(most)
    sms = next((sms for sms in range(1, most) if time(sms) <= _NEARLY * least), most)
    return sms, time(sms) * 1e-6


def _over_rails(
    machine: Machine, tuning: Tuning, collective: Collective, size: int, nic: float, most_sms: int
) -> list[SymmetricPick]:
    """Predict the kernels between boxes. Rates are in bytes per second."""
    if nic <= 0:
        return []
    boxes, near, blackwell = machine.nodes, int(machine.per_node), machine.gpu == "blackwell"
    inside = 720e9 if blackwell else 360e9
    hop_s = tuning.hop_us[Hardware.NET][Algorithm.RING][2] * 1e-6
    if collective is Collective.ALL_GATHER and _adds(machine):
        chunks = ceil(size / _RAIL_CHUNK)
        seconds = chunks * (boxes - 1) * hop_s + max(size * machine.ranks / inside, size * (boxes - 1) / nic)
        sms = min(most_sms, ceil((32 if blackwell else 16) / near), chunks)
        return [SymmetricPick("AllGather_RailRing_LsaSTMC", sms, seconds)]
    if collective is not Collective.REDUCE_SCATTER:
        return []
    kinds = ["LD", "LDMC"] if _adds(machine) else ["LD"]
    loads = {kind: _scatter_loads(near, boxes, kind == "LDMC") for kind in _SCATTER_RATES}
    rate = {kind: rates[blackwell] for kind, rates in _SCATTER_RATES.items()}
    least = {  # seconds per byte over the busier of links and NIC
        kind: max(box / inside, rail / nic) for kind, (_, box, rail) in loads.items()
    }
    enough = {kind: ceil(1 / least[kind] / (rate[kind] / sm)) for kind, (sm, _, _) in loads.items()}
    picks = []
    for kind in kinds:
        sm, box, rail = loads[kind]
        sms = max(1, min(most_sms, max(enough.values()), enough[kind], ceil(size / _SCATTER_CHUNK)))
        seconds = size * max(sm / (sms * rate[kind]), least[kind])
        seconds += min(size, _SCATTER_CHUNK * sms) * (box / inside + rail / nic) + hop_s
        picks.append(SymmetricPick(f"ReduceScatter_RailA2A_Lsa{kind}", sms, seconds))
    return picks


def _scatter_loads(near: int, boxes: int, adds: bool) -> tuple[int, int, int]:
    """Return how many times a rank's bytes pass its SMs, the links of its box, and its NIC."""
    read = 1 if adds else near
    sms = (0 if near == 1 else read * (boxes - 1)) + read + boxes - 1
    return sms, max((near if adds else near - 1), near - 1) * boxes, boxes - 1
