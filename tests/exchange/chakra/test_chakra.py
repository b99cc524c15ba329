"""Chakra traces: written and run with the schedule's bytes; foreign files; what is wrong or broken is found."""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections import Counter, defaultdict
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from command_line import cwb
from cwb.core.collective import Collective, Demand
from cwb.core.errors import InputError
from cwb.core.trace import SimulationMode
from cwb.exchange.chakra import files
from cwb.exchange.chakra.files import file_of, read_trace
from cwb.exchange.chakra.trace import COMP, RECV, SEND, Node, Trace, problems_of, trace_of
from cwb.exchange.msccl.flow import Flow, Hops, Piece, flow_of
from cwb.exchange.msccl.links import loads_of
from cwb.harness import Request
from cwb.harness.run import run
from cwb.instances import load
from cwb.schedules.simulate import simulate
from families import FAMILIES
from hypothesis import given, settings
from hypothesis import strategies as st
from schedule_bytes import links_of, pairs_of

PAGE = Path(__file__).parents[3] / "docs" / "exchange" / "chakra.md"

#: Schedules that ranks alone cannot do, and one whose sends end in a switch.
REFUSED = {"multicast_broadcast", "in_network_all_reduce", "group_all_gather"}


def store_trace(trace, folder, prefix="t"):
    """Write a trace to a folder."""
    folder.mkdir(exist_ok=True)
    for rank in range(trace.ngpus):
        (folder / f"{prefix}.{rank}.et").write_bytes(file_of(trace, rank))
    return folder


@pytest.mark.parametrize("name", [name for name in FAMILIES if name not in REFUSED])
def test_families_run_with_their_bytes(name, tmp_path):
    """Steps, trees, times and switches: the trace comes back from its files, runs to its end, and every pair of ranks
    is sent what the schedule sends it."""
    instance, answer = FAMILIES[name]()
    flow = flow_of(instance, answer)
    trace = trace_of(flow)
    again = read_trace(store_trace(trace, tmp_path))
    assert problems_of(again) == []
    assert again.transfers == trace.transfers
    assert [[(n.id, n.type, n.after, n.tag) for n in nodes] for nodes in again.ranks] == [
        [(n.id, n.type, n.after, n.tag) for n in nodes] for nodes in trace.ranks
    ]
    if name != "stored_gather":
        grains = Counter()
        for rank, nodes in enumerate(trace.ranks):
            for node in nodes:
                grains.update({(rank, node.peer): node.grains} if node.type == SEND else {})
        assert {pair: count * flow.grain_bytes for pair, count in grains.items()} == pairs_of(instance, answer)


def test_bytes_of_links_are_those_of_the_schedule(tmp_path):
    """If every transfer has one shortest path, the links carry the schedule's bytes, read from the files alone."""
    asked = load("mesh(2,3)").with_changes(demand=Demand(Collective.ALL_GATHER, Fraction(6 * 2**20)))
    done = run(asked, Request("direct"))
    trace = read_trace(store_trace(trace_of(flow_of(asked, done.answer)), tmp_path))
    assert dict(loads_of(trace, asked.network).chunks) == links_of(done.answer)


@pytest.mark.parametrize(("method", "network", "held"), [("direct", "switch(4)", True), ("ring", "ring(4)", False)])
def test_sends_that_are_ready_together_wait_for_their_turn(method, network, held, tmp_path):
    """A send that could overtake the one before on its link waits for a computation that becomes ready with that one.

    On a ring data comes one after the other, and nothing is added.
    """
    asked = load(network).with_changes(demand=Demand(Collective.ALL_GATHER, Fraction(2**20)))
    trace = trace_of(flow_of(asked, run(asked, Request(method)).answer, SimulationMode.CONGESTION_AWARE))
    again = read_trace(store_trace(trace, tmp_path))
    assert problems_of(again) == []
    for before, after in zip(trace.ranks, again.ranks, strict=True):
        waits = {node.id: node.after for node in after}
        sends = [node for node in before if node.type == SEND]
        assert [node.is_held for node in sends] == [held and node.turn >= 0 for node in sends]
        for node in before:
            added = set(waits[node.id]) - set(node.after)
            assert len(added) == node.is_held
            for turn in added:
                others = set(waits[turn]) - set(before[node.turn].after)
                assert others == set(waits[node.turn]) - set(before[node.turn].after), "ready with the send before"
        assert len(after) - len(before) == sum(node.is_held for node in before)


