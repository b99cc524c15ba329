"""Workload files that are computed from the shapes of models."""

from __future__ import annotations

import json
import runpy
from fractions import Fraction
from pathlib import Path

import cwb
import pytest
from cwb.core.errors import InputError
from cwb.core.workload import Workload
from cwb.instances.build import layers_of
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


#: Billions of parameters as the papers name the models; the input embedding is not in the workload.
LARGE = {
    "llama-3-70b": (70.6, 8192 * 128256),
    "llama-3-405b": (405.9, 16384 * 128256),
    "deepseek-v3": (671, 7168 * 129280),
}


@pytest.mark.parametrize("name", LARGE)
def test_large_models_have_their_parameters(name):
    """Twice the parameters of all gradients on one NPU, and the input embedding, are those of the paper, within 0.5 %,
    and a token takes two operations for each one that it uses."""
    billions, embedding = LARGE[name]
    file = find_workload(name)
    layers = layers_of(file, {"dp": 2})
    gradients = [
        c for layer in layers for c in layer.weight_gradient.communication if c.collective.name != "all_gather"
    ]
    assert len(gradients) == len([layer for layer in layers if layer.name != "combined"])
    total = sum(layer.repeat * c.size_bytes for layer in layers for c in layer.weight_gradient.communication) / 4
    assert float(total + embedding) / 10**9 == pytest.approx(billions, rel=0.005)
    model = file.transformer
    seconds = sum(layer.repeat * layer.weight_gradient.compute_s for layer in layers)
    used = seconds * model.speed / 2 / (Fraction(model.batch, 2) * model.sequence)
    assert float(used + embedding) / 10**9 == pytest.approx(37 if name == "deepseek-v3" else billions, rel=0.02)


def test_groups_of_experts_are_those_that_are_given():
    """Experts are divided among ``ep``, their gradients reduced in ``edp``, all others in ``dp``; tokens go to their
    experts and back four times a layer; a group that is not given has one NPU."""
    layers = {
        layer.name: layer for layer in layers_of(find_workload("deepseek-v3"), {"dp": 16, "ep": 8, "edp": 2, "pp": 2})
    }
    assert [c.group for c in layers["experts"].weight_gradient.communication] == ["edp", "edp"]
    assert [c.group for c in layers["router"].weight_gradient.communication] == ["dp", "dp"]
    phases = [getattr(layer, p) for layer in layers.values() for p in ("forward", "input_gradient")]
    sent = [c for phase in phases for c in phase.communication if c.collective.name == "all_to_all"]
    assert [c.size_bytes for c in sent] == [15360 // 16 * 4096 * 8 * 7168 * 2] * 4
    assert any(c.group == "pp" for phase in phases for c in phase.communication)
    alone = layers_of(find_workload("deepseek-v3"), {})
    assert not any(p.communication for layer in alone for p in (layer.forward, layer.weight_gradient))
    with pytest.raises(InputError, match=r"transformer\.experts: 256 experts do not split over 3 NPUs"):
        layers_of(find_workload("deepseek-v3"), {"ep": 3})


@pytest.mark.parametrize(
    ("groups", "reason"),
    [
        ({"ep": 8}, r"groups: tp=1 x dp=1 x pp=1 is 1 NPUs; expected all 8, each once"),
        ({"foo": 8}, r"tp=1 x dp=1 x pp=1 is 1 NPUs"),
        ({"tp": 8, "dp": 8}, r"tp=8 x dp=8 x pp=1 is 64 NPUs"),
        ({"ep": 2, "dp": 4}, r"tp=1 x dp=4 x pp=1 is 4 NPUs"),
        ({"ep": 4, "dp": 8}, r"ep=4 x edp=1 is 4 NPUs; expected those of dp=8"),
    ],
)
def test_groups_of_a_transformer_cover_all_npus_once(groups, reason):
    """With ``-g ep=all`` alone every NPU trained the whole batch; with ``-g tp=8 -g dp=all`` each trained an eighth
    of its part."""
    with pytest.raises(InputError, match=reason):
        layers_of(find_workload("deepseek-v3"), groups, 8)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"kv_heads": 7}, "kv_heads: 128 heads do not share 7 heads of keys"),
        ({"kv_heads": 256}, "kv_heads: 128 heads do not share 256 heads of keys"),
        ({"active_experts": 257}, "active_experts: 257 of 256 experts"),
        ({"dense_layers": 62}, "dense_layers: 62 of 61 layers"),
    ],
)
def test_numbers_of_a_transformer_fit_each_other(change, reason):
    """Heads share those of keys evenly, a token uses experts that exist, and so do layers without experts."""
    model = find_workload("deepseek-v3").transformer.model_copy(update=change)
    with pytest.raises(InputError, match=reason):
        model.derive_layers({})


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"transformer": None}, "expected either layers or a transformer"),
        (
            {"transformer": {"layers": 2, "hidden": 8, "sequence": 4, "batch": 1, "tensor_parallel": 2}},
            "tensor_parallel",
        ),
    ],
)
def test_wrong_files(change, reason, tmp_path):
    """A workload file has layers or a transformer, whose degrees are the file's."""
    path = tmp_path / "mine.json"
    path.write_text(json.dumps({"schema": "cwb-workload/1", "name": "mine", **change}))
    with pytest.raises(InputError, match=reason):
        find_workload("mine.json", tmp_path)
