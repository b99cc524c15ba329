"""The library of models: what is written is what was solved, with its checksums and best known values."""

from __future__ import annotations

import gzip
import json
from hashlib import sha256

import highspy
import pytest
from cwb.harness.plan import Cell
from cwb.harness.run import Request
from cwb.studies.model_library import INDEX, export_models, slug

CELLS = [
    Cell("torus(3,3)", Request("bfb-lp"), "all_gather"),
    Cell("torus(3,3)", Request("forestcoll-lp", options={"method": "concurrent"}), "all_gather"),
    Cell(
        "dgx1()", Request("teccl-milp", options={"chunk_size": "25 KB", "epoch": "slow", "start": "none"}), "all_gather"
    ),
    Cell("torus(3,3)", Request("bfb-lp"), "all_gather", "2 GiB"),
]


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """A folder with the models of a few runs."""
    folder = tmp_path_factory.mktemp("library")
    models, failures = export_models(CELLS, folder)
    assert failures == []
    return folder, models


@pytest.mark.slow
def test_files_are_what_the_index_says(library):
    """Names, checksums and sizes of the index are those of the files, and no file is without an entry."""
    folder, models = library
    index = json.loads((folder / INDEX).read_text())
    assert [entry["name"] for entry in index["models"]] == [model.name for model in models]
    for model in models:
        for suffix, digest in (("mps", model.mps_sha256), ("lp", model.lp_sha256)):
            text = gzip.decompress((folder / f"{model.name}.{suffix}.gz").read_bytes())
            assert sha256(text).hexdigest() == digest
    assert len(list(folder.iterdir())) == 2 * len(models) + 1


@pytest.mark.parametrize("suffix", ["mps", "lp"])
def test_a_solver_reads_them_and_finds_the_best_known_value(library, tmp_path, suffix):
    """Read back, every model of which the optimum is known has that optimum, in both formats."""
    folder, models = library
    for model in models:
        path = tmp_path / f"{model.name}.{suffix}"
        path.write_bytes(gzip.decompress((folder / f"{path.name}.gz").read_bytes()))
        highs = highspy.Highs()
        highs.setOptionValue("output_flag", False)
        assert highs.readModel(str(path)) == highspy.HighsStatus.kOk
        highs.run()
        if model.status == "optimal":
            assert highs.getObjectiveValue() == pytest.approx(model.objective, abs=1e-6)
            assert model.bound == pytest.approx(model.objective, abs=1e-6)
        else:
            assert model.status == "infeasible"
            assert highs.getModelStatus() == highspy.HighsModelStatus.kInfeasible


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