def test_data_that_is_sent_on_has_come():
    """Around a ring, every send but the first of a chunk waits for its receive."""
    asked = load("ring(4, bidirectional=False)").with_changes(demand=Demand(Collective.ALL_GATHER, Fraction(2**20)))
    trace = trace_of(flow_of(asked, run(asked, Request("ring")).answer))
    for nodes in trace.ranks:
        sends = [node for node in nodes if node.type == SEND]
        assert sorted(len(node.after) for node in sends) == [0, 1, 1]
        assert all(nodes[i].type == RECV for node in sends for i in node.after)


@pytest.mark.parametrize("name", [name for name in FAMILIES if name not in REFUSED])
def test_nodes_are_in_the_order_of_simulated_starts(name):
    """Nodes follow all that they wait for, and otherwise the simulated starts of their messages."""
    instance, answer = FAMILIES[name]()
    flow = flow_of(instance, answer, SimulationMode.CONGESTION_AWARE)
    starts = defaultdict(list)
    for hop in map(Hops._make, zip(*flow.hops, strict=True)):
        starts[hop.chunk, hop.source, hop.target].append(hop.start)
    for rank, nodes in enumerate(trace_of(flow).ranks):
        assert [node.id for node in nodes] == list(range(len(nodes)))
        assert all(before < node.id for node in nodes for before in node.after)
        latest = 0
        for node in nodes:
            if node.type in (SEND, RECV):
                ends = (rank, node.peer) if node.type == SEND else (node.peer, rank)
                latest = max(latest, min(starts[node.data, *ends]))
                assert latest <= max(starts[node.data, *ends]) or node.after


def test_ready_sends_are_rotated():
    """Of sends that start together, every rank begins with that to the next rank: nobody receives from all at once."""
    asked = load("complete(5)").with_changes(demand=Demand(Collective.ALL_TO_ALL, Fraction(5 * 2**20)))
    trace = trace_of(flow_of(asked, run(asked, Request("direct")).answer, SimulationMode.CONGESTION_AWARE))
    for rank, nodes in enumerate(trace.ranks):
        assert [node.peer for node in nodes if node.type == SEND] == [(rank + way) % 5 for way in range(1, 5)]
        assert [node.peer for node in nodes if node.type == RECV] == [(rank - way) % 5 for way in range(1, 5)]


def test_sends_of_a_link_are_in_its_simulated_order():
    """On a switch, where all sends of a rank use one link, they are written as that link serves them."""
    asked = load("switch(4)").with_changes(demand=Demand(Collective.ALL_TO_ALL, Fraction(4 * 2**20)))
    answer = run(asked, Request("direct")).answer
    start = simulate(asked, answer).start_s
    trace = trace_of(flow_of(asked, answer, SimulationMode.CONGESTION_AWARE))
    for rank, node in enumerate(asked.topology.rank_nodes):
        sent = np.flatnonzero(answer.sends.source == node)
        served = answer.sends.target[sent[np.argsort(start[sent], kind="stable")]]
        peers = [asked.topology.rank_nodes[one.peer] for one in trace.ranks[rank] if one.type == SEND]
        assert peers == served.tolist()


