"""``bfb-heterogeneous``: LP (14), for links of different bandwidths and latencies, and the loop that removes links which only cost latency.

LP (14) counts the latency of every link, used or not. Where that of an unused link is all that a node waits for, the link is removed there
and the program solved again. When no such link is left, U is the smallest time in which the used links, each with its latency, can
bring everything: a removed link has a latency of at least U, so that it could bring nothing in time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from ...core.budget import Budget
from ...core.errors import Unsupported
from ...core.instance import Instance
from ...core.method import Outcome
from ...core.solver import Solver
from ...core.topology import Topology
from ..common.breadth_first.shares import Shares
from .answer import posed
from .choices import Choices, choices_of
from .formulation import build_heterogeneous
from .options import Options
from .solved import Solve, Solved, run_each

#: Times that the linear program can hold beside one another.
WIDEST = 10**15

#: Relative difference at which two times of a solver are the same, and part of a shard that is none.
SAME = 1e-7


@dataclass(frozen=True, eq=False)
class Timed(Solved):
    """Parts of all shards over links that differ; ``time`` is in seconds.

    Parameters
    ----------
    topology : Topology
        The network.
    shard_bytes : Fraction
        Size of a shard, M/N.
    """

    topology: Topology
    shard_bytes: Fraction

    def time_of(self, shares: Shares) -> Fraction:
        """Sum over the steps of the largest latency and transfer time of a link that is used, in seconds."""
        piece_bytes = self.shard_bytes / shares.pieces
        total = Fraction(0)
        for row in shares.carried().tolist():
            used = ((link, count) for link, count in zip(self.topology.links, row, strict=False) if count)
            total += max(link.latency_s + count * piece_bytes / link.bandwidth_Bps for link, count in used)
        return total

    def metrics(self, time: Fraction, relaxed: Fraction) -> dict[str, Any]:
        """Seconds of all steps one by one, in pieces and as the program has it."""
        return {"step_time_s": float(time), "step_time_relaxed_s": float(relaxed)}


def run(instance: Instance, solver: Solver, budget: Budget, options: Options) -> Outcome:
    """Solve LP (14) of all nodes and steps, without the links that only cost latency (``Method.run``)."""
    topology, demand = posed(instance)
    shard_bytes = demand.size_bytes / len(topology.nodes)

    def broadcast(network: Topology, solve: Solve) -> Timed:
        parts, times = fastest(network, shard_bytes, solve, budget)
        choices = choices_of(network)
        longest = [max(U for (_, t), U in times.items() if t == step + 1) for step in range(choices.graph.steps)]
        return Timed(choices, parts, demand.chunks, Fraction(sum(longest)), network, shard_bytes)

    return run_each(instance, solver, budget, broadcast, options)


def fastest(
    network: Topology, shard_bytes: Fraction, solve: Solve, budget: Budget
) -> tuple[dict[tuple[int, int], float], dict[tuple[int, int], float]]:
    """Solve LP (14), and again without useless links wherever there are any.

    Returns
    -------
    dict of (v, e) to float
        Part of v's shard that link e carries.
    dict of (u, t) to float
        U in seconds.
    """
    with budget.clock.phase("build"):
        choices = choices_of(network)
    parts = {(v, e): 0.0 for (v, _), links in choices.over.items() for e in links}
    times: dict[tuple[int, int], float] = {}
    unit_s = shard_bytes / max(link.bandwidth_Bps for link in network.links)
    longest_s = max(shard_bytes / link.bandwidth_Bps + link.latency_s for link in network.links)
    if longest_s > WIDEST * unit_s:
        factor = f"{float(longest_s / unit_s):.2g}"
        raise Unsupported(
            f"links differ in time by a factor of {factor}; the linear program holds for up to {WIDEST:,}"
        )
    while choices.carries:
        with budget.clock.phase("build"):
            model = build_heterogeneous(choices, network, shard_bytes, unit_s)
        solve(model)
        parts |= {index: x.value for index, x in model.x.items()}
        found = {index: U.value * float(unit_s) for index, U in model.U.items()}
        times |= found
        useless = unused(choices, network, parts, found)
        again = {(choices.target[e], t) for e, t in useless}
        parts |= {(v, e): 0.0 for e, t in useless for v in choices.carries[e, t]}
        choices = choices.only(again, useless)
    return parts, times


def unused(
    choices: Choices,
    network: Topology,
    parts: Mapping[tuple[int, int], float],
    times: Mapping[tuple[int, int], float],
) -> set[tuple[int, int]]:
    """Find the links that carry nothing in a step, and whose latency alone is the time of it."""
    return {
        (e, t)
        for (e, t), shards in choices.carries.items()
        if (latency_s := float(network.links[e].latency_s)) > 0
        and latency_s >= times[choices.target[e], t] * (1 - SAME)
        and sum(parts[v, e] for v in shards) <= SAME * len(shards)
    }
