"""Placement of one layer: groups of experts divided among nodes, and experts placed on each node's GPUs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from itertools import combinations
from math import factorial

import numpy as np

from ...core.bounds import PairPrices
from ...core.budget import Budget
from ...core.experts import Experts
from ...core.schedule import Floats, Ints
from .packing import (
    ReplicaPacking,
    Slots,
    TooManyError,
    anneal_counts,
    even_out_counts,
    few_placements,
    find_placement_below,
    greedy,
    improve_counts,
    largest,
    pack_replicas,
    replicate_experts,
)
from .prices import pair_bound

MOST_DIVISIONS = 5_000  #: Ways to divide groups among nodes beyond which only the published one is taken.
_ENOUGH = 1e-3  #: Parts of the bound that a placement may be above it for a search to end.
Groups = tuple[int, ...]  #: Groups of experts that are on a node together.


@dataclass(frozen=True)
class LayerPlacement:
    """Placement of a layer with its bound."""

    slots: Slots  #: Experts of the slots of every GPU.
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
        self._best: dict[Groups, tuple[Fraction, Slots]] = {}
        self._done: set[Groups] = set()
        self._proved = False
        self._floor = cache(self._average_or_replica)

    def published_placement(self) -> LayerPlacement:
        """Apply the published rule: groups to nodes, replicas to GPUs, the heaviest to the least loaded."""
        slots: Slots = []
        for groups in self._division_by_rule():
            loads = self._floats(groups)
            slots += self._to_expert_numbers(pack_replicas(loads, self._count(loads), self._gpus, swaps=False), groups)
        return LayerPlacement(slots, largest(self._loads, slots), self._floor(self._every))

    def search(self, first: LayerPlacement) -> LayerPlacement:
        """Search for a better placement and a better bound than a first one's."""
        best = replace(first, bound=min(first.load, max(first.bound, self._division_bound())))
        self._proved = few_placements(self._experts.count // self._experts.nodes, self._gpus * self._experts.slots)
        less = 1 if self._proved else 1 - Fraction(self._enough) / 10  # no search for what hardly gains
        while (division := self._division(less * best.load)) is not None:
            slots = [gpu for groups in division for gpu in self._best[groups][1]]
            best = replace(best, slots=slots, load=largest(self._loads, slots))
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
        return replicate_experts(loads, self._gpus * self._experts.slots)

    def _to_expert_numbers(self, found: ReplicaPacking, groups: Groups) -> Slots:
        members = self._members(groups)
        return [[members[place] for place in gpu] for gpu in found.slots.tolist()]

    def _average_or_replica(self, groups: Groups) -> Fraction:
        """Return a lower bound for groups on all GPUs: the average load, or the largest replica."""
        members = self._members(groups)
        gpus = self._gpus * len(groups) // self._each
        slots = gpus * self._experts.slots
        average = sum((self._loads[e] for e in members), Fraction(0)) / gpus
        count = replicate_experts(self._floats(groups), slots).tolist()
        replica = max(self._loads[e] / k for e, k in zip(members, count, strict=True))
        needed = sum(self._loads[e] // replica + 1 for e in members) if replica else 0
        return max(average, replica) if needed > slots else average

    def _division_by_rule(self) -> list[Groups]:
        if self._experts.nodes == 1:
            return [self._every]
        weights = np.array([self._floats((p,)).sum() for p in self._every])
        return [tuple(sorted(groups)) for groups in greedy(weights, self._experts.nodes, self._each)]

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

    def _divide_groups(self, left: Groups, limit: Fraction) -> list[Groups] | None:
        if not left:
            return []
        for groups, rest in self._choices(left):
            if self._has_placement_below(groups, limit) and (others := self._divide_groups(rest, limit)) is not None:
                return [groups, *others]
        return None

    def _choices(self, left: Groups) -> list[tuple[Groups, Groups]]:
        """List a node's groups, with the first that is left, and the rest; the most even first."""
        choices = ((left[0], *others) for others in combinations(left[1:], self._each - 1))
        return [(g, tuple(p for p in left if p not in g)) for g in sorted(choices, key=self._floor)]

    def _division_bound(self) -> Fraction:
        """Return a lower bound on the largest load of a node over all divisions of the groups."""
        if not self._few_divisions():
            return Fraction(0)

        @cache
        def least(left: Groups) -> Fraction:
            if not left:
                return Fraction(0)
            return min(max(self._floor(groups), least(rest)) for groups, rest in self._choices(left))

        return least(self._every)

    def _has_placement_below(self, groups: Groups, limit: Fraction) -> bool:
        """Check whether a node's placement of groups below ``limit`` is known or found."""
        if self._is_stopped():
            self._proved = False
        elif groups not in self._best and self._floor(groups) < limit:
            self._keep(groups, self._improve_replicas(groups, []))
        if groups in self._best and self._best[groups][0] < limit:
            return True
        if self._floor(groups) >= limit or groups in self._done or self._is_stopped():
            return False
        members = self._members(groups)
        try:
            found = find_placement_below([self._loads[e] for e in members], self._gpus, self._experts.slots, limit)
        except TooManyError:
            found, self._proved = None, False
        if found is None:
            self._done.add(groups)  # limits become less and less
        else:
            self._keep(groups, [[members[place] for place in gpu] for gpu in found])
        return found is not None

    def _keep(self, groups: Groups, slots: Slots) -> None:
        load = largest(self._loads, slots)
        if groups not in self._best or load < self._best[groups][0]:
            self._best[groups] = load, slots

    def _improve_replicas(self, groups: Groups, hints: list[Ints]) -> Slots:
        """Improve the published or other numbers of replicas, by random changes for two slots on a GPU."""
        loads = self._floats(groups)
        enough = float(self._floor(groups)) * (1 + self._enough)
        counts = [self._count(loads), *hints]
        counts += [even_out_counts(loads, count, self._gpus) for count in counts if count.max() > self._gpus]
        packings = [improve_counts(loads, count, self._gpus, enough, self._is_stopped) for count in counts]
        best = min(packings, key=lambda found: found.worth)
        random = self._experts.slots == 2 and (self._experts.nodes > 1 or hints)
        if random and best.loads.max() > enough and not self._is_stopped():
            count = anneal_counts(loads, np.bincount(best.slots.ravel()), self._moves, self._random, self._is_stopped)
            annealed = improve_counts(loads, count, self._gpus, enough, self._is_stopped)
            best = min(best, annealed, key=lambda found: found.worth)
        return self._to_expert_numbers(best, groups)