def test_trees_keep_their_pieces(tmp_path, capsys):
    """Trees are written in the pieces of their file or of the option; schedules in steps have none."""
    file = tmp_path / "s.json"
    asked = ("ring(4)", "--collective", "all_gather", "--size", "4 MiB", "-o")
    assert cwb("solve", "-q", "-m", "forestcoll", *asked, file) == 0
    moved = []
    for option in ((), ("--pieces", 1), ("--pieces", 3)):
        folder = tmp_path / f"t{len(moved)}"
        assert cwb("export", "chakra", file, "-o", folder, *option) == 0
        moved.append([sum(n.type == SEND for nodes in read_trace(folder).ranks for n in nodes)])
        assert cwb("check", folder, "--topology", "ring(4)") == 0
    assert moved[2][0] == 3 * moved[1][0]
    assert moved[0][0] == json.loads(file.read_text())["pieces"] * moved[1][0]
    capsys.readouterr()
    assert cwb("export", "goal", file, "-o", tmp_path / "g", "--pieces", 2**20) == 2
    assert "--pieces" in capsys.readouterr().err
    assert cwb("solve", "-q", "-m", "ring", *asked, tmp_path / "r.json") == 0
    assert cwb("export", "goal", tmp_path / "r.json", "-o", tmp_path / "g", "--pieces", 2) == 2
    assert "only trees" in capsys.readouterr().err


def test_a_rank_without_work_has_a_node():
    """A rank that neither sends nor receives has one node all the same, since a rank without any never ends."""
    piece = Piece(((0,), (1,), False), 1, 0, 0)
    sizes = ((1, 0), (0, 1), (0, 0))
    hops = Hops(*np.array([[0], [0], [True], [False], [0], [0], [0], [1], [0], [-1]]))
    hops = hops._replace(last=hops.last == 1, reduce=hops.reduce == 1)
    trace = trace_of(Flow(None, 3, 1, Fraction(64), sizes, (piece,), hops))
    assert trace.transfers == {(0, 1): 64}
    assert [node.type for node in trace.ranks[2]] == [COMP]


def test_sizes_are_whole_bytes():
    """Sizes that are no whole bytes are rounded up."""
    asked = load("ring(3)").with_changes(demand=Demand(Collective.ALL_GATHER, Fraction(100)))
    trace = trace_of(flow_of(asked, run(asked, Request("direct")).answer))
    assert {node.size_bytes for nodes in trace.ranks for node in nodes} == {34}


def varint(number):
    """A number as protocol buffers write it."""
    return bytes([number]) if number < 128 else bytes([number & 127 | 128]) + varint(number >> 7)


def field(number, content):
    """A number or bytes as a field."""
    if isinstance(content, int):
        return varint(number << 3) + varint(content)
    return varint(number << 3 | 2) + varint(len(content)) + content


def attribute(name, kind, content):
    """An attribute of a node, whose value is the field of this number."""
    return field(10, field(1, name.encode()) + field(kind, content))


def fixed_attribute(name, number, content):
    """An attribute whose value has four or eight bytes."""
    kind = varint(number << 3 | (1 if len(content) == 8 else 5))
    return field(10, field(1, name.encode()) + kind + content)


def foreign(*nodes):
    """A file, byte by byte by the rules of the format."""
    return b"".join(varint(len(one)) + one for one in (field(1, b"1.0.2"), *nodes))


def send(number=0, *, after=b"", peer=1, size=None, tag=0, kind=SEND):
    """A send or receive, with values of several kinds of integers."""
    other = "comm_dst" if kind == SEND else "comm_src"
    size = attribute("comm_size", 7, 4096) if size is None else size
    values = attribute(other, 9, peer) + attribute("comm_tag", 11, tag) + size + attribute("comm_type", 29, b"x")
    return field(1, number) + field(2, b"name") + field(3, kind) + after + values


def test_foreign_files_are_read(tmp_path):
    """Files that no protobuf wrote: both kinds of dependences, packed and not, and values of any kind of integer."""
    sizes = [
        attribute("comm_size", 7, 4096),
        attribute("comm_size", 13, 4096),
        attribute("comm_size", 17, 8192),
        fixed_attribute("comm_size", 21, (4096).to_bytes(8, "little")),
        fixed_attribute("comm_size", 19, (4096).to_bytes(4, "little")),
    ]
    own = field(1, 9) + field(3, COMP) + field(5, bytes([0, 1])) + field(4, 2)
    (tmp_path / "a.0.et").write_bytes(foreign(*(send(i, size=size, tag=i) for i, size in enumerate(sizes)), own))
    (tmp_path / "a.1.et").write_bytes(foreign(*(send(i, peer=0, tag=i, kind=RECV) for i in range(5))))
    trace = read_trace(tmp_path)
    assert trace.transfers == {(0, 1): 5 * 4096}
    assert sorted(trace.ranks[0][5].after) == [0, 1, 2]
    assert problems_of(trace) == []


