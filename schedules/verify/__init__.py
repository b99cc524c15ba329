"""The verifier: says whether a schedule does what its instance asks for, and what is wrong if not.

It shares no code with what makes schedules, and believes nothing but the network and the demand. Sends of a step read
what was held before the step; sends of a timed schedule read what has arrived when they start, see :mod:`.order` and,
for links, :mod:`.capacity`; where the instance has a grid of epochs, they are checked on it, see :mod:`.epochs` and
:mod:`.circuits`. Data is replayed as versions of chunks, see :mod:`.holdings` and :mod:`.sums`, unless all copies are
seen to be right at once, see :mod:`.copies`; trees are checked one by one without being turned into sends, see
:mod:`.trees`; of those that are moved to all ranks only the given ones are, see :mod:`.translated` and :mod:`.orbits`;
sends that are made step by step are checked as they come, see :mod:`.streamed`.
"""

from __future__ import annotations

from ...core.answers import Answer
from ...core.errors import InputError
from ...core.instance import Instance
from ...core.orbits import TreeOrbits
from ...core.schedule import Schedule, StepSchedule
from ...core.streamed import StreamedSteps
from ...core.timing import Semantics
from ...core.translated import TranslatedTrees
from ...core.trees import TreePacking
from .circuits import verify_circuits
from .epochs import verify_epochs
from .network import network_of
from .orbits import verify_orbits
from .report import Findings, Report, Violation
from .sends import verify_sends
from .streamed import verify_streamed
from .translated import verify_translated
from .trees import heaviest_load, verify_trees

__all__ = ["Report", "Violation", "heaviest_load", "verify"]


def verify(instance: Instance, answer: Answer) -> Report:
    """Check a schedule against its instance.

    Parameters
    ----------
    instance : Instance
        The problem: a network of nodes and links, and a collective.
    answer : StepSchedule, Schedule, TreePacking, TreeOrbits, TranslatedTrees or StreamedSteps
        The answer to verify.

    Returns
    -------
    Report
        Violations and warnings; the first ones of each kind.

    Raises
    ------
    InputError
        If the instance has no explicit network or no collective, or the answer is no schedule.
    """
    findings = Findings()
    network = network_of(instance)
    if not isinstance(answer, StepSchedule | Schedule | TreePacking | TreeOrbits | TranslatedTrees | StreamedSteps):
        raise InputError("expected a schedule or trees", place="answer")
    if answer.instance_sha256 != instance.sha256:
        text = f"is for the instance {answer.instance_sha256[:12]}…, not for {instance.sha256[:12]}…"
        findings.add(Violation("instance", text))
        return findings.report()
    if isinstance(answer, TreePacking):
        verify_trees(instance, network, answer, findings)
    elif isinstance(answer, TreeOrbits):
        verify_orbits(instance, network, answer, findings)
    elif isinstance(answer, TranslatedTrees):
        verify_translated(instance, network, answer, findings)
    elif isinstance(answer, StreamedSteps):
        verify_streamed(instance, network, answer, findings)
    elif (
        isinstance(answer, Schedule) and instance.timing is not None and instance.timing.semantics is Semantics.CIRCUIT
    ):
        verify_circuits(instance, network, answer, findings)
    elif isinstance(answer, Schedule) and instance.timing is not None:
        verify_epochs(instance, network, answer, findings)
    else:
        verify_sends(instance, network, answer, findings)
    return findings.report()
