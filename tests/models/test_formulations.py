"""One exam for every formulation: on every solver that offers what it needs it has the optimum of the method that it agrees with."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any

import pyomo.environ as pyo
import pytest
from cwb import solvers
from cwb.core.errors import InputError
from cwb.core.formulation import Formulation
from cwb.exchange.models import FORMATS, write_model
from cwb.harness import Request, registry, run_one
from cwb.harness.demand import with_demand
from cwb.instances import load


@dataclass(frozen=True)
class Exam:
    """An instance for a formulation, small enough for every solver.

    Parameters
    ----------
    instance : str
        Its name.
    collective : str or None
        Of the instance.
    options : dict
        Of the formulation.
    method : dict or None
        Options of the method that it agrees with, where they are others.
    chunks : int or None
        Chunks of every rank's part.
    metric : str
        Number of the method that the model's objective is.
    wanted : float or None
        The optimum, of a formulation that agrees with no method.
    """

    instance: str
    collective: str | None = None
    options: dict[str, Any] = field(default_factory=dict)
    method: dict[str, Any] | None = None
    chunks: int | None = None
    metric: str = ""
    wanted: float | None = None

    def posed(self):
        """The instance with its collective."""
        return with_demand(load(self.instance), self.collective, None, self.chunks)


FABRIC = {"bandwidth": ["200 GB/s", "100 GB/s"], "latency": ["1 us", "2 us"]}

#: An older plan of one tree, and what has happened to a link of it.
OLDER = {
    "previous": [{"links": [["0", "1", 0], ["1", "2", 0], ["2", "3", 0]], "root": "1"}],
    "changes": ["0-1=0.5"],
}

#: Small instances of each formulation.
INSTANCES = {
    "libra/allocation": [Exam("4d"), Exam("4d", options={"objective": "perf-per-cost"})],
    # Without latency, since the schedules may be cut into other numbers of pieces.
    "bfb/lp": [
        Exam("torus(3,3,latency='0 s')", "all_gather"),
        Exam("circulant(8,[1,3],latency='0 s')", "all_gather"),
    ],
    # On these all schedules with the same largest loads take the same time.
    "bfb/chunked": [
        Exam("torus(3,3)", "all_gather", chunks=2),
        Exam("ring(4)", "all_gather", {"pieces": 2}, method={}, chunks=2),
    ],
    "bfb/heterogeneous": [
        Exam("ring(5)", "all_gather", chunks=2),
        Exam("ring(4,latency='2 us')", "all_gather", {"pieces": 2}, method={}, chunks=2),
    ],
    "mcf/flow": [Exam("torus(3,3)", "all_to_all"), Exam("ring(5)", "all_to_all")],
    "forestcoll/optimum": [Exam("ring(4)", "all_gather"), Exam("mi250(boxes=1)", "reduce_scatter")],
    # Every rank of a ring receives three quarters of 1 GiB over two links of 50 GB/s.
    "forestcoll/max-flow": [Exam("ring(4)", "all_gather", {"sink": 3}, wanted=0.75 * 2**30 / 100e9)],
    "forestcoll/allreduce": [Exam("ring(4)", "all_reduce"), Exam("ring(3,bidirectional=false)", "all_reduce")],
    "mtree/selection": [Exam("ring(4)", "all_reduce"), Exam("complete(4)", "all_reduce", {"trees": 2, "height": 2})],
    "multirail/themis": [
        Exam("RI(4)_SW(4)", "all_reduce", FABRIC),
        Exam("RI(4)_SW(4)", "all_gather", FABRIC | {"chunks": 5}),
    ],
    "sccl/rounds": [
        Exam("ring(4)", "all_gather", method={}, metric="rounds"),
        Exam(
            "line(3)",
            "broadcast",
            {"steps": 3, "rounds": 4},
            method={"mode": "instance", "steps": 3, "rounds": 4},
            chunks=2,
            metric="rounds",
        ),
    ],
    # All shortest ways of an odd ring are the only ones.
    "taccl/routing": [Exam("ring(5)", "all_gather", method={"contiguity": False, "routing_gap": 0})],
    "taccl/contiguity": [Exam("ring(3)", "all_gather", chunks=2), Exam("line(3)", "broadcast", chunks=2)],
    "ten/ilp": [
        Exam("ring(4)", "all_gather", {"horizon": 3}, method={}),
        Exam("line(3)", "reduce_scatter"),
    ],
    "teccl/milp": [Exam("ring(4)", "all_gather"), Exam("mesh(2,3)", "broadcast", {"chunks": 2})],
    "teccl/lp": [Exam("ring(4)", "all_to_all"), Exam("ring(4)", "all_gather")],
    "teccl/astar": [Exam("ring(4)", "all_gather"), Exam("complete(4)", "scatter")],
    "teccl/all-to-all": [Exam("ring(4)", "all_to_all"), Exam("complete(4)", "all_to_all")],
    "mtree/patterns": [
        Exam("ring(4)", "all_reduce", {"trees": 2}),
        Exam("complete(4)", "all_reduce", {"trees": 2, "height": 1}),
    ],
    "mtree/rates": [Exam("complete(4)", "all_reduce"), Exam("ring(5)", "all_reduce", {"height": 2})],
    "mtree/restricted-master": [Exam("complete(4)", "all_reduce"), Exam("ring(5)", "all_reduce", {"height": 2})],
    # At equal prices of equal links: trees of three links cannot carry more than all links of 50 GB/s over three.
    "mtree/pricing": [
        Exam("ring(4)", "all_reduce", wanted=2**30 * 3 / (4 * 50e9)),
        Exam("complete(4)", "all_reduce", {"height": 2}, wanted=2**30 * 3 / (6 * 50e9)),
    ],
    "mtree/repair": [
        Exam("ring(4)", "all_reduce", OLDER),
        Exam("ring(4)", "all_reduce", OLDER | {"new_trees": 2, "trees": 2}),
    ],
    "mtree/repair-patterns": [
        Exam("ring(4)", "all_reduce", OLDER),
        Exam("ring(4)", "all_reduce", OLDER | {"trees": 2}),
    ],
    "wan/blink-units": [
        Exam("ring(4)", "all_reduce", method={"cut": "unit"}),
        Exam("complete(4)", "all_reduce", {"root": "centre"}, method={"root": "centre", "cut": "unit"}),
    ],
}

CASES = [
    pytest.param(name, solver, case, id=f"{name}-{solver}-{number}")
    for name, cases in INSTANCES.items()
    for solver in solvers.names()
    for number, case in enumerate(cases)
]


def test_the_exam_covers_every_formulation():
    """Every formulation has instances here."""
    assert set(INSTANCES) == set(registry.FORMULATIONS)


@pytest.mark.parametrize(("name", "solver", "case"), CASES)
def test_a_declared_model_agrees_with_its_method(name, solver, case):
    """A declared model, solved as it is, is verified and has the objective of its method's faster algorithm; or the solver is refused before."""
    declared = registry.formulation(name)
    adapter = solvers.get(solver)
    if not adapter.licensed().ok:
        pytest.skip(adapter.licensed().message)
    posed = case.posed()
    record = run_one(posed, Request(name, solver, case.options, time_limit_s=120))
    if declared.capabilities & ~adapter.capabilities:
        assert record.status == "unsupported"
        assert solver in record.message
        return
    if "licence is too small" in record.message:
        pytest.skip(record.message)
    assert record.exit_status == 0, record.message or record.violations
    wanted = case.wanted
    if declared.agrees_with:
        options = case.options if case.method is None else case.method
        method = run_one(posed, Request(declared.agrees_with, options=options, time_limit_s=120))
        wanted = method.bound if declared.bounds and not declared.answers else method.objective
        if case.metric:
            assert record.metrics["model_objective"] == pytest.approx(method.metrics[case.metric], rel=2e-6)
    assert record.objective == pytest.approx(wanted, rel=2e-6)
    if declared.bounds:
        assert record.status == "optimal"
        assert record.bound == pytest.approx(record.objective, rel=2e-6)
        assert record.proof == "attested"
    else:
        assert record.bound is None


