"""How many replicas, and which GPU each goes to: the published rule, and changes that make it better. In floats."""

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
class Packed:
    """Replicas on GPUs.

    Parameters
    ----------
    slots : numpy.ndarray
        Experts of the slots, a row for each GPU.
    loads : numpy.ndarray
        Loads of the GPUs.
    """

    slots: Ints
    loads: Floats

    @property
    def worth(self) -> tuple[float, float]:
        """The largest load, and then how uneven all are: the smaller, the better."""
        return float(self.loads.max()), float((self.loads**2).sum())


def replicated(loads: Floats, total: int, count: Ints | None = None) -> Ints:
    """Numbers of replicas: each further one is of the expert with the largest load of a replica.

    From one replica of each on, no other numbers have a smaller largest load of a replica.
    """
    count = np.ones(len(loads), dtype=np.int64) if count is None else count.copy()
    heap = [(-load, e) for e, load in enumerate((loads / count).tolist())]
    heapify(heap)
    for _ in range(total - int(count.sum())):
        _, e = heap[0]
        count[e] += 1
        heapreplace(heap, (-loads[e] / count[e], e))
    return count


def evened(loads: Floats, count: Ints, gpus: int) -> Ints:
    """Numbers of which those above one on every GPU are as many on all; what that leaves is of other experts.

    A few replicas more put one on some GPUs alone, which makes the fullest worse until all have one more.
    """
    above = count > gpus
    return replicated(np.where(above, 0.0, loads), int(count.sum()), np.where(above, count // gpus * gpus, count))


def greedy(weights: Floats, bins: int, room: int) -> list[list[int]]:
    """Items of every bin: the heaviest first, each to the least loaded bin with room."""
    heap = [(0.0, b) for b in range(bins)]
    held: list[list[int]] = [[] for _ in range(bins)]
    for item in np.argsort(-weights, kind="stable").tolist():
        weight, b = heappop(heap)
        held[b].append(item)
        if len(held[b]) < room:
            heappush(heap, (weight + float(weights[item]), b))
    return held


def swapped(weights: Floats, held: Ints) -> Ints:
    """Items of every bin after the best swaps of the fullest bin with others, until none makes it less."""
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


def packed(loads: Floats, count: Ints, gpus: int, *, swaps: bool = True) -> Packed:
    """Replicas of these numbers on GPUs with as many slots each; in two slots, the heaviest beside the lightest."""
    replicas = np.repeat(np.arange(len(loads)), count)
    weights = loads[replicas] / count[replicas]
    if swaps and len(replicas) == 2 * gpus:
        order = np.argsort(weights, kind="stable")
        held = np.stack([order[:gpus], order[: -gpus - 1 : -1]], axis=1)
    else:
        held = np.array(greedy(weights, gpus, len(replicas) // gpus))
        held = swapped(weights, held) if swaps else held
    return Packed(replicas[held], weights[held].sum(axis=1))


def improved(loads: Floats, count: Ints, gpus: int, enough: float, stopped: Callable[[], bool]) -> Packed:
    """Replicas on GPUs, with numbers of which the best change is made, one replica more here and one less there.

    Parameters
    ----------
    loads, count : numpy.ndarray
        Of the experts, and the numbers of replicas to begin with.
    gpus : int
        With as many slots each.
    enough : float
        A largest load at which to stop.
    stopped : callable
        Whether there is no time for another change.
    """
    best = packed(loads, count, gpus)
    while best.loads.max() > enough and not stopped():
        tried = [(packed(loads, changed, gpus), changed) for changed in _changes(loads, count, best)]
        found, changed = min(tried, key=lambda one: one[0].worth, default=(best, count))
        if found.worth >= best.worth:
            break
        best, count = found, changed
    return best


def _changes(loads: Floats, count: Ints, best: Packed) -> list[Ints]:
    """One replica more of an expert of the fullest GPU and one less of a cheap one, or the other way round."""
    full = np.unique(best.slots[best.loads.argmax()])
    spare = np.flatnonzero(count > 1)
    cheap = spare[np.argsort(loads[spare] / (count[spare] - 1), kind="stable")[:_DONORS]]
    dear = np.argsort(-loads / count, kind="stable")[:_DONORS]
    pairs = [*product(full.tolist(), cheap.tolist()), *product(dear.tolist(), full[count[full] > 1].tolist())]
    return [_moved(count, more, less) for more, less in dict.fromkeys(pairs) if more != less]


def _moved(count: Ints, more: int, less: int) -> Ints:
    changed = count.copy()
    changed[more] += 1
    changed[less] -= 1
    return changed


def annealed(loads: Floats, count: Ints, moves: int, random: np.random.Generator, stopped: Callable[[], bool]) -> Ints:
    """Numbers of replicas for two slots on every GPU, after random changes of which bad ones are made less and less.

    Parameters
    ----------
    loads, count : numpy.ndarray
        Of the experts, and the numbers to begin with.
    moves : int
        Changes that are tried.
    random : numpy.random.Generator
        Chooses them.
    stopped : callable
        Whether there is no time for more.
    """
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
    """A sum of powers of the loads of GPUs, each the heaviest replica beside the lightest, and the largest of them."""
    weights = np.sort(np.repeat(loads / (count * scale), count))
    pairs = weights[: len(weights) // 2] + weights[: -len(weights) // 2 - 1 : -1]
    return float((pairs**_POWER).sum()), float(pairs.max())
