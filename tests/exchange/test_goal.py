"""GOAL text: a replay that knows the format alone moves what the schedule moves, and nobody waits for ever."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import replace
from fractions import Fraction
from graphlib import TopologicalSorter
from itertools import pairwise

import cwb
import numpy as np
import pytest
from cwb.cli.main import run
from cwb.core.budget import Budget
from cwb.core.collective import Demand, collective_named
from cwb.core.timing import RankCosts
from cwb.core.trace import Routing, SimulationMode
from cwb.exchange.msccl.flow import Hops, flow_of
from cwb.exchange.simulators import goal_text
from cwb.harness import registry
from cwb.schedules.files import write_schedule
from cwb.schedules.simulate import simulate

_LINE = re.compile(
    r"l(\d+): (?:(send|recv) (\d+)b (?:to|from) (\d+) tag (\d+)|calc (\d+))(?: cpu \d+)?\Z"
    r"|l(\d+) i?requires l(\d+)\Z"
)


def parse_goal(text):
    """Operations by rank and label, and pairs of operations of which the second requires the first."""
    operations, edges = {}, []
    for body in text.split("\nrank ")[1:]:
        rank, _, rest = body.partition(" {\n")
        for line in rest.rstrip().removesuffix("}").splitlines():
            found = _LINE.match(line)
            assert found, line
            if found[7]:
                edges.append(((int(rank), int(found[8])), (int(rank), int(found[7]))))
            else:
                operations[int(rank), int(found[1])] = found
    return operations, edges


def messages(operations):
    """Send and receive of every message, by source, target and tag; each is there once, with the same size."""
    ends = {"send": {}, "recv": {}}
    for (rank, label), found in operations.items():
        if found[2]:
            pair = (rank, int(found[4])) if found[2] == "send" else (int(found[4]), rank)
            assert (*pair, found[5]) not in ends[found[2]], "two messages have the same tag"
            ends[found[2]][*pair, found[5]] = (rank, label)
    assert set(ends["send"]) == set(ends["recv"])
    for message, send in ends["send"].items():
        assert operations[send][3] == operations[ends["recv"][message]][3]
    return {message: (send, ends["recv"][message]) for message, send in ends["send"].items()}


def replay(text):
    """Run the operations: what each rank has heard of in the end, bytes by pair of ranks, and nanoseconds of calc.

    A message tells all that its sender knew by what the send requires.
    """
    operations, edges = parse_goal(text)
    sent = messages(operations)
    moved = defaultdict(int)
    for (source, target, _), (send, _) in sent.items():
        moved[source, target] += int(operations[send][3])
    required = {key: set() for key in operations}
    for before, after in [*edges, *sent.values()]:
        required[after].add(before)
    known, heard = {}, defaultdict(set)
    for key in TopologicalSorter(required).static_order():  # a CycleError is somebody who waits for ever
        known[key] = {key[0]}.union(*(known[before] for before in required[key]))
        heard[key[0]] |= known[key]
    took = sum(int(found[6] or 0) for found in operations.values())
    return [heard[rank] | {rank} for rank in range(int(text.split()[1]))], dict(moved), took


CASES = [
    ("ring", "ring(5)", "all_gather"),
    ("ring", "torus(3,3)", "all_reduce"),
    ("direct", "torus(3,3)", "all_reduce"),
    ("knomial", "line(5)", "broadcast"),
    ("forestcoll", "star(4)", "all_reduce"),
    ("pccl", "mesh(3,3)", "all_gather"),
]


def flow_for(model, network, collective):
    """Return the flow of a method's schedule."""
    asked = cwb.load(network).with_changes(demand=Demand(collective_named(collective), Fraction(2**20)))
    method = registry.get(model)
    answer = method.run(asked, None, Budget(), method.options()).answer
    return asked, answer, flow_of(asked, answer, SimulationMode.CUT_THROUGH)


@pytest.mark.parametrize(("model", "network", "collective"), CASES)
def test_a_replay_moves_what_the_schedule_moves(model, network, collective):
    """Every message is sent and received once, bytes by pair of ranks are the schedule's, and in the end every rank
    has heard of all whose data it needs."""
    _, _, flow = flow_for(model, network, collective)
    known, moved, took = replay(goal_text(flow))
    expected = defaultdict(Fraction)
    for hop in map(Hops._make, zip(*(column.tolist() for column in flow.hops), strict=True)):
        expected[hop.source, hop.target] += flow.chunks[hop.chunk].grains * flow.grain_bytes
    assert set(moved) == set(expected)
    assert all(0 <= moved[pair] - expected[pair] < len(flow.hops.chunk) for pair in moved)
    whole = {0} if collective == "broadcast" else set(range(flow.ranks))
    assert all(whole <= some for some in known)
    assert took == 0


