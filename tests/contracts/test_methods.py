"""The contract that every registered method keeps."""

from __future__ import annotations

import json
import subprocess
import sys
from fractions import Fraction

import pytest
from cwb.core.collective import CollectiveKind, Demand
from cwb.core.errors import InputError
from cwb.core.instance import Instance
from cwb.core.method import Kind, Method
from cwb.core.record import RunRecord
from cwb.harness import Request, registry, run_one
from cwb.instances import load
from cwb.reports.clocks import CLOCKS, asked_of
from pydantic import ValidationError

METHODS = registry.names()

TORUS = ("torus(4,4)", Demand(CollectiveKind.ALL_REDUCE, Fraction(2**24)), {})
RAILS = (
    "RI(4)_FC(2)_SW(4)",
    Demand(CollectiveKind.ALL_REDUCE, Fraction(2**24), chunks=4),
    {"bandwidth": ["200 GB/s", "100 GB/s", "50 GB/s"]},
)

DGX1 = (
    "dgx1()",
    Demand(CollectiveKind.ALL_TO_ALL, Fraction(200_000)),
    {"epoch": "slow"},
)

#: A plan of one tree for ring(4), one of whose links has lost half of its bandwidth.
PLAN = {"links": [["0", "1", 0], ["1", "2", 0], ["2", "3", 0]], "root": "1", "units": 1}

#: An instance that each method answers: what to load, the collective, the options.
EXAMPLES = {
    "libra": ("4d", None, {}),
    "libra-equal": ("4d", None, {}),
    "libra-codesign": ("msft-1t-hp-4d", None, {}),
    "ring": TORUS,
    "direct": TORUS,
    "rhd": TORUS,
    "bruck": TORUS,
    "dbt": TORUS,
    "knomial": TORUS,
    "torus-rings": TORUS,
    "shifted-ring": ("circulant(n=9, offsets=[1,2])", TORUS[1], {}),
    "swing": TORUS,
    "bfb": TORUS,
    "bfb-lp": TORUS,
    "bfb-chunked": TORUS,
    "bfb-heterogeneous": TORUS,
    "all-to-all-mcf": ("mesh(2,3)", Demand(CollectiveKind.ALL_TO_ALL, Fraction(2**24)), {}),
    "blueconnect": RAILS,
    "themis": RAILS,
    "themis-lp": RAILS,
    "teccl-milp": DGX1,
    "teccl-lp": DGX1,
    "teccl-astar": DGX1,
    "teccl": ("dgx1()", Demand(CollectiveKind.ALL_GATHER, Fraction(200_000)), {}),
    "teccl-all-to-all": ("dgx1()", Demand(CollectiveKind.ALL_TO_ALL, Fraction(200_000)), {}),
    "sccl": ("dgx1()", Demand(CollectiveKind.ALL_GATHER, Fraction(200_000)), {}),
    "spff": ("dgx1()", Demand(CollectiveKind.ALL_GATHER, Fraction(200_000)), {}),
    "tacos": ("mesh(3,3)", Demand(CollectiveKind.ALL_REDUCE, Fraction(2**24)), {"restarts": 8}),
    "taccl": ("ring(4)", Demand(CollectiveKind.ALL_GATHER, Fraction(200_000)), {}),
    "forestcoll": ("a100(boxes=2)", TORUS[1], {}),
    "forestcoll-lp": TORUS,
    "forestcoll-allreduce": ("mi250_8(boxes=2)", TORUS[1], {}),
    "blink": TORUS,
    "blink-switch": ("a100(boxes=2)", TORUS[1], {}),
    "multitree": TORUS,
    "c-cube": ("dgx1()", TORUS[1], {}),
    "tto": ("mesh(4,4)", TORUS[1], {}),
    "ten-ilp": ("dgx1()", Demand(CollectiveKind.ALL_GATHER, Fraction(200_000)), {}),
    "pccl": ("mesh(3,3)", Demand(CollectiveKind.ALL_TO_ALL, Fraction(2**24)), {"steps": 2000}),
    "mtree": ("gscale", None, {"trees": 3, "height": 4}),
    "gost": ("gscale", None, {"trees": 5}),
    "mtree-repair": ("ring(4)", TORUS[1], {"previous": [PLAN], "changes": ["0-1=0.5"]}),
    "topoadopt": ("gscale", None, {"trees": 3, "moves": 10}),
    "blink-wan": ("gscale", None, {"steps": 200}),
    "single-tree": ("gscale", None, {"height": 4}),
    "wan-ring": TORUS,
    "plink": ("gscale", None, {}),
    "psld": ("gscale", None, {}),
}


