"""Instances that the method rejects, and early ends."""

from __future__ import annotations

import pytest
from cwb.core.budget import Budget
from cwb.core.errors import InputError, Unsupported
from cwb.core.fabric import parse_fabric
from cwb.core.outcome import Status
from cwb.core.topology import Topology
from cwb.heuristics.multitree.method import METHOD
from cwb.instances import load
from pydantic import ValidationError


def test_a_reason_is_given(pose):
    """A fabric has no links, a bare network no collective, a single rank nobody to talk to, an empty collective no
    data, a broadcast one root."""
    supports = METHOD.supports
    assert supports(pose("ring(4)")) is None
    assert "no collective" in str(supports(load("ring(4)")))
    assert "no links" in str(supports(pose("ring(4)").with_changes(network=parse_fabric("RI(4)"))))
    assert "two ranks" in str(supports(pose("ring(4)", ranks=(2,))))
    assert "no data" in str(supports(pose("ring(4)", size=0)))
    assert "does not define broadcast" in str(supports(pose("ring(4)", "broadcast")))
    further = pose("ring(4)", "all_to_all").demand
    assert "does not define all_to_all" in str(supports(pose("ring(4)").with_changes(also=(further,))))


def test_wrong_options_are_refused():
    """Links are parallel or equal, nothing else."""
    with pytest.raises(ValidationError):
        METHOD.options.model_validate({"links": "wide"})


def test_a_disconnected_network_is_an_input_error(pose, run):
    """Without a path between ranks, the run ends before trees are grown."""
    topology = load("line(4)").network
    links = tuple(link for link in topology.links if {link.source, link.target} != {"1", "2"})
    with pytest.raises(InputError, match="no path leads"):
        run(pose(Topology(topology.nodes, links)))


def test_schedules_that_are_too_large_are_refused(pose, run):
    """The number of sends is checked before a tree is grown."""
    with pytest.raises(Unsupported, match="sends; expected at most"):
        run(pose("ring(64)", chunks=10_000))


def test_a_run_that_is_asked_to_stop_says_so(pose, run):
    """Trees that are not complete are no answer; the bound is one all the same."""
    budget = Budget()
    budget.stop.set()
    outcome = run(pose("ring(4)"), budget)
    assert (outcome.status, outcome.answer) == (Status.LIMIT, None)
    assert outcome.bound > 0
    assert "in time" in outcome.message


def test_the_highest_tree_is_told(pose, run):
    """The metric is the largest number of edges between a root and a leaf."""
    assert run(pose("star(5)")).metrics == {"tree_height": 1}
    assert run(pose("line(5)")).metrics == {"tree_height": 4}
