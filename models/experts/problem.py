"""Loads of experts, slots of GPUs, and a placement to begin with."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from ...core.effort import require_buildable
from ...core.errors import InputError
from ...core.instance import Instance

#: Experts of the slots of every GPU.
Placement = list[list[int]]


@dataclass(frozen=True)
class Slots:
    """What is to be placed where.

    Parameters
    ----------
    loads : tuple of Fraction
        Of every expert.
    gpus, each : int
        GPUs, and slots of each.
    groups, nodes : int
        Groups of as many experts in order, each on one node, and nodes of as many GPUs in order; one node binds nothing.
    """

    loads: tuple[Fraction, ...]
    gpus: int
    each: int
    groups: int
    nodes: int

    def group(self, expert: int) -> int:
        """Group of an expert."""
        return expert * self.groups // len(self.loads)

    def node(self, gpu: int) -> int:
        """Node of a GPU."""
        return gpu * self.nodes // self.gpus

    @property
    def most(self) -> int:
        """The most replicas that an expert can have when all others on its node have one."""
        return (self.gpus * self.each - len(self.loads)) // self.nodes + 1

    def largest(self, placement: Placement) -> Fraction:
        """The largest load of a GPU."""
        count = [sum(slots.count(e) for slots in placement) for e in range(len(self.loads))]
        return max(sum((self.loads[e] / count[e] for e in slots), Fraction(0)) for slots in placement)


def index(instance: Instance, options: Any) -> Slots:
    """Loads and slots (``Formulation.index``).

    Raises
    ------
    InputError
        If experts, replicas, GPUs, groups and nodes do not divide one another as they have to.
    OutOfTime
        If the model has too many columns.
    """
    loads = tuple(Fraction(str(load)) for load in options.loads)
    slots = options.replicas or len(loads) + -len(loads) % instance.npus
    if not loads:
        raise InputError("missing; expected the load of every expert, such as [90, 132, 40]", place="loads")
    for place, number, of, what in (
        ("replicas", slots, instance.npus, "GPUs"),
        ("groups", len(loads), options.groups, "groups, of the experts"),
        ("nodes", options.groups if options.nodes > 1 else options.nodes, options.nodes, "nodes, of the groups"),
        ("nodes", instance.npus, options.nodes, "nodes, of the GPUs"),
    ):
        if number % of:
            raise InputError(f"{number} is no multiple of {of} {what}", place=place)
    if slots < len(loads):
        raise InputError(f"{slots} replicas; expected at least one for each of {len(loads)} experts", place="replicas")
    problem = Slots(loads, instance.npus, slots // instance.npus, options.groups, options.nodes)
    require_buildable(len(loads) * problem.most * problem.gpus, f"{len(loads)} experts")
    return problem


def greedy(problem: Slots) -> Placement:
    """The usual placement: groups to nodes, replicas to the busiest experts, both the heaviest first to the least loaded."""
    per_group = [
        sum((w for e, w in enumerate(problem.loads) if problem.group(e) == p), Fraction(0))
        for p in range(problem.groups)
    ]
    home = _packed(per_group, problem.nodes, problem.groups // problem.nodes) if problem.nodes > 1 else []
    placement: Placement = []
    for node in range(problem.nodes):
        experts = [e for e in range(len(problem.loads)) if problem.nodes == 1 or home[problem.group(e)] == node]
        count = dict.fromkeys(experts, 1)
        for _ in range(problem.gpus * problem.each // problem.nodes - len(experts)):
            count[max(experts, key=lambda e: problem.loads[e] / count[e])] += 1
        replicas = [e for e in experts for _ in range(count[e])]
        where = _packed([problem.loads[e] / count[e] for e in replicas], problem.gpus // problem.nodes, problem.each)
        placement += [
            [e for e, gpu in zip(replicas, where, strict=True) if gpu == g]
            for g in range(problem.gpus // problem.nodes)
        ]
    return placement


def _packed(loads: list[Fraction], bins: int, room: int) -> list[int]:
    """The bin of every load: the heaviest first, each to the least loaded bin with room."""
    weight, held, where = [Fraction(0)] * bins, [0] * bins, [0] * len(loads)
    for item in sorted(range(len(loads)), key=lambda item: -loads[item]):
        where[item] = min((b for b in range(bins) if held[b] < room), key=lambda b: weight[b])
        weight[where[item]] += loads[item]
        held[where[item]] += 1
    return where


def placed(model: Any, problem: Slots) -> Placement:
    """The placement of a solved model."""
    return [
        [e for e in model.E for k in model.K for _ in range(round(model.y[e, k, g].value))] for g in range(problem.gpus)
    ]
