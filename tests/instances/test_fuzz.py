"""Damaged instance files: an instance or an input error, and nothing else."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from cwb import load
from cwb.core.errors import InputError
from cwb.core.instance import Instance
from cwb.models.libra.problem import time_model
from draws import draws
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

GRAPH = {
    "network": {
        "nodes": [{"name": "a"}, {"name": "b"}, {"name": "s", "kind": "switch", "buffer": "1 MiB"}],
        "links": [
            {"source": "a", "target": "s", "bandwidth": "50 GB/s", "latency": "1 us", "bidirectional": True},
            {"source": "s", "target": "b", "bandwidth": "50 GB/s", "count": 2, "bidirectional": True},
        ],
    },
    "collective": {"kind": "all_gather", "size": "1 GiB", "chunks": 2, "ranks": [0, 1]},
}
SHIPPED = ("cost-example", "gpt-3-4d-multiple", "msft-1t-hp-4d", "llms-4d", "3d-512")
SOURCES = [json.loads((files("cwb.instances") / f"{name}.json").read_text()) for name in SHIPPED] + [GRAPH]

NUMBERS = st.sampled_from([0, -1, 1, 2, 3, 1.5, -0.0, 1e308, 10**12, 10**13, 10**400, True, False, None])
TEXTS = st.sampled_from(
    [
        "",
        " ",
        "\x00",
        "\ud800",
        "\u2028",
        "x" * 300,
        "0",
        "5",
        "nan",
        "1 GB/s",
        "-1 GB/s",
        "1e30 GB/s",
        "1e-29 B/s",
        "1e21 B",
        "1e999 GB/s",
        "1 us",
        "1e-30 s",
        "4 USD/(GB/s)",
        "0 USD/(GB/s)",
        "B1 >= B2",
        "B9 = 1 GB/s",
        "1/0 B1 >= B2",
        "RI(2)",
        "RI(4)_XX(2)",
        "SW(9999999)_SW(100)",
        "torus(3,3)",
        "table-4.1",
        "all",
        "gpt-3",
        "dlrm",
        "../x.json",
        "inter-pod",
        "tp",
        "all_gather",
        "perf-per-cost",
        "tp-dp-overlap",
    ]
)
SCALARS = NUMBERS | TEXTS | st.text(max_size=8) | st.integers() | st.floats()
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=3), max_leaves=6
)


def places(data: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Path of every value below the top."""
    keys = list(data) if isinstance(data, dict) else range(len(data)) if isinstance(data, list) else ()
    return [found for key in keys for found in ((*path, key), *places(data[key], (*path, key)))]


@st.composite
def damaged_files(draw: st.DrawFn) -> Any:
    """Damage a right file in one to three places: delete, replace, duplicate, rename or swap."""
    data = json.loads(json.dumps(draw(st.sampled_from(SOURCES))))
    for _ in range(draw(st.integers(1, 3))):
        known = places(data)
        if not known:
            break
        *parents, last = draw(st.sampled_from(known))
        target = data
        for step in parents:
            target = target[step]
        match draw(st.sampled_from(["delete", "replace", "replace", "replace", "rename", "wrap", "copy"])):
            case "delete":
                del target[last]
            case "rename" if isinstance(target, dict):
                target[draw(TEXTS)] = target.pop(last)
            case "wrap":
                target[last] = [target[last]]
            case "copy":
                *others, source = draw(st.sampled_from(known))
                origin = json.loads(json.dumps(data))
                for step in (*others, source):
                    try:
                        origin = origin[step]
                    except (KeyError, IndexError, TypeError):
                        break
                target[last] = origin
            case _:
                target[last] = draw(VALUES)
    return data


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder for all examples."""
    return tmp_path_factory.mktemp("fuzz")


def use(instance: Instance) -> None:
    """Do with an instance what every command does first."""
    assert len(instance.sha256) == 64
    if instance.workloads or instance.transformers:
        model = time_model(instance)
        count = len(instance.fabric.dimensions)
        assert model.seconds([1e9] * count) >= 0
        if instance.design is not None:
            prices = None if instance.cost_model is None else instance.cost_model.price_per_Bps(instance.fabric)
            instance.design.linear_constraints(count, prices)


@pytest.mark.slow
@settings(max_examples=draws(400), suppress_health_check=list(HealthCheck))
@given(damaged_files())
def test_damaged_files_are_refused_in_one_line(folder: Path, data: Any) -> None:
    """Whatever is deleted, changed or put into a right file, loading gives an instance that can be used, or an input
    error."""
    path = folder / "x.json"
    path.write_text(json.dumps(data))
    try:
        use(load(path))
    except InputError as error:
        assert str(error)
        assert len(str(error)) < 600


@settings(max_examples=draws(200))
@given(st.sampled_from(SOURCES), st.data())
def test_damaged_bytes_are_refused_in_one_line(folder: Path, source: Any, data: st.DataObject) -> None:
    """The same for files that are cut or have wrong bytes."""
    raw = bytearray(json.dumps(source).encode())
    at = data.draw(st.integers(0, len(raw)))
    raw[at : at + data.draw(st.integers(0, 20))] = data.draw(st.binary(max_size=8))
    if data.draw(st.booleans()):
        del raw[data.draw(st.integers(0, len(raw))) :]
    path = folder / "x.json"
    path.write_bytes(bytes(raw))
    try:
        use(load(path))
    except InputError as error:
        assert "\n" not in str(error)
