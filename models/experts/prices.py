"""Lower bound for two slots on every GPU by a linear program, whose dual suggests numbers of replicas.

On a GPU with a load of less than T, for any v up to T / 2, let a replica of T - v or more count 1, of less than v
nothing, and of loads between 1/2. The two replicas on a GPU count at most 1, also by any average of such counts. So
all replicas together count at most the number of GPUs, whatever their numbers are.
"""

from __future__ import annotations

from fractions import Fraction
from math import lcm
from typing import Any, NamedTuple

import numpy as np

from ...core.bounds import PairPrices
from ...core.schedule import Floats, Ints
from .packing import replicate_experts

_LIGHT = 60  #: Loads v of which counts are averages.
_HALVINGS = 7  #: Times that the interval which has the largest bound is halved.
_ROUNDING = 1e-7  #: What the bound is made smaller by, in parts, so that it is proved by fractions too.
_HINTS = 2  #: Numbers of replicas that a search begins with.
_FINE = 10**6  #: Denominators of prices.
_MOST_ENTRIES = 2_000_000  #: Larger programs are not solved.


class _Counts(NamedTuple):
    """Linear program of one load T: a row per expert and number of replicas."""

    expert: Ints
    number: Ints
    light: Floats
    weight: Floats
    price: float
    excess: float
    share: Floats


def pair_bound(
    loads: tuple[Fraction, ...], gpus: int, low: Fraction, high: Fraction
) -> tuple[Fraction, PairPrices | None, list[Ints]]:
    """Return the best lower bound by prices on the largest load with two slots per GPU, and its proof.

    It is ``low``, a proved bound, where prices prove no more. Numbers of replicas that nearly attain the bound come
    with it, as starts of a search.
    """
    weights = np.array([float(load) for load in loads])
    hints: list[Ints] = []
    refuted: list[tuple[Fraction, PairPrices]] = []
    least, most = float(low), float(high)
    for _ in range(_HALVINGS):
        middle = (least + most) / 2
        if (found := _program(weights, gpus, middle)) is None:
            break
        if found.excess > 0:
            least = middle
            refuted.append((Fraction(middle * (1 - _ROUNDING)).limit_denominator(_FINE), _exact(found)))
        else:
            most = middle
            hints.append(_numbers(weights, found, 2 * gpus))
    for limit, prices in reversed(refuted):
        if limit > low and _too_much(loads, gpus, limit, prices):
            return limit, prices, hints[: -_HINTS - 1 : -1]
    return low, None, hints[: -_HINTS - 1 : -1]


def _too_much(loads: tuple[Fraction, ...], gpus: int, limit: Fraction, prices: PairPrices) -> bool:
    """Check exactly, in integers, whether replicas count for more than the number of GPUs."""
    unit = lcm(*(each.denominator for each in (limit, *loads, *(v for v, _ in prices.light))))
    one = lcm(prices.replica.denominator, *(weight.denominator for _, weight in prices.light))
    light = [(int(v * unit), int((limit - v) * unit), int(weight * one)) for v, weight in prices.light]
    price, total = int(2 * prices.replica * one), 0
    for load in (int(each * unit) for each in loads):
        k, values = load // int(limit * unit) + 1, list[int]()
        while not values or load >= k * light[0][0]:
            values.append(k * (price + sum(w * ((load >= k * v) + (load >= k * heavy)) for v, heavy, w in light)))
            k += 1
        total += min(*values, k * price)
    return total > 2 * gpus * (one + price)


def _program(loads: Floats, gpus: int, limit: float) -> _Counts | None:
    """Solve the linear program of a limit; None if it is too large or has no solution."""
    from scipy.optimize import linprog
    from scipy.sparse import csr_array, hstack

    low = np.floor(loads / limit) + 1
    light = np.unique(np.concatenate([loads / low, loads / (low + 1)]))
    few = max(1 / _FINE, float(loads.sum()) * _LIGHT / _MOST_ENTRIES)  # less would need too many rows
    light = light[(light >= few) & (light <= limit / 2)]
    if not len(light):
        return None
    light = light[np.unique(np.linspace(0, len(light) - 1, _LIGHT).astype(int))]
    last = np.maximum(np.floor(loads / light[0]) + 1, low)
    if (last - low + 1).sum() * len(light) > _MOST_ENTRIES:
        return None
    expert = np.repeat(np.arange(len(loads)), (last - low + 1).astype(int))
    begin = np.concatenate([[0], np.cumsum(last - low + 1)[:-1]])
    number = np.arange(len(expert)) - begin[expert] + low[expert]
    share = (loads[expert] / number)[:, None]
    count = np.where(share >= limit - light, 1.0, np.where(share < light, 0.0, 0.5))
    rows, ones = np.arange(len(expert)), np.ones(len(expert))
    whose = csr_array((ones, (rows, expert)), shape=(len(rows), len(loads)))
    matrix: Any = hstack([csr_array(-number[:, None] * count), csr_array(-number[:, None]), whose])
    cost: Any = np.concatenate([np.zeros(len(light)), [2.0 * gpus], -np.ones(len(loads))])
    averages = np.concatenate([np.ones(len(light)), np.zeros(1 + len(loads))])[None]
    bounds: Any = [(0, None)] * (len(light) + 1) + [(None, None)] * len(loads)
    none: Any = np.zeros(len(rows))
    found: Any = linprog(cost, A_ub=matrix, b_ub=none, A_eq=averages, b_eq=[1.0], bounds=bounds, method="highs")
    if found.x is None:
        return None
    weight, price, excess = found.x[: len(light)], float(found.x[len(light)]), float(-found.fun - gpus)
    return _Counts(expert, number.astype(np.int64), light, weight, price, excess, -found.ineqlin.marginals)


def _exact(found: _Counts) -> PairPrices:
    """Convert prices to fractions, with averages that sum to 1."""
    parts = np.rint(found.weight * _FINE).astype(int).tolist()
    light = [Fraction(v).limit_denominator(_FINE) for v in found.light.tolist()]
    price = Fraction(max(found.price, 0.0)).limit_denominator(_FINE)
    return PairPrices(price, tuple((v, Fraction(w, sum(parts))) for v, w in zip(light, parts, strict=True) if w > 0))


def _numbers(loads: Floats, found: _Counts, total: int) -> Ints:
    """Round the dual to numbers of replicas: each expert's largest share, adjusted to the total."""
    count = np.ones(len(loads), dtype=np.int64)
    order = np.argsort(found.share, kind="stable")
    count[found.expert[order]] = found.number[order]
    while count.sum() > total:
        spare = np.flatnonzero(count > 1)
        count[spare[np.argmin(loads[spare] / (count[spare] - 1))]] -= 1
    return replicate_experts(loads, total, count)
