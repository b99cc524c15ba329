"""Answers as schedules and ordered sends, for their lowering to programs of ranks; imported sends as schedules."""

from collections.abc import Iterable
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from ..core.collective import Condition
from ..core.equal_steps import StreamedSteps, send_images
from ..core.errors import Unsupported
from ..core.instance import Instance
from ..core.schedule import Chunks, Ints, Schedule, Sends, StepSchedule
from ..core.topology import Topology
from ..core.trees import TreeKind, TreePacking, chunks_of_kind, translation_images
from .trees import tree_sends
from .verify.answers import Whole
from .verify.equal_steps import demand_of_all
from .verify.grid import grid_of
from .verify.replay import time_order
from .verify.sizes import demanded_bytes


class OrderedSends(NamedTuple):
    """Sends of a schedule in the order in which they read and write."""

    sends: Sends
    conditions: list[Condition]  #: of every chunk, as its units
    units: list[int]
    unit_bytes: Fraction
    #: Order of the reading at the source and the writing at the target. If they are equal, as within a step, all
    #: reading of a chunk comes before all writing of it; shape (sends,).
    read: Ints
    write: Ints


def order_sends(topology: Topology, instance: Instance, answer: Whole, pieces: int = 1) -> OrderedSends:
    """Return the sends of a schedule with their order."""
    if isinstance(answer, TreePacking):
        sends, _, level = tree_sends(topology, answer, pieces)
        order = level + sends.chunk // max(len(answer), 1)
        conditions, units = _conditions_of_trees(instance, answer) * pieces, answer.units.tolist() * pieces
        return OrderedSends(sends, conditions, units, answer.unit_bytes / pieces, order, order)
    chunks = answer.chunks
    rows = zip(chunks.held_by.tolist(), chunks.needed_by.tolist(), chunks.reduced.tolist(), strict=True)
    conditions = [normalize_condition(chunks.groups[own], chunks.groups[to], adds) for own, to, adds in rows]
    if isinstance(answer, Schedule):
        read, write = time_order(answer.start_s, answer.end_s)
    else:
        read = write = np.asarray(answer.step)
    return OrderedSends(answer.sends, conditions, chunks.units.tolist(), chunks.unit_bytes, read, write)


def normalize_condition(holders: tuple[int, ...], receivers: tuple[int, ...], reduced: bool) -> Condition:
    """Normalize a condition: drop holders from the receivers of copied data."""
    return (holders, receivers, True) if reduced else (holders, tuple(sorted({*receivers} - {*holders})), False)


def _conditions_of_trees(instance: Instance, packing: TreePacking) -> list[Condition]:
    by_root: dict[int | None, Condition] = {}  # None stands for every root of an all-reduce's trees
    for condition in demanded_bytes(instance):
        holders, receivers, reduced = condition
        root = None if len(holders) > 1 and len(receivers) > 1 else min(receivers if reduced else holders)
        by_root[root] = normalize_condition(holders, receivers, reduced)
    return [by_root[None] if None in by_root else by_root[root] for root in packing.root.tolist()]


MOST_SENDS = 5_000_000  #: Sends that are stored at most.


def store_sends(instance: Instance, answer: StreamedSteps) -> StepSchedule:
    """Generate all sends of a schedule, and store them; :class:`Unsupported` if there are too many."""
    demand = demand_of_all(instance, answer.kind)
    if demand is None or answer.sends > MOST_SENDS:
        raise Unsupported(f"{answer.sends:,} sends that are generated step by step; at most {MOST_SENDS:,} are stored")
    ends = np.array(instance.topology.link_ends, dtype=np.int64).reshape(-1, 2)
    images_of_links = [image for _, image in translation_images(answer.translations, instance.topology)]
    head = ends[:, 0 if answer.kind is TreeKind.IN else 1]
    images = send_images([*zip(answer.translations, images_of_links, strict=True)], head, instance.npus, demand.chunks)
    parts, count = [], 0
    for block in answer.blocks():
        step, link, chunk = images.expand(block)
        parts.append((chunk, link, step + count))
        count += len(block)
    chunk, link, step = (np.concatenate(column).astype(np.int64) for column in zip(*parts, strict=True))
    opposite = np.empty(len(ends), dtype=np.int64)
    opposite[np.lexsort(ends.T)] = np.lexsort(ends.T[::-1])
    columns = []
    for number, way in enumerate(answer.kind.passes):  # blocks gather; backwards in time, they reduce
        adds = way is TreeKind.IN
        when = answer.gather_steps - 1 - step if adds else number * answer.gather_steps + step
        over = opposite[link] if adds and answer.kind is TreeKind.BOTH else link
        columns.append((chunk, over, when, np.full(len(chunk), adds)))
    chunks, links, steps, sums = (np.concatenate(column) for column in zip(*columns, strict=True))
    source, target = ends[links].T
    sends = Sends(chunks, source, target, sums, np.arange(len(chunks) + 1), links)
    owner = np.repeat(np.arange(instance.npus), demand.chunks)
    of_chunks = chunks_of_kind(owner, instance.npus, Fraction(demand.size_bytes), answer.kind)
    return StepSchedule(answer.instance_sha256, of_chunks, sends, steps)


def schedule_in_epochs(
    instance: Instance, chunks: Chunks, sends: Iterable[tuple[int, int, tuple[int, ...]]]
) -> Schedule:
    """Time sends (chunk, epoch of the start, links) on an instance's grid; hops that several share occur once."""
    grid = grid_of(instance)
    hops: set[tuple[int, int, int]] = set()
    for chunk, start, path in sends:
        at = start
        for link in path:
            hops.add((at, chunk, link))
            at += int(grid.delay[link])
    begin, carried, links = np.array(sorted(hops), dtype=np.int64).reshape(-1, 3).T.copy()
    adds, offset = np.zeros(len(links), dtype=np.bool_), np.arange(len(links) + 1)
    columns = Sends(carried, grid.source[links], grid.target[links], adds, offset, links)
    times = ([float(at * grid.timing.epoch_s) for at in when.tolist()] for when in (begin, begin + grid.delay[links]))
    return Schedule(instance.sha256, chunks, columns, *(np.array(each, dtype=np.float64) for each in times))
