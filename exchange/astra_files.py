"""What ASTRA-sim needs beside a trace: its network, its system, its memory, and a workload that is one collective.

Written for astra-sim/astra-sim 518bd51. The analytical network has rings, switches and fully connected dimensions, each
with the bandwidth and the latency of a link; a GB is 2³⁰ bytes there (:mod:`.astra` reads the same files).
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from ..core.collective import CollectiveKind
from ..core.errors import InputError
from ..core.fabric import expand, parse_fabric
from ..core.topology import Link, NodeKind, Topology

#: Names of blocks in network files, by those of cwb.
BLOCKS = {"RI": "Ring", "FC": "FullyConnected", "SW": "Switch"}

#: The collectives that a trace can be the algorithm of: the key in the system file, and the number in workloads.
COLLECTIVES = {
    CollectiveKind.ALL_REDUCE: ("all-reduce-implementation-custom", 0),
    CollectiveKind.ALL_GATHER: ("all-gather-implementation-custom", 2),
    CollectiveKind.ALL_TO_ALL: ("all-to-all-implementation-custom", 6),
    CollectiveKind.REDUCE_SCATTER: ("reduce-scatter-implementation-custom", 7),
}


@dataclass(frozen=True)
class Dimension:
    """A dimension: its block (RI, FC, SW), its size, and what each of its links has."""

    block: str
    size: int
    bandwidth_Bps: Fraction
    latency_s: Fraction


def dimensions_of(topology: Topology) -> tuple[Dimension, ...]:
    """The dimensions of a network, the innermost first.

    Raises
    ------
    InputError
        If it is no network of such dimensions, with ranks numbered along one after the other.
    """
    wanted = _signature(topology)
    for found in _guesses(_Origin(topology), len(topology.ranks), 1) if wanted is not None else ():
        if _signature(_expanded(found)) == wanted:
            return found
    text = (
        "the network has no dimensions of rings, switches and fully connected blocks, as ASTRA-sim's analytical one has"
    )
    raise InputError(f"{text}; 'cwb export chakra' writes the traces alone", place="instance.network")


def _expanded(found: tuple[Dimension, ...]) -> Topology:
    """The network that dimensions make."""
    fabric = parse_fabric("_".join(f"{one.block}({one.size})" for one in found), ("",) * len(found))
    shares = [one.size - 1 if one.block == "FC" else 2 if one.block == "RI" and one.size > 2 else 1 for one in found]
    rates = [one.bandwidth_Bps * share for one, share in zip(found, shares, strict=True)]
    return expand(fabric, rates, [one.latency_s * (2 if one.block == "SW" else 1) for one in found])


def _signature(topology: Topology) -> tuple[Counter[object], Counter[object]] | None:
    """Links between ranks, and switches by what is on them; None where switches are joined."""
    rank = {name: number for number, name in enumerate(topology.ranks)}
    direct: Counter[object] = Counter()
    switches: dict[str, Counter[object]] = defaultdict(Counter)
    for link in topology.links:
        quality = link.bandwidth_Bps, link.latency_s
        source, target = rank.get(link.source), rank.get(link.target)
        if source is None and target is None:
            return None
        if source is None:
            switches[link.source]["out", target, quality] += 1
        elif target is None:
            switches[link.target]["in", source, quality] += 1
        else:
            direct[source, target, quality] += 1
    return direct, Counter(frozenset(ends.items()) for ends in switches.values())


class _Origin:
    """What rank 0 is joined to: ranks, and switches with the ranks on them."""

    def __init__(self, topology: Topology) -> None:
        rank = {name: number for number, name in enumerate(topology.ranks)}
        first = topology.ranks[0]
        kinds = {node.name: node.kind for node in topology.nodes}
        members: dict[str, set[int]] = defaultdict(set)
        for link in topology.links:
            if link.source in rank and kinds[link.target] is NodeKind.SWITCH:
                members[link.target].add(rank[link.source])
        own = [link for link in topology.links if link.source == first]
        self.ranks: dict[int, Link] = {rank[link.target]: link for link in own if link.target in rank}
        self.switches = [(sorted(members[link.target]), link) for link in own if link.target not in rank]


def _guesses(origin: _Origin, left: int, stride: int) -> Iterator[tuple[Dimension, ...]]:
    """Dimensions that rank 0 can be in, if those up to a stride are known; the larger first."""
    if left == 1:
        yield ()
        return
    for size in (size for size in range(left, 1, -1) if left % size == 0):
        for block, link in _blocks(origin, size, stride):
            for rest in _guesses(origin, left // size, stride * size):
                yield (Dimension(block, size, link.bandwidth_Bps, link.latency_s), *rest)


def _blocks(origin: _Origin, size: int, stride: int) -> Iterator[tuple[str, Link]]:
    """Blocks of a size that rank 0 can be in, with one of its links there."""
    others = range(stride, size * stride, stride)
    yield from (("SW", link) for members, link in origin.switches if members == [0, *others])
    if all(other in origin.ranks for other in others):
        yield "RI" if size == 2 else "FC", origin.ranks[stride]
    if size > 3 and {others[0], others[-1]} <= origin.ranks.keys():
        yield "RI", origin.ranks[stride]


def network_text(found: tuple[Dimension, ...]) -> str:
    """The network file, YAML; numbers have up to 12 decimals."""
    rows = {
        "topology": [BLOCKS[one.block] for one in found],
        "npus_count": [str(one.size) for one in found],
        "bandwidth": [_decimal(one.bandwidth_Bps / 2**30) for one in found],
        "latency": [_decimal(one.latency_s * 10**9) for one in found],
    }
    notes = {"bandwidth": "  # GB/s of a link; a GB is 2^30 bytes", "latency": "  # ns of a link"}
    return "".join(f"{key}: [ {', '.join(values)} ]{notes.get(key, '')}\n" for key, values in rows.items())


def _decimal(value: Fraction) -> str:
    """A number as ASTRA-sim writes it, such as 50.0."""
    text = f"{float(value):.12f}".rstrip("0")
    if value and not float(text):
        raise InputError(f"{float(value):g} is too small for a network file", place="instance.network")
    return f"{text}0" if text.endswith(".") else text


def system_text(kind: CollectiveKind, trace: str) -> str:
    """The system file, JSON: the collective is done by a trace, in one split of the data.

    Raises
    ------
    InputError
        If ASTRA-sim takes no algorithms for the collective.
    """
    if kind not in COLLECTIVES:
        known = ", ".join(one.value for one in COLLECTIVES)
        text = (
            f"ASTRA-sim takes algorithms for {known}, not for {kind.value}; 'cwb export chakra' writes the traces alone"
        )
        raise InputError(text, place="instance.collective")
    data = {
        "scheduling-policy": "FIFO",
        "endpoint-delay": 0,
        "preferred-dataset-splits": 1,
        COLLECTIVES[kind][0]: [trace],
    }
    return json.dumps(data, indent=2) + "\n"


#: The memory file: nothing is loaded from elsewhere.
MEMORY = '{\n  "memory-type": "NO_MEMORY_EXPANSION"\n}\n'
