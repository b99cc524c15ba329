"""Schedules as inputs of network simulators: GOAL text (LogGOPSim, ATLAHS) and connection matrices (htsim 40ccb05).

The operations of a rank are those of Chakra traces (:mod:`.chakra.trace`), in the order of their dependences. Why each
chunk has a ``cpu``, and what triggers can say: docs/exchange/goal.md and docs/exchange/htsim.md.
"""

from collections.abc import Iterator
from fractions import Fraction
from math import ceil

from ..core.errors import InputError
from .chakra.trace import ADDED, RECV, SEND, Node, Trace, trace_of
from .msccl.flow import Flow

CPUS = 255  #: Different numbers of a ``cpu``; LogGOPSim counts them in one byte.


def goal_text(flow: Flow, reduce_Bps: Fraction | None = None) -> str:
    """Write a schedule as GOAL text."""
    trace = trace_of(flow)
    parts = [f"num_ranks {trace.ngpus}\n"]
    for number, nodes in enumerate(trace.ranks):
        parts.append("\n".join([f"\nrank {number} {{", *_goal_lines(nodes, reduce_Bps), "}\n"]))
    return "".join(parts)


def _goal_lines(nodes: tuple[Node, ...], reduce_Bps: Fraction | None) -> Iterator[str]:
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


MAX_BYTES = 2**31 - 1  #: Sizes are read as integers of 32 bits.
_Message = tuple[int, int, int]  #: A message: source, target, tag.


def connection_text(trace: Trace) -> str:
    """Write messages as a connection matrix; larger ones, and those that need two triggers, are refused."""
    sends = {
        (rank, node.peer, node.tag): node
        for rank, nodes in enumerate(trace.ranks)
        for node in nodes
        if node.type == SEND
    }
    waits = {one: frozenset(_messages_before(trace.ranks[one[0]], node, one[0])) for one, node in sends.items()}
    triggers = {some: number for number, some in enumerate(dict.fromkeys(filter(None, waits.values())), 1)}
    fires: dict[_Message, int] = {}
    for some, trigger in triggers.items():
        for message in some:
            if fires.setdefault(message, trigger) != trigger:
                source, target, _ = message
                text = f"sends of rank {target} wait for a message of rank {source} and for different other ones"
                raise InputError(f"{text}; a message of htsim has one trigger", place="sends")
    lines = [f"Nodes {trace.ngpus}", f"Connections {len(sends)}", f"Triggers {len(triggers)}"]
    for number, (message, node) in enumerate(sends.items(), 1):
        if node.size_bytes > MAX_BYTES:
            raise InputError(f"a message of {node.size_bytes:,} B; htsim has at most {MAX_BYTES:,} B", place="sends")
        source, target, _ = message
        begin = f"trigger {triggers[waits[message]]}" if waits[message] else "start 0"
        end = f" send_done_trigger {fires[message]}" if message in fires else ""
        lines.append(f"{source}->{target} id {number} {begin} size {node.size_bytes}{end}")
    for some, trigger in triggers.items():
        lines.append(f"trigger id {trigger} " + (f"barrier count {len(some)}" if len(some) > 1 else "oneshot"))
    return "\n".join(lines) + "\n"


def _messages_before(nodes: tuple[Node, ...], node: Node, rank: int) -> set[_Message]:
    """Return the messages that a send is made of: the last receive, and before one that adds, all others."""
    messages: set[_Message] = set()
    todo, receives = list(node.after), set[int]()
    while todo:
        before = nodes[todo.pop()]
        if before.type != RECV or before.id in receives:
            continue
        receives.add(before.id)
        messages.add((before.peer, rank, before.tag))
        if before.use == ADDED:
            todo += before.after
    return messages
