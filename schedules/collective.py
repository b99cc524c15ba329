"""Verification of schedules: checks, simulation, nccl-tests' bandwidths, and comparison with certificates."""

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import singledispatch
from math import ceil

import numpy as np

from ..core.answers import Answer, BandwidthPlan, BoundOnly, ChunkOrders, Placement
from ..core.bounds import (
    Certificate,
    CutCertificate,
    DimensionWeights,
    DistanceCertificate,
    EpochBound,
    LengthCertificate,
    SolverBound,
    TreePrices,
    WholeChunks,
)
from ..core.budget import Clock
from ..core.errors import InputError
from ..core.fabric import WiredFabric
from ..core.instance import Instance
from ..core.outcome import Verdict
from ..core.schedule import StepSchedule
from ..core.step_orbits import StepOrbits
from ..core.timing import Semantics
from ..core.topology import Topology
from ..core.trace import Routing, SimulationMode
from ..core.trees import Forest, TreeOrbits, TreePacking
from .completion import Completion, completion_if_any, completion_of
from .epoch_bounds import recomputed_epochs
from .files import ScheduleFile, Written
from .metrics import ATTESTED_TOLERANCE, contradictions, question_of
from .multirail import evaluate, to_sends, weighted_bound_s
from .network_bounds import BOUND_CHECKERS, fault_of_chunks, recomputed_length_bound
from .placement import placement_verdict
from .simulate import simulate
from .simulate.pipeline import pipeline
from .training import bandwidth_verdict
from .tree_bounds import fault_of_trees, recomputed_tree_bound
from .verify import verify
from .verify.answers import Report, count_epochs, has_epochs
from .verify.grid import ends_on_whole_ticks
from .verify.orbits import count_alike_ranks
from .verify.trees import heaviest_link, heaviest_load

SHOWN = 20  #: Messages of a verdict.
Metrics = dict[str, object]  #: Values of an answer by their names.
MOST_LOWERED = 100_000  #: Orders of chunks are also played as sends on links if these are not more.


@singledispatch
def verdict(answer: Answer, instance: Instance, certificate: Certificate | None, clock: Clock) -> Verdict:
    """Verify a schedule; the objective is the completion time, on a grid that of its epochs."""
    with clock.phase("verify"):
        report = verify(instance, answer)
    if report.violations:
        return Verdict(_first(report))
    with clock.phase("simulate"):
        completion = completion_if_any(instance, answer, unaware=instance.timing is None)
    measured: Metrics = {} if completion.seconds is None else {"busiest_link": _busiest(completion)}
    measured["warnings"] = len(report.warnings)
    if instance.timing is not None and has_epochs(answer):
        return _epochs_verdict(instance, answer, certificate, completion, measured)
    if completion.seconds is None:
        return Verdict((completion.why,))
    with clock.phase("simulate"):
        unaware_s = completion.unaware_s
        if unaware_s is None:
            unaware_s = simulate(instance, answer, SimulationMode.ALPHA_BETA).completion_s
    measured["alpha_beta_time_s"] = unaware_s
    return _verdict_with_metrics(instance, answer, completion.seconds, certificate, completion, measured)


def _first(report: Report) -> tuple[str, ...]:
    return tuple(map(str, report.violations[:SHOWN]))


@verdict.register
def forest_verdict(
    answer: TreePacking | TreeOrbits, instance: Instance, certificate: Certificate | None, clock: Clock
) -> Verdict:
    """Verify trees; the objective is the flow time, which does not exist on links that vary over time."""
    with clock.phase("verify"):
        report = verify(instance, answer)
    if report.violations:
        return Verdict(_first(report))
    with clock.phase("simulate"):
        flow_s, completion, measured = measures_of_trees(instance, answer)
    if completion.seconds is None:
        nothing = dict.fromkeys(("completion_time_s", "algbw_GBps", "busbw_GBps", "lower_bound_s"))
        return Verdict(metrics={**question_of(instance, answer), **nothing, "no_completion_time": completion.why})
    return _verdict_with_metrics(instance, answer, flow_s, certificate, completion, measured)


def _busiest(completion: Completion) -> list[object]:
    busiest = int(completion.busy_s.argmax())
    return [busiest, float(completion.busy_s[busiest]) / completion.seconds if completion.seconds else 0.0]


