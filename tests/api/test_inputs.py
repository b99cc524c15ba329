"""Inputs of :func:`cwb.load`: texts, files, mappings, networks, graphs and tables, each giving the same instance."""

from __future__ import annotations

import json
from fractions import Fraction

import cwb
import networkx as nx
import numpy as np
import pandas as pd
import pytest
from cwb.core.collective import Collective, Demand
from cwb.core.errors import InputError
from cwb.core.fabric import parse_fabric
from cwb.core.topology import Link
from draws import draws
from hypothesis import given, settings
from hypothesis import strategies as st

LINKS = [
    Link("a", "b", Fraction(25 * 10**9), Fraction(7, 10**7)),
    Link("b", "a", Fraction(25 * 10**9), Fraction(7, 10**7)),
]


def graph(**fields: object) -> nx.Graph:
    """Two nodes with a link that says so."""
    made = nx.Graph(name="pair")
    made.add_edge("a", "b", **fields)
    return made


FILE = {"name": "pair", "network": {"nodes": [{"name": "a"}, {"name": "b"}], "links": [
    {"source": "a", "target": "b", "bandwidth": "25 GB/s", "latency": "0.7 us", "bidirectional": True}]}}  # fmt: skip
NODE_LINK = {
    "nodes": [{"id": "a"}, {"id": "b"}],
    "edges": [{"source": "a", "target": "b", "bw": "25 GB/s", "delay_us": 0.7}],
}
TABLE = pd.DataFrame(
    {"source": ["a", "b"], "target": ["b", "a"], "bandwidth_GBps": [25, 25], "latency (us)": [0.7, 0.7]}
)
HALF = pd.DataFrame(
    {"source": ["a"], "target": ["b"], "bandwidth": [None], "latency": [float("nan")], "bidirectional": [True]}
)
GIVEN = {"bandwidth": "25 GB/s", "latency": "0.7 us"}


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        (FILE, {}),
        (FILE["network"], {}),
        (NODE_LINK, {}),
        (graph(bandwidth="25 GB/s", latency="0.7 us"), {}),
        (graph(capacity_Gbps=200, delay_ns=700), {}),
        (graph(weight="25 GB/s", latency=0.7), {"latency_unit": "us"}),
        (graph(bandwidth=200, latency=Fraction(7, 10**7)), {"bandwidth_unit": "Gb/s", "latency_unit": "s"}),
        (graph(weight=1), GIVEN),
        (nx.to_pandas_edgelist(graph(bandwidth="25 GB/s", latency="0.7 us").to_directed()), {}),
        (TABLE, {}),
        (HALF, GIVEN),
    ],
)
def test_one_network_however_it_is_said(spec, said):
    """Mappings, node-link data, graphs in many spellings and tables are the same two links, exactly."""
    network = cwb.load(spec, **said).network
    assert network.ranks == ("a", "b")
    assert list(network.links) == LINKS


def test_a_graph_in_a_schedule_out_and_back():
    """From a graph in three spellings to a schedule that is verified, and to a graph over the same nodes."""
    ring = nx.cycle_graph(4)
    nx.set_edge_attributes(ring, {(0, 1): {"bandwidth": "25 GB/s", "latency": "1 us"}, (1, 2): {"capacity_Gbps": 200,
        "delay_ns": 1000}, (2, 3): {"weight": "25e9 B/s", "latency_us": 1.0},
        (0, 3): {"bw": "25GB/s", "delay": "1us"}})  # fmt: skip
    run = cwb.solve(ring, "ring", collective="all_reduce", size="1 GiB", chunks=4)
    assert run.verified
    assert run.problem.demand == Demand(Collective.ALL_REDUCE, Fraction(2**30), 4)
    said = {(link.bandwidth_Bps, link.latency_s) for link in run.problem.network.links}
    assert said == {(25 * 10**9, Fraction(1, 10**6))}
    back = cwb.to_networkx(run)
    assert set(back) == {str(node) for node in ring}
    assert all(ring.has_edge(int(source), int(target)) for source, target, _ in back.edges)
    assert cwb.load(cwb.to_networkx(run.problem)).network == run.problem.network


