"""Schedules as connection matrices, the input of Ultra Ethernet's packet simulator (ultraethernet/uet-htsim 40ccb05).

A line is a message, ``0->1 id 1 start 0 size 1024``. One that waits has ``trigger 2`` in place of a start, and those
that it waits for have ``send_done_trigger 2``: the last acknowledgement fires it. (``recv_done_trigger`` is read, but
never fired.) ``trigger id 2 barrier count 3`` waits for three messages, ``oneshot`` for one. Numbers begin at 1.

The messages are those of Chakra traces (:mod:`.chakra.trace`). A send waits for the receives that its data is made of;
a message has one trigger, so that all sends that wait for it have to wait for the same messages.
"""

from __future__ import annotations

from ..core.errors import InputError
from .chakra.trace import ADDED, RECV, SEND, Node, Trace

MAX_BYTES = 2**31 - 1  #: Sizes are read as integers of 32 bits.
_Message = tuple[int, int, int]  #: A message: source, target, tag.


def connection_text(trace: Trace) -> str:
    """Write messages as a connection matrix.

    Raises
    ------
    InputError
        If sends that wait for a message also wait for different others, or a message has more than
        :data:`MAX_BYTES`.
    """
    numbers = {
        (rank, node.peer, node.tag): number
        for number, (rank, node) in enumerate(
            ((rank, node) for rank, nodes in enumerate(trace.ranks) for node in nodes if node.type == SEND), 1
        )
    }
    waited = {
        (rank, node.peer, node.tag): frozenset(_messages_before(nodes, node, rank))
        for rank, nodes in enumerate(trace.ranks)
        for node in nodes
        if node.type == SEND
    }
    triggers = {some: number for number, some in enumerate(dict.fromkeys(filter(None, waited.values())), 1)}
    fires: dict[_Message, int] = {}
    for some, trigger in triggers.items():
        for message in some:
            if fires.setdefault(message, trigger) != trigger:
                source, target, _ = message
                text = f"sends of rank {target} wait for a message of rank {source} and for different other ones"
                raise InputError(f"{text}; a message of htsim has one trigger", place="sends")
    lines = [f"Nodes {trace.ngpus}", f"Connections {len(numbers)}", f"Triggers {len(triggers)}"]
    for rank, nodes in enumerate(trace.ranks):
        for node in nodes:
            if node.type == SEND:
                lines.append(_line(rank, node, numbers, triggers.get(waited[rank, node.peer, node.tag]), fires))
    for some, trigger in triggers.items():
        lines.append(f"trigger id {trigger} " + (f"barrier count {len(some)}" if len(some) > 1 else "oneshot"))
    return "\n".join(lines) + "\n"


def _messages_before(nodes: tuple[Node, ...], node: Node, rank: int) -> set[_Message]:
    """Return the messages that a send is made of: the last receive, and before one that adds, all others."""
    found: set[_Message] = set()
    todo, seen = list(node.after), set[int]()
    while todo:
        before = nodes[todo.pop()]
        if before.type != RECV or before.id in seen:
            continue
        seen.add(before.id)
        found.add((before.peer, rank, before.tag))
        if before.use == ADDED:
            todo += before.after
    return found


def _line(rank: int, node: Node, numbers: dict[_Message, int], trigger: int | None, fires: dict[_Message, int]) -> str:
    if node.size_bytes > MAX_BYTES:
        raise InputError(f"a message of {node.size_bytes:,} B; htsim has at most {MAX_BYTES:,} B", place="sends")
    message = rank, node.peer, node.tag
    begin = "start 0" if trigger is None else f"trigger {trigger}"
    end = f" send_done_trigger {fires[message]}" if message in fires else ""
    return f"{rank}->{node.peer} id {numbers[message]} {begin} size {node.size_bytes}{end}"
