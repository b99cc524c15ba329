"""The published JSON Schemas say what the classes say."""

from __future__ import annotations

import json
from collections.abc import Iterator
from fractions import Fraction
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from cwb.cli.main import run
from cwb.core.errors import InputError
from cwb.core.fields import run_validation
from cwb.core.units import UnitKind, parse
from cwb.instances import schema as classes
from cwb.instances.loader import shipped_instances, shipped_workloads
from cwb.instances.schema import FORMATS, schema_text

INSTANCES = files("cwb.instances")
PUBLISHED = {"instance": INSTANCES / "schema.json", "workload": INSTANCES / "workloads" / "schema.json"}


def validator(name: str) -> jsonschema.Draft202012Validator:
    """Make a validator of a published schema."""
    return jsonschema.Draft202012Validator(json.loads(PUBLISHED[name].read_text(encoding="utf-8")))


@pytest.mark.parametrize("name", FORMATS)
def test_published_schemas_are_those_of_the_classes(name: str) -> None:
    """The files are what 'cwb export schema' writes now; run it with -o when a class has changed."""
    assert PUBLISHED[name].read_text(encoding="utf-8") == schema_text(name)


@pytest.mark.parametrize("name", FORMATS)
def test_schemas_are_valid_and_written_alike_every_time(name: str) -> None:
    """Each is valid JSON Schema, sorted, and ends with a newline."""
    text = schema_text(name)
    jsonschema.Draft202012Validator.check_schema(json.loads(text))
    assert text == json.dumps(json.loads(text), indent=2, sort_keys=True, ensure_ascii=False) + "\n"


