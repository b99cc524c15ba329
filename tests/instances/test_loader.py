"""From a path, a name or an expression to an instance."""

from __future__ import annotations

import json
from fractions import Fraction
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from cwb import load
from cwb.core.collective import Collective, Demand
from cwb.core.errors import InputError
from cwb.core.fabric import Fabric, WiredFabric
from cwb.core.timing import RankCosts
from cwb.core.topology import Topology
from cwb.core.trace import Routing
from cwb.instances import loader
from cwb.instances.loader import MAX_KEYS, read_json, shipped_instances, shipped_workloads
from draws import draws
from hypothesis import given, settings
from hypothesis import strategies as st

INSTANCE: dict[str, Any] = {
    "network": "RI(4)_SW(8)",
    "workloads": [{"use": "gpt-3", "groups": {"tp": 4, "dp": 8}}],
    "design": {"total_bandwidth": "100 GB/s"},
}


def write_json(path: Path, data: object) -> Path:
    """Write data as JSON."""
    path.write_text(json.dumps(data))
    return path


@pytest.mark.parametrize("name", shipped_instances())
def test_every_shipped_instance_loads(name: str) -> None:
    """Every shipped instance has its file's name, a description, a source, a network, and a task."""
    instance = load(name)
    assert instance.name == name
    assert instance.description
    assert instance.source
    if instance.demand is None:
        assert instance.training()
        assert instance.design is not None
        assert instance.cost_model is not None
    else:
        assert instance.demand.size_bytes > 0


@pytest.mark.parametrize(
    ("name", "expression", "gpus"),
    [
        ("a100x2", "dgx_a100(boxes=2)", 16),
        ("mi250x2", "mi250(boxes=2)", 32),
        ("mi250-8+8x2", "mi250_8(boxes=2)", 16),
    ],
)
def test_the_testbeds_of_forestcoll(name: str, expression: str, gpus: int) -> None:
    """Each testbed is found by name and by file, and is an all-gather of 1 GiB on the network of its generator."""
    instance = load(name)
    assert instance.sha256 == load(files("cwb.instances") / f"{name}.json").sha256
    assert instance.network == load(expression).network
    assert isinstance(instance.network, Topology)
    assert len(instance.network.ranks) == gpus
    assert instance.demand == Demand(Collective.ALL_GATHER, Fraction(2**30))


def test_the_instances_of_the_paper_are_there() -> None:
    """The five workloads on both 4K networks, the sets of several constraints, the shapes of table 4.3 and the cost
    example."""
    workloads = ("gpt-3", "msft-1t", "turing-nlg", "resnet-50", "dlrm")
    wanted = {f"{w}-{n}" for w in workloads for n in ("3d", "4d", "4d-multiple")}
    wanted |= {"3d", "4d", "3d-512", "3d-1k", "4d-2k", "3d-torus", "cost-example"}
    assert wanted <= set(shipped_instances())
    assert set(workloads) <= set(shipped_workloads())


@pytest.mark.parametrize(
    ("name", "shape", "npus"),
    [
        ("4d", "RI(4)_FC(8)_RI(4)_SW(32)", 4096),
        ("3d", "RI(16)_FC(8)_SW(32)", 4096),
        ("3d-512", "SW(16)_SW(8)_SW(4)", 512),
        ("3d-1k", "FC(8)_RI(16)_SW(8)", 1024),
        ("4d-2k", "RI(4)_SW(4)_SW(8)_SW(16)", 2048),
        ("3d-torus", "RI(4)_RI(4)_RI(4)", 64),
    ],
)
def test_shapes_are_those_of_table_4_3(name: str, shape: str, npus: int) -> None:
    """Each network has the building blocks and the number of NPUs of the dissertation's table 4.3."""
    instance = load(name)
    assert (str(instance.fabric), instance.npus) == (shape, npus)


