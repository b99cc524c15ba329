"""From rates and bounds in units to the outcome of a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Any

import numpy as np

from ...core.budget import Budget
from ...core.instance import Instance
from ...core.method import Outcome, Status
from ...core.solver import SolverResult
from ...core.trees import TreePacking
from ..common.schedule_bounds import network_of
from ..common.wan.bottleneck import lowest_tree
from ..common.wan.ceiling import Ceiling, ceiling
from ..common.wan.measures import measures_of_rate, measures_of_trees
from ..common.wan.network import Limit, Wan, pose
from ..common.wan.strength import Strength, strength
from ..common.wan.trees import Rated, filled, heights_of, in_order, packing
from .chunking import measures_of_chunks, split
from .options import ChunkOptions
from .pricing import Prices
from .proof import GAP, proof_of


@dataclass(frozen=True, eq=False)
class Asked:
    """A network and the limits on its trees.

    Parameters
    ----------
    instance : Instance
        The problem.
    wan : Wan
        Its network.
    limit : Limit
        The height; every tree of shortest hops has it where none is asked.
    floor : Fraction
        Smallest rate of a tree, in units; 0 is any.
    strongest : Strength
        The bound for any trees that use both directions of their links alike.
    highest : Ceiling
        The bound for any schedule.
    """

    instance: Instance
    wan: Wan
    limit: Limit
    floor: Fraction
    strongest: Strength
    highest: Ceiling

    @property
    def any_height(self) -> bool:
        """Whether every spanning tree is low enough."""
        return self.limit.most >= self.limit.length.sum() or (
            self.limit.unit == "hops" and self.limit.most >= self.wan.nodes - 1
        )

    @property
    def least(self) -> int:
        """Smallest capacity of a link that a tree may have, in units: capacities are whole, so that nothing is lost by rounding up."""
        return ceil(self.floor)

    @property
    def size_bytes(self) -> Fraction:
        """Size of the all-reduce."""
        return self.instance.demand.size_bytes if self.instance.demand is not None else Fraction(0)

    def seconds(self, rate: Fraction) -> Fraction:
        """Time of the all-reduce at a rate in units."""
        return self.size_bytes / (rate * self.wan.unit_Bps)


def ask(
    instance: Instance, height: int | Fraction | None, min_rate: Fraction | None, budget: Budget
) -> Asked | Outcome:
    """Read an instance and the limits; an outcome says why no tree respects them.

    Raises
    ------
    InputError
        If the network is not connected.
    Unsupported
        If the instance does not fit.
    """
    wan = pose(instance)
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
    if radius > limit.most:
        asked = limit.shown(limit.most)
        text = f"no spanning tree has a height of at most {asked}{' over links' + shown if shown else ''}"
        return Outcome(Status.INFEASIBLE, message=f"{text}; the smallest feasible height is {limit.shown(radius)}")
    with budget.clock.phase("strength"):
        strongest = strength(wan)
        highest = ceiling(network_of(instance), wan, strongest)
    return Asked(instance, wan, limit, floor, strongest, highest)


@dataclass(frozen=True, eq=False)
class Found:
    """Trees and what is proved.

    Parameters
    ----------
    rated : Rated or None
        The best trees.
    bound : Fraction
        Units that no allowed trees carry together, if they use both directions of their links alike; at most the strength.
    prover : tuple of str
        Who proves a bound below the strength: a name and a version.
    reports : tuple of SolverResult
        Every solve.
    rounds : int
        Steps of the method.
    metrics : dict
        Further numbers.
    trees : int or None
        K.
    prices : tuple of Prices
        What may prove the bound.
    among : str
        Which trees the bound is one for, if not at most K of the height and rate that were asked.
    """

    rated: Rated | None
    bound: Fraction
    prover: tuple[str, str]
    reports: tuple[SolverResult, ...] = ()
    rounds: int = 0
    metrics: dict[str, Any] | None = None
    trees: int | None = None
    prices: tuple[Prices, ...] = ()
    among: str = ""


#: Who proves what is computed here exactly, and not recomputed by the judge.
OURSELVES = ("mtree", "exact arithmetic")


def outcome(
    asked: Asked,
    found: Found,
    budget: Budget,
    options: ChunkOptions | None = None,
    *,
    roots: Sequence[int] | None = None,
    message: str = "",
) -> Outcome:
    """Give the outcome of a run.

    Parameters
    ----------
    asked : Asked
        The problem.
    found : Found
        What was found.
    budget : Budget
        Its gap says what is optimal.
    options : ChunkOptions, optional
        How data is split and cut.
    roots : sequence of int, optional
        Roots of the trees; by default those that make them lowest.
    message : str
        What the user should know.
    """
    options = options or ChunkOptions.model_validate({})
    # Data that is not in proportion to the rates leaves trees with less than the smallest rate.
    proof = proof_of(asked, found, trees_only=options.split == "rate" or not asked.floor)
    bound_s = asked.seconds(proof.rate)
    size = max((r.size for r in found.reports), key=lambda size: size.nonzeros, default=Outcome(Status.LIMIT).size)
    common: dict[str, Any] = {
        "bound": float(bound_s), "certificate": proof.certificate, "reports": found.reports, "size": size, "iterations": found.rounds,
    }  # fmt: skip
    metrics = {
        "exact_bound_Bps": float(found.bound * asked.wan.unit_Bps),
        "strength_Bps": float(asked.highest.rate * asked.wan.unit_Bps),
        "bound_holds_for": proof.holds_for,
        **(found.metrics or {}),
    }
    if found.rated is None or not found.rated.rates:
        return Outcome(Status.LIMIT, message=message or "no trees were found in time", metrics=metrics, **common)
    rated = filled(asked.wan, found.rated)
    if roots is None:
        rated = in_order(rated)
    chosen = heights_of(asked.wan, asked.limit, rated.trees)[0] if roots is None else np.array(roots, dtype=np.int64)
    parted = split(asked.instance, asked.wan, rated, chosen, options)
    gap = GAP if budget.gap is None else budget.gap
    optimal = bound_s >= parted.flow_s * (1 - Fraction(gap))
    with budget.clock.phase("chunks"):
        chunks = measures_of_chunks(network_of(asked.instance), parted.packing, options)
    return Outcome(
        Status.OPTIMAL if optimal else Status.FEASIBLE,
        parted.packing,
        objective=float(parted.flow_s),
        message=message,
        metrics={
            **measures_of_rate(asked.wan, parted.rated.total, asked.highest),
            **measures_of_trees(asked.wan, parted.rated, parted.roots.tolist()),
            **chunks,
            **metrics,
        },
        **{**common, "bound": min(float(bound_s), float(parted.flow_s))},
    )


def trees_of(asked: Asked, rated: Rated) -> TreePacking:
    """Give trees as an answer, each with the root that makes it lowest."""
    whole = in_order(filled(asked.wan, rated))
    return packing(asked.instance, asked.wan, whole, heights_of(asked.wan, asked.limit, whole.trees)[0])
