"""Traces as schedules: what went out comes back, foreign traces are read by what they wait for, and nothing is
guessed."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import pytest
from command_line import cwb
from cwb.core.collective import Collective, collective_named
from cwb.core.errors import InputError
from cwb.exchange.chakra.files import file_of, read_trace
from cwb.exchange.chakra.lift import lift_trace
from cwb.exchange.chakra.trace import COMP, RECV, SEND, Node, Trace, problems_of, trace_of
from cwb.exchange.msccl.flow import flow_of
from cwb.exchange.msccl.links import loads_of
from cwb.harness import Request
from cwb.harness.run import run
from cwb.instances import load
from cwb.schedules.completion import completion_of
from cwb.schedules.files import read_schedule
from cwb.schedules.verify import verify
from draws import draws
from families import FAMILIES
from hypothesis import given, settings
from hypothesis import strategies as st

#: Schedules that ranks alone cannot do, and one whose sends end in a switch.
REFUSED = {"multicast_broadcast", "in_network_all_reduce", "group_all_gather"}


def bare(trace):
    """The trace as another program would write it: without what it says of its data."""
    return Trace(tuple(tuple(n._replace(data=-1, use=0, grains=0) for n in nodes) for nodes in trace.ranks))


def sent_messages(trace):
    """Return the number of messages of each size from rank to rank."""
    return Counter(
        (rank, node.peer, node.size_bytes)
        for rank, nodes in enumerate(trace.ranks)
        for node in nodes
        if node.type == SEND
    )


@pytest.mark.parametrize("name", [name for name in FAMILIES if name not in REFUSED])
def test_families_come_back(name, tmp_path):
    """From files, every family is the same collective again, verified, with the same bytes between ranks; and those in
    steps with the same messages."""
    instance, answer = FAMILIES[name]()
    trace = trace_of(flow_of(instance, answer))
    for rank in range(trace.ngpus):
        (tmp_path / f"a.{rank}.et").write_bytes(file_of(trace, rank))
    demand = instance.demand
    again, schedule = lift_trace(
        read_trace(tmp_path), instance.network, demand.collective, demand.size_bytes, instance.name
    )
    assert verify(again, schedule).ok
    assert again.demand == demand
    back = trace_of(flow_of(again, schedule))
    assert back.transfers == trace.transfers
    assert name.startswith("timed") or sent_messages(back) == sent_messages(trace)


@pytest.mark.parametrize("name", [n for n in FAMILIES if n not in REFUSED | {"routed_all_to_all", "stored_gather"}])
def test_families_are_read_by_what_waits(name):
    """Without what cwb says of the data, the collective and the sizes of messages are enough, and the digest of the
    instance is the same."""
    instance, answer = FAMILIES[name]()
    trace = bare(trace_of(flow_of(instance, answer)))
    again, schedule = lift_trace(trace, instance.network, instance.demand.collective, None, instance.name)
    assert trace_of(flow_of(again, schedule)).transfers == trace.transfers
    if instance.demand.chunks == 1:
        assert again.sha256 == instance.sha256


def serial_ring(ranks, size_bytes):
    """A ring's all-reduce as ASTRA-sim's converter writes it: a rank does one thing after the other, sums are work."""
    part, found = size_bytes // ranks, []
    for rank in range(ranks):
        nodes, last = [], ()

        def add(kind, last=last, **values):
            nodes.append(Node(len(nodes), kind, last, **values))  # noqa: B023
            return (len(nodes) - 1,)  # noqa: B023

        for step in range(2 * ranks - 2):
            last = add(SEND, last, peer=(rank + 1) % ranks, size_bytes=part)
            last = add(RECV, last, peer=(rank - 1) % ranks, size_bytes=part)
            last = add(COMP, last) if step < ranks - 1 else last
        found.append(tuple(nodes))
    return Trace(tuple(found))


def test_a_foreign_ring_is_the_textbooks():
    """Work between receive and send, and receives that wait for sends, do not change what is sent: the schedule has the
    sends of cwb's own ring, step by step."""
    instance = load("ring(5, bidirectional=False)")
    again, schedule = lift_trace(serial_ring(5, 5000), instance.network, Collective.ALL_REDUCE, None, "ring")
    assert again.demand.size_bytes == 5000
    own = run(again, Request("ring")).answer

    def rows(one):
        columns = (one.step, one.sends.source, one.sends.target, one.sends.reduce)
        return sorted(zip(*(column.tolist() for column in columns), strict=True))

    assert rows(schedule) == rows(own)


def test_messages_alone_keep_their_order():
    """As point_to_point every message is data of its own, in a step after those that it waits for."""
    network = load("ring(5, bidirectional=False)").network
    again, schedule = lift_trace(serial_ring(5, 5000), network, Collective.POINT_TO_POINT, None, "ring")
    assert verify(again, schedule).ok
    assert schedule.steps == 8
    assert len(again.demands) == 5
    assert {demand.size_bytes for demand in again.demands} == {Fraction(8000)}


@pytest.mark.parametrize(("kind", "size", "said"), [
    ("all_to_all", None, "data of rank 0 ends at 0 ranks"),
    ("reduce_scatter", None, "does no reduce_scatter"),
    ("broadcast", None, "5 ranks seem to be the root"),
    ("all_reduce", 6000, "--size: a message has 1,000 B, which is no part of 6,000 B"),
])  # fmt: skip
def test_another_collective_is_refused(kind, size, said):
    """A trace that does not do what it is said to do, or in another size, is refused."""
    network = load("ring(5)").network
    with pytest.raises(InputError, match=said):
        lift_trace(serial_ring(5, 5000), network, collective_named(kind), None if size is None else Fraction(size), "x")


