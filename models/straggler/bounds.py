"""Lower bound in seconds by rounds: the late rank's whole chunks."""

from __future__ import annotations

from fractions import Fraction

from ...algorithms.bounds.schedule_bounds import Bound
from ...algorithms.schedules.problem import GroupProblem
from ...core.bounds import WholeChunks
from .problem import chunk_bytes


def whole_chunk_bound(problem: GroupProblem) -> Bound:
    """Return ``(C - 1 + ceil(log2 n))`` chunk times if all ranks are equally fast, see the certificate's proof."""
    leaving = [Fraction(0)] * len(problem.topology.nodes)
    for link, (tail, _) in zip(problem.topology.links, problem.topology.link_ends, strict=True):
        leaving[tail] += link.bandwidth_Bps
    chunk, doublings = chunk_bytes(problem), (problem.n - 1).bit_length() - 1
    fastest = max(leaving[node] for node in problem.topology.rank_nodes)
    seconds = problem.demand.size_bytes / leaving[problem.nodes[0]] + doublings * chunk / fastest
    return seconds, WholeChunks(problem.ranks[0], chunk)
