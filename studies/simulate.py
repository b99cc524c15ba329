"""Measures of simulated schedules: times, bandwidths, bounds and the busiest links."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from ..algorithms.bounds.schedule_bounds import best_bound, latency_bound
from ..core.answers import Answer
from ..core.errors import InputError
from ..core.files import write_whole
from ..core.instance import Instance
from ..core.pipelining import LatencyModel, reserve_rates
from ..core.schedule import Floats, Ints
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

#: Busiest links that are listed.
LISTED = 5

#: What the modes are, for the heading.
MODELS = {
    SimulationMode.ALPHA_BETA: "what if links served all sends at once, alpha-beta",
    SimulationMode.CONGESTION_AWARE: "what if links served sends as they come, congestion-aware",
    SimulationMode.CUT_THROUGH: "what if sends went on while they come, cut-through",
    SimulationMode.FAIR_SHARE: "what if sends shared links fairly, fair-share",
    SimulationMode.SHARES: "what if every tree had its share of every link, shares",
}

#: What ``--reserve`` is, for the heading.
RESERVED = "what if every tree kept the rate that is best for it"


@dataclass(frozen=True)
class SimulationOptions:
    """Options of a simulation."""

    mode: SimulationMode | None = None  #: Model of time on links; None is that of all completion times.
    barrier: bool = False
    pieces: int | None = None  #: Pieces of every tree; by default those of the file, else chosen.
    latency_model: LatencyModel = LatencyModel.PROPAGATION  #: Latency only delays a chunk, or occupies the link too.
    reserve: bool = False
    chunk_overhead: str | None = None  #: Time per chunk on a link in addition to its bytes, with ``reserve``.
    routing: Routing | None = None  #: Paths of the schedule, or other shortest ones; by default the instance's.

    def routing_on(self, instance: Instance) -> Routing:
        """Return the routing, of the instance unless another one is asked for."""
        return self.routing or instance.routing

    def mode_for(self, read: ScheduleFile) -> SimulationMode:
        """Return the mode, that of completion times unless another one is asked for."""
        return self.mode or mode_of(read.answer, self.routing_on(read.instance))

    def asks_another_model(self, read: ScheduleFile) -> bool:
        """Return True if the model of time differs from that of all completion times."""
        held, routing = self.latency_model is LatencyModel.OCCUPANCY, read.instance.routing
        other = self.mode_for(read) is not mode_of(read.answer, routing)
        return self.barrier or held or other or self.routing not in (None, routing)


def play(read: ScheduleFile, asked: SimulationOptions) -> tuple[Trace, int | Ints]:
    """Simulate a schedule; return its trace and the pieces of its trees."""
    instance, answer = read.instance, read.answer
    if asked.reserve:
        return _simulate_reserved(instance, answer, asked)
    if asked.chunk_overhead is not None:
        raise InputError("expected together with --reserve", source="--chunk-overhead")
    known = _completion(read, asked) if isinstance(answer, TreePacking | TreeOrbits) or asked.pieces else None
    pieces = 1 if known is None else known.pieces or 1
    held = asked.latency_model is LatencyModel.OCCUPANCY
    given: Any = {"barrier": asked.barrier, "pieces": pieces, "routing": asked.routing}
    return simulate(instance, answer, asked.mode_for(read), **given, hold_latency=held), pieces


def _completion(read: ScheduleFile, asked: SimulationOptions) -> Completion | None:
    """Return the completion time of trees in pieces; of other schedules only in the model of all such times."""
    trees = isinstance(read.answer, TreePacking | TreeOrbits)
    if asked.pieces is not None and not trees:
        raise InputError("only trees are divided into pieces", source="--pieces")
    if not trees and asked.asks_another_model(read):
        return None
    return completion_of(read.instance, read.answer, asked.pieces or read.pieces)


def simulation_of(read: ScheduleFile, asked: SimulationOptions, trace_file: Path | None = None) -> dict[str, Any]:
    """Return the output of ``cwb simulate --json``, and write a Chrome trace if a file is given."""
    chosen, routing = asked.mode_for(read), asked.routing_on(read.instance)
    if trace_file is not None and routing is not Routing.FIXED:
        raise InputError("a trace has the paths of the schedule; expected --routing fixed", source="--trace")
    instance, answer, model = read.instance, read.answer, asked.latency_model
    trace: Trace | None = None
    known: Completion | None = None
    cut: int | Ints
    if asked.reserve or asked.chunk_overhead is not None:
        trace, cut = play(read, asked)
        found = _what_if(instance, trace, trace.mode, [RESERVED, model.value])
    else:
        known = _completion(read, asked)
        cut = 1 if known is None else known.pieces or 1
        another = asked.asks_another_model(read)
        if another or trace_file is not None:
            trace, cut = play(read, asked)
        if known is not None and not another:
            found = measures(instance, chosen, known.sends, known.seconds, known.busy_s)
            found |= {"model": known.model, **({"no_completion_time": known.why} if known.why else {})}
        else:
            assert trace is not None  # noqa: S101 (something else is asked)
            trees = isinstance(answer, TreePacking | TreeOrbits)
            words = [
                MODELS[chosen],
                "with barriers" * asked.barrier,
                model.value,
                in_pieces(cut) if trees and isinstance(cut, int) else "",
                "" if chosen is SimulationMode.SHARES else routing.in_words,
            ]
            found = _what_if(instance, trace, chosen, words)
    if routing is not Routing.FIXED and chosen is not SimulationMode.SHARES:
        found["routing"] = routing.value
    if trace_file is not None and trace is not None:
        write_trace(trace_file, instance, answer, trace, cut)
    found |= {"barrier": asked.barrier, "latency_model": model.value, "reserve": asked.reserve}
    if instance.rank_costs is not None:
        found["model"] += f"; {instance.rank_costs.in_words}"
    found |= {"pieces": cut if isinstance(cut, int) else cut.tolist()}
    # What is asked of another model of time is not what the certificate speaks of.
    if known is None or asked.pieces not in (None, read.pieces):
        known = completion_if_any(instance, answer, read.pieces) if read.certificate or read.extra else None
    proof, violations = proof_of(read, right=True, completion_s=None if known is None else known.seconds)
    found |= {"proved_bound_s": None if proof.bound_s is None else float(proof.bound_s), "violations": violations}
    return found


def write_trace(file: Path, instance: Instance, answer: Answer, trace: Trace, pieces: int | Ints) -> None:
    """Write a Chrome trace, which Perfetto opens."""
    content = "".join(chrome_trace(instance, answer, trace, pieces=pieces))
    write_whole(file, content.encode())


def _what_if(instance: Instance, trace: Trace, mode: SimulationMode, words: list[str]) -> dict[str, Any]:
    found = measures(instance, mode, len(trace.start_s), trace.completion_s, trace.link_busy_s)
    return found | {"model": ", ".join(filter(None, words))}


def _simulate_reserved(instance: Instance, answer: Answer, asked: SimulationOptions) -> tuple[Trace, Ints]:
    """Simulate trees with reserved rates; also return their numbers of chunks."""
    if not isinstance(trees := write_out(answer, instance), TreePacking):
        raise InputError("only trees have reserved rates", source="--reserve")
    moved = asked.routing not in (None, Routing.FIXED)
    if asked.barrier or moved or asked.mode not in (None, SimulationMode.CONGESTION_AWARE):
        raise InputError("expected the mode congestion-aware on fixed paths, without barriers", source="--reserve")
    overhead_s = Fraction(0) if asked.chunk_overhead is None else parse(asked.chunk_overhead, UnitKind.TIME)
    plan = reserve_rates(instance.topology, trees, asked.latency_model, overhead_s, asked.pieces)
    return simulate_reserved(instance, trees, plan, asked.latency_model, overhead_s=overhead_s), plan.chunks


def measures(
    instance: Instance, mode: SimulationMode, sends: int, time: float | None, busy_s: Floats
) -> dict[str, Any]:
    """Return results of a simulation as plain data; None where something is unknown.

    Bandwidth bounds a schedule only if links serve one piece at a time and are never faster than nominal: the
    congestion-unaware model, and links that are sometimes faster, are compared with latency only.
    """
    found: dict[str, Any] = {
        "schema": "cwb-simulation/1",
        "instance": instance.name,
        "instance_sha256": instance.sha256,
        "mode": mode.value,
        "sends": sends,
        "completion_time_s": time,
        **dict.fromkeys(("collective", "size_bytes", "size_of", "algbw_GBps", "busbw_GBps")),
        **dict.fromkeys(("lower_bound_s", "certificate")),
    }
    for demand in instance.collectives[:1]:
        ranks = instance.npus if demand.ranks is None else len(demand.ranks)
        algbw = float(demand.size_bytes) / time / 1e9 if time and not (instance.also or demand.part_of) else None
        faster = instance.timing is not None and any(change.factor > 1 for change in instance.timing.changes)
        without_wire = faster or mode is SimulationMode.ALPHA_BETA
        bound, certificate = (latency_bound if without_wire else best_bound)(instance)
        found |= {
            "collective": demand.collective.name,
            "size_bytes": float(demand.size_bytes),
            "size_of": demand.collective.size,
            "algbw_GBps": algbw,
            "busbw_GBps": None if algbw is None else algbw * float(demand.collective.busbw_factor(ranks)),
            "lower_bound_s": float(bound),
            "certificate": type(certificate).__name__.removesuffix("Certificate").lower(),
        }
    links = instance.topology.links
    busiest = sorted(range(len(links)), key=lambda index: (-busy_s[index], index))[:LISTED]
    found["busiest_links"] = [
        {
            "link": index,
            "source": links[index].source,
            "target": links[index].target,
            "busy_s": float(busy_s[index]),
            "utilization": float(busy_s[index]) / time if time else None,
        }
        for index in busiest
    ]
    found["mean_utilization"] = float(busy_s.mean()) / time if time and links else None
    return found
