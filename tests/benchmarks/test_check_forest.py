"""The second checker of forests accepts what cwb proves and refuses every change that makes it wrong."""

import ast
import json
import runpy
import subprocess
import sys
import zipfile
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import cwb
import numpy as np
import pytest

PROGRAM = Path(__file__).parents[2] / "benchmarks" / "check_forest.py"
Columns = dict[str, np.ndarray]
Change = Callable[[dict[str, Any], Columns], None]


@pytest.fixture(scope="module")
def forest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A forest by symmetry in a file."""
    path = tmp_path_factory.mktemp("forest") / "forest.npz"
    asked = {"collective": "all_gather", "size": "1 GiB", "symmetry": "kept"}
    record = cwb.solve("dgx_a100(boxes=2)", "forestcoll", output=path, **asked)
    assert record.status == "optimal"
    return path


def test_program_is_independent() -> None:
    """It imports nothing of cwb and has fewer than 300 lines."""
    text = PROGRAM.read_text(encoding="utf-8")
    nodes = ast.walk(ast.parse(text))
    names = {each.module or "" for each in nodes if isinstance(each, ast.ImportFrom)}
    names |= {alias.name for each in ast.walk(ast.parse(text)) if isinstance(each, ast.Import) for alias in each.names}
    assert not any(name.startswith("cwb") for name in names)
    assert len(text.splitlines()) < 300


def test_accepts_optimum(forest: Path) -> None:
    """A proved forest is right and optimal, with the time that cwb reports."""
    said = runpy.run_path(str(PROGRAM))["check"](forest)
    assert "16 ranks, 64 links in 4 orbits" in said
    assert said.endswith("0.00309733218 s, optimal")


def _fractions(head: dict[str, Any], columns: Columns) -> None:
    columns["instance/network/links/source"] = columns["instance/network/links/source"] + 0.5


def _ends(head: dict[str, Any], columns: Columns) -> None:
    source, target = (f"instance/network/links/{name}" for name in ("source", "target"))
    columns[source], columns[target] = columns[target], columns[source]


def _order(head: dict[str, Any], columns: Columns) -> None:
    head["translations"]["order"][0] = 4


def _image(head: dict[str, Any], columns: Columns) -> None:
    columns["translations/image"][[0, 1]] = columns["translations/image"][[1, 0]]


def _child(head: dict[str, Any], columns: Columns) -> None:
    columns["trees/child"][3] = columns["trees/child"][2]


def _path(head: dict[str, Any], columns: Columns) -> None:
    columns["trees/path_links"][0] += 2


def _units(head: dict[str, Any], columns: Columns) -> None:
    columns["trees/units"][0] += 1


def _root(head: dict[str, Any], columns: Columns) -> None:
    columns["trees/root"][0] = 1


def _cut(head: dict[str, Any], columns: Columns) -> None:
    head["certificate"]["nodes"] = [0, 1]


def _bandwidth(head: dict[str, Any], columns: Columns) -> None:
    head["instance"]["network"]["links"]["bandwidth_Bps"][0] = "1"


def _no_copies(head: dict[str, Any], columns: Columns) -> None:
    head["translations"]["order"] += [-1, -2]
    same = np.arange(columns["translations/image"].size // 2)
    columns["translations/image"] = np.concatenate([columns["translations/image"].ravel(), same, same])


def _negative(head: dict[str, Any], columns: Columns) -> None:
    head["instance"]["network"]["links"]["bandwidth_Bps"] = [
        f"-{rate}" for rate in head["instance"]["network"]["links"]["bandwidth_Bps"]
    ]
    head["instance"]["collective"]["size_bytes"] = f"-{head['instance']['collective']['size_bytes']}"
    head["trees"]["unit_bytes"] = f"-{head['trees']['unit_bytes']}"


def _claim(head: dict[str, Any], columns: Columns) -> None:
    head["extra"]["bound_s"] = float("inf")


@pytest.mark.parametrize(
    "change",
    [
        *(_fractions, _ends, _order, _image, _child, _path),
        *(_units, _root, _cut, _bandwidth, _no_copies, _negative, _claim),
    ],
)
def test_refuses_changes(forest: Path, tmp_path: Path, change: Change) -> None:
    """A changed translation, tree, part, cut or network is found, and a column that is none of integers."""
    archive = np.load(forest)
    columns = {name: archive[name].astype(np.int64) for name in archive.files if name != "file.json"}
    with zipfile.ZipFile(forest) as file:
        head = json.loads(file.read("file.json"))
    change(head, columns)
    wrong = tmp_path / "wrong.npz"
    with zipfile.ZipFile(wrong, "w") as file:
        file.writestr("file.json", json.dumps(head))
        for name, column in columns.items():
            np.save(data := BytesIO(), column)
            file.writestr(f"{name}.npy", data.getvalue())
    program = runpy.run_path(str(PROGRAM))
    with pytest.raises(program["WrongForest"]):
        program["check"](wrong)


def test_a_file_that_is_no_forest_is_told_in_one_line(tmp_path: Path) -> None:
    """A file that is no archive, or whose head is no table, ends the program with its name and one line."""
    wrong = tmp_path / "wrong.npz"
    wrong.write_bytes(b"PK")
    told = subprocess.run([sys.executable, PROGRAM, wrong], capture_output=True, text=True, check=False)
    assert told.returncode == 1
    assert told.stderr.startswith(f"{wrong}: wrong: ") and told.stderr.count("\n") == 1