def test_files_of_graphs_and_tables(tmp_path):
    """GraphML, GML and comma-separated values are loaded by their paths, with the same words."""
    nx.write_graphml(graph(bandwidth="25 GB/s", latency="0.7 us"), tmp_path / "a.graphml")
    nx.write_gml(graph(bandwidth="25 GB/s"), tmp_path / "a.gml")
    TABLE.rename(columns={"latency (us)": "latency_us"}).to_csv(tmp_path / "a.csv", index=False)
    assert list(cwb.load(tmp_path / "a.graphml").network.links) == LINKS
    assert list(cwb.load(str(tmp_path / "a.gml"), latency="0.7 us").network.links) == LINKS
    assert list(cwb.load(tmp_path / "a.csv").network.links) == LINKS
    (tmp_path / "a.json").write_text(json.dumps(FILE))
    assert list(cwb.load(tmp_path / "a.json").network.links) == LINKS


def test_a_file_with_links_of_both_kinds_is_refused(tmp_path):
    """In GraphML a link that is directed, in a graph that is not, is refused as networkx does."""
    path = tmp_path / "mixed.graphml"
    edge = '<edge source="a" target="b" directed="true"/>'
    path.write_text(f'<graphml><graph edgedefault="undirected"><node id="a"/><node id="b"/>{edge}</graph></graphml>')
    with pytest.raises(InputError, match=r"edge\[0\].directed: 'true', unlike the graph"):
        cwb.load(path, bandwidth="1 GB/s")
    path.write_text(path.read_text().replace("undirected", "directed"))
    assert len(cwb.load(path, bandwidth="1 GB/s").network.links) == 1


def test_one_pattern_of_switches_is_a_text():
    """`switches` is one pattern or several, not the letters of one."""
    graph = nx.Graph([("a", "s1"), ("s1", "b")])
    one, several = (cwb.load(graph, bandwidth="1 GB/s", switches=said) for said in ("s*", ["s*"]))
    assert one.network == several.network
    assert one.npus == 2


def test_short_floats_are_the_decimals_they_are_written_as():
    """A number of 32 bits is the decimal that it shows, in a graph and in a table."""
    graph = nx.Graph()
    graph.add_edge("a", "b", bandwidth_GBps=np.float32(0.7))
    table = pd.DataFrame({"source": ["a"], "target": ["b"], "bandwidth_GBps": np.array([0.7], dtype="float32")})
    for spec in (graph, table):
        assert cwb.load(spec).network.links[0].bandwidth_Bps == 7 * 10**8


def test_instances_and_networks_are_loaded_too():
    """An instance stays as it is, a network becomes one, and the name and the collective can be said."""
    torus = cwb.load("torus(2,2)")
    assert cwb.load(torus) is torus
    assert cwb.load(torus.network).network is torus.network
    assert cwb.load(parse_fabric("RI(4)_SW(8)"), name="mine").name == "mine"
    asked = cwb.load("torus(2,2)", name="mine", collective="all_gather", size="1 MiB", chunks=2)
    assert (asked.name, asked.demand) == ("mine", Demand(Collective.ALL_GATHER, Fraction(2**20), 2))


