"""Advice on a machine by size: NCCL's choice, best schedule found, proved bound, measurements.

NCCL's prediction and the completion time of its schedule are kept apart: the first uses NCCL's measured constants,
the second cwb's time model, as for all other schedules. Ratios compare times of cwb's model only.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from pathlib import Path
from typing import Any

from ..core.budget import Progress, ignore
from ..core.errors import CwbError, InputError
from ..core.files import write_whole
from ..core.option_names import verb
from ..core.sensitivity import Sensitivity
from ..core.solver import relative_gap
from ..exchange.nccl import Measurements, read_measured, ring_channels
from ..harness.interrupt import stop_on_interrupt
from ..harness.request import Request
from ..heuristics.nccl.constants import Algorithm
from ..heuristics.nccl.method import SENDS, Prediction, expected_seconds, prediction, study_options
from ..heuristics.nccl.model import COLLECTIVES, EXCHANGES, seconds
from .calibration import Fit, fit, measured_collective
from .diagnosis import diagnosis
from .grid import sizes as sizes_or_range
from .inputs import Spec, seconds_or_none, whole_size
from .schedule_candidates import (
    DEFAULT_CHUNKS,
    Candidate,
    Candidates,
    Choice,
    Item,
    bounding_method,
    candidates,
    choice_of,
    distinct_candidates,
    flow_bound,
    size_ends,
)
from .sensitivity import sensitivity

SCHEMA = "cwb-advice/1"

#: What is run beside NCCL's algorithms if nobody says what: methods that end in seconds on a machine of some boxes.
DEFAULT_MODELS = (
    "ring, direct, direct whole=true, rhd, rhd whole=true, bruck, dbt, torus-rings, forestcoll k=1, forestcoll k=2, "
    "forestcoll, switch-trees, tacos, fast"
)

_MOST_LINKS = 6  #: Links that are named among those that would help.


@dataclass(frozen=True, eq=False)
class Advice:
    """Advice on a machine, by size."""

    choice: Choice
    sizes: tuple[int, ...]
    results: Candidates
    among: tuple[Candidate, ...]  #: Candidates with distinct costs at some size.
    predicted: Prediction
    links: Sensitivity | None  #: Value of more bandwidth at the last size.
    measured: Measurements | None
    why_no_links: str = ""
    against: Prediction | None = None  #: By another version of NCCL.

    def row(self, size: int) -> dict[str, Any]:
        """Return the results at one size as plain data; None for missing ones."""
        pick = self.predicted.pick(size)
        own = self.predicted.pick(size, self.predicted.drawable)
        played = None if own is None else self.least(size, "nccl", own.algorithm)
        choice = None if pick is None else {"algorithm": pick.algorithm.value, "protocol": pick.protocol.value}
        if not self.predicted.has_costs:
            played, choice = self.least(size, "nccl"), {"algorithm": SENDS, "protocol": ""}
        kernel = self.predicted.symmetric_pick(size)
        if kernel is not None:
            choice = {"algorithm": kernel.kernel, "protocol": f"{kernel.sms} SM"}
        ring, best = self.least(size, "ring"), self.least(size)
        bound, measured_s = self.bound(size), self.measured_s(size)
        # NCCL may count on more bandwidth than the network has; no time is below a proved bound.
        expected_s = None if pick is None or kernel else max(expected_seconds(self.predicted, pick, size), bound)
        predicted_s = max(kernel.seconds, bound) if kernel else None if pick is None else pick.seconds
        other = None if self.against is None else self.against.pick(size)
        return {
            "size_bytes": size,
            "nccl": choice,
            "nccl_predicted_s": predicted_s,
            "nccl_expected_s": expected_s,
            "overhead": expected_seconds(self.predicted, pick, 1) / expected_s if pick and expected_s else None,
            "against": None if other is None else f"{other.algorithm.value} {other.protocol.value}",
            "against_s": None if other is None else other.seconds,
            "times_against": None if other is None or predicted_s is None else predicted_s / other.seconds,
            "nccl_schedule": own.algorithm.value if own else choice and choice["algorithm"],
            "nccl_s": None if played is None else played[0],
            "ring_s": None if ring is None else ring[0],
            "best": None if best is None else best[1].label,
            "best_s": None if best is None else best[0],
            "times_nccl": played[0] / best[0] if played and best else None,
            "bound_s": bound,
            "gap": relative_gap(best[0], bound) if best and bound else None,
            "nccl_gap": relative_gap(played[0], bound) if played and bound else None,
            "measured_s": measured_s,
            "measured_below_bound": measured_s is not None and measured_s < bound,
        }

    def least(self, size: int, model: str = "", algorithm: Algorithm | None = None) -> tuple[float, Candidate] | None:
        """Return the least completion time at a size and its candidate.

        Only candidates of the method and algorithm count, if they are given.
        """
        some = [one for one in self.results.pool if one.item.model == model] if model else self.among
        if algorithm is not None:
            some = [one for one in some if one.item.options.get("algorithm") == algorithm.value]
        timed = [(_seconds_of(one, size), one) for one in some]
        return min(((s, one) for s, one in timed if s is not None), key=itemgetter(0), default=None)

    def bound(self, size: int) -> float:
        """Return the proved lower bound at a size in seconds."""
        return self.choice.bound(size, self.results.flow_s_per_byte)

    def measured_s(self, size: int) -> float | None:
        """Return the least measured time at a size; None without one."""
        samples = () if self.measured is None else self.measured.samples
        return min((sample.seconds for sample in samples if sample.size == size), default=None)

    @property
    def measured_fit(self) -> Fit | None:
        """Latency and bandwidth fitted to the measured times; None if there is no fit."""
        try:
            return None if self.measured is None else fit(self.measured.samples)
        except InputError:
            return None

    def to_json(self) -> dict[str, Any]:
        """Return the output of ``cwb advise --json``."""
        machine, fitted = self.predicted.machine, self.measured_fit
        factor = float(self.choice.kind.busbw_factor(self.choice.ranks))
        return {
            "schema": SCHEMA,
            "instance": self.choice.instance.name,
            "collective": self.choice.kind.name,
            "ranks": self.choice.ranks,
            "boxes": machine.nodes,
            "gpu": machine.gpu,
            "nccl": self.predicted.version,
            "against": None if self.against is None else self.against.version,
            "busbw_factor": factor,
            "rows": [self.row(size) for size in self.sizes],
            "table": [  # NCCL's table for the collective
                {"algorithm": a.value, "protocol": p.value, **cost._asdict()}
                for (a, p), cost in self.predicted.costs.items()
            ],
            "graphs": {
                a.value: {"channels": g.channels, "intra_GBps": g.intra, "inter_GBps": g.inter}
                for a, g in machine.graphs.items()
            },
            "fit": None if fitted is None else fitted.plain(),
            "links": self.helpful_links(),
            "why_no_links": self.why_no_links,
            "algorithms": self.helpful_algorithms(),
            "left_out": dict(self.results.left_out),
            "why_ended": self.results.why_ended,
            "suspects": list(self.predicted.suspects),
            "diagnosis": self.diagnosis(),
        }

    def diagnosis(self) -> dict[str, Any] | None:
        """Return the largest measured size beside the expected time, with likely causes; None without measurements."""
        if self.measured is None:
            return None
        size = max(sample.size for sample in self.measured.samples)
        least_s = min(sample.seconds for sample in self.measured.samples if sample.size == size)
        compared = diagnosis(self.choice.with_size(size, 1), self.predicted, size, least_s)
        return {**(compared or {}), "log": list(self.measured.findings)}

    def helpful_links(self) -> list[dict[str, Any]]:
        """Return the classes of links that limit the last size, with the bound's gain from 10 % more bandwidth."""
        if self.links is None:
            return []
        rows: list[dict[str, Any]] = []
        for entry in self.links.entries:
            slope = entry.up.slope_s_per_GBps if entry.up else None
            if slope is not None:
                gain = -slope * entry.bandwidth_GBps * 0.1 / self.links.seconds
                rows.append({"links": entry.name, "count": entry.count, "GBps": entry.bandwidth_GBps, "gain": gain})
        return sorted(rows, key=lambda row: (-row["gain"], row["count"]))[:_MOST_LINKS]

    def helpful_algorithms(self) -> list[dict[str, Any]]:
        """Return, by size, NCCL's algorithm that is fastest in cwb's model if NCCL chooses another one."""
        rows: list[dict[str, Any]] = []
        machine, tuning, costs = self.predicted.machine, self.predicted.tuning, self.predicted.costs
        for size in self.sizes:
            own = self.predicted.pick(size, self.predicted.drawable)
            timed = {a: self.least(size, "nccl", a) for a in self.predicted.drawable}
            times = {a: least[0] for a, least in timed.items() if least is not None}
            if own is None or own.algorithm not in times:
                continue
            best = min(times, key=times.__getitem__)
            if times[best] < times[own.algorithm] * 0.98:
                predicted = [seconds(machine, tuning, costs, at, size) for at in costs if at[0] is best]
                rows.append(
                    {
                        "size_bytes": size,
                        "taken": own.algorithm.value,
                        "better": best.value,
                        "times": times[own.algorithm] / times[best],
                        "predicted_s": min((time for time in predicted if time is not None), default=None),
                    }
                )
        return rows


