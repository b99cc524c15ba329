"""From an instance to an outcome: networks in ticks, the bound, the portfolio, and the schedule of its transfers."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from math import ceil
from typing import Any

import numpy as np

from ...algorithms.graphs.translations import ColouredNetwork, find_reflections
from ...algorithms.matching.events import ChoiceRule, gather_by_events, match_in_turns
from ...algorithms.matching.network import RankNetwork, arcs_of, largest_unwound_degree, reaches_all, reversed_arcs
from ...algorithms.matching.step_matching import TransferRows, gather_in_steps, room_for
from ...algorithms.matching.trees import Cayley, grow, opposite, overlap_all_reduce, recognize
from ...algorithms.schedules.problem import equal_chunks
from ...core.answers import Answer
from ...core.budget import Budget, require_schedulable
from ...core.collective import Collective
from ...core.equal_steps import TranslatedTrees
from ...core.errors import InputError, Unsupported
from ...core.instance import Instance
from ...core.outcome import Outcome, Status
from ...core.schedule import Bools, Ints, Schedule, Sends, offsets, ranges
from ...core.solver import Solver
from ...core.topology import Topology
from ...core.trees import TreeKind
from .bounds import bound_of, half_ticks
from .method import COLLECTIVES, TacosOptions, chunk_bytes, longest
from .portfolio import SynthesizedGather, can_stream, gather, make_stream, run_stream


@dataclass(frozen=True, eq=False)
class ArcTransfers:
    """Transfers over arcs of the network. Starts are in ticks; ``adds`` says whether the receiver adds the data."""

    arcs: RankNetwork
    arc: Ints
    chunk: Ints
    start: Ints
    adds: Bools


def transfers_of(half: SynthesizedGather, members: Bools, begin: int, *, adds: bool) -> ArcTransfers:
    """Return an all-gather from a tick on, or if it adds, the reduce-scatter that reverses it, on reversed arcs.

    Transfers to ranks that neither need nor forward them are left out.
    """
    keep = _needed_transfers(half.arcs, half.rows, members)
    arc, chunk, start = (column[keep].astype(np.int64) for column in (half.rows.arc, half.rows.chunk, half.rows.start))
    start = begin + (half.ticks - start - half.arcs.ticks[arc] if adds else start)
    arcs = reversed_arcs(half.arcs) if adds else half.arcs
    return ArcTransfers(arcs, arc, chunk, start, np.full(len(arc), adds))


def _needed_transfers(arcs: RankNetwork, rows: TransferRows, members: Bools) -> Ints | slice:
    """Positions of the transfers that bring a chunk to a member, or to where it is sent on to one."""
    if members.all():
        return slice(None)
    sends_on: set[tuple[int, int]] = set()
    rows_to_keep: list[int] = []
    head, chunk, tail = (column.tolist() for column in (rows.head, rows.chunk, arcs.tail[rows.arc]))
    for row in np.argsort(-rows.start, kind="stable").tolist():
        if members[head[row]] or (head[row], chunk[row]) in sends_on:
            sends_on.add((tail[row], chunk[row]))
            rows_to_keep.append(row)
    return np.array(sorted(rows_to_keep), dtype=np.int64)


def schedule(instance: Instance, ranks: Sequence[int], parts: Sequence[ArcTransfers]) -> Schedule:
    """Return a schedule of transfers for an instance with a timing. Chunk ``i c + j`` is chunk j of the i-th rank."""
    demand, timing = instance.demand, instance.timing
    assert demand is not None and timing is not None  # noqa: S101 (posed)
    node = np.array(instance.topology.rank_nodes, dtype=np.int64)
    columns: list[tuple[Ints, Ints, Ints, Bools, Ints, Ints, Ints, Ints]] = []
    for part in parts:
        lengths = np.array([len(path) for path in part.arcs.paths], dtype=np.int64)
        flat = np.array([link for path in part.arcs.paths for link in path], dtype=np.int64)
        hops = lengths[part.arc]
        links = flat[part.arc if len(flat) == len(lengths) else ranges(offsets(lengths)[part.arc], hops)]
        tail, head = (node[ends][part.arc] for ends in (part.arcs.tail, part.arcs.head))
        end = part.start + part.arcs.ticks[part.arc]
        columns.append((part.chunk, tail, head, part.adds, hops, links, part.start, end))
    chunk, source, target, adds, hops, links, start, end = (
        column[0] if len(column) == 1 else np.concatenate(column) for column in zip(*columns, strict=True)
    )
    sends = Sends(chunk, source, target, adds, offsets(hops), links)
    start_s, end_s = (np.asarray(ticks * float(timing.epoch_s), dtype=np.float64) for ticks in (start, end))
    n, kind, size = len(ranks), demand.collective, chunk_bytes(demand, instance.npus)
    own = np.repeat(np.arange(n), demand.chunks)
    everyone = np.full_like(own, n)
    holder, receiver = everyone if kind.sums else own, everyone if kind.copies else own
    chunks = equal_chunks(ranks, size, holder, receiver, reduced=kind.sums)
    return Schedule(instance.sha256, chunks, sends, start_s, end_s)


SENDS_UNASKED = 2**20  #: A schedule of more sends is given as trees where the network allows it.

#: A schedule of more sends is not written down: each takes some 60 bytes here and more in the verifier.
MAX_SENDS = 2**24

DEGREES = (1, 2, 3)  #: Degrees to which switches are unwound, next to keeping their ports.
MAX_CHUNKS = 2**22  #: Chunks of all ranks together; more would not fit into memory.

#: Sends up to which both halves of an all-reduce are tried at once, and what a tree's depth then weighs.
_MAX_OVERLAPPED = 4_000_000
_DEPTHS = (0.2, 0.5, 1.0)

#: Which way trees go for a collective.
_TREES = dict(zip(COLLECTIVES, (TreeKind.OUT, TreeKind.IN, TreeKind.BOTH), strict=True))


@dataclass(frozen=True, eq=False)
class SynthesisTask:
    """A synthesis problem in ticks. ``bound`` is a lower bound on schedules on the grid, in ticks."""

    instance: Instance
    topology: Topology
    kind: Collective
    chunks: int
    ranks: tuple[int, ...]
    owner: Ints
    members: Bools
    tick_s: Fraction
    bound: int


@dataclass(frozen=True, eq=False)
class Synthesis:
    """A schedule, how long it takes in ticks, and its metrics."""

    answer: Answer | None
    ticks: int
    metrics: dict[str, Any]


def run(instance: Instance, solver: Solver, budget: Budget, options: TacosOptions) -> Outcome:
    """Synthesize a schedule of a posed instance (``Method.solve``)."""
    topology, demand, timing = instance.network, instance.demand, instance.timing
    if not isinstance(topology, Topology) or demand is None or timing is None:
        raise Unsupported("expected an explicit network and a collective")
    ranks = demand.group(instance.npus)
    if (chunks := len(ranks) * demand.chunks) > MAX_CHUNKS:
        raise InputError(f"{chunks:,} chunks of all ranks; expected at most {MAX_CHUNKS:,}", place="collective.chunks")
    members = np.zeros(instance.npus, dtype=np.bool_)
    members[list(ranks)] = True
    size = chunk_bytes(demand, instance.npus)
    with budget.clock.phase("bounds"):
        plain = arcs_of(topology, size, timing.epoch_s, longest(chunks))
        if not reaches_all(plain, members, through_members=False):
            raise InputError("not every rank can be reached from every other one", place="network.links")
        bound_s, certificate = bound_of(instance, plain, members)
        budget.tell_bound(bound_s, certificate)
        on_grid = bound_of(instance, replace(plain, least=plain.ticks), members)[0] if plain.is_rounded else bound_s
    owner = np.repeat(np.array(ranks, dtype=np.int64), demand.chunks)
    bound = ceil(on_grid / timing.epoch_s)
    task = SynthesisTask(
        instance, topology, demand.collective, demand.chunks, ranks, owner, members, timing.epoch_s, bound
    )
    with budget.clock.phase("compile"):
        warm_up()
    with budget.clock.phase("synthesis") as lap:
        if _streams(task, plain, options):
            synthesis = _stream(task, plain, budget)
        else:
            synthesis = _trees(task, budget, options) or _sends(task, plain, size, budget, options)
    if synthesis is None:
        text = f"no attempt reached all ranks{' in the time given' if budget.is_exhausted else ''}"
        return Outcome(Status.LIMIT, bound=float(bound_s), certificate=certificate, message=text)
    seconds = synthesis.ticks * timing.epoch_s
    times = {"synthesis_s": lap.cpu_seconds, "synthesized_time_s": float(seconds), "lower_bound_s": float(bound_s)}
    metrics = {**synthesis.metrics, **times}
    if synthesis.answer is None:
        text = f"metrics alone: more than {MAX_SENDS:,} sends are not written down"
        return Outcome(Status.FEASIBLE, None, None, float(bound_s), certificate, text, metrics=metrics)
    status = Status.OPTIMAL if seconds == bound_s else Status.FEASIBLE
    text = f"times are rounded up to ticks of {float(task.tick_s):.3g} s, the bound down" if plain.is_rounded else ""
    return Outcome(status, synthesis.answer, float(seconds), float(bound_s), certificate, text, metrics=metrics)


@cache
def warm_up() -> None:
    """Have all engines compiled, or read from where they were kept, so that their time is not the synthesis's."""
    two = np.array([0, 1], dtype=np.int64)
    arcs = RankNetwork(
        2, two, two[::-1].copy(), two * 0 + 1, two * 0 + 1, ((0,), (1,)), ((0,), (1,)), two * 0 - 1, two * 0
    )
    rows = room_for(4)
    everyone = np.ones(2, dtype=np.bool_)
    gather_in_steps(arcs.incoming, two, everyone, 0, 0, 9, rows)
    list(make_stream(arcs, 1, (), 0)())
    match_in_turns(arcs.tables, two, everyone, 0, 9, rows)
    gather_by_events(arcs.tables, two, everyone, ChoiceRule(0, 0, True, True, 0), 1, 9, rows)
    overlap_all_reduce(arcs, two[::-1].copy(), two, everyone, 1.0, 0)
    grow(Cayley((2,), np.array([[1, 0]]), np.array([[1, 0]])), 1, 0)


