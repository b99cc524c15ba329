"""Foreign wide-area networks: every format, and files that are wrong or mean harm."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from cwb.cli.main import cwb
from cwb.core.errors import InputError
from cwb.exchange import graph_network
from cwb.exchange.graph_network import Defaults, great_circle_km, import_wan
from cwb.exchange.graphs import read_graph
from cwb.instances import load

GRAPHML = """<?xml version="1.0" encoding="utf-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
  <key attr.name="label" attr.type="string" for="node" id="d1"/>
  <key attr.name="Latitude" attr.type="double" for="node" id="d2"/>
  <key attr.name="Longitude" attr.type="double" for="node" id="d3"/>
  <key attr.name="LinkSpeedRaw" attr.type="double" for="edge" id="d4"/>
  <graph edgedefault="undirected">
    <node id="0"><data key="d1">Paris</data><data key="d2">48.85</data><data key="d3">2.35</data></node>
    <node id="1"><data key="d1">Berlin</data><data key="d2">52.52</data><data key="d3">13.40</data></node>
    <node id="2"><data key="d1">Berlin</data><data key="d2">52.52</data><data key="d3">13.40</data></node>
    <edge source="0" target="1"><data key="d4">10000000000.0</data></edge>
    <edge source="0" target="2"/><edge source="1" target="2"/><edge source="1" target="1"/>
  </graph>
</graphml>"""
GML = """# a comment
graph [ directed 0
  node [ id 0 label "Paris" Latitude 48.85 Longitude 2.35 graphics [ x 1 y 2 ] ]
  node [ id 1 label "Berlin" Latitude 52.52 Longitude 13.40 ]
  node [ id 2 label "Berlin" Latitude 52.52 Longitude 13.40 ]
  edge [ source 0 target 1 LinkSpeedRaw 10000000000.0 ]
  edge [ source 0 target 2 ] edge [ source 1 target 2 ] edge [ source 1 target 1 ]
]
"""
SNDLIB = """<network xmlns="http://sndlib.zib.de/network"><networkStructure>
  <nodes coordinatesType="geographical">
    <node id="Paris"><coordinates><x>2.35</x><y>48.85</y></coordinates></node>
    <node id="Berlin"><coordinates><x>13.40</x><y>52.52</y></coordinates></node>
  </nodes>
  <links><link id="L1"><source>Paris</source><target>Berlin</target>
    <preInstalledModule><capacity>40.0</capacity></preInstalledModule></link></links>
</networkStructure></network>"""
JSON = json.dumps(
    {
        "nodes": [{"id": 0, "name": "Paris", "pos": [2.35, 48.85]}, {"id": 1, "name": "Berlin", "pos": [13.4, 52.52]}],
        "edges": [{"source": 0, "target": 1, "dist": 1000.0}],
    }
)


def write_file(folder: Path, name: str, text: str) -> str:
    (folder / name).write_text(text)
    return str(folder / name)


@pytest.mark.parametrize(("name", "text"), [("a.graphml", GRAPHML), ("a.gml", GML)])
def test_topology_zoo(name, text, tmp_path):
    """Speeds come from the file where it has them, latencies from coordinates, equal labels get their keys, and loops
    are left out."""
    data = import_wan(write_file(tmp_path, name, text), Defaults(bandwidth="1 Gb/s"))
    network = data["network"]
    assert [node["name"] for node in network["nodes"]] == ["Paris", "Berlin (1)", "Berlin (2)"]
    assert [link["bandwidth"] for link in network["links"]] == ["10000000000 b/s", "1 Gb/s", "1 Gb/s"]
    assert [link["latency"] for link in network["links"]] == ["4388 us", "4388 us", "0 us"]


def test_sndlib(tmp_path):
    """SNDlib's capacities have no unit and get one."""
    path = write_file(tmp_path, "a.xml", SNDLIB)
    (link,) = import_wan(path, Defaults(bandwidth_unit="Mb/s"))["network"]["links"]
    assert link["bandwidth"] == "40 Mb/s"
    with pytest.raises(InputError, match="the link has no rate; expected --bandwidth"):
        import_wan(path, Defaults())


def test_node_link(tmp_path):
    """A length in the file goes before the great circle."""
    (link,) = import_wan(write_file(tmp_path, "a.json", JSON), Defaults(bandwidth="1 Gb/s"))["network"]["links"]
    assert link["latency"] == "5000 us"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.graphml", GRAPHML.replace('"undirected"', '"directed"')),
        ("a.gml", GML.replace("directed 0", "directed 1")),
        ("a.json", JSON.replace('{"nodes"', '{"directed": true, "nodes"')),
    ],
)
def test_links_of_directed_graphs_have_one_direction(name, text, tmp_path):
    """A directed graph that has both directions of a link does not have each of them twice."""
    data = import_wan(write_file(tmp_path, name, text), Defaults(bandwidth="1 Gb/s"))
    assert not any("bidirectional" in link for link in data["network"]["links"])


def test_great_circle():
    """A quarter of the equator, and from pole to pole, are parts of the circumference."""
    assert great_circle_km((0, 0), (0, 90)) == pytest.approx(10007.557, abs=1e-3)
    assert great_circle_km((90, 0), (-90, 0)) == pytest.approx(20015.114, abs=1e-3)


