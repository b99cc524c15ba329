"""SCCL: steps and rounds, constraint by constraint and on networks whose optimum is known."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest
from cwb import solvers
from cwb.core.budget import Budget
from cwb.core.collective import Collective, Demand
from cwb.core.errors import InputError, Unsupported
from cwb.core.outcome import Status
from cwb.core.topology import Link, Node, NodeKind, Topology
from cwb.harness import registry
from cwb.instances import load
from cwb.models.sccl.method import METHOD, ScclOptions, run
from cwb.schedules import verdict_of
from pydantic import ValidationError


def make_instance(network, kind=Collective.ALL_GATHER, size=200_000, chunks=1):
    return load(network).with_changes(demand=Demand(kind, Fraction(size), chunks))


@pytest.mark.parametrize(("chunks", "steps", "cost_us"), [(1, 2, 3.4), (2, 3, 5.1)])
def test_dgx1_of_table_3(chunks, steps, cost_us):
    """Least steps on a DGX-1 with chunks of 25 KB cost what TE-CCL reports of it in table 3: 3.4 us for one chunk and
    5.1 us for two."""
    instance = make_instance("dgx1()", size=200_000 * chunks, chunks=chunks)
    outcome = run(instance, solvers.get("highs"), Budget(), ScclOptions())
    assert outcome.metrics["sccl_steps"] == steps
    assert outcome.metrics["steps_proved"]
    assert outcome.metrics["sccl_cost_s"] * 1e6 == pytest.approx(cost_us)
    assert not verdict_of(instance, outcome.answer, outcome.certificate).violations


@pytest.mark.parametrize(
    ("network", "kind", "steps", "rounds"),
    [
        ("ring(5)", Collective.ALL_GATHER, 2, 2),
        ("ring(4)", Collective.ALL_TO_ALL, 2, 2),
        ("line(4)", Collective.BROADCAST, 3, 3),
        ("complete(4)", Collective.ALL_TO_ALL, 1, 1),
        ("hypercube(2)", Collective.SCATTER, 2, 2),
        ("ring(5)", Collective.REDUCE_SCATTER, 2, 2),
        ("ring(5, bidirectional=false)", Collective.ALL_REDUCE, 8, 8),
        ("line(4)", Collective.REDUCE, 3, 3),
        ("star(4)", Collective.ALL_GATHER, 3, 3),
        ("star(4)", Collective.BROADCAST, 2, 2),
        ("star(3)", Collective.ALL_REDUCE, 4, 4),
    ],
)
def test_known_optima(network, kind, steps, rounds):
    """Rings, lines, complete graphs and a square take the steps of their diameter where bandwidth allows it; stars
    take those of a rank's port; sums take those of the copies backwards, and an all_reduce both."""
    instance = make_instance(network, kind)
    outcome = run(instance, solvers.get("highs"), Budget(), ScclOptions())
    assert (outcome.metrics["sccl_steps"], outcome.metrics["rounds"]) == (steps, rounds)
    assert not verdict_of(instance, outcome.answer, outcome.certificate).violations


def test_nothing_is_proved_of_paths_that_the_model_leaves_out():
    """Two leaves with two spines between them, and a switch that copies, allow fewer steps than edges do."""
    one, far = (Fraction(10**9), Fraction(0)), [("r0", "l0"), ("r1", "l0"), ("r2", "l1"), ("r3", "l1")]
    ends = far + [(leaf, spine) for leaf in ("l0", "l1") for spine in ("s0", "s1")]
    nodes = [Node(f"r{rank}") for rank in range(4)] + [Node(n, NodeKind.SWITCH) for n in ("l0", "l1", "s0", "s1")]
    spines = Topology(tuple(nodes), tuple(Link(*pair, *one) for a, b in ends for pair in ((a, b), (b, a))))
    star = load("star(4)").network
    copying = replace(star, nodes=tuple(replace(n, multicast=n.kind is NodeKind.SWITCH) for n in star.nodes))
    cases = (spines, Collective.ALL_TO_ALL, 4, False), (copying, Collective.BROADCAST, 2, False)
    for network, kind, steps, proved in (*cases, (star, Collective.BROADCAST, 2, True)):
        instance = make_instance("star(4)", kind).with_changes(network=network)
        outcome = run(instance, solvers.get("highs"), Budget(), ScclOptions())
        assert (outcome.metrics["sccl_steps"], outcome.metrics["steps_proved"]) == (steps, proved)


