"""Collective of one process group on an explicit network, for methods that schedule one collective at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from ...core.budget import require_schedulable
from ...core.collective import Collective, Demand
from ...core.errors import Refusal, Unsupported
from ...core.instance import Instance
from ...core.schedule import Chunks, Ints
from ...core.topology import Topology

#: A schedule with more sends than this is rejected before memory is taken for it: each takes some 50 bytes, more while
#: it is made.
MAX_SENDS = 50_000_000


@dataclass(frozen=True, eq=False)
class GroupProblem:
    """Collective among ranks that are known by their position in the group."""

    instance: Instance  #: an instance with only this collective
    topology: Topology  #: explicit network of the instance
    demand: Demand
    #: the process group, in the order of the demand; the first is the root of a broadcast or reduce
    ranks: tuple[int, ...]

    @property
    def n(self) -> int:
        """Number of ranks."""
        return len(self.ranks)

    @property
    def collective(self) -> Collective:
        """Kind of the collective operation."""
        return self.demand.collective

    @property
    def part_bytes(self) -> Fraction:
        """Size of one rank's part in bytes."""
        return self.demand.size_bytes / self.n

    @property
    def nodes(self) -> Ints:
        """Positions of the group's ranks in the topology."""
        return np.array(self.topology.rank_nodes, dtype=np.int64)[list(self.ranks)]


def group_problems(instance: Instance) -> list[GroupProblem]:
    """List the collectives of an instance that :func:`supports_groups` accepts."""
    topology = instance.network
    if not isinstance(topology, Topology):
        raise Unsupported("expected an explicit network and a collective")
    everyone = tuple(range(instance.npus))
    return [
        GroupProblem(
            instance.with_single_demand(demand), topology, demand, everyone if demand.ranks is None else demand.ranks
        )
        for demand in instance.demands
    ]


def supports_groups(
    instance: Instance, collectives: Sequence[Collective], fits: Callable[[GroupProblem], Refusal | None] | None = None
) -> Refusal | None:
    """Return why a method for single collectives, with a further test ``fits``, does not support an instance."""
    if not isinstance(instance.network, Topology):
        return Refusal("network", f"{instance.network} has no links; expected an explicit network such as torus(4,4)")
    if not instance.demands:
        return Refusal("collective", "the instance has no collective to schedule")
    for problem in group_problems(instance):
        reason = _find_fault(problem, collectives) or (fits(problem) if fits else None)
        if reason is not None:
            return reason
    return None


def _find_fault(problem: GroupProblem, collectives: Sequence[Collective]) -> Refusal | None:
    if problem.collective not in collectives:
        defined = ", ".join(kind.name for kind in collectives)
        return Refusal("collective", f"it does not define {problem.collective.name}, but {defined}")
    if problem.n < 2:
        return Refusal("ranks", "a collective needs at least two ranks")
    return Refusal("data", "the collective has no data to move") if problem.demand.size_bytes <= 0 else None


def fewest_sends(problem: GroupProblem, parts: int | None = None) -> int:
    """Return the fewest sends of any algorithm that delivers chunks of ``parts`` of the data one by one."""
    n, kind = problem.n, problem.collective
    parts = parts or (1 if kind.rooted else n)
    return kind.passes * parts * (n - 1) * problem.demand.chunks


def check_size(sends: int, hops: int | None = None) -> None:
    """Reject a schedule with too many sends, or whose ``hops`` exceed the remaining time or memory (OutOfTime)."""
    if sends > MAX_SENDS:
        raise Unsupported(f"{sends:,} sends; expected at most {MAX_SENDS:,}")
    require_schedulable(sends, hops)


def equal_chunks(
    ranks: Sequence[int], size_bytes: Fraction, held_by: Ints, needed_by: Ints, *, reduced: bool
) -> Chunks:
    """Return chunks of one size, held and needed by positions in a group, whose size stands for everybody."""
    groups = (*((rank,) for rank in ranks), tuple(sorted(ranks)))
    ones, flags = np.ones(len(held_by), dtype=np.int64), np.full(len(held_by), reduced)
    return Chunks(ones, size_bytes, groups, held_by, needed_by, flags)


def parallel_uses(topology: Topology) -> list[int]:
    """Return the sends that every link serves in a step, ``floor(b_e / min b)``, exactly; the remainder is lost."""
    smallest = min(link.bandwidth_Bps for link in topology.links)
    return [int(link.bandwidth_Bps // smallest) for link in topology.links]
