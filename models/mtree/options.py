"""What can be chosen."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from ...core.errors import InputError, shown
from ...core.fields import Duration, Rate, Strict
from ...core.pipelining import MOST_CHUNKS, LatencyModel
from ...core.units import Kind, parse


def _height(value: object) -> object:
    """Read a number of hops, or a latency, which has a unit."""
    text = str(value).strip()
    if re.fullmatch("[0-9]{1,9}", text):
        if int(text) == 0:
            raise ValueError("0 is wrong; expected at least 1 hop")
        return int(text)
    try:
        return parse(value, Kind.TIME, allow_zero=False)
    except InputError:
        raise ValueError(
            f"{shown(value)} is wrong; expected a number of hops such as 4, or a latency such as 400 ms"
        ) from None


def _chunks(value: object) -> object:
    """Read a number of chunks; None stands for the best."""
    text = str(value).strip()
    if value is None or text == "auto":
        return None
    if re.fullmatch("[0-9]{1,9}", text) and 1 <= int(text) <= MOST_CHUNKS:
        return int(text)
    raise ValueError(f"{shown(value)} is wrong; expected auto, or a number of chunks from 1 to {MOST_CHUNKS:,}")


#: A number of hops, or seconds of latency.
Height = Annotated[int | Fraction, BeforeValidator(_height)]

#: As before, or the height at which the all-reduce is fastest.
AutoHeight = Annotated[
    int | Fraction | Literal["auto"], BeforeValidator(lambda value: "auto" if value == "auto" else _height(value))
]

#: A number of chunks of every tree, or None for the best of each.
ChunkCount = Annotated[int | None, BeforeValidator(_chunks)]


class ChunkOptions(Strict):
    """How the data of trees is split and cut, whatever the trees are."""

    latency_model: LatencyModel = Field(
        LatencyModel.OCCUPANCY,
        description="What latency does to the next chunk: occupancy, a link is busy for it (the text); propagation, the next one follows at once.",
    )
    chunks: ChunkCount = Field(None, description="Chunks of a tree: a number, or auto, the best for each tree.")
    chunk_overhead: Duration = Field(
        Fraction(0), description="What a chunk costs a link beside its bytes, such as '5 ms'."
    )
    split: Literal["rate", "equal-finish"] = Field(
        "rate",
        description="Data of a tree: rate, in proportion to its rate (the text); equal-finish, such that at these rates all trees end at once.",
    )


class MtreeOptions(ChunkOptions):
    """Options of ``mtree``."""

    trees: int | None = Field(None, ge=1, le=10_000, description="K, the most trees; by default as many as help.")
    height: AutoHeight | None = Field(
        None,
        description="H, the most links from a root to a leaf, or their latency if it has a unit; auto, the number of links with the least "
        "pipelined time; by default any.",
    )
    min_rate: Rate | None = Field(None, description="Smallest rate of a tree, such as '10 Mb/s'; by default any.")
    starts: int = Field(20, ge=1, le=10_000, description="Random starts of algorithm 1 for the pool of trees.")
    moves: int = Field(
        4000,
        ge=0,
        le=10**7,
        description="How often some of K trees are taken out and grown anew, on networks that are not solved exactly.",
    )
    nodes: int = Field(
        50,
        ge=1,
        le=10**7,
        description="Nodes of the search of MILP (1) for K trees in the pool, which need not end on large networks.",
    )
    exact: bool = Field(
        True, description="Whether the exact models may be solved: patterns of K trees, and the cheapest low tree."
    )


def restricted_to(trees: int | None, height: int | Fraction | str | None, min_rate: Fraction | None) -> str:
    """Say which forests the best one is sought among; empty where among all (``Method.restricted_to``)."""
    parts: list[str] = []
    if trees is not None:
        parts.append(f"at most {trees} {'tree' if trees == 1 else 'trees'}")
    if height == "auto":
        parts.append("the height with the least pipelined time")
    elif height is not None:
        # Exact, so that no two heights are the same in words.
        most = f"{height} {'link' if height == 1 else 'links'}" if isinstance(height, int) else f"{height} s"
        parts.append(f"height at most {most}")
    if min_rate:
        parts.append(f"rate of a tree at least {min_rate} B/s")
    return ", ".join(parts)


class GostOptions(ChunkOptions):
    """Options of ``gost``; the defaults are the text as it is written."""

    trees: int = Field(10, ge=1, le=10_000, description="K, the most trees of MILP (1).")
    height: Height = Field(8, description="H of ITH, in hops, or a latency if it has a unit.")
    min_rate: Rate = Field(
        Fraction(10**7, 8), description="rbar, the smallest rate of a tree; the text has no value; 10 Mb/s is its grid."
    )
    rate: Literal["global_min", "bottleneck", "usable_min"] = Field(
        "global_min",
        description="r* of a new tree (algorithm 1, line 22): global_min, the smallest capacity left anywhere; bottleneck, that of the tree; "
        "usable_min, the smallest one left that is at least rbar.",
    )
    height_test: Literal["diameter", "radius"] = Field(
        "diameter",
        description="Line 12: diameter, the largest height over all roots is at most 2 H, which with latencies does not keep the height below H; "
        "radius, the least one is at most H.",
    )
    grth: Literal["as_written", "corrected"] = Field(
        "as_written", description="Algorithm 2: as_written forgets the height from the site that a link is added at."
    )
    ties: Literal["last", "shuffle"] = Field(
        "last",
        description="Links of equal capacity and height: last, the later one in the network; shuffle, in random order.",
    )
    retries: int = Field(
        0, ge=0, le=1000, description="Further random starts of a tree that fails; the text gives up at the first."
    )
    improve: bool = Field(True, description="Whether ITH (algorithm 3) lowers H by bisection; else one GBST.")
    rho: float = Field(
        0.95, gt=0, le=1, description="Share of the rate at H that ITH must keep; the text has no value."
    )
    ith_seed: Literal["fresh", "same"] = Field(
        "fresh", description="Random starts of the GBSTs of ITH: fresh, going on; same, each from the same seed."
    )
    nodes: int = Field(
        10_000, ge=1, le=10**7, description="Nodes of the search of MILP (1), which need not end on dense networks."
    )
    select: bool = Field(
        True, description="Whether MILP (1) chooses trees and rates; else those of GBST are taken as they are."
    )
