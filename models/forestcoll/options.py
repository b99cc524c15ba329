"""What can be chosen."""

from __future__ import annotations

import re
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from ...core.errors import shown
from ...core.fields import Strict


def _trees(value: object) -> object:
    """Refuse what is no number of trees, saying all that may stand here."""
    if value not in ("optimal", "smallest") and not re.fullmatch("0*[1-9][0-9]{0,99}", str(value)):
        raise ValueError(f"{shown(value)} is wrong; expected optimal, smallest, or a number of at least 1")
    return value


class ForestOptions(Strict):
    """Options of ``forestcoll``."""

    k: Annotated[Literal["optimal", "smallest"] | int, BeforeValidator(_trees)] = Field(
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
        description="Rounds in which pairs of trees exchange edges, to bring the tallest down; for networks of up to 512 ranks.",
    )
    patterns: bool = Field(
        default=True,
        description="Whether switches may be removed whole, by a pattern of their ports; else pair by pair.",
    )

    @model_validator(mode="after")
    def _one_says_k(self) -> Self:
        if self.prefer == "latency" and "k" in self.model_fields_set:
            raise ValueError("k and prefer = latency contradict: latency chooses k itself, up to scan")
        return self


class AllReduceOptions(Strict):
    """Options of ``forestcoll-allreduce``."""

    k: int | None = Field(
        default=None,
        ge=1,
        description="Capacities become multiples of one k-th of the network's unit of bandwidth; by default the k of the solution is sought.",
    )
    always_solve: bool = Field(
        default=False, description="Solve the linear program also where the two halves in turn are proved to be best."
    )


class BlinkOptions(Strict):
    """Options of ``blink`` and ``blink-switch``."""

    root: Literal["best", "fastest"] | Annotated[int, Field(ge=0)] = Field(
        default="best",
        description="Rank that an all-reduce adds up at and broadcasts from: best, the first with the highest rate; fastest, of all "
        "with the highest rate the one whose trees take the least time both ways together; or a number.",
    )
    k: Literal["optimal", "smallest"] | Annotated[int, Field(ge=1, le=10**6)] = Field(
        default="optimal",
        description="Trees: optimal, as many as make every link's share whole (proposition 3); "
        "smallest, as few as are still optimal; or a number.",
    )
    repack: int = Field(
        default=100,
        ge=0,
        le=100_000,
        description="Rounds in which pairs of trees exchange edges, to bring the tallest down; for networks of up to 512 ranks.",
    )
