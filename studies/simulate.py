"""Simulation of schedule files: times, bandwidths, bounds and the busiest links."""

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from ..algorithms.bounds.schedule_bounds import best_bound, latency_bound
from ..core.answers import Answer
from ..core.errors import InputError
from ..core.files import write_whole
from ..core.instance import Instance
from ..core.pipelining import LatencyModel, reserve_rates
from ..core.schedule import Floats, Ints
from ..core.step_orbits import StepOrbits
from ..core.trace import Routing, SimulationMode, Trace
from ..core.trees import TreeOrbits, TreePacking
from ..core.units import UnitKind, parse
from ..exchange.perfetto import chrome_trace
from ..schedules.collective import proof_of
from ..schedules.completion import Completion, completion_if_any, completion_of, in_pieces, mode_of
from ..schedules.files import ScheduleFile
from ..schedules.simulate import simulate
from ..schedules.simulate.pipeline import simulate_reserved
from ..schedules.verify.answers import write_out
from ..schedules.verify.orbits import count_alike_ranks

MAX_LISTED = 5  #: Number of busiest links that are listed.

#: Modes in words, for the heading.
MODE_HEADINGS = {
    SimulationMode.ALPHA_BETA: "what if links served all sends at once, alpha-beta",
    SimulationMode.CONGESTION_AWARE: "what if links served sends as they come, congestion-aware",
    SimulationMode.CUT_THROUGH: "what if sends went on while they come, cut-through",
    SimulationMode.FAIR_SHARE: "what if sends shared links fairly, fair-share",
    SimulationMode.SHARES: "what if every tree had its share of every link, shares",
}

RESERVE_HEADING = "what if every tree kept the rate that is best for it"  #: ``--reserve`` in words, for the heading.


@dataclass(frozen=True)
class SimulationOptions:
    """Options of a simulation."""

    #: Time model of links; None is the model of completion times, which tables and ``cwb solve`` use.
    mode: SimulationMode | None = None
    barrier: bool = False
    pieces: int | None = None  #: Pieces of every tree; by default those of the file, else chosen.
    #: Whether latency only delays a chunk or also occupies the link.
    latency_model: LatencyModel = LatencyModel.PROPAGATION
    reserve: bool = False
    chunk_overhead: str | None = None  #: Time per chunk on a link besides its bytes; only with ``reserve``.
    routing: Routing | None = None  #: Paths of the schedule, or other shortest paths; None is the instance's routing.

    def routing_on(self, instance: Instance) -> Routing:
        """Return the routing; by default that of the instance."""
        return self.routing or instance.routing

    def mode_for(self, file: ScheduleFile) -> SimulationMode:
        """Return the mode; by default that of completion times."""
        return self.mode or mode_of(file.answer, self.routing_on(file.instance))

    def is_what_if(self, file: ScheduleFile) -> bool:
        """Return whether the time model differs from that of completion times."""
        occupies, routing = self.latency_model is LatencyModel.OCCUPANCY, file.instance.routing
        has_other_mode = self.mode_for(file) is not mode_of(file.answer, routing)
        return self.barrier or occupies or has_other_mode or self.routing not in (None, routing)


def simulate_file(file: ScheduleFile, options: SimulationOptions) -> tuple[Trace, int | Ints]:
    """Simulate a schedule; return its trace and the number of pieces per tree, of every tree with ``reserve``."""
    if options.reserve:
        return _simulate_reserved(file.instance, file.answer, options)
    if options.chunk_overhead is not None:
        raise InputError("expected together with --reserve", source="--chunk-overhead")
    has_pieces = isinstance(file.answer, TreePacking | TreeOrbits) or options.pieces
    pieces = _pieces_of(_completion(file, options)) if has_pieces else 1
    trace = simulate(
        file.instance,
        file.answer,
        options.mode_for(file),
        barrier=options.barrier,
        pieces=pieces,
        routing=options.routing,
        hold_latency=options.latency_model is LatencyModel.OCCUPANCY,
    )
    return trace, pieces