def example(name: str) -> Instance:
    """The instance that a method answers."""
    spec, demand, _ = EXAMPLES[name]
    return load(spec) if demand is None else load(spec).with_changes(demand=demand)


def request(name: str, seed: int = 0) -> Request:
    """What the method is asked."""
    return Request(name, options=EXAMPLES[name][2], seed=seed)


@pytest.mark.parametrize("name", METHODS)
def test_a_method_says_what_it_is(name):
    """Every method has the name it is registered under, a one-line summary, a paper, and options that are all
    described."""
    method = registry.get(name)
    assert isinstance(method, Method)
    assert method.name == name
    assert isinstance(method.kind, Kind)
    assert method.summary
    assert "\n" not in method.summary
    assert method.paper
    assert all(field.description for field in method.options.model_fields.values())
    with pytest.raises(ValidationError):
        method.options.model_validate({"no_such_option": 1})


@pytest.mark.slow
@pytest.mark.parametrize("name", METHODS)
def test_a_method_answers_its_example_and_is_verified(name):
    """Every method answers an example, the verifier agrees and says to which question, optimal comes with a bound, and the
    record reads back."""
    record = run_one(example(name), request(name))
    assert record.exit_status == 0
    assert record.status in ("optimal", "feasible")
    assert record.verified is True, record.violations
    assert asked_of(record).clock in CLOCKS
    assert asked_of(record).question
    if record.answer["answer"] not in ("bound-only", "bandwidth-plan"):
        assert record.metrics["completion_time_s"] > 0
        assert record.metrics["algbw_GBps"] > 0
    else:
        assert record.metrics.get("completion_time_s") is None
    if record.status == "optimal":
        assert record.bound is not None
        assert record.certificate is not None
        assert record.bound <= record.objective
    text = json.dumps(record.to_json(), allow_nan=False)
    again = RunRecord.from_json(json.loads(text), source="text", place="line 1")
    assert json.dumps(again.to_json()) == json.dumps(record.to_json())
    assert {"total"} <= set(record.seconds)


@pytest.mark.parametrize("name", METHODS)
def test_a_method_is_deterministic(name):
    """The same seed gives the same objective, bound and answer."""
    first, second = (run_one(example(name), request(name, seed=7)) for _ in range(2))
    assert (first.objective, first.bound, first.answer) == (second.objective, second.bound, second.answer)


@pytest.mark.parametrize("name", METHODS)
def test_a_method_gives_a_reason_for_what_it_does_not_support(name):
    """A bare network is answered with status unsupported, a reason and exit status 7, not with an exception."""
    record = run_one(load("RI(4)_SW(2)"), Request(name))
    assert (record.status, record.exit_status) == ("unsupported", 7)
    assert record.message
    assert record.answer is None


@pytest.mark.parametrize("name", METHODS)
def test_a_method_leaves_the_instance_as_it_was(name):
    """Solving changes neither the instance nor its digest."""
    instance = example(name)
    before = instance.sha256
    run_one(instance, request(name))
    assert instance == example(name)
    assert instance.sha256 == before


def test_unknown_names_are_refused_with_the_known_ones():
    """A misspelt model is an input error that names what there is."""
    with pytest.raises(InputError, match=r"did you mean 'libra'"):
        registry.get("libraa")


def test_the_examples_cover_the_registry():
    """No method escapes the contract for want of an example."""
    assert set(EXAMPLES) == set(METHODS)


def test_importing_cwb_and_listing_methods_is_light():
    """Neither ``import cwb`` nor the registry imports Pyomo, a solver or a plotting library."""
    code = (
        "import sys, cwb, cwb.cli.main, cwb.harness.registry as r; [r.get(n) for n in r.names()];"
        "heavy = {'pyomo', 'highspy', 'gurobipy', 'pyscipopt', 'matplotlib', 'pandas', 'scipy'} & set(sys.modules);"
        "print(sorted(heavy)); sys.exit(bool(heavy))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
