"""Files that ASTRA-sim needs besides a trace: networks as dimensions, and a folder that it can run."""

from __future__ import annotations

import json

import pytest
from command_line import cwb
from cwb.core.errors import InputError
from cwb.exchange.astra import dimensions_of, import_astra, network_text
from cwb.exchange.chakra.files import messages, read_trace, split_messages
from cwb.instances import load
from cwb.instances.loader import network_from_text

NETWORKS = {
    "ring(5)": "RI(5)",
    "complete(4)": "FC(4)",
    "star(6)": "SW(6)",
    "torus(4,4)": "RI(4)_RI(4)",
    "torus(2,3)": "FC(2)_FC(3)",
    "hypercube(3)": "FC(2)_FC(2)_FC(2)",
    "ring(4)": "RI(4)",
    "fabric('RI(4)_FC(3)_SW(2)', bandwidth=['80 GiB/s', '30 GiB/s', '7.25 GiB/s'], latency=['1 us', '2 us', '3 us'])":
    "RI(4)_FC(3)_SW(2)",
}  # fmt: skip


@pytest.mark.parametrize("spec", NETWORKS)
def test_networks_of_blocks_are_found(spec, tmp_path):
    """Dimensions are those of the network, and the file, read again, is the same network to 12 decimals."""
    network = load(spec).network
    found = dimensions_of(network)
    assert "_".join(f"{one.block.value}({one.size})" for one in found) == NETWORKS[spec]
    path = tmp_path / "network.yml"
    path.write_text(network_text(found))
    again = network_from_text(import_astra(path)["network"])
    assert [len(again.ranks), len(again.links)] == [len(network.ranks), len(network.links)]
    for one, other in zip(dimensions_of(again), found, strict=True):
        assert (one.block, one.size) == (other.block, other.size)
        assert float(one.bandwidth_Bps) == pytest.approx(float(other.bandwidth_Bps), rel=1e-12)
        assert one.latency_s == other.latency_s


@pytest.mark.parametrize("spec", ["line(4)", "ring(4, bidirectional=False)", "dgx1()", "a100(boxes=2)", "mesh(2,3)"])
def test_other_networks_are_refused(spec):
    """A network that is none of blocks is refused, and the error says what can be had."""
    with pytest.raises(InputError, match="cwb export chakra"):
        dimensions_of(load(spec).network)


def solve_ring(tmp_path, spec, collective):
    """A schedule file of the ring."""
    file = tmp_path / "s.json"
    assert cwb("solve", "-q", "-m", "direct", spec, "--collective", collective, "--size", "1 MiB", "-o", file) == 0
    return file


def test_a_folder_that_astra_sim_runs(tmp_path):
    """Traces, a workload of one collective for every rank, and the files that name them."""
    file, folder = solve_ring(tmp_path, "torus(2,2)", "all_gather"), tmp_path / "run"
    assert cwb("export", "astra", file, "-o", folder, "--name", "mine") == 0
    system = json.loads((folder / "system.json").read_text())
    assert system["all-gather-implementation-custom"] == ["traces/mine"]
    assert json.loads((folder / "memory.json").read_text()) == {"memory-type": "NO_MEMORY_EXPANSION"}
    assert (
        (folder / "network.yml")
        .read_text()
        .startswith("topology: [ FullyConnected, FullyConnected ]\nnpus_count: [ 2, 2 ]\n")
    )
    assert cwb("check", folder / "traces", "--topology", "torus(2,2)") == 0
    assert read_trace(folder / "traces").ngpus == 4
    for rank in range(4):
        _, content = split_messages((folder / "workload" / f"mine.{rank}.et").read_bytes())
        node = messages()[1].FromString(content)
        values = {one.name: getattr(one, one.WhichOneof("value")) for one in node.attr}
        assert (node.type, values) == (7, {"is_cpu_op": False, "comm_type": 2, "comm_size": 2**20})
    assert cwb("export", "astra", file, "-o", folder) == 2


@pytest.mark.parametrize(("spec", "collective", "said"), [
    ("torus(2,2)", "broadcast", "ASTRA-sim takes algorithms for all_reduce"),
    ("line(3)", "all_gather", "the network has no dimensions"),
])  # fmt: skip
def test_what_astra_sim_cannot_run_is_told(spec, collective, said, tmp_path, capsys):
    """Other collectives and networks are one line, and no folder is left."""
    file = solve_ring(tmp_path, spec, collective)
    capsys.readouterr()
    assert cwb("export", "astra", file, "-o", tmp_path / "run") == 2
    assert said in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["s.json"]
