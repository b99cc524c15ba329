"""Advice on a machine by size: NCCL's choice, best schedule found, proved bound, measurements.

NCCL's prediction and the completion time of its schedule are kept apart: the first uses NCCL's measured constants,
the second cwb's time model, as for all other schedules. Ratios compare times of cwb's model only.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from operator import itemgetter
from pathlib import Path
from typing import Any

from ..algorithms.bounds.schedule_bounds import best_bound
from ..core.budget import Progress, ignore
from ..core.collective import Collective
from ..core.errors import CwbError, InputError
from ..core.files import write_whole
from ..core.option_names import verb
from ..core.sensitivity import Sensitivity
from ..core.solver import relative_gap
from ..exchange.nccl import Measurements, read_measured, ring_channels
from ..harness.request import Request
from ..harness.run import run
from ..heuristics.nccl.constants import Algorithm
from ..heuristics.nccl.method import SENDS, NcclOptions, Prediction, prediction, study_options
from ..heuristics.nccl.model import COLLECTIVES, EXCHANGES, seconds
from .calibration import Fit, fit, measured_collective
from .inputs import Spec, seconds_or_none
from .schedule_candidates import (
    DEFAULT_CHUNKS,
    Candidate,
    Candidates,
    Choice,
    Item,
    candidates,
    choice_of,
    distinct_candidates,
    size_ends,
)
from .sensitivity import sensitivity

SCHEMA = "cwb-advice/1"

#: What is run beside NCCL's algorithms if nobody says what: methods that end in seconds on a machine of some boxes.
DEFAULT_MODELS = (
    "ring, direct, rhd, bruck, dbt, torus-rings, forestcoll k=1, forestcoll k=2, forestcoll, switch-trees, tacos, fast"
)


def bounding_method(kind: Collective) -> str:
    """Return the method whose bound is taken, and differentiated."""
    return "all-to-all-mcf" if kind is Collective.ALL_TO_ALL else "forestcoll"


_MOST_LINKS = 6  #: Links that are named among those that would help.


@dataclass(frozen=True, eq=False)
class Advice:
    """Advice on a machine, by size."""

    choice: Choice
    sizes: tuple[int, ...]
    options: NcclOptions
    found: Candidates
    among: tuple[Candidate, ...]  #: Candidates with distinct costs at some size.
    predicted: Prediction
    flow_s_per_byte: Fraction | None  #: Proved lower bound in seconds per byte.
    links: Sensitivity | None  #: Value of more bandwidth at the last size.
    measured: Measurements | None
    why_no_links: str = ""

    def row(self, size: int) -> dict[str, Any]:
        """Return the results at one size as plain data; None for missing ones."""
        pick = self.predicted.pick(size)
        drawn = self.predicted.pick(size, self.predicted.drawable)
        played = None if drawn is None else self.least(size, "nccl", drawn.algorithm)
        taken = None if pick is None else {"algorithm": pick.algorithm.value, "protocol": pick.protocol.value}
        if not self.predicted.has_costs:
            played, taken = self.least(size, "nccl"), {"algorithm": SENDS, "protocol": ""}
        ring, best = self.least(size, "ring"), self.least(size)
        bound, measured_s = self.bound(size), self.measured_s(size)
        return {
            "size_bytes": size,
            "nccl": taken,
            "nccl_predicted_s": None if pick is None else pick.seconds,
            "nccl_schedule": taken["algorithm"] if taken and drawn is None else drawn and drawn.algorithm.value,
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
        some = [one for one in self.found.found if one.item.model == model] if model else self.among
        if algorithm is not None:
            some = [one for one in some if one.item.options.get("algorithm") == algorithm.value]
        timed = [(_seconds_of(one, size), one) for one in some]
        return min(((s, one) for s, one in timed if s is not None), key=itemgetter(0), default=None)

    def bound(self, size: int) -> float:
        """Return the proved lower bound at a size in seconds."""
        least, _ = best_bound(self.choice.with_size(size, 1))
        flow = Fraction(0) if self.flow_s_per_byte is None else self.flow_s_per_byte * size
        return float(max(least, flow))

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
            "left_out": dict(self.found.left_out),
            "why_ended": self.found.why_ended,
            "suspects": list(self.predicted.suspects),
        }

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
            drawn = self.predicted.pick(size, self.predicted.drawable)
            timed = {a: self.least(size, "nccl", a) for a in self.predicted.drawable}
            known = {a: found[0] for a, found in timed.items() if found is not None}
            if drawn is None or drawn.algorithm not in known:
                continue
            best = min(known, key=known.__getitem__)
            if known[best] < known[drawn.algorithm] * 0.98:
                predicted = [seconds(machine, tuning, costs, at, size) for at in costs if at[0] is best]
                rows.append(
                    {
                        "size_bytes": size,
                        "taken": drawn.algorithm.value,
                        "better": best.value,
                        "times": known[drawn.algorithm] / known[best],
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
) -> Advice:
    """Run NCCL's algorithms and other methods, and prove a bound.

    ``nccl`` has options of the method ``nccl`` except algorithm and protocol; ``links_s`` is the time limit for
    sensitivities in seconds, 0 for none.
    """
    if choice.kind not in (*COLLECTIVES, *EXCHANGES):
        expected = ", ".join(kind.name for kind in (*COLLECTIVES, *EXCHANGES))
        raise InputError(f"NCCL has no algorithms for {choice.kind.name}; expected one of {expected}")
    if measured is not None and measured.ranks not in (None, choice.ranks):
        raise InputError(
            f"{measured.ranks} ranks were measured, and the machine has {choice.ranks}", source="--measured"
        )
    options = study_options(nccl)
    predicted = prediction(choice.with_size(choice.last, 1), options)
    offered = {algorithm for (algorithm, _), cost in predicted.costs.items() if cost.bandwidth_GBps}
    own = [Item("nccl", {"algorithm": a.value} | dict(nccl)) for a in predicted.drawable if a in offered]
    if not predicted.has_costs:
        own = [Item("nccl", dict(nccl))]
    sizes = _sizes(choice, measured)

    def make_advice(found: Candidates, flow: Fraction | None, links: Sensitivity | None, why: str) -> Advice:
        progress("comparing")
        at = dict.fromkeys((sizes[0], sizes[len(sizes) // 2], sizes[-1])) if found.interrupted else sizes
        among = tuple(distinct_candidates(found, choice, tuple(at)))
        return Advice(choice, tuple(at), options, found, among, predicted, flow, links, measured, why)

    found = candidates(replace(choice, items=own, chunks=(1,)), progress)
    found.found = [replace(one, label=f"nccl {one.item.options.get('algorithm', SENDS)}") for one in found.found]
    if found.interrupted:
        return make_advice(found, None, None, "stopped")
    others = candidates(choice, progress)
    found.found += others.found
    found.records += others.records
    found.left_out |= others.left_out
    found.why_ended, found.interrupted = others.why_ended, found.interrupted or others.interrupted
    if found.interrupted:
        return make_advice(found, None, None, "stopped")
    stop = threading.Event()
    flow = _flow(choice, stop)
    links, why = (None, "stopped") if stop.is_set() else _links(choice, links_s, progress, stop)
    if stop.is_set():
        found.why_ended, found.interrupted = "stopped after all runs", True
    return make_advice(found, flow, links, why)


def _seconds_of(one: Candidate, size: int) -> float | None:
    """Return the completion time at a size; None if cwb's time model has none."""
    try:
        return one.seconds(size)
    except InputError:
        return None


