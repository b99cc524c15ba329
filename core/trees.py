"""Packings of weighted spanning trees, with the physical path of every edge."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from .display import DisplayMixin
from .errors import InputError
from .schedule import Ints


class TreeKind(Enum):
    """Direction of the data along the trees."""

    OUT = "out"  # from the root: broadcast
    IN = "in"  # to the root: reduce
    BOTH = "in-out"  # to the root, then from it: all-reduce


@dataclass(frozen=True, eq=False, repr=False)
class TreePacking(DisplayMixin):
    """Trees that each carry a part of the data.

    Parameters
    ----------
    units : array of int, shape (trees,)
        Data that each tree carries, in multiples of ``unit_bytes``.
    edge_offset : array of int, shape (trees + 1,)
        Offset of each tree's edges, of which the last is their number.
    parent, child : array of int, shape (edges,)
        Ranks, and as numbers after theirs switches (:attr:`~.topology.Topology.tree_nodes`) that copy what they
        receive once, or in in-trees add it up; an edge comes after the one that reaches its parent.
    path_offset : array of int, shape (edges + 1,)
        Offset of each edge's links in ``path_links``.
    path_links : array of int
        Links from parent to child (from child to parent for reduce trees).
    reduction : TreePacking or None
        For :attr:`TreeKind.BOTH`, reduce trees of the same roots and units: the data of tree i first comes to its
        root along the reduction's tree i, which may have other edges.
    """

    instance_sha256: str
    kind: TreeKind
    root: Ints
    units: Ints
    unit_bytes: Fraction
    edge_offset: Ints
    parent: Ints
    child: Ints
    path_offset: Ints
    path_links: Ints
    reduction: TreePacking | None = None

    def __post_init__(self) -> None:
        if len(self.units) != len(self.root) or len(self.edge_offset) != len(self.root) + 1:
            raise InputError("the columns differ in length", place="trees")
        if len(self.units) and (self.units.min() <= 0 or self.unit_bytes <= 0):
            raise InputError("a tree carries nothing", place="trees.units")
        if len(self.parent) != len(self.child) or len(self.path_offset) != len(self.parent) + 1:
            raise InputError("the columns of edges differ in length", place="trees")
        if int(self.edge_offset[-1]) != len(self.parent) or int(self.path_offset[-1]) != len(self.path_links):
            raise InputError("offsets do not end where the columns end", place="trees")
        if (np.diff(self.edge_offset) < 0).any() or (np.diff(self.path_offset) < 1).any():
            raise InputError("every edge needs a path of at least one link", place="trees.path_offset")
        if (self.kind is TreeKind.BOTH) != (self.reduction is not None):
            raise InputError("in-out trees, and only they, have a reduction", place="trees.reduction")
        if self.reduction is not None:
            self._check_reduction(self.reduction)

    def _check_reduction(self, reduction: TreePacking) -> None:
        """Reject a reduction that is not the first half of this packing."""
        if reduction.kind is not TreeKind.IN:
            raise InputError(f"expected in-trees, not {reduction.kind.value}-trees", place="trees.reduction.kind")
        if reduction.instance_sha256 != self.instance_sha256:
            raise InputError("is for another instance", place="trees.reduction")
        for name in ("root", "units"):
            if not np.array_equal(getattr(reduction, name), getattr(self, name)):
                raise InputError("differs from that of the broadcast", place=f"trees.reduction.{name}")
        if reduction.unit_bytes != self.unit_bytes:
            raise InputError("differs from that of the broadcast", place="trees.reduction.unit_bytes")

    @cached_property
    def passes(self) -> tuple[TreePacking, ...]:
        """One-way packings that the data traverses one after the other.

        For in-out trees the reduction and the broadcast, otherwise the packing itself.
        """
        if self.reduction is None:
            return (self,)
        return self.reduction, replace(self, kind=TreeKind.OUT, reduction=None)

    @property
    def edge_tree(self) -> Ints:
        """Tree that each edge belongs to."""
        return np.repeat(np.arange(len(self)), np.diff(self.edge_offset))

    @property
    def path_tree(self) -> Ints:
        """Tree that each entry of ``path_links`` belongs to."""
        return np.repeat(self.edge_tree, np.diff(self.path_offset))

    @property
    def trees(self) -> TreePacking:
        """Trees from which all others are moved: all of them."""
        return self

    @property
    def motions(self) -> int:
        """Number of motions (:class:`~.orbits.TreeOrbits`): one, the identity."""
        return 1

    def __len__(self) -> int:
        return len(self.root)

    def to_json(self) -> dict[str, Any]:
        """Return the size of the answer as plain data for a record; sends may be millions."""
        return {"answer": "tree-packing", "trees": len(self), "edges": len(self.parent)}

    def _facts(self) -> Mapping[str, object]:
        return {"kind": self.kind.value, "trees": len(self), "edges": len(self.parent)}
