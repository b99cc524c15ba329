"""Bytes that a multi-rail collective moves through each dimension (dissertation, sections 4.2.2 and 4.4.2)."""

from __future__ import annotations

from fractions import Fraction
from math import prod

from ...core.collective import CollectiveKind
from ...core.design import PartialUse
from ...core.fabric import Block, Fabric
from ...core.workload import Communication, Span


def traffic(communication: Communication, span: Span, fabric: Fabric, partial_use: PartialUse) -> tuple[Fraction, ...]:
    """Bytes per NPU in every dimension; over the bandwidth they are the time of the dimension.

    Parameters
    ----------
    communication : Communication
        The collective, of full-buffer size m.
    span : Span
        NPUs n_i that its group spans in each dimension.
    fabric : Fabric
        The network.
    partial_use : PartialUse
        What a group can use of a fully connected dimension that it spans in part.

    Returns
    -------
    tuple of Fraction
        One entry for each dimension, 0 where the group does not use it.
    """
    m = communication.size_bytes
    used = [_dimension(communication.collective, m, span, i, fabric) for i in range(len(span))]
    if partial_use is PartialUse.DIRECT_LINKS:
        return tuple(b * _stretch(span[i], fabric, i) for i, b in enumerate(used))
    return tuple(used)


def _dimension(kind: CollectiveKind, m: Fraction, span: Span, i: int, fabric: Fabric) -> Fraction:
    """Bytes through dimension i."""
    n = span[i]
    if n == 1:
        return Fraction(0)
    inner = prod(span[:i])
    match kind:
        case CollectiveKind.ALL_REDUCE if fabric.dimensions[i].in_network:
            return m / inner
        case CollectiveKind.ALL_REDUCE:
            return 2 * m * (n - 1) / (n * inner)
        case CollectiveKind.REDUCE_SCATTER | CollectiveKind.ALL_GATHER:
            return m * (n - 1) / (n * inner)
        case CollectiveKind.ALL_TO_ALL:
            return m * (n - 1) / n
        case CollectiveKind.POINT_TO_POINT:
            return m
        case _:
            raise ValueError(f"LIBRA does not model {kind.value}")


def _stretch(part: int, fabric: Fabric, i: int) -> Fraction:
    """How much longer a dimension takes when only the links between the group's members carry its traffic."""
    dimension = fabric.dimensions[i]
    if dimension.block is Block.FULLY_CONNECTED and 1 < part < dimension.size:
        return Fraction(dimension.size - 1, part - 1)
    return Fraction(1)
