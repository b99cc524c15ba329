"""What methods answer. An answer never carries its own score."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, Literal

import numpy as np

from .display import Shown
from .instance import plain
from .orbits import TreeOrbits
from .schedule import Schedule, StepSchedule
from .streamed import StreamedSteps
from .translated import TranslatedTrees
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

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> BandwidthPlan:
        """Read what :func:`to_json` wrote."""
        chosen = data.get("parallelism")
        return cls(tuple(data["bandwidth_Bps"]), (chosen[0], chosen[1]) if chosen else None)


@dataclass(frozen=True, repr=False)
class ChunkOrders(Shown):
    """The order in which every chunk visits the dimensions of a fabric.

    Parameters
    ----------
    orders : tuple of tuple of int
        For each chunk, the dimensions of its reduce-scatter, counted from 0; its all-gather goes the other way.
    queue : str
        Which chunk a dimension takes next: ``fifo`` the one that came first, ``scf`` the smallest.
    """

    orders: tuple[tuple[int, ...], ...]
    queue: Literal["fifo", "scf"]

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> ChunkOrders:
        """Read what :func:`to_json` wrote."""
        return cls(tuple(tuple(order) for order in data["orders"]), data["queue"])

    def _facts(self) -> Mapping[str, object]:
        return {"chunks": len(self.orders), "queue": self.queue}


@dataclass(frozen=True, repr=False)
class Placement(Shown):
    """Which expert every slot of a GPU holds a replica of.

    Parameters
    ----------
    experts : tuple of tuple of tuple of int
        For every layer and GPU, the experts of its slots, in increasing order.
    """

    experts: tuple[tuple[tuple[int, ...], ...], ...]

    def _facts(self) -> Mapping[str, object]:
        slots = sum(len(gpu) for layer in self.experts for gpu in layer)
        return {"layers": len(self.experts), "gpus": len(self.experts[0]) if self.experts else 0, "slots": slots}


@dataclass(frozen=True)
class BoundOnly:
    """A bound without a schedule: the time that the collective takes at least.

    What the verifier recomputes from the certificate is objective and bound at once; of a bound that a solver attests
    there is nothing to verify.
    """


Answer = (
    BandwidthPlan
    | ChunkOrders
    | StepSchedule
    | Schedule
    | TreePacking
    | TreeOrbits
    | TranslatedTrees
    | StreamedSteps
    | Placement
    | BoundOnly
)


def is_same(one: Any, other: Any) -> bool:
    """Whether two answers, or parts of answers, say the same."""
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return np.array_equal(one, other)
    if isinstance(one, tuple) and isinstance(other, tuple) and len(one) == len(other):
        return all(map(is_same, one, other))
    if is_dataclass(one) and type(one) is type(other):
        return all(is_same(getattr(one, part.name), getattr(other, part.name)) for part in fields(one))
    return bool(one == other)


def to_json(answer: Answer) -> dict[str, Any]:  # noqa: PLR0911 (one for each kind)
    """An answer as plain data for a record; of a schedule its size only, since it may have millions of sends."""
    match answer:
        case BandwidthPlan():
            return {"answer": "bandwidth-plan", **plain(answer)}
        case ChunkOrders():
            return {"answer": "chunk-orders", **plain(answer)}
        case StepSchedule():
            return {
                "answer": "step-schedule",
                "chunks": len(answer.chunks),
                "sends": len(answer.sends),
                "steps": answer.steps,
            }
        case Schedule():
            return {"answer": "schedule", "chunks": len(answer.chunks), "sends": len(answer.sends)}
        case TreePacking():
            return {"answer": "tree-packing", "trees": len(answer), "edges": len(answer.parent)}
        case TreeOrbits():
            return {
                "answer": "tree-orbits",
                "trees": len(answer),
                "given": len(answer.trees),
                "orders": [translation.order for translation in answer.translations],
                "edges": len(answer.trees.parent),
            }
        case TranslatedTrees():
            return {
                "answer": "translated-trees",
                "sizes": list(answer.sizes),
                "edges": len(answer.step),
                "sends": answer.sends,
                "steps": answer.steps,
            }
        case StreamedSteps():
            return {
                "answer": "streamed-steps",
                "kind": answer.kind.value,
                "sends": answer.sends,
                "steps": answer.steps,
                "sha256": answer.digest,
            }
        case Placement():
            return {"answer": "placement", **answer._facts()}
        case BoundOnly():
            return {"answer": "bound-only"}
