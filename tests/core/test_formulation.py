"""Variants of declared models."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import cwb
import pyomo.environ as pyo
import pytest
from cwb.cli.main import run
from cwb.core.errors import InputError
from cwb.harness import Request, registry, run_one
from cwb.harness.registry import PLUGINS

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def variants(monkeypatch):
    """The variants of the example, known by name for the test."""
    monkeypatch.setenv(PLUGINS, str(EXAMPLES / "teccl_variants.py"))


def line():
    """An all_to_all on a line with room for one chunk of others at each rank, whose limit costs an epoch."""
    return cwb.load("line(4)", collective="all_to_all")


@pytest.fixture
def solve(monkeypatch):
    """Solve a variant with room for one chunk of others; it is forgotten after the test."""
    monkeypatch.setattr(registry, "_registered", {})

    def solve(formulation):
        registry.register(formulation)
        return run_one(line(), Request(formulation.name, options={"buffer": 1}))

    return solve


@pytest.mark.slow
def test_a_variant_without_a_constraint_bounds_what_the_model_bounds(variants):
    """Without limits of buffers TE-CCL's optimum on a line is an epoch less, a bound and no schedule."""
    names = ("teccl/milp", "teccl/no-buffers", "teccl/linear", "teccl/few-sends")
    whole, dropped, linear, few = (run_one(line(), Request(name, options={"buffer": 1})) for name in names)
    assert [record.status for record in (whole, dropped, linear, few)] == ["optimal"] * 4
    assert linear.objective <= whole.objective * (1 + 1e-9)
    assert whole.objective - dropped.objective == pytest.approx(whole.metrics["epoch_duration_s"])
    assert (dropped.answer["answer"], dropped.verified) == ("bound-only", None)
    assert dropped.metrics["restricted_to"] == whole.metrics["restricted_to"]
    assert few.verified
    assert few.metrics["restricted_to"].endswith("; few_sends of teccl/few-sends")


def test_answers_of_a_relaxation_are_kept_on_request(solve):
    """With ``extract`` a variant without a constraint has answers, which the verifier rejects where they break it."""
    base = cwb.formulation("teccl/milp")
    record = solve(base.derive("teccl/kept", drop=["limited_buffers"], extract=base.extract))
    assert record.verified is False
    assert record.violations[0].startswith("buffer: ")


def test_a_replaced_constraint_is_the_only_one_of_its_name():
    """A replacement is built instead of the constraint; a variant of a variant has the changes of both."""

    def destination(m, sets):
        wanted = [q for q, commodity in enumerate(sets.problem.commodities) if commodity.targets == (0,)]
        m.destination = pyo.Constraint(expr=pyo.quicksum(m.B[q, 0, sets.last[q][0]] for q in wanted) == 3)

    base = cwb.formulation("teccl/milp")
    to_one = base.derive("teccl/to-one", replace={"destination": destination})
    free = to_one.derive("teccl/free", drop="capacity", summary="as fast as distances allow")
    assert free.summary == "as fast as distances allow"
    assert free.equations.endswith("F, with destination, without capacity")
    assert free.options is base.options
    model = free.build(line())
    names = [each.name for each in model.component_objects(pyo.Constraint)]
    assert names.count("destination") == 1
    assert "capacity" not in names
    assert not model.destination.is_indexed()
    assert "capacity" in [each.name for each in to_one.build(line()).component_objects(pyo.Constraint)]


def test_another_objective_bounds_nothing(solve):
    """The fewest sends are a schedule, without a bound on the time."""

    def sends(m, sets):
        m.sent = pyo.Objective(expr=pyo.quicksum(m.F.values()))

    record = solve(cwb.formulation("teccl/milp").derive("teccl/fewest-sends", objective=sends))
    assert (record.status, record.bound, record.verified) == ("feasible", None, True)
    assert record.metrics["model_objective"] == 4 * (1 + 2 + 3) - 4  # three ranks at distance 1 … on a line


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"drop": "buffer"}, "no constraint 'buffer'; expected one of .*did you mean 'buffers'"),
        ({"replace": {"capacity": lambda m, sets: None}}, "declares no constraint 'capacity'"),
        ({"objective": lambda m, sets: None}, "declares 0 objectives"),
        ({"add": lambda m, sets: m.no_such}, "AttributeError"),
    ],
)
def test_a_change_that_cannot_be_made_is_one_line(changes, problem):
    """A name that the model lacks, a replacement without its constraint, and an error of a function name the
    variant."""
    variant = cwb.formulation("teccl/milp").derive("teccl/wrong", **changes)
    with pytest.raises(InputError, match=f"teccl/wrong: .*{problem}") as refused:
        variant.build(line())
    assert "\n" not in str(refused.value)


@pytest.mark.slow
def test_a_variant_is_used_like_any_model(tmp_path, monkeypatch, capsys):
    """A variant of a plug-in is shown, written, explained, and compared with its base in a LaTeX table."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(PLUGINS, "")
    plugin = ["--plugin", str(EXAMPLES / "teccl_variants.py")]

    def call(words, status=0):
        with pytest.raises(SystemExit) as ended:
            run([*words.split(), *plugin])
        assert ended.value.code == status
        return capsys.readouterr().out

    assert "F, without limited_buffers" in call("show teccl/no-buffers")
    problem = "line(4) --collective all_to_all -O buffer=1 --json"
    whole, dropped = (json.loads(call(f"formulate teccl/{name} {problem}")) for name in ("milp", "no-buffers"))
    assert dropped["constraints"] < whole["constraints"]
    words = "solve --formulation teccl/few-sends ring(3) --collective all_gather -O epochs=1 --explain -q"
    assert "few_sends: ``sum_{q, a} F[q, a, k] <= n``" in call(words, 3)
    suite = (EXAMPLES / "teccl_variants.toml").read_text().replace('"ring(4)", "ring(5)", ', "")
    Path("suite.toml").write_text(suite)
    call("compare suite.toml -o made -q")
    plugin.clear()
    call("table summary made -o made.tex")
    assert "teccl/no-buffers" in Path("made.tex").read_text()
    assert sys.modules.pop("cwb_plugin_teccl_variants")


@pytest.mark.parametrize(
    ("name", "changes", "said"),
    [
        ("mine/a", {"add": "text"}, "no function"),
        ("mine/a", {"replace": {"capacity": 3}}, "no function"),
        ("mine/a", {"objective": 3}, "no function"),
        ("", {}, "no name"),
        (3, {}, "no name"),
    ],
)
def test_a_derivation_from_no_functions_or_without_a_name_is_told(name, changes, said):
    """One line says so when the variant is made, before any model is built."""
    with pytest.raises(InputError, match=said):
        registry.formulation("teccl/milp").derive(name, **changes)
