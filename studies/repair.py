"""Schedules on a changed network: data still delivered, rerouted schedule, and new optimum."""

from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from ..algorithms.bounds.schedule_bounds import best_bound
from ..algorithms.schedules.changes import Change, Loads, ReplacementWays, Ways
from ..algorithms.schedules.compose import join_sends_at_switches
from ..algorithms.schedules.replay import in_order
from ..algorithms.schedules.stand_in import columns, depths, served_trees, stand_in, stand_in_trees
from ..algorithms.schedules.stand_in import served_share as served_sends
from ..core.bounds import Certificate
from ..core.errors import InputError, Unsupported
from ..core.instance import Instance
from ..core.schedule import Bools, Chunks, Floats, Ints, Schedule, Sends, StepSchedule
from ..core.topology import Topology
from ..core.trace import Routing
from ..core.trees import TreeKind, TreePacking
from ..schedules.completion import completion_of
from ..schedules.files import Written
from ..schedules.simulate import simulate
from ..schedules.verify import Report, verify
from ..schedules.verify.answers import write_out
from .resilience import optimum_of

#: Into so many parts at most is a tree divided, and so many trees at most are made of parts.
MOST_PARTS, MOST_TREES = 16, 4096

#: Ways of a schedule in steps or in time, or of a pass of trees; which are gone; who has to be told of others.
Part = tuple[Ways, Bools, list[str]]


@dataclass(frozen=True)
class RepairedSchedule:
    """A schedule on a changed network."""

    instance: Instance
    answer: StepSchedule | Schedule | TreePacking
    report: Report
    #: ``transfers`` and ``losses``: number of sends, or edges of trees, of the old schedule; and of those over a lost
    #: link or node.
    transfers: int
    losses: int
    lost_part: float  #: Share of lost transfers in all bytes on links.
    served: float  #: Share of the required bytes that the old schedule still delivers to the remaining ranks.
    nodes: tuple[str, ...]  #: Nodes whose transfers change in data or path.
    before_s: float
    after_s: float
    bound_s: Fraction  #: Lower bound on the completion time of the changed problem.
    certificate: Certificate
    #: Bound and certificate for the answer's objective, for trees the flow time; None if no bound is known.
    of_objective: tuple[Fraction, Certificate] | None

    def to_json(self) -> dict[str, Any]:
        """Return the output of ``cwb repair --json``."""
        return {
            "instance": self.instance.name,
            "transfers": self.transfers,
            "lost": self.losses,
            **{name: getattr(self, name) for name in ("lost_part", "served")},
            "nodes": list(self.nodes),
            **{name: getattr(self, name) for name in ("before_s", "after_s")},
            "bound_s": float(self.bound_s),
            "certificate": self.certificate.to_json(),
            "verified": self.report.ok,
        }


def repair_schedule(
    instance: Instance, answer: Written, changed: Instance, pieces: int | None = None
) -> RepairedSchedule:
    """Reroute a schedule around lost links, and replace lost nodes by others.

    Epoch grids are dropped: the repair is as fast as its links and its order of sends allow. The answer is correct for
    the instance; ``changed`` is the collective of the remaining nodes, possibly on other links; ``pieces`` are those of
    every tree in the file.

    Raises
    ------
    InputError
        If a sender has no path to a receiver any more.
    Unsupported
        If the form of the schedule has no paths that could be changed, no rank can replace a lost node, or the
        verifier rejects the repair.
    """
    if instance.timing is not None:
        if not isinstance(answer, Schedule):
            raise Unsupported("on a grid of epochs; expected a schedule in time")
        instance, changed = replace(instance, timing=None), replace(changed, timing=None)
        answer = replace(answer, instance_sha256=instance.sha256)
    answer = write_out(answer, instance)
    change = Change.of(_links(instance), _links(changed))
    plan: StepSchedule | Schedule | TreePacking
    if isinstance(answer, TreePacking):
        plan, parts, served = _trees(answer, change, changed)
        report = verify(changed, plan)
    else:
        plan, parts, served, report = _repaired_sends(answer, change, changed)
    if not report.ok:
        raise Unsupported(f"the repaired schedule is invalid: {report.violations[0]}")
    total = sum(float(ways.path_loads.sum()) for ways, _, _ in parts)
    lost_bytes = sum(float(ways.path_loads[is_lost].sum()) for ways, is_lost, _ in parts)
    best, flow = best_bound(changed), None
    with suppress(InputError, Unsupported):  # trees may not support the collective
        optimum = optimum_of(changed)
        flow = optimum.bound_s, optimum.certificate
    bound, certificate = flow if flow is not None and flow[0] > best[0] else best
    return RepairedSchedule(
        changed,
        plan,
        report,
        sum(len(ways) for ways, _, _ in parts),
        sum(int(is_lost.sum()) for _, is_lost, _ in parts),
        lost_bytes / total if total else 0.0,
        served,
        tuple(dict.fromkeys(name for _, _, names in parts for name in names)),
        _seconds(instance, answer, pieces),
        _seconds(changed, plan, pieces),
        bound,
        certificate,
        flow if isinstance(plan, TreePacking) else (bound, certificate),
    )


