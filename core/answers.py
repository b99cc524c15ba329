"""What methods answer. An answer never carries its own score."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .instance import plain
from .schedule import Schedule, StepSchedule
from .trees import TreePacking


@dataclass(frozen=True)
class BandwidthPlan:
    """Bandwidth per NPU in each dimension of a fabric.

    Parameters
    ----------
    bandwidth_Bps : tuple of float
        Bytes per second, the innermost dimension first; 0 where nothing is sent.
    parallelism : tuple of int or None
        TP and DP degree of the transformers, where the method has chosen them.
    """

    bandwidth_Bps: tuple[float, ...]
    parallelism: tuple[int, int] | None = None

    def to_json(self) -> dict[str, Any]:
        """Give plain data for a record."""
        return {"answer": "bandwidth-plan", **plain(self)}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> BandwidthPlan:
        """Read what :meth:`to_json` wrote."""
        chosen = data.get("parallelism")
        return cls(tuple(data["bandwidth_Bps"]), (chosen[0], chosen[1]) if chosen else None)


Answer = BandwidthPlan | StepSchedule | Schedule | TreePacking
