"""Whole pieces from solutions, and outcomes from shares (docs/methods/bfb.md)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import floor, lcm
from typing import Any, TypeAlias

import numpy as np

from ...algorithms.bounds.schedule_bounds import best_bound
from ...algorithms.breadth_first.broadcast import Broadcast, PieceRanges
from ...algorithms.schedules.compose import concatenate, reverse
from ...algorithms.schedules.problem import equal_chunks
from ...core.budget import Budget, why_unschedulable
from ...core.collective import Collective
from ...core.instance import Instance
from ...core.outcome import Outcome, Status
from ...core.schedule import Ints, Sends, StepSchedule
from .problem import Choices

#: A schedule with more sends than this is written down only if it is asked for: each takes some 200 bytes and 3 us to
#: make and to verify.
SENDS_UNASKED = 2**24

MAX_SENDS = 2**26  #: With more than this it is not.
MOST_PIECES = 5040  #: Pieces of a shard up to which parts are kept as a solver found them.
WHOLE = 1e-6  #: A number of pieces that a solver finds this close to a whole one is that one.


class Balance(Broadcast):
    """Optimal breadth-first broadcast of every shard, over links of one bandwidth."""

    @property
    def time(self) -> Fraction:
        """T_B, equation (2), in M/B."""
        return self.bandwidth()


@dataclass(frozen=True, eq=False)
class ShardParts:
    """Parts of all shards over all links, as a solver found them."""

    choices: Choices
    parts: Mapping[tuple[int, int], float]  #: By (v, e): part of v's shard that link e carries.
    pieces: int  #: Number of pieces of which the parts are multiples, or into which the shards are to be cut.
    time: Fraction  #: Time of the parts: T_B in M/B, or seconds where links differ.
    links_differ: bool = False  #: True if steps are timed with the latency and bandwidth of each link.

    @property
    def steps(self) -> int:
        """T_L: number of steps."""
        return self.choices.graph.steps

    def split(self, pieces: int) -> PieceRanges:
        """Round all parts to whole pieces, as in theorem 20."""
        graph = self.choices.graph
        slot_of = {int(link): slot for row in graph.link for slot, link in enumerate(row.tolist()) if link >= 0}
        rows: list[tuple[int, int, int, int, int, int]] = []
        for (v, u), links in self.choices.over.items():
            step, start = int(graph.distance[u, v]) - 1, 0
            for e, count in zip(links, round_parts([self.parts[v, e] for e in links], pieces), strict=True):
                if count:
                    rows.append((u, v, slot_of[e], step, start, start + count))
                    start += count
        return PieceRanges(graph, pieces, *np.array(rows, dtype=np.int64).T)


#: Breadth-first broadcast of every shard on one network, by theorem 19 or by a solver.
AllGather: TypeAlias = Balance | ShardParts


def outcome(
    instance: Instance,
    budget: Budget,
    broadcasts: Sequence[AllGather],
    *,
    schedule: bool | None,
    metrics: Mapping[str, Any] | None = None,
) -> Outcome:
    """Write the broadcasts of :func:`networks`, one for each part of the collective, as one schedule.

    Without an answer if ``schedule`` is False, or the schedule would be too large, which is a limit only if it is True.
    See :func:`_is_optimal` for the status of a schedule.
    """
    demand, nodes = instance.demands[0], len(instance.topology.nodes)
    pieces = lcm(demand.chunks, *(one.pieces for one in broadcasts))
    sends = len(broadcasts) * pieces * nodes * (nodes - 1)
    relaxed = sum((one.time for one in broadcasts), Fraction(0))
    entries = {"T_L": sum(one.steps for one in broadcasts), "chunks": pieces, "sends": sends, **(metrics or {})}

    def measures(time: Fraction) -> dict[str, Any]:
        if isinstance(broadcasts[0], ShardParts) and broadcasts[0].links_differ:
            return {"step_time_s": float(time), "step_time_relaxed_s": float(relaxed)}
        return {"T_B": str(time)}

    bound, certificate = best_bound(instance)
    most = SENDS_UNASKED if schedule is None else MAX_SENDS
    late = "" if schedule is False or sends > most else why_unschedulable(sends)
    if schedule is False or sends > most or late:
        entries |= measures(relaxed)
        why = late or "no schedule was asked for"
        if schedule is not False and not late:
            why = f"the schedule has {sends:,} sends; expected at most {most:,}"
            why += "" if schedule else ", or -O schedule=true"
        status = Status.LIMIT if schedule or late else Status.FEASIBLE
        return Outcome(status, None, None, float(bound), certificate, f"metrics alone: {why}", metrics=entries)
    with budget.clock.phase("schedule"):
        split = [one.split(pieces) for one in broadcasts]
        parts = [all_gather(shares, demand.size_bytes, instance.sha256) for shares in split]
        if demand.collective is not Collective.ALL_GATHER:
            parts[0] = reverse(parts[0])
        answer = parts[0] if len(parts) == 1 else concatenate(*parts)
    time = sum((time_of(one, shares) for one, shares in zip(broadcasts, split, strict=True)), Fraction(0))
    entries |= measures(time)
    if _is_optimal(instance, split[0]):
        return Outcome(Status.OPTIMAL, answer, float(bound), float(bound), certificate, metrics=entries)
    return Outcome(Status.FEASIBLE, answer, None, float(bound), certificate, metrics=entries)


def _is_optimal(instance: Instance, shares: PieceRanges) -> bool:
    """Check whether a schedule is known to take only as long as all data needs to enter a node.

    This holds for an all_gather over links of one bandwidth and no latency with T_B = (N - 1)/N (docs/methods/bfb.md).
    """
    topology, demand = instance.topology, instance.demands[0]
    one_rate = len({link.bandwidth_Bps for link in topology.links}) == 1
    if demand.collective is not Collective.ALL_GATHER or not one_rate or any(e.latency_s for e in topology.links):
        return False
    nodes = len(topology.nodes)
    return shares.bandwidth_time() == Fraction(nodes - 1, nodes)


def time_of(broadcast: AllGather, shares: PieceRanges) -> Fraction:
    """Return T_B of shares in M/B; where links differ, the seconds of the slowest used link, summed over the steps."""
    if isinstance(broadcast, Balance) or not broadcast.links_differ:
        return shares.bandwidth_time()
    piece_bytes, total = broadcast.choices.shard_bytes / shares.pieces, Fraction(0)
    for row in shares.count_pieces().tolist():
        loads = ((link, count) for link, count in zip(broadcast.choices.topology.links, row, strict=False) if count)
        total += max(link.latency_s + count * piece_bytes / link.bandwidth_Bps for link, count in loads)
    return total


def round_parts(parts: Sequence[float], pieces: int) -> list[int]:
    """Round parts of sum 1 to whole pieces: down, then up those that lose most until none is missing."""
    exact = [part * pieces for part in parts]
    whole = [floor(amount + WHOLE) for amount in exact]
    by_loss = sorted(range(len(parts)), key=lambda i: whole[i] - exact[i])
    for i in by_loss[: pieces - sum(whole)]:
        whole[i] += 1
    return whole


def all_gather(shares: PieceRanges, size_bytes: Fraction, instance_sha256: str) -> StepSchedule:
    """Expand the orbit's shares to a schedule of all nodes; chunk ``v P + i`` is v's piece i."""
    nodes, pieces = shares.graph.nodes, shares.pieces
    ranges = shares.everywhere().single_pieces()
    chunk, source = ranges.source * pieces + ranges.start, shares.graph.source[ranges.target, ranges.slot]
    count, sends = nodes * pieces, len(chunk)
    holders = np.repeat(np.arange(nodes), pieces)
    order = farthest_first(chunk, source, ranges.target, ranges.step, count, nodes)
    return StepSchedule(
        instance_sha256,
        equal_chunks(range(nodes), size_bytes / count, holders, np.full(count, nodes), reduced=False),
        Sends(
            chunk[order],
            source[order],
            ranges.target[order],
            np.zeros(sends, dtype=np.bool_),
            np.arange(sends + 1),
            ranges.link[order],
        ),
        ranges.step[order],
    )


def farthest_first(chunk: Ints, source: Ints, target: Ints, step: Ints, chunks: int, nodes: int) -> Ints:
    """Order sends by step, and in a step by remaining steps, the most first.

    So a node has what it forwards while the rest of the step before is still on its way, and its links do not wait.
    """
    steps = int(step.max(initial=0)) + 1
    ahead = np.zeros(chunks * nodes, dtype=np.int16)
    here, there = chunk * nodes + source, chunk * nodes + target
    for now in (np.flatnonzero(step == each) for each in range(steps - 1, 0, -1)):
        np.maximum.at(ahead, here[now], 1 + ahead[there[now]])
    order: Ints = np.argsort((step * steps - ahead[there]).astype(np.int32), kind="stable")
    return order


def read(choices: Choices, model: Any) -> ShardParts:
    """Read a solved LP (1) or, where shards are cut into pieces, program (13)."""
    pieces = choices.pieces
    if pieces is not None:
        load = {index: Fraction(round(W.value), pieces) for index, W in model.W.items()}
    else:
        links = np.count_nonzero(choices.graph.link >= 0, axis=1).tolist()
        load = {(u, t): Fraction(U.value).limit_denominator(links[u]) for (u, t), U in model.U.items()}
        pieces = lcm(*(value.denominator for value in load.values()))
    largest = [Fraction(0)] * choices.graph.steps
    for (_, t), value in load.items():
        largest[t - 1] = max(largest[t - 1], value)
    time = Fraction(choices.graph.degree, choices.graph.nodes) * sum(largest)  # T_B, equation (2), of the loads U
    return ShardParts(choices, parts_of(choices, model), pieces, time)


def parts_of(choices: Choices, model: Any) -> dict[tuple[int, int], float]:
    """Return the part of v's shard that link e carries in a solved model, by (v, e)."""
    if hasattr(model, "y"):
        return {index: y.value / choices.pieces for index, y in model.y.items()}
    return {index: x.value for index, x in model.x.items()}


def schedule_of(model: Any, choices: Choices) -> StepSchedule:
    """Return the schedule of a solved model, in its pieces or those that the parts need (``Formulation.extract``).

    A solver need not end in a vertex, where all parts are multiples of one fraction; parts that need too many pieces
    are rounded.
    """
    parts, pieces = parts_of(choices, model), choices.pieces
    if pieces is None:
        enough = lcm(*(Fraction(part).limit_denominator(MOST_PIECES).denominator for part in parts.values()))
        pieces = min(enough, MOST_PIECES)
    split = ShardParts(choices, parts, pieces, Fraction(0)).split(pieces)
    return all_gather(split, choices.shard_bytes * choices.graph.nodes, choices.instance_sha256)
