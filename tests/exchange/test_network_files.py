"""Networks of ASTRA-sim and TACCL, and links as comma-separated values."""

from __future__ import annotations

import json
from fractions import Fraction

import pytest
from cwb.core.errors import InputError
from cwb.exchange.astra import import_astra
from cwb.exchange.graph_network import Defaults
from cwb.exchange.links_csv import import_links
from cwb.exchange.taccl import import_taccl
from cwb.instances.loader import network_from_text

THREE = """# a network of three dimensions
topology: [ Ring, FullyConnected, Switch ]
npus_count: [ 4, 3, 2 ]  # 24 NPUs
bandwidth: [ 200.0, 100.0, 50 ]  # GB/s
latency: [ 50.0, 500.0, 2e3 ]  # ns
"""
LONG = "\n".join(
    f"{key}: [{', '.join([value] * 10)}]"
    for key, value in (("topology", "Ring"), ("npus_count", "2"), ("bandwidth", "1.25"), ("latency", "0.125"))
)


def write_file(folder, name, content):
    path = folder / name
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def test_links_of_astra_keep_their_rates(tmp_path):
    """Every link has the file's rate, a GB being 2^30 bytes, and a switch is two links of the file's latency away."""
    data = import_astra(write_file(tmp_path, "net.yml", THREE))
    links = network_from_text(data["network"]).links
    gib = 2**30
    assert {link.bandwidth_Bps for link in links} == {200 * gib, 100 * gib, 50 * gib}
    times = {link.bandwidth_Bps / gib: link.latency_s * 10**9 for link in links}
    assert times == {200: 50, 100: 500, 50: 2000}
    assert import_astra(write_file(tmp_path, "net.json", {
        "topology": ["Ring"], "npus_count": [2], "bandwidth": [0.1], "latency": [0]
    }))["network"] == "fabric('RI(2)', bandwidth=['0.1 GiB/s'], latency=['0 ns'])"  # fmt: skip
    fabric = import_astra(write_file(tmp_path, "net.yml", THREE), fabric=True)["network"]
    assert fabric["bandwidth"] == ["400 GiB/s", "200 GiB/s", "50 GiB/s"]


def test_logical_dimensions_ask(tmp_path):
    """Files with sizes alone need blocks, rates and latencies, each for every dimension."""
    path = write_file(tmp_path, "l.json", {"logical-dims": ["8", "2"]})
    with pytest.raises(
        InputError, match="contain only sizes: 0 are given; expected --blocks for each of its 2 dimensions"
    ):
        import_astra(path)
    given = {"blocks": ["Ring", "Switch"], "bandwidth": ["50 GB/s", "25 GB/s"], "latency": ["1 us", "2 us"]}
    assert import_astra(path, **given)["network"].startswith("fabric('RI(8)_SW(2)', bandwidth=['100 GB/s', '25 GB/s']")
    with pytest.raises(InputError, match="--blocks: the file already sets it"):
        import_astra(write_file(tmp_path, "net.yml", THREE), blocks=["Ring"])


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("Ring,", "Torus,", r"topology\[0\]: 'Torus'; expected Ring, FullyConnected, Switch"),
        ("[ 4, 3, 2 ]", "[ 4, 3 ]", "npus_count: 2 entries for 3 dimensions"),
        ("[ 4,", "[ 1,", r"npus_count\[0\]: '1'; expected an integer from 2"),
        ("200.0", "0", r"bandwidth\[0\]: '0'; expected a number above 0"),
        ("200.0", "1e999", "expected a number above 0"),
        ("50.0,", "-1,", r"latency\[0\]: '-1'; expected a number of at least 0"),
        ("[ 4, 3, 2 ]", "[ 1000000, 1000000, 2 ]", r"links; expected at most 20,000,000"),
        ("topology: [", "topology: &a [ *a,", "an alias; expected plain data"),
        ("topology:", "dims:", "topology: None; expected a list"),
        ("topology: [", "topology: " + "[" * 30_000, "nested too deeply"),
        (THREE, LONG, "its expression has .* characters; expected at most 200, or --fabric"),
    ],
)
def test_wrong_networks_of_astra(old, new, message, tmp_path):
    """Unknown blocks, lists of different lengths and impossible numbers are refused with the place."""
    with pytest.raises(InputError, match=message):
        import_astra(write_file(tmp_path, "net.yml", THREE.replace(old, new)))


