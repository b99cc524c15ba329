"""``cwb import libra``: the original's input files become the instances that come with cwb, and wrong ones become one
line."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from cwb import load
from cwb.cli.main import run
from cwb.core.errors import InputError
from cwb.core.fabric import network_price
from cwb.exchange.libra import LibraFiles, import_libra, to_tier_name
from cwb.models.libra.problem import time_model

#: Networks and prices of the original's inputs (astra-sim/libra, inputs/network and inputs/cost_model).
NETWORKS = {
    "3d": {
        "Topology": ["Ring", "FullyConnected", "Switch"],
        "NpusCount": [16, 8, 32],
        "CostDimension": ["InterPackage", "InterNode", "InterPod"],
    },
    "4d": {
        "Topology": ["Ring", "FullyConnected", "Ring", "Switch"],
        "NpusCount": [4, 8, 4, 32],
        "CostDimension": ["InterChiplet", "InterPackage", "InterNode", "InterPod"],
    },
}
PRICES = {
    "3d": {
        "InterPackage": {"Link": 4.00001, "Switch": 13.00001},
        "InterNode": {"Link": 4.00002, "Switch": 13.00002},
        "InterPod": {"Link": 7.80003, "Switch": 18.00003, "Nic": 31.60003},
    },
    "4d": {
        "InterChiplet": {"Link": 2.00001},
        "InterPackage": {"Link": 4.00002, "Switch": 13.00002},
        "InterNode": {"Link": 4.00003, "Switch": 13.00003},
        "InterPod": {"Link": 7.80004, "Switch": 18.00004, "Nic": 31.60004},
    },
}
#: Passes and weight gradient (inputs/communicator); DLRM, which has none there, is taken to span all NPUs.
COMMUNICATORS = {
    ("GPT_3", "3d"): ([16, -1, -1], [-1, 8, 32]),
    ("GPT_3", "4d"): ([4, 4, -1, -1], [-1, 2, 4, 32]),
    ("MSFT_1T", "3d"): ([16, 8, -1], [-1, -1, 32]),
    ("MSFT_1T", "4d"): ([4, 8, 4, -1], [-1, -1, -1, 32]),
    ("ResNet_50", "3d"): ([-1, -1, -1], [16, 8, 32]),
    ("ResNet_50", "4d"): ([-1, -1, -1, -1], [4, 8, 4, 32]),
    ("Turing_NLG", "3d"): ([-1, -1, -1], [16, 8, 32]),
    ("Turing_NLG", "4d"): ([-1, -1, -1, -1], [4, 8, 4, 32]),
    ("DLRM", "3d"): ([16, 8, 32], [16, 8, 32]),
    ("DLRM", "4d"): ([4, 8, 4, 32], [4, 8, 4, 32]),
}

Write = Callable[[str, str], LibraFiles]


@pytest.fixture
def write(tmp_path: Path, reference: Path) -> Write:
    """Write the four input files of one of the original's designs."""

    def files(workload: str, network: str) -> LibraFiles:
        passes, weight_gradient = COMMUNICATORS[workload, network]
        communicator = {"Forward": passes, "InputGrad": list(passes), "WeightGrad": weight_gradient}
        with (reference / "libra_workloads.csv").open(newline="") as rows:
            layers = [list(row.values()) for row in csv.DictReader(rows) if row["workload"] == workload]
        texts = {
            f"{network}_network.yml": "# a comment\n" + yaml.safe_dump(NETWORKS[network]),
            f"{workload}.txt": "".join(f"{row[1]} -1 {' '.join(row[2:])} 10\n" for row in layers),
            f"{workload}_{network}.yml": yaml.safe_dump(communicator, default_flow_style=True),
            f"{network}_cost_model.yml": yaml.safe_dump(PRICES[network]),
        }
        for name, text in texts.items():
            (tmp_path / name).write_text(text)
        return LibraFiles(*(tmp_path / name for name in texts))

    return files


def arguments(files: LibraFiles, output: Path) -> list[str]:
    """Command line that imports the files."""
    parts = ("--network", files.network), ("--workload", files.workload), ("--communicator", files.communicator)
    pairs = (*parts, ("--cost-model", files.cost_model), ("-o", output))
    return ["import", "libra", *(str(text) for pair in pairs for text in pair)]


