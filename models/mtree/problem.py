"""Problem of MTree: a network, limits on its trees, and bounds on any trees and any schedule."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from fractions import Fraction
from math import ceil

from ...algorithms.trees.bounds import Ceiling, Strength, ceiling, strength
from ...algorithms.trees.network import HeightLimit, Wan, pose
from ...algorithms.trees.one_tree import lowest_tree
from ...core.budget import Budget
from ...core.instance import Instance
from ...core.outcome import Outcome, Status


@dataclass(frozen=True, eq=False)
class WanProblem:
    """All-reduce over a wide-area network."""

    instance: Instance
    wan: Wan
    highest: Ceiling  #: The bound for any schedule.

    @property
    def size_bytes(self) -> Fraction:
        """Size of the all-reduce in bytes."""
        return self.instance.demand.size_bytes if self.instance.demand is not None else Fraction(0)

    def seconds(self, rate: Fraction) -> Fraction:
        """Return the time of the all-reduce at a rate in units."""
        return self.size_bytes / (rate * self.wan.unit_Bps)


@dataclass(frozen=True, eq=False)
class TreeProblem(WanProblem):
    """All-reduce over a wide-area network along trees of limited height and rate."""

    limit: HeightLimit  #: Largest height of a tree; without a limit every tree of fewest hops has it.
    floor: Fraction  #: Smallest rate of a tree, in units; 0 is any.
    strongest: Strength  #: The bound for any trees that use both directions of their links alike.

    @property
    def any_height(self) -> bool:
        """True if every spanning tree is low enough."""
        return self.limit.most >= self.limit.length.sum() or (
            self.limit.unit == "hops" and self.limit.most >= self.wan.nodes - 1
        )

    @property
    def least(self) -> int:
        """Smallest capacity of a tree's link in units, rounded up since capacities are integers."""
        return ceil(self.floor)


def wan_problem(instance: Instance, budget: Budget) -> WanProblem:
    """Read an instance, and compute the bound for any schedule on its network."""
    wan = pose(instance)
    with budget.clock.phase("strength"):
        return WanProblem(instance, wan, ceiling(instance.topology, wan))


def tree_problem(
    instance: Instance,
    height: int | Fraction | None,
    min_rate: Fraction | None,
    budget: Budget,
    *,
    any_radius: bool = False,
    kept: Collection[tuple[int, int]] = (),
) -> TreeProblem | Outcome:
    """Read an instance and limits; the outcome says why no tree respects them.

    With ``any_radius`` the height may be one at which there is no tree; ``kept`` is that of
    :func:`~cwb.algorithms.trees.network.pose`.
    """
    wan = pose(instance, kept)
    limit = wan.latencies(height) if isinstance(height, Fraction) else wan.hops(height)
    floor = Fraction(min_rate or 0) / wan.unit_Bps
    usable = wan.capacity >= ceil(floor)
    shown = "" if min_rate is None else f" of at least min_rate {float(min_rate) * 8e-6:.6g} Mb/s"
    if not usable.any():
        fastest = float(wan.capacity.max() * wan.unit_Bps) * 8e-6
        return Outcome(Status.INFEASIBLE, message=f"there is no link{shown}; the fastest has {fastest:.6g} Mb/s")
    radius, tree = lowest_tree(wan, limit, usable)
    if tree is None:
        return Outcome(Status.INFEASIBLE, message=f"the links{shown} do not join all sites")
    if radius > limit.most and not any_radius:
        asked = limit.format_height(limit.most)
        text = f"no spanning tree has a height of at most {asked}{' over links' + shown if shown else ''}"
        return Outcome(
            Status.INFEASIBLE, message=f"{text}; the smallest feasible height is {limit.format_height(radius)}"
        )
    with budget.clock.phase("strength"):
        strongest = strength(wan)
        highest = ceiling(instance.topology, wan, strongest)
    problem = TreeProblem(instance, wan, highest, limit, floor, strongest)
    budget.tell_bound(problem.seconds(highest.rate), highest.certificate)
    return problem