def advice_of(
    choice: Choice,
    nccl: Mapping[str, Any],
    measured: Measurements | None = None,
    links_s: float | None = 60.0,
    progress: Progress = ignore,
    *,
    sizes: Sequence[int],
    against: str | None = None,
    stop: threading.Event | None = None,
) -> Advice:
    """Run NCCL's algorithms and other methods, and prove a bound.

    ``nccl`` has options of the method ``nccl`` except algorithm and protocol; ``links_s`` is the time limit for
    sensitivities in seconds, 0 for none. ``against`` is another version of NCCL. Once ``stop`` is set, the advice has
    what was found by then.
    """
    stop, clock = stop or threading.Event(), choice.clock(1.0)
    if choice.kind not in (*COLLECTIVES, *EXCHANGES):
        expected = ", ".join(kind.name for kind in (*COLLECTIVES, *EXCHANGES))
        raise InputError(f"NCCL has no algorithms for {choice.kind.name}; expected one of {expected}")
    if measured is not None and measured.ranks not in (None, choice.ranks):
        raise InputError(
            f"{measured.ranks} ranks were measured, and the machine has {choice.ranks}", source="--measured"
        )
    options = study_options(nccl)
    problem = choice.with_size(choice.last, 1)
    predicted = prediction(problem, options)
    versions = () if against is None else (study_options({**nccl, "version": against}, "--against"),)
    other = next((prediction(problem, one) for one in versions), None)
    offered = {algorithm for (algorithm, _), cost in predicted.costs.items() if cost.bandwidth_GBps}
    own = [Item("nccl", {"algorithm": a.value} | dict(nccl)) for a in predicted.drawable if a in offered]
    if not predicted.has_costs:
        own = [Item("nccl", dict(nccl))]
    samples = () if measured is None else measured.samples
    at = sorted({*sizes, *(one.size for one in samples if choice.first <= one.size <= choice.last)})

    def make_advice(results: Candidates, links: Sensitivity | None, why: str) -> Advice:
        progress("comparing")
        among = distinct_candidates(results, choice, at, stop)
        some = tuple(at)
        if results.interrupted or stop.is_set():
            results.why_ended, results.interrupted = results.why_ended or "stopped after all runs", True
            some = tuple(dict.fromkeys((at[0], at[len(at) // 2], at[-1])))
            among = distinct_candidates(results, choice, some)
        return Advice(choice, some, results, tuple(among), predicted, links, measured, why, other)

    flow_s_per_byte = flow_bound(choice, stop, clock)
    results = candidates(replace(choice, items=own, chunks=(1,)), progress, stop, clock, at)
    results.flow_s_per_byte = flow_s_per_byte
    results.pool = [replace(one, label=f"nccl {one.item.options.get('algorithm', SENDS)}") for one in results.pool]
    if results.interrupted:
        return make_advice(results, None, "stopped")
    others = candidates(choice, progress, stop, clock, at)
    results.pool += others.pool
    results.records += others.records
    results.left_out |= others.left_out
    results.why_ended, results.interrupted = others.why_ended, results.interrupted or others.interrupted
    if results.interrupted:
        return make_advice(results, None, "stopped")
    limits = [limit for limit in (links_s, clock.remaining_s()) if limit is not None]
    links, why = (None, "stopped") if stop.is_set() else _links(choice, min(limits, default=None), progress, stop)
    return make_advice(results, links, why)


def _seconds_of(one: Candidate, size: int) -> float | None:
    """Return the completion time at a size; None if cwb's time model has none."""
    try:
        return one.seconds(size)
    except InputError:
        return None


def _sizes(text: str) -> list[int]:
    """Parse ``--sizes``: a range whose sizes grow by a factor, both ends included, or sizes between commas."""
    sizes = sizes_or_range(text)
    if isinstance(sizes, dict):
        first, last = size_ends(sizes["from"], sizes["to"], "--sizes", "--sizes")
        factor = sizes["factor"]
        if factor < 2:
            raise InputError(f"{text[:60]!r}; expected a factor above 1, such as 1KiB..8GiB*2", source="--sizes")
        steps = range((last // first).bit_length())
        return sorted({last, *(first * factor**step for step in steps if first * factor**step <= last)})
    if not sizes:
        raise InputError(f"{text[:60]!r}; expected sizes such as 1KiB..8GiB*2 or 1MiB,1GiB", source="--sizes")
    return sorted({whole_size(one, "--sizes") for one in sizes})


def _links(
    choice: Choice, limit_s: float | None, progress: Progress, stop: threading.Event
) -> tuple[Sensitivity | None, str]:
    """Return the sensitivities at the last size, or the reason for their absence."""
    if limit_s == 0:
        return None, "not asked for, or no time was left"
    try:
        request = Request(bounding_method(choice.kind), time_limit_s=limit_s)
        return sensitivity(choice.with_size(choice.last, 1), request, progress, stop), ""
    except CwbError as error:
        return None, str(error)


@verb
def advise(
    instance: Spec,
    *,
    collective: str | None = None,
    sizes: str = "1KiB..8GiB",
    measured: str | Path | None = None,
    against: str | None = None,
    models: str = DEFAULT_MODELS,
    chunks: str | Sequence[int] = DEFAULT_CHUNKS,
    options: Mapping[str, Any] | None = None,
    graphs: str | Path | None = None,
    time_limit_s: float | None = 300.0,
    run_limit_s: float | None = 10.0,
    links_limit_s: float | None = 60.0,
    output: str | Path | None = None,
    progress: Progress = ignore,
) -> Advice:
    """Report the expected times of a collective on a machine and possible improvements, as ``cwb advise`` does.

    Parameters
    ----------
    sizes, measured : str or Path
        First and last size, such as ``"1KiB..1GiB*2"``, where each row's size is twice the one before, without a factor
        4 times; or sizes between commas; file with results of nccl-tests.
    against : str, optional
        Another version of NCCL, whose choice and predicted time are compared with.
    models, chunks
        Methods in addition to NCCL's, such as ``"ring, dbt, forestcoll k=2"``; numbers of chunks of each rank's part.
    options : mapping, optional
        Options of the method ``nccl``, such as ``{"version": "2.27.3"}``.
    graphs : str or Path, optional
        NCCL's graph file, whose channels are used unchanged.
    time_limit_s, run_limit_s, links_limit_s : float or None
        Seconds for everything, for each run, and for the value of more bandwidth (0 omits it); None is no limit.
    """
    rows, stop = _sizes(sizes), threading.Event()
    links_s = seconds_or_none(links_limit_s, "links_limit_s")
    settings = dict(options or {})
    if graphs is not None:
        orders, speeds = ring_channels(Path(graphs))
        settings |= {"channels": orders, "speeds": speeds}
    choice = choice_of(instance, collective, rows[0], rows[-1], models, chunks, time_limit_s, run_limit_s)
    times: Measurements | None = None
    if measured is not None:
        times = read_measured(Path(measured))
        measured_collective(times, choice.kind.name, str(measured))
    with stop_on_interrupt(stop):
        advice = advice_of(choice, settings, times, links_s, progress, sizes=rows, against=against, stop=stop)
        if output is not None:
            from ..reports.plots.look import draw_as
            from ..reports.plots.studies import draw_advice
            from ..reports.studies import advice_page

            plain = advice.to_json()
            page = advice_page(plain, *(draw_as("svg", draw_advice, plain, columns) for columns in (2, 1)))
            write_whole(Path(output), page.encode(errors="backslashreplace"))
    return advice
