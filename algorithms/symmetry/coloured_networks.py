"""Networks with coloured nodes and links, and hashes of the surroundings of nodes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ...core.orbits import kinds_of_links, link_image
from ...core.schedule import Bools, Ints
from ...core.topology import Topology

Hashes = NDArray[np.uint64]

_MIX = np.uint64(0x9E3779B97F4A7C15)
_MIX_IN = np.uint64(0xBF58476D1CE4E5B9)
_MIX_OUT = np.uint64(0x94D049BB133111EB)
_SHIFT = np.uint64(29)


@dataclass(frozen=True, eq=False)
class ColouredNetwork:
    """Network as arrays, with colours of nodes and links."""

    colour: Ints  #: (nodes,) colours of nodes, which symmetries keep
    #: (links,) ends of links; parallel links are separate
    tail: Ints
    head: Ints
    label: Ints  #: (links,) colours of links, from 0, which symmetries keep
    #: nodes that define translations, in an order in which equal parts of the network are contiguous and ordered alike
    ranks: Ints

    @classmethod
    def of(cls, topology: Topology) -> ColouredNetwork:
        """Create the coloured network of a topology, with its ranks in order."""
        known: dict[object, int] = {}
        colour = [
            known.setdefault((n.kind, n.multicast, n.buffer_bytes, n.reduces), len(known)) for n in topology.nodes
        ]
        ends = np.array(topology.link_ends, dtype=np.int64).reshape(-1, 2)
        return cls(
            np.array(colour, dtype=np.int64),
            ends[:, 0].copy(),
            ends[:, 1].copy(),
            kinds_of_links(topology.links),
            np.array(topology.rank_nodes, dtype=np.int64),
        )

    @property
    def nodes(self) -> int:
        """Number of nodes."""
        return len(self.colour)

    def link_image(self, image: Ints) -> Ints | None:
        """Return the image of each link under a permutation of the nodes; None if it is no symmetry."""
        if not np.array_equal(self.colour[image], self.colour):
            return None
        return link_image((self.tail, self.head), self.label, image)

    @cached_property
    def levels(self) -> tuple[Ints, ...]:
        """Nodes by their distance in links from the ranks, from 1 on; unreachable ones are left out."""
        known = np.zeros(self.nodes, dtype=np.bool_)
        known[self.ranks] = True
        found: list[Ints] = []
        while True:
            near = np.zeros(self.nodes, dtype=np.bool_)
            near[self.head[known[self.tail]]] = True
            near[self.tail[known[self.head]]] = True
            near &= ~known
            if not near.any():
                return tuple(found)
            found.append(np.flatnonzero(near))
            known |= near

    def surroundings(self, image: Ints, known: Bools) -> Hashes:
        """Hash the links between each node and the known ones, each identified by its image."""
        told = _scramble(self.colour.astype(np.uint64) * _MIX + np.uint64(1))
        name = _scramble(image.astype(np.uint64) * _MIX_IN + np.uint64(7))
        label = self.label.astype(np.uint64)
        total = np.zeros(self.nodes, dtype=np.uint64)
        for here, there, factor in ((self.head, self.tail, _MIX_IN), (self.tail, self.head, _MIX_OUT)):
            use = known[there]
            np.add.at(total, here[use], _scramble(name[there[use]] * factor + label[use]))
        return _scramble(told + total)


def _scramble(value: Hashes) -> Hashes:
    mixed = (value ^ (value >> _SHIFT)) * _MIX_IN
    return np.asarray(mixed ^ (mixed >> _SHIFT), dtype=np.uint64)
