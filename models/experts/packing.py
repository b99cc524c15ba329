"""Replicas on GPUs: the published rule and local improvements in floats, and an exhaustive search for a few."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from heapq import heapify, heappop, heappush, heapreplace
from itertools import combinations_with_replacement, product
from math import ceil, comb, lcm

import numpy as np

from ...core.answers import Placement
from ...core.schedule import Floats, Ints

Slots = list[list[int]]  #: Experts of the slots of every GPU of a layer.

_DONORS = 4  #: Experts that may give up a replica, the cheapest, of which each is tried.
_GAIN = 1e-12  #: A swap that gains less than this part of the largest load is rounding.
_MOST_SWAPS = 10**7  #: Swaps of the fullest GPU that are compared at once; where there are more, none is.
_POWER = 8  #: Pairs of a large load count this much more than small ones in what an annealing makes less.
_LOOK = 256  #: Changes of an annealing after which it is looked whether to stop.
_HEAT = 0.006  #: What an annealing may make worse at first, in parts of that.

#: Ways to number the replicas, and steps of a search through the slots, beyond which nothing is tried.
MOST_NUMBERS, MOST_STEPS = 20_000, 20_000

#: More replicas of an expert, or of all where GPUs have more than two slots, are not tried.
_MOST_REPLICAS, _MOST_DEEP = 64, 300


@dataclass(frozen=True)
class ReplicaPacking:
    """Replicas on GPUs."""

    slots: Ints  #: Experts of the slots, a row for each GPU.
    loads: Floats

    @property
    def worth(self) -> tuple[float, float]:
        """Largest load, then unevenness of all; smaller is better."""
        return float(self.loads.max()), float((self.loads**2).sum())


def largest(loads: tuple[Fraction, ...], slots: Iterable[Iterable[int]]) -> Fraction:
    """Return the largest load of a layer's GPU."""
    where = [list(gpu) for gpu in slots]
    count = Counter(e for gpu in where for e in gpu)
    return max(sum((loads[e] / count[e] for e in gpu), Fraction(0)) for gpu in where)


