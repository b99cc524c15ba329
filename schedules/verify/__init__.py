"""The verifier: checks schedules against their instances and reports violations.

It shares no code with the methods, and trusts nothing but the network and the demand. Sends of a step read what was
held before the step; sends of a timed schedule read what has arrived when they start, see :mod:`.replay` and, for
links, :mod:`.sends`; on a grid of epochs, see :mod:`.epochs`. Data is replayed as versions of
chunks, see :mod:`.holdings`, unless one pass finds all copies valid, see :mod:`.copies`. Trees are checked one by one
without expansion into sends, see :mod:`.trees`; of translated trees only the given ones are checked, see
:mod:`.orbits` and :mod:`.equal_steps`; sends generated step by step are checked as they are generated, see
:mod:`.streams`.
"""

from ...core.answers import Answer
from ...core.instance import Instance
from . import epochs as epochs  # each registers what is done with its class
from . import equal_steps as equal_steps
from . import orbits as orbits
from . import streams as streams
from .answers import Findings, Report, Violation, check_answer
from .network import network_of
from .trees import heaviest_load

__all__ = ["Report", "Violation", "heaviest_load", "verify"]


def verify(instance: Instance, answer: Answer) -> Report:
    """Check a schedule against its instance, on an explicit network; report the first findings of each kind."""
    findings = Findings()
    network = network_of(instance)
    made_for = getattr(answer, "instance_sha256", instance.sha256)  # what is no schedule has none
    if made_for != instance.sha256:
        findings.add(Violation("instance", f"is for the instance {made_for[:12]}…, not for {instance.sha256[:12]}…"))
    else:
        check_answer(answer, instance, network, findings)
    return findings.report()
