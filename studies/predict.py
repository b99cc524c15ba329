"""The verb ``predict``: the time that a collective is expected to take on a machine, without solving anything."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any

from ..algorithms.bounds.schedule_bounds import best_bound, cut_bound, partition_bound
from ..core.collective import Collective, Demand
from ..core.display import DisplayMixin
from ..core.errors import InputError, locate_errors
from ..core.instance import Instance
from ..core.option_names import verb
from ..heuristics.nccl.method import Prediction, expected_seconds, interval, prediction, study_options, supports
from ..heuristics.nccl.model import COLLECTIVES
from .inputs import Spec, load, machine_and_collective, whole_size

#: Origin of the numbers of a prediction.
SOURCE = "NCCL's own cost model, with overheads fitted to published nccl-tests"
#: Predictions and bounds of machines that were asked about, by digest, collective and options; as many are kept.
_KNOWN: dict[tuple[str, str | None, str], tuple[Prediction, Fraction, Fraction]] = {}
_MOST_KNOWN = 64


@dataclass(frozen=True, repr=False)
class Expectation(DisplayMixin):
    """Expected time of a collective by NCCL on a machine."""

    instance: str
    collective: str
    ranks: int
    size_bytes: int
    seconds: float  #: Expected time.
    low_s: float  #: Nine of ten measured times of such sizes are not below,
    high_s: float  #: and not above.
    busbw_GBps: float  #: Bus bandwidth of nccl-tests at the expected time.
    algorithm: str
    protocol: str
    nccl: str  #: Version of NCCL.
    nccl_s: float  #: NCCL's own prediction.
    bound_s: float  #: Proved lower bound in cwb's time model.
    source: str = SOURCE

    def to_json(self) -> dict[str, Any]:
        """Return the output of ``cwb predict --json``."""
        return {"schema": "cwb-prediction/1", **asdict(self)}


@verb
def predict(
    instance: Spec,
    *,
    collective: str | None = None,
    size: str | int = "1 GiB",
    options: Mapping[str, Any] | None = None,
) -> Expectation:
    """Return the time that NCCL's collective is expected to take on a machine, as ``cwb predict`` does.

    Nothing is solved: a call for a machine that was loaded and asked about before takes about a millisecond.

    Parameters
    ----------
    size : str or int
        Size of the collective, in bytes as a number.
    options : mapping, optional
        Options of the method ``nccl``, such as ``{"version": "2.27.3"}``.
    """
    size_bytes = whole_size(f"{size} B" if isinstance(size, int) else size, "--size")
    machine = load(instance)
    key = machine.sha256, collective, json.dumps(dict(options or {}), sort_keys=True, default=str)
    if key not in _KNOWN:
        with locate_errors(source=machine.name):
            entry = _on_machine(machine, collective, options or {})
        if len(_KNOWN) >= _MOST_KNOWN:
            _KNOWN.clear()
        _KNOWN[key] = entry
    forecast, fixed_s, per_byte_s = _KNOWN[key]
    pick = forecast.pick(size_bytes)
    if pick is None:
        raise InputError("NCCL has no algorithm for it with these options", source=machine.name)
    bound_s = float(max(fixed_s, per_byte_s * size_bytes))
    # NCCL may count on more bandwidth than the network has; no time is below a proved bound.
    seconds = max(expected_seconds(forecast, pick, size_bytes), bound_s)
    low_s, high_s = interval(forecast, size_bytes, seconds)
    kind, ranks = forecast.problem.collective, forecast.problem.n
    source = SOURCE if forecast.options.overheads is None else "NCCL's own cost model, with the given overheads"
    if forecast.options.overheads is not None and forecast.options.interval is None:
        source += "; the interval is that of published times"
    return Expectation(
        machine.name,
        kind.name,
        ranks,
        size_bytes,
        seconds,
        max(low_s, bound_s),
        high_s,
        float(kind.busbw_factor(ranks)) * size_bytes / seconds / 1e9,
        pick.algorithm.value,
        pick.protocol.value,
        forecast.version,
        pick.seconds,
        bound_s,
        source,
    )


def _on_machine(
    machine: Instance, collective: str | None, options: Mapping[str, Any]
) -> tuple[Prediction, Fraction, Fraction]:
    """Return NCCL's predictions for a machine, and lower bounds: in seconds, and in seconds per byte."""
    problem, kind = machine_and_collective(machine, collective)
    if kind not in COLLECTIVES:
        names = ", ".join(each.name for each in COLLECTIVES)
        raise InputError(f"NCCL predicts no time for {kind.name}; expected one of {names}", source="--collective")
    settings = study_options(options)
    if settings.symmetric or settings.zero_sms:
        why = "no measured time of symmetric kernels is known; the method nccl and cwb advise have NCCL's estimates"
        raise InputError(why, source="-O", place="symmetric")
    ranks = None if problem.demand is None else problem.demand.ranks
    large, tiny = (problem.with_changes(demand=Demand(kind, Fraction(s), ranks=ranks)) for s in (2**60, 1))
    if refusal := supports(large):
        raise InputError(str(refusal))
    forecast = prediction(large, settings)
    per_byte = max(best_bound(large, flow=True)[0], _bound_of_boxes(large, forecast.boxes.of_node, kind))
    return forecast, best_bound(tiny)[0], per_byte / 2**60


def _bound_of_boxes(problem: Instance, box_of_node: Sequence[str], kind: Collective) -> Fraction:
    """Bound the time by the data that must cross the NICs of whole boxes; 0 for a single box."""
    names = dict.fromkeys(box_of_node[node] for node in problem.topology.rank_nodes)
    parts = [{node for node, name in enumerate(box_of_node) if name == box} for box in names]
    if len(parts) < 2:
        return Fraction(0)
    if kind is Collective.ALL_REDUCE:
        return partition_bound(problem, parts)[0]
    sides = [side for part in parts for side in (part, {*range(len(box_of_node))} - part)]
    return max(cut_bound(problem, side)[0] for side in sides)