def test_the_files_that_are_written_have_the_numbers_of_the_schema():
    """A file is what the numbers of the format make, byte by byte."""
    ints = [("comm_size", 5), ("comm_src", 0), ("comm_dst", 1), ("comm_tag", 3), ("msg_chunk_cnt", 1)]
    values = b"".join(attribute(name, 9, number) if number else field(10, field(1, name.encode()) + field(9, 0))
                      for name, number in [*ints, ("total_chunk_cnt", 2)])  # fmt: skip
    node = field(1, 7) + field(2, b"s") + field(3, SEND) + field(5, bytes([4])) + values
    expected = b"".join(varint(len(one)) + one for one in (field(1, b"0.0.4"), node))
    assert file_of(Trace(((Node(7, SEND, (4,), 1, 3, 5, 1, "s"),), ()), 2), 0) == expected


PAIR = (
    (Node(0, SEND, (), 1, 0, 8), Node(1, RECV, (), 1, 0, 8)),
    (Node(0, SEND, (), 0, 0, 8), Node(1, RECV, (), 0, 0, 8)),
)


@pytest.mark.parametrize(
    ("rank", "nodes", "text"),
    [
        (0, [], "rank 0 has no node"),
        (0, [Node(0, SEND, (), 1, 0, 9), PAIR[0][1]], "rank 0 to rank 1, tag 0: 9 B are sent, 8 B received"),
        (0, [Node(0, SEND, (), 1, 5, 8), PAIR[0][1]], "rank 0 to rank 1, tag 0: 0 sends, 1 receives"),
        (1, [PAIR[1][0]], "rank 0 to rank 1, tag 0: 1 sends, 0 receives"),
        (1, [*PAIR[1], Node(2, COMP, (3,))], "rank 1, node 2 waits for node 3, which is not there"),
        (1, [*PAIR[1], Node(2, COMP, (3,)), Node(3, COMP, (2,))], "rank 1, node 2 waits for ever"),
        (1, [*PAIR[1], Node(2, COMP, (2,))], "rank 1, node 2 waits for ever"),
    ],
)
def test_what_is_wrong_is_found(rank, nodes, text):
    """Sizes, tags, missing ends, missing nodes and circles are told with their place."""
    assert problems_of(Trace(PAIR)) == []
    ranks = [*PAIR]
    ranks[rank] = tuple(nodes)
    assert any(text in problem for problem in problems_of(Trace(tuple(ranks))))


def test_a_circle_over_messages_is_found():
    """Two ranks that each receive before they send wait for ever."""
    ranks = tuple((nodes[0]._replace(after=(1,)), nodes[1]) for nodes in PAIR)
    assert len(problems_of(Trace(ranks))) == 4


