"""Nodes that look alike: one of each kind is tried first, since it mostly gives the bound of all."""

from __future__ import annotations

from typing import Any

import numpy as np

from .....core.schedule import Ints
from ..problem import EpochNetwork


def kinds_of_nodes(network: EpochNetwork) -> Ints:
    """Number the nodes by kind: two of one kind have equal links to and from nodes of equal kinds, chunks and needs; shape (nodes,)."""
    owned = np.bincount(network.source, minlength=network.nodes)
    first: list[Any] = list(
        zip(network.stores.tolist(), owned.tolist(), network.lacking.sum(axis=0).tolist(), strict=True)
    )
    kinds = _numbered(first)
    links = np.stack([network.delay, network.window, network.room], axis=1).tolist()
    ends = list(zip(network.tail.tolist(), network.head.tolist(), map(tuple, links), strict=True))
    while True:
        seen: list[list[Any]] = [[] for _ in range(network.nodes)]
        for tail, head, link in ends:
            seen[tail].append((0, link, kinds[head]))
            seen[head].append((1, link, kinds[tail]))
        finer = _numbered([(kinds[v], tuple(sorted(seen[v]))) for v in range(network.nodes)])
        if max(finer) == max(kinds):
            return np.array(kinds, dtype=np.int64)
        kinds = finer


def examples(network: EpochNetwork) -> Ints:
    """Give the first node of every kind that lacks a chunk."""
    lacking = np.flatnonzero(network.lacking.any(axis=0))
    _, first = np.unique(kinds_of_nodes(network)[lacking], return_index=True)
    return np.sort(lacking[first])


def _numbered(values: list[Any]) -> list[int]:
    known: dict[Any, int] = {}
    return [known.setdefault(value, len(known)) for value in values]
