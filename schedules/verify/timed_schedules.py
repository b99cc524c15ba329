"""Verification of timed schedules by their instance's time model."""

from __future__ import annotations

from ...core.instance import Instance
from ...core.schedule import Schedule
from ...core.timing import Semantics
from .answers import check_answer, count_epochs
from .circuits import verify_circuits
from .epochs import finish_epochs, verify_epochs
from .network import Network
from .report import Findings
from .sends import verify_times


@check_answer.register
def _(schedule: Schedule, instance: Instance, network: Network, findings: Findings) -> None:
    if instance.timing is None:
        verify_times(instance, network, schedule, findings)
    elif instance.timing.semantics is Semantics.CIRCUIT:
        verify_circuits(instance, network, schedule, findings)
    else:
        verify_epochs(instance, network, schedule, findings)


@count_epochs.register
def _(schedule: Schedule, instance: Instance) -> int | None:
    return None if instance.timing is None else finish_epochs(instance, schedule)