BROKEN = {
    "a.0.et": (b"", "is empty"),
    "b.0.et": (b"\x05ab", "message 0: 5 bytes, but the file ends after 2"),
    "c.0.et": (b"\xff\xff\xff\xff\x7f", "message 0: is longer than"),
    "d.0.et": (b"\x80", "message 0: the file ends within a length"),
    "e.0.et": (b"\x02\xff\xff", "message 0: is no GlobalMetadata"),
    "f.0.et": (foreign(b"\x0f"), "message 1: is no Node"),
    "g.0.et": (foreign(send(peer=0), send(peer=0)), "message 2: node 0 is defined twice"),
    "h.0.et": (foreign(send(kind=7)), "is a whole collective"),
    "i.0.et": (foreign(send(kind=0)), "type 0; expected 1 to 7"),
    "j.0.et": (foreign(send(peer=1)), "comm_dst 1; expected a rank from 0 to 0"),
    "k.0.et": (foreign(send(peer=0, size=b"")), "has no integer comm_size"),
    "l.0.et": (foreign(send(peer=0, size=attribute("comm_size", 29, b"8"))), "has no integer comm_size"),
    "m.0.et": (foreign(send(peer=0) + attribute("comm_src", 9, 3)), "comm_src 3, but the file is of rank 0"),
    "n.0.et": (foreign(send(peer=0, size=attribute("comm_size", 17, 1))), "comm_size -1"),
    "o.1.et": (foreign(send()), "has no file of rank 0"),
    "p.x.et": (foreign(send()), "expected a name such as PREFIX.0.et"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_files_are_refused(name, tmp_path, capsys):
    """A file that is no trace gives exit status 2 and one line with the error."""
    content, text = BROKEN[name]
    (tmp_path / name).write_bytes(content)
    assert cwb("check", tmp_path) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert text in error


def test_folders_that_are_no_trace_are_refused(tmp_path, capsys):
    """Files of two traces, of two formats, one file alone, and options of others."""
    store_trace(Trace(PAIR), tmp_path, "a")
    assert cwb("check", tmp_path / "a.0.et") == 2
    assert cwb("check", tmp_path, "--dialect", "rccl") == 2
    (tmp_path / "c.xml").touch()
    assert cwb("check", tmp_path) == 2
    (tmp_path / "c.xml").unlink()
    (tmp_path / "b.0.et").touch()
    assert cwb("check", tmp_path) == 2
    error = capsys.readouterr().err
    for text in (
        "expected its folder",
        "--dialect is of MSCCL",
        ".et and .xml files",
        "has files of 'a' and of 'b'",
    ):
        assert text in error


def test_how_much_is_read_is_limited(tmp_path, monkeypatch):
    """More bytes, nodes or dependences than there may be are refused."""
    (tmp_path / "a.0.et").write_bytes(foreign(send(0, peer=0), send(1, peer=0, after=field(5, bytes(range(2, 9))))))
    for name, value, text in (
        ("MAX_NODES", 1, "nodes"),
        ("MAX_DEPENDENCES", 6, "dependences"),
        ("MAX_BYTES", 9, "bytes"),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(files, name, value)
            with pytest.raises(InputError, match=f"more than .*{text}"):
                read_trace(tmp_path)


@settings(max_examples=60)
@given(st.integers(0, 200), st.binary(max_size=6), st.integers(0, 4))
def test_any_change_is_read_or_refused(tmp_path_factory, at, new, cut):
    """Any bytes in the place of others give a trace, which can be run, or an InputError."""
    folder = store_trace(Trace(PAIR), tmp_path_factory.mktemp("t"))
    path = folder / "t.0.et"
    raw = path.read_bytes()
    path.write_bytes(raw[:at] + new + raw[at + cut :])
    try:
        trace = read_trace(folder)
    except InputError as error:
        assert "\n" not in str(error)
    else:
        assert isinstance(problems_of(trace), list)


def test_without_protobuf_the_extra_is_named(monkeypatch):
    """Without protobuf, the error says how to install it."""
    monkeypatch.setitem(sys.modules, "google.protobuf", None)
    files.messages.cache_clear()
    with pytest.raises(InputError, match=r"pip install 'cwb\[chakra\]'"):
        files.messages()
    files.messages.cache_clear()


@pytest.mark.slow  # solves
def test_the_commands_of_the_page_run(tmp_path, monkeypatch, capsys):
    """Every command of the page ends with 0 and finds the traces right; another trace is not written beside one, and a
    network without the links is told."""
    monkeypatch.chdir(tmp_path)
    commands = re.findall(r"^\$ cwb (.*)$", PAGE.read_text(), flags=re.MULTILINE)
    for command in commands:
        assert cwb(*shlex.split(command)) == 0
    assert capsys.readouterr().out.count("traces: right, 16 ranks") == 1
    assert cwb("export", "chakra", "s.json", "-o", "traces", "--name", "other") == 2
    assert cwb("export", "chakra", "s.json", "-o", "there/is/none") == 2
    assert cwb("export", "chakra", "s.json", "-o", "t", "--name", "a/b") == 2
    assert cwb("check", "traces", "--topology", "ring(16)") == 5
    assert cwb("check", "traces", "--topology", "ring(4)", "--json") == 5