def measures_of_trees(instance: Instance, answer: Forest) -> tuple[Fraction, Completion, Metrics]:
    """Measure valid trees: ForestColl's exact flow time, and the completion time in pieces.

    In the flow model (ForestColl, section 3.2 and appendix B) data is infinitely divisible, every tree has a
    constant rate, and latency is ignored: the time is that of the most loaded link.
    """
    line = pipeline(instance, answer)
    link, flow_s = heaviest_link(instance, answer, line.loads)
    completion = completion_of(instance, answer, line=line)
    heights, units = line.heights.tolist(), answer.trees.units.tolist()
    weighted = sum(height * unit for height, unit in zip(heights, units, strict=True))
    measured = {
        **_flow(instance, float(flow_s)),
        "pieces": completion.pieces,
        "busiest_link": [link, 1.0 if flow_s else 0.0],
        "trees": len(answer),
        "max_height": max(heights, default=0),
        "mean_height": float(Fraction(weighted, sum(units))) if units else 0.0,
    }
    return flow_s, completion, measured


def _epochs_verdict(
    instance: Instance, answer: Answer, certificate: Certificate | None, completion: Completion, measured: Metrics
) -> Verdict:
    """Measure a schedule on a grid; the objective is the time of all epochs up to the last arrival."""
    timing, epochs = instance.timing, count_epochs(answer, instance)
    assert timing is not None  # noqa: S101 (the caller has looked)
    assert epochs is not None  # noqa: S101
    epoch_s, time = timing.epoch_s, epochs * timing.epoch_s
    algbw, busbw = _bandwidths(instance, float(time))
    metrics: Metrics = {
        **measured,
        "epochs": epochs,
        "epoch_duration_s": float(epoch_s),
        "epochs_algbw_GBps": algbw,
        "epochs_busbw_GBps": busbw,
        "timing": timing.semantics.value,
    }
    verdict = _verdict_with_metrics(instance, answer, time, certificate, completion, metrics)
    if verdict.bound is None:  # the method's own claim stands, as one of its metrics
        return verdict
    more: Metrics = {"lower_bound_epochs": round(verdict.bound / float(epoch_s))}
    # Bounds of epochs count whole chunks; others hold off the grid as well.
    everywhere = ends_on_whole_ticks(instance) and not isinstance(certificate, EpochBound)
    if everywhere and (unrounded := exact_bound(instance, certificate)) is not None:
        more["network_bound_s"] = float(unrounded)
    return replace(verdict, metrics={**verdict.metrics, **more})


@verdict.register
def orders_verdict(answer: ChunkOrders, instance: Instance, certificate: Certificate | None, clock: Clock) -> Verdict:
    """Verify chunk orders by the pipeline of the dimensions, and as sends if these are few."""
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
    metrics: Metrics = {"dimension_busy_s": busy}
    try:
        on_links, sends = to_sends(instance, answer, MOST_LOWERED)
    except InputError:  # too many: the model of the dimensions is all there is
        return _verdict_with_metrics(instance, answer, seconds, certificate, completion, metrics)
    with clock.phase("verify"):
        violations = _first(verify(on_links, sends))
    if violations:
        return Verdict(violations)
    with clock.phase("simulate"):
        metrics["links_time_s"] = completion_of(on_links, sends).seconds
    return _verdict_with_metrics(instance, answer, seconds, certificate, completion, metrics)


def _orders_on_links_verdict(
    instance: Instance, answer: ChunkOrders, certificate: Certificate | None, clock: Clock
) -> Verdict:
    """Verify chunk orders as sends on the links of a mesh, which the pipeline model does not cover."""
    try:
        with clock.phase("verify"):
            case, sends = to_sends(instance, answer)
            violations = _first(verify(case, sends))
        if violations:
            return Verdict(violations)
        with clock.phase("simulate"):
            completion = completion_of(case, sends)
    except InputError as error:
        return Verdict((str(error),))
    if completion.seconds is None:
        return Verdict((completion.why,))
    metrics: Metrics = {"sends": len(sends.sends), "busiest_link": _busiest(completion)}
    return _verdict_with_metrics(instance, answer, completion.seconds, certificate, completion, metrics)


