"""Schedules in time, from schedules in steps and packings of trees."""

from __future__ import annotations

import numpy as np

from ...core.errors import InputError
from ...core.instance import Instance
from ...core.schedule import Chunks, Schedule, StepSchedule
from ...core.trace import SimulationMode
from ...core.trees import TreeKind, TreePacking
from .run import simulate
from .transfers import sends_of


def timed(
    instance: Instance,
    answer: StepSchedule | TreePacking,
    mode: SimulationMode = SimulationMode.CONGESTION_AWARE,
    *,
    barrier: bool = False,
    pieces: int = 1,
) -> Schedule:
    """Assign every send its times in a simulation.

    Parameters
    ----------
    instance : Instance
        The problem, with an explicit network.
    answer : StepSchedule or TreePacking
        A schedule in steps, or trees, each of which becomes ``pieces`` chunks.
    mode, barrier, pieces
        See :func:`~cwb.schedules.simulate.run.simulate`. A schedule timed without regard to congestion may break the
        links' capacities.

    Raises
    ------
    InputError
        As :func:`~cwb.schedules.simulate.run.simulate`.
    """
    trace = simulate(instance, answer, mode, barrier=barrier, pieces=pieces)
    sends, _ = sends_of(instance, answer, pieces=pieces)
    chunks = answer.chunks if isinstance(answer, StepSchedule) else chunks_of(instance, answer, pieces)
    return Schedule(answer.instance_sha256, chunks, sends, trace.start_s, trace.end_s)


def chunks_of(instance: Instance, packing: TreePacking, pieces: int) -> Chunks:
    """Data that trees carry as chunks: chunk ``p * trees + t`` is piece p of tree t."""
    if instance.demand is None:
        raise InputError("expected a collective", place="collective")
    ranks = range(instance.npus) if instance.demand.ranks is None else instance.demand.ranks
    everyone = tuple(sorted(ranks))
    groups = (everyone, *((rank,) for rank in everyone))
    place = {rank: index for index, rank in enumerate(everyone, start=1)}
    root = np.tile([place[rank] for rank in packing.root.tolist()], pieces)
    all_ranks = np.zeros_like(root)
    inward = packing.kind is not TreeKind.OUT
    return Chunks(
        units=np.tile(packing.units, pieces),
        unit_bytes=packing.unit_bytes / pieces,
        groups=groups,
        held_by=all_ranks if inward else root,
        needed_by=root if packing.kind is TreeKind.IN else all_ranks,
        reduced=np.full(len(root), inward),
    )