@pytest.mark.parametrize("name", INSTANCES)
def test_a_declared_model_is_written_to_files(name):
    """A formulation builds a Pyomo model of an instance that LP and MPS files can hold."""
    case = INSTANCES[name][0]
    declared = registry.formulation(name)
    model = declared.build(case.posed(), **case.options)
    if "Q" in declared.model_class:
        assert write_model(model, ".lp")
        return
    assert all(write_model(model, suffix) for suffix in FORMATS)


@pytest.mark.parametrize("name", INSTANCES)
def test_a_formulation_says_what_it_is(name):
    """A formulation names its paper, its equations and what it chooses, and is of the family that its name begins with."""
    declared = registry.formulation(name)
    assert declared.name == name
    assert declared.summary
    assert declared.paper
    assert declared.equations
    if declared.agrees_with:
        assert registry.get(declared.agrees_with).name == declared.agrees_with
    assert not declared.summary.endswith(".")


def test_a_solver_that_lacks_something_is_refused_before_the_model_is_built():
    """What a formulation needs is held against what the solver offers; the message names both."""
    record = run_one(load("4d"), Request("libra/allocation", "highs"))
    assert record.status == "unsupported"
    assert "quadratic-constraints" in record.message
    assert "build" not in record.seconds or record.seconds["build"] == 0.0


