"""SCCL: steps and rounds, constraint by constraint and on networks whose optimum is known."""

from __future__ import annotations

from fractions import Fraction

import pytest
from cwb import solvers
from cwb.core.budget import Budget
from cwb.core.collective import Collective, Demand
from cwb.core.errors import Unsupported
from cwb.core.outcome import Status
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
    ],
)
def test_known_optima(network, kind, steps, rounds):
    """Rings, lines, complete graphs and a square take the steps of their diameter where bandwidth allows it."""
    instance = make_instance(network, kind)
    outcome = run(instance, solvers.get("highs"), Budget(), ScclOptions())
    assert (outcome.metrics["sccl_steps"], outcome.metrics["rounds"]) == (steps, rounds)
    assert not verdict_of(instance, outcome.answer, outcome.certificate).violations


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
    """Switches, sums and options that contradict one another are refused."""
    assert str(METHOD.supports(make_instance("star(4)"))) == "it supports ranks and links, but no switches"
    assert "all_reduce" in str(METHOD.supports(make_instance("ring(4)", Collective.ALL_REDUCE)))
    with pytest.raises(ValidationError, match="instance needs steps"):
        ScclOptions(mode="instance", steps=3, rounds=2)
    with pytest.raises(ValidationError, match="least-steps has k"):
        ScclOptions(steps=3)


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
