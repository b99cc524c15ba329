"""One schedule of the answers for all groups of all phases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from math import gcd, lcm

import numpy as np

from ...algorithms.schedules.problem import GroupProblem, check_size
from ...core.collective import Collective
from ...core.ragged import offsets, ranges
from ...core.schedule import Chunks, Ints, Sends, StepSchedule
from .group_answers import Shares, Site
from .levels import Hierarchy
from .phases import AR, BROADCAST, GATHER, REDUCE, RS, SCATTER, Phase


@dataclass(frozen=True, eq=False)
class PhaseAnswers:
    """A phase with a method's answers for its groups.

    Parameters
    ----------
    bases : array of int
        First position of every group, sorted.
    sites : list of Site
        The network of each, in the same order.
    shares : list of Shares
        The answer for each; groups with equal networks share one.
    """

    phase: Phase
    bases: Ints
    sites: list[Site]
    shares: list[Shares]

    @property
    def steps(self) -> int:
        """Steps of the groups with the most."""
        return max(shares.steps for shares in self.shares)


def cuts_of(filled: Sequence[PhaseAnswers]) -> list[Fraction]:
    """Return cuts of blocks, from 0 to 1, so that every phase's shares are unions of slices."""
    known = {id(shares): shares for each in filled for shares in each.shares}
    return sorted({Fraction(0), Fraction(1), *(end for shares in known.values() for end in shares.end)})


@dataclass(frozen=True, eq=False)
class _Rows:
    """Sends of one slice each, sorted by part: the group's own nodes, and where in the table of paths."""

    first: Ints
    slice: Ints
    send: Ints


def _rows(shares: Shares, cuts: Sequence[Fraction]) -> _Rows:
    """Cut all sends into slices."""
    place = {cut: index for index, cut in enumerate(cuts)}
    low = np.array([place[cut] for cut in shares.begin], dtype=np.int64)[shares.sends.chunk]
    high = np.array([place[cut] for cut in shares.end], dtype=np.int64)[shares.sends.chunk]
    send = np.repeat(np.arange(len(low)), high - low)
    piece = ranges(low, high - low)
    part = shares.part[shares.sends.chunk][send]
    order = np.argsort(part, kind="stable")
    first = np.searchsorted(part[order], np.arange(int(shares.part.max()) + 2))
    return _Rows(first.astype(np.int64), piece[order], send[order])


@dataclass(frozen=True, eq=False)
class _Columns:
    """Sends of blocks' slices on the whole network."""

    chunk: Ints
    source: Ints
    target: Ints
    reduce: Ints
    step: Ints
    ahead: Ints
    hops: Ints
    links: Ints


def _columns(filled: PhaseAnswers, slices: Sequence[Fraction], block_index: Ints, start: int) -> list[_Columns]:
    """Return the sends of a phase, batched by groups with the same answer."""
    phase, found = filled.phase, []
    group = np.searchsorted(filled.bases, phase.base)
    answer = np.unique([id(shares) for shares in filled.shares], return_inverse=True)[1]
    for kind in range(int(answer.max()) + 1):
        alike = np.flatnonzero(answer == kind)
        shares = filled.shares[int(alike[0])]
        rows = _rows(shares, slices)
        nodes = np.stack([filled.sites[int(g)].nodes for g in alike])
        links = np.stack([filled.sites[int(g)].links for g in alike])
        mine = np.flatnonzero(answer[group] == kind)
        where = np.searchsorted(alike, group[mine])
        first, last = rows.first[phase.part[mine]], rows.first[phase.part[mine] + 1]
        task = np.repeat(np.arange(len(mine)), last - first)
        row = ranges(first, last - first)
        send, at = rows.send[row], where[task]
        sends = shares.sends.take(send)
        found.append(
            _Columns(
                block_index[phase.block[mine][task]] * (len(slices) - 1) + rows.slice[row],
                nodes[at, sends.source],
                nodes[at, sends.target],
                sends.reduce.astype(np.int64),
                start + shares.step[send],
                phase.ahead[mine][task],
                sends.hops,
                links[np.repeat(at, sends.hops), sends.path_links],
            )
        )
    return found


