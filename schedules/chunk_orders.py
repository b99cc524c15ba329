"""Lowering of chunk orders to sends on links, for everything that reads schedules.

A fabric is expanded into links. In a stage, the blocks of a chunk are gathered among the NPUs that differ in one
coordinate, or scattered by the same sends in reverse: n - 1 steps in a ring of more than three, with half of every
block in either direction; direct sends between all pairs at once in a fully connected block and in a ring of two or
three; through a switch, recursive doubling if n is a power of two, else direct sends. Dimensions process chunks in
the order of the model of :mod:`.multirail`. On a mesh, whose rows are treated as rings, the wrap-around traffic of
a ring returns through the row, over links that other sends use.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import count, takewhile
from math import prod

import numpy as np

from ..core.answers import ChunkOrders
from ..core.collective import Demand
from ..core.errors import InputError
from ..core.fabric import Block, Dimension, WiredFabric
from ..core.instance import Instance
from ..core.network_views import links_of, rings_of
from ..core.ragged import offsets
from ..core.schedule import Chunks, Ints, Sends, StepSchedule
from ..core.topology import Topology
from .multirail import evaluate, stages

#: More sends are not written.
MAX_SENDS = 5_000_000


@dataclass(frozen=True, eq=False)
class _Gather:
    """Sends that gather the blocks of one chunk in a dimension: source, target, block and step of each."""

    source: Ints
    target: Ints
    block: Ints
    step: Ints

    @property
    def steps(self) -> int:
        return int(self.step.max()) + 1


def to_sends(instance: Instance, answer: ChunkOrders, most: int = MAX_SENDS) -> tuple[Instance, StepSchedule]:
    """Convert chunk orders to a schedule of sends.

    Parameters
    ----------
    instance : Instance
        A fabric with bandwidths, or a mesh whose dimensions are treated as rings, and the collective.
    answer : ChunkOrders
        One order of dimensions per chunk.
    most : int
        Largest number of sends to create.

    Returns
    -------
    instance : Instance
        The same with the links of the fabric.
    schedule : StepSchedule
        Every chunk has one block per NPU, or two if there is a ring of more than three.

    Raises
    ------
    InputError
        If there is no such fabric or collective, the orders are wrong, or there would be more sends.
    """
    fabric, demand = instance.network, instance.demand
    if mesh := fabric if isinstance(fabric, Topology) else None:
        fabric = rings_of(mesh) or fabric
    if not isinstance(fabric, WiredFabric) or demand is None:
        raise InputError("orders of chunks need a fabric with bandwidths and a collective", place="network")
    starts = evaluate(fabric, demand, answer.orders, answer.queue).starts_s
    halves = 2 if any(_is_ring(d) for d in fabric.dimensions) else 1
    total = demand.chunks * demand.collective.passes * fabric.npus * (fabric.npus - 1) * halves
    if total > most:
        raise InputError(f"{total:,} sends; expected at most {most:,}", place="chunks")
    topology = mesh or links_of(fabric)
    posed = instance if mesh else instance.with_changes(network=topology)
    known: dict[tuple[int, frozenset[int]], _Gather] = {}
    rows: list[tuple[_Gather, int, bool, list[Fraction]]] = []
    for chunk, order in enumerate(answer.orders):
        route = stages(fabric, demand, order)
        scatters = len(order) if demand.collective.sums else 0
        for k, stage in enumerate(route):
            done = frozenset(order[: k if k < scatters else len(route) - 1 - k])
            key = stage.dimension, done
            if key not in known:
                known[key] = _gather(fabric, *key, halves)
            steps = known[key].steps
            times = [starts[chunk][k] + stage.seconds * step / steps for step in range(steps)]
            rows.append((known[key], chunk, k < scatters, times))
    return posed, _schedule(posed, topology, fabric, demand, rows, halves)


def _schedule(
    posed: Instance,
    topology: Topology,
    fabric: WiredFabric,
    demand: Demand,
    rows: list[tuple[_Gather, int, bool, list[Fraction]]],
    halves: int,
) -> StepSchedule:
    """Merge the gathers of all chunks, forwards or reversed, into steps in order of time."""
    at = {time: step for step, time in enumerate(sorted({time for *_, times in rows for time in times}))}
    per_chunk = fabric.npus * halves
    columns: list[tuple[Ints, Ints, Ints, Ints, Ints]] = []
    for gather, chunk, backwards, times in rows:
        steps = np.array([at[time] for time in times], dtype=np.int64)
        source, target, step = gather.source, gather.target, gather.step
        if backwards:
            source, target, step = target, source, gather.steps - 1 - step
        columns.append((chunk * per_chunk + gather.block, source, target, np.full_like(step, backwards), steps[step]))
    block, source, target, reduce, step = (np.concatenate(parts) for parts in zip(*columns, strict=True))
    offset, links = _paths(topology, fabric.sizes, source, target)
    blocks, npus = demand.chunks * per_chunk, fabric.npus
    owner = np.arange(blocks) % per_chunk // halves
    everybody = np.full(blocks, npus)
    chunks = Chunks(
        np.ones(blocks, dtype=np.int64),
        demand.size_bytes / blocks,
        (*((rank,) for rank in range(npus)), tuple(range(npus))),
        everybody if demand.collective.sums else owner,
        everybody if demand.collective.copies else owner,
        np.full(blocks, demand.collective.sums),
    )
    nodes = np.array(topology.rank_nodes, dtype=np.int64)
    sends = Sends(block, nodes[source], nodes[target], reduce.astype(np.bool_), offset, links)
    return StepSchedule(posed.sha256, chunks, sends, step)


def _paths(topology: Topology, sizes: tuple[int, ...], source: Ints, target: Ints) -> tuple[Ints, Ints]:
    """Return the path between ranks: a link, two through a shared switch, or a mesh row's."""
    between = {ends: link for link, ends in enumerate(topology.link_ends)}
    onward: dict[int, set[int]] = {}
    for a, b in topology.link_ends:
        onward.setdefault(a, set()).add(b)
    pairs, which = np.unique(np.stack([source, target]), axis=1, return_inverse=True)
    found: list[list[int]] = []
    for one, other in pairs.T.tolist():
        a, b = topology.rank_nodes[one], topology.rank_nodes[other]
        if (a, b) in between:
            found.append([between[a, b]])
        elif not topology.switches:
            stride = max(s for s in (prod(sizes[:d]) for d in range(len(sizes))) if s <= abs(b - a))
            row = range(a, b, stride if a < b else -stride)
            found.append([between[here, here + row.step] for here in row])
        else:
            via = next(node for node in onward[a] if (node, b) in between)
            found.append([between[a, via], between[via, b]])
    hops = np.array([len(path) for path in found], dtype=np.int64)[which]
    offset = offsets(hops)
    links = np.array([link for index in which.tolist() for link in found[index]], dtype=np.int64)
    return offset, links


