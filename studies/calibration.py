"""Latency and effective bandwidth fitted to measured times, with intervals, and the calibrated machine.

Times are modelled as alpha + S / B. For a runtime that changes its protocol with the size, this holds at both ends but
not in between: the fit uses sizes whose time, or time per byte, is at most a quarter above the least, and the misfit
of the others is reported. Samples far from those of neighbouring sizes are outliers: reported and not used.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from math import exp, log
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from ..core.collective import Collective, Demand, collective_named
from ..core.errors import InputError, locate_errors
from ..core.files import write_whole
from ..core.grouping import group_by_key
from ..core.instance import Instance
from ..core.option_names import NCCL_COLLECTIVES, check_name, verb
from ..core.schedule import Bools, Floats
from ..core.topology import Topology
from ..exchange.machine import checked_instance, topology_data
from ..exchange.nccl import PROGRAMS, Measurements, Sample, read_measured
from ..harness.request import Request
from ..harness.run import run
from ..heuristics.nccl import method
from ..schedules.completion import completion_of
from ..schedules.files import Written
from .inputs import Spec, load
from .schedule_candidates import Choice, flow_bound, resize_schedule

LEAST_OFF = 0.25  #: A sample that is off by this part or less is no outlier, however quiet the others are.
_SPREADS = 5.0  #: How many times the usual deviation an outlier is off.
MOST_OUTLIERS = 100  #: Of more, something else is wrong.

#: Times up to so many times the least one are those of small sizes; times for a byte likewise those of large ones.
_SMALL = _LARGE = 1.25

_LEAST_PART = 0.01  #: A latency, a bandwidth or a range of sizes that makes up a smaller part of the whole is none.
_DIGITS = 4  #: Digits of the factors of rates and latencies.


@dataclass(frozen=True)
class Estimate:
    """An estimate with its 95 % confidence interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Outlier:
    """A sample far from those of neighbouring sizes, which predict ``expected_s``."""

    sample: Sample
    expected_s: float


@dataclass(frozen=True)
class Fit:
    """Result of a fit."""

    #: ``latency_s`` and ``bandwidth_Bps``: estimates of alpha and B in alpha + S / B.
    latency_s: Estimate
    bandwidth_Bps: Estimate
    samples: int
    outliers: tuple[Outlier, ...]
    misfit: float  #: Largest ratio of measured to fitted time over all samples except outliers.

    def plain(self) -> dict[str, Any]:
        """Return the fit as plain data."""
        names = ("size_bytes", "in_place", "seconds", "expected_s")
        rows = [(at.sample.size, at.sample.in_place, at.sample.seconds, at.expected_s) for at in self.outliers]
        return {**asdict(self), "outliers": [dict(zip(names, row, strict=True)) for row in rows]}


def fit(samples: Sequence[Sample]) -> Fit:
    """Fit a latency and a bandwidth.

    It is an error if there are fewer than four usable samples or two usable sizes, times do not grow with the size, or
    they show no latency.
    """
    from scipy.stats import t

    outliers = _outliers(samples)
    rest = [sample for sample in samples if not any(sample is one.sample for one in outliers)]
    sizes, times = (np.array([getattr(s, name) for s in rest], dtype=np.float64) for name in ("size", "seconds"))
    if len(rest) < 4 or len(set(sizes.tolist())) < 2:
        without = f" without {len(outliers)} outliers" if outliers else ""
        raise InputError(f"{len(rest)} samples{without}; expected at least four, of two sizes or more")
    ends = (times <= _SMALL * times.min()) | (times / sizes <= _LARGE * (times / sizes).min())
    if np.ptp(sizes[ends]) <= _LEAST_PART * sizes[ends].max():
        raise InputError("times do not grow with the size")
    (alpha, beta), spread = _least_squares(sizes[ends], times[ends])
    if beta * sizes.max() < _LEAST_PART * alpha:
        raise InputError("times do not grow with the size")
    if alpha < _LEAST_PART * times.min():
        raise InputError("times have no latency: smaller sizes are missing")
    factor = float(t.ppf(0.975, max(int(ends.sum()) - 2, 1)))
    latency = Estimate(alpha, alpha - factor * spread[0], alpha + factor * spread[0])
    slow, fast = beta + factor * spread[1], max(beta - factor * spread[1], beta * 1e-9)
    bandwidth = Estimate(1 / beta, 1 / slow, 1 / fast)
    misfit = float((times / (alpha + sizes * beta)).max())
    return Fit(latency, bandwidth, int(ends.sum()), outliers, misfit)