NDV2 = {"name": "NDv2_1MB", "gpus_per_node": 8, "nics_per_node": 1, "alpha": 0.5, "node_betas_list": [32, 64],
        "node_invbws_list": [33, 65], "remote_alpha": 3, "remote_beta": 128}  # fmt: skip
RELAY = {"nnodes": 2, "intranode_sketch": {"strategy": "none"}, "internode_sketch": {"internode_conn": {"0": [1]}}}


def rates(data):
    return {(link["source"], link["target"]): link["bandwidth"] for link in data["network"]["links"]}


def test_topologies_of_taccl(tmp_path):
    """Two costs are a hybrid cube mesh, one is a switch, matrices are what they say; 32 us for 1 MiB are 32.768
    GB/s."""
    cube = import_taccl(write_file(tmp_path, "a.json", NDV2))
    assert rates(cube)["gpu0", "gpu1"] == "32.768 GB/s"
    assert rates(cube)["gpu0", "gpu2"] == "16.384 GB/s"
    assert {link["latency"] for link in cube["network"]["links"]} == {"0.5 us"}
    star = import_taccl(
        write_file(tmp_path, "a.json", NDV2 | {"node_betas_list": [8], "gpus_per_node": 16}), size="1 MB"
    )
    assert set(rates(star).values()) == {"125 GB/s"}
    assert {link["latency"] for link in star["network"]["links"]} == {"0.25 us"}
    matrix = {"name": "two", "gpus_per_node": 2, "alpha": 30, "links": [[0, 1], [0, 0]], "betas": [[0, 100], [9, 0]]}
    one = import_taccl(write_file(tmp_path, "a.json", matrix), size="1 kB", time_unit="0.01 us")
    assert rates(one) == {("gpu1", "gpu0"): "1 GB/s"}
    assert one["network"]["links"][0]["latency"] == "0.3 us"
    with pytest.raises(InputError, match="name: 'two' does not name the data size of the costs; expected --size"):
        import_taccl(write_file(tmp_path, "a.json", matrix))


def test_sketches_of_taccl(tmp_path):
    """Connections share the NICs: one has the whole NIC, eight an eighth each; more than two boxes meet at switches."""
    topology = write_file(tmp_path, "a.json", NDV2)
    two = rates(import_taccl(topology, sketch=write_file(tmp_path, "s.json", RELAY)))
    assert two["box0.gpu0", "box1.gpu1"] == "8.192 GB/s"
    assert two["box1.gpu0", "box0.gpu1"] == "8.192 GB/s"
    direct = RELAY | {"nnodes": 3, "internode_sketch": {"internode_conn": "direct-map"}}
    three = rates(import_taccl(topology, sketch=write_file(tmp_path, "s.json", direct)))
    assert three["box2.gpu7", "network7"] == three["network7", "box1.gpu7"] == "1.024 GB/s"
    for wrong in ({"0": [9]}, {"x": [1]}, {"0": []}, {"0": [1, 1]}, {"0": 1}, "rails", {}):
        sketch = RELAY | {"internode_sketch": {"internode_conn": wrong}}
        with pytest.raises(InputError, match="internode_conn"):
            import_taccl(topology, sketch=write_file(tmp_path, "s.json", sketch))


def test_other_files_of_taccl_and_astra_are_named(tmp_path):
    """A sketch in place of a topology, and a topology of ns-3 in place of a network, are told what they are."""
    with pytest.raises(InputError, match="a sketch of TACCL; expected a topology, with this file as its --sketch"):
        import_taccl(write_file(tmp_path, "s.json", RELAY))
    with pytest.raises(InputError, match=r"a topology of ns-3.*logical-dims"):
        import_astra(write_file(tmp_path, "a.topo", "4 1 0 1 4 H100\n4\n0 4 400Gbps 0.0005ms 0\n"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"gpus_per_node": 4}, "gpus_per_node: 4; two costs are those of a hybrid cube mesh of 8"),
        ({"gpus_per_node": "8"}, "gpus_per_node: '8'; expected an integer"),
        ({"node_betas_list": []}, "expected one cost or two"),
        ({"node_betas_list": [0, 1]}, r"node_betas_list\[0\]: 0; expected a cost above 0"),
        ({"alpha": -1}, "alpha: -1; expected a number that is not negative"),
        ({"alpha": 1e300}, "expected a number that is not negative"),
        ({"links": [[1]]}, "links: expected 8 lists of 8 numbers"),
        ({"name": "x_0MB"}, "expected --size"),
    ],
)
def test_wrong_topologies_of_taccl(change, message, tmp_path):
    """Missing and impossible costs are refused with the place."""
    with pytest.raises(InputError, match=message):
        import_taccl(write_file(tmp_path, "a.json", NDV2 | change))


