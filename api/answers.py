"""What is done with an answer: it is verified and simulated."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..core.errors import InputError
from .inputs import Spec, load
from .runs import Run

if TYPE_CHECKING:
    from ..core.answers import Answer
    from ..core.bounds import Certificate
    from ..core.instance import Instance
    from ..core.trace import SimulationMode, Trace
    from ..core.verdict import Verdict
    from ..schedules.files import ScheduleFile


def verify(
    run: Run | ScheduleFile | Spec, answer: Answer | None = None, certificate: Certificate | None = None
) -> Verdict:
    """Verify an answer: find violations, recompute the objective, and compute the bound that the certificate proves.

    Parameters
    ----------
    run : Run, ScheduleFile or instance
        What was solved; or an instance, or what :func:`load` takes, with its answer.
    answer : Answer, optional
        In place of the run's.
    certificate : Certificate, optional
        Of the bound; by default the run's.
    """
    from ..schedules import verdict_of

    if answer is None:
        certificate = certificate or (run.proved_by if isinstance(run, Run) else getattr(run, "certificate", None))
    return verdict_of(*answered(run, answer), certificate)


def simulate(
    run: Run | ScheduleFile | Spec, answer: Answer | None = None, mode: str | None = None, **settings: Any
) -> Trace:
    """Simulate a schedule: compute when each send starts and ends, and how busy the links are.

    Parameters
    ----------
    run : Run, ScheduleFile or instance
        What was solved; or an instance, or what :func:`load` takes, with its answer.
    answer : StepSchedule, Schedule or TreePacking, optional
        In place of the run's.
    mode : str, optional
        ``alpha-beta``, ``congestion-aware``, ``cut-through``, ``fair-share`` or, of trees, ``shares``. By default the
        model of all completion times: ``shares`` for trees, ``congestion-aware`` for all else.
    **settings
        ``barrier``, ``pieces`` and ``hold_latency``, see :func:`cwb.schedules.simulate.simulate`. Without ``pieces``,
        trees have as many as for their completion time.

    Raises
    ------
    InputError
        If there is no such mode, or the answer is no schedule.
    """
    from ..core.orbits import TreeOrbits
    from ..core.trees import TreePacking
    from ..schedules.completion import completion_of, mode_of
    from ..schedules.simulate import simulate as simulated

    instance, played = sent(run, answer)
    chosen = mode_of(played) if mode is None else mode_named(mode)
    if isinstance(played, TreePacking | TreeOrbits) and "pieces" not in settings:
        settings["pieces"] = completion_of(instance, played).pieces or 1
    return simulated(instance, played, chosen, **settings)


def mode_named(name: str) -> SimulationMode:
    """The simulation mode of a name.

    Raises
    ------
    InputError
        If there is none.
    """
    from ..core.text import one_of
    from ..core.trace import SimulationMode as Modes

    modes = [mode.value for mode in Modes]
    if name not in modes:
        raise InputError(f"{name!r} is unknown{one_of(name, modes)}", source="mode")
    return Modes(name)


def answered(run: Run | ScheduleFile | Spec, answer: Answer | None) -> tuple[Instance, Answer]:
    """The problem and the answer of a run or a schedule file, or of an instance and an answer.

    Raises
    ------
    InputError
        If it is an instance alone.
    """
    from ..schedules.files import ScheduleFile

    if isinstance(run, Run):
        return run.problem, run.schedule if answer is None else answer
    if isinstance(run, ScheduleFile):
        return run.instance, run.answer if answer is None else answer
    if answer is None:
        raise InputError(f"expected what cwb.solve gives, or an answer beside {type(run).__name__}", source="answer")
    return load(run), answer


def sent(run: Run | ScheduleFile | Spec, answer: Answer | None) -> tuple[Instance, Answer]:
    """As :func:`answered`, with orders of chunks written as sends on the links of their fabric.

    Raises
    ------
    InputError
        If it is an instance alone, or there are too many sends.
    """
    from ..core.answers import ChunkOrders
    from ..schedules.chunk_orders import lowered

    instance, found = answered(run, answer)
    return lowered(instance, found) if isinstance(found, ChunkOrders) else (instance, found)