def test_an_instance_is_found_in_every_form(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A shipped name, the README's path without a checkout, a path and a Path give an instance; building blocks and
    expressions a network."""
    monkeypatch.chdir(tmp_path)
    assert load("4d").sha256 == load("4d.json").sha256 == load("instances/4d.json").sha256
    path = write_json(tmp_path / "mine.json", INSTANCE)
    assert load("mine.json").name == load(path).name == "mine"
    assert isinstance(load("RI(4)_FC(4)_SW(4)").network, Fabric)
    assert isinstance(load("torus(4,4)").network, Topology)
    generated = load('libra(workload=gpt-3, dims="RI(4)_FC(8)_RI(4)_SW(32)")')
    assert generated.training()[0].groups == load("4d").training()[0].groups


def test_a_file_goes_before_a_shipped_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of the user with a shipped name is the user's."""
    monkeypatch.chdir(tmp_path)
    write_json(tmp_path / "4d.json", INSTANCE)
    assert load("4d.json").npus == 32


def test_a_workload_file_is_found_beside_the_instance(tmp_path: Path) -> None:
    """A relative path of a workload is relative to the instance, wherever cwb is started."""
    workload = {"name": "tiny", "layers": [{"name": "only", "forward": {"compute": "1 us"}}]}
    write_json(tmp_path / "w.json", {"$schema": "schema.json", **workload})
    path = write_json(tmp_path / "i.json", INSTANCE | {"workloads": [{"use": "w.json"}]})
    assert load(path).workloads[0].name == "tiny"


def test_an_error_in_a_workload_file_names_that_file(tmp_path: Path) -> None:
    """The file and the place are those of the workload; a missing one is told at the place that names it."""
    path = write_json(tmp_path / "i.json", INSTANCE | {"workloads": [{"use": "w.json"}]})
    with pytest.raises(InputError, match=r"i\.json: workloads\[0\]\.use: no such file '.*w\.json'"):
        load(path)
    write_json(tmp_path / "w.json", {"name": "tiny", "layers": [{}]})
    with pytest.raises(InputError) as caught:
        load(path)
    assert str(caught.value) == f"{tmp_path / 'w.json'}: layers[0].name: missing, but required"


def test_names_and_texts_do_not_change_the_digest(tmp_path: Path) -> None:
    """The digest is that of the problem: it survives another name, description and order of keys, but not another
    number."""
    first = load(write_json(tmp_path / "a.json", INSTANCE))
    second = load(
        write_json(tmp_path / "b.json", dict(reversed(INSTANCE.items())) | {"description": "x", "source": "y"})
    )
    third = load(write_json(tmp_path / "c.json", INSTANCE | {"design": {"total_bandwidth": "101 GB/s"}}))
    assert first.sha256 == second.sha256 != third.sha256


def test_equal_quantities_in_other_units_are_equal(tmp_path: Path) -> None:
    """0.1 TB/s is 100 GB/s, exactly."""
    first = load(write_json(tmp_path / "a.json", INSTANCE))
    second = load(write_json(tmp_path / "b.json", INSTANCE | {"design": {"total_bandwidth": "0.1 TB/s"}}))
    assert first.sha256 == second.sha256


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ("", "an empty text"),
        ("4dd", "did you mean '4d'"),
        ("nothing like it", "no such file, shipped instance or expression"),
        ("nope.json", "no such file or directory"),
        ("instances/nope.json", "no such file or directory"),
        ("RI(4)_XX(8)", "dimension 2 is 'XX(8)'"),
        ("RI(4)_SW(99999999)", "dimension 2 is 'SW(99999999)'"),
        ("tours(4,4)", "did you mean 'torus'"),
        ("torus(4,4", "no such file"),
        ("a" * 5000, "no such file"),
        ("x\0y", "no such file"),
        ("x\0y.json", "invalid file name"),
        ("ring(" + "1," * 5000 + "1)", "expected at most"),
        (".", "is a directory"),
        ("/", "is a directory"),
    ],
)
def test_what_is_not_there_is_refused(spec: str, reason: str) -> None:
    """A wrong name, path, notation or expression is one line; close names are suggested."""
    with pytest.raises(InputError) as caught:
        load(spec)
    assert reason in str(caught.value)


