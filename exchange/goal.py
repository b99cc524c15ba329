"""Schedules as GOAL text, the input of LogGOPSim and packet-level simulators (ATLAHS with htsim or ns-3).

Every rank has operations with labels: ``send 1024b to 3 tag 0``, ``recv 1024b from 3 tag 0`` and ``calc 100`` (ns), and
lines ``l3 requires l1``. An operation begins when all operations that it requires have ended; times follow from the
simulated network alone.

The operations are those of Chakra traces (:mod:`.chakra.trace`): one message for each pair of ranks that data goes
over, with a tag of its own and a size of whole bytes, after the preceding operations of its rank on the same data.
Adding takes no time unless a rate is given; then it is a ``calc`` between a receive and its successors.

LogGOPSim begins no send on a ``cpu`` that receives, and starts what requires a receive when its first byte has come
and the ``cpu`` is free. All operations on a chunk have one ``cpu``, and other chunks others: a rank sends a chunk while
it receives another one, and passes it on when it is there. ``l5 irequires l3`` says that l3 has begun: sends have the
order that they have on their first link in the simulation.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from math import ceil

from .chakra.trace import ADDED, RECV, SEND, Node, trace_of
from .msccl.flow import Flow

CPUS = 255  #: Different numbers of a ``cpu``; LogGOPSim counts them in one byte.


def goal_text(flow: Flow, reduce_Bps: Fraction | None = None) -> str:
    """Write a schedule as GOAL text."""
    trace = trace_of(flow)
    parts = [f"num_ranks {trace.ngpus}\n"]
    for number, nodes in enumerate(trace.ranks):
        parts.append("\n".join([f"\nrank {number} {{", *_lines(nodes, reduce_Bps), "}\n"]))
    return "".join(parts)


def _lines(nodes: tuple[Node, ...], reduce_Bps: Fraction | None) -> Iterator[str]:
    """Operations of a rank; what waits for a node waits for the last of its operations."""
    label: dict[int, int] = {}
    count = 0
    for node in nodes:
        count += 1
        ends = {SEND: f"send {node.size_bytes}b to {node.peer}", RECV: f"recv {node.size_bytes}b from {node.peer}"}
        cpu = f"cpu {max(node.data, 0) % CPUS}"
        yield f"l{count}: {ends[node.type]} tag {node.tag} {cpu}" if node.type in ends else f"l{count}: calc 0"
        yield from (f"l{count} requires l{label[before]}" for before in node.after)
        if node.turn >= 0:
            yield f"l{count} irequires l{label[node.turn]}"
        if node.type == RECV and node.use == ADDED and reduce_Bps is not None:
            count += 1
            yield f"l{count}: calc {ceil(node.size_bytes * 10**9 / reduce_Bps)} {cpu}"
            yield f"l{count} requires l{count - 1}"
        label[node.id] = count