def test_adding_takes_time_where_it_has_a_rate():
    """Each byte that is added takes the time of the rate."""
    _, _, flow = flow_for("ring", "ring(4)", "reduce_scatter")
    _, _, took = replay(goal_text(flow, Fraction(10**9)))
    assert took == 4 * 3 * 2**18


def test_costs_of_ranks(tmp_path):
    """The rate of adding of the instance is in the text; the command says that the cost of messages is not."""
    asked, answer, _ = flow_for("ring", "ring(4)", "reduce_scatter")
    costs = RankCosts(Fraction(1, 10**6), Fraction(10**9), while_receiving=True)
    here = asked.with_changes(rank_costs=costs)
    answer = replace(answer, instance_sha256=here.sha256)
    write_schedule(tmp_path / "s.json", here, answer)
    found = cwb.export_goal(tmp_path / "s.json")
    assert found.content == goal_text(flow_of(here, answer, SimulationMode.CUT_THROUGH), Fraction(10**9))
    assert "rank_overhead is left out" in found.about


def test_exports_have_the_paths_of_the_schedule(tmp_path):
    """The text of a schedule on a network that sprays is that of one on fixed paths."""
    asked, answer, _ = flow_for("direct", "fat_tree(4)", "all_to_all")
    texts = set()
    for routing in Routing:
        here = asked.with_changes(routing=routing)
        write_schedule(tmp_path / "s.json", here, replace(answer, instance_sha256=here.sha256))
        texts.add(cwb.export_goal(tmp_path / "s.json").content)
    assert len(texts) == 1


@pytest.mark.parametrize("routing", Routing)
@pytest.mark.parametrize("name", ["msccl", "mscclpp", "goal", "htsim", "chakra", "astra"])
def test_exports_say_that_they_have_no_routing(name, routing, tmp_path):
    """Every format leaves the routing of an instance out and says so, unless it is that of the schedule."""
    asked, answer, _ = flow_for("direct", "torus(3,3)", "all_to_all")
    here = asked.with_changes(routing=routing)
    write_schedule(tmp_path / "s.json", here, replace(answer, instance_sha256=here.sha256))
    about = getattr(cwb, f"export_{name}")(tmp_path / "s.json", output=tmp_path / "made").about
    told = f"; routing {routing.value} is left out: the format has no routing"
    assert about.endswith(told) == (routing is not Routing.FIXED)
    assert about.count("left out") == (routing is not Routing.FIXED)


def test_the_text_grows_with_the_schedule():
    """Sums of many parts that go to many ranks are joined once, not for every send."""
    _, _, flow = flow_for("direct", "star(12)", "all_reduce")
    assert goal_text(flow).count("\n") < 6 * len(flow.hops.chunk)


def test_the_command(tmp_path):
    """The command writes the text of a schedule file."""
    asked, answer, flow = flow_for("ring", "ring(4)", "all_gather")
    write_schedule(tmp_path / "s.json", asked, answer)
    with pytest.raises(SystemExit) as ended:
        run(["export", "goal", str(tmp_path / "s.json"), "-o", str(tmp_path / "s.goal")])
    assert not ended.value.code
    assert (tmp_path / "s.goal").read_text() == goal_text(flow)
    assert (tmp_path / "s.goal").read_text().startswith("num_ranks 4\n\nrank 0 {\nl1: recv ")


def test_a_chunk_has_a_processor_of_its_own():
    """Operations that require one another have the same cpu, and messages of other chunks have other ones."""
    _, _, flow = flow_for("ring", "ring(4)", "reduce_scatter")
    for body in goal_text(flow, Fraction(10**9)).split("\nrank ")[1:]:
        cpu = dict(re.findall(r"(l\d+): .* cpu (\d+)", body))
        pairs = re.findall(r"(l\d+) requires (l\d+)", body)
        assert pairs
        assert all(cpu[one] == cpu[other] for one, other in pairs)
        assert set(cpu.values()) == {str(chunk) for chunk in range(len(flow.chunks))}


def test_sends_of_a_link_begin_in_order():
    """On a switch every send but the first begins after the one before, as the simulation serves the link."""
    asked, answer, flow = flow_for("direct", "switch(4)", "all_to_all")
    start = simulate(asked, answer, SimulationMode.CUT_THROUGH).start_s
    for rank, body in enumerate(goal_text(flow).split("\nrank ")[1:]):
        node = asked.topology.rank_nodes[rank]
        sent = np.flatnonzero(answer.sends.source == node)
        served = answer.sends.target[sent[np.argsort(start[sent], kind="stable")]]
        sends = re.findall(r"(l\d+): send \d+b to (\d+)", body)
        assert [asked.topology.rank_nodes[int(peer)] for _, peer in sends] == served.tolist()
        assert re.findall(r"(l\d+) irequires (l\d+)", body) == [(b, a) for (a, _), (b, _) in pairwise(sends)]
