"""What to expect of a machine at every size: NCCL's choice, the best schedule found, a proved bound, what was measured.

NCCL's own prediction and the completion time of its schedule are told apart: the first has NCCL's measured constants, the
second is in cwb's model of time, as those of all other schedules, so that only times of that model are set in proportion.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from operator import itemgetter
from typing import Any

from ..algorithms.bounds.schedule_bounds import best_bound
from ..core.budget import Progress, silent
from ..core.errors import CwbError, InputError, located
from ..core.fields import validated
from ..core.sensitivity import Sensitivity
from ..exchange.nccl_tests import Measured
from ..heuristics.nccl.constants import Algorithm
from ..heuristics.nccl.method import NcclOptions, Prediction, prediction
from ..heuristics.nccl.model import COLLECTIVES, seconds
from .calibration import Fit, fit
from .request import Request
from .run import run
from .select import Candidate, Candidates, Choice, Item, candidates, different
from .sensitivity import sensitivity

SCHEMA = "cwb-advice/1"

#: What is run beside NCCL's algorithms if nobody says what: methods that end in seconds on a machine of some boxes.
DEFAULT_MODELS = (
    "ring, direct, rhd, bruck, dbt, torus-rings, forestcoll k=1, forestcoll k=2, forestcoll, switch-trees, tacos"
)

#: The method whose bound is taken, and differentiated.
BOUND = "forestcoll"

#: Links that are named among those that would help.
_MOST_LINKS = 6


@dataclass(frozen=True, eq=False)
class Advice:
    """What was found.

    Parameters
    ----------
    choice : Choice
        Machine, collective, sizes and methods.
    sizes : tuple of int
        Sizes of the rows.
    options : NcclOptions
        What was said of NCCL.
    found : Candidates
        Schedules and records.
    among : tuple of Candidate
        Those with a cost of their own.
    predicted : Prediction
        NCCL's table.
    flow_s_per_byte : Fraction or None
        Seconds for a byte that no schedule gets below.
    links : Sensitivity or None
        What more bandwidth is worth, at the last size.
    measured : Measured or None
        Times of nccl-tests.
    why_no_links : str
        Why there are no sensitivities.
    """

    choice: Choice
    sizes: tuple[int, ...]
    options: NcclOptions
    found: Candidates
    among: tuple[Candidate, ...]
    predicted: Prediction
    flow_s_per_byte: Fraction | None
    links: Sensitivity | None
    measured: Measured | None
    why_no_links: str = ""

    def row(self, size: int) -> dict[str, Any]:
        """Everything at one size, as plain data; None for what there is not."""
        pick = self.predicted.pick(size)
        drawn = self.predicted.pick(size, self.predicted.drawable)
        played = None if drawn is None else self.least(size, "nccl", drawn.algorithm)
        ring, best = self.least(size, "ring"), self.least(size)
        bound = self.bound(size)
        return {
            "size_bytes": size,
            "nccl": None if pick is None else {"algorithm": pick.algorithm.value, "protocol": pick.protocol.value},
            "nccl_predicted_s": None if pick is None else pick.seconds,
            "nccl_schedule": None if drawn is None else drawn.algorithm.value,
            "nccl_s": None if played is None else played[0],
            "ring_s": None if ring is None else ring[0],
            "best": None if best is None else best[1].label,
            "best_s": None if best is None else best[0],
            "times_nccl": played[0] / best[0] if played and best else None,
            "bound_s": bound,
            "gap": best[0] / bound - 1 if best and bound else None,
            "measured_s": self.measured_s(size),
        }

    def least(self, size: int, model: str = "", algorithm: Algorithm | None = None) -> tuple[float, Candidate] | None:
        """The least completion time at a size, of one method and algorithm if they are named, and whose it is."""
        some = [one for one in self.found.found if one.item.model == model] if model else self.among
        if algorithm is not None:
            some = [one for one in some if one.item.options.get("algorithm") == algorithm.value]
        timed = [(_seconds_of(one, size), one) for one in some]
        return min(((s, one) for s, one in timed if s is not None), key=itemgetter(0), default=None)

    def bound(self, size: int) -> float:
        """Seconds that no schedule gets below."""
        least, _ = best_bound(self.choice.posed(size, 1))
        flow = Fraction(0) if self.flow_s_per_byte is None else self.flow_s_per_byte * size
        return float(max(least, flow))

    def measured_s(self, size: int) -> float | None:
        """The least time that was measured at a size."""
        samples = () if self.measured is None else self.measured.samples
        return min((sample.seconds for sample in samples if sample.size == size), default=None)

    @property
    def fitted(self) -> Fit | None:
        """Latency and bandwidth of what was measured, if they can be fitted."""
        try:
            return None if self.measured is None else fit(self.measured.samples)
        except InputError:
            return None

    def plain(self) -> dict[str, Any]:
        """All of it as plain data, for files and pages."""
        machine, fitted = self.predicted.machine, self.fitted
        factor = float(self.choice.kind.busbw_factor(self.choice.ranks))
        return {
            "schema": SCHEMA,
            "instance": self.choice.instance.name,
            "collective": self.choice.kind.value,
            "ranks": self.choice.ranks,
            "boxes": machine.nodes,
            "gpu": machine.gpu,
            "nccl": self.options.version,
            "busbw_factor": factor,
            "rows": [self.row(size) for size in self.sizes],
            "table": self.table(),
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
        }

    def table(self) -> list[dict[str, Any]]:
        """NCCL's table for the collective."""
        return [
            {
                "algorithm": algorithm.value,
                "protocol": protocol.value,
                "latency_us": cost.latency_us,
                "bandwidth_GBps": cost.bandwidth_GBps,
            }
            for (algorithm, protocol), cost in self.predicted.costs.items()
        ]

    def helpful_links(self) -> list[dict[str, Any]]:
        """Links whose bandwidth counts at the last size: what a tenth more of each class gains of the bound."""
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
        """At every size, the fastest of NCCL's own algorithms in cwb's model where it is another than NCCL takes."""
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


