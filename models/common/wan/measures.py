"""The numbers that stand beside one another in tables (MTree, section IV-A.3), and the share of the strength."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from . import kernels
from .ceiling import Ceiling
from .network import Wan
from .trees import Rated, fanout


def measures_of_rate(wan: Wan, rate: Fraction, highest: Ceiling) -> dict[str, Any]:
    """Give a rate in units as it is told: in bytes per second, over ``N`` and over what no schedule exceeds."""
    return {
        "allreduce_rate_Bps": float(rate * wan.unit_Bps),
        "normalized_throughput": float(rate / wan.normaliser),
        "strength_share": float(rate / highest.rate),
        "strength_Bps": float(highest.rate * wan.unit_Bps),
    }


def measures_of_trees(wan: Wan, rated: Rated, roots: Sequence[int]) -> dict[str, Any]:
    """Give heights in hops and in latency, and the most children of a site; every tree counts once."""
    far, hop = np.empty(wan.nodes, np.int64), np.empty(wan.nodes, np.int64)
    heights: list[int] = []
    longest: list[int] = []
    for tree, root in zip(rated.trees, roots, strict=True):
        kernels.distances(root, tree, wan.tail, wan.head, wan.latency_ns, far, hop)
        heights.append(int(hop.max()))
        longest.append(int(far.max()))
    fanouts = [fanout(wan, tree, root) for tree, root in zip(rated.trees.tolist(), roots, strict=True)]
    return {
        "mean_tree_height": sum(heights) / len(heights),
        "max_tree_height": max(heights),
        "max_tree_latency_s": max(longest) / 1e9,
        "mean_max_fanout": sum(fanouts) / len(fanouts),
        "max_fanout": max(fanouts),
    }