def _trees(task: SynthesisTask, budget: Budget, options: TacosOptions) -> Synthesis | None:
    """Return one tree for all ranks, if the network is vertex-transitive and such an answer is wanted."""
    sends = task.kind.passes * len(task.owner) * (len(task.ranks) - 1)
    gives_trees = options.answer == "trees" or (options.answer == "auto" and sends > SENDS_UNASKED)
    if not gives_trees or options.variant == "paper" or not task.members.all():
        return None
    cayley = recognize(task.topology)
    if cayley is not None and task.kind is not Collective.ALL_GATHER:  # over the links turned around
        alike = set(cayley.after[:, 0].tolist()) == set(cayley.before[:, 0].tolist())
        both = task.kind is Collective.ALL_REDUCE
        cayley = None if both and not alike else Cayley(cayley.sizes, cayley.before, cayley.after)
    if cayley is None:
        if options.answer == "trees":
            raise Unsupported("answer=trees: the network does not look the same from every rank")
        return None
    least = -(-(len(task.ranks) - 1) * task.chunks // len(cayley.after))
    best = None
    for turn in range(options.restarts):
        if best is not None and (best[1] == least or budget.is_exhausted):
            break
        edges = grow(cayley, task.chunks, budget.seed + turn)
        steps = int(edges[3].max()) + 1
        if best is None or steps < best[1]:
            best = edges, steps, turn + 1
    assert best is not None  # noqa: S101 (at least one attempt)
    (copy, parent, child, step), steps, attempts = best
    kind = _TREES[task.kind]
    answer = TranslatedTrees(task.instance.sha256, kind, cayley.sizes, copy, parent, child, step)
    ticks = task.kind.passes * steps * _step_ticks(task)
    metrics = {"engine": "one tree, moved", "attempts": attempts, "sends": sends, "overlapped": False}
    return Synthesis(answer, ticks, metrics)


def _streams(task: SynthesisTask, plain: RankNetwork, options: TacosOptions) -> bool:
    """Return whether sends are streamed and not kept: on request, or if too many without a tree."""
    if options.answer in ("schedule", "trees") or options.variant == "paper":
        return False
    fits = can_stream(plain, len(task.topology.links), task.members, task.kind)
    if options.answer == "stream" and not fits:
        raise Unsupported("answer=stream: expected equal links, for an all_reduce both ways, no switches, all ranks")
    many = len(task.owner) * (len(task.ranks) - 1) > MAX_SENDS
    return options.answer == "stream" or (many and fits and recognize(task.topology) is None)


def _stream(task: SynthesisTask, plain: RankNetwork, budget: Budget) -> Synthesis | None:
    """Stream sends step by step; an all-reduce first reverses its gather over opposite links."""
    motions = find_reflections(ColouredNetwork.of(task.topology))
    answer = run_stream(task.instance.sha256, plain, task.chunks, _TREES[task.kind], motions, budget)
    if answer is None:
        return None
    metrics: dict[str, Any] = {"engine": "steps, not kept", "attempts": 1, "sends": answer.sends, "overlapped": False}
    return Synthesis(answer, answer.steps * _step_ticks(task), metrics)


def _step_ticks(task: SynthesisTask) -> int:
    link, demand = task.topology.links[0], task.instance.demand
    assert demand is not None  # noqa: S101 (posed)
    return int(-(-(link.latency_s + chunk_bytes(demand, task.instance.npus) / link.bandwidth_Bps) // task.tick_s))


def _sends(
    task: SynthesisTask, plain: RankNetwork, size: Fraction, budget: Budget, options: TacosOptions
) -> Synthesis | None:
    """Return every send, found by the portfolio."""
    sends = len(task.owner) * (len(task.members) - 1)
    if sends > 4 * MAX_SENDS:
        raise Unsupported(f"{sends:,} sends; expected at most {4 * MAX_SENDS:,}")
    if sends <= MAX_SENDS:
        require_schedulable(sends * task.kind.passes)
    networks = _networks(task, plain, size, options)
    halves: list[SynthesizedGather] = []
    parts: list[ArcTransfers] = []
    begin = 0
    both = task.kind is Collective.ALL_REDUCE
    for adds in (True, False):
        if task.kind is (Collective.ALL_GATHER if adds else Collective.REDUCE_SCATTER):
            continue
        turned = [(name, reversed_arcs(arcs) if adds else arcs) for name, arcs in networks]
        bound = half_ticks(reversed_arcs(plain) if adds else plain, task.members, task.chunks) if both else task.bound
        half = gather(
            turned, task.owner, task.members, bound, budget, variant=options.variant, restarts=options.restarts
        )
        if half is None:
            return None
        halves.append(half)
        parts.append(transfers_of(half, task.members, begin, adds=adds))
        begin += half.ticks
    ticks, engines = begin, dict.fromkeys(half.engine for half in halves)
    metrics: dict[str, Any] = {"engine": ", then ".join(engines), "overlapped": False}
    metrics["attempts"] = sum(half.attempts for half in halves)
    if both:
        metrics["back_to_back_s"] = float(ticks * task.tick_s)
        plan = _both_at_once(task, plain, ticks, budget, options)
        if plan is not None:
            ticks, parts = plan
            metrics |= {"engine": "trees, both halves at once", "overlapped": True}
    count = sum(len(part.arc) for part in parts)
    metrics["sends"] = count
    answer = schedule(task.instance, task.ranks, parts) if count <= MAX_SENDS else None
    return Synthesis(answer, ticks, metrics)


def _networks(
    task: SynthesisTask, plain: RankNetwork, size: Fraction, options: TacosOptions
) -> list[tuple[str, RankNetwork]]:
    if not task.topology.switches:
        return [("links", plain)]
    most = largest_unwound_degree(task.topology)
    if options.unwind is not None:
        if options.unwind > most:
            raise InputError(f"{options.unwind}; expected at most {most} on this network", place="unwind")
        degrees: Sequence[int] = (options.unwind,)
    elif options.variant == "paper":
        degrees = (1,) if most else (0,)
    else:
        degrees = (0, *(d for d in DEGREES if d <= most))
    most = longest(len(task.owner))
    forms = [
        (f"unwound {d}", arcs_of(task.topology, size, task.tick_s, most, d)) if d else ("ports", plain) for d in degrees
    ]
    if not any(reaches_all(arcs, task.members, through_members=False) for _, arcs in forms):
        raise Unsupported(f"some ranks cannot be reached if switches are {forms[0][0]}; expected unwind=0")
    return forms


def _both_at_once(
    task: SynthesisTask, plain: RankNetwork, ticks: int, budget: Budget, options: TacosOptions
) -> tuple[int, list[ArcTransfers]] | None:
    """Try to do better than both halves in a row: ticks and the schedule, None if that does not succeed."""
    sends = 2 * len(task.owner) * (len(task.ranks) - 1)
    is_worth_it = options.overlap and options.variant == "portfolio" and task.members.all() and ticks > task.bound
    back = opposite(plain) if is_worth_it and sends <= _MAX_OVERLAPPED else None
    if back is None:
        return None
    best = None
    for turn in range(min(options.restarts, 2 * len(_DEPTHS))):
        if budget.is_exhausted or ticks <= task.bound:
            break
        depth = _DEPTHS[turn % len(_DEPTHS)]
        rows, adds, last = overlap_all_reduce(plain, back, task.owner, task.members, depth, budget.seed + turn)
        if last < ticks:
            best, ticks = (rows, adds), last
    if best is None:
        return None
    rows, adds = best
    arc, chunk = (np.asarray(column, dtype=np.int64) for column in (rows.arc, rows.chunk))
    return ticks, [ArcTransfers(plain, arc, chunk, rows.start, adds)]