def command(*words: str) -> int:
    """Run the command line in this process and give its exit status."""
    with pytest.raises(SystemExit) as caught:
        run(list(words))
    return int(caught.value.code or 0)


@pytest.mark.parametrize(("workload", "network"), COMMUNICATORS, ids=str)
def test_imported_and_shipped_instance_are_the_same_problem(
    write: Write, tmp_path: Path, workload: str, network: str
) -> None:
    """Every workload on both networks, imported by the command line, has the digest, times and prices of the shipped
    one."""
    output = tmp_path / "out.json"
    assert command(*arguments(write(workload, network), output), "--total-bandwidth", "1000 GB/s") == 0
    shipped = load(f"{workload.lower().replace('_', '-')}-{network}")
    imported = load(output)
    assert imported.name == shipped.name
    assert time_model(imported) == time_model(shipped)
    assert imported.cost_model is not None
    assert shipped.cost_model is not None
    assert network_price(imported.fabric, imported.cost_model) == network_price(shipped.fabric, shipped.cost_model)
    assert imported.sha256 == shipped.sha256


@pytest.mark.parametrize(
    ("workload", "shard", "full"), [("GPT_3", 50331648, 805306368), ("MSFT_1T", 6291456, 805306368)]
)
def test_an_all_gather_becomes_a_full_buffer(write: Write, workload: str, shard: int, full: int) -> None:
    """The original's 50,331,648 bytes of TP-16 and 6,291,456 of TP-128 are shards of the same 768 MiB."""
    files = write(workload, "4d")
    assert f"ALLGATHER {shard} " in files.workload.read_text()
    layers = import_libra(files)["workloads"][0]["layers"]
    sizes = {
        communication["size"]
        for layer in layers
        for communication in layer["input_gradient"].get("communication", [])
        if communication["collective"] == "all_gather"
    }
    assert sizes == {f"{full} B"}


def test_three_communicators_become_three_groups(write: Write) -> None:
    """If the passes use different communicators, every phase has its own group."""
    files = write("GPT_3", "4d")
    files.communicator.write_text("Forward: [4, 4, -1, -1]\nInputGrad: [4, 2, -1, -1]\nWeightGrad: [-1, 2, 4, 32]\n")
    workload = import_libra(files)["workloads"][0]
    assert workload["groups"] == {
        "forward": [4, 4, 1, 1],
        "input-gradient": [4, 2, 1, 1],
        "weight-gradient": [1, 2, 4, 32],
    }
    gathered = [c for layer in workload["layers"] for c in layer["input_gradient"].get("communication", [])]
    assert {c["group"] for c in gathered} == {"input-gradient"}
    assert {c["size"] for c in gathered if c["collective"] == "all_gather"} == {f"{50331648 * 8} B"}


def test_without_a_total_the_instance_sets_no_limit(write: Write) -> None:
    """The total bandwidth is the user's: the original's constraints are programs, and are not imported."""
    assert "design" not in import_libra(write("ResNet_50", "3d"))


def test_other_spellings_of_the_format_are_read(write: Write) -> None:
    """Collectives in any case, numbers with exponents, empty lines, CRLF and a byte-order mark change nothing."""
    files = write("GPT_3", "4d")
    plain = import_libra(files)
    text = files.workload.read_text().replace("ALLREDUCE", "AllReduce").replace(" 805306368 ", " 8.05306368e8 ")
    files.workload.write_bytes(b"\xef\xbb\xbf" + text.replace("\n", "\r\n\r\n").encode())
    assert import_libra(files) == plain


def test_a_price_of_npus_is_left_out(write: Write) -> None:
    """The original has a component Npu that no network needs."""
    files = write("GPT_3", "4d")
    plain = import_libra(files)
    files.cost_model.write_text(files.cost_model.read_text().replace("InterNode:", "InterNode:\n  Npu: 5"))
    assert import_libra(files) == plain


@pytest.mark.parametrize(
    ("name", "tier"),
    [
        ("InterChiplet", "inter-chiplet"),
        ("InterPod", "inter-pod"),
        ("Rack_Level", "rack-level"),
        ("optical", "optical"),
    ],
)
def test_classes_of_the_cost_model_become_tiers(name: str, tier: str) -> None:
    """Camel case becomes dashes; other names are kept in lower case."""
    assert to_tier_name(name) == tier