def _repaired_sends(
    answer: StepSchedule | Schedule, change: Change, changed: Instance
) -> tuple[StepSchedule | Schedule, list[Part], float, Report]:
    """Repair a schedule with its sends joined at switches, sums of switches only if needed, and verify it."""
    failed: Unsupported | None = None
    result = None
    for sums in (False, True):
        joined = join_sends_at_switches(change.old, answer, sums=sums)
        try:
            plan, parts, served = _sends(joined, change, changed)
        except Unsupported as error:
            failed = failed or error
            continue
        result = plan, parts, served, verify(changed, plan)
        if result[-1].ok:
            return result
    if result is None:
        assert failed is not None  # noqa: S101 (one or the other)
        raise failed
    return result


def _sends(
    answer: StepSchedule | Schedule, change: Change, changed: Instance
) -> tuple[StepSchedule | Schedule, list[Part], float]:
    sends, chunks = answer.sends, answer.chunks
    size = chunks.sizes_bytes[sends.chunk]
    ways = Ways(sends.source, sends.target, sends.path_offset, sends.path_links, size)
    number, source, target, reduce = np.arange(len(sends)), sends.source, sends.target, sends.reduce
    stays = np.ones(len(chunks), dtype=np.bool_)
    if change.losses:
        loads = Loads(change)
        loads.keep(ways)
        replacements = list(stand_in(change, answer, loads))
        stays = np.array([bool(moves) for moves in replacements], dtype=np.bool_)
        rows = [(move.send, move.source, move.target, move.reduce) for moves in replacements for move in moves]
        number, source, target, flags = np.array(rows, dtype=np.int64).reshape(-1, 4).T
        reduce = flags.astype(np.bool_)
    new_ways = ReplacementWays(source, target, number, size[number])
    path, is_lost = new_ways.reroute(ways, change), ways.lost_ways(change)
    names = new_ways.affected_nodes(ways, change, path.is_new | (reduce != sends.reduce[number]), stays[sends.chunk])
    served = served_sends(answer, change.old.rank_nodes, set(change.losses), set(np.flatnonzero(is_lost).tolist()))
    chunk = (np.cumsum(stays) - 1)[sends.chunk[number]]
    new_sends = Sends(chunk, change.node[source], change.node[target], reduce, path.offset, path.links)
    rest, parts = _chunks(chunks, stays, change), [(ways, is_lost, names)]
    if isinstance(answer, StepSchedule):
        step = np.unique(answer.step[number], return_inverse=True)[1].astype(np.int64)
        return StepSchedule(changed.sha256, rest, new_sends, step), parts, served
    ordered = Schedule(changed.sha256, rest, new_sends, answer.start_s[number], answer.end_s[number])
    return _simulate_times(changed, ordered), parts, served


