"""What a schedule still does on a changed network, the same schedule led around what is lost, and the new optimum."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from ..algorithms.bounds.schedule_bounds import best_bound
from ..algorithms.schedules.reroute import Rerouted, reroute
from ..core.bounds import Certificate
from ..core.errors import InputError, Unsupported
from ..core.instance import Instance
from ..core.orbits import TreeOrbits, written_out
from ..core.schedule import Floats, Ints, Schedule, Sends, StepSchedule
from ..core.topology import Topology
from ..core.translated import TranslatedTrees
from ..core.trees import TreePacking
from ..schedules.completion import completion_of
from ..schedules.files import Written
from ..schedules.simulate import simulate
from ..schedules.verify import Report, verify
from ..schedules.verify.translated import expand
from .resilience import optimum_of

#: New paths, with the old ones' offsets and the bytes over each.
Part = tuple[Rerouted, tuple[Ints, Floats]]


@dataclass(frozen=True)
class Repaired:
    """A schedule on a changed network.

    Parameters
    ----------
    instance : Instance
        The changed problem.
    answer : StepSchedule, Schedule or TreePacking
        The schedule with new paths.
    report : Report
        Of the verifier.
    transfers, lost : int
        Sends, or edges of trees, and how many of them used a link that is gone.
    lost_part : float
        The part of all bytes on links that these were.
    nodes : tuple of str
        Senders and receivers of what has another path.
    before_s, after_s : float
        Completion time on the network as it was, and as it is.
    bound_s : Fraction
        No schedule of the changed problem is faster.
    certificate : Certificate
        Of the bound.
    """

    instance: Instance
    answer: StepSchedule | Schedule | TreePacking
    report: Report
    transfers: int
    lost: int
    lost_part: float
    nodes: tuple[str, ...]
    before_s: float
    after_s: float
    bound_s: Fraction
    certificate: Certificate


def repaired(instance: Instance, answer: Written, changed: Instance, pieces: int | None = None) -> Repaired:
    """Lead a schedule around links that are gone.

    Parameters
    ----------
    instance : Instance
        What the schedule is for.
    answer : StepSchedule, Schedule or TreePacking
        The schedule.
    changed : Instance
        The same nodes and collective with other links.
    pieces : int, optional
        Pieces of every tree, as the file of the schedule has them.

    Raises
    ------
    InputError
        If no path leads from a sender to a receiver any more.
    Unsupported
        If the form of the schedule, or a grid of epochs, has no paths that could be changed.
    """
    if instance.timing is not None:
        raise Unsupported("on a grid of epochs; expected a schedule without one")
    if isinstance(answer, TreeOrbits):
        answer = written_out(answer, _links(instance))
    elif isinstance(answer, TranslatedTrees):
        answer = expand(instance, answer)
    made: StepSchedule | Schedule | TreePacking
    if isinstance(answer, TreePacking):
        made, parts = _trees(instance, answer, changed)
    else:
        made, parts = _sends(instance, answer, changed)
    moved = [name for part, _ in parts for name in _ends(changed, part)]
    hops = [(np.diff(offset), size, part.moved) for part, (offset, size) in parts]
    total = sum(float((count * size).sum()) for count, size, _ in hops)
    lost = sum(float((count * size)[away].sum()) for count, size, away in hops)
    bound, certificate = _bound(changed)
    return Repaired(
        changed,
        made,
        verify(changed, made),
        sum(len(part.moved) for part, _ in parts),
        sum(int(part.moved.sum()) for part, _ in parts),
        lost / total if total else 0.0,
        tuple(dict.fromkeys(moved)),
        _seconds(instance, answer, pieces),
        _seconds(changed, made, pieces),
        bound,
        certificate,
    )


def _sends(
    instance: Instance, answer: StepSchedule | Schedule, changed: Instance
) -> tuple[StepSchedule | Schedule, list[Part]]:
    sends = answer.sends
    size: Floats = (answer.chunks.units * np.float64(answer.chunks.unit_bytes))[sends.chunk].astype(np.float64)
    part = reroute(_links(instance), _links(changed), sends.path_offset, sends.path_links, size)
    led = Sends(sends.chunk, sends.source, sends.target, sends.reduce, part.offset, part.links)
    parts: list[Part] = [(part, (sends.path_offset, size))]
    if isinstance(answer, StepSchedule):
        return replace(answer, instance_sha256=changed.sha256, sends=led), parts
    ordered = replace(answer, instance_sha256=changed.sha256, sends=led)
    trace = simulate(changed, ordered)
    return replace(ordered, start_s=trace.start_s, end_s=trace.end_s), parts


def _trees(instance: Instance, answer: TreePacking, changed: Instance) -> tuple[TreePacking, list[Part]]:
    size: Floats = np.repeat(answer.units.astype(np.float64) * float(answer.unit_bytes), np.diff(answer.edge_offset))
    part = reroute(_links(instance), _links(changed), answer.path_offset, answer.path_links, size)
    parts: list[Part] = [(part, (answer.path_offset, size))]
    reduction = None
    if answer.reduction is not None:
        reduction, more = _trees(instance, answer.reduction, changed)
        parts += more
    made = replace(
        answer,
        instance_sha256=changed.sha256,
        path_offset=part.offset,
        path_links=part.links,
        reduction=reduction,
    )
    return made, parts


def _seconds(instance: Instance, answer: StepSchedule | Schedule | TreePacking, pieces: int | None) -> float:
    """The completion time."""
    found = completion_of(instance, answer, pieces)
    if found.seconds is None:
        raise Unsupported(found.why or "it has no completion time")
    return found.seconds


def _links(instance: Instance) -> Topology:
    if not isinstance(instance.network, Topology):
        raise Unsupported("the network has no links")
    return instance.network


def _ends(changed: Instance, part: Rerouted) -> list[str]:
    """Names of the nodes at the ends of paths that have moved."""
    network = _links(changed)
    found: list[str] = []
    for path in np.flatnonzero(part.moved).tolist():
        first, last = part.links[part.offset[path]], part.links[part.offset[path + 1] - 1]
        found += [network.nodes[network.link_ends[first][0]].name, network.nodes[network.link_ends[last][1]].name]
    return found


def _bound(changed: Instance) -> tuple[Fraction, Certificate]:
    """The best bound of the changed problem that needs no schedule."""
    found = best_bound(changed)
    try:
        optimum = optimum_of(changed)
    except (InputError, Unsupported):
        return found
    return max(found, (optimum.bound_s, optimum.certificate), key=lambda bound: bound[0])