def _sizes(choice: Choice, measured: Measurements | None) -> tuple[int, ...]:
    found = {choice.first, choice.last}
    found |= {choice.first * 4**step for step in range(40) if choice.first * 4**step <= choice.last}
    if measured is not None:
        found |= {sample.size for sample in measured.samples if choice.first <= sample.size <= choice.last}
    return tuple(sorted(found))


def _flow(choice: Choice, stop: threading.Event) -> Fraction | None:
    """Return the recomputed lower bound in seconds per byte, without latency."""
    request = Request(bounding_method(choice.kind), time_limit_s=choice.each_s)
    try:
        record = run(choice.with_size(choice.last, 1), request, stop=stop).record
    except CwbError:
        return None
    return None if record.bound is None or not record.verified else Fraction(record.bound) / choice.last


def _links(
    choice: Choice, limit_s: float | None, progress: Progress, stop: threading.Event
) -> tuple[Sensitivity | None, str]:
    """Return the sensitivities at the last size, or the reason for their absence."""
    if limit_s == 0:
        return None, "not asked for"
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
        First and last size, of which every other power of two is a row; file with results of nccl-tests.
    models, chunks
        Methods in addition to NCCL's, such as ``"ring, dbt, forestcoll k=2"``; numbers of chunks of each rank's part.
    options : mapping, optional
        Options of the method ``nccl``, such as ``{"version": "2.27.3"}``.
    graphs : str or Path, optional
        NCCL's graph file, whose channels are used unchanged.
    time_limit_s, run_limit_s, links_limit_s : float or None
        Seconds for all runs, for each run, and for the value of more bandwidth (0 omits it); None is no limit.
    """
    if len(ends := sizes.split("..")) != 2:
        raise InputError(f"{sizes[:60]!r}; expected two sizes, such as 1KiB..8GiB", source="--sizes")
    first, last = size_ends(ends[0].strip(), ends[1].strip(), "--sizes", "--sizes")
    links_s = seconds_or_none(links_limit_s, "links_limit_s")
    given = dict(options or {})
    if graphs is not None:
        orders, speeds = ring_channels(Path(graphs))
        given |= {"channels": orders, "speeds": speeds}
    choice = choice_of(instance, collective, first, last, models, chunks, time_limit_s, run_limit_s)
    times: Measurements | None = None
    if measured is not None:
        times = read_measured(Path(measured))
        measured_collective(times, choice.kind.name, str(measured))
    found = advice_of(choice, given, times, links_s, progress)
    if output is not None:
        from ..reports.plots.look import draw_as
        from ..reports.plots.studies import draw_advice
        from ..reports.studies import advice_page

        plain = found.to_json()
        page = advice_page(plain, draw_as("svg", draw_advice, plain))
        write_whole(Path(output), page.encode(errors="backslashreplace"))
    return found
