"""``cwb import`` of machines: from a text to an instance that can be solved, and errors as one line."""

from __future__ import annotations

import json

import pytest
from cwb.cli.importing import _AMD, _CPUS, _NVIDIA
from cwb.cli.main import run
from cwb.exchange.link_rates import AMD_GENERATIONS, CPUS, GENERATIONS
from cwb.instances import load
from machine_files import nccl_system, rocm_topo, smi_topo


def run_command(*arguments):
    """Run a command and return its exit status."""
    with pytest.raises(SystemExit) as ended:
        run([str(argument) for argument in arguments])
    return ended.value.code or 0


def test_generations_are_those_of_the_tables():
    """The choices of the options, which help shows without loading the tables, are the entries of the tables."""
    assert set(_NVIDIA) == set(GENERATIONS)
    assert set(_AMD) == set(AMD_GENERATIONS)
    assert set(_CPUS) == set(CPUS)


FILES = {
    "nvidia-smi": (smi_topo(lambda i, j: "NV18", 8), ("--generation", "h100"), 8),
    "nccl": (nccl_system(2, lambda i: '<nvlink target="s" count="18" tclass="0x068000"/>'), (), 2),
    "rocm-smi": (rocm_topo(4, lambda i, j: "XGMI", lambda i, j: 15, lambda i: 0), ("--xgmi", "2 x 50 GB/s"), 4),
    "astra": ("topology: [Ring]\nnpus_count: [4]\nbandwidth: [50]\nlatency: [500]\n", (), 4),
    "taccl": (json.dumps({"gpus_per_node": 4, "alpha": 1, "node_betas_list": [8]}), ("--size", "1 MB"), 4),
    "csv": ("source,target,bandwidth,bidirectional\na,b,25 GB/s,true\n", ("--latency", "1 us"), 2),
}


@pytest.mark.parametrize("kind", FILES)
def test_a_machine_becomes_an_instance(kind, tmp_path, capsys):
    """Every kind of file becomes an instance with its ranks, which says where its numbers come from."""
    text, options, ranks = FILES[kind]
    (tmp_path / "in").write_text(text)
    assert run_command("import", kind, tmp_path / "in", *options, "-o", tmp_path / "my.json") == 0
    instance = load(tmp_path / "my.json")
    assert len(instance.network.ranks) == ranks
    assert instance.source.startswith("in")
    assert "my.json" in capsys.readouterr().err


def test_four_boxes_on_rails(tmp_path):
    """Boxes, NICs and rails that are given on the command line are in the network."""
    (tmp_path / "in").write_text(FILES["nvidia-smi"][0])
    cluster = ("--boxes", 4, "--nic", "8 x 400 Gb/s", "--rails", "--rates", "nominal")
    assert (
        run_command(
            "import", "nvidia-smi", tmp_path / "in", "--generation", "h100", *cluster, "-o", tmp_path / "c.json"
        )
        == 0
    )
    network = load(tmp_path / "c.json").network
    assert (len(network.ranks), len(network.switches)) == (32, 4 + 32 + 8)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nvidia-smi", "in"), "in: NV18 says neither"),
        (("nvidia-smi", "in", "--nvlink", "25 GB/s"), "--nvlink: '25 GB/s'; expected such as '12 x 25 GB/s'"),
        (("nvidia-smi", "in", "--pcie", "24"), "--pcie: '24' has no unit"),
        (("nvidia-smi", "in", "--generation", "v101"), "'v101' is unknown; expected one of"),
        (("nvidia-smi", "missing"), "missing: no such file"),
        (("nccl", "in", "--cpu", "amd", "--between-cpus", "9 GB/s"), "--cpu: is given beside --between-cpus"),
        (("nccl", "in"), "in: not XML"),
        (("rocm-smi", "in"), "in: weight between two gpus"),
        (("astra", "in"), "in: "),
        (("taccl", "in"), "in: line 1, column 2: not JSON"),
        (("csv", "in"), "in: "),
    ],
)
def test_what_is_wrong_is_one_line(arguments, message, tmp_path, capsys, monkeypatch):
    """A faulty file or option gives one line on stderr with exit status 2, and nothing is written."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in").write_text(FILES["nvidia-smi"][0])
    assert run_command("import", *arguments, "-o", "my.json") == 2
    told = capsys.readouterr()
    (line,) = [line for line in told.err.splitlines() if line.startswith("cwb: ")]
    assert message in line
    assert told.out == ""
    assert not (tmp_path / "my.json").exists()