def placement_of(layers: Iterable[Slots]) -> Placement:
    """Return the slots of all layers as an answer."""
    return Placement(tuple(tuple(tuple(sorted(gpu)) for gpu in slots) for slots in layers))


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
    low = np.where(above, count // gpus * gpus, count)
    return replicate_experts(np.where(above, 0.0, loads), int(count.sum()), low)


def greedy(weights: Floats, bins: int, room: int) -> list[list[int]]:
    """Return the items of every bin: the heaviest first, each to the least loaded bin with room."""
    heap = [(0.0, b) for b in range(bins)]
    items: list[list[int]] = [[] for _ in range(bins)]
    for item in np.argsort(-weights, kind="stable").tolist():
        weight, b = heappop(heap)
        items[b].append(item)
        if len(items[b]) < room:
            heappush(heap, (weight + float(weights[item]), b))
    return items


def swap_items(weights: Floats, items: Ints) -> Ints:
    """Apply the best swaps of the fullest bin with others until none lowers it; return the items."""
    bins, room = items.shape
    if bins == 1 or bins * room * room > _MOST_SWAPS:
        return items
    items = items.copy()
    inside = weights[items]
    loads = inside.sum(axis=1)
    while True:
        g = int(loads.argmax())
        less = inside[g][:, None, None] - inside[None]  # what the fullest bin loses by each swap
        after = np.maximum(loads[g] - less, loads[None, :, None] + less)
        after[:, g] = np.inf
        i, h, j = np.unravel_index(int(after.argmin()), after.shape)
        if after[i, h, j] >= loads[g] * (1 - _GAIN):
            return items
        items[g, i], items[h, j] = items[h, j], items[g, i]
        for b in (g, h):
            inside[b] = weights[items[b]]
            loads[b] = inside[b].sum()


def pack_replicas(loads: Floats, count: Ints, gpus: int, *, swaps: bool = True) -> ReplicaPacking:
    """Place replicas on GPUs with equal slots; in two slots, the heaviest beside the lightest."""
    replicas = np.repeat(np.arange(len(loads)), count)
    weights = loads[replicas] / count[replicas]
    if swaps and len(replicas) == 2 * gpus:
        order = np.argsort(weights, kind="stable")
        items = np.stack([order[:gpus], order[: -gpus - 1 : -1]], axis=1)
    else:
        items = np.array(greedy(weights, gpus, len(replicas) // gpus))
        items = swap_items(weights, items) if swaps else items
    return ReplicaPacking(replicas[items], weights[items].sum(axis=1))


def improve_counts(loads: Floats, count: Ints, gpus: int, enough: float, stopped: Callable[[], bool]) -> ReplicaPacking:
    """Place replicas, with numbers improved by steepest descent until the largest load is ``enough``."""
    best = pack_replicas(loads, count, gpus)
    while best.loads.max() > enough and not stopped():
        candidates = [(pack_replicas(loads, changed, gpus), changed) for changed in _changes(loads, count, best)]
        candidate, changed = min(candidates, key=lambda one: one[0].worth, default=(best, count))
        if candidate.worth >= best.worth:
            break
        best, count = candidate, changed
    return best


def _changes(loads: Floats, count: Ints, best: ReplicaPacking) -> list[Ints]:
    """List changes by one replica more and one less, of an expert of the fullest GPU and another."""
    full = np.unique(best.slots[best.loads.argmax()])
    spare = np.flatnonzero(count > 1)
    cheap = spare[np.argsort(loads[spare] / (count[spare] - 1), kind="stable")[:_DONORS]]
    dear = np.argsort(-loads / count, kind="stable")[:_DONORS]
    pairs = [*product(full.tolist(), cheap.tolist()), *product(dear.tolist(), full[count[full] > 1].tolist())]
    expert = np.arange(len(count))
    return [count + (expert == more) - (expert == less) for more, less in dict.fromkeys(pairs) if more != less]


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
        trial, largest = _pairs(loads, now, scale)
        if trial <= worth * (1 + _HEAT * (1 - move / moves) * random.exponential()):
            worth = trial
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


class TooManyError(Exception):
    """Error of an exhaustive search with too many placements."""


def few_placements(experts: int, slots: int) -> bool:
    """Check whether all numbers of replicas for these experts and slots can be enumerated."""
    further = slots - experts
    return further < _MOST_REPLICAS and comb(further + experts - 1, further) <= MOST_NUMBERS


def find_placement_below(loads: Sequence[Fraction], gpus: int, slots: int, limit: Fraction) -> Slots | None:
    """Return a placement in which every GPU has less than ``limit``; None if there is none."""
    least = [1 if load == 0 else load // limit + 1 for load in loads] if limit > 0 else []
    further = gpus * slots - sum(least)
    if limit <= 0 or further < 0 or sum(loads, Fraction(0)) >= limit * gpus:
        return None
    deep = slots > 2 and gpus * slots > _MOST_DEEP
    if deep or max(least) + further > _MOST_REPLICAS or comb(further + len(loads) - 1, further) > MOST_NUMBERS:
        raise TooManyError
    unit = lcm(*(load.denominator for load in loads)) * lcm(*range(1, max(least) + further + 1))
    whole = [int(load * unit) for load in loads]
    steps = iter(range(MOST_STEPS))
    for more in combinations_with_replacement(range(len(loads)), further):
        count = list(least)
        for e in more:
            count[e] += 1
        replicas = sorted(((whole[e] // k, e) for e, k in enumerate(count) for _ in range(k)), reverse=True)
        if (placement := _fill_gpus(replicas, gpus, slots, ceil(limit * unit), steps)) is not None:
            return placement
    return None


def _fill_gpus(
    replicas: list[tuple[int, int]], gpus: int, slots: int, limit: int, steps: Iterator[int]
) -> Slots | None:
    """Place replicas, the heaviest first, with all GPUs below ``limit``; up to two slots in closed form."""
    if slots == 1:
        return [[e] for _, e in replicas] if replicas[0][0] < limit else None
    if slots == 2:
        pairs = list(zip(replicas[:gpus], reversed(replicas), strict=False))
        return [[a, b] for (_, a), (_, b) in pairs] if all(x + y < limit for (x, _), (y, _) in pairs) else None
    placement: list[list[int]] = [[] for _ in range(gpus)]
    loads = [0] * gpus
    lightest = replicas[-1][0]

    def fill(index: int) -> bool:
        if index == len(replicas):
            return True
        if next(steps, None) is None:
            raise TooManyError
        load, expert = replicas[index]
        states = set()
        for g in range(gpus):
            state = loads[g], len(placement[g])
            room = slots - len(placement[g])
            if room == 0 or state in states or loads[g] + load + (room - 1) * lightest >= limit:
                continue
            states.add(state)
            placement[g].append(expert)
            loads[g] += load
            if fill(index + 1):
                return True
            placement[g].pop()
            loads[g] -= load
        return False

    return placement if fill(0) else None