def test_messages_without_data_are_refused():
    """A message of 0 bytes can be checked, and is of no schedule."""
    ranks = tuple(
        (Node(0, SEND, (), peer=1 - rank, size_bytes=0), Node(1, RECV, (), peer=1 - rank, size_bytes=0))
        for rank in (0, 1)
    )
    trace, network = Trace(ranks), load("complete(2)").network
    assert problems_of(trace) == []
    assert loads_of(trace, network).busiest(network) is None
    with pytest.raises(InputError, match="node 0 sends 0 B"):
        lift_trace(trace, network, Collective.ALL_GATHER, None, "x")


def test_networks_that_do_not_fit_are_refused():
    """Another number of ranks, and pairs without a link, are told."""
    trace = serial_ring(5, 5000)
    with pytest.raises(InputError, match="is of 5 ranks, but the network has 4"):
        lift_trace(trace, load("ring(4)").network, Collective.ALL_REDUCE, None, "x")
    with pytest.raises(InputError, match="has no link"):
        lift_trace(trace, load("line(5)").network, Collective.ALL_REDUCE, None, "x")
    stuck = Trace((trace.ranks[0][:-1], *trace.ranks[1:]))
    with pytest.raises(InputError, match="fails: rank 4 to rank 0"):
        lift_trace(stuck, load("ring(5)").network, Collective.ALL_REDUCE, None, "x")
    with pytest.raises(InputError, match="has no message"):
        lift_trace(Trace(((Node(0, COMP),),) * 5), load("ring(5)").network, Collective.ALL_REDUCE, None, "x")


def test_commands_go_out_and_back(tmp_path, capsys):
    """Solved, exported, imported, checked: the instance has the digest that it began with."""
    file, traces, back = tmp_path / "s.json", tmp_path / "traces", tmp_path / "back.json"
    asked = ["torus(2,3)", "--collective", "all_reduce", "--size", "1 MiB"]
    assert cwb("solve", "-q", "-m", "forestcoll", *asked, "-o", file) == 0
    assert cwb("export", "chakra", file, "-o", traces, "--pieces", 2) == 0
    into = ["--topology", "torus(2,3)", "--size", "1 MiB", "--name", "torus(2,3)", "-o", back]
    assert cwb("import", "chakra", traces, "--collective", "all_reduce", *into) == 0
    assert cwb("check", back) == 0
    assert read_schedule(back).instance.sha256 == read_schedule(file).instance.sha256
    capsys.readouterr()
    assert cwb("import", "chakra", traces, "--collective", "all_redcue", *into) == 2
    assert "did you mean 'all_reduce'" in capsys.readouterr().err


def test_a_send_that_is_held_back_passes_on_its_own_message(tmp_path):
    """On a mesh rank 1 passes on two copies of the root's chunk, the second of which is held back until the first has
    left: each is the message that it came with, and the import takes the same time."""
    file, traces, back = tmp_path / "s.json", tmp_path / "traces", tmp_path / "back.json"
    asked = ["--collective", "broadcast", "--size", "1000003 B"]
    assert cwb("solve", "-q", "-m", "direct", "mesh(2,3)", *asked, "-o", file) == 0
    assert cwb("export", "chakra", file, "-o", traces) == 0
    assert cwb("import", "chakra", traces, "--topology", "mesh(2,3)", *asked, "-o", back) == 0
    times = [completion_of(read.instance, read.answer) for read in (read_schedule(file), read_schedule(back))]
    assert times[0].seconds == times[1].seconds


PLAIN = {
    name: trace_of(flow_of(*FAMILIES[name]())) for name in ("ring_all_reduce", "binomial_broadcast", "reduce_trees")
}


@st.composite
def changed_traces(draw):
    """A right trace with a few changes, with or without what cwb says of the data."""
    name = draw(st.sampled_from(sorted(PLAIN)))
    trace = PLAIN[name] if draw(st.booleans()) else bare(PLAIN[name])
    ranks = [list(nodes) for nodes in trace.ranks]
    for _ in range(draw(st.integers(1, 3))):
        nodes = ranks[draw(st.integers(0, len(ranks) - 1))]
        if not nodes:
            continue
        place = draw(st.integers(0, len(nodes) - 1))
        node = nodes[place]
        match draw(st.integers(0, 5)):
            case 0:
                nodes[place] = node._replace(after=node.after[1:])
            case 1:
                nodes[place] = node._replace(after=(*node.after, draw(st.integers(0, len(nodes) - 1))))
            case 2:
                nodes[place] = node._replace(data=draw(st.integers(-1, 3)), use=draw(st.integers(0, 2)))
            case 3:
                nodes[place] = node._replace(grains=draw(st.integers(0, 3)))
            case 4:
                nodes[place] = node._replace(type=COMP)
            case _:
                del nodes[place]
    return FAMILIES[name]()[0], Trace(tuple(tuple(nodes) for nodes in ranks))


@settings(max_examples=draws(60))
@given(changed_traces())
def test_any_change_is_a_verified_schedule_or_refused(found):
    """Whatever a trace says, it becomes a schedule that the verifier takes, or an error of one line."""
    instance, trace = found
    for kind in (instance.demand.collective, Collective.POINT_TO_POINT):
        try:
            again, schedule = lift_trace(trace, instance.network, kind, None, "x")
        except InputError as error:
            assert "\n" not in str(error)
        else:
            assert verify(again, schedule).ok
