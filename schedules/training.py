"""Time of a training iteration, by walking layers in loop order and collectives by stage.

This is the analytical model of the dissertation, sections 4.2.2 and 4.4.2, implemented a second time on purpose:
the verifier walks the stages of the multi-rail algorithms with the shard that remains after each, and shares no
code with the optimizer's closed forms.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import inf

from ..core.collective import Collective
from ..core.design import PartialUse
from ..core.fabric import Block, Fabric
from ..core.instance import Instance
from ..core.workload import Communication, Layer, Phase, TrainingLoop, Workload


def weighted_time(instance: Instance, bandwidth_Bps: Sequence[Fraction]) -> float:
    """Return the weighted iteration time of all workloads; infinite if traffic has no bandwidth."""
    return sum(float(w.weight) * workload_time(instance, w, bandwidth_Bps) for w in instance.training())


def workload_time(instance: Instance, workload: Workload, bandwidth_Bps: Sequence[Fraction]) -> float:
    """Return the seconds of an iteration: forward, then backward in the workload's loop (figure 4.4)."""
    total = sum(layer.repeat * layer_time(instance, workload, layer, bandwidth_Bps) for layer in workload.layers)
    return float(total)


def layer_time(
    instance: Instance, workload: Workload, layer: Layer, bandwidth_Bps: Sequence[Fraction]
) -> Fraction | float:
    """Return the seconds of one layer, forward and backward."""
    forward, tp, dp = (
        phase_time(instance, workload, phase, bandwidth_Bps)
        for phase in (layer.forward, layer.input_gradient, layer.weight_gradient)
    )
    if workload.loop is TrainingLoop.TP_DP_OVERLAP:
        return sum(forward) + tp[0] + max(tp[1], sum(dp))
    return sum(forward) + sum(tp) + sum(dp)


def phase_time(
    instance: Instance, workload: Workload, phase: Phase, bandwidth_Bps: Sequence[Fraction]
) -> tuple[Fraction, Fraction | float]:
    """Return the seconds of computation and of communication of a phase."""
    communication_s: Fraction | float = Fraction(0)
    for communication in phase.communication:
        communication_s += communication_time(
            instance, communication, workload.groups[communication.group], bandwidth_Bps
        )
    return phase.compute_s, communication_s


def communication_time(
    instance: Instance, communication: Communication, span: Sequence[int], bandwidth_Bps: Sequence[Fraction]
) -> Fraction | float:
    """Return a collective's seconds on its busiest dimension; infinite if traffic has no bandwidth."""
    moved = busy_bytes(instance, communication, span)
    return max(
        (m / b if b > 0 else inf for m, b in zip(moved, bandwidth_Bps, strict=True) if m > 0), default=Fraction(0)
    )


def busy_bytes(instance: Instance, communication: Communication, span: Sequence[int]) -> list[Fraction]:
    """Return the bytes that keep each dimension busy at its full bandwidth.

    If a group may use only the links between its members (``direct-links``), a fully connected dimension is busy
    longer than its bytes take.
    """
    fabric = instance.fabric
    moved = stages(communication, span, fabric)
    if instance.design is None or instance.design.partial_use is PartialUse.FULL:
        return moved
    for d, n in enumerate(span):
        if fabric.dimensions[d].block is Block.FULLY_CONNECTED and n > 1:
            moved[d] *= Fraction(fabric.dimensions[d].size - 1, n - 1)
    return moved


def stages(communication: Communication, span: Sequence[int], fabric: Fabric) -> list[Fraction]:
    """Return the bytes per NPU in each dimension, by walking the stages of the multi-rail algorithm.

    A reduce-scatter ascends the dimensions and leaves a shard of 1/n after each; an all-gather descends them with
    the same shards; an all-reduce is both, unless the switches of a dimension reduce, to which every NPU then sends
    its shard once.
    """
    moved: list[Fraction] = []
    held = communication.size_bytes
    for d, n in enumerate(span):
        sent_once = held - held / n
        match communication.collective:
            case Collective.ALL_REDUCE:
                reduced = fabric.dimensions[d].in_network and n > 1
                moved.append(held if reduced else 2 * sent_once)
                held /= n
            case Collective.REDUCE_SCATTER | Collective.ALL_GATHER:
                moved.append(sent_once)
                held /= n
            case Collective.ALL_TO_ALL:
                moved.append(sent_once)
            case Collective.POINT_TO_POINT:
                moved.append(held if n > 1 else Fraction(0))
            case _:
                raise ValueError(f"the analytical model has no {communication.collective.name}")
    return moved