def compose_phases(
    problem: GroupProblem,
    kind: Collective,
    hierarchy: Hierarchy,
    blocks: Ints,
    block_bytes: Fraction,
    filled: Sequence[PhaseAnswers],
    pieces: int,
) -> StepSchedule:
    """Concatenate the phases, piece by piece of every block.

    Parameters
    ----------
    kind : Collective
        The collective that the phases make up.
    filled : sequence of Filled
        Phases with answers, in order.
    pieces : int
        Pieces of every block, each of which goes from phase to phase as soon as it can. Sends of a step with the most
        levels ahead come first.
    """
    cuts = cuts_of(filled)
    count = len(cuts) - 1
    index = np.full(int(blocks.max()) + 1, -1)
    index[blocks] = np.arange(len(blocks))
    columns: list[_Columns] = []
    start = 0
    for each in filled:
        columns += _columns(each, cuts, index, start)
        start += each.steps
    names = ("chunk", "source", "target", "reduce", "step", "ahead", "hops", "links")
    chunk, source, target, reduce, step, ahead, hops, links = (
        np.concatenate([getattr(column, name) for column in columns]) for name in names
    )
    check_size(len(chunk) * pieces, len(links) * pieces)
    offset = offsets(hops)
    once = Sends(chunk, source, target, reduce.astype(np.bool_), offset, links)
    piece = np.repeat(np.arange(pieces), len(step))
    order = np.lexsort((piece, np.tile(-ahead, pieces), np.tile(step, pieces)))
    piece = piece[order]
    sends = once.take(order % len(step))
    every = Sends(
        (sends.chunk // count * pieces + piece) * count + sends.chunk % count,
        sends.source,
        sends.target,
        sends.reduce,
        sends.path_offset,
        sends.path_links,
    )
    chunks = _chunks(kind, hierarchy, blocks, block_bytes / pieces, pieces, cuts)
    made = StepSchedule(problem.instance.sha256, chunks, every, step[order % len(step)])
    return _once(made, problem.topology.rank_nodes[int(hierarchy.order[0])]) if kind is BROADCAST else made


def _once(schedule: StepSchedule, root: int) -> StepSchedule:
    """Drop sends to the root of a broadcast, or to a node that has the data already."""
    sends = schedule.sends
    nodes = int(max(sends.source.max(), sends.target.max())) + 1
    first = np.unique(sends.chunk * nodes + sends.target, return_index=True)[1]
    kept = np.sort(first[sends.target[first] != root])
    return replace(schedule, sends=sends.take(kept), step=schedule.step[kept])


def _chunks(
    kind: Collective,
    hierarchy: Hierarchy,
    blocks: Ints,
    piece_bytes: Fraction,
    pieces: int,
    cuts: Sequence[Fraction],
) -> Chunks:
    """Return every slice of every piece of every block."""
    scale = lcm(*(cut.denominator for cut in cuts))
    units = [int((b - a) * scale) for a, b in pairwise(cuts)]
    common = gcd(*units)
    n, each = len(hierarchy.order), pieces * len(units)
    held = needed = np.full(len(blocks), n)
    if kind is Collective.ALL_TO_ALL:
        held, needed = np.divmod(blocks, n)
    elif kind in (Collective.ALL_GATHER, GATHER):
        held = blocks
    elif kind in (RS, SCATTER):
        needed = blocks
    if kind in (BROADCAST, SCATTER):
        held = np.zeros_like(blocks)
    if kind in (REDUCE, GATHER):
        needed = np.zeros_like(blocks)
    ranks = [int(rank) for rank in hierarchy.order]
    return Chunks(
        np.tile(np.array(units, dtype=np.int64) // common, len(blocks) * pieces),
        piece_bytes * common / scale,
        (*((rank,) for rank in ranks), tuple(sorted(ranks))),
        np.repeat(held, each),
        np.repeat(needed, each),
        np.full(len(blocks) * each, kind in (RS, AR, REDUCE)),
    )
