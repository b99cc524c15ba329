"""Jobs as sets that a model is indexed by."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Set
from dataclasses import dataclass, replace

from ...core.topology import Topology
from .graph import graph_of
from .jobs import Jobs, jobs_of


@dataclass(frozen=True, eq=False)
class Choices:
    """Who may send what to whom, for all nodes and steps.

    Parameters
    ----------
    jobs : Jobs
        Every shard that every node receives.
    over : dict of (v, u) to list of e
        Links over which u may receive v's shard, f(v).
    carries : dict of (e, t) to list of v
        Shards that a link may carry in a step, counted from 1.
    target : dict of e to u
        Where the links lead.
    """

    jobs: Jobs
    over: dict[tuple[int, int], list[int]]
    carries: dict[tuple[int, int], list[int]]
    target: dict[int, int]

    def only(self, receiving: Set[tuple[int, int]], without: Set[tuple[int, int]]) -> Choices:
        """Keep what some nodes receive in some steps, (u, t), without some links in some steps, (e, t)."""
        carries = {
            (e, t): shards
            for (e, t), shards in self.carries.items()
            if (self.target[e], t) in receiving and (e, t) not in without
        }
        over: dict[tuple[int, int], list[int]] = defaultdict(list)
        for (e, _), shards in carries.items():
            for v in shards:
                over[v, self.target[e]].append(e)
        return Choices(self.jobs, dict(over), carries, self.target)


def choices_of(topology: Topology) -> Choices:
    """List the choices on a network.

    Raises
    ------
    InputError
        If a node cannot be reached from another one.
    """
    # Every node has rows of its own in a model, whether or not all nodes look the same.
    jobs = jobs_of(replace(graph_of(topology), digits=()))
    over: dict[tuple[int, int], list[int]] = {}
    carries: dict[tuple[int, int], list[int]] = defaultdict(list)
    rows = zip(jobs.step.tolist(), jobs.target.tolist(), jobs.shard.tolist(), strict=True)
    for job, (step, u, v) in enumerate(rows):
        links = [int(jobs.graph.link[u, slot]) for slot in jobs.slots_of(job)]
        over[v, u] = links
        for e in links:
            carries[e, step + 1].append(v)
    return Choices(jobs, over, dict(carries), {e: b for e, (_, b) in enumerate(topology.link_ends)})