@pytest.mark.parametrize(
    ("spec", "said", "message"),
    [
        (graph(bandwidth=25), {}, "a graph: link a-b.bandwidth: 25 has no unit"),
        (graph(weight=25), {}, "a graph: link a-b.weight: 25 may be anything"),
        (graph(), {}, "a graph: link a-b: the link has no rate; expected bandwidth= as a default"),
        (graph(), {"bandwidth": "25"}, "'25' has no unit"),
        (graph(bandwidth=25), {"bandwidth_unit": "GBps"}, "'25 GBps' has an unknown unit 'GBps'"),
        (graph(bandwidth="1 GB/s", dist=3), {}, "expected latency=, such as 'length' or '1 us'"),
        (graph(bandwidth="1 GB/s"), {"latency": "length"}, "its sites have no coordinates; expected latency= for"),
        (TABLE.drop(columns="target"), {}, "a DataFrame: columns .*; expected source and target"),
        (
            TABLE.assign(bandwidth="1 GB/s"),
            {},
            "a DataFrame: row 0: bandwidth_GBps '25 GB/s' and bandwidth '1 GB/s' differ",
        ),
        (TABLE.assign(target="a"), {}, "a DataFrame: row 0: a link from 'a' to itself"),
        (TABLE[:0], {}, "no links"),
        ({"nodes": [], "links": []}, {}, "a mapping: network.nodes: "),
        ({"a": {"b": {}}}, {}, "a mapping: network.*: "),
        (3, {}, "3 is a int; expected a text, a path, a mapping, a graph of networkx"),
        (None, {}, "None is a NoneType; expected"),
        ("torus(2,2)", {"bandwidth": "1 GB/s"}, "are those of a graph or a table of links"),
        ("torus(2,2)", {"collective": "allreduce"}, "^collective: 'allreduce' is unknown.* did you mean 'all_reduce'"),
        ("torus(2,2)", {"collective": 3}, "^collective: 3 is unknown"),
        ("torus(2,2)", {"collective": "all_reduce", "chunks": "4"}, "^chunks: '4'; expected a whole number from 1"),
        ("torus(2,2)", {"collective": "all_reduce", "chunks": 1.5}, "^chunks: 1.5; expected a whole number"),
        ("torus(2,2)", {"collective": "all_reduce", "chunks": 0}, "^chunks: 0; expected a whole number"),
        ({"directed": "true", "nodes": [{"id": 1}], "links": []}, {}, "directed: 'true'; expected true or false"),
        (nx.Graph([("a\nb", "\x1b[31m")]), {}, r"link a\\nb-\\x1b\[31m: the link has no rate"),
        ("torus(2,2)", {"size": "1 GB"}, "^collective: missing, and the instance has no collective"),
        ("torus(2,2)", {"collective": "all_reduce", "size": "1"}, "^size: '1' has no unit"),
        ("nothing.graphml", {}, "nothing.graphml: no such file or directory"),
    ],
)
def test_wrong_input_is_one_line_in_words_of_python(spec, said, message):
    """Errors have place, value and what was expected, and name keyword arguments instead of options."""
    with pytest.raises(InputError, match=message) as caught:
        cwb.load(spec, **said)
    assert "\n" not in str(caught.value)
    assert "--" not in str(caught.value)


values = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.fractions() | st.decimals(allow_nan=False) | st.text()
    | st.binary()
    | st.lists(st.integers(), max_size=3) | st.dictionaries(st.text(), st.integers(), max_size=2) | st.complex_numbers()
    | st.sampled_from(["25 GB/s", "1 us", "0 B", "switch", np.float64("nan"), np.int8(3), pd.NaT, pd.NA, -0.0, 10**400])
)  # fmt: skip
fields = st.dictionaries(
    st.sampled_from(["bandwidth", "capacity_Gbps", "weight", "delay (us)", "LinkSpeedRaw", "dist", "count", "link"])
    | st.text(),
    values,
    max_size=3,
)


@settings(max_examples=draws(50))
@given(st.lists(fields, min_size=1, max_size=3), fields | st.fixed_dictionaries({}, optional=dict.fromkeys(
    ("kind", "multicast", "buffer", "buffer_bytes", "type", "label", "pos", "Latitude", "Longitude"),
    values)))  # fmt: skip
def test_whatever_is_said_is_an_instance_or_one_line(edges, node):
    """Attributes and cells of any names, types and values give a network, or one line that says what is wrong."""
    graph = nx.MultiGraph()
    graph.add_node("a", **{str(name): value for name, value in node.items()})
    for number, said in enumerate(edges):
        graph.add_edge("a", number, **said)
    rows = [{"source": "a", "target": str(number), **said} for number, said in enumerate(edges)]
    for spec in (graph, pd.DataFrame(rows), nx.node_link_data(graph, edges="edges")):
        try:
            assert cwb.load(spec).npus > 0
        except InputError as error:
            assert "\n" not in str(error)