def test_the_file_is_readable(write: Write, tmp_path: Path) -> None:
    """The written JSON is indented, keeps short lists on a line, ends with a newline and has no line over 120
    characters but long texts."""
    output = tmp_path / "out.json"
    assert command(*arguments(write("GPT_3", "4d"), output), "--name", "mine") == 0
    text = output.read_text()
    assert '"groups": {"tp": [4, 4, 1, 1], "dp": [1, 2, 4, 32]}' in text
    assert text.endswith("}\n")
    assert max(map(len, text.splitlines())) <= 120
    assert json.loads(text)["name"] == "mine"


WRONG_NETWORK = [
    ("Topology: [Ring, Torus, Ring, Switch]", "Topology[1]: 'Torus'; expected one of Ring, FullyConnected, Switch"),
    ("Topology: [Ring, FullyConnected, Switch]", "NpusCount: 4 entries; expected 3, as in Topology"),
    ("Topology: Ring", "Topology: 'Ring'; expected a list"),
    ("Topology: [[Ring], Ring, Ring, Switch]", "Topology: [['Ring'], 'Ring', 'Ring', 'Switch']; expected a list"),
    ("NpusCount: [4, 8, 4]", "NpusCount: 3 entries; expected 4, as in Topology"),
    ("NpusCount: [4, 8, 4, many]", "NpusCount[3]: 'many'; expected an integer"),
    ("NpusCount: [4, 8, 4, 3.5]", "NpusCount[3]: '3.5'; expected an integer"),
    ("NpusCount: [4, 8, 4, .nan]", "NpusCount[3]: '.nan'; expected an integer"),
    ("NpusCount: [4, 8, 4, -1]", "NpusCount[3]: -1; expected at least 2 NPUs"),
    ("NpusCount: [4, 8, 4, 1]", "NpusCount[3]: 1; expected at least 2 NPUs"),
    ("CostDimension: [InterPod]", "CostDimension: 1 entries; expected 4, as in Topology"),
    ("Latency: [1, 1, 1, 1]", "Latency: unknown key; expected Topology, NpusCount, CostDimension"),
    ("Topology: null", "Topology: 'null'; expected a list"),
]
WRONG_COMMUNICATOR = [
    ("Forward: [8, 4, -1, -1]", "Forward[0]: a communicator of 8 NPUs is larger than its dimension RI(4)"),
    ("Forward: [3, 4, -1, -1]", "Forward[0]: a communicator of 3 NPUs does not divide its dimension RI(4)"),
    ("Forward: [4, 4, -1]", "Forward: 3 entries; expected 4, as in the network"),
    ("Forward: [4, 4, 0, -1]", "Forward[2]: 0; expected a number of NPUs, or -1 for none"),
    ("Forward: [4, 4, -2, -1]", "Forward[2]: -2; expected a number of NPUs, or -1 for none"),
    ("WeightGrad: [a, 2, 4, 32]", "WeightGrad[0]: 'a'; expected an integer"),
    ("Backward: [4, 4, -1, -1]", "Backward: unknown key; expected Forward, InputGrad, WeightGrad"),
]
WRONG_PRICES = [
    ("InterPod: {Link: 7.8, Switch: 18}", "no price inter-pod.nic, which dimension 4, SW(32), needs"),
    ("InterPod: {Link: -7.8, Switch: 18, Nic: 31.6}", "InterPod.Link: '-7.8'; expected a number"),
    ("InterPod: {Link: .inf, Switch: 18, Nic: 31.6}", "InterPod.Link: '.inf'; expected a number"),
    ("InterPod: {Link: cheap, Switch: 18, Nic: 31.6}", "InterPod.Link: 'cheap'; expected a number"),
    ("InterPod: {Link: [7.8], Switch: 18, Nic: 31.6}", "InterPod.Link: ['7.8']; expected a number"),
    ("InterPod: {Link: 1e99, Switch: 18, Nic: 31.6}", "is too large"),
    ("InterPod: {Cable: 7.8}", "InterPod.Cable: unknown component; expected Link, Switch, Nic"),
    ("InterPod: 7.8", "InterPod: '7.8'; expected prices of Link, Switch, Nic"),
    ("inter_pod: {Link: 1}", "inter_pod: is 'inter-pod', like another class"),
]