def _least_squares(sizes: Floats, times: Floats) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return alpha and beta of least squared relative error, and their standard errors."""
    (beta, alpha), covariance = np.polyfit(sizes, times, 1, w=1 / times, cov="unscaled")
    rest = 1 - (alpha + beta * sizes) / times
    beta_spread, alpha_spread = np.sqrt(np.diag(covariance) * (rest @ rest) / max(len(times) - 2, 1)).tolist()
    return (float(alpha), float(beta)), (alpha_spread, beta_spread)


def _outliers(samples: Sequence[Sample]) -> tuple[Outlier, ...]:
    """Return the samples far from those of neighbouring sizes, removed one by one, the farthest first; by size."""
    rest, outliers = list(samples), list[Outlier]()
    while len({sample.size for sample in rest}) >= 3:
        guesses = _all_guesses(rest)
        off = [
            min((log(sample.seconds) - guess for guess in some), key=abs, default=0.0)
            for sample, some in zip(rest, guesses, strict=True)
        ]
        spread = 1.4826 * median(map(abs, off))
        worst = max(range(len(rest)), key=lambda index: abs(off[index]))
        if abs(off[worst]) <= max(log(1 + LEAST_OFF), _SPREADS * spread):
            break
        if len(outliers) == MOST_OUTLIERS:
            raise InputError(f"more than {MOST_OUTLIERS} samples are outliers among their neighbouring sizes")
        outliers.append(Outlier(rest.pop(worst), exp(guesses[worst][-1])))
    return tuple(sorted(outliers, key=lambda one: (one.sample.size, one.sample.in_place)))


def _all_guesses(samples: Sequence[Sample]) -> list[list[float]]:
    """Return, for every sample, logarithms of the times that the other samples predict."""
    by_size = group_by_key((sample.size, log(sample.seconds)) for sample in samples)
    sizes = sorted(by_size)
    place = {size: index for index, size in enumerate(sizes)}
    middle = [median(by_size[size]) for size in sizes]
    guesses: list[list[float]] = []
    for sample in samples:
        same = list(by_size[sample.size])
        same.remove(log(sample.seconds))
        beside = _beside(sizes, middle, place[sample.size])
        guesses.append([*beside, *([median(same)] if same else [])])
    return guesses


def _beside(sizes: Sequence[int], middle: Sequence[float], index: int) -> list[float]:
    """Return logarithms of times inter- or extrapolated from neighbouring sizes."""
    size = sizes[index]
    if 0 < index < len(sizes) - 1:
        low, high = sizes[index - 1], sizes[index + 1]
        part, curve = (size - low) / (high - low), log(size / low) / log(high / low)
        before, after = middle[index - 1], middle[index + 1]
        return [log((1 - part) * exp(before) + part * exp(after)), (1 - curve) * before + curve * after]
    if index == 0:
        first, later = exp(middle[1]), exp(middle[2])
        straight = first - (later - first) / (sizes[2] - sizes[1]) * (sizes[1] - size)
        return [*([log(straight)] if straight > 0 else []), middle[1]]
    last, earlier = exp(middle[index - 1]), exp(middle[index - 2])
    slope = (last - earlier) / (sizes[index - 1] - sizes[index - 2])
    return [log(max(last + slope * (size - sizes[index - 1]), last))]


@dataclass(frozen=True)
class FittedOverheads:
    """Overheads of NCCL's expected times that are fitted to one machine, with median relative errors."""

    launch_us: float
    most_us: float  #: Time that channels lose at most before they are full.
    half_MiB: float  #: Size at half of it.
    error: float  #: Of every second size, by a fit to the other sizes.
    published_error: float  #: Of all sizes, with the overheads of published times.
    #: ``low`` and ``high``: measured over expected times of the sizes left out, 5th and 95th percentile.
    low: float
    high: float

    @property
    def options(self) -> tuple[str, str]:
        """Options of the method nccl with these overheads, and with the interval."""
        overheads = f"overheads=[{self.launch_us:.4g},{self.most_us:.4g},{self.half_MiB:.4g}]"
        return overheads, f"interval=[{self.low:.4g},{self.high:.4g}]"


