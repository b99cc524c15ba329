"""The LP file of every constraint of every declared model, alone in its model: ``tests/golden/<family>/models.py`` says
which there are.

``MODELS`` maps the name of a file, in which ``{}`` stands for the constraint, to what builds the model, the constraints
that it shows,
and those it has beside that another model of the family shows. A name without ``{}`` is the file of all of them
together.
``OBJECTIVES`` maps the name of a file to a model whose objective it shows.
"""

from __future__ import annotations

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pyomo.environ as pyo
import pytest

GOLDEN = Path(__file__).parent


def register(path: Path) -> ModuleType:
    """The ``models.py`` of a family."""
    spec = spec_from_file_location(f"golden_{path.parent.name}", path)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


FAMILIES = {path.parent.name: register(path) for path in sorted(GOLDEN.glob("*/models.py"))}
DECLARED = [(family, name) for family, module in FAMILIES.items() for name in module.MODELS]


def shown_constraints(name: str, constraints: list[str]) -> dict[str, list[str]]:
    """Constraints in each file of a model."""
    return {name.format(c): [c] for c in constraints} if "{}" in name else {name: constraints}


FILES = {
    f"{family}/{file}.lp": (model[0], kept)
    for family, module in FAMILIES.items()
    for name, model in module.MODELS.items()
    for file, kept in shown_constraints(name, model[1]).items()
} | {
    f"{family}/{file}.lp": (build, [])
    for family, module in FAMILIES.items()
    for file, build in getattr(module, "OBJECTIVES", {}).items()
}


@pytest.mark.parametrize("file", FILES)
def test_each_constraint_is_written_as_its_golden_file(file, golden, tmp_path):
    """Every constraint, alone in its model with the objective, gives the LP file that was checked against the paper by
    hand."""
    build, kept = FILES[file]
    model = build()
    for constraint in model.component_objects(pyo.Constraint):
        if constraint.name not in kept:
            constraint.deactivate()
    path = tmp_path / "model.lp"
    model.write(str(path), io_options={"symbolic_solver_labels": True})
    golden(file, path.read_text())


@pytest.mark.parametrize(("family", "name"), DECLARED)
def test_no_constraint_is_without_golden_file(family, name):
    """A model has the constraints that it shows, and no others but those that another model of its family shows."""
    build, own, *others = FAMILIES[family].MODELS[name]
    elsewhere = others[0] if others else []
    names = [c.name for c in build().component_objects(pyo.Constraint) if len(c) or c.name in own]
    assert [c for c in names if c not in elsewhere] == own
    assert {c for c in names if c not in own} == set(elsewhere)
    assert set(elsewhere) <= {c for model in FAMILIES[family].MODELS.values() for c in model[1]}


def test_no_golden_file_is_left_over():
    """Every LP file is that of a model in the registers."""
    assert {path.relative_to(GOLDEN).as_posix() for path in GOLDEN.rglob("*.lp")} == set(FILES)
