"""Workload files that are computed from the shapes of models."""

from __future__ import annotations

import json
import runpy
from pathlib import Path

import cwb
import pytest
from cwb.core.workload import Workload
from cwb.instances.loader import find_workload

ROOT = Path(__file__).parents[2]

#: Parameters of the models as their papers print them, in millions.
PARAMETERS = {"gpt-2": 124, "gpt-2-medium": 355, "gpt-2-large": 774, "gnmt": 278, "resnet-50-layers": 25.6}


@pytest.fixture(scope="module")
def script():
    return runpy.run_path(str(ROOT / "benchmarks" / "workload_files.py"))


def test_the_files_are_what_the_script_writes(script):
    """Every computed file is what its script writes, and can be used by name."""
    for workload in script["files"]():
        file = ROOT / "instances" / "workloads" / f"{workload['name']}.json"
        assert file.read_text(encoding="utf-8") == script["text_of"](workload)
        assert json.loads(file.read_text(encoding="utf-8")) == workload
        assert find_workload(workload["name"]).name == workload["name"]


@pytest.mark.parametrize("name", PARAMETERS)
def test_all_parameters_are_there(name):
    """The gradients that are reduced are those of as many parameters as the paper says, within 2 %."""
    bytes_each = 2 if name == "gnmt" else 4
    size = sum(
        layer.repeat * c.size for layer in find_workload(name).layers for c in layer.weight_gradient.communication
    )
    assert float(size / bytes_each / 10**6) == pytest.approx(PARAMETERS[name], rel=0.02)


@pytest.mark.parametrize(
    ("workload", "dims", "spans"),
    [
        ("switch-base-256", "RI(16)_SW(16)", {"tp": (1, 1), "ep": (16, 16), "edp": (1, 1), "dp": (16, 16)}),
        ("gpt-3-pipeline", "RI(4)_FC(8)_SW(8)", {"tp": (4, 2, 1), "dp": (1, 4, 1), "pp": (1, 1, 8)}),
    ],
)
def test_experts_and_stages_are_mapped(workload, dims, spans):
    """Experts are inside the data-parallel group, stages outermost."""
    (found,) = cwb.load(f'libra(workload={workload}, dims="{dims}")').training()
    assert isinstance(found, Workload)
    assert found.groups == spans
