"""Which question the objective of an answer answers.

Numbers that answer different ones are never ranked against one another.
"""

from __future__ import annotations

from ..core.answers import Answer, BandwidthPlan, BoundOnly, ChunkOrders, Placement
from ..core.design import Design, Objective
from ..core.instance import Instance
from ..core.orbits import TreeOrbits
from ..core.schedule import Schedule
from ..core.streamed import StreamedSteps
from ..core.topology import Topology
from ..core.translated import TranslatedTrees
from ..core.trees import TreePacking
from ..core.units import TIMES, amount


def question_of(instance: Instance, answer: Answer) -> dict[str, object]:
    """Return what the objective of an answer is.

    Returns
    -------
    dict
        Metrics: ``clock``, how the objective counts time, and ``question``, that and everything else that it is the
        answer to, in words.
    """
    match answer:
        case TreePacking() | TreeOrbits():
            clock, question = "flow", "flow, latency left out"
        case Schedule() | TranslatedTrees() | StreamedSteps() if instance.timing is not None:
            clock, question = instance.timing.semantics.value, _epochs(instance)
        case ChunkOrders() if not isinstance(instance.network, Topology):
            clock, question = "pipeline", f"dimensions of a fabric in turn, {_whole(instance)}"
        case BandwidthPlan():
            cost = (instance.design or Design()).objective is Objective.PERF_PER_COST
            clock, question = "iteration", "training iteration times cost" if cost else "training iteration"
        case Placement():
            clock, question = "load", "largest load of a GPU, added up over layers"
        case BoundOnly():
            clock, question = "bound", "a bound alone, no schedule"
        case _:
            clock, question = "simulated", "completion time"
    return {"clock": clock, "question": question}


def _epochs(instance: Instance) -> str:
    assert instance.timing is not None  # noqa: S101 (the caller has looked)
    timing = instance.timing
    parts = "chunks may be split" if timing.fluid else _whole(instance)
    varies = ", bandwidth varies" if timing.changes else ""
    return f"epochs of {amount(timing.epoch_s, TIMES)} ({timing.semantics.value}), {parts}{varies}"


def _whole(instance: Instance) -> str:
    return f"whole chunks, c = {', '.join(str(demand.chunks) for demand in instance.demands)}"
