"""The verifier's operations on answers by class, implemented beside the checks of each class."""

from __future__ import annotations

from functools import singledispatch

from ...core.answers import Answer
from ...core.errors import InputError
from ...core.instance import Instance
from ...core.schedule import Schedule, StepSchedule
from ...core.trees import Forest, TreePacking
from .network import Network
from .report import Findings

Whole = StepSchedule | Schedule | TreePacking  #: An answer that has all its sends or trees itself.


@singledispatch
def check_answer(answer: Answer, instance: Instance, network: Network, findings: Findings) -> None:
    """Add the violations of an answer to the findings; the answer belongs to the instance."""
    raise InputError("expected a schedule or trees", place="answer")


@singledispatch
def count_epochs(answer: Answer, instance: Instance) -> int | None:
    """Return the epochs up to the last arrival; None if the answer is not on a grid."""
    return None


def has_epochs(answer: Answer) -> bool:
    """Return whether answers of this class are on the instance's grid of epochs, if it has one."""
    return count_epochs.dispatch(type(answer)) is not count_epochs.dispatch(object)


@singledispatch
def write_out(answer: Answer, instance: Instance) -> Whole:
    """Expand an answer to all sends or trees that it represents."""
    raise InputError(f"{type(answer).__name__} has no sends; expected a schedule or a packing of trees")


@write_out.register
def _(answer: StepSchedule | Schedule | TreePacking, instance: Instance) -> Whole:
    return answer


@singledispatch
def link_units(forest: Forest, network: Network) -> list[int]:
    """Return the units on every link, counting both directions of reduce-then-broadcast trees."""
    raise InputError("expected trees", place="answer")
