"""The verifier: independent checks and measurements of answers. Nothing here imports a method."""

from __future__ import annotations

from ..core.answers import Answer, BandwidthPlan, BoundOnly, Placement
from ..core.bounds import Certificate
from ..core.budget import Clock, NoClock
from ..core.instance import Instance
from ..core.verdict import Verdict


def judge(
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
        from .bandwidth import judge_bandwidth_plan

        with clock.phase("verify"):
            return judge_bandwidth_plan(instance, answer, certificate)
    if isinstance(answer, Placement):
        from .placement import judge_placement

        with clock.phase("verify"):
            return judge_placement(instance, answer, certificate)
    from .collective import judge_bound, judge_collective

    if isinstance(answer, BoundOnly):
        return judge_bound(instance, certificate, clock)
    return judge_collective(instance, answer, certificate, clock)
