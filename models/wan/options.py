"""What can be chosen."""

from __future__ import annotations

from fractions import Fraction
from typing import Literal

from pydantic import Field

from ...core.fields import Rate, Strict


class TopoAdoptOptions(Strict):
    """Options of ``topoadopt``."""

    trees: int = Field(10, ge=1, le=1000, description="K, the number of trees.")
    moves: int = Field(400, ge=0, le=10**6, description="Moves of the annealing, each with a linear program.")
    temperature: Rate = Field(
        Fraction(50 * 10**6, 8), description="Loss of rate that is taken with probability 1/e at the first move."
    )
    cooling: float = Field(0.985, gt=0, le=1, description="Temperature of a move over that of the move before.")


class BlinkWanOptions(Strict):
    """Options of ``blink-wan``."""

    cut: Literal["unit", "trees", "none"] = Field(
        "trees",
        description="Trees of the packing that are kept: unit, as many as carry one smallest capacity each; trees, at most K; none, all.",
    )
    trees: int = Field(10, ge=1, le=1000, description="K of cut=trees.")
    accuracy: float = Field(0.1, ge=0.01, le=0.5, description="epsilon of the multiplicative weights.")
    steps: int = Field(2000, ge=1, le=10**6, description="Most trees that the multiplicative weights look at.")
    nodes: int = Field(
        200, ge=1, le=10**7, description="Nodes of the search of the integer program, which need not end."
    )
    root: Literal["centre", "common"] = Field(
        "common", description="common, one root for all trees, as Blink has; centre, each tree its own."
    )


class SingleTreeOptions(Strict):
    """Options of ``single-tree``."""

    height: int | None = Field(None, ge=1, description="Most links from the root to a leaf; by default any.")


class WanRingOptions(Strict):
    """Options of ``wan-ring``."""

    tries: int = Field(
        200, ge=1, le=10**6, description="Random starts of the search for each capacity, on more than 20 sites."
    )


class PlinkOptions(Strict):
    """Options of ``plink``."""

    groups: int | None = Field(None, ge=1, description="Number of clusters; by default the rounded root of the sites'.")


class PsldOptions(Strict):
    """Options of ``psld``."""

    share: Literal["slowest", "mean", "equal"] = Field(
        "slowest",
        description="A site's share of the data is as the bandwidth that it measures: to its slowest peer, on average, or the same for all.",
    )
