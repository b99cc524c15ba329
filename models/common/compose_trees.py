"""Packings made of packings: out-trees turned around are in-trees, the two in a row are an all-reduce.

Source: Zhao et al., "ForestColl: Efficient Collective Communications on Heterogeneous Network Fabrics", section 4.6 and figure 1:
in-trees of a network are out-trees of the transposed network, and a reduce-scatter followed by an all-gather is an all-reduce.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from itertools import accumulate, pairwise
from math import gcd, lcm

import numpy as np

from ...core.errors import InputError, Unsupported
from ...core.schedule import Ints
from ...core.topology import Topology
from ...core.trees import TreeKind, TreePacking
from .compose import reverse_links


def reverse_trees(packing: TreePacking, topology: Topology | None = None) -> TreePacking:
    """Turn out-trees into in-trees, or in-trees into out-trees, of the same roots, edges and units.

    Parameters
    ----------
    packing : TreePacking
        Trees of one way.
    topology : Topology or None
        The network, if every path is to take the links back, see :func:`~cwb.models.common.compose.reverse_links`. None if the packing is for
        the transposed network (:func:`~cwb.models.common.compose.transpose`), so that the links themselves, taken the other way, are those of
        the network.

    Raises
    ------
    InputError
        If the trees are in-out trees.
    Unsupported
        If a link of the network has none back.
    """
    if packing.kind is TreeKind.BOTH:
        raise InputError("in-out trees cannot be turned around", place="trees.kind")
    hops = np.diff(packing.path_offset)
    within = np.arange(len(packing.path_links)) - np.repeat(packing.path_offset[:-1], hops)
    links = packing.path_links[np.repeat(packing.path_offset[1:] - 1, hops) - within]
    if topology is not None:
        links = reverse_links(topology)[links]
    kind = TreeKind.IN if packing.kind is TreeKind.OUT else TreeKind.OUT
    return replace(packing, kind=kind, path_links=links)


def reduce_then_broadcast(back: TreePacking, out: TreePacking) -> TreePacking:
    """Reduce along in-trees, then broadcast along out-trees: in-out trees.

    Trees are put together root by root, in their order; where the trees of a root carry different parts in the two packings, both are cut at the
    ends of either, so that each part of the data has one tree to the root and one from it. Trees come out sorted by root.

    Parameters
    ----------
    back, out : TreePacking
        In-trees and out-trees of the same instance, in which every root has the same data.

    Raises
    ------
    InputError
        If the kinds are others, or the trees of a root carry more in one packing than in the other.
    Unsupported
        If the parts have no common unit that 64 bits can count.
    """
    if back.kind is not TreeKind.IN or out.kind is not TreeKind.OUT:
        raise InputError("expected in-trees and out-trees", place="trees.kind")
    scale = lcm(back.unit_bytes.denominator, out.unit_bytes.denominator)
    unit = Fraction(gcd(int(back.unit_bytes * scale), int(out.unit_bytes * scale)), scale)
    if _data_of_roots(back, unit) != _data_of_roots(out, unit):
        raise InputError("a root does not have the same data in both packings", place="trees.units")
    orders = [np.argsort(packing.root, kind="stable") for packing in (back, out)]
    ends = [list(accumulate(_units(packing, unit, order))) for packing, order in zip((back, out), orders, strict=True)]
    cuts = sorted({*ends[0], *ends[1]})
    parts = [end - begin for begin, end in pairwise([0, *cuts])]
    if max(parts, default=0) >= 2**63:
        raise Unsupported("the two halves divide the data so differently that 64 bits cannot count the common parts")
    units = np.array(parts, dtype=np.int64)
    there, away = (
        _taken(packing, order[[bisect_left(end, cut) for cut in cuts]], units, unit)
        for packing, order, end in zip((back, out), orders, ends, strict=True)
    )
    return replace(away, kind=TreeKind.BOTH, reduction=there)


def _units(packing: TreePacking, unit: Fraction, order: Ints) -> list[int]:
    """What trees carry, in multiples of another unit."""
    times = int(packing.unit_bytes / unit)
    return [units * times for units in packing.units[order].tolist()]


def _data_of_roots(packing: TreePacking, unit: Fraction) -> Counter[int]:
    total: Counter[int] = Counter()
    for root, units in zip(packing.root.tolist(), _units(packing, unit, np.arange(len(packing))), strict=True):
        total[root] += units
    return total


def _taken(packing: TreePacking, trees: Ints, units: Ints, unit: Fraction) -> TreePacking:
    """Take these trees, some of them several times, with other units."""
    edge, edge_offset = _spans(packing.edge_offset, trees)
    entry, path_offset = _spans(packing.path_offset, edge)
    return TreePacking(
        packing.instance_sha256,
        packing.kind,
        packing.root[trees],
        units,
        unit,
        edge_offset,
        packing.parent[edge],
        packing.child[edge],
        path_offset,
        packing.path_links[entry],
    )


def _spans(offset: Ints, which: Ints) -> tuple[Ints, Ints]:
    """Give the entries of these spans one after the other, and where each of them begins."""
    count = offset[which + 1] - offset[which]
    ends = np.concatenate([[0], np.cumsum(count)]).astype(np.int64)
    return np.arange(ends[-1]) + np.repeat(offset[which] - ends[:-1], count), ends