def _completion(file: ScheduleFile, options: SimulationOptions) -> Completion | None:
    """Return the completion time of trees in pieces; None for other schedules in another time model."""
    has_trees = isinstance(file.answer, TreePacking | TreeOrbits)
    if options.pieces is not None and not has_trees:
        raise InputError("only trees are divided into pieces", source="--pieces")
    if not has_trees and options.is_what_if(file):
        return None
    return completion_of(file.instance, file.answer, options.pieces or file.pieces)


def _pieces_of(completion: Completion | None) -> int:
    return 1 if completion is None else completion.pieces or 1


def describe_simulation(
    file: ScheduleFile, options: SimulationOptions, trace_file: Path | None = None
) -> dict[str, Any]:
    """Return the output of ``cwb simulate --json``, and write a Chrome trace if a file is given."""
    instance, latency_model = file.instance, options.latency_model
    mode, routing = options.mode_for(file), options.routing_on(instance)
    if trace_file is not None and routing is not Routing.FIXED:
        raise InputError("a trace has the paths of the schedule; expected --routing fixed", source="--trace")
    trace: Trace | None = None
    completion: Completion | None = None
    pieces: int | Ints
    if options.reserve or options.chunk_overhead is not None:
        trace, pieces = simulate_file(file, options)
        report = _measure_trace(instance, trace, trace.mode, [RESERVE_HEADING, latency_model.value])
    else:
        completion = _completion(file, options)
        if completion is None or options.is_what_if(file):
            trace, pieces = simulate_file(file, options)
            report = _measure_trace(instance, trace, mode, _heading(file, options, pieces))
        else:
            pieces = _pieces_of(completion)
            if trace_file is not None:
                trace, pieces = simulate_file(file, options)
            starts = _one_rank_of_every_orbit(file)
            report = measure_simulation(instance, mode, completion.sends, completion.seconds, completion.busy_s, starts)
            report |= {"model": completion.model}
            if completion.why:
                report["no_completion_time"] = completion.why
    if routing is not Routing.FIXED and mode is not SimulationMode.SHARES:
        report["routing"] = routing.value
    if trace_file is not None and trace is not None:
        write_trace(trace_file, instance, file.answer, trace, pieces)
    report |= {"barrier": options.barrier, "latency_model": latency_model.value, "reserve": options.reserve}
    if instance.rank_costs is not None:
        report["model"] += f"; {instance.rank_costs.in_words}"
    report["pieces"] = pieces if isinstance(pieces, int) else pieces.tolist()
    return report | _check_proof(file, options, completion)


def _one_rank_of_every_orbit(file: ScheduleFile) -> Ints | None:
    """Return a rank of every orbit of a schedule by symmetry; None if orbits differ, or their ranks may."""
    instance, alike = file.instance, None
    if instance.timing is None or not instance.timing.changes:
        alike = count_alike_ranks(file.answer, instance) if isinstance(file.answer, StepOrbits | TreeOrbits) else None
    return np.array(list(alike)) if alike and len(set(alike.values())) == 1 else None


def _heading(file: ScheduleFile, options: SimulationOptions, pieces: int | Ints) -> list[str]:
    """Return the time model in words; empty texts are left out of the heading."""
    mode, has_trees = options.mode_for(file), isinstance(file.answer, TreePacking | TreeOrbits)
    return [
        MODE_HEADINGS[mode],
        "with barriers" if options.barrier else "",
        options.latency_model.value,
        in_pieces(pieces) if has_trees and isinstance(pieces, int) else "",
        "" if mode is SimulationMode.SHARES else options.routing_on(file.instance).in_words,
    ]


def _check_proof(file: ScheduleFile, options: SimulationOptions, completion: Completion | None) -> dict[str, Any]:
    """Return the bound that the file's certificate proves, and contradictions between it and the file's own time.

    The certificate bounds the completion time of the file with its own pieces, not the simulation that was asked for.
    """
    if completion is None or options.pieces not in (None, file.pieces):
        has_claims = file.certificate or file.extra
        completion = completion_if_any(file.instance, file.answer, file.pieces) if has_claims else None
    completion_s = None if completion is None else completion.seconds
    proof, violations = proof_of(file, right=True, completion_s=completion_s)
    return {"proved_bound_s": None if proof.bound_s is None else float(proof.bound_s), "violations": violations}


