"""Channels of a machine: number, speeds, and order in which a ring visits the GPUs of a box.

After ``ncclTopoCompute`` of ``src/graph/search.cc`` (docs/methods/nccl.md, "Channels"). Other parts of NCCL's search,
for GPUs that are not alike and to end in time, are left out.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import floor

from ...core.budget import check_time
from .boxes import Box, Boxes, Nic
from .constants import SPEEDS, Algorithm
from .model import Graph

MAX_CHANNELS = 32  #: Channels of a search at most; NCCL uses each of them twice.
_VISITS = 200  #: GPUs that a search for one ring may visit, per GPU.
_ROUNDING = 1e-6


@dataclass(frozen=True, eq=False)
class Channel:
    """A channel of a box.

    ``order`` has positions in the order in which a ring visits them; ``nic`` is its number in the box, -1 if there is
    one box alone.
    """

    order: tuple[int, ...]
    nic: int


@dataclass(frozen=True, eq=False)
class Rings:
    """Channels of all boxes.

    ``channels`` are those of each box, by channel first; ``intra`` and ``inter`` are GB/s of a channel within and
    between boxes.
    """

    channels: tuple[tuple[Channel, ...], ...]
    intra: float
    inter: float


def rings(boxes: Boxes, gpu: str, rates: Sequence[float]) -> Rings:
    """Search the channels of rings. Rates are GB/s of every link, as NCCL counts them."""
    alone = len(boxes.boxes) == 1
    best: list[list[Channel]] = []
    speed = 0.0
    for rate in _speeds(boxes, gpu, rates):
        if speed and rate / speed <= 0.49:
            break
        channels_of = [_channels_at(boxes, box, rate, list(rates), alone) for box in boxes.kinds]
        count = min(map(len, channels_of))
        if count * rate > (len(best[0]) * speed if best else 0.0) + _ROUNDING:
            best, speed = [channels[:count] for channels in channels_of], rate
        full = best and len(best[0]) * speed >= _largest_gpu_rate(boxes, rates) - _ROUNDING
        if full or (best and len(best[0]) == MAX_CHANNELS):
            break
    if not best:  # no search finds a way: NCCL takes the order as it is
        best, speed = [[Channel(box.ranks, -1 if alone or not box.nics else 0)] for box in boxes.kinds], 0.1
    of_kind = {box.kind: (box, channels) for box, channels in zip(boxes.kinds, best, strict=True)}
    by_channel = list(zip(*(_channels_of_alike(*of_kind[box.kind], box) for box in boxes.boxes), strict=True))
    if speed >= 25 and not (gpu not in ("volta", "ampere") and speed < 50 and len(by_channel) > 4):
        many = min(2 * len(by_channel), MAX_CHANNELS)
        speed /= -(-many // len(by_channel))
        by_channel += by_channel[: many - len(by_channel)]
    return Rings(tuple(by_channel), speed, speed)


def _channels_of_alike(kind: Box, channels: Sequence[Channel], box: Box) -> list[Channel]:
    """Return the channels of a box that is like one whose channels are known."""
    rank = dict(zip(kind.ranks, box.ranks, strict=True))
    return [Channel(tuple(rank[each] for each in channel.order), channel.nic) for channel in channels]


def graphs(boxes: Boxes, gpu: str, rates: Sequence[float], loops: Rings, *, switches: bool) -> dict[Algorithm, Graph]:
    """Derive the graphs of all algorithms from the rings: as many channels, at the highest speed that fits.

    ``switches`` says whether the GPUs of a box are on switches that add.
    """
    count = len(loops.channels)
    per_box = max(len(box.ranks) for box in boxes.boxes)
    ring = Graph(count, loops.intra, loops.inter, alike=_are_alike(loops, alone=len(boxes.boxes) == 1))
    tree = _tree_graph(boxes, gpu, rates, count)._replace(through_one_gpu=_is_through_one_gpu(boxes, gpu))
    table = {Algorithm.TREE: tree, Algorithm.RING: ring}
    table |= {Algorithm.COLLNET_DIRECT: ring, Algorithm.COLLNET_CHAIN: tree, Algorithm.PAT: tree}
    if switches and per_box > 1 and gpu in ("hopper", "blackwell"):
        table[Algorithm.NVLS] = table[Algorithm.NVLS_TREE] = _nvls_graph(boxes, gpu, rates, per_box)
    return table


def _are_alike(loops: Rings, *, alone: bool) -> bool:
    """Return whether all rings of a box visit its GPUs in one order, wherever they begin if it is alone."""

    def order(channel: Channel) -> tuple[int, ...]:
        first = channel.order.index(min(channel.order)) if alone else 0
        return channel.order[first:] + channel.order[:first]

    return all(len(set(map(order, channels))) == 1 for channels in zip(*loops.channels, strict=True))


def _speeds(boxes: Boxes, gpu: str, rates: Sequence[float]) -> list[float]:
    alone = len(boxes.boxes) == 1
    nics = [_nic_rate(boxes, nic, rates) for box in boxes.kinds for nic in box.nics]
    most = _largest_gpu_rate(boxes, rates) if alone else max(nics, default=0.0)
    return [speed for speed in SPEEDS[gpu][0 if alone else 1] if speed <= most + _ROUNDING]


def _nic_rate(boxes: Boxes, nic: Nic, rates: Sequence[float]) -> float:
    """Return GB/s between a NIC and its nearest rank: its port's, or those of PCIe."""
    return min(rates[i] for i in boxes.to_nic(nic.near[0], nic))