@settings(max_examples=draws(200))
@given(st.one_of(st.text(max_size=40), st.from_regex(r"[a-zA-Z]{1,8}(\([0-9a-z,=\[\]\" .-]{0,20}\))?", fullmatch=True)))
def test_no_text_breaks_the_loader(text: str) -> None:
    """Whatever is given as an instance, there is one or an input error, and nothing else."""
    try:
        load(text)
    except InputError as error:
        assert str(error)


def test_a_gigabyte_is_refused_before_it_is_read(tmp_path: Path) -> None:
    """A sparse file of 1 GB is refused by its size."""
    path = tmp_path / "large.json"
    with path.open("wb") as stream:
        stream.truncate(10**9)
    with pytest.raises(InputError, match="1,000,000,000 bytes; expected at most 67,108,864"):
        load(path)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "line 1, column 1: not JSON"),
        (b'{"network": ', "line 1, column 13: not JSON"),
        (b'{\n"network": "RI(4)"\n"name": "x"}', "line 3, column 1: not JSON"),
        (b"\xff{}", "not UTF-8"),
        (b'{"network": "RI(4)\xff"}', "not UTF-8"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"a":' * 100_000, "nested too deeply"),
        (b'{"network": "RI(4)", "network": "RI(8)"}', "key 'network' is given twice"),
        (b'{"network": NaN}', "NaN is not a number that JSON allows"),
        (b'{"network": -Infinity}', "-Infinity is not a number that JSON allows"),
        (b'{"network": ' + b"9" * 5000 + b"}", "an integer of 5,000 digits"),
    ],
)
def test_broken_json_is_refused_with_the_place(tmp_path: Path, content: bytes, reason: str) -> None:
    """Truncated, undecodable, deeply nested and ambiguous JSON is told in one line."""
    path = tmp_path / "x.json"
    path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        load(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert reason in str(caught.value)


def test_a_million_mistakes_are_told_as_the_first(tmp_path: Path) -> None:
    """Neither a list of wrong objects nor an object of wrong keys makes the loader collect all that is wrong."""
    links = {"network": {"nodes": [{"name": "a"}], "links": [{}] * 300_000}}
    with pytest.raises(InputError, match=r"network\.links\[0\]\.source: missing"):
        load(write_json(tmp_path / "a.json", links))
    keys = {"network": "RI(4)", **{f"k{i}": 1 for i in range(MAX_KEYS)}}
    with pytest.raises(InputError, match="an object has 10,001 keys"):
        load(write_json(tmp_path / "b.json", keys))


def test_a_byte_order_mark_is_no_mistake(tmp_path: Path) -> None:
    """Some editors begin a file with one."""
    path = tmp_path / "x.json"
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps(INSTANCE).encode())
    assert read_json(path) == INSTANCE


def test_a_fabric_with_bandwidths_is_wired(tmp_path):
    """A file that says the bandwidth of its dimensions gives a fabric that collectives can be timed on."""
    path = tmp_path / "x.json"
    data = {"schema": "cwb-instance/1", "network": {"dimensions": "RI(4)_SW(2)", "bandwidth": ["8 GB/s", "1 GB/s"]}}
    path.write_text(json.dumps(data | {"collective": {"kind": "all_reduce", "size": "1 MiB"}}))
    network = load(path).network
    assert isinstance(network, WiredFabric)
    assert network.bandwidth_Bps == (8 * 10**9, 10**9)
    assert network.latency_s == (0, 0)
    path.write_text(json.dumps(data | {"network": {"dimensions": "RI(4)_SW(2)", "latency": ["1 us", "1 us"]}}))
    with pytest.raises(InputError, match="without the bandwidth"):
        load(path)