def replace_line(text: str, line: str) -> str:
    """Replace the line of a YAML mapping that has the same key, or add it."""
    data = yaml.safe_load(text) | yaml.safe_load(line)
    return yaml.safe_dump(data)


@pytest.mark.parametrize(
    ("part", "line", "reason"),
    [("network", *case) for case in WRONG_NETWORK]
    + [("communicator", *case) for case in WRONG_COMMUNICATOR]
    + [("cost_model", *case) for case in WRONG_PRICES],
)
def test_wrong_yaml_is_told_with_file_key_and_value(write: Write, part: str, line: str, reason: str) -> None:
    """A wrong entry names its file, its key, the value and what was expected."""
    files = write("GPT_3", "4d")
    path: Path = getattr(files, part)
    path.write_text(replace_line(path.read_text(), line))
    with pytest.raises(InputError) as caught:
        import_libra(files)
    assert str(caught.value).startswith(f"{path}: ")
    assert reason in str(caught.value)


@pytest.mark.parametrize("key", ["Topology", "NpusCount", "CostDimension"])
def test_missing_keys_are_told(write: Write, key: str) -> None:
    """A network file without one of its three lists names the one that is missing."""
    files = write("GPT_3", "4d")
    data = {name: value for name, value in NETWORKS["4d"].items() if name != key}
    files.network.write_text(yaml.safe_dump(data))
    with pytest.raises(InputError, match=f"{key}: missing, but required"):
        import_libra(files)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("Q1 -1 1 NONE 0 1 NONE 0 1 NONE 0", "11 columns; expected 12"),
        ("Q1 -1 1 NONE 0 1 NONE 0 1 NONE 0 10 10", "13 columns; expected 12"),
        ("18", "1 columns; expected 12"),
        ("Q1 -1 1 BROADCAST 5 1 NONE 0 1 NONE 0 10", "column 4: 'BROADCAST' is no collective; expected one of NONE"),
        ("Q1 -1 1 NONE 0 1 ALL-REDUCE 0 1 NONE 0 10", "column 7: 'ALL-REDUCE' is no collective"),
        ("Q1 -1 fast NONE 0 1 NONE 0 1 NONE 0 10", "column 3: 'fast'; expected a number that is not negative"),
        ("Q1 -1 1 NONE 0 -1 NONE 0 1 NONE 0 10", "column 6: '-1'; expected a number that is not negative"),
        ("Q1 -1 1 NONE 0 1 NONE 0 nan NONE 0 10", "column 9: 'nan'; expected a number"),
        ("Q1 -1 1 NONE 0 1 NONE 0 inf NONE 0 10", "column 9: 'inf'; expected a number"),
        ("Q1 -1 1 ALLREDUCE -5 1 NONE 0 1 NONE 0 10", "column 5: '-5'; expected a number"),
        ("Q1 -1 1 ALLREDUCE 0.5 1 NONE 0 1 NONE 0 10", "column 5: '0.5'; expected a whole number of bytes"),
        ("Q1 -1 1 ALLREDUCE 1e999 1 NONE 0 1 NONE 0 10", "column 5: '1e999'; expected a number"),
        ("Q" * 201 + " -1 1 NONE 0 1 NONE 0 1 NONE 0 10", "at most 200 characters"),
    ],
)
def test_wrong_workload_lines_are_told_with_line_and_column(write: Write, line: str, reason: str) -> None:
    """A wrong line names its file, its number, the column, the value and what was expected."""
    files = write("GPT_3", "4d")
    lines = files.workload.read_text().splitlines()
    files.workload.write_text("\n".join([*lines[:2], line, *lines[2:]]))
    with pytest.raises(InputError) as caught:
        import_libra(files)
    assert str(caught.value).startswith(f"{files.workload}: line 3")
    assert reason in str(caught.value)


