"""Instances that the method rejects, errors in one line, and early ends."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
from cwb.cli.main import run as command_line
from cwb.core.budget import Budget, Incumbent
from cwb.core.collective import Collective, Demand
from cwb.core.errors import InputError, Unsupported
from cwb.core.fabric import parse_fabric
from cwb.core.outcome import Status
from cwb.core.timing import Semantics, Timing
from cwb.core.topology import Topology
from cwb.harness import Request, run
from cwb.heuristics.pccl import search
from cwb.heuristics.pccl.method import METHOD
from cwb.instances import load

DEFECTS = Path(__file__).parents[2] / "reference" / "defects3"


@pytest.fixture
def solve(capsys):
    """Run the command line; give its exit status and what it prints on stderr."""

    def start(*words: str) -> tuple[int, str]:
        with pytest.raises(SystemExit) as ended:
            command_line(["solve", "--model", "pccl", *words])
        return ended.value.code, capsys.readouterr().err

    return start


def test_a_reason_is_given(pose):
    """A fabric has no links, a single rank nobody to talk to, an empty collective no data, and epochs are another
    grid."""
    supports = METHOD.supports
    assert supports(pose("ring(4)")) is None
    assert "no links" in str(supports(pose("ring(4)").with_changes(network=parse_fabric("RI(4)"))))
    assert "two ranks" in str(supports(pose("ring(4)", ranks=(2,))))
    assert "no data" in str(supports(pose("ring(4)", size=0)))
    timing = Timing(Semantics.STORE_AND_FORWARD, Fraction(1))
    assert "epochs" in str(supports(pose("ring(4)").with_changes(timing=timing)))


def test_something_must_be_asked_for(run):
    """Neither a collective nor a condition is nothing to schedule."""
    with pytest.raises(Unsupported, match="no collective"):
        run(load("ring(4)"))


def test_conditions_may_be_all_that_is_asked_for(run, verify_schedule):
    """A network alone, and conditions as an option; ``verified`` asserts that the answer is right."""
    posed = load("mesh(2,2)").with_changes(
        demand=Demand(Collective.BROADCAST, Fraction(2**20), ranks=(0, 1, 2)),
        also=(Demand(Collective.POINT_TO_POINT, Fraction(2**20), ranks=(3, 0)),),
    )
    verify_schedule(posed, run(load("mesh(2,2)"), conditions="0->1,2: 1 MiB; 3->0: 1 MiB"))


@pytest.mark.parametrize(
    ("network", "conditions", "line"),
    [
        ("mesh(2,2)", "->1,2: 1 MiB", "conditions[0]: no node holds the chunk '->1,2: 1 MiB'"),
        (
            "mesh(2,2)",
            "0->1: 1 MiB; 0,1->2: 1 MiB",
            "conditions[1]: 2 nodes hold the chunk '0,1->2: 1 MiB'; expected one",
        ),
        ("mesh(2,2)", "0->0: 1 MiB", "conditions[0]: no other node needs the chunk '0->0: 1 MiB'"),
        ("mesh(2,2)", "0->9: 1 MiB", "conditions[0]: '9' is no node; expected a compute node"),
        ("star(3)", "switch->0: 1 MiB", "conditions[0]: 'switch' is a switch; expected a compute node"),
        ("mesh(2,2)", "0->1", "conditions[0]: '0->1'; expected such as '0->1,2: 1 MiB'"),
        ("mesh(2,2)", "0->1: much", "conditions[0]: "),
    ],
)
def test_wrong_conditions_are_told_in_one_line(solve, network, conditions, line):
    """The command line says which condition is wrong and why, and ends with the status of bad input."""
    if network == "star(3)":
        topology = load(network).network
        conditions = conditions.replace("switch", topology.switches[0])
        line = line.replace("switch'", f"{topology.switches[0]}'", 1)
    status, err = solve(network, "-O", f"conditions={conditions}")
    assert status == 2
    assert line in err
    assert len(err.strip().splitlines()) == 1


def test_a_group_member_that_is_a_switch_is_refused(tmp_path, pose, run, solve):
    """Ranks are compute nodes: a number beyond them, such as that of a switch, is told with its place."""
    posed = pose("star(3)", ranks=(0, 1, 3))
    with pytest.raises(InputError, match=r"collective\.ranks: rank 3; expected compute nodes, 0 to 2"):
        run(posed)
    path = tmp_path / "switch.json"
    group = {"kind": "all_to_all", "size": "1 MiB", "ranks": [0, 1, 3]}
    path.write_text(json.dumps({"cwb": 1, "network": "star(3)", "collective": group}))
    status, err = solve(str(path))
    assert status == 2
    assert len(err.strip().splitlines()) == 1


def test_an_unreachable_member_is_refused(pose, run):
    """If no path leads to a member, the error says so before the search."""
    topology = load("line(4)").network
    links = tuple(link for link in topology.links if (link.source, link.target) != ("1", "2"))
    with pytest.raises(InputError, match="no path leads"):
        run(pose(Topology(topology.nodes, links), ranks=(0, 1, 2)))


@pytest.mark.parametrize(("kind", "chunks"), [("all_to_all", 10**6), ("broadcast", 10**9)])
def test_more_chunks_than_memory_are_refused(solve, kind, chunks):
    """Sends are counted before a chunk is listed."""
    status, err = solve("mesh(4,4)", "--collective", kind, "--chunks", str(chunks))
    assert status == 2
    assert "sends at least; expected at most 40,000,000" in err
    assert len(err.strip().splitlines()) == 1


def test_a_run_that_is_asked_to_stop_says_so(pose, run):
    """Ways of some chunks are no answer; the bound is one all the same, and so is what another method has found."""
    budget = Budget()
    budget.stop.set()
    for network, options in (("ring(4, latency='0 us')", {}), ("ring(4)", {"orders": "paper"})):
        outcome = run(pose(network), budget, **options)
        assert (outcome.status, outcome.answer) == (Status.LIMIT, None)
        assert outcome.bound > 0
        assert "in time" in outcome.message
    told: list[Incumbent] = []
    outcome = run(pose("switch2d(2,4)"), replace(budget, tell=told.append))
    assert outcome.status is Status.FEASIBLE
    assert outcome.metrics["found_by"] == "direct"
    assert told[-1].answer() is outcome.answer


def test_the_flow_is_asked_for_where_it_may_help(pose, run):
    """A row of a mesh: the maximum concurrent flow proves more than cuts do, and auto computes it."""
    posed = pose("mesh(3,3, latency='0 us')", ranks=(0, 1, 2))
    cut, auto, flow = (run(posed, bound=name, steps=0) for name in ("cut", "auto", "flow"))
    assert not cut.reports
    assert auto.reports
    assert auto.bound == flow.bound >= cut.bound


@pytest.mark.slow
def test_steps_limit_the_ways_that_are_sought(pose, run, monkeypatch):
    """Without steps there is one attempt; ruin and recreate ends when they are used up."""
    posed = pose("torus(4,4)", chunks=2)
    assert run(posed, steps=0).metrics["attempts"] == 1
    monkeypatch.setattr(search, "_PATIENCE", 10**9)
    few, many = (run(posed, steps=steps).iterations for steps in (3_000, 9_000))
    assert 480 <= few <= 4_000
    assert few < many <= 10_000


@pytest.mark.parametrize("name", ["pccl_buffer", "pccl_buffer_all_reduce"])
def test_sums_over_a_switch_with_a_limit(name):
    """A sum that comes to a switch with little room a second time is not added to what the switch still has."""
    solved = run(load(DEFECTS / f"{name}.json"), Request("pccl"))
    assert solved.record.verified, solved.record.violations


def test_circuits_that_share_a_link_are_played_first():
    """Copies that ``tacos`` lets share a link in its circuits have times of their own in an answer without a grid."""
    record = run(load(DEFECTS / "pccl_circuits.json"), Request("pccl", options={"steps": 200})).record
    assert record.verified, record.violations


def test_the_budget_is_asked_between_searches(monkeypatch):
    """With a limited buffer a job has a search for every target; few of these pass between two looks at the budget."""
    looks: list[int] = []
    place_all = search.place_all
    monkeypatch.setattr(search, "place_all", lambda *tables: looks.append(tables[7]) or place_all(*tables))
    posed, request = load(DEFECTS / "pccl_buffer.json"), Request("pccl", options={"orders": "paper"})
    posed = posed.with_changes(demand=replace(posed.demands[0], collective=Collective.ALL_GATHER))
    whole = run(posed, request)
    assert looks == [0]
    looks.clear()
    monkeypatch.setattr(search, "_EDGES", 1)
    singly = run(posed, request)
    assert looks == [0, 1, 2]
    assert singly.record.answer == whole.record.answer
