"""Simulated training iteration: maps a workload on a network, times its collectives, simulates its tasks."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from math import prod
from pathlib import Path
from typing import Any

from ..core.answers import BandwidthPlan
from ..core.budget import Progress, ignore
from ..core.errors import InputError, Unsupported, did_you_mean, locate_errors
from ..core.fabric import Block, Dimension, Fabric, WiredFabric
from ..core.instance import Instance
from ..core.network_views import to_wired_fabric
from ..core.record import RunRecord
from ..core.topology import Topology
from ..core.training import TrainingOptions
from ..core.workload import Span, Workload, check_span, map_groups
from ..harness.clock import WallClock
from ..harness.environment import study_record, time_stamp
from ..harness.request import Request
from ..harness.run import run
from ..instances.build import default_degrees, join_spans, layers_of
from ..instances.loader import find_workload, load
from ..instances.schema import WorkloadFile
from ..schedules.iteration import Iteration, Loop, Pipeline, Plan, Streams, simulate_iteration
from .collective_times import CollectiveTimes, TimedCollective, checked_methods

ALL = "all"  #: A group of all NPUs.


@dataclass(frozen=True)
class Training:
    """A simulated iteration with the times of its collectives."""

    instance: Instance
    workload: Workload
    iteration: Iteration  #: The best iteration over all bucket sizes.
    collectives: tuple[TimedCollective, ...]
    tried_s: Mapping[Fraction, Fraction]  #: Seconds of the iteration by bucket size.


def train(
    instance: Instance,
    setup: TrainingOptions,
    progress: Progress = ignore,
    *,
    chunks: int = 1,
    seed: int = 0,
    time_limit_s: float | None = None,
) -> Training:
    """Simulate an iteration; raise Unsupported if a method does not support a collective.

    ``chunks`` are those of each rank's part of a collective; ``seed`` and ``time_limit_s`` are of each run of a method.
    """
    shape, workload = _workload(instance, setup)
    methods = checked_methods(setup.method, workload.groups)
    for name in setup.options:
        if name not in (*methods.values(), setup.design):
            raise InputError(f"options of {name!r}, which is neither a --method nor the --design", source="-O")
    network = _network(instance, setup, progress, seed, time_limit_s)
    times = CollectiveTimes(
        instance.with_changes(network=network, demand=None, also=(), workloads=(), transformers=(), cost_model=None),
        shape,
        workload.groups,
        methods,
        setup.options,
        chunks,
        seed,
        time_limit_s,
        progress,
    )
    loop = Loop(setup.loop or ("ddp" if setup.bucket else workload.loop.value))
    plan = Plan(
        loop, streams=Streams(setup.streams), microbatches=setup.microbatches, pipeline=Pipeline(setup.pipeline)
    )
    runs: list[tuple[Iteration, tuple[TimedCollective, ...]]] = []
    for size in setup.bucket or (plan.bucket_bytes,):
        parts: dict[TimedCollective, None] = {}
        cost, slowdowns = _recording_cost(times, parts), None if setup.streams == "one" else times.slowdowns
        iteration = simulate_iteration(workload, replace(plan, bucket_bytes=size), cost, slowdowns)
        runs.append((iteration, tuple(parts)))
    best, collectives = min(runs, key=lambda each: each[0].seconds)
    by_bucket = {each.plan.bucket_bytes: each.seconds for each, _ in runs}
    return Training(times.instance, workload, best, collectives, by_bucket)


def _recording_cost(times: CollectiveTimes, parts: dict[TimedCollective, None]) -> Any:
    def cost(communication: Any) -> Fraction:
        seconds = times(communication)
        parts[times.results[communication]] = None
        return seconds

    return cost


def _workload(instance: Instance, setup: TrainingOptions) -> tuple[Fabric, Workload]:
    own = {each.name: each for each in instance.training()} if isinstance(instance.network, Fabric) else {}
    name = setup.workload
    if name is None:
        if len(own) != 1:
            has = f"trains {', '.join(own)}" if own else "has no workload"
            raise InputError(f"missing, and the instance {has}; expected one such as gpt-3", source="--workload")
        name = next(iter(own))
    if name in own and not setup.group:
        return instance.fabric, own[name]
    with locate_errors(source="--workload"):
        file = find_workload(name)
    shape, groups = _groups(instance.network, setup.group, file)
    with locate_errors(source="--workload"):
        layers = layers_of(file, {group: prod(span) for group, span in groups.items()}, shape.npus)
    for layer in layers:
        for phase in (layer.forward, layer.input_gradient, layer.weight_gradient):
            for c in phase.communication:
                if c.group not in groups:
                    hint = did_you_mean(c.group, groups)
                    text = f"layer {layer.name!r} names group {c.group!r}; the groups are {', '.join(groups)}{hint}"
                    raise InputError(text, source="--group")
    return shape, Workload(file.name, layers, groups)


def _groups(network: Fabric | Topology, texts: Mapping[str, str], file: WorkloadFile) -> tuple[Fabric, dict[str, Span]]:
    """Map groups onto the dimensions; onto links as if there were a dimension for each degree."""
    npus = network.npus if isinstance(network, Fabric) else len(network.ranks)
    with locate_errors(source="--workload"):
        nested, over = default_degrees(file, npus) if not texts else ({}, {})
    spans: dict[str, list[int]] = {}
    for name, text in texts.items():
        with locate_errors(name, source="--group"):
            if text == ALL:
                over[name] = None
            elif "x" in text:
                spans[name] = [_count(part) for part in text.split("x")]
            else:
                nested[name] = _count(text)
    if {"ep", "edp"} & nested.keys() and "dp" not in texts:
        over["dp"] = tuple(name for name in ("ep", "edp") if name in nested)
    with locate_errors(source="--group"):
        if not isinstance(network, Fabric):
            if spans:
                raise InputError(f"{next(iter(spans))} has a span, but links have no dimensions; expected a degree")
            if prod(nested.values()) not in ((1, npus) if over else (npus,)):
                degrees = " x ".join(f"{name}={degree}" for name, degree in nested.items())
                raise InputError(f"{degrees} is {prod(nested.values()):,} ranks; the network has {npus:,}")
            sizes = list(nested.values()) if prod(nested.values()) == npus else [npus]
            shape = Fabric(tuple(Dimension(Block.SWITCH, size, "") for size in sizes))
            mapped = {name: tuple(n if i == j else 1 for j, n in enumerate(sizes)) for i, name in enumerate(nested)}
        else:
            shape = network
            mapped = map_groups(network, nested) if nested else {}
        for name, span in spans.items():
            with locate_errors(name):
                check_span(tuple(span), shape)
            mapped[name] = tuple(span)
    return shape, join_spans(mapped, over, shape.sizes)


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit()) or not 0 < len(text) < 10 or int(text) < 1:
        raise InputError(f"{text!r} is not a degree; expected a number of NPUs, a span such as 4x4x1x1, or all")
    return int(text)


def _network(
    instance: Instance, setup: TrainingOptions, progress: Progress, seed: int, time_limit_s: float | None
) -> Fabric | Topology:
    network = instance.network
    if not isinstance(network, Fabric):
        for value, option in ((setup.bandwidth, "--bandwidth"), (setup.design, "--design")):
            if value is not None:
                raise InputError("given for links; expected it with dimensions such as RI(4)_SW(32)", source=option)
        return network
    rates = setup.bandwidth
    if setup.design is not None:
        if rates is not None:
            raise InputError("given together with --bandwidth; expected one of them", source="--design")
        options = setup.options.get(setup.design, {})
        rates = _design_bandwidths(
            instance, Request(setup.design, options=options, seed=seed, time_limit_s=time_limit_s), progress
        )
    if rates is None and instance.design is not None and not isinstance(network, WiredFabric):
        text = "missing, and the instance is a design without bandwidths; expected it, or --design libra"
        raise InputError(text, source="--bandwidth")
    wires = to_wired_fabric(network)
    zero = (Fraction(0),) * len(network.dimensions)
    latency = setup.latency or (zero if rates is not None else wires.latency_s)
    with locate_errors(source="--bandwidth"):
        return WiredFabric(network.dimensions, tuple(rates or wires.bandwidth_Bps), tuple(latency))


def _design_bandwidths(instance: Instance, request: Request, progress: Progress) -> list[Fraction]:
    stop = threading.Event()
    result = run(instance, request, stop=stop)
    if stop.is_set():
        raise KeyboardInterrupt
    if not isinstance(result.answer, BandwidthPlan) or result.record.verified is not True:
        raise Unsupported(f"{request.model}: {result.record.message or 'no bandwidths'}")
    progress(f"{request.model}: {', '.join(f'{rate / 1e9:.6g}' for rate in result.answer.bandwidth_Bps)} GB/s")
    return list(map(Fraction, result.answer.bandwidth_Bps))


def training_record(instance: str, setup: TrainingOptions, chunks: int, seed: int, limit_s: float | None) -> RunRecord:
    """Simulate an iteration on a named instance, and return a record whose metrics are the :func:`measures`."""
    clock, started_at = WallClock(), time_stamp()
    training = train(load(instance), setup, chunks=chunks, seed=seed, time_limit_s=limit_s)
    metrics = measures(training)
    return study_record(
        model="train",
        kind="simulation",
        instance=training.instance.name,
        instance_sha256=training.instance.sha256,
        options={},
        seed=seed,
        objective=metrics["iteration_s"],
        bound=metrics["lower_bound_s"],
        metrics=metrics,
        seconds=clock.seconds(),
        started_at=started_at,
    )


def measures(training: Training) -> dict[str, Any]:
    """Return the results as plain data (``cwb-training/1``)."""
    iteration, plan = training.iteration, training.iteration.plan
    path, busiest = iteration.bounds_s
    bound, network = max(path, busiest), training.instance.network
    rates = [float(rate / 10**9) for rate in network.bandwidth_Bps] if isinstance(network, WiredFabric) else None
    return {
        "schema": "cwb-training/1",
        "instance": training.instance.name,
        "workload": training.workload.name,
        "npus": training.instance.npus,
        "groups": {name: prod(span) for name, span in training.workload.groups.items()},
        "loop": plan.loop.value,
        "streams": plan.streams.value,
        "bucket_bytes": float(plan.bucket_bytes) if plan.loop is Loop.DDP else None,
        "tried_s": {str(size): float(seconds) for size, seconds in training.tried_s.items()},
        "microbatches": plan.microbatches,
        "pipeline": plan.pipeline.value if iteration.stages > 1 else None,
        "stages": iteration.stages,
        "iteration_s": float(iteration.seconds),
        "lower_bound_s": float(bound),
        "critical_path_s": float(path),
        "busiest_stream_s": float(busiest),
        "compute_s": float(iteration.compute_s),
        "communication_s": {what: float(s) for what, s in sorted(iteration.communication_s.items())},
        "spent_s": {what: float(s) for what, s in iteration.mean_breakdown_s.items()},
        "exposed_s": float(iteration.exposed_s),
        "bandwidth_GBps": rates,
        "collectives": [
            {
                "collective": each.communication.collective.name,
                "group": each.communication.group,
                "ranks": each.ranks,
                "size_bytes": float(each.communication.size_bytes),
                "method": each.method,
                "seconds": float(each.seconds),
                "verified": each.verified,
                "lower_bound_s": each.bound_s,
            }
            for each in training.collectives
        ],
    }


def draw_timeline(path: Path, training: Training) -> None:
    """Draw the tasks of an iteration over time."""
    from ..reports.plots import write_plot
    from ..reports.plots.studies import Bar
    from ..reports.plots.studies import draw_timeline as draw

    iteration = training.iteration
    rows = sorted(range(len(iteration.tasks)), key=lambda i: (iteration.tasks[i].stage, i))
    bars: list[Bar] = []
    for index in rows:
        task = iteration.tasks[index]
        stage = f"stage {task.stage + 1}: " if iteration.stages > 1 else ""
        row = f"{stage}{task.stream or task.what}"
        bars.append(Bar(row, task.what, float(iteration.starts_s[index]), float(task.seconds)))
    title = f"{training.workload.name} on {training.instance.name}"
    write_plot(path, draw, title, bars)
