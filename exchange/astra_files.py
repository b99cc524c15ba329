"""Input files of ASTRA-sim beside a trace: network, system, memory, and a workload of one collective.

Written for astra-sim/astra-sim 518bd51. The analytical network has rings, switches and fully connected dimensions, each
with the bandwidth and the latency of a link; a GB is 2³⁰ bytes there (:mod:`.astra` reads the same files).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from fractions import Fraction

from ..core.collective import Collective
from ..core.errors import InputError
from ..core.fabric import Block, links_per_npu
from ..core.network_views import fabric_of
from ..core.topology import Topology

#: Names of blocks in network files.
BLOCKS = {Block.RING: "Ring", Block.FULLY_CONNECTED: "FullyConnected", Block.SWITCH: "Switch"}

#: The collectives that a trace can be the algorithm of: the key in the system file, and the number in workloads.
COLLECTIVES = {
    Collective.ALL_REDUCE: ("all-reduce-implementation-custom", 0),
    Collective.ALL_GATHER: ("all-gather-implementation-custom", 2),
    Collective.ALL_TO_ALL: ("all-to-all-implementation-custom", 6),
    Collective.REDUCE_SCATTER: ("reduce-scatter-implementation-custom", 7),
}


@dataclass(frozen=True)
class Dimension:
    """A dimension: its block, its size, and what each of its links has."""

    block: Block
    size: int
    bandwidth_Bps: Fraction
    latency_s: Fraction


def dimensions_of(topology: Topology) -> tuple[Dimension, ...]:
    """Return the dimensions of a network, the innermost first.

    Raises
    ------
    InputError
        If it is no network of such dimensions, with ranks numbered along one after the other.
    """
    fabric = fabric_of(topology)
    if fabric is None:
        text = (
            "the network has no dimensions of rings, switches and fully connected blocks, as ASTRA-sim's analytical "
            "one has"
        )
        raise InputError(f"{text}; 'cwb export chakra' writes the traces alone", place="instance.network")
    rows = zip(fabric.dimensions, fabric.bandwidth_Bps, fabric.latency_s, strict=True)
    return tuple(
        Dimension(one.block, one.size, rate, delay / 2)
        if one.block is Block.SWITCH
        else Dimension(one.block, one.size, rate / links_per_npu(one), delay)
        for one, rate, delay in rows
    )


def network_text(found: tuple[Dimension, ...]) -> str:
    """Write the network file, YAML; numbers have up to 12 decimals."""
    rows = {
        "topology": [BLOCKS[one.block] for one in found],
        "npus_count": [str(one.size) for one in found],
        "bandwidth": [_decimal(one.bandwidth_Bps / 2**30) for one in found],
        "latency": [_decimal(one.latency_s * 10**9) for one in found],
    }
    notes = {"bandwidth": "  # GB/s of a link; a GB is 2^30 bytes", "latency": "  # ns of a link"}
    return "".join(f"{key}: [ {', '.join(values)} ]{notes.get(key, '')}\n" for key, values in rows.items())


def _decimal(value: Fraction) -> str:
    """Format a number as ASTRA-sim does, such as 50.0."""
    text = f"{float(value):.12f}".rstrip("0")
    if value and not float(text):
        raise InputError(f"{float(value):g} is too small for a network file", place="instance.network")
    return f"{text}0" if text.endswith(".") else text


def system_text(kind: Collective, trace: str) -> str:
    """Write the system file, JSON: a trace implements the collective, in one split of the data.

    Raises
    ------
    InputError
        If ASTRA-sim accepts no custom algorithm for the collective.
    """
    if kind not in COLLECTIVES:
        known = ", ".join(one.name for one in COLLECTIVES)
        text = (
            f"ASTRA-sim takes algorithms for {known}, not for {kind.name}; 'cwb export chakra' writes the traces alone"
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
