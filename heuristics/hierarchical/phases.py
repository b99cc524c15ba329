"""Decomposition of a collective into collectives of levels, and the data of each of their groups.

Data goes over outer levels as little as it can; the phases of each collective are in docs/methods/hierarchical.md.
Source: the ideas of HiCCL (Hidayetoglu et al., "HiCCL: A Hierarchical Collective Communication Library", IPDPS 2025):
levels, striping over NICs, and pipelining; and of BlueConnect (Cho et al., SysML 2019).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from ...core.collective import Collective
from ...core.schedule import Ints
from .levels import Hierarchy

AG, RS, AR = Collective.ALL_GATHER, Collective.REDUCE_SCATTER, Collective.ALL_REDUCE
BROADCAST, REDUCE = Collective.BROADCAST, Collective.REDUCE
GATHER, SCATTER, ALL_TO_ALL = Collective.GATHER, Collective.SCATTER, Collective.ALL_TO_ALL

COLLECTIVES = (AG, RS, AR, ALL_TO_ALL, BROADCAST, REDUCE, GATHER, SCATTER)

#: Collectives with a part of the data for every rank; the blocks of others are those of one outermost group.
_BY_RANK = (AG, RS, GATHER, SCATTER)


@dataclass(frozen=True, eq=False)
class Phase:
    """A collective in groups of a level.

    ``block``, ``base`` and ``part`` are the block of the data, the group by its first position, and the part of the
    group's data; ``ahead`` counts later levels in which the data is not yet at its destination.
    """

    kind: Collective
    level: int
    block: Ints
    base: Ints
    part: Ints
    ahead: Ints


def blocks_of(kind: Collective, hierarchy: Hierarchy, order: Sequence[int], roots: Ints | None = None) -> Ints:
    """Return the blocks that the data is cut into: positions, or ``i * n + j`` in an all-to-all.

    Of data that is cut by ranks, also that of an all-reduce, ``roots`` are the only positions whose blocks are needed.
    """
    n = len(hierarchy.order)
    every = np.arange(n) if roots is None else roots
    if kind is ALL_TO_ALL:
        pair = np.arange(n * n)
        return np.flatnonzero(pair // n != pair % n)
    if kind in _BY_RANK or roots is not None:
        return every[1:] if kind in (GATHER, SCATTER) else every
    return hierarchy.span_positions(order[:-1])


def phases(kind: Collective, hierarchy: Hierarchy, order: Sequence[int], roots: Ints | None = None) -> list[Phase]:
    """Return the phases of a collective, for the blocks of ``roots`` if they are given (:func:`blocks_of`).

    Position 0 is the root; ``order`` has all levels in the order of a reduce-scatter; an all-gather reverses it.
    """
    blocks = blocks_of(kind, hierarchy, order, roots)
    if kind is ALL_TO_ALL:
        return [_exchange(hierarchy, blocks, level, order[:count]) for count, level in enumerate(order)]
    *inner, top = order

    def phase(of: Collective, level: int, fixed: Sequence[int], free: Sequence[int] = ()) -> Phase:
        return _phase(hierarchy, of, blocks, level, fixed, free)

    def one_by_one(of: Collective, levels: Sequence[int]) -> list[Phase]:
        """Reduce and scatter; or gather, the other way round. All ranks of a group of later levels have the block."""
        result = [phase(of, level, order[:k], order[k + 1 :]) for k, level in enumerate(levels)]
        return result[::-1] if of is AG else result

    def rooted_phases(of: Collective) -> list[Phase]:
        result = [phase(of, level, inner[:k]) for k, level in enumerate(inner)]
        return result[::-1] if of is GATHER else result

    result: list[Phase]
    match kind:
        case Collective.ALL_GATHER | Collective.REDUCE_SCATTER:
            result = one_by_one(kind, order)
        case Collective.ALL_REDUCE if roots is not None:
            result = [*one_by_one(RS, order), *one_by_one(AG, order)]
        case Collective.ALL_REDUCE:
            result = [*one_by_one(RS, inner), phase(AR, top, inner), *one_by_one(AG, inner)]
        case Collective.BROADCAST:
            result = [*rooted_phases(SCATTER), phase(BROADCAST, top, inner), *one_by_one(AG, inner)]
        case Collective.REDUCE:
            result = [*one_by_one(RS, inner), phase(REDUCE, top, inner), *rooted_phases(GATHER)]
        case Collective.SCATTER:
            result = [*rooted_phases(SCATTER), phase(SCATTER, top, inner)]
        case _:
            result = [phase(GATHER, top, inner), *rooted_phases(GATHER)]
    return result


def _phase(
    hierarchy: Hierarchy, kind: Collective, blocks: Ints, level: int, fixed: Sequence[int], free: Sequence[int]
) -> Phase:
    """Blocks in groups whose coordinates are the block's in some levels, any in others, and the root's in the rest."""
    later = free if kind is RS else [d for d in hierarchy.levels if d not in (*fixed, level)] if kind is SCATTER else ()
    base = hierarchy.keep_levels(blocks, fixed)[:, None] + hierarchy.span_positions(free)[None, :]
    block = np.repeat(blocks, base.shape[1])
    part = hierarchy.coordinate(block, level) if kind in _BY_RANK else np.zeros_like(block)
    moves = part > 0 if kind in (GATHER, SCATTER) else np.ones(len(part), dtype=np.bool_)
    block, start = block[moves], base.ravel()[moves]
    return Phase(kind, level, block, start, part[moves], _ahead(hierarchy, start, block, later))


def _ahead(hierarchy: Hierarchy, position: Ints, target: Ints, levels: Sequence[int]) -> Ints:
    """Count the levels in which positions differ from others."""
    differ = (hierarchy.coordinate(position, d) != hierarchy.coordinate(target, d) for d in levels)
    return sum((each.astype(np.int64) for each in differ), np.zeros_like(position))


def _exchange(hierarchy: Hierarchy, blocks: Ints, level: int, earlier: Sequence[int]) -> Phase:
    """Move blocks to the receiver's coordinate of a level; in others that are done they are there already."""
    n, size = len(hierarchy.order), hierarchy.sizes[level]
    source, target = np.divmod(blocks, n)
    rest = [other for other in hierarchy.levels if other not in (*earlier, level)]
    base = hierarchy.keep_levels(source, rest) + hierarchy.keep_levels(target, earlier)
    here, there = hierarchy.coordinate(source, level), hierarchy.coordinate(target, level)
    moves = here != there
    block, start = blocks[moves], base[moves]
    return Phase(
        ALL_TO_ALL, level, block, start, (here * size + there)[moves], _ahead(hierarchy, start, target[moves], rest)
    )


def block_share(kind: Collective, hierarchy: Hierarchy, order: Sequence[int], roots: Ints | None = None) -> int:
    """Return the number of equal blocks of the collective's data, of all ranks."""
    if kind in (*_BY_RANK, ALL_TO_ALL) or roots is not None:
        return len(hierarchy.order)
    return prod(hierarchy.sizes[level] for level in order[:-1])
