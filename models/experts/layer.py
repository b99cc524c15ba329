"""Placement of one layer: groups of experts divided among nodes, and experts placed on each node's GPUs.

A linear program bounds two slots on every GPU, and its dual suggests numbers of replicas (docs/methods/experts.md).
"""

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from itertools import combinations
from math import factorial, lcm
from typing import Any, NamedTuple

import numpy as np

from ...core.bounds import PairPrices
from ...core.budget import Budget
from ...core.experts import Experts
from ...core.schedule import Floats, Ints
from . import packing

MOST_DIVISIONS = 5_000  #: Ways to divide groups among nodes beyond which only the published one is taken.
_ENOUGH = 1e-3  #: Parts of the bound that a placement may be above it for a search to end.
Groups = tuple[int, ...]  #: Groups of experts that are on a node together.


@dataclass(frozen=True)
class LayerPlacement:
    """Placement of a layer with its bound."""

    slots: packing.Slots  #: Experts of the slots of every GPU.
    load: Fraction  #: Largest load of a GPU.
    bound: Fraction  #: Lower bound on the largest load.
    prices: PairPrices | None = None  #: Prices that prove the bound, if it is proved by prices.


class Layer:
    """Search for a placement of one layer, with random moves if GPUs have two slots; nodes' results are cached."""

    def __init__(self, experts: Experts, moves: int, random: np.random.Generator, budget: Budget) -> None:
        self._experts, self._loads = experts, experts.loads[0]
        self._moves, self._random, self._budget = moves, random, budget
        self._enough = _ENOUGH if budget.gap is None else budget.gap
        self._gpus, self._each = experts.gpus // experts.nodes, experts.groups // experts.nodes
        self._every = tuple(range(experts.groups))
        self._best: dict[Groups, tuple[Fraction, packing.Slots]] = {}
        self._no_placement: set[Groups] = set()
        self._proved = False
        self._floor = cache(self._average_or_replica)

    def published_placement(self) -> LayerPlacement:
        """Apply the published rule: groups to nodes, replicas to GPUs, the heaviest to the least loaded."""
        slots: packing.Slots = []
        for groups in self._division_by_rule():
            loads = self._floats(groups)
            slots += self._to_expert_numbers(
                packing.pack_replicas(loads, self._count(loads), self._gpus, swaps=False), groups
            )
        return LayerPlacement(slots, packing.largest(self._loads, slots), self._floor(self._every))

    def search(self, first: LayerPlacement) -> LayerPlacement:
        """Search for a better placement and a better bound than a first one's."""
        best = replace(first, bound=min(first.load, max(first.bound, self._division_bound())))
        self._proved = packing.few_placements(
            self._experts.count // self._experts.nodes, self._gpus * self._experts.slots
        )
        less = 1 if self._proved else 1 - Fraction(self._enough) / 10  # no search for what hardly gains
        while (division := self._division(less * best.load)) is not None:
            slots = [gpu for groups in division for gpu in self._best[groups][1]]
            best = replace(best, slots=slots, load=packing.largest(self._loads, slots))
        if self._proved:
            return replace(best, bound=best.load)
        if self._experts.slots != 2 or best.bound >= best.load or self._is_stopped():
            return best
        bound, prices, hints = pair_bound(self._loads, self._experts.gpus, best.bound, best.load)
        best = replace(best, bound=bound, prices=prices)
        if self._experts.nodes == 1 and hints:
            self._keep(self._every, self._improve_replicas(self._every, hints))
            load, slots = self._best[self._every]
            best = replace(best, slots=slots, load=load) if load < best.load else best
        return best

    def _is_stopped(self) -> bool:
        return self._budget.is_exhausted

    def _members(self, groups: Groups) -> list[int]:
        size = self._experts.count // self._experts.groups
        return [group * size + place for group in groups for place in range(size)]

    def _floats(self, groups: Groups) -> Floats:
        return np.array([float(self._loads[e]) for e in self._members(groups)])

    def _count(self, loads: Floats) -> Ints:
        return packing.replicate_experts(loads, self._gpus * self._experts.slots)

    def _to_expert_numbers(self, placement: packing.ReplicaPacking, groups: Groups) -> packing.Slots:
        members = self._members(groups)
        return [[members[place] for place in gpu] for gpu in placement.slots.tolist()]

    def _average_or_replica(self, groups: Groups) -> Fraction:
        """Return a lower bound for groups on all GPUs: the average load, or the largest replica."""
        members = self._members(groups)
        gpus = self._gpus * len(groups) // self._each
        slots = gpus * self._experts.slots
        average = sum((self._loads[e] for e in members), Fraction(0)) / gpus
        count = packing.replicate_experts(self._floats(groups), slots).tolist()
        replica = max(self._loads[e] / k for e, k in zip(members, count, strict=True))
        demand = sum(self._loads[e] // replica + 1 for e in members) if replica else 0
        return max(average, replica) if demand > slots else average

    def _division_by_rule(self) -> list[Groups]:
        if self._experts.nodes == 1:
            return [self._every]
        weights = np.array([self._floats((p,)).sum() for p in self._every])
        return [tuple(sorted(groups)) for groups in packing.greedy(weights, self._experts.nodes, self._each)]

    def _few_divisions(self) -> bool:
        nodes, each, count = self._experts.nodes, self._each, len(self._every)
        if count > 20:
            return nodes == 1 or each == count
        return bool(factorial(count) <= MOST_DIVISIONS * factorial(each) ** nodes * factorial(nodes))

    def _division(self, limit: Fraction) -> list[Groups] | None:
        """Divide groups among nodes with placements below ``limit``; None if none is found."""
        if not self._few_divisions():
            self._proved = False
            division = self._division_by_rule()
            return division if all(self._has_placement_below(groups, limit) for groups in division) else None
        return self._divide_groups(self._every, limit)

    def _divide_groups(self, pool: Groups, limit: Fraction) -> list[Groups] | None:
        if not pool:
            return []
        for groups, rest in self._choices(pool):
            if self._has_placement_below(groups, limit) and (others := self._divide_groups(rest, limit)) is not None:
                return [groups, *others]
        return None

    def _choices(self, pool: Groups) -> list[tuple[Groups, Groups]]:
        """List a node's groups, with the first that is left, and the rest; the most even first."""
        choices = ((pool[0], *others) for others in combinations(pool[1:], self._each - 1))
        return [(g, tuple(p for p in pool if p not in g)) for g in sorted(choices, key=self._floor)]

    def _division_bound(self) -> Fraction:
        """Return a lower bound on the largest load of a node over all divisions of the groups."""
        if not self._few_divisions():
            return Fraction(0)

        @cache
        def least(pool: Groups) -> Fraction:
            if not pool:
                return Fraction(0)
            return min(max(self._floor(groups), least(rest)) for groups, rest in self._choices(pool))

        return least(self._every)

    def _has_placement_below(self, groups: Groups, limit: Fraction) -> bool:
        """Check whether a node's placement of groups below ``limit`` is known or found."""
        if self._is_stopped():
            self._proved = False
        elif groups not in self._best and self._floor(groups) < limit:
            self._keep(groups, self._improve_replicas(groups, []))
        if groups in self._best and self._best[groups][0] < limit:
            return True
        if self._floor(groups) >= limit or groups in self._no_placement or self._is_stopped():
            return False
        members = self._members(groups)
        try:
            slots = packing.find_placement_below(
                [self._loads[e] for e in members], self._gpus, self._experts.slots, limit
            )
        except packing.TooManyError:
            slots, self._proved = None, False
        if slots is None:
            self._no_placement.add(groups)  # limits become less and less
        else:
            self._keep(groups, [[members[place] for place in gpu] for gpu in slots])
        return slots is not None

    def _keep(self, groups: Groups, slots: packing.Slots) -> None:
        load = packing.largest(self._loads, slots)
        if groups not in self._best or load < self._best[groups][0]:
            self._best[groups] = load, slots

    def _improve_replicas(self, groups: Groups, hints: list[Ints]) -> packing.Slots:
        """Improve the published or other numbers of replicas, by random changes for two slots on a GPU."""
        loads = self._floats(groups)
        enough = float(self._floor(groups)) * (1 + self._enough)
        counts = [self._count(loads), *hints]
        counts += [packing.even_out_counts(loads, count, self._gpus) for count in counts if count.max() > self._gpus]
        packings = [packing.improve_counts(loads, count, self._gpus, enough, self._is_stopped) for count in counts]
        best = min(packings, key=lambda one: one.worth)
        random = self._experts.slots == 2 and (self._experts.nodes > 1 or hints)
        if random and best.loads.max() > enough and not self._is_stopped():
            count = packing.anneal_counts(
                loads, np.bincount(best.slots.ravel()), self._moves, self._random, self._is_stopped
            )
            annealed = packing.improve_counts(loads, count, self._gpus, enough, self._is_stopped)
            best = min(best, annealed, key=lambda one: one.worth)
        return self._to_expert_numbers(best, groups)


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
        if (solution := _program(weights, gpus, middle)) is None:
            break
        if solution.excess > 0:
            least = middle
            refuted.append((Fraction(middle * (1 - _ROUNDING)).limit_denominator(_FINE), _exact(solution)))
        else:
            most = middle
            hints.append(_numbers(weights, solution, 2 * gpus))
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
    solution: Any = linprog(cost, A_ub=matrix, b_ub=none, A_eq=averages, b_eq=[1.0], bounds=bounds, method="highs")
    if solution.x is None:
        return None
    weight, price, excess = solution.x[: len(light)], float(solution.x[len(light)]), float(-solution.fun - gpus)
    return _Counts(expert, number.astype(np.int64), light, weight, price, excess, -solution.ineqlin.marginals)


def _exact(solution: _Counts) -> PairPrices:
    """Convert prices to fractions, with averages that sum to 1."""
    parts = np.rint(solution.weight * _FINE).astype(int).tolist()
    light = [Fraction(v).limit_denominator(_FINE) for v in solution.light.tolist()]
    price = Fraction(max(solution.price, 0.0)).limit_denominator(_FINE)
    return PairPrices(price, tuple((v, Fraction(w, sum(parts))) for v, w in zip(light, parts, strict=True) if w > 0))


def _numbers(loads: Floats, solution: _Counts, total: int) -> Ints:
    """Round the dual to numbers of replicas: each expert's largest share, adjusted to the total."""
    count = np.ones(len(loads), dtype=np.int64)
    order = np.argsort(solution.share, kind="stable")
    count[solution.expert[order]] = solution.number[order]
    while count.sum() > total:
        spare = np.flatnonzero(count > 1)
        count[spare[np.argmin(loads[spare] / (count[spare] - 1))]] -= 1
    return packing.replicate_experts(loads, total, count)
