"""The verifier of schedules.

Verified, simulated, measured as nccl-tests measures, and compared with what their certificates prove.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import ceil

import numpy as np

from ..core.answers import Answer, BoundOnly, ChunkOrders
from ..core.bounds import (
    Certificate,
    CutCertificate,
    DimensionWeights,
    DistanceCertificate,
    EpochBound,
    LengthCertificate,
    PartitionCertificate,
    SolverBound,
    TreePrices,
    WholeChunks,
)
from ..core.budget import Clock
from ..core.errors import InputError
from ..core.fabric import WiredFabric
from ..core.instance import Instance
from ..core.orbits import TreeOrbits
from ..core.schedule import Schedule, StepSchedule
from ..core.streamed import StreamedSteps
from ..core.timing import Semantics
from ..core.topology import Topology
from ..core.trace import SimulationMode
from ..core.translated import TranslatedTrees
from ..core.trees import TreePacking
from ..core.verdict import Verdict
from .chunk_bounds import fault_of_chunks, recomputed_chunk_bound
from .chunk_orders import lowered
from .completion import Completion, completion_if_any, completion_of
from .contradiction import contradictions, margin_of
from .epoch_bounds import recomputed_epochs
from .files import Written
from .multirail import evaluate, weighted_bound_s
from .network_bounds import (
    recomputed_cut_bound,
    recomputed_distance_bound,
    recomputed_length_bound,
    recomputed_partition_bound,
)
from .questions import question_of
from .simulate import simulate
from .simulate.pipeline import pipeline
from .tree_bounds import fault_of_trees, recomputed_tree_bound
from .verify import verify
from .verify.epochs import finish_epochs
from .verify.grid import whole_ticks
from .verify.orbits import heaviest_of_orbits
from .verify.streamed import streamed_epochs
from .verify.translated import translated_epochs
from .verify.trees import heaviest_link

#: Messages of a verdict.
SHOWN = 20

#: Orders of chunks are also played as sends on links if these are not more.
MOST_LOWERED = 100_000


def collective_verdict(
    instance: Instance,
    answer: ChunkOrders | StepSchedule | Schedule | TreePacking | TreeOrbits | TranslatedTrees | StreamedSteps,
    certificate: Certificate | None,
    clock: Clock,
) -> Verdict:
    """Verify a schedule, a packing of trees, or orders of chunks.

    Returns
    -------
    Verdict
        Objective: the completion time; of trees the flow time, that of the most loaded link; on a grid the epochs.
        Metrics: ``completion_time_s`` (:mod:`.completion`, for all answers the same model), ``algbw_GBps`` and
        ``busbw_GBps`` of the full buffer by it, ``question`` and ``clock`` of the objective, ``lower_bound_s``; for a
        schedule also ``alpha_beta_time_s``, ``warnings`` and ``busiest_link`` (its number and its share of the time);
        for trees ``pieces``, ``flow_time_s``, ``flow_algbw_GBps``, ``flow_busbw_GBps``, ``busiest_link``, ``trees``,
        ``max_height`` and ``mean_height``.
    """
    if isinstance(answer, ChunkOrders):
        return _orders_verdict(instance, answer, certificate, clock)
    with clock.phase("verify"):
        report = verify(instance, answer)
    violations = tuple(map(str, report.violations[:SHOWN]))
    if violations:
        return Verdict(violations)
    if isinstance(answer, TreePacking | TreeOrbits):
        return _trees_verdict(instance, answer, certificate, clock)
    with clock.phase("simulate"):
        completion = completion_if_any(instance, answer, unaware=instance.timing is None)
    measured: dict[str, object] = {} if completion.seconds is None else {"busiest_link": _busiest(completion)}
    measured["warnings"] = len(report.warnings)
    if instance.timing is not None and isinstance(answer, Schedule | TranslatedTrees | StreamedSteps):
        return _epochs_verdict(instance, answer, certificate, completion, measured)
    if completion.seconds is None or isinstance(answer, StreamedSteps):
        return Verdict((completion.why,))
    with clock.phase("simulate"):
        unaware_s = completion.unaware_s
        if unaware_s is None:
            unaware_s = simulate(instance, answer, SimulationMode.ALPHA_BETA).completion_s
    measured["alpha_beta_time_s"] = unaware_s
    return _measured(instance, answer, completion.seconds, certificate, completion, measured)


def _trees_verdict(
    instance: Instance, answer: TreePacking | TreeOrbits, certificate: Certificate | None, clock: Clock
) -> Verdict:
    """Measure trees that are right.

    Where links vary, no rates can be kept for them: there is neither a flow time nor a bound of it.
    """
    with clock.phase("simulate"):
        flow_s, completion, measured = measures_of_trees(instance, answer)
    if completion.seconds is None:
        nothing = dict.fromkeys(("completion_time_s", "algbw_GBps", "busbw_GBps", "lower_bound_s"))
        return Verdict(metrics={**question_of(instance, answer), **nothing, "no_completion_time": completion.why})
    return _measured(instance, answer, flow_s, certificate, completion, measured)


def _busiest(completion: Completion) -> list[object]:
    """Number of the link that is busy longest, and its share of the completion time."""
    busiest = int(completion.busy_s.argmax())
    return [busiest, float(completion.busy_s[busiest]) / completion.seconds if completion.seconds else 0.0]


def measures_of_trees(
    instance: Instance, answer: TreePacking | TreeOrbits
) -> tuple[Fraction, Completion, dict[str, object]]:
    """Measure trees that are right: ForestColl's exact flow time, and the completion time in pieces.

    In the flow model (ForestColl, section 3.2 and appendix B) data comes in infinitely small pieces, every tree runs at
    a constant rate, and latency is left out: the time is that of the most loaded link.
    """
    packing = answer.trees if isinstance(answer, TreeOrbits) else answer  # those of all other roots are the same, moved
    link, flow_s = heaviest(instance, answer)
    line = pipeline(instance, packing, flow_s)
    completion = completion_of(instance, answer, line=line)
    heights, units = line.heights.tolist(), packing.units.tolist()
    weighted = sum(height * unit for height, unit in zip(heights, units, strict=True))
    return (
        flow_s,
        completion,
        {
            **_flow(instance, float(flow_s)),
            "pieces": completion.pieces,
            "busiest_link": [link, 1.0 if flow_s else 0.0],
            "trees": len(answer),
            "max_height": max(heights, default=0),
            "mean_height": float(Fraction(weighted, sum(units))) if units else 0.0,
        },
    )


def heaviest(instance: Instance, answer: TreePacking | TreeOrbits) -> tuple[int, Fraction]:
    """First of the most loaded links, and the seconds that it needs for the bytes of all trees, exactly."""
    return heaviest_link(instance, answer) if isinstance(answer, TreePacking) else heaviest_of_orbits(instance, answer)


def _epochs_verdict(
    instance: Instance,
    answer: Schedule | TranslatedTrees | StreamedSteps,
    certificate: Certificate | None,
    completion: Completion,
    measured: dict[str, object],
) -> Verdict:
    """Measure a schedule on a grid of epochs.

    The objective is the epochs up to its last arrival, whatever they leave out.
    """
    assert instance.timing is not None  # noqa: S101 (the caller has looked)
    epoch_s, time = instance.timing.epoch_s, time_of_grid(instance, answer)
    epochs = int(time / epoch_s)
    algbw, busbw = _bandwidths(instance, float(time))
    metrics: dict[str, object] = {
        **measured,
        "epochs": epochs,
        "epoch_duration_s": float(epoch_s),
        "epochs_algbw_GBps": algbw,
        "epochs_busbw_GBps": busbw,
        "timing": instance.timing.semantics.value,
    }
    verdict = _measured(instance, answer, time, certificate, completion, metrics)
    if verdict.bound is None:  # the method's own claim stands, as one of its metrics
        return verdict
    more: dict[str, object] = {"lower_bound_epochs": round(verdict.bound / float(epoch_s))}
    if whole_ticks(instance) and (unrounded := exact_bound(instance, certificate)) is not None:
        more["network_bound_s"] = float(unrounded)  # what holds off the grid as well
    return replace(verdict, metrics={**verdict.metrics, **more})


def time_of_grid(instance: Instance, answer: Schedule | TranslatedTrees | StreamedSteps) -> Fraction:
    """Seconds up to the last arrival on a grid of epochs."""
    assert instance.timing is not None  # noqa: S101 (the caller has looked)
    match answer:
        case Schedule():
            epochs = finish_epochs(instance, answer)
        case TranslatedTrees():
            epochs = translated_epochs(instance, answer)
        case StreamedSteps():
            epochs = streamed_epochs(instance, answer)
    return epochs * instance.timing.epoch_s


def _orders_verdict(instance: Instance, answer: ChunkOrders, certificate: Certificate | None, clock: Clock) -> Verdict:
    """Verify orders of chunks by the pipeline of the dimensions, and as sends on links if these are not many."""
    if isinstance(instance.network, Topology):
        return _orders_on_links_verdict(instance, answer, certificate, clock)
    if not isinstance(instance.network, WiredFabric) or instance.demand is None:
        return Verdict(("orders of chunks need a fabric with bandwidths and a collective",))
    try:
        with clock.phase("simulate"):
            pipeline = evaluate(instance.network, instance.demand, answer.orders, answer.queue)
    except InputError as error:
        return Verdict((str(error),))
    busy = [float(seconds) for seconds in pipeline.busy_s]
    seconds = pipeline.completion_s
    completion = Completion(float(seconds), np.array(busy), len(answer.orders))
    metrics: dict[str, object] = {"dimension_busy_s": busy}
    try:
        on_links, sends = lowered(instance, answer, MOST_LOWERED)
    except InputError:  # too many: the model of the dimensions is all there is
        return _measured(instance, answer, seconds, certificate, completion, metrics)
    with clock.phase("verify"):
        violations = tuple(map(str, verify(on_links, sends).violations[:SHOWN]))
    if violations:
        return Verdict(violations)
    with clock.phase("simulate"):
        metrics["links_time_s"] = completion_of(on_links, sends).seconds
    return _measured(instance, answer, seconds, certificate, completion, metrics)


def _orders_on_links_verdict(
    instance: Instance, answer: ChunkOrders, certificate: Certificate | None, clock: Clock
) -> Verdict:
    """Verify orders of chunks as sends on the links of a mesh, whose time no model of dimensions tells."""
    try:
        with clock.phase("verify"):
            posed, sends = lowered(instance, answer)
            violations = tuple(map(str, verify(posed, sends).violations[:SHOWN]))
        if violations:
            return Verdict(violations)
        with clock.phase("simulate"):
            completion = completion_of(posed, sends)
    except InputError as error:
        return Verdict((str(error),))
    if completion.seconds is None:
        return Verdict((completion.why,))
    metrics: dict[str, object] = {"sends": len(sends.sends), "busiest_link": _busiest(completion)}
    return _measured(instance, answer, completion.seconds, certificate, completion, metrics)


def bound_verdict(instance: Instance, certificate: Certificate | None, clock: Clock) -> Verdict:
    """Verify an answer that is only a bound: what its certificate proves is objective and bound at once.

    Of what a solver attests nothing is found; to prove nothing and to name nobody is a violation.
    """
    if isinstance(certificate, SolverBound):
        return Verdict(metrics=question_of(instance, BoundOnly()))
    try:
        with clock.phase("verify"):
            proved = bound_of(instance, BoundOnly(), certificate)
    except InputError as error:
        return Verdict((f"certificate: {error}",))
    if proved is None:
        return Verdict(("a bound alone needs a certificate that can be recomputed, or a solver that attests it",))
    nothing = Completion(None, np.zeros(0), 0, why="a bound alone, no schedule")
    return _measured(instance, BoundOnly(), proved, certificate, nothing, _flow(instance, float(proved)))


def _measured(
    instance: Instance,
    answer: Answer,
    objective: Fraction | float,
    certificate: Certificate | None,
    completion: Completion,
    metrics: dict[str, object],
) -> Verdict:
    """Verdict of an answer that is right.

    The objective, and beside it the completion time, which is of the same model for all.
    """
    proved, violations = held_against(instance, answer, certificate, objective)
    bound = None if proved is None else float(proved)
    algbw, busbw = _bandwidths(instance, completion.seconds)
    measured: dict[str, object] = {
        **question_of(instance, answer),
        "completion_time_s": completion.seconds,
        "algbw_GBps": algbw,
        "busbw_GBps": busbw,
        "lower_bound_s": bound,
    }
    if completion.seconds is None:
        measured["no_completion_time"] = completion.why
    return Verdict(tuple(violations), float(objective), bound, measured | metrics)


def held_against(
    instance: Instance, answer: Answer, certificate: Certificate | None, objective: Fraction | float
) -> tuple[Fraction | None, list[str]]:
    """Compare an objective with what the certificate proves.

    Parameters
    ----------
    instance, answer, certificate
        The answer to measure.
    objective : Fraction or float
        The verifier's own: exact of trees, on grids of epochs and of orders, a float where it is simulated.

    Returns
    -------
    Fraction or None
        What is proved.
    list of str
        What is wrong: a certificate that names what there is not, and an answer that contradicts it.
    """
    try:
        proved = bound_of(instance, answer, certificate)
    except InputError as error:
        return None, [f"certificate: {error}"]
    return proved, contradictions(objective, proved, margin_of(objective))


def objective_of(instance: Instance, answer: Written, completion_s: float | None) -> Fraction | float | None:
    """Objective that is compared with an answer's certificate; None where it cannot be measured.

    Parameters
    ----------
    instance, answer
        A problem and a schedule or trees for it.
    completion_s : float or None
        Its completion time (:mod:`.completion`).
    """
    if isinstance(answer, TreePacking | TreeOrbits):
        return None if completion_s is None else heaviest(instance, answer)[1]
    if instance.timing is not None and isinstance(answer, Schedule | TranslatedTrees | StreamedSteps):
        return time_of_grid(instance, answer)
    return completion_s


def _flow(instance: Instance, seconds: float) -> dict[str, object]:
    """Report a time of the flow model, which leaves latency out, under names of its own."""
    algbw, busbw = _bandwidths(instance, seconds)
    return {"flow_time_s": seconds, "flow_algbw_GBps": algbw, "flow_busbw_GBps": busbw}


def _bandwidths(instance: Instance, seconds: float | None) -> tuple[float | None, float | None]:
    """Algbw and busbw as nccl-tests defines them; None of several collectives, which have no one size."""
    if len(instance.demands) != 1 or not seconds:
        return None, None
    (demand,) = instance.demands
    ranks = instance.npus if demand.ranks is None else len(demand.ranks)
    algbw = float(demand.size_bytes) / seconds / 1e9
    return algbw, algbw * float(demand.collective.busbw_factor(ranks))


def bound_of(instance: Instance, answer: Answer, certificate: Certificate | None) -> Fraction | None:
    """Recompute what a certificate proves of an answer's objective, in seconds.

    None if there is none, or it proves nothing of it.

    Of the flow model, which trees are measured by, latency proves nothing, and epochs are those of what is on a grid
    alone. Where schedules end at whole ticks, a bound in seconds is rounded up to so many.

    Raises
    ------
    InputError
        If the certificate names what the instance does not have, or speaks of other answers.
    """
    if isinstance(certificate, WholeChunks) and (fault := fault_of_chunks(certificate, answer)) is not None:
        raise InputError(fault, place="certificate")
    late = isinstance(certificate, DistanceCertificate) or (
        isinstance(certificate, CutCertificate) and certificate.latency
    )
    if isinstance(answer, TreePacking | TreeOrbits) and late:
        return None
    if isinstance(answer, TreePacking | TreeOrbits | StepSchedule) and isinstance(certificate, EpochBound):
        return None
    return in_whole_ticks(
        instance, answer, exact_bound(instance, certificate, answer if isinstance(answer, TreePacking) else None)
    )


def in_whole_ticks(instance: Instance, answer: Answer, bound: Fraction | None) -> Fraction | None:
    """Round a bound in seconds up to whole ticks where schedules end at such, see :func:`.verify.grid.whole_ticks`."""
    on_grid = isinstance(answer, Schedule | TranslatedTrees | StreamedSteps) and whole_ticks(instance)
    if bound and on_grid and instance.timing is not None:
        return ceil(bound / instance.timing.epoch_s) * instance.timing.epoch_s
    return bound


def exact_bound(
    instance: Instance, certificate: Certificate | None, trees: TreePacking | None = None
) -> Fraction | None:
    """Recompute what a certificate proves, exactly; None if there is none, or none that can be recomputed here.

    Parameters
    ----------
    instance : Instance
        The problem.
    certificate : Certificate or None
        What is said to prove a bound.
    trees : TreePacking or None
        Trees that are right, of which it is to be a bound; a certificate that speaks of trees of a kind needs them.

    Raises
    ------
    InputError
        If the certificate names what the instance does not have, or speaks of other trees.
    """
    if isinstance(certificate, EpochBound):
        epochs = recomputed_epochs(instance, certificate)
        assert instance.timing is not None  # noqa: S101 (epochs have been counted)
        return epochs * instance.timing.epoch_s
    proved: Fraction | None = None
    physical = (Semantics.STORE_AND_FORWARD, Semantics.CIRCUIT)
    if instance.timing is not None and instance.timing.semantics not in physical:
        return None  # bounds in seconds of wire and latency do not hold where some of both is not counted
    faster = instance.timing is not None and any(change.factor > 1 for change in instance.timing.changes)
    if faster and not isinstance(certificate, DistanceCertificate | SolverBound | None):
        raise InputError("links are faster at times than this bound knows", place="certificate")
    match certificate:
        case CutCertificate():
            proved = recomputed_cut_bound(instance, certificate)
        case DistanceCertificate():
            proved = recomputed_distance_bound(instance, certificate)
        case PartitionCertificate():
            proved = recomputed_partition_bound(instance, certificate)
        case TreePrices():
            fault = (
                "speaks of trees, and the answer has none"
                if trees is None
                else fault_of_trees(instance, certificate, trees)
            )
            if fault is not None:
                raise InputError(fault, place="certificate")
            proved = recomputed_tree_bound(instance, certificate)
        case LengthCertificate():
            proved = recomputed_length_bound(instance, certificate)
        case WholeChunks():
            proved = recomputed_chunk_bound(instance, certificate)
        case DimensionWeights() if isinstance(instance.network, WiredFabric) and instance.demand is not None:
            proved = weighted_bound_s(instance.network, instance.demand, certificate.weights)
        case _:
            pass
    return proved
