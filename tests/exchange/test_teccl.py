"""Files of the original TE-CCL as instances and schedules."""

from __future__ import annotations

import json
from fractions import Fraction

import pytest
from click.testing import CliRunner
from cwb.cli.importing import importing
from cwb.core.errors import InputError
from cwb.exchange.teccl import import_teccl, position, read_schedule
from cwb.instances import load


def write(folder, topology=None, instance=None):
    """An input file in the original's form."""
    path = folder / "NDv2_sample.json"
    data = {
        "TopologyParams": {"name": "NDv2", "chassis": 2, "chunk_size": 6.25e-05, "alpha": [7e-07, 1.3e-06]}
        | (topology or {}),
        "GurobiParams": {"mip_gap": 0.3},
        "InstanceParams": {"collective": 1, "num_chunks": 1, "epoch_type": 2} | (instance or {}),
    }
    path.write_text(json.dumps(data))
    return path


@pytest.mark.parametrize(
    ("topology", "network", "ranks"),
    [
        ({}, "ndv2(chassis=2, gpu0_switch=true)", 15),
        ({"chassis": 4}, "ndv2(chassis=4)", 32),
        ({"name": "DGX1"}, "dgx1()", 8),
        ({"name": "DGX2"}, "dgx2(chassis=2)", 32),
        ({"name": "AMD"}, "amd(chassis=2, variant=repo)", 32),
        ({"name": "AMD", "chassis": 1}, "amd(chassis=1)", 16),
        (
            {"name": "Mesh", "side_length": 3},
            "mesh(3, 3, joined_rows=true, bandwidth='100 GB/s', latency='0.0000007 s')",
            9,
        ),
    ],
)
def test_inputs_become_the_instance_that_the_code_has(topology, network, ranks, tmp_path):
    """Every topology of the code is a generator expression with the code's own quirks, and a chunk's size becomes the
    buffer's."""
    data = import_teccl(write(tmp_path, topology, {"num_chunks": 2}))
    assert data["network"] == network
    assert data["collective"] == {"kind": "all_gather", "size": f"{62_500 * 2 * ranks} B", "chunks": 2}


def test_as_drawn_leaves_the_quirks_out(tmp_path):
    """Asked for, the networks of the figures are taken."""
    assert import_teccl(write(tmp_path), as_drawn=True)["network"] == "ndv2(chassis=2)"
    assert import_teccl(write(tmp_path, {"name": "AMD"}), as_drawn=True)["network"] == "amd(chassis=2)"


def test_the_command_writes_an_instance_that_loads(tmp_path):
    """``cwb import teccl`` writes a file that the loader takes."""
    target = tmp_path / "out.json"
    done = CliRunner().invoke(importing, ["teccl", str(write(tmp_path, instance={"collective": 2})), "-o", str(target)])
    assert done.exit_code == 0, done.output
    instance = load(target)
    assert instance.npus == 15
    assert instance.demand.size_bytes == Fraction(937_500)


@pytest.mark.parametrize(
    ("topology", "instance", "message"),
    [
        ({"name": "Torus"}, {}, "TopologyParams.name: 'Torus' is no topology of TE-CCL"),
        ({"chassis": 0}, {}, "TopologyParams.chassis: 0; expected an integer from 1"),
        ({"chunk_size": 0}, {}, "TopologyParams.chunk_size: a chunk of no size"),
        ({"chunk_size": "1"}, {}, "TopologyParams.chunk_size: '1'; expected a number"),
        ({}, {"collective": 3}, "InstanceParams.collective: 3; expected 1"),
        ({"name": "Mesh", "alpha": 1}, {}, "TopologyParams.alpha: 1; expected seconds"),
    ],
)
def test_wrong_inputs_are_told(topology, instance, message, tmp_path):
    """Every wrong value is one line with its place."""
    with pytest.raises(InputError, match=message):
        import_teccl(write(tmp_path, topology, instance))


def test_other_files_are_told(tmp_path):
    """A file that is no JSON object, or lacks a part, is reported."""
    path = tmp_path / "x.json"
    for text, message in [("[]", "expected an object"), ("{", "not JSON"), ("{}", "TopologyParams")]:
        path.write_text(text)
        with pytest.raises(InputError, match=message):
            import_teccl(path)


def test_schedules_are_read(tmp_path):
    """Lines of a schedule give chunk, source, epoch and way, switches included."""
    path = tmp_path / "s.json"
    lines = [
        "Chunk 0 from 11 traveled over 11->10 in epoch 0",
        "Chunk 1 from 4 traveled over 4->9 in epoch 1 via switches 0",
    ]
    path.write_text(json.dumps({"1-Epoch_Duration": 5e-06, "3-Epochs_Required": 14, "7-Flows": lines}))
    *head, flows = read_schedule(path)
    assert head == [Fraction(5, 10**6), 14]
    assert [flow[:4] for flow in flows] == [(0, 11, 0, (11, 10)), (1, 4, 1, (4, 0, 9))]
    path.write_text(json.dumps({"1-Epoch_Duration": 5e-06, "3-Epochs_Required": 14, "7-Flows": ["Chunk"]}))
    with pytest.raises(InputError, match=r"7-Flows\[0\]: 'Chunk'; expected such as"):
        read_schedule(path)


@pytest.mark.parametrize(
    ("network", "name", "node", "expected"),
    [
        ("ndv2(2, gpu0_switch=true)", "NDv2", 9, "box1.gpu1"),
        ("ndv2(4)", "NDv2", 0, "network"),
        ("ndv2(4)", "NDv2", 9, "box1.gpu0"),
        ("dgx2(2)", "DGX2", 17, "box1.nvswitch"),
        ("dgx2(2)", "DGX2", 1, "box0.gpu0"),
        ("amd(2, variant=repo)", "AMD", 16, "box0.gpu15"),
        ("amd(2, variant=repo)", "AMD", 25, "box1.gpu0"),
        ("mesh(3,3)", "Mesh", 4, "4"),
    ],
)
def test_nodes_are_counted_as_the_code_counts(network, name, node, expected):
    """Switches come first in the code: of the whole network, or of the chassis."""
    topology = load(network).network
    assert topology.nodes[position(topology, name, node)].name == expected
    with pytest.raises(InputError, match="node 999"):
        position(topology, name, 999)
