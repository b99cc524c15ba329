"""Schedules of every kind as sends with an order, for what lowers them to programs of ranks."""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

import numpy as np

from ..core.conditions import Condition
from ..core.instance import Instance
from ..core.schedule import Ints, Schedule, Sends
from ..core.topology import Topology
from ..core.trees import TreePacking
from .simulate.trees import tree_sends
from .verify.answers import Whole
from .verify.order import time_order
from .verify.sizes import demanded_bytes


class OrderedSends(NamedTuple):
    """Sends of a schedule in the order in which they read and write.

    Parameters
    ----------
    kinds : list of (holders, receivers, reduced)
        Condition of every chunk, see :func:`normalize_condition`.
    units : list of int
        Size of every chunk in multiples of ``unit_bytes``.
    read, write : array of int, shape (sends,)
        Order of the reading at the source and the writing at the target. If they are equal, as within a step, all
        reading of a chunk comes before all writing of it.
    """

    sends: Sends
    kinds: list[Condition]
    units: list[int]
    unit_bytes: Fraction
    read: Ints
    write: Ints


def order_sends(topology: Topology, instance: Instance, answer: Whole, pieces: int = 1) -> OrderedSends:
    """Return the sends of a schedule with their order.

    Parameters
    ----------
    pieces : int
        Number of equal pieces of the data of every tree, which follow one another.
    """
    if isinstance(answer, TreePacking):
        sends, _, level = tree_sends(topology, answer, pieces)
        order = level + sends.chunk // max(len(answer), 1)
        kinds = _conditions_of_trees(instance, answer)
        return OrderedSends(
            sends, kinds * pieces, answer.units.tolist() * pieces, answer.unit_bytes / pieces, order, order
        )
    chunks = answer.chunks
    rows = zip(chunks.held_by.tolist(), chunks.needed_by.tolist(), chunks.reduced.tolist(), strict=True)
    kinds = [normalize_condition(chunks.groups[held], chunks.groups[needed], reduced) for held, needed, reduced in rows]
    if isinstance(answer, Schedule):
        read, write = time_order(answer.start_s, answer.end_s)
    else:
        read = write = np.asarray(answer.step)
    return OrderedSends(answer.sends, kinds, chunks.units.tolist(), chunks.unit_bytes, read, write)


def normalize_condition(held: tuple[int, ...], needed: tuple[int, ...], reduced: bool) -> Condition:
    """Normalize a condition: drop holders from the receivers of copied data."""
    return (held, needed, True) if reduced else (held, tuple(sorted({*needed} - {*held})), False)


def _conditions_of_trees(instance: Instance, packing: TreePacking) -> list[Condition]:
    """Return the condition of each tree's data: that of its root, or of all."""
    by_root: dict[int | None, Condition] = {}
    for condition in demanded_bytes(instance):
        held, needed, reduced = condition
        root = None if len(held) > 1 and len(needed) > 1 else min(needed if reduced else held)
        by_root[root] = normalize_condition(held, needed, reduced)
    return [by_root[None] if None in by_root else by_root[root] for root in packing.root.tolist()]