def _largest_gpu_rate(boxes: Boxes, rates: Sequence[float]) -> float:
    """Return the largest GB/s of all links of a GPU in its box, or of its NICs if alone."""
    nodes = (boxes.nodes[rank] for box in boxes.kinds for rank in box.ranks)
    return max(sum(rates[i] for i in boxes.own(node) or boxes.leaving[node]) for node in nodes)


def _channels_at(boxes: Boxes, box: Box, speed: float, room: list[float], alone: bool) -> list[Channel]:
    """Channels of a box at a speed, each of which takes it from what is left of its links."""
    check_time("channels are searched")
    channels: list[Channel] = []
    nics = [-1] if alone else list(range(len(box.nics)))
    while len(channels) < MAX_CHANNELS:
        turn = len(channels) % max(len(nics), 1)
        attempts = (_next_channel(boxes, box, nic, speed, room, len(channels)) for nic in nics[turn:] + nics[:turn])
        channel = next(filter(None, attempts), None)
        if channel is None:
            break
        channels.append(channel)
    return channels


def _next_channel(boxes: Boxes, box: Box, number: int, speed: float, room: list[float], count: int) -> Channel | None:
    """Return one more channel, on a NIC; None if there is not enough capacity."""
    ends: tuple[int, ...] = ()
    starts: Sequence[int] = box.ranks
    if number >= 0:
        nic = box.nics[number]
        starts = _nearest_ranks(boxes, nic.near, nic.out)
        ends = boxes.to_nic(starts[count % len(starts)], nic)
    if any(room[link] < speed - _ROUNDING for link in ends):
        return None
    order = _find_ring(boxes, box, starts[count % len(starts)], speed, room, count)
    if order is None:
        return None
    for link in ends:
        room[link] -= speed
    return Channel(order, number)


def _nearest_ranks(boxes: Boxes, near: Sequence[int], out: int) -> list[int]:
    node = boxes.topology.link_ends[out][0]
    hops = [len(boxes.ways(boxes.nodes[rank])[node][0]) for rank in near]
    return [rank for rank, far in zip(near, hops, strict=True) if far == hops[0]]


