"""Exhaustive search for a placement of a few replicas below a given load, or a proof that there is none."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import combinations_with_replacement
from math import ceil, comb, lcm

from .problem import Slots

#: Ways to number the replicas, and steps of a search through the slots, beyond which nothing is tried.
MOST_NUMBERS, MOST_STEPS = 20_000, 20_000

#: More replicas of an expert, or of all where GPUs have more than two slots, are not tried.
_MOST_REPLICAS, _MOST_DEEP = 64, 300


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
        if (found := _fill_gpus(replicas, gpus, slots, ceil(limit * unit), steps)) is not None:
            return found
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
    held: list[list[int]] = [[] for _ in range(gpus)]
    loads = [0] * gpus
    lightest = replicas[-1][0]

    def fill(index: int) -> bool:
        if index == len(replicas):
            return True
        if next(steps, None) is None:
            raise TooManyError
        load, expert = replicas[index]
        tried = set()
        for g in range(gpus):
            state = loads[g], len(held[g])
            room = slots - len(held[g])
            if room == 0 or state in tried or loads[g] + load + (room - 1) * lightest >= limit:
                continue
            tried.add(state)
            held[g].append(expert)
            loads[g] += load
            if fill(index + 1):
                return True
            held[g].pop()
            loads[g] -= load
        return False

    return held if fill(0) else None
