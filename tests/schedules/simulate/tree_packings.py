"""Packings of trees that are written as lists of edges."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
from cwb.core.schedule import offsets
from cwb.core.trees import TreeKind, TreePacking


def packing(instance, kind, trees, units, unit=None, reduction=None):
    """Trees as lists of (parent, child) from the root on, over links between neighbours; in-out trees reduce along the
    same edges, or along other trees if they are given. A unit is the part of the data that makes all units the whole,
    unless it is given."""
    if kind is TreeKind.BOTH:
        there = packing(instance, TreeKind.IN, reduction or trees, units, unit)
        return replace(packing(instance, TreeKind.OUT, trees, units, unit), kind=kind, reduction=there)
    link = {ends: i for i, ends in enumerate(instance.network.link_ends)}
    edges = [edge for tree in trees for edge in tree]
    return TreePacking(
        instance.sha256,
        kind,
        np.array([tree[0][0] for tree in trees]),
        np.array(units),
        instance.demand.size_bytes / sum(units) if unit is None else Fraction(unit),
        offsets([len(tree) for tree in trees]),
        np.array([p for p, _ in edges]),
        np.array([c for _, c in edges]),
        np.arange(len(edges) + 1),
        np.array([link[(p, c) if kind is TreeKind.OUT else (c, p)] for p, c in edges]),
    )
