"""Answers of runs and files, and their verification."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core.errors import InputError
from ..studies.inputs import Spec, load
from .runs import Run

if TYPE_CHECKING:
    from ..core.answers import Answer
    from ..core.bounds import Certificate
    from ..core.instance import Instance
    from ..core.outcome import Verdict
    from ..schedules.files import ScheduleFile


def verify(
    run: Run | ScheduleFile | Spec, answer: Answer | None = None, certificate: Certificate | None = None
) -> Verdict:
    """Verify an answer: find violations, recompute the objective, and compute the bound that the certificate proves.

    Parameters
    ----------
    run : Run, ScheduleFile or instance
        A solved problem; or an instance, or what :func:`load` takes, with its answer.
    answer : Answer, optional
        Answer to verify instead of the run's.
    certificate : Certificate, optional
        Certificate of the bound; by default the run's.
    """
    from ..schedules import verdict_of

    if answer is None:
        certificate = certificate or (run.proved_by if isinstance(run, Run) else getattr(run, "certificate", None))
    return verdict_of(*instance_and_answer(run, answer), certificate)


def instance_and_answer(run: Run | ScheduleFile | Spec, answer: Answer | None) -> tuple[Instance, Answer]:
    """Return the problem and the answer of a run, a schedule file, or an instance with an answer.

    Raises
    ------
    InputError
        If an instance is given without an answer.
    """
    from ..schedules.files import ScheduleFile

    if isinstance(run, Run):
        return run.problem, run.schedule if answer is None else answer
    if isinstance(run, ScheduleFile):
        return run.instance, run.answer if answer is None else answer
    if answer is None:
        raise InputError(f"expected the result of cwb.solve, or an answer with {type(run).__name__}", source="answer")
    return load(run), answer


def instance_and_sends(run: Run | ScheduleFile | Spec, answer: Answer | None) -> tuple[Instance, Answer]:
    """Return problem and answer like :func:`instance_and_answer`; chunk orders become sends on links.

    Raises
    ------
    InputError
        If an instance is given without an answer, or there are too many sends.
    """
    from ..core.answers import ChunkOrders
    from ..schedules.multirail import to_sends

    instance, found = instance_and_answer(run, answer)
    return to_sends(instance, found) if isinstance(found, ChunkOrders) else (instance, found)