def fit_overheads(forecast: method.Prediction, samples: Sequence[Sample]) -> FittedOverheads | None:
    """Fit the launch, and the time that channels lose before they are full; None if NCCL predicts no times.

    They are those of the least squared relative error that are not negative.
    """
    from scipy.optimize import nnls

    ways = [(forecast.pick(sample.size), sample) for sample in samples]
    picks = [(pick, sample) for pick, sample in ways if pick is not None]
    sizes = np.array([sample.size for _, sample in picks], dtype=np.float64)
    kinds = np.unique(sizes)
    if len(kinds) < 4:
        return None
    times = np.array([sample.seconds for _, sample in picks])
    none = method.Overheads(0.0, method.Filling(0.0, 1.0), method.Filling(0.0, 1.0), method.OVERHEADS.net_us)
    published, least = (
        np.array([method.expected_seconds(forecast, pick, sample.size, over) for pick, sample in picks])
        for over in (method.OVERHEADS, none)
    )

    def solve(some: Bools) -> tuple[float, float, float, float]:
        trials = []
        for half in 2.0 ** np.arange(12, 34, 0.25):
            rows = np.column_stack([1 / times, sizes / (sizes + half) / times])
            values, off = nnls(rows[some], (1 - least / times)[some])
            trials.append((off, *values.tolist(), half))
        return min(trials)

    odd, errors = np.isin(sizes, kinds[::2]), published / times - 1
    published_error = float(np.median(abs(errors)))
    for some in (odd, ~odd):
        _, launch_s, most_s, half = solve(~some)
        errors[some] = ((least + launch_s + most_s * sizes / (sizes + half)) / times - 1)[some]
    _, launch_s, most_s, half = solve(np.ones_like(odd))
    error = float(np.median(abs(errors)))
    ends = np.percentile(1 / (1 + errors), (5, 95)).tolist()
    return FittedOverheads(launch_s * 1e6, most_s * 1e6, half / 2**20, error, published_error, *ends)


@dataclass(frozen=True, eq=False)
class CalibratedMachine:
    """A machine with links as fast as measured."""

    data: dict[str, Any]
    fit: Fit
    #: ``rate`` and ``latency``: factors of the rates and latencies of links.
    rate: float
    latency: float
    schedule: str  #: NCCL's schedule for the largest size.
    #: Sizes measured below the proved bound of the uncalibrated machine: size in bytes, measured s, bound in s.
    below_bound: tuple[tuple[int, float, float], ...]
    measured: Measurements
    collective: Collective
    suspects: tuple[str, ...] = ()  #: Parts of the machine that may be described wrongly, as sentences.
    overheads: FittedOverheads | None = None  #: Overheads of the uncalibrated machine; None if NCCL predicts no times.

    def to_json(self) -> dict[str, Any]:
        """Return the output of ``cwb calibrate --json``."""
        names = ("size_bytes", "measured_s", "bound_s")
        return {
            "schema": "cwb-calibration/1",
            "collective": self.collective.name,
            "ranks": self.measured.ranks,
            "nccl": self.measured.version,
            **self.fit.plain(),
            "rate_factor": self.rate,
            "latency_factor": self.latency,
            "schedule": self.schedule,
            "overheads": None if self.overheads is None else asdict(self.overheads),
            "suspects": list(self.suspects),
            "below_bound": [dict(zip(names, row, strict=True)) for row in self.below_bound],
        }


def measuring_plan(machine: Instance, kind: Collective) -> list[str]:
    """Return the commands of nccl-tests whose results calibrate a machine: of a box, and of all boxes."""
    program = next(name for name, collective in PROGRAMS.items() if collective is kind)
    boxes = machine.topology.box_names()
    each = machine.npus if boxes is None else boxes.count(boxes[0])
    sizes = "-b 8 -e 8G -f 2 -w 20 -n 100 -g 1"  # all of NCCL's protocols; the smallest sizes need many repetitions
    return [
        f"mpirun -np {ranks} -N {each} build/{program}_perf {sizes} -J {program}-{ranks}.json"
        for ranks in dict.fromkeys((each, machine.npus))
    ]


def calibrate_machine(
    machine: Instance, measured: Measurements, kind: Collective, origin: str, nccl: dict[str, Any]
) -> CalibratedMachine:
    """Scale the links of a machine so that NCCL's schedules on it take the measured times.

    Rates are scaled by the ratio of the fitted bandwidth to that of NCCL's schedule for the largest size; latencies by
    the ratio of the fitted latency to the time of NCCL's schedule for the smallest size, without data.
    """
    network = machine.network
    if not isinstance(network, Topology):
        raise InputError(f"{network} has no links; expected a machine with an explicit network")
    if measured.ranks not in (None, machine.npus):
        raise InputError(f"{measured.ranks} ranks were measured, and the machine has {machine.npus}")
    law = fit(measured.samples)
    sizes = [sample.size for sample in measured.samples]
    large, name = _seconds(machine, kind, max(sizes), nccl, 2**40)
    small, _ = _seconds(machine, kind, min(sizes), nccl, 1)
    rate = law.bandwidth_Bps.value / (2**40 / large)
    latency = law.latency_s.value / small
    what = f"{kind.name} of {machine.npus} ranks, {origin}"
    alpha, rates = law.latency_s, law.bandwidth_Bps
    text = (
        f"calibrated on {what}: latency {alpha.value * 1e6:.4g} us ({alpha.low * 1e6:.4g} to {alpha.high * 1e6:.4g}), "
        f"bandwidth {rates.value / 1e9:.4g} GB/s ({rates.low / 1e9:.4g} to {rates.high / 1e9:.4g}); "
        f"rates of links times {rate:.4g}, latencies times {latency:.4g}"
    )
    below = below_bound(machine, measured, kind)
    problem = machine.with_changes(demand=Demand(kind, Fraction(max(sizes))), also=())
    predicted = method.prediction(problem, method.study_options(nccl))
    suspects = predicted.suspects if below or rate > 1 else ()
    overheads = fit_overheads(predicted, measured.samples)
    data = _scale_links(machine, network, rate, latency, text)
    return CalibratedMachine(data, law, rate, latency, name, below, measured, kind, suspects, overheads)