@verdict.register
def bound_verdict(answer: BoundOnly, instance: Instance, certificate: Certificate | None, clock: Clock) -> Verdict:
    """Verify a bound alone: its certified value is both objective and bound; a solver's attestation has none."""
    if isinstance(certificate, SolverBound):
        return Verdict(metrics=question_of(instance, answer))
    try:
        with clock.phase("verify"):
            proved = bound_of(instance, answer, certificate)
    except InputError as error:
        return Verdict((f"certificate: {error}",))
    if proved is None:
        return Verdict(("a bound alone needs a certificate that can be recomputed, or a solver that attests it",))
    nothing = Completion(None, np.zeros(0), 0, why="a bound alone, no schedule")
    return _verdict_with_metrics(instance, answer, proved, certificate, nothing, _flow(instance, float(proved)))


@verdict.register
def _(answer: BandwidthPlan, instance: Instance, certificate: Certificate | None, clock: Clock) -> Verdict:
    with clock.phase("verify"):
        return bandwidth_verdict(instance, answer, certificate)


@verdict.register
def _(answer: Placement, instance: Instance, certificate: Certificate | None, clock: Clock) -> Verdict:
    with clock.phase("verify"):
        return placement_verdict(instance, answer, certificate)


def _verdict_with_metrics(
    instance: Instance,
    answer: Answer,
    objective: Fraction | float,
    certificate: Certificate | None,
    completion: Completion,
    metrics: Metrics,
) -> Verdict:
    """Return the verdict of a valid answer: its objective and the completion time."""
    proved, violations = compare_with_certificate(instance, answer, certificate, objective)
    bound = None if proved is None else float(proved)
    algbw, busbw = _bandwidths(instance, completion.seconds)
    measured: Metrics = {
        **question_of(instance, answer),
        "completion_time_s": completion.seconds,
        "algbw_GBps": algbw,
        "busbw_GBps": busbw,
        "lower_bound_s": bound,
    }
    if completion.seconds is None:
        measured["no_completion_time"] = completion.why
    if instance.rank_costs is not None:
        measured["rank_costs"] = instance.rank_costs.in_words
    if instance.routing is not Routing.FIXED and not isinstance(answer, Forest):
        measured["routing"] = instance.routing.in_words
    return Verdict(tuple(violations), float(objective), bound, measured | metrics)


def compare_with_certificate(
    instance: Instance, answer: Answer, certificate: Certificate | None, objective: Fraction | float
) -> tuple[Fraction | None, list[str]]:
    """Return the bound that a certificate proves, and errors: its own, or a contradiction to the objective."""
    try:
        proved = bound_of(instance, answer, certificate)
    except InputError as error:
        return None, [f"certificate: {error}"]
    return proved, contradictions(objective, proved)


def objective_of(instance: Instance, answer: Written, completion_s: float | None) -> Fraction | float | None:
    """Return the objective to compare with an answer's certificate; None if it cannot be measured."""
    if isinstance(answer, Forest):
        return None if completion_s is None else heaviest_load(instance, answer)
    epochs = count_epochs(answer, instance)
    return completion_s if epochs is None or instance.timing is None else epochs * instance.timing.epoch_s


def _flow(instance: Instance, seconds: float) -> Metrics:
    """Name the time and bandwidths of the flow model, which ignores latency."""
    algbw, busbw = _bandwidths(instance, seconds)
    return {"flow_time_s": seconds, "flow_algbw_GBps": algbw, "flow_busbw_GBps": busbw}


def _bandwidths(instance: Instance, seconds: float | None) -> tuple[float | None, float | None]:
    """Return nccl-tests' algbw and busbw; None for several collectives or sizes, for which it defines none."""
    if len(instance.demands) != 1 or instance.demands[0].part_of or not seconds:
        return None, None
    (demand,) = instance.demands
    ranks = instance.npus if demand.ranks is None else len(demand.ranks)
    algbw = float(demand.size_bytes) / seconds / 1e9
    return algbw, algbw * float(demand.collective.busbw_factor(ranks))


def bound_of(instance: Instance, answer: Answer, certificate: Certificate | None) -> Fraction | None:
    """Recompute a certificate's bound on an answer's objective in seconds, None if it proves none.

    Latency bounds prove nothing in the flow model, which measures trees, and epoch bounds apply only to schedules
    on a grid. Where schedules end at whole ticks, a bound in seconds is rounded up to a tick.
    """
    if isinstance(certificate, WholeChunks) and (fault := fault_of_chunks(certificate, answer)) is not None:
        raise InputError(fault, place="certificate")
    late = isinstance(certificate, DistanceCertificate) or (
        isinstance(certificate, CutCertificate | LengthCertificate) and certificate.latency
    )
    if isinstance(answer, Forest) and late:
        return None
    if isinstance(answer, Forest | StepSchedule) and isinstance(certificate, EpochBound):
        return None
    bound = exact_bound(instance, certificate, answer)
    if bound and instance.timing is not None and has_epochs(answer) and ends_on_whole_ticks(instance):
        return ceil(bound / instance.timing.epoch_s) * instance.timing.epoch_s
    return bound


