"""What a schedule still does on a changed network, the same schedule led around what is lost, and the new optimum."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from ..algorithms.bounds.schedule_bounds import best_bound
from ..algorithms.schedules.changes import Change, Taken, Ways
from ..algorithms.schedules.contributions import depths
from ..algorithms.schedules.contributions import served as served_sends
from ..algorithms.schedules.loads import Loads
from ..algorithms.schedules.stand_in import stand_in
from ..algorithms.schedules.stand_in_trees import columns, served_trees, stand_in_trees
from ..core.bounds import Certificate
from ..core.errors import InputError, Unsupported
from ..core.instance import Instance
from ..core.orbits import TreeOrbits, written_out
from ..core.schedule import Bools, Chunks, Floats, Ints, Schedule, Sends, StepSchedule
from ..core.topology import Topology
from ..core.translated import TranslatedTrees
from ..core.trees import TreeKind, TreePacking
from ..schedules.completion import completion_of
from ..schedules.files import Written
from ..schedules.simulate import simulate
from ..schedules.verify import Report, verify
from ..schedules.verify.translated import expand
from .resilience import optimum_of

#: Into so many parts at most is a tree divided, and so many trees at most are made of parts.
MOST_PARTS, MOST_TREES = 16, 4096

#: Ways of a schedule in steps or in time, or of a pass of trees; which are gone; who has to be told of others.
Part = tuple[Ways, Bools, list[str]]


@dataclass(frozen=True)
class Repaired:
    """A schedule on a changed network.

    Parameters
    ----------
    instance : Instance
        The changed problem.
    answer : StepSchedule, Schedule or TreePacking
        The repaired schedule.
    report : Report
        Of the verifier.
    transfers, lost : int
        Sends, or edges of trees, of the old schedule, and how many of them used a link or a node that is gone.
    lost_part : float
        The part of all bytes on links that these were.
    served : float
        The part of what the ranks that are left lack at the start that the old schedule still brings them.
    nodes : tuple of str
        Those that send or receive anything else, or over another path.
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
    served: float
    nodes: tuple[str, ...]
    before_s: float
    after_s: float
    bound_s: Fraction
    certificate: Certificate


def repaired(instance: Instance, answer: Written, changed: Instance, pieces: int | None = None) -> Repaired:
    """Lead a schedule around links that are gone, and let others stand in for nodes that are gone.

    A grid of epochs is left: what is repaired is as fast as its links and its order of sends let it be.

    Parameters
    ----------
    instance : Instance
        What the schedule is for.
    answer : StepSchedule, Schedule or TreePacking
        The schedule.
    changed : Instance
        The collective of the nodes that are left, on links that may be others.
    pieces : int, optional
        Pieces of every tree, as the file of the schedule has them.

    Raises
    ------
    InputError
        If no path leads from a sender to a receiver any more.
    Unsupported
        If the form of the schedule has no paths that could be changed, or nobody can stand in for a lost node.
    """
    if instance.timing is not None:
        if not isinstance(answer, Schedule):
            raise Unsupported("on a grid of epochs; expected a schedule in time")
        instance, changed = replace(instance, timing=None), replace(changed, timing=None)
        answer = replace(answer, instance_sha256=instance.sha256)
    if isinstance(answer, TreeOrbits):
        answer = written_out(answer, _links(instance))
    elif isinstance(answer, TranslatedTrees):
        answer = expand(instance, answer)
    change = Change.of(_links(instance), _links(changed))
    made: StepSchedule | Schedule | TreePacking
    if isinstance(answer, TreePacking):
        made, parts, served = _trees(answer, change, changed)
    else:
        made, parts, served = _sends(answer, change, changed)
    total = sum(float(ways.carried.sum()) for ways, _, _ in parts)
    lost = sum(float(ways.carried[gone].sum()) for ways, gone, _ in parts)
    bound, certificate = _bound(changed)
    return Repaired(
        changed,
        made,
        verify(changed, made),
        sum(len(ways) for ways, _, _ in parts),
        sum(int(gone.sum()) for _, gone, _ in parts),
        lost / total if total else 0.0,
        served,
        tuple(dict.fromkeys(name for _, _, told in parts for name in told)),
        _seconds(instance, answer, pieces),
        _seconds(changed, made, pieces),
        bound,
        certificate,
    )


def _sends(
    answer: StepSchedule | Schedule, change: Change, changed: Instance
) -> tuple[StepSchedule | Schedule, list[Part], float]:
    sends, chunks = answer.sends, answer.chunks
    size = chunks.sizes_bytes[sends.chunk]
    ways = Ways(sends.source, sends.target, sends.path_offset, sends.path_links, size)
    number, source, target, reduce = np.arange(len(sends)), sends.source, sends.target, sends.reduce
    stays = np.ones(len(chunks), dtype=np.bool_)
    if change.lost:
        loads = Loads(change)
        loads.keep(ways)
        found = list(stand_in(change, answer, loads))
        stays = np.array([bool(moves) for moves in found], dtype=np.bool_)
        rows = [(move.send, move.source, move.target, move.reduce) for moves in found for move in moves]
        number, source, target, flags = np.array(rows, dtype=np.int64).reshape(-1, 4).T
        reduce = flags.astype(np.bool_)
    taken = Taken(source, target, number, size[number])
    path, gone = taken.led(ways, change), ways.gone(change)
    told = taken.told(ways, change, path.moved | (reduce != sends.reduce[number]), stays[sends.chunk])
    served = served_sends(answer, change.old.rank_nodes, set(change.lost), set(np.flatnonzero(gone).tolist()))
    chunk = (np.cumsum(stays) - 1)[sends.chunk[number]]
    led = Sends(chunk, change.node[source], change.node[target], reduce, path.offset, path.links)
    kept, parts = _chunks(chunks, stays, change), [(ways, gone, told)]
    if isinstance(answer, StepSchedule):
        step = np.unique(answer.step[number], return_inverse=True)[1].astype(np.int64)
        return StepSchedule(changed.sha256, kept, led, step), parts, served
    ordered = Schedule(changed.sha256, kept, led, answer.start_s[number], answer.end_s[number])
    return _timed(changed, ordered), parts, served