def _simulate_times(changed: Instance, ordered: Schedule) -> Schedule:
    """Return a schedule with simulated times, in its old order, or in order of arrival if right and faster."""
    if not len(ordered.sends):
        return ordered
    steps = depths(ordered, _links(changed).rank_nodes)
    stepwise = StepSchedule(changed.sha256, ordered.chunks, ordered.sends, steps)
    trace = simulate(changed, stepwise, routing=Routing.FIXED)
    free = replace(ordered, start_s=trace.start_s, end_s=trace.end_s)
    in_turn = in_order(_links(changed), ordered)[0]
    faster = free.end_s.max() < in_turn.end_s.max() and verify(changed, free).ok
    return free if faster else in_turn


def _chunks(chunks: Chunks, stays: Bools, change: Change) -> Chunks:
    if not change.losses:
        return chunks
    rank = change.rank
    groups = tuple(tuple(int(rank[old]) for old in group if rank[old] >= 0) for group in chunks.groups)
    alive = np.unique([chunks.held_by[stays], chunks.needed_by[stays]])
    return Chunks(
        chunks.units[stays],
        chunks.unit_bytes,
        tuple(groups[group] for group in alive.tolist()),
        np.searchsorted(alive, chunks.held_by[stays]),
        np.searchsorted(alive, chunks.needed_by[stays]),
        chunks.reduced[stays],
    )


def _trees(answer: TreePacking, change: Change, changed: Instance) -> tuple[TreePacking, list[Part], float]:
    new_number = {node: number for number, node in enumerate(change.new.tree_nodes)}
    numbers = [new_number.get(node, -1) for node in change.node[list(change.old.tree_nodes)].tolist()]
    place = np.array(numbers, dtype=np.int64)
    carried: Floats = answer.units.astype(np.float64) * float(answer.unit_bytes)
    old_ways = [
        Ways(*_ends(change, part, part.parent, part.child), part.path_offset, part.path_links, carried[part.edge_tree])
        for part in answer.passes
    ]
    loads = Loads(change)
    for ways in old_ways:
        loads.keep(ways)
    split = max(1, min(MOST_PARTS, MOST_TREES // max(len(answer), 1))) if change.losses else 1
    rows = list(stand_in_trees(change, answer, loads, split))
    which = np.array([number for number, _, _ in rows], dtype=np.int64)
    units = answer.units[which] * np.array([count for _, count, _ in rows], dtype=np.int64)
    unit_bytes = answer.unit_bytes / split
    size: Floats = units.astype(np.float64) * float(unit_bytes)
    root = place[[trees[0].root for _, _, trees in rows]]
    passes: list[TreePacking] = []
    parts: list[Part] = []
    for at, (part, ways) in enumerate(zip(answer.passes, old_ways, strict=True)):
        offset, parent, child, number = columns([trees[at] for _, _, trees in rows])
        new_ways = ReplacementWays(*_ends(change, part, parent, child), number, np.repeat(size, np.diff(offset)))
        path = new_ways.reroute(ways, change)
        stays = np.isin(part.edge_tree, which)
        parts.append((ways, ways.lost_ways(change), new_ways.affected_nodes(ways, change, path.is_new, stays)))
        tree = (root, units, unit_bytes, offset, place[parent], place[child])
        passes.append(TreePacking(changed.sha256, part.kind, *tree, path.offset, path.links))
    served = served_trees(answer, set(np.flatnonzero(place < 0).tolist()), tuple(is_lost for _, is_lost, _ in parts))
    if answer.reduction is None:
        return passes[0], parts, served
    return replace(passes[1], kind=TreeKind.BOTH, reduction=passes[0]), parts, served


def _ends(change: Change, part: TreePacking, parent: Ints, child: Ints) -> tuple[Ints, Ints]:
    nodes = np.array(change.old.tree_nodes, dtype=np.int64)
    ends = nodes[parent], nodes[child]
    return ends if part.kind is not TreeKind.IN else (ends[1], ends[0])


def _seconds(instance: Instance, answer: StepSchedule | Schedule | TreePacking, pieces: int | None) -> float:
    completion = completion_of(instance, answer, pieces)
    if completion.seconds is None:
        raise Unsupported(completion.why or "it has no completion time")
    return completion.seconds


def _links(instance: Instance) -> Topology:
    if not isinstance(instance.network, Topology):
        raise Unsupported("the network has no links")
    return instance.network