def test_an_instance_that_is_too_small_is_said_to_be():
    """One step is too few for a ring of five, and a longer one is found with k = 1 where k = 0 needs more steps."""
    outcome = run(
        make_instance("ring(5)"), solvers.get("highs"), Budget(), ScclOptions(mode="instance", steps=1, rounds=1)
    )
    assert outcome.status is Status.LIMIT
    assert outcome.message == "no schedule of up to 1 steps was found"
    tight = run(make_instance("dgx1()", size=400_000, chunks=2), solvers.get("highs"), Budget(), ScclOptions(k=1))
    assert (tight.metrics["sccl_steps"], tight.metrics["rounds"]) == (2, 3)


def test_what_does_not_fit():
    """Sums that are no copies backwards, switches one after the other, and options that contradict are refused."""
    assert "late_all_reduce" in str(METHOD.supports(make_instance("ring(4)", Collective.LATE_ALL_REDUCE)))
    reduction = make_instance("ring(4)", Collective.ALL_REDUCE)
    assert "two successive models" in str(registry.formulation("sccl/rounds").supports(reduction))
    with pytest.raises(InputError, match="by paths through at most 3 switches"):
        run(make_instance("fat_tree(4)"), solvers.get("highs"), Budget(), ScclOptions())
    with pytest.raises(ValidationError, match="instance needs steps"):
        ScclOptions(mode="instance", steps=3, rounds=2)
    with pytest.raises(ValidationError, match="least-steps has k"):
        ScclOptions(steps=3)


@pytest.mark.parametrize(("slow", "rounds"), [({0, 1, 2, 3}, 3), ({3}, 2), ({0, 1, 2}, 3)])
def test_edges_through_a_switch_share_its_links(slow, rounds):
    """A broadcast in one step sends three copies through the root's port, two in a round if it is twice as fast."""
    network = load("star(4)").network
    links = [
        replace(link, bandwidth_Bps=link.bandwidth_Bps * (1 if slow & set(ends) else 2))
        for link, ends in zip(network.links, network.link_ends, strict=True)
    ]
    instance = make_instance("star(4)", Collective.BROADCAST).with_changes(
        network=Topology(network.nodes, tuple(links))
    )
    outcome = run(instance, solvers.get("highs"), Budget(), ScclOptions(mode="instance", steps=1, rounds=12))
    assert outcome.metrics["rounds"] == rounds
    assert not verdict_of(instance, outcome.answer, outcome.certificate).violations


def test_the_columns_are_counted_before_the_model_is_built():
    """The number of variables is known from the index sets alone, and a model with too many is not built."""
    index = registry.formulation("sccl/rounds").index(make_instance("ring(5)"))
    model = registry.formulation("sccl/rounds").build(index)
    assert model.nvariables() == index.columns
    with pytest.raises(Unsupported, match=r"^a model of 64 steps has [0-9,]+ columns; at most 5,000,000 are built$"):
        registry.formulation("sccl/rounds").build(make_instance("torus(16,16)"), steps=64)
    outcome = run(make_instance("torus(16,16)"), solvers.get("highs"), Budget(), ScclOptions())
    assert (outcome.status, outcome.bound is not None) == (Status.LIMIT, True)
    assert outcome.message == "a model of 16 steps has 5,308,432 columns; at most 5,000,000 are built"
