"""The layers of an instance, and what a placement of one of them is worth."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

from ...core.answers import Placement
from ...core.effort import require_buildable
from ...core.experts import Experts
from ...core.instance import Instance

#: Experts of the slots of every GPU of a layer.
Slots = list[list[int]]


def supports(instance: Instance) -> str | None:
    """Experts (``Method.supports``)."""
    if instance.experts is None:
        return "it places the experts of an instance, such as experts(gpus=8, slots=2, loads=[90, 132, 40])"
    return None


def supports_layer(instance: Instance) -> str | None:
    """Experts of one layer (``Formulation.supports``)."""
    if instance.experts is not None and len(instance.experts.loads) > 1:
        return f"it is a model of one layer, and there are {len(instance.experts.loads):,}; expert-placement takes them"
    return supports(instance)


def in_load(instance: Instance) -> str:
    """Measure in the unit of the loads."""
    del instance
    return "load"


def posed(instance: Instance) -> Experts:
    """The experts of an instance that is supported."""
    assert instance.experts is not None  # noqa: S101 (it is supported)
    return instance.experts


def index(instance: Instance, options: Any) -> Experts:
    """The experts of one layer (``Formulation.index``).

    Raises
    ------
    Unsupported, OutOfTime
        If the model has too many columns.
    """
    del options
    experts = posed(instance)
    require_buildable(experts.count * experts.most * experts.gpus, f"{experts.count} experts")
    return experts


def largest(loads: tuple[Fraction, ...], slots: Iterable[Iterable[int]]) -> Fraction:
    """The largest load of a GPU of a layer."""
    where = [list(gpu) for gpu in slots]
    count = Counter(e for gpu in where for e in gpu)
    return max(sum((loads[e] / count[e] for e in gpu), Fraction(0)) for gpu in where)


def as_answer(layers: Iterable[Slots]) -> Placement:
    """Placements of all layers as an answer."""
    return Placement(tuple(tuple(tuple(sorted(gpu)) for gpu in slots) for slots in layers))


def extract(model: Any, experts: Experts) -> Placement:
    """The placement of a solved model (``Formulation.extract``)."""
    return as_answer([placed(model, experts)])


def placed(model: Any, experts: Experts) -> Slots:
    """The slots of the layer of a solved model."""
    return [
        [e for e in model.E for k in model.K for _ in range(round(model.y[e, k, g].value))] for g in range(experts.gpus)
    ]
