"""Conditions that a user writes down: a chunk, the node that has it, the nodes that need it (section 6.4.1).

``0->1,2: 1 MiB; 3->0: 512 KiB`` is a multicast and a message. Each condition becomes a broadcast or a message among the instance's collectives, so
that the judge sees the same problem.
"""

from __future__ import annotations

from fractions import Fraction

from ...core.collective import CollectiveKind, Demand
from ...core.errors import InputError, shown
from ...core.instance import Instance
from ...core.topology import NodeKind, Topology
from ...core.units import Kind, parse

#: Most conditions that are read.
MAX_CONDITIONS = 100_000


def with_conditions(instance: Instance, text: str) -> Instance:
    """Add conditions to the collectives of an instance.

    Parameters
    ----------
    instance : Instance
        With an explicit network.
    text : str
        Conditions, separated by semicolons; nothing leaves the instance as it is.

    Raises
    ------
    InputError
        If a condition has no holder, no receiver or no size, or names a switch or no node.
    """
    written = [part for part in text.split(";") if part.strip()]
    topology = instance.network
    if not written or not isinstance(topology, Topology):
        return instance
    if len(written) > MAX_CONDITIONS:
        raise InputError(f"{len(written):,} conditions; expected at most {MAX_CONDITIONS:,}", place="conditions")
    ranks = {topology.nodes[node].name: rank for rank, node in enumerate(topology.rank_nodes)}
    added = tuple(_demand(topology, ranks, part, index) for index, part in enumerate(written))
    demands = (*instance.demands, *added)
    return instance.with_changes(demand=demands[0], also=demands[1:])


def _demand(topology: Topology, ranks: dict[str, int], text: str, index: int) -> Demand:
    place = f"conditions[{index}]"
    ends, colon, size = text.rpartition(":")
    holders, arrow, receivers = ends.partition("->")
    if not (colon and arrow):
        raise InputError(f"{shown(text.strip())}; expected such as '0->1,2: 1 MiB'", place=place)
    held = _ranks(topology, ranks, holders, place)
    if not held:
        raise InputError(f"nobody holds the chunk {shown(text.strip())}", place=place)
    if len(held) > 1:
        raise InputError(f"{len(held)} nodes hold the chunk {shown(text.strip())}; expected one", place=place)
    needed = [rank for rank in dict.fromkeys(_ranks(topology, ranks, receivers, place)) if rank != held[0]]
    if not needed:
        raise InputError(f"nobody else needs the chunk {shown(text.strip())}", place=place)
    try:
        size_bytes = Fraction(parse(size.strip(), Kind.SIZE))
    except InputError as error:
        raise error.at(place=place) from None
    kind = CollectiveKind.POINT_TO_POINT if len(needed) == 1 else CollectiveKind.BROADCAST
    return Demand(kind, size_bytes, ranks=(held[0], *needed))


def _ranks(topology: Topology, ranks: dict[str, int], names: str, place: str) -> list[int]:
    found: list[int] = []
    for name in filter(None, (part.strip() for part in names.split(","))):
        if name not in ranks:
            known = topology.node_index.get(name)
            switch = known is not None and topology.nodes[known].kind is NodeKind.SWITCH
            raise InputError(
                f"{shown(name)} is {'a switch' if switch else 'no node'}; expected a compute node", place=place
            )
        found.append(ranks[name])
    return found