@pytest.mark.parametrize("name", FORMATS)
def test_the_command_prints_and_writes_the_schema(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """'cwb export schema' gives the same text on stdout and in a file."""
    with pytest.raises(SystemExit) as caught:
        run(["export", "schema", "--of", name])
    assert (caught.value.code, capsys.readouterr().out) == (0, schema_text(name))
    with pytest.raises(SystemExit) as caught:
        run(["export", "schema", "--of", name, "-o", str(tmp_path / "s.json")])
    assert caught.value.code == 0
    assert (tmp_path / "s.json").read_text(encoding="utf-8") == schema_text(name)


@pytest.mark.parametrize("name", shipped_instances())
def test_every_shipped_instance_is_valid(name: str) -> None:
    """An editor with the schema finds nothing wrong in what comes with cwb; ``validate`` raises otherwise."""
    validator("instance").validate(json.loads((INSTANCES / f"{name}.json").read_text(encoding="utf-8")))


@pytest.mark.parametrize("name", shipped_workloads())
def test_every_shipped_workload_is_valid(name: str) -> None:
    """The same for workloads; ``validate`` raises otherwise."""
    validator("workload").validate(json.loads((INSTANCES / "workloads" / f"{name}.json").read_text(encoding="utf-8")))


def test_schemas_are_no_instances() -> None:
    """The published schemas lie beside the instances and are not taken for one."""
    assert "schema" not in (*shipped_instances(), *shipped_workloads())


GOOD: dict[str, Any] = {
    "network": {"dimensions": "RI(4)_SW(8)", "npus": 32},
    "workloads": [{"use": "gpt-3", "groups": {"tp": [4, 1], "dp": [1, 8]}, "weight": 2}],
    "cost_model": {"inter-node": {"link": "4 USD/(GB/s)"}},
    "design": {"total_bandwidth": "1000 GB/s", "constraints": ["B1 >= B2"]},
}
GRAPH: dict[str, Any] = {
    "network": {
        "nodes": [{"name": "a"}, {"name": "b"}],
        "links": [{"source": "a", "target": "b", "bandwidth": "50 GB/s", "latency": "0.5 us", "bidirectional": True}],
    },
    "collective": {"kind": "all_gather", "size": "1 GiB", "ranks": [0, 1]},
}


def change_value(data: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """A copy with the value at a dotted path replaced, or deleted if it is Ellipsis."""
    copy = json.loads(json.dumps(data))
    *parents, last = [int(step) if step.isdigit() else step for step in path.split(".")]
    target: Any = copy
    for step in parents:
        target = target[step]
    if value is ...:
        del target[last]
    else:
        target[last] = value
    return copy


WRONG = [
    (GOOD, "network", ...),
    (GOOD, "network", 5),
    (GOOD, "network", []),
    (GOOD, "network", {}),
    (GOOD, "network.npus", "32"),
    (GOOD, "network.npus", 0),
    (GOOD, "network.npus", 32.5),
    (GOOD, "network.in_network", ["yes", "no"]),
    (GOOD, "netwrok", "RI(4)"),
    (GOOD, "schema", "cwb-instance/2"),
    (GOOD, "workloads", {}),
    (GOOD, "workloads.0.groups.tp", "4"),
    (GOOD, "workloads.0.groups.tp", [4, 0]),
    (GOOD, "workloads.0.groups", {}),
    (GOOD, "workloads.0.loop", "pipelined"),
    (GOOD, "workloads.0.weight", 0),
    (GOOD, "workloads.0.weight", "2"),
    (GOOD, "cost_model", "table-9"),
    (GOOD, "cost_model.inter-node.link", 4),
    (GOOD, "cost_model.inter-node.link", "4 USD"),
    (GOOD, "cost_model.inter-node.cable", "4 USD/(GB/s)"),
    (GOOD, "design.total_bandwidth", 1000),
    (GOOD, "design.total_bandwidth", "1000"),
    (GOOD, "design.total_bandwidth", "1000 GB"),
    (GOOD, "design.total_bandwidth", "-1000 GB/s"),
    (GOOD, "design.total_bandwidth", "nan GB/s"),
    (GOOD, "design.objective", "speed"),
    (GOOD, "design.constraints", "B1 >= B2"),
    (GRAPH, "network.nodes", []),
    (GRAPH, "network.nodes.0.kind", "router"),
    (GRAPH, "network.links.0.bandwidth", ...),
    (GRAPH, "network.links.0.bidirectional", "yes"),
    (GRAPH, "network.links.0.count", 0),
    (GRAPH, "collective.kind", "all_to_some"),
    (GRAPH, "collective.ranks", [-1]),
    (GRAPH, "collective.chunks", 1.5),
]


@pytest.mark.parametrize("data", [GOOD, GRAPH], ids=["fabric", "graph"])
def test_right_files_are_accepted_by_both(data: dict[str, Any]) -> None:
    """The files that the wrong ones are made of are right for the schema and for cwb; both raise otherwise."""
    validator("instance").validate(data)
    run_validation(lambda: classes.InstanceFile.model_validate(data))


@pytest.mark.parametrize(("data", "path", "value"), WRONG, ids=[f"{path}={value!r}" for _, path, value in WRONG])
def test_wrong_files_are_rejected_by_both(data: dict[str, Any], path: str, value: object) -> None:
    """Files that cwb refuses are marked by an editor too: fields, types, units, signs, ranges and names."""
    wrong = change_value(data, path, value)
    assert not validator("instance").is_valid(wrong)
    with pytest.raises(InputError):
        run_validation(lambda: classes.InstanceFile.model_validate(wrong))


def quantities_with_defaults(schema: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Find the fields of a quantity that have a default: class, field and default."""
    for name, definition in schema["$defs"].items():
        for field, entry in definition.get("properties", {}).items():
            if isinstance(entry.get("default"), str) and "pattern" in entry:
                yield name, field, entry["default"]


def test_defaults_of_quantities_are_written_with_units() -> None:
    """The defaults that the schema shows are quantities, and equal to those of the classes."""
    found = list(quantities_with_defaults(json.loads(schema_text("instance"))))
    assert {field for _, field, _ in found} == {"compute", "latency", "speed"}
    for name, field, default in found:
        kind = UnitKind.SPEED if field == "speed" else UnitKind.TIME
        value = getattr(classes, name).model_fields[field].default
        assert isinstance(value, Fraction)
        assert parse(default, kind) == value