def below_bound(machine: Instance, measured: Measurements, kind: Collective) -> tuple[tuple[int, float, float], ...]:
    """Find sizes measured below the proved bound of the machine as described: size, measured s, bound in s."""
    by_size = group_by_key((sample.size, sample.seconds) for sample in measured.samples)
    least = {size: min(times) for size, times in by_size.items()}
    choice = Choice(machine.with_changes(demand=None, also=()), kind, min(least), max(least), ())
    flow_s_per_byte = flow_bound(choice)
    bounds = {size: choice.bound(size, flow_s_per_byte) for size in least}
    return tuple((size, least[size], bounds[size]) for size in sorted(least) if least[size] < bounds[size])


def _seconds(machine: Instance, kind: Collective, size: int, options: dict[str, Any], at: int) -> tuple[float, str]:
    """Return the time, at another size, of NCCL's schedule for a size, and the schedule's name."""
    problem = machine.with_changes(demand=Demand(kind, Fraction(size)), also=())
    result = run(problem, Request("nccl", options=options))
    if not isinstance(result.answer, Written) or result.instance is None:
        raise InputError(f"there is no schedule of NCCL for {kind.name} here: {result.record.message}")
    completion = completion_of(*resize_schedule(result.instance, result.answer, Fraction(at)))
    if completion.seconds is None or completion.seconds <= 0:
        raise InputError(f"the machine's links have no latency that could be scaled {completion.why}".rstrip())
    return completion.seconds, str(result.record.metrics["schedule"])


def _scale_links(machine: Instance, network: Topology, rate: float, latency: float, text: str) -> dict[str, Any]:
    """Return the data of an instance file with scaled links, whose ratios of rates stay exact."""
    faster, later = (Fraction(f"{factor:.{_DIGITS}g}") for factor in (rate, latency))
    links = (
        replace(link, bandwidth_Bps=link.bandwidth_Bps * faster, latency_s=link.latency_s * later)
        for link in network.links
    )
    about = f"{machine.name} with the rates and latencies that were measured."
    data = topology_data(replace(network, links=tuple(links)))
    return checked_instance(data, name=f"{machine.name}, calibrated", description=about, source=text)


@verb
def calibrate(
    results: str | Path,
    machine: Spec,
    *,
    collective: str | None = None,
    options: Mapping[str, Any] | None = None,
    output: str | Path | None = None,
) -> CalibratedMachine:
    """Fit latency and bandwidth to results of nccl-tests and scale the links of a machine, as ``cwb calibrate`` does.

    Parameters
    ----------
    results : str or Path
        Output of nccl-tests or rccl-tests, or the file of its ``-J``.
    """
    path = Path(results)
    if collective is not None:
        check_name(collective, NCCL_COLLECTIVES, "--collective")
    measured = read_measured(path)
    kind = measured_collective(measured, collective, str(path))
    problem = load(machine)
    version = f", NCCL {measured.version}" if measured.version else ""
    with locate_errors(source=str(path)):
        result = calibrate_machine(problem, measured, kind, f"nccl-tests in {path.name}{version}", dict(options or {}))
    if output is not None:
        write_whole(Path(output), (json.dumps(result.data, indent=1) + "\n").encode())
    return result


def measured_collective(measured: Measurements, name: str | None, source: str) -> Collective:
    """Return the collective that a file of nccl-tests or an option names."""
    kind = measured.collective or (None if name is None else collective_named(name))
    if kind is None:
        raise InputError("names no program such as all_reduce_perf; expected --collective", source=source)
    if name is not None and kind.name != name:
        raise InputError(f"has times of {kind.name}, not of {name}", source=source)
    if kind.name not in NCCL_COLLECTIVES:
        raise InputError(f"has times of {kind.name}; expected one of {', '.join(NCCL_COLLECTIVES)}", source=source)
    return kind
