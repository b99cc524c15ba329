"""What can be chosen."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from ...core.fields import Strict


class ForestOptions(Strict):
    """Options of ``forestcoll``."""

    k: Literal["optimal", "smallest"] | int = Field(
        default="optimal",
        description="Trees from every root: optimal, as many as make every link's share whole (proposition 3); "
        "smallest, as few as are still optimal; or a number.",
    )
    prefer: Literal["throughput", "latency"] = Field(
        default="throughput",
        description="throughput: the fastest forest for large data; latency: of several numbers of trees the one whose pieces "
        "arrive first, for the collective's size.",
    )
    scan: int = Field(
        default=8, ge=1, le=64, description="Numbers of trees up to this one are tried for prefer=latency."
    )
    repack: int = Field(
        default=100,
        ge=0,
        le=100_000,
        description="Rounds in which some trees of a small network are packed anew, to bring the tallest down.",
    )
    patterns: bool = Field(
        default=True,
        description="Whether switches may be removed whole, by a pattern of their ports; else pair by pair.",
    )
