"""Objective types of answers, and contradictions between objectives and proved bounds.

Objectives of different types are never ranked against one another.
"""

from __future__ import annotations

from fractions import Fraction
from functools import singledispatch

from ..core.answers import Answer, BandwidthPlan, BoundOnly, ChunkOrders, Placement
from ..core.design import Design, Objective
from ..core.instance import Instance
from ..core.orbits import TreeOrbits
from ..core.schedule import Schedule
from ..core.streamed_steps import StreamedSteps
from ..core.topology import Topology
from ..core.translated_trees import TranslatedTrees
from ..core.trees import TreePacking
from ..core.units import TIMES, amount


def question_of(instance: Instance, answer: Answer) -> dict[str, object]:
    """Return the objective type of an answer.

    Returns
    -------
    dict
        Metrics: ``clock``, the time model of the objective, and ``question``, a description of its whole type.
    """
    clock, question = _clock_and_question(answer, instance)
    return {"clock": clock, "question": question}


@singledispatch
def _clock_and_question(answer: Answer, instance: Instance) -> tuple[str, str]:
    return "simulated", "completion time"


@_clock_and_question.register
def _(answer: TreePacking | TreeOrbits, instance: Instance) -> tuple[str, str]:
    return "flow", "flow, latency left out"


@_clock_and_question.register
def _(answer: Schedule | TranslatedTrees | StreamedSteps, instance: Instance) -> tuple[str, str]:
    if (timing := instance.timing) is None:
        return "simulated", "completion time"
    parts = "chunks may be split" if timing.fluid else _whole(instance)
    varies = ", bandwidth varies" if timing.changes else ""
    clock = timing.semantics.value
    return clock, f"epochs of {amount(timing.epoch_s, TIMES)} ({clock}), {parts}{varies}"


@_clock_and_question.register
def _(answer: ChunkOrders, instance: Instance) -> tuple[str, str]:
    if isinstance(instance.network, Topology):
        return "simulated", "completion time"
    return "pipeline", f"dimensions of a fabric in turn, {_whole(instance)}"


@_clock_and_question.register
def _(answer: BandwidthPlan, instance: Instance) -> tuple[str, str]:
    cost = (instance.design or Design()).objective is Objective.PERF_PER_COST
    return "iteration", "training iteration times cost" if cost else "training iteration"


@_clock_and_question.register
def _(answer: Placement, instance: Instance) -> tuple[str, str]:
    return "load", "largest load of a GPU, added up over layers"


@_clock_and_question.register
def _(answer: BoundOnly, instance: Instance) -> tuple[str, str]:
    return "bound", "a bound alone, no schedule"


def _whole(instance: Instance) -> str:
    return f"whole chunks, c = {', '.join(str(demand.chunks) for demand in instance.demands)}"


#: Relative difference up to which a bound that a solver attests may pass an answer: solvers keep to constraints and to
#: their own optimum no better than this.
ATTESTED_TOLERANCE = 1e-6


#: Relative rounding errors of a simulated time.
SIMULATED = 1e-9


def margin_of(reached: Fraction | float) -> float:
    """Return the relative margin of a time, 0 if it is exact."""
    return 0.0 if isinstance(reached, Fraction) else SIMULATED


def contradictions(
    reached: Fraction | float, proved: Fraction | float | None, margin: float = 0.0, unit: str = "s"
) -> list[str]:
    """Report a contradiction between an answer and its certificate; empty if there is none.

    Parameters
    ----------
    reached : Fraction or float
        Time of the answer, measured by the verifier.
    proved : Fraction or float or None
        Lower bound that the certificate proves.
    margin : float
        Relative rounding error of the two numbers; 0 if both are exact, or exact and rounded to the nearest float.
    """
    if proved is None or reached >= proved * (1 - Fraction(margin)):
        return []
    return [f"contradiction: it takes {float(reached)!r} {unit}, but its certificate proves {float(proved)!r} {unit}"]
