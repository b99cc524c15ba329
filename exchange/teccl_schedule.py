"""Schedule files of the original TE-CCL as chunks and sends in epochs.

What means something else there:

* A file does not say what it solves: its input does, see :mod:`.teccl`. Of the schedule's file, the length of an epoch
  and the sends are taken.
* Chunks of an all-gather are counted at their source; those of an all-to-all for every destination in turn, the source
  included.
* The line of a way through switches names the epoch of its first link; it starts over every further link when it
  arrives there. What a switch copies is in several lines, and once on the link to the switch.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from ..core.collective import Collective
from ..core.errors import InputError, locate_errors
from ..core.fields import run_validation
from ..core.instance import Instance
from ..core.schedule import Chunks
from ..core.timing import Semantics, Timing
from ..core.topology import Topology
from ..instances.build import build_instance
from ..instances.loader import find_workload, network_from_text
from ..instances.schema import InstanceFile
from .teccl import OriginalSchedule, OriginalSend, position, read_schedule


@dataclass(frozen=True)
class ImportedSchedule:
    """A schedule that is not yet timed.

    Parameters
    ----------
    instance : Instance
        The problem, on the grid of the file.
    sends : tuple of (int, int, tuple of int)
        Chunk, epoch of the start, and links.
    epochs : int
        Length of the schedule according to the file.
    """

    instance: Instance
    chunks: Chunks
    sends: tuple[tuple[int, int, tuple[int, ...]], ...]
    epochs: int


def import_schedule(data: dict[str, Any], network: str, path: Path) -> ImportedSchedule:
    """Read a schedule file for an input.

    Parameters
    ----------
    data : dict
        The instance of the input (:func:`.teccl.import_teccl`).
    network : str
        Value of ``TopologyParams.name`` in the input.

    Raises
    ------
    InputError
        If the file is wrong, or names nodes, links or chunks that the instance does not have.
    """
    file = run_validation(lambda: InstanceFile.model_validate(data))
    instance = build_instance(file, data["name"], find_workload, network_from_text)
    original = read_schedule(path)
    with locate_errors(source=str(path)):
        if not original.epoch_s:
            raise InputError("an epoch of no time", place="1-Epoch_Duration")
        return _on_grid(instance, network, original)


def _on_grid(instance: Instance, network: str, original: OriginalSchedule) -> ImportedSchedule:
    topology, demand = instance.network, instance.demand
    assert isinstance(topology, Topology)  # noqa: S101 (every network of the importer is one)
    assert demand is not None  # noqa: S101 (the importer asks for a collective)
    to_each = demand.collective is Collective.ALL_TO_ALL
    timing = Timing(Semantics.TE_CCL, original.epoch_s, fluid=to_each)
    links = {ends: e for e, ends in enumerate(topology.link_ends)}
    rank = {node: r for r, node in enumerate(topology.rank_nodes)}
    per_source = demand.chunks * (len(rank) if to_each else 1)
    sends: list[tuple[int, int, tuple[int, ...]]] = []
    for index, flow in enumerate(original.flows):
        with locate_errors(f"7-Flows[{index}]"):
            sends.append(_send(topology, network, flow, links, rank, per_source))
    return ImportedSchedule(
        instance.with_changes(timing=timing),
        _chunks(instance, len(rank), to_each=to_each),
        tuple(sends),
        original.epochs,
    )


def _send(
    topology: Topology,
    network: str,
    flow: OriginalSend,
    links: dict[tuple[int, int], int],
    rank: dict[int, int],
    per_source: int,
) -> tuple[int, int, tuple[int, ...]]:
    if flow.volume != 1:
        raise InputError(f"a part of {float(flow.volume):g} of a chunk; expected whole chunks")
    source, way = position(topology, network, flow.source), [position(topology, network, node) for node in flow.way]
    if source not in rank:
        raise InputError(f"a chunk from the switch {topology.nodes[source].name!r}; expected one from a rank")
    if flow.chunk >= per_source:
        raise InputError(f"chunk {flow.chunk} of {per_source}")
    path: list[int] = []
    for ends in pairwise(way):
        if ends not in links:
            names = [topology.nodes[node].name for node in ends]
            raise InputError(f"no link from {names[0]!r} to {names[1]!r}")
        path.append(links[ends])
    return rank[source] * per_source + flow.chunk, flow.epoch, tuple(path)


def _chunks(instance: Instance, ranks: int, *, to_each: bool) -> Chunks:
    """Count chunks as the sends do; those from a rank to itself have nowhere to go."""
    assert instance.demand is not None  # noqa: S101 (callers have looked)
    count, everybody = instance.demand.chunks, tuple(range(ranks))
    held, needed = np.repeat(np.arange(ranks), count), np.full(ranks * count, ranks)
    groups = (*((r,) for r in everybody), everybody)
    if to_each:
        held, needed = np.repeat(np.arange(ranks), ranks * count), np.tile(np.repeat(np.arange(ranks), count), ranks)
        groups = groups[:-1]
    parts = ranks * count * (ranks if to_each else 1)
    unit = instance.demand.size_bytes / (ranks * count)
    return Chunks(np.ones(parts, dtype=np.int64), unit, groups, held, needed, np.zeros(parts, dtype=np.bool_))
