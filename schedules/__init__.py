"""Verification and measurement of answers, independent of every method."""

from ..core.answers import Answer
from ..core.bounds import Certificate
from ..core.budget import Clock, NoClock
from ..core.instance import Instance
from ..core.outcome import Verdict


def verdict_of(
    instance: Instance, answer: Answer, certificate: Certificate | None = None, clock: Clock | None = None
) -> Verdict:
    """Check an answer against its instance and a certificate against both, and measure the answer."""
    from .collective import verdict

    return verdict(answer, instance, certificate, clock or NoClock())