@pytest.mark.parametrize(
    ("part", "content", "reason"),
    [
        ("workload", b"", "0 layers; expected 1 to 100,000"),
        ("workload", b"\xff\xfe", "not UTF-8 text at byte 0"),
        ("network", b"", "expected a YAML mapping"),
        ("network", b"- Ring", "expected a YAML mapping"),
        ("network", b"Topology: [Ring", "not YAML: "),
        ("network", b"Topology: [Ring]\n---\nTopology: [Ring]", "not YAML: but found another document"),
        ("network", b"Topology: [Ring]\nTopology: [Switch]", "line 2: key 'Topology' is given twice"),
        ("network", b"? [a]\n: 1", "line 1: a key is not a text"),
        ("network", b"a: &x [1, 2]\nb: [*x, *x, *x]", "line 2: an alias; expected plain data"),
        ("network", b"a: \x00", "not YAML: "),
        ("network", b"\xff", "not UTF-8 text"),
        ("network", b"[" * 5000, "nested too deeply"),
        ("network", b"a: !!python/object/apply:os.system [echo]\n", "a: unknown key"),
        ("network", b" " * 70_000, "70,000 bytes; expected at most 65,536"),
    ],
)
def test_files_that_are_no_such_text_are_refused(write: Write, part: str, content: bytes, reason: str) -> None:
    """Broken, hostile and far too large files are told in one line, and nothing in them is run."""
    files = write("GPT_3", "4d")
    path: Path = getattr(files, part)
    path.write_bytes(content if b"!!python" not in content else path.read_bytes() + content)
    with pytest.raises(InputError) as caught:
        import_libra(files)
    assert str(caught.value).startswith(f"{path}: ")
    assert reason in str(caught.value)


@pytest.mark.parametrize("part", ["network", "workload", "communicator", "cost_model"])
def test_missing_files_huge_files_and_folders_are_refused(write: Write, part: str, tmp_path: Path) -> None:
    """None of the four files may be missing, a folder, or a gigabyte, which is refused before it is read."""
    files = write("GPT_3", "4d")
    path: Path = getattr(files, part)
    path.unlink()
    with pytest.raises(InputError, match="no such file or directory"):
        import_libra(files)
    with path.open("wb") as stream:
        stream.truncate(10**9)
    with pytest.raises(InputError, match="1,000,000,000 bytes; expected at most"):
        import_libra(files)
    path.unlink()
    path.mkdir()
    with pytest.raises(InputError, match="is a directory"):
        import_libra(files)


@pytest.mark.parametrize("total", ["1000", "-1 GB/s", "1000 GB", "0 GB/s"])
def test_a_wrong_total_is_refused(write: Write, total: str) -> None:
    """The total bandwidth is a quantity with a unit."""
    with pytest.raises(InputError, match=r"--total-bandwidth: .*expected a bandwidth with its unit"):
        import_libra(write("GPT_3", "4d"), total_bandwidth=total)


def test_a_failed_import_writes_nothing(write: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One line on stderr, nothing on stdout, status 2, and no file, half a file or temporary file."""
    files = write("GPT_3", "4d")
    files.workload.write_text("Q1 -1 1\n")
    before = sorted(tmp_path.iterdir())
    assert command(*arguments(files, tmp_path / "out.json")) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == f"cwb: error: {files.workload}: line 1: 3 columns; expected 12, as in ASTRA-sim 1.0\n"
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize("output", ["missing/out.json", "."])
def test_an_output_that_cannot_be_written_is_refused(
    write: Write, tmp_path: Path, output: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A missing folder and a folder are refused with status 2, and nothing is left behind."""
    files = write("GPT_3", "4d")
    before = sorted(tmp_path.rglob("*"))
    assert command(*arguments(files, tmp_path / output)) == 2
    captured = capsys.readouterr()
    assert (captured.out, captured.err.count("\n")) == ("", 1)
    assert sorted(tmp_path.rglob("*")) == before


def test_an_existing_file_is_replaced_whole_or_kept(write: Write, tmp_path: Path) -> None:
    """With --force a file of others is replaced, and then a second import does; a failing one keeps what was there."""
    output = tmp_path / "out.json"
    files = write("GPT_3", "4d")
    output.write_text("old")
    assert command(*arguments(files, output)) == 2
    assert command(*arguments(files, output), "--force") == 0
    assert command(*arguments(files, output)) == 0
    good = output.read_text()
    files.network.write_text("Topology: [Ring]")
    assert command(*arguments(files, output)) == 2
    assert output.read_text() == good