def exact_bound(instance: Instance, certificate: Certificate | None, answer: Answer | None = None) -> Fraction | None:
    """Recompute a certificate's bound exactly, with an answer if its trees or orbits count; None if impossible."""
    if isinstance(certificate, EpochBound):
        epochs = recomputed_epochs(instance, certificate)
        assert instance.timing is not None  # noqa: S101 (epochs have been counted)
        return epochs * instance.timing.epoch_s
    physical = (Semantics.STORE_AND_FORWARD, Semantics.CIRCUIT)
    if instance.timing is not None and instance.timing.semantics not in physical:
        return None  # bounds in seconds of wire and latency do not hold where some of both is not counted
    faster = instance.timing is not None and any(change.factor > 1 for change in instance.timing.changes)
    if faster and not isinstance(certificate, DistanceCertificate | SolverBound | None):
        raise InputError("some links are temporarily faster than this bound assumes", place="certificate")
    proved: Fraction | None = None
    match certificate:
        case TreePrices():
            trees = answer if isinstance(answer, TreePacking) else None
            if (fault := fault_of_trees(instance, certificate, trees)) is not None:
                raise InputError(fault, place="certificate")
            proved = recomputed_tree_bound(instance, certificate)
        case LengthCertificate():
            alike = count_alike_ranks(answer, instance, certificate) if isinstance(answer, StepOrbits) else None
            proved = recomputed_length_bound(instance, certificate, alike)
        case DimensionWeights() if isinstance(instance.network, WiredFabric) and instance.demand is not None:
            proved = weighted_bound_s(instance.network, instance.demand, certificate.weights)
        case _ if (recompute := BOUND_CHECKERS.get(type(certificate))) is not None:
            proved = recompute(instance, certificate)
    return proved


#: Relative difference up to which a bound that a file claims is the one that its certificate proves.
CLAIM_TOLERANCE = 1e-9


@dataclass(frozen=True)
class Proof:
    """Exact values that the file itself proves."""

    bound_s: Fraction | None = None
    #: Seconds of the most loaded link of trees. None for other schedules, whose time is simulated.
    time_s: Fraction | None = None

    @property
    def gap(self) -> Fraction | None:
        """Gap between time and bound, relative to the time."""
        if self.bound_s is None or not self.time_s:
            return None
        return (self.time_s - self.bound_s) / self.time_s


def proof_of(read: ScheduleFile, *, right: bool, completion_s: float | None) -> tuple[Proof, list[str]]:
    """Recompute bound and time of a file, measured if it is right; also return false claims and contradictions."""
    instance, answer, certificate = read.instance, read.answer, read.certificate
    trees = isinstance(answer, TreePacking | TreeOrbits)
    time = objective_of(instance, answer, completion_s) if right else None
    flow_s = time if isinstance(time, Fraction) and trees else None
    beside = trees and isinstance(certificate, DistanceCertificate)  # reported, but not a bound on the flow time
    try:
        if beside:
            bound = exact_bound(instance, certificate)
        else:  # prices of trees speak of trees that are right
            bound = (
                bound_of(instance, answer, certificate) if right or not isinstance(certificate, TreePrices) else None
            )
    except InputError as error:
        return Proof(None, flow_s), [f"certificate: {error}"]
    claimed = read.extra.get("bound_s")
    missed = [] if time is None or beside else contradictions(time, bound)
    if bound is not None and claimed is not None and claimed > float(bound) * (1 + CLAIM_TOLERANCE):
        missed.append(f"certificate: claimed bound {claimed!r} s, it proves {float(bound)!r} s")
    elif bound is None and claimed is not None and time is not None and claimed > time * (1 + ATTESTED_TOLERANCE):
        missed.append(f"contradiction: attested bound {claimed!r} s, but the answer takes {float(time)!r} s")
    # The time of trees leaves latency out, so that a distance says nothing about it.
    return Proof(bound, None if beside else flow_s), missed
