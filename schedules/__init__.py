"""The verifier: independent checks and measurements of answers. Nothing here imports a method."""

from __future__ import annotations

from ..core.answers import Answer, BandwidthPlan, BoundOnly, Placement
from ..core.bounds import Certificate
from ..core.budget import Clock, NoClock
from ..core.instance import Instance
from ..core.verdict import Verdict


def verdict_of(
    instance: Instance, answer: Answer, certificate: Certificate | None = None, clock: Clock | None = None
) -> Verdict:
    """Check an answer against its instance and a certificate against both, and measure the answer.

    Parameters
    ----------
    instance : Instance
        The problem, as posed to the method.
    answer : Answer
        What the method found.
    certificate : Certificate or None
        What it says of its bound.
    clock : Clock, optional
        Measures the phases ``verify`` and ``simulate``.

    Returns
    -------
    Verdict
        Violations, the objective and the bound recomputed, metrics.
    """
    clock = clock or NoClock()
    if isinstance(answer, BandwidthPlan):
        from .bandwidth import bandwidth_verdict

        with clock.phase("verify"):
            return bandwidth_verdict(instance, answer, certificate)
    if isinstance(answer, Placement):
        from .placement import placement_verdict

        with clock.phase("verify"):
            return placement_verdict(instance, answer, certificate)
    from .collective import bound_verdict, collective_verdict

    if isinstance(answer, BoundOnly):
        return bound_verdict(instance, certificate, clock)
    return collective_verdict(instance, answer, certificate, clock)
