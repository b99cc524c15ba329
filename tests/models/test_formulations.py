"""One exam for every formulation: on every solver that offers what it needs it has the optimum of the method that it
agrees with."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from importlib import import_module

import pyomo.environ as pyo
import pytest
from cwb import solvers
from cwb.core.errors import InputError
from cwb.core.formulation import Formulation
from cwb.exchange.models import FORMATS, write_model
from cwb.harness import Request, registry, run_one
from cwb.instances import load
from cwb.instances.demand import with_demand
from formulation_exams import AGREE, INSTANCES, stated_cells

CASES = [
    pytest.param(
        *(name, solver, case),
        id=f"{name}-{solver}-{number}",
        marks=pytest.mark.programs if solver.startswith("pyomo:") else (),
    )
    for name, cases in INSTANCES.items()
    for solver in (*solvers.names(), *solvers.pyomo_solver_names())
    for number, case in enumerate(cases)
    if number == 0 or not solver.startswith("pyomo:")
]

STATED = stated_cells()

#: Solvers of the page that Pyomo drives; on a machine without them nothing of theirs is tested.
DRIVEN = ("pyomo:cbc", "pyomo:glpk")


def test_the_exam_covers_every_formulation():
    """Every formulation has instances here."""
    assert set(INSTANCES) == set(registry.FORMULATIONS)


@cache
def method_record(name, number):
    """The record of the method with which a formulation agrees, on one of its instances; all solvers share it."""
    case = INSTANCES[name][number]
    options = case.options if case.method is None else case.method
    agrees_with = registry.formulation(name).agrees_with
    return run_one(case.make_instance(), Request(agrees_with, options=options, time_limit_s=120))


@pytest.mark.parametrize(("name", "solver", "case"), CASES)
def test_a_declared_model_agrees_with_its_method(name, solver, case):
    """A declared model, solved as it is, is verified and has the objective of its method's faster algorithm; or the
    solver is refused before."""
    declared = registry.formulation(name)
    adapter = solvers.get(solver)
    if not adapter.licence().ok:
        pytest.skip(adapter.licence().message)
    posed = case.make_instance()
    record = run_one(posed, Request(name, solver, case.options, time_limit_s=120))
    if declared.capabilities & ~adapter.capabilities:
        assert record.status == "unsupported"
        assert solver in record.message
        assert case is not INSTANCES[name][0] or STATED[name, solver][0] == "rejected"
        return
    if "licence is too small" in record.message:
        pytest.skip(record.message)
    assert record.exit_status == 0, record.message or record.violations
    wanted = case.wanted
    if declared.agrees_with:
        method = method_record(name, INSTANCES[name].index(case))
        wanted = method.bound if declared.bounds and not declared.answers else method.objective
        if case.metric:
            assert record.metrics["model_objective"] == pytest.approx(method.metrics[case.metric], rel=AGREE)
    assert record.objective == pytest.approx(wanted, rel=AGREE)
    if declared.bounds:
        assert record.status == "optimal"
        assert record.bound == pytest.approx(record.objective, rel=AGREE)
        assert record.proof == "attested"
    else:
        assert record.bound is None
    if case is INSTANCES[name][0]:
        status, value = STATED[name, solver]
        assert (record.status, record.objective) == (status, pytest.approx(value, rel=1e-5))


def test_the_page_has_every_formulation_on_every_solver():
    """The page with the results has a cell for each formulation and solver, and no other."""
    assert set(STATED) == {(name, solver) for name in INSTANCES for solver in (*solvers.names(), *DRIVEN)}


@pytest.mark.parametrize("name", INSTANCES)
def test_a_declared_model_is_written_to_files(name):
    """A formulation builds a Pyomo model of an instance that LP and MPS files can hold."""
    case = INSTANCES[name][0]
    declared = registry.formulation(name)
    model = declared.build(case.make_instance(), **case.options)
    if "Q" in declared.model_class:
        assert write_model(model, ".lp")
        return
    assert all(write_model(model, suffix) for suffix in FORMATS)


@pytest.mark.parametrize("suffix", FORMATS)
def test_a_file_has_the_names_of_the_model_when_asked(suffix):
    """Variables and constraints are called as in the model with names, and by numbers without."""
    case = INSTANCES["mcf/flow"][0]
    model = registry.formulation("mcf/flow").build(case.make_instance(), **case.options)
    variable = "flow(0_0)"
    assert variable in write_model(model, suffix, with_names=True).decode()
    assert variable not in write_model(model, suffix).decode()


@pytest.mark.parametrize("name", INSTANCES)
def test_a_formulation_says_what_it_is(name):
    """A formulation names its paper, its equations and what it chooses, and is of the family that its name begins
    with."""
    declared = registry.formulation(name)
    assert declared.name == name
    assert declared.summary
    assert declared.paper
    assert declared.equations
    if declared.agrees_with:
        assert registry.get(declared.agrees_with).name == declared.agrees_with
    assert not declared.summary.endswith(".")


def test_a_solver_that_lacks_something_is_refused_before_the_model_is_built():
    """The needs of a formulation are compared with the solver's capabilities; the message names both."""
    record = run_one(load("4d"), Request("libra/allocation", "highs"))
    assert record.status == "unsupported"
    assert "quadratic-constraints" in record.message
    assert "build" not in record.seconds or record.seconds["build"] == 0.0


@pytest.mark.parametrize("reserved", ["load", "name"])
def test_a_component_with_a_name_that_pyomo_reserves_is_named(reserved, caplog):
    """The message is one line, and says which name it is; other errors of a build function from outside are told
    too."""

    def build(index):
        m = pyo.ConcreteModel()
        m.add_component(reserved if index is not None else "x", pyo.Var())
        raise ValueError("another")

    declared = Formulation("mine/reserved", build=build)
    with pytest.raises(InputError, match=f"component '{reserved}', a name that Pyomo reserves") as refused:
        declared.build(load("4d"))
    assert "\n" not in str(refused.value)
    with pytest.raises(InputError, match="mine/reserved: build: ValueError: another"):
        declared.build(None)
    assert not caplog.records


def test_what_pyomo_says_of_a_model_is_passed_on(caplog):
    """Warnings of Pyomo while a model is built are not lost."""

    def build(index):
        m = pyo.ConcreteModel()
        m.x = pyo.Var()
        m.x = pyo.Var()
        return m

    Formulation("mine/twice", build=build).build(None)
    assert "Implicitly replacing" in caplog.text


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
    with pytest.raises(InputError, match="too small"):
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
