"""Training workloads: computation and communication by layer and phase.

A *group* is a set of NPUs that communicate with one another, given by the number of NPUs it spans in each dimension
of the fabric (dissertation, section 4.2.3): TP-16 on ``RI(4)_FC(8)_...`` spans ``(4, 4, 1, 1)``.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from fractions import Fraction
from math import gcd, prod

from .collective import Collective
from .display import DisplayMixin
from .errors import InputError
from .fabric import Fabric

Span = tuple[int, ...]  #: NPUs that a group spans in each dimension; 1 where the group does not use the dimension.


class TrainingLoop(Enum):
    """Order of computation and communication in an iteration (dissertation, figure 4.4)."""

    NO_OVERLAP = "no-overlap"
    TP_DP_OVERLAP = "tp-dp-overlap"


@dataclass(frozen=True)
class Communication:
    """One collective of a phase, among the NPUs of a named group."""

    collective: Collective  #: One of all_reduce, reduce_scatter, all_gather, all_to_all or point_to_point.
    size_bytes: Fraction  #: Full buffer (see :class:`~cwb.core.collective.Collective`), also for an all_gather.
    group: str


@dataclass(frozen=True)
class Phase:
    """Computation of a layer in one phase, followed by communication."""

    compute_s: Fraction = Fraction(0)
    communication: tuple[Communication, ...] = ()


@dataclass(frozen=True)
class Layer:
    """Layer with its three phases.

    The input gradient is the TP part of the backward pass, the weight gradient the DP part.
    """

    name: str
    forward: Phase = Phase()
    input_gradient: Phase = Phase()
    weight_gradient: Phase = Phase()
    repeat: int = 1


@dataclass(frozen=True, repr=False)
class Workload(DisplayMixin):
    """Training iteration mapped onto a fabric."""

    name: str
    layers: tuple[Layer, ...]
    #: The process groups, one entry per dimension of the fabric.
    groups: Mapping[str, Span] = field(default_factory=dict)
    loop: TrainingLoop = TrainingLoop.NO_OVERLAP
    weight: Fraction = Fraction(1)  #: Importance in a group of workloads (dissertation, section 4.4.6).

    def _facts(self) -> Mapping[str, object]:
        return {"name": self.name, "layers": len(self.layers), "groups": ", ".join(self.groups)}


def check_span(span: Span, fabric: Fabric) -> None:
    """Check that groups of this span can tile the fabric: every part divides its dimension."""
    if len(span) != len(fabric.dimensions):
        raise InputError(
            f"{list(span)} has {len(span)} entries; expected one for each of the {len(fabric.dimensions)} dimensions "
            f"of {fabric}"
        )
    for index, (part, dimension) in enumerate(zip(span, fabric.dimensions, strict=True)):
        if part < 1:
            raise InputError(f"expected at least 1 NPU, not {part}", place=f"[{index}]")
        if part > dimension.size:
            raise InputError(
                f"a communicator of {part} NPUs is larger than its dimension {dimension}", place=f"[{index}]"
            )
        if dimension.size % part:
            raise InputError(
                f"a communicator of {part} NPUs does not divide its dimension {dimension}", place=f"[{index}]"
            )


def map_groups(fabric: Fabric, degrees: Mapping[str, int]) -> dict[str, Span]:
    """Map nested groups, given by their sizes from the innermost on, onto the dimensions.

    Every group uses in each dimension, inside out, the largest common divisor of its remaining size and the NPUs that
    the groups before it left. TP-16 and DP-256 on ``RI(4)_FC(8)_RI(4)_SW(32)`` become (4, 4, 1, 1) and (1, 2, 4, 32):
    both span a part of dimension 2. The product of the sizes must be the number of NPUs.
    """
    text = " x ".join(f"{name}={degree}" for name, degree in degrees.items())
    if (product := prod(degrees.values())) != fabric.npus:
        raise InputError(f"{text} is {product:,} NPUs; {fabric} has {fabric.npus:,}")
    free = list(fabric.sizes)
    spans: dict[str, Span] = {}
    for name, degree in degrees.items():
        span: list[int] = []
        rest = degree
        for index, room in enumerate(free):
            part = gcd(rest, room)
            span.append(part)
            rest //= part
            free[index] = room // part
        if rest != 1:
            raise InputError(f"{name}={degree} of {text} does not fit the dimensions of {fabric}")
        spans[name] = tuple(span)
    return spans
