"""The contract that every registered method keeps."""

from __future__ import annotations

import json
import runpy
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from cwb.core.errors import InputError
from cwb.core.instance import Instance
from cwb.core.method import Kind, Method
from cwb.core.network_views import supported_view
from cwb.core.record import RunRecord
from cwb.harness import Request, registry, run_one
from cwb.instances import load
from cwb.reports.objective_types import CLOCKS, question_of
from method_examples import EXAMPLES, example, request
from pydantic import ValidationError

METHODS = registry.names()
VERIFIED = runpy.run_path(str(Path(__file__).parents[2] / "docs" / "verifier_metrics.py"))["VERIFIED"]


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


@cache
def first_run(name: str) -> tuple[Instance, str, RunRecord]:
    """The example of a method, its digest before it was solved, and the record of the run."""
    instance = example(name)
    before = instance.sha256
    return instance, before, run_one(instance, request(name, seed=7))


@pytest.mark.slow
@pytest.mark.parametrize("name", METHODS)
def test_a_method_answers_its_example_and_is_verified(name):
    """Every method answers an example, the verifier agrees and says to which question, optimal comes with a bound, and
    the record reads back."""
    _, _, record = first_run(name)
    assert record.exit_status == 0
    assert record.status in ("optimal", "feasible")
    assert record.verified is True, record.violations
    assert question_of(record).clock in CLOCKS
    assert question_of(record).question
    if record.answer["answer"] not in ("bound-only", "bandwidth-plan", "placement"):
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
    """The same seed gives the same objective, bound and answer, with no metric that is not declared."""
    (_, _, first), second = first_run(name), run_one(example(name), request(name, seed=7))
    assert (first.objective, first.bound, first.answer) == (second.objective, second.bound, second.answer)
    assert set(first.metrics) <= {*registry.get(name).metrics, *VERIFIED}


@pytest.mark.parametrize("name", METHODS)
def test_a_method_gives_a_reason_for_what_it_does_not_support(name):
    """A bare network is answered with status unsupported, a reason, a code and exit status 7, not with an exception."""
    record = run_one(load("RI(4)_SW(2)"), Request(name))
    assert (record.status, record.exit_status) == ("unsupported", 7)
    assert record.message
    assert record.answer is None
    refusal = supported_view(registry.get(name), load("RI(4)_SW(2)"))[1]
    assert refusal is None or refusal.code != "other"  # pccl takes conditions by an option, and finds none in its run


@pytest.mark.parametrize("name", METHODS)
def test_a_method_leaves_the_instance_as_it_was(name):
    """Solving changes neither the instance nor its digest."""
    instance, before, _ = first_run(name)
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