def advise(
    choice: Choice,
    nccl: Mapping[str, Any],
    measured: Measured | None = None,
    links_s: float | None = 60.0,
    progress: Progress = silent,
) -> Advice:
    """Run NCCL's algorithms and others, and bound what there may be.

    Parameters
    ----------
    choice : Choice
        Machine, collective, sizes and methods; NCCL's algorithms are run too.
    nccl : mapping
        Options of the method ``nccl``, but for the algorithm and the protocol.
    measured : Measured, optional
        Times of nccl-tests.
    links_s : float or None
        Seconds for sensitivities; 0 for none.
    progress : callable
        Shows lines.

    Raises
    ------
    InputError
        If NCCL has no algorithm for the collective, an option is wrong, or other numbers of ranks were measured.
    """
    if choice.kind not in COLLECTIVES:
        expected = ", ".join(kind.value for kind in COLLECTIVES)
        raise InputError(f"NCCL has no algorithms for {choice.kind.value}; expected one of {expected}")
    if measured is not None and measured.ranks not in (None, choice.ranks):
        raise InputError(
            f"{measured.ranks} ranks were measured, and the machine has {choice.ranks}", source="--measured"
        )
    with located(source="-O"):
        options = validated(lambda: NcclOptions.model_validate(dict(nccl)), NcclOptions.model_fields)
    predicted = prediction(choice.posed(choice.last, 1), options)
    own = [Item("nccl", {"algorithm": a.value} | dict(nccl)) for a in _own(predicted)]
    sizes = _sizes(choice, measured)

    def made(found: Candidates, flow: Fraction | None, links: Sensitivity | None, why: str) -> Advice:
        progress("comparing")
        at = dict.fromkeys((sizes[0], sizes[len(sizes) // 2], sizes[-1])) if found.interrupted else sizes
        among = tuple(different(found, choice, tuple(at)))
        return Advice(choice, tuple(at), options, found, among, predicted, flow, links, measured, why)

    found = candidates(replace(choice, items=own, chunks=(1,)), progress)
    found.found = [replace(one, label=f"nccl {one.item.options['algorithm']}") for one in found.found]
    if found.interrupted:
        return made(found, None, None, "stopped")
    others = candidates(choice, progress)
    found.found += others.found
    found.records += others.records
    found.left_out |= others.left_out
    found.why_ended, found.interrupted = others.why_ended, found.interrupted or others.interrupted
    if found.interrupted:
        return made(found, None, None, "stopped")
    stop = threading.Event()
    flow = _flow(choice, stop)
    links, why = (None, "stopped") if stop.is_set() else _links(choice, links_s, progress, stop)
    if stop.is_set():
        found.why_ended, found.interrupted = "stopped after all runs", True
    return made(found, flow, links, why)


def _seconds_of(one: Candidate, size: int) -> float | None:
    """Completion time at a size; None if there is none in the one model of time."""
    try:
        return one.seconds(size)
    except InputError:
        return None


def _sizes(choice: Choice, measured: Measured | None) -> tuple[int, ...]:
    """Every other power of two from the first size on, the last, and all that were measured."""
    found = {choice.first, choice.last}
    found |= {choice.first * 4**step for step in range(40) if choice.first * 4**step <= choice.last}
    if measured is not None:
        found |= {sample.size for sample in measured.samples if choice.first <= sample.size <= choice.last}
    return tuple(sorted(found))


def _own(predicted: Prediction) -> list[Algorithm]:
    """NCCL's algorithms that have a time and a schedule here."""
    offered = {algorithm for (algorithm, _), cost in predicted.costs.items() if cost.bandwidth_GBps}
    return [algorithm for algorithm in predicted.drawable if algorithm in offered]


def _flow(choice: Choice, stop: threading.Event) -> Fraction | None:
    """Seconds for a byte that no schedule gets below, latencies left out, as the verifier recomputes it."""
    request = Request(BOUND, time_limit_s=choice.each_s)
    try:
        record = run(choice.posed(choice.last, 1), request, stop=stop).record
    except CwbError:
        return None
    return None if record.bound is None or not record.verified else Fraction(record.bound) / choice.last


def _links(
    choice: Choice, limit_s: float | None, progress: Progress, stop: threading.Event
) -> tuple[Sensitivity | None, str]:
    """What more bandwidth is worth at the last size, or why that is not known."""
    if limit_s == 0:
        return None, "not asked for"
    try:
        return sensitivity(choice.posed(choice.last, 1), Request(BOUND, time_limit_s=limit_s), progress, stop), ""
    except CwbError as error:
        return None, str(error)
