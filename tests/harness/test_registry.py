"""Methods and formulations from outside the package."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path
from textwrap import dedent

import cwb
import pytest
from command_line import cwb as command
from cwb import solvers
from cwb.core.errors import InputError
from cwb.harness import registry
from cwb.harness.registry import PLUGINS, load_plugin

PLUGIN = dedent("""
    import cwb
    import pyomo.environ as pyo


    def build(instance):
        shard = instance.demand.size_bytes / instance.npus
        m = pyo.ConcreteModel("slowest-link")
        m.time = pyo.Var(domain=pyo.NonNegativeReals)
        m.cost = pyo.Objective(expr=m.time)
        m.links = pyo.ConstraintList()
        for link in instance.network.links:
            m.links.add(m.time >= float(shard / link.bandwidth_Bps))
        return m


    FORMULATION = cwb.Formulation("{name}/slowest-link", build=build, summary="a shard over the slowest link")
    METHOD = cwb.Method.of(FORMULATION, name="{name}")
""")

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def plugin(tmp_path, monkeypatch):
    """A plugin file whose method has a name of its own, forgotten after the test."""
    monkeypatch.setenv(PLUGINS, "")

    def write(name: str, text: str = PLUGIN):
        path = tmp_path / f"{name.replace('-', '_')}.py"
        path.write_text(text.replace("{name}", name))
        return path

    return write


def test_a_plugin_s_method_and_formulation_are_known_by_name(plugin):
    """Declarations of a plugin file are listed, found and solved by name; the bound is attributed to the solver."""
    load_plugin(plugin("outsider"))
    assert "outsider" in registry.names()
    assert "outsider/slowest-link" in registry.formulation_names()
    record = cwb.solve("ring(4)", "outsider", collective="all_gather", size="4 GB")
    assert record.status == "optimal"
    assert record.proof == "attested"
    assert record.objective == pytest.approx(cwb.formulation("outsider/slowest-link").value(None, record.objective))


@pytest.mark.slow
def test_plugins_are_known_in_suites_and_worker_processes(plugin, tmp_path):
    """A suite that runs in worker processes takes a plugin's method, on a built-in solver and on another plugin's."""
    suite = tmp_path / "suite.toml"
    suite.write_text(
        '[[grid]]\nmodels = ["outside-worker"]\nsolvers = ["highs", "clarabel"]\n'
        'instances = ["ring(4)"]\ncollectives = ["all_gather"]\n'
    )
    words = [sys.executable, "-m", "cwb", "compare", str(suite), "--plugin", str(plugin("outside-worker"))]
    words += ["--plugin", str(EXAMPLES / "clarabel_solver.py")]
    done = subprocess.run([*words, "-o", str(tmp_path / "out"), "-q"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    lines = (tmp_path / "out" / "records.jsonl").read_text().splitlines()
    records = [json.loads(line) for line in lines]
    assert {(record["model"], record["solver"], record["status"]) for record in records} == {
        ("outside-worker", "highs", "optimal"),
        ("outside-worker", "clarabel", "optimal"),
    }


#: Ask for models of the package while the file runs: in a list, at the top, and derived.
ASKS = (
    (Path(__file__).parents[1] / "reference" / "defects3" / "plugin_w.py").read_text(),
    'import cwb\nMILP = cwb.formulation("teccl/milp")\n',
    'import cwb\nMINE = cwb.Formulation("{name}/milp", build=cwb.formulation("teccl/milp").build)\n',
    'import cwb\nOWN = cwb.solve("ring(3)", "ring", collective="all_gather").status\n',
)


@pytest.mark.parametrize("text", ASKS)
def test_a_plugin_asks_for_a_model_of_the_package(plugin, monkeypatch, text):
    """A plugin file may call ``cwb.formulation`` or ``cwb.solve`` while it is imported."""
    path = plugin("asks", text)
    monkeypatch.setattr(registry, "_modules", {})
    monkeypatch.setenv(PLUGINS, str(path))
    assert registry.formulation("teccl/milp") is cwb.formulation("teccl/milp")
    assert ("asks/milp" in registry.formulation_names()) == ("MINE" in text)


@pytest.mark.slow
def test_worker_processes_import_plugins_that_ask(plugin, tmp_path, monkeypatch):
    """In worker processes the files may ask as well, all of them in one run."""
    paths = [str(plugin(f"asks-{number}", text)) for number, text in enumerate(ASKS)]
    monkeypatch.setenv(PLUGINS, os.pathsep.join(paths))
    suite = tmp_path / "suite.toml"
    suite.write_text('[[grid]]\nmodels = ["ring"]\ninstances = ["ring(3)"]\ncollectives = ["all_gather"]\n')
    words = [sys.executable, "-m", "cwb", "compare", str(suite), "-o", str(tmp_path / "out"), "-q"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (record,) = map(json.loads, (tmp_path / "out" / "records.jsonl").read_text().splitlines())
    assert record["status"] == "feasible", record["message"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("import no_such_module", "ModuleNotFoundError"),
        ("def (", "SyntaxError"),
        ("raise SystemExit(4)", "SystemExit"),
        (PLUGIN.replace('name="{name}"', 'name="ring"'), "name of another"),
    ],
)
def test_a_plugin_that_cannot_be_used_is_one_line(plugin, text, problem, monkeypatch, capsys):
    """A plugin that does not run, or takes a name that is taken, is refused with the file and the reason."""
    monkeypatch.setattr(registry, "_modules", {})
    path = plugin("wrong", text)
    assert command("solve", "--plugin", path, "-m", "ring", "ring(4)") == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert problem in line
    assert path.name in line


def test_a_plugin_that_fails_in_another_of_its_name_is_told(tmp_path):
    """A plugin file that asks for another file of the same name, which does not run, is rejected with the reason."""
    (tmp_path / "other").mkdir()
    inner, outer = tmp_path / "other" / "same.py", tmp_path / "same.py"
    inner.write_text("raise ValueError('not today')")
    outer.write_text(f"from cwb.harness.registry import module_of\nmodule_of({str(inner)!r})")
    with pytest.raises(InputError, match="not today"):
        load_plugin(outer)


def test_a_missing_plugin_is_refused(tmp_path):
    """A plugin file that does not exist is an input error that names it."""
    with pytest.raises(InputError, match="no such file"):
        load_plugin(tmp_path / "nowhere.py")


def test_a_method_object_is_solved(monkeypatch):
    """``cwb.solve`` takes a method object; another one of the same name is refused afterwards."""
    monkeypatch.setattr(registry, "_registered", {})

    def build(instance):
        import pyomo.environ as pyo

        m = pyo.ConcreteModel("one")
        m.x = pyo.Var(bounds=(instance.npus, None))
        m.o = pyo.Objective(expr=m.x)
        return m

    method = cwb.Method.of(cwb.Formulation("object/one", build=build), name="object")
    assert cwb.solve("ring(4)", method, collective="all_gather").objective == 4
    with pytest.raises(InputError, match="name of another"):
        cwb.register(cwb.Method.of(cwb.Formulation("object/one", build=build), name="object"))


def test_a_need_that_does_not_exist_is_refused():
    """A formulation can need only what solvers can offer."""
    with pytest.raises(ValueError, match="magic"):
        cwb.Formulation("x/y", build=lambda index: index, needs={"magic"})


def test_a_broken_entry_point_is_left_out_with_a_warning(monkeypatch):
    """An entry point that cannot be loaded is named in a warning, and the methods of the package stay usable."""
    broken = EntryPoint("broken", "no_such_module_of_a_plugin:METHOD", "cwb.models")
    monkeypatch.setattr(registry, "entry_points", lambda group: (broken,))
    registry._installed_entries.cache_clear()
    with pytest.warns(UserWarning, match="no_such_module_of_a_plugin"):
        assert "ring" in registry.names()
    assert registry.get("ring").name == "ring"
    registry._installed_entries.cache_clear()


def test_an_installed_package_brings_a_solver(monkeypatch):
    """A solver that an entry point names is listed and found beside the built-in ones, and its name is taken."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    point = EntryPoint("own", "clarabel_solver:SOLVER", "cwb.solvers")
    monkeypatch.setattr(registry, "entry_points", lambda group: (point,) if group == "cwb.solvers" else ())
    registry._installed_entries.cache_clear()
    try:
        assert registry.solver_names() == (*solvers.names(), "clarabel")
        assert registry.solver("clarabel").title == "Clarabel"
        with pytest.raises(InputError, match=r"unknown solver 'clarabl'.*clarabel"):
            registry.solver("clarabl")
    finally:
        registry._installed_entries.cache_clear()


def test_a_solver_of_one_s_own_takes_no_name_of_another():
    """A solver that is called like a built-in one is refused."""
    with pytest.raises(InputError, match="name of another"):
        cwb.register(solvers.get("highs"))
