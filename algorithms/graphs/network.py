"""Directed networks with exact capacities, as arrays, and connected components."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from functools import cached_property
from operator import mul
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.kernel import interpreted_form
from ...core.schedule import Bools, Ints, offsets
from ...core.topology import Topology

INT64_SAFE = 2**62  #: sums below this are exact in 64 bits; above it, Python's integers are used
Exact = NDArray[Any]  #: exact integers: int64, or Python's in an object array where these might not do


def exact_array(values: Iterable[int], kinds: Iterable[int] | None = None) -> Exact:
    """Convert nonnegative integers, or those of all links by ``kinds``, to an array whose sums cannot overflow."""
    numbers = [int(value) for value in values]
    place = np.arange(len(numbers)) if kinds is None else np.array(kinds, dtype=np.int64)
    total = sum(map(mul, numbers, np.bincount(place, minlength=len(numbers)).tolist()))
    return np.array(numbers, dtype=np.int64 if total < INT64_SAFE else object)[place]


def exact_sum(values: Exact) -> int:
    """Sum nonnegative integers exactly."""
    fits = values.dtype != object and int(values.max(initial=0)) * len(values) < INT64_SAFE
    return int(values.sum()) if fits else sum(values.tolist())


def scale_exactly(values: Exact, factor: int) -> Exact:
    """Multiply nonnegative integers by a factor, in an array whose sums cannot overflow."""
    if values.dtype != object and max(exact_sum(values), 1) * factor < INT64_SAFE:
        return np.asarray(values * factor)
    return exact_array(int(value) * factor for value in values.tolist())


def kernel_for(kernel: Callable[..., Any], dtype: np.dtype[Any]) -> Callable[..., Any]:
    """Return the compiled kernel, or its interpreted source for object amounts beyond 64 bits."""
    return interpreted_form(kernel) if dtype.kind == "O" else kernel


def distinct(values: Ints) -> Ints:
    """Return the sorted distinct values, several times faster than the hashing of ``np.unique``."""
    ordered = np.sort(values)
    return ordered[np.concatenate([[True], ordered[1:] != ordered[:-1]])] if len(ordered) else ordered


def mask_of(size: int, numbers: Any) -> Bools:
    """Mark some of the numbers below ``size``."""
    mask = np.zeros(size, dtype=np.bool_)
    mask[numbers] = True
    return mask


def number_values(values: Iterable[Hashable]) -> list[int]:
    """Give different values numbers, in the order of their first occurrence."""
    numbers: dict[Hashable, int] = {}
    return [numbers.setdefault(value, len(numbers)) for value in values]


def edges_by(ends: Ints, nodes: int) -> tuple[Ints, Ints]:
    """Sort edges by one of their ends; return the first position of each node, and the edges."""
    first = offsets(np.bincount(ends, minlength=nodes))
    return first, np.argsort(ends, kind="stable").astype(np.int64)


def links_out(network: Topology) -> list[list[tuple[int, int]]]:
    """List the links out of every node, with their head nodes."""
    out: list[list[tuple[int, int]]] = [[] for _ in network.nodes]
    for link, (a, b) in enumerate(network.link_ends):
        out[a].append((link, b))
    return out


@dataclass(frozen=True, eq=False)
class Network:
    """Directed graph without loops and parallel edges; edges are sorted by tail, then head."""

    nodes: int
    tail: Ints
    head: Ints
    capacity: Exact  #: (edges,) capacity of every edge, greater than 0

    @classmethod
    def from_parallel_edges(cls, nodes: int, tail: Ints, head: Ints, capacity: Exact) -> Network:
        """Create a network, merging parallel edges and dropping loops and edges without capacity."""
        keys = tail * nodes + head
        order = np.argsort(keys, kind="stable")
        keys, capacity = keys[order], capacity[order]
        starts = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]])) if len(keys) else np.empty(0, np.int64)
        sums = np.add.reduceat(capacity, starts) if len(keys) else capacity
        keys = keys[starts]
        keep = (keys // nodes != keys % nodes) & (sums > 0)
        keys = keys[keep]
        return cls(nodes, keys // nodes, keys % nodes, sums[keep])

    def __len__(self) -> int:
        return len(self.tail)

    @cached_property
    def total(self) -> int:
        """Sum of all capacities."""
        return exact_sum(self.capacity)

    @cached_property
    def out_start(self) -> Ints:
        """First outgoing edge of every node; shape (nodes + 1,)."""
        return np.searchsorted(self.tail, np.arange(self.nodes + 1)).astype(np.int64)

    def leaving(self) -> Exact:
        """Sum the capacity out of every node."""
        return self._sums(self.tail)

    def entering(self) -> Exact:
        """Sum the capacity into every node."""
        return self._sums(self.head)

    def _sums(self, ends: Ints) -> Exact:
        sums = np.zeros(self.nodes, dtype=self.capacity.dtype)
        np.add.at(sums, ends, self.capacity)
        return sums

    def into(self, side: Bools) -> int:
        """Sum the capacity of the edges that enter a set of nodes."""
        return exact_sum(self.capacity[side[self.head] & ~side[self.tail]])

    def with_capacity(self, capacity: Iterable[int]) -> Network:
        """Replace the capacities; edges without capacity are dropped."""
        values = exact_array(capacity)
        keep = values > 0
        return Network(self.nodes, self.tail[keep], self.head[keep], values[keep])

    def transpose(self) -> Network:
        """Reverse every edge."""
        return Network.from_parallel_edges(self.nodes, self.head, self.tail, self.capacity)


def components(nodes: int, tail: Ints, head: Ints, *, strong: bool = False) -> Ints:
    """Return the weakly, or strongly, connected component of every node; shape (nodes,)."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    graph = csr_array((np.ones(len(tail), dtype=np.int8), (tail, head)), shape=(nodes, nodes))
    label = connected_components(graph, connection="strong" if strong else "weak")[1]
    return np.asarray(label, dtype=np.int64)