@pytest.mark.parametrize("reserved", ["load", "name"])
def test_a_component_with_a_name_that_pyomo_reserves_is_named(reserved):
    """The message is one line, and says which name it is; other errors of a build function stay as they are."""

    def build(index):
        m = pyo.ConcreteModel()
        m.add_component(reserved if index is not None else "x", pyo.Var())
        raise ValueError("another")

    declared = Formulation("mine/reserved", build=build)
    with pytest.raises(InputError, match=f"component '{reserved}', a name that Pyomo reserves") as refused:
        declared.build(load("4d"))
    assert "\n" not in str(refused.value)
    with pytest.raises(ValueError, match="another"):
        declared.build(None)


@pytest.mark.parametrize("name", INSTANCES)
def test_the_functions_of_a_formulation_are_where_it_says(name):
    """Every place is that of a function."""
    for place in registry.formulation(name).places.values():
        module, function = place.split(":")
        assert callable(getattr(import_module(module), function))


def test_trees_prove_nothing_where_links_are_faster_in_one_direction():
    """The trees of the models use the slower direction, so that what bounds them bounds no others."""
    network = replace(
        load("ring(4)").network,
        links=tuple(
            replace(link, bandwidth_Bps=link.bandwidth_Bps * (2 if number == 0 else 1))
            for number, link in enumerate(load("ring(4)").network.links)
        ),
    )
    posed = with_demand(load("ring(4)").with_changes(network=network), "all_reduce", None, None)
    record = run_one(posed, Request("mtree/selection"))
    assert record.status == "feasible"
    assert record.bound is None


def test_a_pool_of_some_trees_proves_nothing():
    """The rates of some trees are an answer without a bound, and their prices are no bound."""
    posed = with_demand(load("complete(4)"), "all_reduce", None, None)
    rates = run_one(posed, Request("mtree/rates", options={"pool": "starts", "starts": 2}))
    assert (rates.status, rates.bound, rates.verified) == ("feasible", None, True)
    prices = run_one(posed, Request("mtree/restricted-master", options={"pool": "starts", "starts": 2}))
    assert (prices.status, prices.bound, prices.answer) == ("limit", None, None)
    assert prices.metrics["model_objective"] > 0


def test_any_prices_prove_a_bound():
    """No trees carry more than what the capacities cost, over what the cheapest tree costs."""
    posed = with_demand(load("complete(4)"), "all_reduce", None, None)
    best = run_one(posed, Request("mtree/rates"))
    priced = run_one(posed, Request("mtree/pricing", options={"prices": [1, 2, 3, 1, 2, 0.5]}))
    assert 0 < priced.bound < best.objective
    with pytest.raises(InputError, match="2 prices for 6 links"):
        run_one(posed, Request("mtree/pricing", options={"prices": [1, 2]}))


@pytest.mark.parametrize("name", ["mtree/repair", "mtree/repair-patterns"])
def test_a_repair_needs_an_older_plan(name):
    """Without the trees of an older plan there is nothing to repair."""
    with pytest.raises(InputError, match="older plan"):
        run_one(with_demand(load("ring(4)"), "all_reduce", None, None), Request(name))


def test_what_a_grid_of_epochs_proves():
    """A model of K epochs proves a time where it rules nothing out and seeks the least, and else nothing."""
    gather, reduce = (with_demand(load("ring(3)"), kind, None, None) for kind in ("all_gather", "all_reduce"))
    for posed, options in ((reduce, {}), (gather, {"objective": "paper"}), (gather, {"objective": "feasible"})):
        record = run_one(posed, Request("teccl/milp", options=options))
        assert (record.status, record.bound, record.verified) == ("feasible", None, True)
    with pytest.raises(InputError, match="needed at least"):
        run_one(with_demand(load("ring(5)"), "all_gather", None, None), Request("teccl/milp", options={"epochs": 1}))


@pytest.mark.parametrize("name", ["teccl/lp", "teccl/all-to-all"])
def test_more_epochs_than_are_needed_prove_nothing(name):
    """With epochs to spare everything fits, which bounds nothing."""
    record = run_one(with_demand(load("ring(4)"), "all_to_all", None, None), Request(name, options={"epochs": 9}))
    assert (record.status, record.bound, record.verified) == ("feasible", None, True)


def test_one_round_that_is_too_short_is_no_answer():
    """A round after which something is still lacking has no schedule to check."""
    posed = with_demand(load("ring(6)"), "all_gather", None, None)
    record = run_one(posed, Request("teccl/astar", options={"round_epochs": 1}))
    assert (record.status, record.answer) == ("limit", None)
    assert "no answer" in record.message
