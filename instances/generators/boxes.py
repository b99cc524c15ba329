"""What the generators of machines share: boxes of GPUs, wired alike, joined by switches."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction

from ...core.topology import Link, Node
from .building import Wire, switch

#: Undirected pairs of GPUs, with the number of parallel links between them.
Wiring = Mapping[tuple[int, int], int]


def wiring(bundles: Mapping[int, Iterable[tuple[int, int]]]) -> Wiring:
    """Turn pairs listed by their number of parallel links into the number of links of every pair."""
    return {pair: count for count, pairs in bundles.items() for pair in pairs}


def gpu(box: int, index: int) -> str:
    """Name a GPU."""
    return f"box{box}.gpu{index}"


def gpus(boxes: int, per_box: int) -> tuple[str, ...]:
    """Name all GPUs, box by box."""
    return tuple(gpu(box, index) for box in range(boxes) for index in range(per_box))


def wired_box(box: int, pairs: Wiring, single: Wire) -> list[Link]:
    """Wire the GPUs of a box; parallel links are one link of their summed bandwidth."""
    return [link for (a, b), count in pairs.items() for link in (single * count).both(gpu(box, a), gpu(box, b))]


def bufferless(name: str) -> Node:
    """Make a switch as TE-CCL models it (section 3.1): it copies, and cannot store."""
    return switch(name, multicast=True, buffer_bytes=Fraction(0))
