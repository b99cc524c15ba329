"""Numbers of replicas and their GPUs: the published rule and local improvements, in floats."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from heapq import heapify, heappop, heappush, heapreplace
from itertools import product

import numpy as np

from ...core.schedule import Floats, Ints

#: Experts that may give up a replica, the cheapest, of which each is tried.
_DONORS = 4

#: A swap that gains less than this part of the largest load is rounding.
_GAIN = 1e-12

#: Swaps of the fullest GPU that are compared at once; where there are more, none is.
_MOST_SWAPS = 10**7

#: Pairs of a large load count this much more than small ones in what an annealing makes less.
_POWER = 8

#: Changes of an annealing after which it is looked whether to stop.
_LOOK = 256

#: What an annealing may make worse at first, in parts of that.
_HEAT = 0.006


@dataclass(frozen=True)
class ReplicaPacking:
    """Replicas on GPUs."""

    slots: Ints  #: Experts of the slots, a row for each GPU.
    loads: Floats

    @property
    def worth(self) -> tuple[float, float]:
        """Largest load, then unevenness of all; smaller is better."""
        return float(self.loads.max()), float((self.loads**2).sum())


def replicate_experts(loads: Floats, total: int, count: Ints | None = None) -> Ints:
    """Add replicas to the expert with the largest replica load, which minimizes that load; return numbers."""
    count = np.ones(len(loads), dtype=np.int64) if count is None else count.copy()
    heap = [(-load, e) for e, load in enumerate((loads / count).tolist())]
    heapify(heap)
    for _ in range(total - int(count.sum())):
        _, e = heap[0]
        count[e] += 1
        heapreplace(heap, (-loads[e] / count[e], e))
    return count


def even_out_counts(loads: Floats, count: Ints, gpus: int) -> Ints:
    """Round numbers above the number of GPUs down to multiples of it; other experts get the rest.

    The rest of such an expert burdens only some GPUs, and the fullest is worse until all GPUs have one more.
    """
    above = count > gpus
    return replicate_experts(
        np.where(above, 0.0, loads), int(count.sum()), np.where(above, count // gpus * gpus, count)
    )


def greedy(weights: Floats, bins: int, room: int) -> list[list[int]]:
    """Return the items of every bin: the heaviest first, each to the least loaded bin with room."""
    heap = [(0.0, b) for b in range(bins)]
    held: list[list[int]] = [[] for _ in range(bins)]
    for item in np.argsort(-weights, kind="stable").tolist():
        weight, b = heappop(heap)
        held[b].append(item)
        if len(held[b]) < room:
            heappush(heap, (weight + float(weights[item]), b))
    return held


def swap_items(weights: Floats, held: Ints) -> Ints:
    """Apply the best swaps of the fullest bin with others until none lowers it; return the items."""
    bins, room = held.shape
    if bins == 1 or bins * room * room > _MOST_SWAPS:
        return held
    held = held.copy()
    inside = weights[held]
    loads = inside.sum(axis=1)
    while True:
        g = int(loads.argmax())
        less = inside[g][:, None, None] - inside[None]  # what the fullest bin loses by each swap
        after = np.maximum(loads[g] - less, loads[None, :, None] + less)
        after[:, g] = np.inf
        i, h, j = np.unravel_index(int(after.argmin()), after.shape)
        if after[i, h, j] >= loads[g] * (1 - _GAIN):
            return held
        held[g, i], held[h, j] = held[h, j], held[g, i]
        for b in (g, h):
            inside[b] = weights[held[b]]
            loads[b] = inside[b].sum()


def pack_replicas(loads: Floats, count: Ints, gpus: int, *, swaps: bool = True) -> ReplicaPacking:
    """Place replicas on GPUs with equal slots; in two slots, the heaviest beside the lightest."""
    replicas = np.repeat(np.arange(len(loads)), count)
    weights = loads[replicas] / count[replicas]
    if swaps and len(replicas) == 2 * gpus:
        order = np.argsort(weights, kind="stable")
        held = np.stack([order[:gpus], order[: -gpus - 1 : -1]], axis=1)
    else:
        held = np.array(greedy(weights, gpus, len(replicas) // gpus))
        held = swap_items(weights, held) if swaps else held
    return ReplicaPacking(replicas[held], weights[held].sum(axis=1))


def improve_counts(loads: Floats, count: Ints, gpus: int, enough: float, stopped: Callable[[], bool]) -> ReplicaPacking:
    """Place replicas, with numbers improved by steepest descent until the largest load is ``enough``."""
    best = pack_replicas(loads, count, gpus)
    while best.loads.max() > enough and not stopped():
        tried = [(pack_replicas(loads, changed, gpus), changed) for changed in _changes(loads, count, best)]
        found, changed = min(tried, key=lambda one: one[0].worth, default=(best, count))
        if found.worth >= best.worth:
            break
        best, count = found, changed
    return best


def _changes(loads: Floats, count: Ints, best: ReplicaPacking) -> list[Ints]:
    """List changes by one replica more and one less, of an expert of the fullest GPU and another."""
    full = np.unique(best.slots[best.loads.argmax()])
    spare = np.flatnonzero(count > 1)
    cheap = spare[np.argsort(loads[spare] / (count[spare] - 1), kind="stable")[:_DONORS]]
    dear = np.argsort(-loads / count, kind="stable")[:_DONORS]
    pairs = [*product(full.tolist(), cheap.tolist()), *product(dear.tolist(), full[count[full] > 1].tolist())]
    return [_move_replica(count, more, less) for more, less in dict.fromkeys(pairs) if more != less]


def _move_replica(count: Ints, more: int, less: int) -> Ints:
    changed = count.copy()
    changed[more] += 1
    changed[less] -= 1
    return changed


def anneal_counts(
    loads: Floats, count: Ints, moves: int, random: np.random.Generator, stopped: Callable[[], bool]
) -> Ints:
    """Anneal the numbers of replicas for two slots on every GPU."""
    scale = 2 * loads.sum() / count.sum() or 1.0
    now, best = count.copy(), count.copy()
    worth, least = _pairs(loads, now, scale)
    for move in range(moves if (count > 1).any() else 0):
        if move % _LOOK == 0 and stopped():
            break
        a, b = random.choice(np.flatnonzero(now > 1)), random.integers(len(loads))
        now[a] -= 1
        now[b] += 1
        found, largest = _pairs(loads, now, scale)
        if found <= worth * (1 + _HEAT * (1 - move / moves) * random.exponential()):
            worth = found
            if largest < least:
                least, best = largest, now.copy()
        else:
            now[a] += 1
            now[b] -= 1
    return best


def _pairs(loads: Floats, count: Ints, scale: float) -> tuple[float, float]:
    """Return a power sum and the maximum of loads, the heaviest paired with the lightest replica."""
    weights = np.sort(np.repeat(loads / (count * scale), count))
    pairs = weights[: len(weights) // 2] + weights[: -len(weights) // 2 - 1 : -1]
    return float((pairs**_POWER).sum()), float(pairs.max())
