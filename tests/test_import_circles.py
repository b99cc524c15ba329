"""No modules of the package import one another in a circle, imports inside functions and for types included."""

from __future__ import annotations

import ast
import re
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import cwb
import pytest

ROOT = Path(cwb.__file__).parent
FOLDERS = sorted(path.parent.name for path in ROOT.glob("*/__init__.py"))


def imports(module: Path, known: set[Path]) -> set[Path]:
    """Return the modules of the package that a module imports anywhere."""
    found: set[Path] = set()
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.level:
            folder = module.parents[node.level - 1].joinpath(*(node.module or "").split("."))
            for name in node.names:
                places = [folder / f"{name.name}.py", folder / name.name / "__init__.py"]
                places += [folder.with_suffix(".py"), folder / "__init__.py"]
                found.update([place for place in places if place in known][:1])
    return found - {module}


def explained_circles() -> list[set[str]]:
    """Return the circles that the page on architecture gives a reason for, as sets of dotted names."""
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    section = page.partition("## Circles\n")[2].partition("\n## ")[0]
    return [set(re.findall(r"`([\w.]+)`", line.partition(":")[0])) for line in section.splitlines() if line[:1] == "*"]


def test_no_modules_import_one_another() -> None:
    """Beside the circles of the page on architecture there is none, and that page names modules that there are."""
    modules = {path for folder in FOLDERS if folder != "tests" for path in (ROOT / folder).rglob("*.py")}
    name = {path: ".".join(path.relative_to(ROOT).with_suffix("").parts) for path in modules}
    circles = explained_circles()
    assert set().union(*circles) <= set(name.values())
    graph = {
        name[path]: {
            name[other]
            for other in imports(path, modules)
            if not any({name[path], name[other]} <= circle for circle in circles)
        }
        for path in modules
    }
    assert graph["core.instance"] >= {"core.topology", "core.errors"}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" <- ".join(error.args[1]))
