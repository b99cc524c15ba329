"""Answers of algorithms for the groups of a level."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property

import numpy as np

from ...core.budget import Budget, ignore
from ...core.collective import Collective, Demand
from ...core.errors import InputError, Unsupported
from ...core.instance import Instance
from ...core.method import Method
from ...core.schedule import Ints, StepSchedule
from ...core.solver import Solver
from ...core.topology import Topology
from ...core.trees import TreePacking
from ...models.bfb.method import BFB
from ...models.forestcoll.method import FORESTCOLL
from ..textbook.bine import BINE
from ..textbook.exchanges import BRUCK, DIRECT, RHD
from ..textbook.rings import RING, SHIFTED_RING
from ..textbook.trees import DBT, KNOMIAL
from .group_answers import Shares, Site, shares_of, site
from .levels import Hierarchy, Networks
from .phase_composition import PhaseAnswers
from .phases import Phase

#: Methods that may run on a level, with the options that they are asked with.
ALGORITHMS: Mapping[str, tuple[Method, Mapping[str, object]]] = {
    "direct": (DIRECT, {}),
    "ring": (RING, {}),
    "rhd": (RHD, {}),
    "bruck": (BRUCK, {}),
    "bine": (BINE, {}),
    "dbt": (DBT, {}),
    "knomial": (KNOMIAL, {}),
    "shifted-ring": (SHIFTED_RING, {}),
    "bfb": (BFB, {}),
    "forestcoll": (FORESTCOLL, {"k": "smallest", "symmetry": "written"}),
}

#: In larger groups only what needs no search of its own is tried; a part may be cut into so many slices.
_LARGE, _MOST_SLICES = 64, 64


@dataclass
class AnswerCache:
    """Cache of answers for networks of groups, by algorithm and digest.

    Parameters
    ----------
    solver : Solver
        Passed to methods, none of which uses it.
    """

    solver: Solver
    budget: Budget
    known: dict[tuple[str, str], Shares | None] = field(default_factory=dict)

    def shares(self, name: str, instance: Instance) -> Shares | None:
        """Return the answer of an algorithm; None if it does not fit."""
        key = name, instance.sha256
        if key not in self.known:
            self.known[key] = self._ask(name, instance)
        return self.known[key]

    def _ask(self, name: str, instance: Instance) -> Shares | None:
        method, told = ALGORITHMS[name]
        if (instance.npus > _LARGE and name in ("bfb", "forestcoll")) or method.supports(instance) is not None:
            return None
        options = method.options(**told)
        try:
            quiet = replace(self.budget, tell=ignore)
            answer = method.run(method.pose(instance, options), self.solver, quiet, options).answer
        except (InputError, Unsupported):
            return None
        if not isinstance(answer, StepSchedule | TreePacking):
            return None
        shares = shares_of(instance, answer)
        few = int(np.bincount(shares.part).max()) <= max(_MOST_SLICES, instance.npus)
        return shares if few and not _needs_storing_switch(instance, shares) else None


def _needs_storing_switch(instance: Instance, shares: Shares) -> bool:
    """Return whether a switch would have to hold data that it copies or adds, without a buffer.

    Schedules in steps require this.
    """
    assert isinstance(instance.network, Topology)  # noqa: S101 (a group's network is explicit)
    nodes = instance.network.nodes
    return any(nodes[node].buffer_bytes is not None for node in np.unique(shares.sends.source).tolist())


@dataclass(eq=False)
class Levels:
    """Groups of the levels of a hierarchy, with answers of algorithms.

    Parameters
    ----------
    asked : Asked
        Cache of answers for networks of groups.
    names : sequence of str or None
        The algorithm of every level, if they are given.
    """

    topology: Topology
    hierarchy: Hierarchy
    asked: AnswerCache
    names: Sequence[str] | None = None
    _sites: dict[tuple[Collective, int, int], tuple[Ints, list[Site]]] = field(default_factory=dict)

    @cached_property
    def networks(self) -> Networks:
        """Links that groups may use."""
        return Networks(self.topology, self.hierarchy)

    def fillings(self, phase: Phase) -> list[tuple[str, PhaseAnswers]]:
        """Return the algorithms for a phase, with their answers.

        Raises
        ------
        Unsupported
            If no algorithm implements the phase.
        """
        names = list(ALGORITHMS) if self.names is None else [self.names[phase.level]]
        bases, sites = self._groups(phase)
        found: list[tuple[str, PhaseAnswers]] = []
        for name in names:
            if found and self.asked.budget.is_exhausted:
                break
            answers = [self.asked.shares(name, each.instance) for each in sites]
            shares = [answer for answer in answers if answer is not None]
            if len(shares) == len(sites):
                found.append((name, PhaseAnswers(phase, bases, sites, shares)))
        if not found:
            size = self.hierarchy.sizes[phase.level]
            text = f"{', '.join(names)} has no {phase.kind.name} for groups of {size} ranks here"
            raise Unsupported(text)
        return found

    def _groups(self, phase: Phase) -> tuple[Ints, list[Site]]:
        """First positions of a phase's groups, and their networks."""
        bases = np.unique(phase.base)
        key = phase.kind, phase.level, len(bases)
        if key not in self._sites:
            size = self.hierarchy.sizes[phase.level]
            demand = Demand(phase.kind, Fraction(size), ranks=tuple(range(size)))
            self._sites[key] = bases, [self._site(int(base), phase.level, demand) for base in bases]
        return self._sites[key]

    def _site(self, base: int, level: int, demand: Demand) -> Site:
        nodes = [self.topology.rank_nodes[rank] for rank in self.hierarchy.group(base, level)]
        return site(self.topology, nodes, self.networks.links(nodes, level), demand)