def _find_ring(
    boxes: Boxes, box: Box, first: int, speed: float, room: list[float], turn: int
) -> tuple[int, ...] | None:
    """Find by depth-first search a cycle through a box's ranks, and subtract the capacity from its links."""
    ranks = box.ranks
    if len(ranks) == 1:
        return (first,)
    path, on_path, choices = [first], {first}, [boxes.onward(box, first)]

    def reserve(a: int, b: int, part: float) -> bool:
        way = boxes.within(a, b, turn)
        if way is None or (part > 0 and any(room[link] < part - _ROUNDING for link in way)):
            return False
        for link in way:
            room[link] -= part
        return True

    for _ in range(_VISITS * len(ranks)):
        if len(path) == len(ranks) and reserve(path[-1], first, speed):
            return tuple(path)
        rest = choices[-1]
        while rest and (rest[-1] in on_path or not reserve(path[-1], rest[-1], speed)):
            rest.pop()
        if rest:
            path.append(rest.pop())
            on_path.add(path[-1])
            choices.append(boxes.onward(box, path[-1]))
            continue
        choices.pop()
        last = path.pop()
        on_path.remove(last)
        if not path:
            return None
        reserve(path[-1], last, -speed)
    for a, b in pairwise(path):
        reserve(a, b, -speed)
    return None


def _tree_graph(boxes: Boxes, gpu: str, rates: Sequence[float], count: int) -> Graph:
    """Return the graph of trees with as many channels as rings: chains within boxes, which need not close."""
    alone, speeds = len(boxes.boxes) == 1, _speeds(boxes, gpu, rates) or [0.1]
    nics = min(sum(_nic_rate(boxes, nic, rates) for nic in box.nics) for box in boxes.kinds)
    fitting = (s for s in speeds if (alone or s * count <= nics + _ROUNDING) and _fit_chains(boxes, rates, count, s))
    intra = inter = next(fitting, speeds[-1])
    for speed in reversed([s for s in SPEEDS[gpu][0 if alone else 1] if s > inter]):
        if intra >= 2 * inter or not _fit_chains(boxes, rates, count, speed):
            break
        intra = speed
    return Graph(count, intra, intra if alone else inter)


def _fit_chains(boxes: Boxes, rates: Sequence[float], count: int, speed: float) -> bool:
    """Return whether chains of a speed fit into the boxes.

    All GPUs but the last send in a chain. NCCL finds chains where rings fit, where something is left over, or of two.
    """
    if boxes.pcie:
        return all(len(_channels_at(boxes, box, speed, list(rates), alone=True)) >= count for box in boxes.kinds)
    at_once, ranks = floor(_largest_gpu_rate(boxes, rates) / speed + _ROUNDING), max(len(b.ranks) for b in boxes.boxes)
    return count <= at_once or count * (ranks - 1) < at_once * ranks + (ranks == 2)


def _is_through_one_gpu(boxes: Boxes, gpu: str) -> bool:
    """Return whether one GPU has a box's whole part of a tree.

    It is the only one, or on Hopper the only one nearest to the NIC.
    """
    if all(len(box.ranks) == 1 for box in boxes.boxes):
        return True
    if len(boxes.boxes) == 1 or gpu not in ("hopper", "blackwell"):
        return False
    return any(len(_nearest_ranks(boxes, nic.near, nic.out)) == 1 for box in boxes.kinds for nic in box.nics)


def _nvls_graph(boxes: Boxes, gpu: str, rates: Sequence[float], per_box: int) -> Graph:
    """Return the graph of NVLS: a channel for every GPU, between boxes only for those with a NIC.

    A link between a GPU and the NVSwitch carries the data of every channel once, and that of the GPU's own twice.
    """
    alone, total = len(boxes.boxes) == 1, _largest_gpu_rate(boxes, rates)
    count = min(MAX_CHANNELS, per_box if alone else min(_heads(boxes, box) for box in boxes.kinds))
    speeds = [s for s in _speeds(boxes, gpu, rates) if s * (count + 1) <= total + _ROUNDING]
    if not speeds:
        return Graph(0, 0.0, 0.0)
    intra = inter = speeds[0]
    most = max(SPEEDS[gpu][0]) if alone else max(_speeds(boxes, gpu, rates))
    for speed in reversed([s for s in SPEEDS[gpu][0 if alone else 1] if inter < s <= most]):
        if inter >= 2 * intra:
            break
        inter = speed
    return Graph(count, intra, inter)


def _heads(boxes: Boxes, box: Box) -> int:
    """Count the GPUs that can head a channel of NVLS between boxes: one for each NIC, and each GPU once."""
    near = {rank for nic in box.nics for rank in _nearest_ranks(boxes, nic.near, nic.out)}
    return min(len(box.nics), len(near))
