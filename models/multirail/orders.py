"""The answer of the multi-rail methods."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from ...core.instance import plain


@dataclass(frozen=True)
class ChunkOrders:
    """The way of every chunk through the dimensions of a fabric.

    Parameters
    ----------
    orders : tuple of tuple of int
        For each chunk, the dimensions of its reduce-scatter, counted from 0; its all-gather goes the other way.
    queue : str
        Which chunk a dimension takes next: ``fifo`` the one that came first, ``scf`` the smallest.
    """

    orders: tuple[tuple[int, ...], ...]
    queue: Literal["fifo", "scf"]

    def to_json(self) -> dict[str, Any]:
        """Give plain data for a record."""
        return {"answer": "chunk-orders", **plain(self)}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> ChunkOrders:
        """Read what :meth:`to_json` wrote."""
        return cls(tuple(tuple(order) for order in data["orders"]), data["queue"])
