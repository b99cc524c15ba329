"""From trees with rates to the data of each, in chunks: section III-C, with the formulas of :mod:`~cwb.core.pipelining`."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from ...core.instance import Instance
from ...core.reserved import Reserved, equal_finish, forest_of, reserve
from ...core.schedule import Ints
from ...core.topology import Topology
from ...core.trees import TreePacking
from ..common.schedule_bounds import network_of
from ..common.wan.network import Wan
from ..common.wan.trees import Rated, excess, packing
from .options import ChunkOptions

#: Data is split in parts of the whole as small as one over this.
_FINE = 2**31


@dataclass(frozen=True, eq=False)
class Split:
    """Trees with their data.

    Parameters
    ----------
    packing : TreePacking
        The answer.
    rated : Rated
        Its trees and rates; those that are too long to help are left out.
    roots : array of int, shape (trees,)
        Their roots.
    flow_s : Fraction
        Seconds that the most loaded link takes for its bytes.
    """

    packing: TreePacking
    rated: Rated
    roots: Ints
    flow_s: Fraction


def split(instance: Instance, wan: Wan, rated: Rated, roots: Ints, options: ChunkOptions) -> Split:
    """Split the data among trees: in proportion to the rates, or such that all trees end at once.

    Parameters
    ----------
    instance : Instance
        The problem.
    wan : Wan
        Its network.
    rated : Rated
        Trees whose rates fit, raised until a link is full.
    roots : array of int
        Roots of the trees.
    options : ChunkOptions
        How.
    """
    trees = packing(instance, wan, rated, roots)
    size = trees.unit_bytes * int(trees.units.sum())
    if options.split == "rate":
        return Split(trees, rated, roots, size / (rated.total * wan.unit_Bps))
    forest = forest_of(network_of(instance), trees, options.latency_model, options.chunk_overhead)
    rates_Bps = np.array([float(rate * wan.unit_Bps) for rate in rated.rates])
    data = equal_finish(forest, rates_Bps, float(size), options.chunks)
    parts = (data / float(size) * _FINE).astype(np.int64)
    kept = np.flatnonzero(parts)
    shares = Rated(rated.trees[kept], tuple(Fraction(int(part), int(parts.sum())) for part in parts[kept]))
    rated = Rated(shares.trees, tuple(rated.rates[i] for i in kept))
    flow_s = size * excess(wan, shares.trees, shares.rates) / wan.unit_Bps
    return Split(packing(instance, wan, shares, roots[kept]), rated, roots[kept], flow_s)


def measures_of_chunks(network: Topology, trees: TreePacking, options: ChunkOptions) -> dict[str, Any]:
    """Give chunks and times of trees that reserve rates, for the all-reduce and for its reduction alone (the paper's Figure 8)."""

    def planned(part: TreePacking, chunks: int | None) -> Reserved:
        return reserve(network, part, options.latency_model, options.chunk_overhead, chunks)

    plan = planned(trees, options.chunks)
    data = trees.units * float(trees.unit_bytes)
    reduction = trees.passes[0]
    return {
        "chunks_per_tree": plan.chunks.tolist(),
        "chunk_bytes": (data / plan.chunks).tolist(),
        "pipelined_time_s": plan.seconds,
        "unpipelined_time_s": planned(trees, 1).seconds,
        "reduce_time_s": planned(reduction, options.chunks).seconds,
        "unpipelined_reduce_time_s": planned(reduction, 1).seconds,
    }
