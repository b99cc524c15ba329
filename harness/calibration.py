"""Latency and effective bandwidth from measured times, with intervals, and the machine that has them.

Times are taken as alpha + S / B. Of a runtime that changes its protocol with the size this holds at both ends and not
between them, so that it is fitted where the time, or the time for a byte, is at most a quarter above the least one; how far
the rest is from it is reported. Samples that are far from those of the
sizes beside them are outliers: named, and left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import exp, log
from statistics import median
from typing import Any

import numpy as np

from ..core.collective import CollectiveKind, Demand
from ..core.errors import InputError
from ..core.instance import Instance
from ..core.schedule import Floats
from ..core.topology import Topology
from ..core.units import exact
from ..exchange.nccl_tests import Measured, Sample
from ..schedules.files import Written
from .request import Request
from .run import run
from .select import at_size

#: A sample that is off by this part or less is no outlier, however quiet the others are.
LEAST_OFF = 0.25

#: How many times the usual deviation an outlier is off.
_SPREADS = 5.0

#: Of more, something else is wrong.
MOST_OUTLIERS = 100

#: Times up to so many times the least one are those of small sizes; times for a byte likewise those of large ones.
_SMALL = _LARGE = 1.25

#: A latency, or a bandwidth, that makes up a smaller part of the times is none.
_LEAST_PART = 0.01

#: Digits of the factors of rates and latencies.
_DIGITS = 4


@dataclass(frozen=True)
class Estimate:
    """A number with the ends of its interval of 95 %."""

    value: float
    low: float
    high: float

    def plain(self) -> dict[str, float]:
        """As plain data."""
        return {"value": self.value, "low": self.low, "high": self.high}


@dataclass(frozen=True)
class Outlier:
    """A sample that is far from the sizes beside it: the time there would be ``expected_s``."""

    sample: Sample
    expected_s: float

    def plain(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "size_bytes": self.sample.size,
            "in_place": self.sample.in_place,
            "seconds": self.sample.seconds,
            "expected_s": self.expected_s,
        }


@dataclass(frozen=True)
class Fit:
    """What was fitted.

    Parameters
    ----------
    latency_s, bandwidth_Bps : Estimate
        Of alpha + S / B.
    samples : int
        Samples that it was fitted to.
    outliers : tuple of Outlier
        What was left out.
    misfit : float
        The largest ratio between the time of a sample that is no outlier and that of the fit, where the sample is
        slower.
    """

    latency_s: Estimate
    bandwidth_Bps: Estimate
    samples: int
    outliers: tuple[Outlier, ...]
    misfit: float

    def seconds(self, size: float) -> float:
        """Time of a size."""
        return self.latency_s.value + size / self.bandwidth_Bps.value

    def plain(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "latency_s": self.latency_s.plain(),
            "bandwidth_Bps": self.bandwidth_Bps.plain(),
            "samples": self.samples,
            "outliers": [one.plain() for one in self.outliers],
            "misfit": self.misfit,
        }


def fit(samples: Sequence[Sample]) -> Fit:
    """Fit a latency and a bandwidth.

    Raises
    ------
    InputError
        If there are fewer than four samples or two sizes that can be used, or times do not grow with sizes.
    """
    outliers = _outliers(samples)
    left = [sample for sample in samples if not any(sample is one.sample for one in outliers)]
    sizes, times = (np.array([getattr(s, name) for s in left], dtype=np.float64) for name in ("size", "seconds"))
    if len(left) < 4 or len(set(sizes.tolist())) < 2:
        without = f" without {len(outliers)} outliers" if outliers else ""
        raise InputError(f"{len(left)} samples{without}; expected at least four, of two sizes or more")
    used = (times <= _SMALL * times.min()) | (times / sizes <= _LARGE * (times / sizes).min())
    if len(set(sizes[used].tolist())) < 2:
        raise InputError("times do not grow with the size")
    (alpha, beta), spread = _least_squares(sizes[used], times[used])
    if beta * sizes.max() < _LEAST_PART * alpha:
        raise InputError("times do not grow with the size")
    if alpha < _LEAST_PART * times.min():
        raise InputError("times have no latency: smaller sizes are missing")
    factor = _quantile(int(used.sum()) - 2)
    latency = Estimate(alpha, alpha - factor * spread[0], alpha + factor * spread[0])
    slow, fast = beta + factor * spread[1], max(beta - factor * spread[1], beta * 1e-9)
    bandwidth = Estimate(1 / beta, 1 / slow, 1 / fast)
    misfit = float((times / (alpha + sizes * beta)).max())
    return Fit(latency, bandwidth, int(used.sum()), outliers, misfit)


def _least_squares(sizes: Floats, times: Floats) -> tuple[tuple[float, float], tuple[float, float]]:
    """Alpha and beta of the least relative error, and their standard errors."""
    rows = np.column_stack([1 / times, sizes / times])
    scale = np.linalg.norm(rows, axis=0)
    found, *_ = np.linalg.lstsq(rows / scale, np.ones(len(times)), rcond=None)
    rest = 1 - rows / scale @ found
    variance = float(rest @ rest) / max(len(times) - 2, 1)
    spread = np.sqrt(np.diag(np.linalg.inv((rows / scale).T @ (rows / scale))) * variance) / scale
    alpha, beta = (found / scale).tolist()
    return (alpha, beta), (float(spread[0]), float(spread[1]))


def _quantile(freedom: int) -> float:
    from scipy.stats import t

    return float(t.ppf(0.975, max(freedom, 1)))


def _outliers(samples: Sequence[Sample]) -> tuple[Outlier, ...]:
    """Samples that are far from the sizes beside them, the farthest first, as long as there are any."""
    left, found = list(samples), list[Outlier]()
    while len({sample.size for sample in left}) >= 3:
        guesses = _all_guesses(left)
        off = [
            min((log(sample.seconds) - guess for guess in some), key=abs, default=0.0)
            for sample, some in zip(left, guesses, strict=True)
        ]
        spread = 1.4826 * median(map(abs, off))
        worst = max(range(len(left)), key=lambda index: abs(off[index]))
        if abs(off[worst]) <= max(log(1 + LEAST_OFF), _SPREADS * spread):
            break
        if len(found) == MOST_OUTLIERS:
            raise InputError(f"more than {MOST_OUTLIERS} samples are far from the sizes beside them")
        found.append(Outlier(left.pop(worst), exp(guesses[worst][-1])))
    return tuple(sorted(found, key=lambda one: (one.sample.size, one.sample.in_place)))


def _all_guesses(samples: Sequence[Sample]) -> list[list[float]]:
    """Of every sample logarithms of times that the others let expect, the best last."""
    by_size: dict[int, list[float]] = {}
    for sample in samples:
        by_size.setdefault(sample.size, []).append(log(sample.seconds))
    sizes = sorted(by_size)
    place = {size: index for index, size in enumerate(sizes)}
    middle = [median(by_size[size]) for size in sizes]
    found: list[list[float]] = []
    for sample in samples:
        same = list(by_size[sample.size])
        same.remove(log(sample.seconds))
        beside = _beside(sizes, middle, place[sample.size])
        found.append([*beside, *([median(same)] if same else [])])
    return found


def _beside(sizes: Sequence[int], middle: Sequence[float], index: int) -> list[float]:
    """Logarithms of the times that are expected at a size between those of the sizes beside it, or beyond them."""
    size = sizes[index]
    if 0 < index < len(sizes) - 1:
        low, high = sizes[index - 1], sizes[index + 1]
        part, bent = (size - low) / (high - low), log(size / low) / log(high / low)
        before, after = middle[index - 1], middle[index + 1]
        return [log((1 - part) * exp(before) + part * exp(after)), (1 - bent) * before + bent * after]
    if index == 0:
        first, later = exp(middle[1]), exp(middle[2])
        straight = first - (later - first) / (sizes[2] - sizes[1]) * (sizes[1] - size)
        return [*([log(straight)] if straight > 0 else []), middle[1]]
    last, earlier = exp(middle[index - 1]), exp(middle[index - 2])
    slope = (last - earlier) / (sizes[index - 1] - sizes[index - 2])
    return [log(max(last + slope * (size - sizes[index - 1]), last))]


@dataclass(frozen=True, eq=False)
class Calibrated:
    """A machine whose links are as fast as measured.

    Parameters
    ----------
    data : mapping
        Of an instance file.
    fit : Fit
        What was fitted.
    rate, latency : float
        Factors of the rates and of the latencies of links.
    schedule : str
        Of what NCCL plays there, for the largest size.
    """

    data: dict[str, Any]
    fit: Fit
    rate: float
    latency: float
    schedule: str


def calibrated(
    machine: Instance, measured: Measured, kind: CollectiveKind, told: str, nccl: dict[str, Any]
) -> Calibrated:
    """Scale the links of a machine, so that what NCCL plays there takes the measured times.

    Rates are scaled by the fitted bandwidth over that of NCCL's schedule for the largest size; latencies by the fitted
    latency over the time of NCCL's schedule for the smallest size, with no data.

    Parameters
    ----------
    machine : Instance
        The machine.
    measured : Measured
        The times.
    kind : CollectiveKind
        The collective that was measured.
    told : str
        Where the times come from.
    nccl : dict
        Options of the method ``nccl``.

    Raises
    ------
    InputError
        If the number of ranks is another one, or nothing can be fitted.
    """
    network = machine.network
    if not isinstance(network, Topology):
        raise InputError(f"{network} has no links; expected a machine with an explicit network")
    if measured.ranks not in (None, machine.npus):
        raise InputError(f"{measured.ranks} ranks were measured, and the machine has {machine.npus}")
    found = fit(measured.samples)
    sizes = [sample.size for sample in measured.samples]
    large, name = _seconds(machine, kind, max(sizes), nccl, 2**40)
    small, _ = _seconds(machine, kind, min(sizes), nccl, 1)
    rate = found.bandwidth_Bps.value / (2**40 / large)
    latency = found.latency_s.value / small
    what = f"{kind.value} of {machine.npus} ranks, {told}"
    alpha, rates = found.latency_s, found.bandwidth_Bps
    text = (
        f"calibrated on {what}: latency {alpha.value * 1e6:.4g} us ({alpha.low * 1e6:.4g} to {alpha.high * 1e6:.4g}), "
        f"bandwidth {rates.value / 1e9:.4g} GB/s ({rates.low / 1e9:.4g} to {rates.high / 1e9:.4g}); "
        f"rates of links times {rate:.4g}, latencies times {latency:.4g}"
    )
    return Calibrated(_scaled(machine, network, rate, latency, text), found, rate, latency, name)


def _seconds(machine: Instance, kind: CollectiveKind, size: int, options: dict[str, Any], at: int) -> tuple[float, str]:
    """Time at another size of NCCL's schedule for a size, and the schedule's name."""
    from ..schedules.completion import completion_of

    posed = machine.with_changes(demand=Demand(kind, Fraction(size)), also=())
    done = run(posed, Request("nccl", options=options))
    if not isinstance(done.answer, Written) or done.instance is None:
        raise InputError(f"there is no schedule of NCCL for {kind.value} here: {done.record.message}")
    found = completion_of(*at_size(done.instance, done.answer, Fraction(at)))
    if found.seconds is None or found.seconds <= 0:
        raise InputError(f"the machine's links have no latency that could be scaled {found.why}".rstrip())
    return found.seconds, str(done.record.metrics["schedule"])


def _scaled(machine: Instance, network: Topology, rate: float, latency: float, text: str) -> dict[str, Any]:
    """Data of an instance file with scaled links, whose rates keep their proportions exactly."""
    faster, later = (Fraction(f"{factor:.{_DIGITS}g}") for factor in (rate, latency))
    nodes = [
        {
            "name": node.name,
            "kind": node.kind.value,
            **({"multicast": True} if node.multicast else {}),
            **({"reduces": True} if node.reduces else {}),
            **({} if node.buffer_bytes is None else {"buffer": exact(node.buffer_bytes, "B")}),
        }
        for node in network.nodes
    ]
    links = [
        {
            "source": link.source,
            "target": link.target,
            "bandwidth": exact(link.bandwidth_Bps / 10**9 * faster, "GB/s"),
            "latency": exact(link.latency_s * 10**6 * later, "us"),
        }
        for link in network.links
    ]
    return {
        "schema": "cwb-instance/1",
        "name": f"{machine.name}, calibrated",
        "description": f"{machine.name} with the rates and latencies that were measured.",
        "source": text,
        "network": {"nodes": nodes, "links": links},
    }
