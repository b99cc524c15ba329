"""One collective of a process group on an explicit network, for methods that schedule collective by collective."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from ...core.collective import CollectiveKind, Demand
from ...core.effort import require_schedulable
from ...core.errors import Unsupported
from ...core.instance import Instance
from ...core.schedule import Ints
from ...core.topology import Topology

#: A schedule with more sends than this is rejected before memory is taken for it: each takes some 50 bytes, more while
#: it is made.
MAX_SENDS = 50_000_000


#: Collectives in which there is one part for everybody, or one for each of the others.
_OF_ONE_PART = (
    CollectiveKind.BROADCAST,
    CollectiveKind.REDUCE,
    CollectiveKind.GATHER,
    CollectiveKind.SCATTER,
    CollectiveKind.POINT_TO_POINT,
)


@dataclass(frozen=True, eq=False)
class GroupProblem:
    """A collective among ranks that are known by their position in the group.

    Parameters
    ----------
    instance : Instance
        An instance that asks for this collective alone.
    topology : Topology
        The network.
    demand : Demand
        The collective.
    ranks : tuple of int
        The process group, in the order of the demand; the first is the root of a broadcast or reduce.
    """

    instance: Instance
    topology: Topology
    demand: Demand
    ranks: tuple[int, ...]

    @property
    def n(self) -> int:
        """Number of ranks."""
        return len(self.ranks)

    @property
    def collective(self) -> CollectiveKind:
        """The operation."""
        return self.demand.collective

    @property
    def part_bytes(self) -> Fraction:
        """Size of one rank's part."""
        return self.demand.size_bytes / self.n

    @property
    def nodes(self) -> Ints:
        """Position in the topology of every rank of the group."""
        return np.array(self.topology.rank_nodes, dtype=np.int64)[list(self.ranks)]


def group_problems(instance: Instance) -> list[GroupProblem]:
    """Pose every collective of an instance that :func:`supports_groups` has nothing against."""
    topology = instance.network
    if not isinstance(topology, Topology):
        raise Unsupported("expected an explicit network and a collective")
    everyone = tuple(range(instance.npus))
    return [
        GroupProblem(instance.of_one(demand), topology, demand, everyone if demand.ranks is None else demand.ranks)
        for demand in instance.demands
    ]


def supports_groups(
    instance: Instance,
    collectives: Sequence[CollectiveKind],
    fits: Callable[[GroupProblem], str | None] | None = None,
) -> str | None:
    """Why an instance does not fit a method that schedules these collectives one by one, if so (``Method.supports``).

    Parameters
    ----------
    instance : Instance
        What is to be scheduled.
    collectives : sequence of CollectiveKind
        What the method defines.
    fits : callable or None
        What else a collective of the instance has to meet: gives a reason, or None.
    """
    if not isinstance(instance.network, Topology):
        return f"{instance.network} has no links; expected an explicit network such as torus(4,4)"
    if not instance.demands:
        return "the instance has no collective to schedule"
    for problem in group_problems(instance):
        reason = _fault(problem, collectives) or (fits(problem) if fits else None)
        if reason is not None:
            return reason
    return None


def _fault(problem: GroupProblem, collectives: Sequence[CollectiveKind]) -> str | None:
    if problem.collective not in collectives:
        defined = ", ".join(kind.value for kind in collectives)
        return f"it does not define {problem.collective.value}, but {defined}"
    if problem.n < 2:
        return "a collective needs at least two ranks"
    return "the collective has no data to move" if problem.demand.size_bytes <= 0 else None


def fewest_sends(problem: GroupProblem, parts: int | None = None) -> int:
    """How many sends any algorithm needs that gives every chunk to everybody who lacks it, one at a time.

    ``parts`` is into how many parts the data is cut; by default those of the collective.
    """
    n, kind = problem.n, problem.collective
    passes = 2 if kind is CollectiveKind.ALL_REDUCE else 1
    parts = parts or (1 if kind in _OF_ONE_PART else n)
    return passes * parts * (n - 1) * problem.demand.chunks


def check_size(sends: int, hops: int | None = None) -> None:
    """Reject a schedule that is too large, or takes more time or memory than is left.

    Parameters
    ----------
    sends, hops : int
        Sends, and links of all their paths; a send has one unless given.

    Raises
    ------
    Unsupported
        If there are too many sends.
    OutOfTime
        If the memory or the time that is left will not do.
    """
    if sends > MAX_SENDS:
        raise Unsupported(f"{sends:,} sends; expected at most {MAX_SENDS:,}")
    require_schedulable(sends, hops)


def parallel_uses(topology: Topology) -> list[int]:
    """Sends that every link serves in a step, ``floor(b_e / min b)``, exactly.

    A link of k times the smallest bandwidth counts as k parallel ones, and what is left over is lost.
    """
    smallest = min(link.bandwidth_Bps for link in topology.links)
    return [int(link.bandwidth_Bps // smallest) for link in topology.links]