def write_trace(file: Path, instance: Instance, answer: Answer, trace: Trace, pieces: int | Ints) -> None:
    """Write a Chrome trace, which Perfetto opens."""
    content = "".join(chrome_trace(instance, answer, trace, pieces=pieces))
    write_whole(file, content.encode())


def _measure_trace(instance: Instance, trace: Trace, mode: SimulationMode, heading: list[str]) -> dict[str, Any]:
    report = measure_simulation(instance, mode, len(trace.start_s), trace.completion_s, trace.link_busy_s)
    return report | {"model": ", ".join(filter(None, heading))}


def _simulate_reserved(instance: Instance, answer: Answer, options: SimulationOptions) -> tuple[Trace, Ints]:
    """Simulate trees with reserved rates; also return the number of chunks of every tree."""
    if not isinstance(trees := write_out(answer, instance), TreePacking):
        raise InputError("only trees have reserved rates", source="--reserve")
    has_other_paths = options.routing not in (None, Routing.FIXED)
    if options.barrier or has_other_paths or options.mode not in (None, SimulationMode.CONGESTION_AWARE):
        raise InputError("expected the mode congestion-aware on fixed paths, without barriers", source="--reserve")
    overhead_s = Fraction(0) if options.chunk_overhead is None else parse(options.chunk_overhead, UnitKind.TIME)
    plan = reserve_rates(instance.topology, trees, options.latency_model, overhead_s, options.pieces)
    return simulate_reserved(instance, trees, plan, options.latency_model, overhead_s=overhead_s), plan.chunks


def measure_simulation(
    instance: Instance,
    mode: SimulationMode,
    sends: int,
    time_s: float | None,
    busy_s: Floats,
    starts: Ints | None = None,
) -> dict[str, Any]:
    """Return measures of a simulation as plain data; None where something is unknown.

    Bandwidth bounds a schedule only if links serve one piece at a time and are never faster than nominal. Otherwise, in
    alpha-beta or if some link is faster for a time, the bound is that of latency alone. If ranks of equal orbits are
    alike, ``starts`` are one of each, from which it is computed.
    """
    report: dict[str, Any] = {
        "schema": "cwb-simulation/1",
        "instance": instance.name,
        "instance_sha256": instance.sha256,
        "mode": mode.value,
        "sends": sends,
        "completion_time_s": time_s,
        **dict.fromkeys(("collective", "size_bytes", "size_of", "algbw_GBps", "busbw_GBps")),
        **dict.fromkeys(("lower_bound_s", "certificate")),
    }
    for demand in instance.collectives[:1]:
        ranks = instance.npus if demand.ranks is None else len(demand.ranks)
        algbw = float(demand.size_bytes) / time_s / 1e9 if time_s and not (instance.also or demand.part_of) else None
        is_faster = instance.timing is not None and any(change.factor > 1 for change in instance.timing.changes)
        latency_only = is_faster or mode is SimulationMode.ALPHA_BETA
        bound, certificate = (latency_bound if latency_only else best_bound)(instance, starts=starts)
        report |= {
            "collective": demand.collective.name,
            "size_bytes": float(demand.size_bytes),
            "size_of": demand.collective.size,
            "algbw_GBps": algbw,
            "busbw_GBps": None if algbw is None else algbw * float(demand.collective.busbw_factor(ranks)),
            "lower_bound_s": float(bound),
            "certificate": type(certificate).__name__.removesuffix("Certificate").lower(),
        }
    links = instance.topology.links
    busiest = sorted(range(len(links)), key=lambda index: (-busy_s[index], index))[:MAX_LISTED]
    report["busiest_links"] = [
        {
            "link": index,
            "source": links[index].source,
            "target": links[index].target,
            "busy_s": float(busy_s[index]),
            "utilization": float(busy_s[index]) / time_s if time_s else None,
        }
        for index in busiest
    ]
    report["mean_utilization"] = float(busy_s.mean()) / time_s if time_s and links else None
    return report
