"""Layers of an instance, and the value of a placement."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

from ...core.answers import Placement
from ...core.errors import Refusal
from ...core.experts import Experts
from ...core.instance import Instance
from ...core.limits import require_buildable

Slots = list[list[int]]  #: Experts of the slots of every GPU of a layer.


def supports(instance: Instance) -> Refusal | None:
    """Refuse all but experts (``Method.supports``)."""
    if instance.experts is None:
        return Refusal(
            "workload", "it needs an instance with experts, such as experts(gpus=8, slots=2, loads=[90, 132, 40])"
        )
    return None


def supports_layer(instance: Instance) -> Refusal | None:
    """Refuse all but experts of one layer (``Formulation.supports``)."""
    if instance.experts is not None and len(instance.experts.loads) > 1:
        return Refusal(
            "workload",
            f"it is a model of one layer, and there are {len(instance.experts.loads):,}; expert-placement supports "
            "them",
        )
    return supports(instance)


def experts_of(instance: Instance) -> Experts:
    """Return the experts of a supported instance."""
    assert instance.experts is not None  # noqa: S101 (it is supported)
    return instance.experts


def index(instance: Instance, options: Any) -> Experts:
    """Return the experts of one layer (``Formulation.index``)."""
    experts = experts_of(instance)
    require_buildable(experts.count * experts.most * experts.gpus, f"{experts.count} experts")
    return experts


def largest(loads: tuple[Fraction, ...], slots: Iterable[Iterable[int]]) -> Fraction:
    """Return the largest load of a layer's GPU."""
    where = [list(gpu) for gpu in slots]
    count = Counter(e for gpu in where for e in gpu)
    return max(sum((loads[e] / count[e] for e in gpu), Fraction(0)) for gpu in where)


def to_answer(layers: Iterable[Slots]) -> Placement:
    """Return placements of all layers as an answer."""
    return Placement(tuple(tuple(tuple(sorted(gpu)) for gpu in slots) for slots in layers))


def extract(model: Any, experts: Experts) -> Placement:
    """Return the placement of a solved model (``Formulation.extract``)."""
    return to_answer([slots_of_model(model, experts)])


def slots_of_model(model: Any, experts: Experts) -> Slots:
    """Return a solved model's slots of the layer."""
    return [
        [e for e in model.E for k in model.K for _ in range(round(model.y[e, k, g].value))] for g in range(experts.gpus)
    ]
