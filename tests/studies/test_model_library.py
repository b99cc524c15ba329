"""The library of models: what is written is what was solved, with its checksums and best known values."""

from __future__ import annotations

import gzip
import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import highspy
import pytest
from cwb.harness import registry
from cwb.harness.plan import Cell, cells
from cwb.harness.run import Request
from cwb.harness.suite_file import load_suite
from cwb.instances import load
from cwb.instances.demand import with_demand
from cwb.solvers.matrix import compile_matrix
from cwb.studies.best_known import FOLDER
from cwb.studies.model_library import INDEX, export_models, slug
from formulation_exams import AGREE

FORMATS = ("mps", "lp")

DECLARED = FOLDER / "models"

CELLS = [
    Cell("torus(3,3)", Request("bfb-lp"), "all_gather"),
    Cell("torus(3,3)", Request("forestcoll-lp", options={"method": "concurrent"}), "all_gather"),
    Cell(
        "dgx1()", Request("teccl-milp", options={"chunk_size": "25 KB", "epoch": "slow", "start": "none"}), "all_gather"
    ),
    Cell("torus(3,3)", Request("bfb-lp"), "all_gather", "2 GiB"),
    Cell("torus(2,2)", Request("multirail/themis"), "all_reduce"),  # links, passed as a fabric
]


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """A folder with the models of a few runs."""
    folder = tmp_path_factory.mktemp("library")
    models, failures = export_models(CELLS, folder)
    assert failures == []
    return folder, models


def check_files(folder: Path) -> list[dict[str, Any]]:
    """Check that the files of a folder are those of its index, with their checksums; return its models."""
    models: list[dict[str, Any]] = json.loads((folder / INDEX).read_text())["models"]
    digests = {f"{model['name']}.{suffix}.gz": model[f"{suffix}_sha256"] for model in models for suffix in FORMATS}
    files = {path.name: path.read_bytes() for path in folder.iterdir() if path.name != INDEX}
    assert {name: sha256(gzip.decompress(content)).hexdigest() for name, content in files.items()} == digests
    return models


def solve_file(folder: Path, name: str, made: Path) -> highspy.Highs:
    """Return HiGHS after it has read and solved a file of the folder."""
    path = made / name
    path.write_bytes(gzip.decompress((folder / f"{name}.gz").read_bytes()))
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    assert highs.readModel(str(path)) == highspy.HighsStatus.kOk
    highs.run()
    return highs


@pytest.mark.slow
def test_files_are_what_the_index_says(library):
    """Names, checksums and sizes of the index are those of the files, and no file is without an entry."""
    folder, models = library
    assert [entry["name"] for entry in check_files(folder)] == [model.name for model in models]


@pytest.mark.parametrize("suffix", FORMATS)
def test_a_solver_reads_them_and_finds_the_best_known_value(library, tmp_path, suffix):
    """Read back, every model of which the optimum is known has that optimum, in both formats."""
    folder, models = library
    for model in models:
        highs = solve_file(folder, f"{model.name}.{suffix}", tmp_path)
        if model.status == "optimal":
            assert highs.getObjectiveValue() == pytest.approx(model.objective, abs=1e-6)
            assert model.bound == pytest.approx(model.objective, abs=1e-6)
        else:
            assert model.status == "infeasible"
            assert highs.getModelStatus() == highspy.HighsModelStatus.kInfeasible


@pytest.mark.slow  # thirty models are solved
def test_declared_models_beside_the_library(tmp_path):
    """The data set has every formulation, each with its checksums, and HiGHS finds the optimum of the index in each MPS
    file but the one with products of variables."""
    models = check_files(DECLARED)
    assert sorted(model["family"] for model in models) == sorted(registry.FORMULATIONS)
    for model in models:
        assert model["status"] == "optimal"
        if "Q" not in registry.formulation(model["family"]).model_class:
            optimum = solve_file(DECLARED, f"{model['name']}.mps", tmp_path).getObjectiveValue()
            assert optimum == pytest.approx(model["objective"], rel=AGREE)


def test_declared_models_are_those_of_the_suite():
    """Built again, every declared model of the data set has the size of the index."""
    built = {}
    for cell in cells(load_suite("declared")):
        problem = with_demand(load(cell.instance), cell.collective, cell.size, cell.chunks)
        model = registry.formulation(cell.request.model).build(problem, **cell.request.options)
        built[cell.request.model] = vars(compile_matrix(model).size)
    for model in json.loads((DECLARED / INDEX).read_text())["models"]:
        assert {key: model[key] for key in built[model["family"]]} == built[model["family"]]


def test_equal_models_are_written_once(library):
    """A collective of twice the size has the same model, and one file."""
    _, models = library
    assert len({model.mps_sha256 for model in models}) == len(models)


def test_a_second_export_is_the_same(library, tmp_path):
    """Bytes do not depend on when or where they are written."""
    folder, models = library
    again, _ = export_models(CELLS[:1], tmp_path)
    for model in again:
        assert model in models
        assert (tmp_path / f"{model.name}.mps.gz").read_bytes() == (folder / f"{model.name}.mps.gz").read_bytes()


def test_files_of_runs_with_one_name_are_kept_apart(tmp_path):
    """Runs whose long names are cut to the same text overwrite no file of one another."""
    sketches = [f"{'avoid 0 -> 2; ' * 12}avoid 0 -> {other}" for other in (1, 2)]
    runs = [Cell("ring(4)", Request("taccl", options={"sketch": sketch}), "all_gather") for sketch in sketches]
    assert len({slug(str(run)) for run in runs}) == 1
    models, failures = export_models(runs, tmp_path)
    assert not failures
    assert len(models) > 2
    assert len({model.name for model in models}) == len(check_files(tmp_path)) == len(models)


def test_what_cannot_be_run_is_told(tmp_path):
    """A cell that fails leaves a sentence, and the others their models."""
    models, failures = export_models([Cell("torus(0)", Request("bfb-lp"), "all_gather"), CELLS[0]], tmp_path)
    assert models
    assert len(failures) == 1
    assert "torus(0)" in failures[0]


def test_names_of_files_are_plain():
    """Letters, digits, points and single hyphens, not too many."""
    assert slug("BFB-LP highs torus(4, 4) all_gather") == "bfb-lp-highs-torus-4-4-all-gather"
    assert len(slug("x" * 500)) == 120