def _timed(changed: Instance, ordered: Schedule) -> Schedule:
    """A schedule with the times of a simulation.

    Links serve its sends in their old order, or each as soon as it is there if that is right and faster.
    """
    free = StepSchedule(changed.sha256, ordered.chunks, ordered.sends, depths(ordered, _links(changed).rank_nodes))
    found = []
    for each in (ordered, free):
        trace = simulate(changed, each)
        found.append(replace(ordered, start_s=trace.start_s, end_s=trace.end_s))
    faster = found[1].end_s.max() < found[0].end_s.max() and verify(changed, found[1]).ok
    return found[1] if faster else found[0]


def _chunks(chunks: Chunks, stays: Bools, change: Change) -> Chunks:
    """Chunks that are left, of ranks as they are numbered now."""
    if not change.lost:
        return chunks
    rank = change.rank
    groups = tuple(tuple(int(rank[old]) for old in group if rank[old] >= 0) for group in chunks.groups)
    used = np.unique([chunks.held_by[stays], chunks.needed_by[stays]])
    return Chunks(
        chunks.units[stays],
        chunks.unit_bytes,
        tuple(groups[group] for group in used.tolist()),
        np.searchsorted(used, chunks.held_by[stays]),
        np.searchsorted(used, chunks.needed_by[stays]),
        chunks.reduced[stays],
    )


def _trees(answer: TreePacking, change: Change, changed: Instance) -> tuple[TreePacking, list[Part], float]:
    new_number = {node: number for number, node in enumerate(change.new.tree_nodes)}
    numbers = [new_number.get(node, -1) for node in change.node[list(change.old.tree_nodes)].tolist()]
    place = np.array(numbers, dtype=np.int64)
    carried: Floats = answer.units.astype(np.float64) * float(answer.unit_bytes)
    old_ways = [_ways(change, part, carried[part.edge_tree]) for part in answer.passes]
    loads = Loads(change)
    for ways in old_ways:
        loads.keep(ways)
    split = max(1, min(MOST_PARTS, MOST_TREES // max(len(answer), 1))) if change.lost else 1
    found = list(stand_in_trees(change, answer, loads, split))
    which = np.array([number for number, _, _ in found], dtype=np.int64)
    units = answer.units[which] * np.array([count for _, count, _ in found], dtype=np.int64)
    unit_bytes = answer.unit_bytes / split
    size: Floats = units.astype(np.float64) * float(unit_bytes)
    root = place[[trees[0].root for _, _, trees in found]]
    passes: list[TreePacking] = []
    parts: list[Part] = []
    for at, (part, ways) in enumerate(zip(answer.passes, old_ways, strict=True)):
        offset, parent, child, number = columns([trees[at] for _, _, trees in found])
        taken = Taken(*_ends(change, part, parent, child), number, np.repeat(size, np.diff(offset)))
        path = taken.led(ways, change)
        stays = np.isin(part.edge_tree, which)
        parts.append((ways, ways.gone(change), taken.told(ways, change, path.moved, stays)))
        tree = (root, units, unit_bytes, offset, place[parent], place[child])
        passes.append(TreePacking(changed.sha256, part.kind, *tree, path.offset, path.links))
    served = served_trees(answer, set(np.flatnonzero(place < 0).tolist()), tuple(gone for _, gone, _ in parts))
    if answer.reduction is None:
        return passes[0], parts, served
    return replace(passes[1], kind=TreeKind.BOTH, reduction=passes[0]), parts, served


def _ways(change: Change, part: TreePacking, size: Floats) -> Ways:
    """Ways of the edges of trees."""
    return Ways(*_ends(change, part, part.parent, part.child), part.path_offset, part.path_links, size)


def _ends(change: Change, part: TreePacking, parent: Ints, child: Ints) -> tuple[Ints, Ints]:
    """Nodes from which and to which edges lead."""
    nodes = np.array(change.old.tree_nodes, dtype=np.int64)
    ends = nodes[parent], nodes[child]
    return ends if part.kind is not TreeKind.IN else (ends[1], ends[0])


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


def _bound(changed: Instance) -> tuple[Fraction, Certificate]:
    """The best bound of the changed problem that needs no schedule."""
    found = best_bound(changed)
    try:
        optimum = optimum_of(changed)
    except (InputError, Unsupported):
        return found
    return max(found, (optimum.bound_s, optimum.certificate), key=lambda bound: bound[0])
