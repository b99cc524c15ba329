"""Connection matrices: a replay that knows the format alone sends every message once, after what it is made of."""

from __future__ import annotations

import re
from collections import Counter
from fractions import Fraction

import pytest
from command_line import cwb as command
from cwb.core.collective import Demand, collective_named
from cwb.core.errors import InputError
from cwb.core.trace import SimulationMode
from cwb.exchange.chakra.trace import ADDED, KEPT, RECV, SEND, Node, Trace, trace_of
from cwb.exchange.msccl.flow import flow_of
from cwb.exchange.simulators import MAX_BYTES, connection_text
from cwb.harness import Request
from cwb.harness.run import run
from cwb.instances import load

_LINE = re.compile(r"(\d+)->(\d+) id (\d+) (?:start 0|trigger (\d+)) size (\d+)(?: send_done_trigger (\d+))?\Z")
_TRIGGER = re.compile(r"trigger id (\d+) (?:oneshot|barrier count (\d+))\Z")


def replay(text):
    """Bytes by pair of ranks, and for every message those that had ended when it began."""
    head, lines = text.splitlines()[:3], text.splitlines()[3:]
    flows = [_LINE.match(line) for line in lines if "->" in line]
    missing = {int(one[1]): int(one[2] or 1) for one in map(_TRIGGER.match, lines) if one}
    assert head[1:] == [f"Connections {len(flows)}", f"Triggers {len(missing)}"]
    assert [int(flow[3]) for flow in flows] == list(range(1, len(flows) + 1))
    ended, before, moved = [], {}, Counter()
    todo = [flow for flow in flows if flow[4] is None]
    while todo:
        flow = todo.pop()
        before[int(flow[3])] = set(ended)
        moved[int(flow[1]), int(flow[2])] += int(flow[5])
        ended.append(int(flow[3]))
        if flow[6]:
            missing[int(flow[6])] -= 1
            assert missing[int(flow[6])] >= 0, "a trigger fires too often"
            if not missing[int(flow[6])]:
                todo += [other for other in flows if other[4] == flow[6]]
    assert len(before) == len(flows), "a message never begins"
    return moved, before


def trace_for(method, network, collective):
    """The trace of a method's schedule."""
    asked = load(network).with_changes(demand=Demand(collective_named(collective), Fraction(2**20)))
    return trace_of(flow_of(asked, run(asked, Request(method)).answer, SimulationMode.CUT_THROUGH))


@pytest.mark.parametrize(("method", "network", "collective"), [
    ("ring", "switch(5)", "all_gather"),
    ("ring", "switch(4)", "all_reduce"),
    ("direct", "switch(4)", "all_to_all"),
    ("direct", "fat_tree(2)", "all_reduce"),
    ("rhd", "switch(4)", "all_reduce"),
    ("knomial", "switch(5)", "reduce"),
    ("dbt", "switch(4)", "all_reduce"),
])  # fmt: skip
def test_a_replay_sends_every_message_in_time(method, network, collective):
    """All bytes of the trace are sent, each message once, and never before the receives that its data is made of."""
    trace = trace_for(method, network, collective)
    moved, before = replay(connection_text(trace))
    assert moved == trace.transfers
    sends = [(rank, node) for rank, nodes in enumerate(trace.ranks) for node in nodes if node.type == SEND]
    number = {(rank, node.peer, node.tag): at for at, (rank, node) in enumerate(sends, 1)}
    for rank, node in sends:
        for one in (trace.ranks[rank][at] for at in node.after):
            if one.type == RECV:
                assert number[one.peer, rank, one.tag] in before[number[rank, node.peer, node.tag]]


def node(number, kind, peer, *, after=(), use=KEPT, size=8):
    """A node with tag 0."""
    return Node(number, kind, after, peer, 0, size, use=use)


def test_a_message_with_two_triggers_is_refused():
    """A sum that is sent on both before and after the last addition would need two triggers of one message."""
    middle = (
        node(0, RECV, 0),
        node(1, SEND, 3, after=(0,)),
        node(2, RECV, 2, after=(0,), use=ADDED),
        node(3, SEND, 4, after=(2,)),
    )
    ends = [(node(0, SEND, 1),), middle, (node(0, SEND, 1),), (node(0, RECV, 1),), (node(0, RECV, 1),)]
    with pytest.raises(InputError, match="sends of rank 1 wait for a message of rank 0 and for different other ones"):
        connection_text(Trace(tuple(ends)))


def test_large_messages_are_refused():
    """Sizes that the simulator would not read are refused."""
    with pytest.raises(InputError, match="2,147,483,648 B"):
        connection_text(Trace(((node(0, SEND, 1, size=MAX_BYTES + 1),), (node(0, RECV, 0, size=MAX_BYTES + 1),))))


def test_the_command(tmp_path):
    """The command writes the matrix of a schedule file."""
    file, made = tmp_path / "s.json", tmp_path / "s.cm"
    asked = ("switch(4)", "--collective", "all_gather", "--size", "1 MiB", "-o", file)
    assert command("solve", "-q", "-m", "ring", *asked) == 0
    assert command("export", "htsim", file, "-o", made) == 0
    assert made.read_text() == connection_text(trace_for("ring", "switch(4)", "all_gather"))
    assert made.read_text().startswith("Nodes 4\nConnections ")