def test_the_command_writes_an_instance(tmp_path):
    """The command writes a file that loads, whole or not at all."""
    source, target = write_file(tmp_path, "a.gml", GML), tmp_path / "out.json"
    done = CliRunner().invoke(cwb, ["import", "wan", source, "--bandwidth", "1 Gb/s", "-o", str(target)])
    assert done.exit_code == 0
    assert len(load(str(target)).network.links) == 6


BOMB = '<!DOCTYPE l [<!ENTITY a "aa"><!ENTITY b "&a;&a;">]><graphml><graph><node id="&b;"/></graph></graphml>'


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.graphml", BOMB, "declares entities or more in its document type 'l'"),
        ("a.graphml", "<graphml><graph>", "not XML"),
        ("a.graphml", "<html/>", "its root is 'html'; expected graphml"),
        ("a.xml", "<graphml/>", "its root is 'graphml'; expected network"),
        ("a.xml", "<network>" + "<link>" * 10_000, "'link' is nested deeper than 64 elements"),
        ("a.gml", "graph [ node [ id 0 ] ] node # the end", "the text ends"),
        ("a.gml", "graph [ node [ id 0 ]", "the text ends"),
        ("a.gml", "graph ]", "unexpected ']'"),
        ("a.gml", "a [ " * 50, "nested deeper than 32"),
        ("a.gml", "node [ id 0 ]", r"expected 'graph \['"),
        ("a.json", "[" * 100_000, "not JSON"),
        ("a.json", '{"nodes": []}', "edges: missing"),
        ("a.json", '{"nodes": [{"id": 0}], "edges": [{"source": 0, "target": 1}]}', "a link ends at '1'"),
        ("a.json", '{"nodes": [{"id": 0}, {"id": 0}], "edges": []}', "two nodes have the same id"),
        ("a.json", '{"nodes": [{"id": 0}], "edges": []}', "no links"),
        ("a.json", '{"nodes": [{"id": 0, "lat": 99, "lon": 0}], "edges": []}', "no latitude and longitude"),
        ("a.json", '{"nodes": [{}], "edges": []}', "expected a node with id"),
        ("a.json", '{"nodes": [], "edges": [3]}', "expected a link with source and target"),
        ("a.json", f'{{"nodes": [{{"id": 0, "pos": [1, 1{"0" * 400}]}}], "edges": []}}', "an integer of 401 digits"),
        ("a.json", '{"nodes": [{"id": 0, "pos": [1, 1e400]}], "edges": []}', "no latitude and longitude"),
        (
            "a.json",
            f'{{"nodes": [{{"id": 0}}], "edges": [{{"source": 0, "target": 0, "capacity": 1{"0" * 400}}}]}}',
            "an integer of 401 digits",
        ),
        (
            "a.json",
            '{"nodes": [{"id":0},{"id":1}], "edges": [{"source":0,"target":1}]}',
            "no coordinates; expected --latency",
        ),
        (
            "a.json",
            '{"nodes": [{"id":0}], "edges": [{"source":0,"target":0,"dist":-1}]}',
            "expected a number of at least 0",
        ),
        ("a.txt", "", "its name ends in '.txt'"),
    ],
)
def test_wrong_files_are_told_in_one_line(name, text, message, tmp_path):
    """Truncated, foreign, deep and harmful files are refused with the file, the place and what was expected."""
    path = write_file(tmp_path, name, text)
    with pytest.raises(InputError, match=message) as caught:
        import_wan(path, Defaults(bandwidth="1 Gb/s"))
    assert str(caught.value).startswith(path)
    assert len(str(caught.value)) < 400 + len(path)


def test_a_comment_may_end_gml(tmp_path):
    """Comments are read over wherever they are, also after the last token."""
    path = write_file(tmp_path, "a.gml", GML + "# the end")
    assert import_wan(path, Defaults(bandwidth="1 Gb/s")) == import_wan(
        write_file(tmp_path, "a.gml", GML), Defaults(bandwidth="1 Gb/s")
    )


def test_topohub(monkeypatch):
    """TopoHub's networks are asked by name; a missing package and a missing network are one line."""
    monkeypatch.setitem(__import__("sys").modules, "topohub", None)
    with pytest.raises(InputError, match=r"pip install 'cwb\[topohub\]'"):
        import_wan("topohub:sndlib/polska", Defaults())

    class Stub:
        @staticmethod
        def get(name):
            return {"a/b": json.loads(JSON)}[name]

    monkeypatch.setitem(__import__("sys").modules, "topohub", Stub)
    assert len(import_wan("topohub:a/b", Defaults(bandwidth="1 Gb/s"))["network"]["links"]) == 1
    for name in ("a/c", "../a", "a//b"):
        with pytest.raises(InputError, match="expected a name such as"):
            graph_network.read_topohub(name)


def test_sizes_are_limited(tmp_path, monkeypatch):
    """A graph with too many sites is refused."""
    monkeypatch.setattr("cwb.exchange.graphs.MAX_SITES", 1)
    with pytest.raises(InputError, match="expected at most 1 and"):
        read_graph(tmp_path / write_file(tmp_path, "a.json", JSON))