CSV = """# a leaf switch
source, target, bandwidth, latency, count, bidirectional
a, leaf, 25 GB/s, 1 us, 2, true
leaf, b, 100/3 GB/s,,,
"b", a,, 0 s, 1, FALSE
"""


def test_links_as_comma_separated_values(tmp_path):
    """Links have both directions unless they say otherwise, and exact rates; switches are found by their names."""
    defaults = Defaults("5 GB/s", latency="2 us", switches=("lea?",))
    data = import_links(write_file(tmp_path, "l.csv", CSV), defaults, name="star")
    assert data["network"]["nodes"] == [
        {"name": "a"},
        {"name": "leaf", "kind": "switch", "buffer": "0 B"},
        {"name": "b"},
    ]
    one, other, back = data["network"]["links"]
    assert one == {"source": "a", "target": "leaf", "bandwidth": "25 GB/s", "latency": "1 us", "count": 2,
                   "bidirectional": True}  # fmt: skip
    assert Fraction(other["bandwidth"].split()[0]) == Fraction(100, 3)
    assert (other["latency"], back["bandwidth"], back["latency"]) == ("2 us", "5 GB/s", "0 s")
    assert (other["bidirectional"], back["bidirectional"]) == (True, False)


@pytest.mark.parametrize(
    ("rows", "one_way", "said", "directions"),
    [
        ("a,b,\nb,c,\n", False, "each in both directions", [True, True]),
        ("a,b,\nb,c,\n", True, "each from source to target", [None, None]),
        ("a,b,\nb,a,\nb,c,\n", False, "each from source to target", [None, None, None]),
        ("a,b,YES\nb,c,no\n", False, "", [True, False]),
        ("a,b,no\nb,a,\n", True, "each from source to target", [False, None]),
    ],
)
def test_directions_of_links_as_comma_separated_values(rows, one_way, said, directions, tmp_path):
    """Links that say nothing have both directions, but not with --one-way or where the file lists both; it is told."""
    path = write_file(tmp_path, "l.csv", f"source,target,bidirectional\n{rows}")
    data = import_links(path, Defaults("1 GB/s"), one_way=one_way)
    assert data["source"] == f"l.csv, links as comma-separated values{said and ', '}{said}"
    assert [link.get("bidirectional") for link in data["network"]["links"]] == directions


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no links; expected a line of column names"),
        ("a,b,1 GB/s\n", "columns .*; expected source, target"),
        ("source,target,bandwidth\na,b\n", "line 2: 2 cells; expected 3"),
        ("source,target\na,b\n", "expected --bandwidth"),
        ("source,target,bandwidth\na,b,25\n", "line 2.bandwidth: '25' has no unit"),
        ("source,target,bandwidth,count\na,b,1 GB/s,²\n", "count: '²'; expected an integer"),
        ("source,target,bandwidth,bidirectional\na,b,1 GB/s,maybe\n", "expected true, yes, false or no"),
        ('source,target,bandwidth\n"a,b,1 GB/s\n', "no comma-separated values"),
        ("source,target,bandwidth\na,a,1 GB/s\n", "line 2: a link from 'a' to itself"),
        ("source,target,bandwidth\n,a,1 GB/s\n", "line 2.source: ''; expected a name"),
    ],
)
def test_wrong_links(text, message, tmp_path):
    """Missing columns, cells and units, and links of a node to itself are refused with the line."""
    with pytest.raises(InputError, match=message):
        import_links(write_file(tmp_path, "l.csv", text), Defaults())
