"""Verification and measurement of answers, independent of every method."""

from __future__ import annotations

from functools import singledispatch

from ..core.answers import Answer, BandwidthPlan, BoundOnly, ChunkOrders, Placement
from ..core.bounds import Certificate
from ..core.budget import Clock, NoClock
from ..core.instance import Instance
from ..core.orbits import TreeOrbits
from ..core.outcome import Verdict
from ..core.trees import TreePacking


def verdict_of(
    instance: Instance, answer: Answer, certificate: Certificate | None = None, clock: Clock | None = None
) -> Verdict:
    """Check an answer against its instance and a certificate against both, and measure the answer.

    Parameters
    ----------
    certificate : Certificate or None
        The bound that the method claims; None if it claims none.
    clock : Clock, optional
        Measures the phases ``verify`` and ``simulate``.

    Returns
    -------
    Verdict
        Violations, the recomputed objective and bound, metrics.
    """
    return _verdict(answer, instance, certificate, clock or NoClock())


@singledispatch
def _verdict(answer: Answer, instance: Instance, certificate: Certificate | None, clock: Clock) -> Verdict:
    from .collective import schedule_verdict

    return schedule_verdict(instance, answer, certificate, clock)


@_verdict.register
def _(answer: TreePacking | TreeOrbits, instance: Instance, certificate: Certificate | None, clock: Clock) -> Verdict:
    from .collective import forest_verdict

    return forest_verdict(instance, answer, certificate, clock)


@_verdict.register
def _(answer: ChunkOrders, instance: Instance, certificate: Certificate | None, clock: Clock) -> Verdict:
    from .collective import orders_verdict

    return orders_verdict(instance, answer, certificate, clock)


@_verdict.register
def _(answer: BoundOnly, instance: Instance, certificate: Certificate | None, clock: Clock) -> Verdict:
    from .collective import bound_verdict

    return bound_verdict(instance, certificate, clock)


@_verdict.register
def _(answer: BandwidthPlan, instance: Instance, certificate: Certificate | None, clock: Clock) -> Verdict:
    from .bandwidth import bandwidth_verdict

    with clock.phase("verify"):
        return bandwidth_verdict(instance, answer, certificate)


@_verdict.register
def _(answer: Placement, instance: Instance, certificate: Certificate | None, clock: Clock) -> Verdict:
    from .placement import placement_verdict

    with clock.phase("verify"):
        return placement_verdict(instance, answer, certificate)