def _is_ring(dimension: Dimension) -> bool:
    return dimension.block is Block.RING and dimension.size > 3


def _gather(fabric: WiredFabric, d: int, done: frozenset[int], halves: int) -> _Gather:
    """Gather in dimension d after the dimensions in ``done``.

    Block b belongs to NPU b; half h of it is ``2 b + h``.
    """
    sizes = fabric.sizes
    stride = [prod(sizes[:k]) for k in range(len(sizes))]
    numbers = np.arange(fabric.npus)
    place = [numbers // stride[k] % sizes[k] for k in range(len(sizes))]
    columns: list[tuple[Ints, Ints, Ints, Ints]] = []
    for sender, receiver, part, half, step in _moves(fabric.dimensions[d]):
        at = numbers[place[d] == sender]  # every NPU there sends the blocks of a part that are of its other coordinates
        blocks = numbers[place[d] == part]
        alike = np.ones((len(at), len(blocks)), dtype=np.bool_)
        for k in done:
            alike &= place[k][at][:, None] == place[k][blocks]
        who, what = np.nonzero(alike)
        for h in range(halves) if half is None else (half,):
            source, block = at[who], blocks[what] * halves + h
            columns.append((source, source + (receiver - sender) * stride[d], block, np.full(len(who), step)))
    return _Gather(*(np.concatenate(parts) for parts in zip(*columns, strict=True)))


#: Sender, receiver, part, half (None for both) and step.
_Move = tuple[int, int, int, int | None, int]


def _moves(dimension: Dimension) -> list[_Move]:
    """List the sends of a gather in which every position contributes its own part."""
    n = dimension.size
    if _is_ring(dimension):
        onward: list[_Move] = [(i, (i + 1) % n, (i - s) % n, 0, s) for s in range(n - 1) for i in range(n)]
        return onward + [(i, (i - 1) % n, (i + s) % n, 1, s) for s in range(n - 1) for i in range(n)]
    if dimension.block is Block.SWITCH and n & (n - 1) == 0:
        rounds = list(takewhile(lambda s: 2**s < n, count()))
        return [(i, i ^ 2**s, p, None, s) for s in rounds for i in range(n) for p in range(n) if p >> s == i >> s]
    return [(i, j, i, None, 0) for i in range(n) for j in range(n) if i != j]
