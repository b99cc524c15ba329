"""Objective types of answers, and contradictions to proved bounds.

Objectives of different types are never ranked against one another.
"""

from fractions import Fraction

from ..core.answers import Answer, BandwidthPlan, BoundOnly, ChunkOrders, Placement
from ..core.design import Design, Objective
from ..core.equal_steps import StreamedSteps, TranslatedTrees
from ..core.instance import Instance
from ..core.schedule import Schedule
from ..core.topology import Topology
from ..core.trees import TreeOrbits, TreePacking
from ..core.units import TIMES, amount


def question_of(instance: Instance, answer: Answer) -> dict[str, object]:
    """Return the objective type of an answer: ``clock``, the time model, and ``question``, a description."""
    clock, question = "simulated", "completion time"
    whole = f"whole chunks, c = {', '.join(str(demand.chunks) for demand in instance.demands)}"
    match answer:
        case TreePacking() | TreeOrbits():
            clock, question = "flow", "flow, latency left out"
        case Schedule() | TranslatedTrees() | StreamedSteps() if (timing := instance.timing) is not None:
            parts = "chunks may be split" if timing.fluid else whole
            varies = ", bandwidth varies" if timing.changes else ""
            clock = timing.semantics.value
            question = f"epochs of {amount(timing.epoch_s, TIMES)} ({clock}), {parts}{varies}"
        case ChunkOrders() if not isinstance(instance.network, Topology):
            clock, question = "pipeline", f"dimensions of a fabric in turn, {whole}"
        case BandwidthPlan():
            cost = (instance.design or Design()).objective is Objective.PERF_PER_COST
            clock, question = "iteration", "training iteration times cost" if cost else "training iteration"
        case Placement():
            clock, question = "load", "largest load of a GPU, added up over layers"
        case BoundOnly():
            clock, question = "bound", "a bound alone, no schedule"
    return {"clock": clock, "question": question}


#: Relative difference up to which a bound that a solver attests may pass an answer: solvers keep to constraints and to
#: their own optimum no better than this.
ATTESTED_TOLERANCE = 1e-6
SIMULATED = 1e-9  #: Relative rounding errors of a simulated time.


def contradictions(
    reached: Fraction | float, proved: Fraction | float | None, margin: float | None = None, unit: str = "s"
) -> list[str]:
    """Report an answer below its proved bound by more than a margin, which is 0 for exact times."""
    if margin is None:
        margin = 0.0 if isinstance(reached, Fraction) else SIMULATED
    if proved is None or reached >= proved * (1 - Fraction(margin)):
        return []
    return [f"contradiction: it takes {float(reached)!r} {unit}, but its certificate proves {float(proved)!r} {unit}"]
