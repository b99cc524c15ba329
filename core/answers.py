"""Types of answers of methods, without their objective values, which are computed from them."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, Literal, Self

import numpy as np

from .display import AnswerMixin
from .equal_steps import StreamedSteps, TranslatedTrees
from .instance import plain
from .schedule import Schedule, StepSchedule
from .step_orbits import StepOrbits
from .trees import TreeOrbits, TreePacking


@dataclass(frozen=True)
class BandwidthPlan(AnswerMixin, name="bandwidth-plan"):
    """Bandwidth per NPU in each dimension of a fabric."""

    bandwidth_Bps: tuple[float, ...]  #: Bytes per second, innermost dimension first; 0 for unused dimensions.
    parallelism: tuple[int, int] | None = None  #: TP and DP degree of the transformers, if the method has chosen them.

    def _size(self) -> dict[str, Any]:
        return dict(plain(self))

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """Read what :meth:`to_json` wrote."""
        degrees = data.get("parallelism")
        return cls(tuple(data["bandwidth_Bps"]), (degrees[0], degrees[1]) if degrees else None)


@dataclass(frozen=True, repr=False)
class ChunkOrders(AnswerMixin, name="chunk-orders"):
    """Order in which every chunk visits the dimensions of a fabric."""

    #: Per chunk, the dimensions of its reduce-scatter, counted from 0; its all-gather uses the reverse order.
    orders: tuple[tuple[int, ...], ...]
    #: Policy by which a dimension picks its next chunk: ``fifo`` (first come) or ``scf`` (smallest chunk).
    queue: Literal["fifo", "scf"]

    def _size(self) -> dict[str, Any]:
        return dict(plain(self))

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """Read what :meth:`to_json` wrote."""
        return cls(tuple(tuple(order) for order in data["orders"]), data["queue"])

    def _facts(self) -> Mapping[str, object]:
        return {"chunks": len(self.orders), "queue": self.queue}


@dataclass(frozen=True, repr=False)
class Placement(AnswerMixin, name="placement"):
    """Experts whose replicas the slots of every GPU hold."""

    #: Experts in the slots of every layer and GPU, in increasing order.
    experts: tuple[tuple[tuple[int, ...], ...], ...]

    def _size(self) -> dict[str, Any]:
        slots = sum(len(gpu) for layer in self.experts for gpu in layer)
        return {"layers": len(self.experts), "gpus": len(self.experts[0]) if self.experts else 0, "slots": slots}


@dataclass(frozen=True)
class BoundOnly(AnswerMixin, name="bound-only"):
    """Lower bound on the time of the collective, without a schedule.

    The value that the verifier recomputes from the certificate is both objective and bound. A bound that only a
    solver attests cannot be verified.
    """

    def _size(self) -> dict[str, Any]:
        return {}


_Sends = StepSchedule | StepOrbits | Schedule | TreePacking | TreeOrbits | TranslatedTrees | StreamedSteps
Answer = BandwidthPlan | ChunkOrders | _Sends | Placement | BoundOnly


def is_same(one: Any, other: Any) -> bool:
    """Check if two answers, or parts of answers, are equal in content."""
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return np.array_equal(one, other)
    if isinstance(one, tuple) and isinstance(other, tuple) and len(one) == len(other):
        return all(map(is_same, one, other))
    if is_dataclass(one) and type(one) is type(other):
        return all(is_same(getattr(one, part.name), getattr(other, part.name)) for part in fields(one))
    return bool(one == other)
