"""Common parts of plots of schedules: traffic, units, loads of links, colours."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ...core.schedule import Floats, Ints, Sends
from ...core.topology import Topology

FEW = 8  #: A few steps or chunks get distinct colours; more get a colour scale.

#: Colour map of everything that is a scale: colour-blind safe, light to dark; no colour in it is white.
SCALE = "viridis_r"

_BYTES = (("GiB", 2.0**30), ("MiB", 2.0**20), ("KiB", 2.0**10), ("B", 1.0))
_SECONDS = (("s", 1.0), ("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9))


@dataclass(frozen=True, eq=False)
class Traffic:
    """Sends of a schedule, trees as a chunk each, with the links they use.

    Sends may have a ``step``, and a ``root``, the rank at the root of their tree.
    """

    title: str
    topology: Topology
    sends: Sends
    chunk_bytes: Floats
    step: Ints | None = None
    root: Ints | None = None

    @cached_property
    def hop_send(self) -> Ints:
        """Send of every hop."""
        return self.sends.hop_send.astype(np.int64)

    @cached_property
    def link_bytes(self) -> Floats:
        """Total bytes over every link."""
        weights = self.chunk_bytes[self.sends.chunk][self.hop_send]
        return np.bincount(self.sends.path_links, weights, minlength=len(self.topology.links)).astype(np.float64)

    @cached_property
    def link_utilization(self) -> Floats:
        """Time of every link's bytes at its bandwidth, relative to the most loaded link."""
        seconds = self.link_bytes / np.array([float(link.bandwidth_Bps) for link in self.topology.links])
        return np.asarray(seconds / (seconds.max(initial=0.0) or 1.0), dtype=np.float64)

    @cached_property
    def colour_keys(self) -> tuple[str, ...]:
        """Properties to show by colour, the most useful first: steps if there are several, then chunks."""
        if self.step is None:
            return ("chunk",) if self.root is None else ("chunk", "root")
        return ("step", "chunk") if self.step.max(initial=0) > 0 else ("chunk", "step")

    @cached_property
    def link_names(self) -> list[str]:
        """Names of the links; parallel ones after the first are numbered."""
        seen: dict[tuple[str, str], int] = {}
        names = []
        for link in self.topology.links:
            ends = link.source, link.target
            seen[ends] = seen.get(ends, 0) + 1
            names.append(f"{link.source} → {link.target}" + (f" #{seen[ends]}" if seen[ends] > 1 else ""))
        return names


class Loads(NamedTuple):
    """Loads between nodes, or between blocks of neighbouring nodes where there are many."""

    #: (blocks, blocks) Load from source (row) to target (column), the largest pair of a block; NaN where there is
    #: no link
    matrix: Floats
    nodes: Ints  #: the nodes in the order of rows and columns: ranks, then switches
    block: int
    ranks: int


def loads(topology: Topology, link_loads: Floats, limit: int = 512, together: np.ufunc = np.add) -> Loads:
    """Arrange the loads of links by their ends in at most ``limit`` rows; ``together`` combines parallel links."""
    ranks = list(topology.rank_nodes)
    is_rank = np.zeros(len(topology.nodes), dtype=np.bool_)
    is_rank[ranks] = True
    nodes = np.concatenate([np.array(ranks, dtype=np.int64), np.flatnonzero(~is_rank)])
    place = np.empty(len(nodes), dtype=np.int64)
    place[nodes] = np.arange(len(nodes))
    ends = np.array(topology.link_ends, dtype=np.int64).reshape(-1, 2)
    pair, inverse = np.unique(place[ends[:, 0]] * len(nodes) + place[ends[:, 1]], return_inverse=True)
    total = np.zeros(len(pair))
    together.at(total, inverse, link_loads)
    block = -(-len(nodes) // limit)
    rows = -(-len(nodes) // block)
    flat = np.full((rows, rows), -1.0)
    np.maximum.at(flat, (pair // len(nodes) // block, pair % len(nodes) // block), total)
    flat[flat < 0] = np.nan
    return Loads(flat, nodes, block, len(ranks))


def bytes_unit(largest: float) -> tuple[str, float]:
    """Choose the unit for numbers of bytes up to the largest: its name, and its bytes."""
    return next(((name, size) for name, size in _BYTES if largest >= size), _BYTES[-1])


def seconds_unit(largest: float) -> tuple[str, float]:
    """Choose the unit for times up to the largest: its name, and its seconds."""
    return next(((name, size) for name, size in _SECONDS if largest >= size), _SECONDS[-1])


def sparse(count: int, most: int) -> list[int]:
    """Return positions to label, at most so many: every 1st, 2nd, 5th, 10th, ..."""
    steps = (base * 10**power for power in range(10) for base in (1, 2, 5))
    step = next(step for step in steps if -(-count // step) <= most)
    return list(range(0, count, step))