def test_a_generator_without_arguments_is_its_name():
    """The name of a generator whose arguments all have defaults is an instance; of others it says what is missing."""
    assert load("ndv2").network == load("ndv2()").network
    with pytest.raises(InputError, match="torus: sizes"):
        load("torus")
    with pytest.raises(InputError, match="did you mean 'ndv2'"):
        load("NDv-2")


@pytest.mark.parametrize(
    ("fields", "costs"),
    [
        ({}, None),
        ({"rank_overhead": "0 s"}, None),
        ({"rank_overhead": "1/3 us"}, RankCosts(Fraction(1, 3_000_000))),
        ({"reduce_rate": "10 GB/s"}, RankCosts(reduce_rate_Bps=Fraction(10**10))),
        (
            {"reduce_rate": {"switch": "1 GB/s"}, "reduce_while_receiving": True},
            RankCosts(switch_reduce_rate_Bps=Fraction(10**9), while_receiving=True),
        ),
    ],
)
def test_costs_of_ranks(fields: dict[str, Any], costs: RankCosts | None, tmp_path: Path) -> None:
    """Overhead and rates of adding are exact; what costs nothing leaves the instance and its digest as they were."""
    bare = load(write_json(tmp_path / "bare.json", {"network": "ring(4)"}))
    found = load(write_json(tmp_path / "costs.json", {"network": "ring(4)", **fields}))
    assert found.rank_costs == costs
    assert (found.sha256 == bare.sha256) == (costs is None)


@pytest.mark.parametrize("field", [{"rank_overhead": "1 us"}, {"routing": "spray"}])
def test_costs_of_ranks_and_routing_need_links(field: dict[str, str], tmp_path: Path) -> None:
    """A fabric with costs of ranks or a routing is an input error."""
    with pytest.raises(InputError, match="nodes and links"):
        load(write_json(tmp_path / "fabric.json", {"network": "RI(4)", **field}))


@pytest.mark.parametrize(
    "field",
    [
        *({"rank_overhead": wrong} for wrong in ("-1 us", "nan s", "inf s", "1", 1, None, "1 GB")),
        *({"reduce_rate": wrong} for wrong in ("0 GB/s", "-1 GB/s", "1", 5, {"compute": "0 GB/s"}, {"gpu": "1 GB/s"})),
        *({"reduce_while_receiving": wrong} for wrong in (1, "true", None)),
        *({"routing": wrong} for wrong in ("random", "", None, 1, ["spray"])),
    ],
)
def test_bad_costs_and_routings_name_their_field(field: dict[str, Any], tmp_path: Path) -> None:
    """Costs and routings that cannot be are errors of one line that name the field."""
    with pytest.raises(InputError) as refused:
        load(write_json(tmp_path / "bad.json", {"network": "ring(4)", **field}))
    assert next(iter(field)) in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("routing", Routing)
def test_routing(routing: Routing, tmp_path: Path) -> None:
    """The routing is read, and the digest of an instance with fixed paths is what it was."""
    bare = load(write_json(tmp_path / "bare.json", {"network": "ring(4)"}))
    found = load(write_json(tmp_path / "routing.json", {"network": "ring(4)", "routing": routing.value}))
    assert found.routing is routing
    assert (found.sha256 == bare.sha256) == (routing is Routing.FIXED)


@pytest.mark.parametrize(
    ("name", "reader"), [("links.csv", "csv"), ("sites.gml", "wan"), ("TOPO.XML", "nccl"), ("H100.yml", "astra")]
)
def test_files_of_other_programs_name_the_command_that_reads_them(name: str, reader: str, tmp_path: Path) -> None:
    """A network of another program is no instance, and the error says what makes one of it."""
    (tmp_path / name).write_text("source,target\n")
    with pytest.raises(InputError, match=f"expected an instance, which cwb import {reader} makes of this file"):
        loader.load(tmp_path / name)
