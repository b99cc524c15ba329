"""What an algorithm is given: a network, a process group, and a collective."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from ...core.collective import CollectiveKind, Demand
from ...core.errors import Unsupported
from ...core.instance import Instance
from ...core.schedule import Ints
from ...core.topology import Topology

#: A schedule with more sends than this is refused before memory is taken for it: each takes some 50 bytes, more while it is made.
MAX_SENDS = 50_000_000


@dataclass(frozen=True, eq=False)
class Problem:
    """A collective among ranks that are known by their position in the group.

    Parameters
    ----------
    instance_sha256 : str
        Digest of the instance.
    topology : Topology
        The network.
    demand : Demand
        The collective.
    ranks : tuple of int
        The process group, in the order of the demand; the first is the root of a broadcast or reduce.
    """

    instance_sha256: str
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


def group(instance: Instance) -> tuple[int, ...]:
    """Give the ranks of the process group, in the order of the demand."""
    given = None if instance.demand is None else instance.demand.ranks
    return tuple(range(instance.npus)) if given is None else given


def why_not(instance: Instance, collectives: tuple[CollectiveKind, ...]) -> str | None:
    """Say why none of the textbook algorithms, or not one that defines these collectives, fits an instance."""
    if not isinstance(instance.network, Topology):
        return f"{instance.network} has no links; expected an explicit network such as torus(4,4)"
    if instance.demand is None:
        return "the instance has no collective to schedule"
    if instance.demand.collective not in collectives:
        defined = ", ".join(kind.value for kind in collectives)
        return f"it does not define {instance.demand.collective.value}, but {defined}"
    if len(group(instance)) < 2:
        return "a collective needs at least two ranks"
    if instance.demand.size_bytes <= 0:
        return "the collective has no data to move"
    return None


def pose_problem(instance: Instance) -> Problem:
    """Pose an instance that :func:`why_not` has nothing against."""
    if not isinstance(instance.network, Topology) or instance.demand is None:
        raise Unsupported("expected an explicit network and a collective")
    return Problem(instance.sha256, instance.network, instance.demand, group(instance))


def check_size(sends: int) -> None:
    """Refuse a schedule that is too large.

    Raises
    ------
    Unsupported
        If there are too many sends.
    """
    if sends > MAX_SENDS:
        raise Unsupported(f"{sends:,} sends; expected at most {MAX_SENDS:,}")
