"""The judge: what is done to an answer by somebody who did not make it. Nothing here imports a method."""

from __future__ import annotations

from ..core.answers import Answer
from ..core.bounds import Certificate
from ..core.instance import Instance
from ..core.verdict import Verdict


def judge(instance: Instance, answer: Answer, certificate: Certificate | None = None) -> Verdict:
    """Check an answer against its instance and a certificate against both, and measure the answer.

    Parameters
    ----------
    instance : Instance
        The problem, as posed to the method.
    answer : Answer
        What the method found.
    certificate : Certificate or None
        What it says of its bound.

    Returns
    -------
    Verdict
        Violations, the objective and the bound recomputed, metrics.
    """
    from .bandwidth import judge_bandwidth_plan

    return judge_bandwidth_plan(instance, answer, certificate)
