"""Bad input: one line on stderr, the documented exit status, nothing on stdout, no traceback, nothing left behind."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from cwb.cli.main import run

#: Right, and small; every case below changes one thing.
INSTANCE: dict[str, Any] = {
    "network": {"dimensions": "RI(4)_FC(8)_SW(32)", "npus": 1024},
    "workloads": [{"use": "gpt-3", "groups": {"tp": [4, 4, 1], "dp": [1, 2, 32]}}],
    "cost_model": {
        "inter-package": {"link": "4 USD/(GB/s)"},
        "inter-node": {"link": "4 USD/(GB/s)"},
        "inter-pod": {"link": "7.8 USD/(GB/s)", "switch": "18 USD/(GB/s)", "nic": "31.6 USD/(GB/s)"},
    },
    "design": {"objective": "perf", "total_bandwidth": "1000 GB/s"},
}
ILL_POSED = "perf-per-cost with only an upper limit on bandwidth is ill-posed (the optimum tends to zero bandwidth)"


@dataclass(frozen=True)
class Result:
    """The outcome of a command: exit status, and the lines of both streams."""

    status: int
    out: list[str]
    err: list[str]


Run = Callable[..., Result]


@pytest.fixture
def cwb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command in this process, in an empty folder that must look the same afterwards."""
    monkeypatch.chdir(tmp_path)

    def command(*words: str) -> Result:
        before = {path: path.stat().st_size for path in tmp_path.rglob("*")}
        with pytest.raises(SystemExit) as caught:
            run(list(words))
        captured = capsys.readouterr()
        assert {path: path.stat().st_size for path in tmp_path.rglob("*")} == before
        return Result(int(caught.value.code or 0), captured.out.splitlines(), captured.err.splitlines())

    return command


def check_refusal(result: Result, reason: str, status: int = 2) -> None:
    """Check that a command was refused as documented: the reason in one line, and nothing else."""
    assert result.err, "nothing on stderr"
    assert result.err[0].startswith("cwb: ")
    assert reason in result.err[0]
    assert len(result.err) == 1
    assert result.out == []
    assert result.status == status


def change_value(path: str, value: Any) -> dict[str, Any]:
    """Right instance with the value at a dotted path replaced, or deleted if it is Ellipsis."""
    copy = json.loads(json.dumps(INSTANCE))
    *parents, last = [int(step) if step.isdigit() else step for step in path.split("/")]
    target: Any = copy
    for step in parents:
        target = target[step]
    if value is ...:
        del target[last]
    else:
        target[last] = value
    return copy


def solve(cwb: Run, data: Any, *words: str) -> Result:
    """Solve an instance given as data."""
    Path("bad.json").write_text(data if isinstance(data, str) else json.dumps(data))
    return cwb("solve", "--model", "libra", "bad.json", *words)


#: Place in the file, wrong value, place in the message, reason.
WRONG = [
    ("network/dimensions", "RI(4)_XX(8)_SW(32)", "network.dimensions", "dimension 2 is 'XX(8)'; expected RI(n), FC(n)"),
    ("network", "RI(4)_XX(8)", "network", "dimension 2 is 'XX(8)'"),
    ("network/npus", 4096, "network.npus", "4,096 NPUs, but RI(4)_FC(8)_SW(32) multiplies to 1,024"),
    ("network/npus", "1024", "network.npus", "'1024' is wrong; input should be a valid integer"),
    ("network/tiers", ["a", "b"], "network.dimensions", "2 tiers for 3 dimensions"),
    ("network/in_network", [True, False, False], "network.in_network[0]", "RI(4) has no switch that could reduce"),
    ("network/dimension", "RI(4)", "network.dimension", "unknown field"),
    ("netwrok", "RI(4)", "netwrok", "unknown field"),
    ("network", ..., "network", "missing, but required"),
    (
        "workloads/0/groups",
        {"tp": 16, "dp": 16},
        "workloads[0].groups",
        "tp=16 x dp=16 is 256 NPUs; RI(4)_FC(8)_SW(32)",
    ),
    ("workloads/0/groups", {"tp": 16, "dp": [1, 2, 32]}, "workloads[0].groups", "either degrees or spans"),
    (
        "workloads/0/groups/tp",
        [8, 4, 1],
        "workloads[0].groups.tp[0]",
        "communicator of 8 NPUs is larger than its dimension",
    ),
    ("workloads/0/groups/tp", [3, 4, 1], "workloads[0].groups.tp[0]", "of 3 NPUs does not divide its dimension RI(4)"),
    ("workloads/0/groups/tp", [4, 4], "workloads[0].groups.tp", "has 2 entries; expected one for each of the 3"),
    ("workloads/0/groups/tp", [4, -4, 1], "workloads[0].groups.tp[1]", "-4 is wrong; input should be greater"),
    ("workloads/0/groups/tp", ..., "workloads[0].layers[0]", "layer 'Q1' names group 'tp'; the groups are dp"),
    ("workloads/0/use", "gpt-5", "workloads[0].use", "unknown workload 'gpt-5'; expected a *.json file or one of d"),
    ("workloads/0/use", "w.json", "workloads[0].use", "no such file 'w.json'"),
    (
        "workloads/0/layers",
        [{"name": "x"}],
        "workloads[0]",
        "expected one of use, layers and transformer, not use and layers",
    ),
    ("workloads/0/weight", -1, "workloads[0].weight", "-1 is wrong"),
    (
        "workloads/0/loop",
        "fast",
        "workloads[0].loop",
        "'fast' is wrong; input should be 'no-overlap' or 'tp-dp-overlap'",
    ),
    ("cost_model/inter-pod/nic", ..., "cost_model", "no price inter-pod.nic, which dimension 3, SW(32), needs"),
    ("cost_model/inter-node", ..., "cost_model", "no price inter-node.link, which dimension 2, FC(8), needs"),
    ("cost_model/inter-pod/link", 7.8, "cost_model.inter-pod.link", "7.8 has no unit; expected a price of bandwidth"),
    ("cost_model/inter-pod/link", "-7.8 USD/(GB/s)", "cost_model.inter-pod.link", "must not be negative"),
    (
        "design/total_bandwidth",
        "1000",
        "design.total_bandwidth",
        "'1000' has no unit; expected a bandwidth with its unit",
    ),
    ("design/total_bandwidth", 1000, "design.total_bandwidth", "1000 has no unit; expected a bandwidth with its unit"),
    ("design/total_bandwidth", "-1000 GB/s", "design.total_bandwidth", "'-1000 GB/s' must not be negative"),
    ("design/total_bandwidth", "0 GB/s", "design.total_bandwidth", "must be greater than zero"),
    ("design/total_bandwidth", "NaN GB/s", "design.total_bandwidth", "'NaN GB/s' is not a quantity"),
    ("design/total_bandwidth", "Infinity GB/s", "design.total_bandwidth", "'Infinity GB/s' is not a quantity"),
    ("design/total_bandwidth", "1e999 GB/s", "design.total_bandwidth", "'1e999 GB/s' is too large"),
    ("design/total_bandwidth", "1000 GB", "design.total_bandwidth", "unknown unit 'GB'"),
    ("design/objective", "speed", "design.objective", "'speed' is wrong; input should be 'perf' or 'perf-per-cost'"),
    (
        "design/constraints",
        ["B1 >= B2", "B4 <= 5 GB/s"],
        "design.constraints[1]",
        "names B4, but the network has 3 dimensions",
    ),
    ("design/constraints", ["B1 <= 5"], "design.constraints[0]", "'5' has no unit"),
    ("design/constraints", "B1 >= B2", "design.constraints", "is wrong; input should be a valid list"),
    ("design/cost_budget", "5 GB/s", "design.cost_budget", "unknown unit 'GB/s'; expected an amount of money"),
]


@pytest.mark.parametrize("json_flag", [(), ("--json",)], ids=["text", "json"])
@pytest.mark.parametrize(
    ("path", "value", "place", "reason"), WRONG, ids=[f"{case[0]}={str(case[1])[:30]}" for case in WRONG]
)
def test_a_wrong_file_names_file_place_value_and_expectation(
    cwb: Run, path: str, value: object, place: str, reason: str, json_flag: tuple[str, ...]
) -> None:
    """Whatever is wrong in a file, the line begins with the file and the JSON path, and says the value and what was
    expected."""
    result = solve(cwb, change_value(path, value), *json_flag)
    check_refusal(result, reason)
    assert result.err[0].startswith(f"cwb: error: bad.json: {place}")


#: Numbers that JSON itself does not allow, or that are none for a computer, where quantities and numbers are expected.
NUMBERS = [
    ("NaN", "NaN is not a number that JSON allows"),
    ("Infinity", "Infinity is not a number that JSON allows"),
    ("-Infinity", "-Infinity is not a number that JSON allows"),
    ("1e999", "inf is wrong; input should be a finite number"),
    ("-1", "-1 is wrong"),
    ("0", "0 is wrong"),
    ("9" * 5000, "an integer of 5,000 digits"),
]


@pytest.mark.parametrize(("number", "reason"), NUMBERS, ids=[number[:9] for number, _ in NUMBERS])
def test_numbers_that_are_none_are_refused(cwb: Run, number: str, reason: str) -> None:
    """NaN, infinities and numbers beyond a float are refused where a number may stand; ``refused`` asserts it."""
    text = json.dumps(change_value("workloads/0/weight", "@")).replace('"@"', number)
    check_refusal(solve(cwb, text), reason)


@pytest.mark.parametrize("number", ["1e999", "1e400", "-5", "0", "true"])
def test_bare_numbers_are_no_quantities(cwb: Run, number: str) -> None:
    """A number without a unit is refused, however large; ``refused`` asserts it."""
    text = json.dumps(change_value("design/total_bandwidth", "@")).replace('"@"', number)
    check_refusal(solve(cwb, text), "has no unit; expected a bandwidth with its unit, such as '50 GB/s'")


BROKEN = [
    (json.dumps(INSTANCE)[:200].encode(), "line 1, column"),
    (b"", "line 1, column 1: not JSON"),
    (b'{"network": "RI(4)\xff"}', "not JSON: not UTF-8 text"),
    (b"[" * 200_000, "nested too deeply"),
    (b'{"network": "RI(4)", "network": "RI(8)"}', "key 'network' is given twice in one object"),
    (b"[]", "[] is wrong; expected an object"),
    (b"null", "None is wrong; expected an object"),
    (b"\x00" * 100, "not JSON"),
]


@pytest.mark.parametrize(("content", "reason"), BROKEN, ids=[reason for _, reason in BROKEN])
def test_broken_files_are_refused(cwb: Run, content: bytes, reason: str) -> None:
    """A file that is cut, undecodable, too deep, ambiguous or not an object at all is one line with the file's name."""
    Path("bad.json").write_bytes(content)
    result = cwb("solve", "-m", "libra", "bad.json")
    check_refusal(result, reason)
    assert result.err[0].startswith("cwb: error: bad.json: ")


def test_a_file_of_a_gigabyte_is_refused_before_it_is_read(cwb: Run) -> None:
    """A sparse file of 1 GB is refused by its size alone; ``refused`` asserts it."""
    with Path("huge.json").open("wb") as stream:
        stream.truncate(10**9)
    check_refusal(cwb("solve", "-m", "libra", "huge.json"), "huge.json: 1,000,000,000 bytes; expected at most")


def test_folders_and_missing_files_are_refused(cwb: Run, tmp_path: Path) -> None:
    """A folder is no instance, nor is a file that is not there; ``refused`` asserts it."""
    (tmp_path / "folder.json").mkdir()
    check_refusal(cwb("solve", "-m", "libra", "folder.json"), "folder.json: is a directory; expected a JSON file")
    check_refusal(cwb("solve", "-m", "libra", "missing.json"), "missing.json: no such file or directory")
    check_refusal(cwb("show", "missing.json"), "missing.json: no such file or directory")


def test_an_unreadable_file_is_refused(cwb: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file without the right to read it is told as such; the refusal is made here, since root may read every file.

    ``refused`` asserts it.
    """

    def refuse(*arguments: object) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    Path("secret.json").write_text("{}")
    monkeypatch.setattr(Path, "open", refuse)
    check_refusal(cwb("solve", "-m", "libra", "secret.json"), "secret.json: permission denied")


def test_a_path_through_a_file_is_refused(cwb: Run) -> None:
    """A path that treats a file as a folder is told as such; ``refused`` asserts it."""
    Path("x.json").write_text("{}")
    check_refusal(cwb("solve", "-m", "libra", "x.json/y.json"), "x.json/y.json")


OPTIONS = [
    (("-m", "lbra", "4d"), "unknown model 'lbra'; expected one of libra"),
    (("-m", "libra", "4d", "-s", "cplex"), "unknown solver 'cplex'"),
    (("-m", "libra", "4d", "-O", "speed=1"), "speed: unknown field (value '1')"),
    (("-m", "libra", "4d", "-O", "objective=speed"), "objective: 'speed' is wrong; input should be 'perf'"),
    (("-m", "libra", "4d", "-O", "objective"), "'objective' is no pair; expected name=value"),
    (("-m", "libra", "4d", "-O", "gap=1", "-O", "gap=2"), "'gap' is given twice"),
    (("-m", "libra", "4d", "-O", "gap=nan"), "gap: 'nan' is wrong"),
    (("-m", "libra", "4d", "-O", "gap=1e999"), "gap: '1e999' is wrong"),
    (("-m", "libra", "4d", "-O", "total_bandwidth=500"), "total_bandwidth: '500' has no unit"),
    (("-m", "libra", "4d", "-O", "total_bandwidth=-5 GB/s"), "total_bandwidth: '-5 GB/s' must not be negative"),
    (("-m", "libra", "4d", "-O", "max_total_bandwidth=1e999 GB/s"), "max_total_bandwidth: '1e999 GB/s' is too large"),
    (("-m", "libra", "4d", "-O", "constraints=[1"), "constraints: '[1' is not a JSON list"),
    (("-m", "libra", "4d", "-O", "constraints=B1"), "constraint 'B1' has no <=, >= or ="),
    (("-m", "libra", "3d", "-O", "constraints=B4 <= 5 GB/s"), "names B4, but the network has 3 dimensions"),
    (
        ("-m", "libra", "4d", "-O", "total_bandwidth=5 GB/s", "-O", "max_total_bandwidth=5 GB/s"),
        "give total_bandwidth (exactly) or max_total_bandwidth (at most), not both",
    ),
    (("-m", "libra", "4d", "--time-limit", "soon"), "--time-limit: 'soon' is not a quantity"),
    (("-m", "libra", "4d", "--time-limit", "-1"), "--time-limit"),
    (("-m", "libra", "4d", "--gap", "2"), "--gap"),
    (("-m", "libra", "4d", "--threads", "0"), "--threads"),
    (("-m", "libra", "4d", "--seed", "x"), "--seed"),
    (("-m", "libra", "4d", "--no-such-option"), "--no-such-option: no such option"),
    (("-m", "libra"), "INSTANCE: missing; expected a file, the name of a shipped instance"),
    (("4d",), "expected either --model or --formulation"),
    (("-m", "libra", "4dd"), "my.json or torus(8,8); did you mean '4d'?"),
    (("-m", "libra", "RI(4)_XX(8)"), "dimension 2 is 'XX(8)'"),
    (("-m", "libra", "tours(4,4)"), "did you mean 'torus'?"),
    (("-m", "libra", "4d", "-o", "missing/x.json"), "missing/x.json: its folder does not exist"),
    (("-m", "libra", "4d", "--append", "missing/x.jsonl"), "missing/x.jsonl: its folder does not exist"),
    (("-m", "libra", "4d", "-o", "."), "is a directory"),
]


@pytest.mark.parametrize("json_flag", [(), ("--json",)], ids=["text", "json"])
@pytest.mark.parametrize(("words", "reason"), OPTIONS, ids=[" ".join(words) for words, _ in OPTIONS])
def test_wrong_words_on_the_command_line_are_refused(
    cwb: Run, words: tuple[str, ...], reason: str, json_flag: tuple[str, ...]
) -> None:
    """Unknown models, solvers, options and values, and outputs that cannot be written, are refused before anything
    runs.

    ``refused`` asserts it.
    """
    check_refusal(cwb("solve", *words, *json_flag), reason)


@pytest.mark.parametrize("model", ["libra", "libra-equal"])
@pytest.mark.parametrize(
    "limits",
    [
        ("total_bandwidth=none", "max_total_bandwidth=500 GB/s"),
        ("total_bandwidth=none", "cost_budget=1e6 USD"),
        ("total_bandwidth=none", "constraints=B1 <= 5 GB/s; B1 >= B2"),
        ("total_bandwidth=none",),
    ],
    ids=["total", "budget", "constraints", "none"],
)
def test_perf_per_cost_needs_more_than_an_upper_limit(cwb: Run, model: str, limits: tuple[str, ...]) -> None:
    """If zero bandwidth is allowed, perf-per-cost is refused with the reason.

    ``refused`` asserts it.
    """
    if "max_total_bandwidth=500 GB/s" in limits:
        limits = ("max_total_bandwidth=500 GB/s",)  # which replaces the exact total
    words = [word for limit in limits for word in ("-O", limit)]
    check_refusal(cwb("solve", "-m", model, "4d", "-O", "objective=perf-per-cost", *words), ILL_POSED)


def test_perf_needs_a_limit(cwb: Run) -> None:
    """Without any limit the iteration time has no smallest value, and the line says what to give.

    ``refused`` asserts it.
    """
    check_refusal(cwb("solve", "-m", "libra", "4d", "-O", "total_bandwidth=none"), "give a total or a cost budget")


def test_perf_per_cost_needs_prices(cwb: Run) -> None:
    """Without prices there is no cost to divide by; ``refused`` asserts it."""
    check_refusal(
        solve(cwb, change_value("cost_model", ...), "-O", "objective=perf-per-cost"), "perf-per-cost needs prices"
    )
    check_refusal(
        solve(cwb, change_value("cost_model", ...), "-O", "cost_budget=5 USD"), "a cost budget needs a cost model"
    )


CLASHES = [
    (
        ["B1 >= 600 GB/s", "B2 >= 600 GB/s", "B3 <= 10 GB/s", "B1 >= B3"],
        ["total bandwidth = 1000 GB/s", "B1 >= 600 GB/s", "B2 >= 600 GB/s"],
    ),
    (["B1 <= 5 GB/s", "B1 >= 6 GB/s", "B2 >= B3"], ["B1 <= 5 GB/s", "B1 >= 6 GB/s"]),
    (
        ["B1 >= 2 B2", "B2 >= 2 B3", "B3 >= B1", "B3 >= 1 GB/s"],
        ["B1 >= 2 B2", "B2 >= 2 B3", "B3 >= B1", "B3 >= 1 GB/s"],
    ),
    (["B1 + B2 + B3 <= 999 GB/s"], ["total bandwidth = 1000 GB/s", "B1 + B2 + B3 <= 999 GB/s"]),
]


@pytest.mark.parametrize(("constraints", "clash"), CLASHES, ids=[case[0][0] for case in CLASHES])
@pytest.mark.parametrize("by", ["file", "option"])
def test_contradictory_constraints_are_named_exactly(
    cwb: Run, constraints: list[str], clash: list[str], by: str
) -> None:
    """Infeasible is exit status 3, and the line names those constraints that clash and no other one."""
    if by == "file":
        result = solve(cwb, change_value("design/constraints", constraints), "--json")
    else:
        result = solve(cwb, INSTANCE, "-O", f"constraints={'; '.join(constraints)}", "--json")
    assert result.status == 3
    assert result.err == [f"cwb: infeasible: no bandwidths meet all of: {', '.join(repr(label) for label in clash)}"]
    (line,) = result.out
    record = json.loads(line)
    assert (record["status"], record["exit_status"], record["answer"]) == ("infeasible", 3, None)
    assert record["message"] in result.err[0]


def test_a_dimension_without_bandwidth_is_infeasible(cwb: Run) -> None:
    """A dimension with traffic that the constraints leave without bandwidth is named with them."""
    result = solve(cwb, change_value("design/constraints", ["B2 <= 0"]), "--json")
    assert (result.status, len(result.err), len(result.out)) == (3, 1, 1)
    assert "dimension 2 carries traffic" in result.err[0]
    assert "'B2 <= 0'" in result.err[0]


UNSUPPORTED = [
    ("libra", "torus(4,4)", "libra: the instance has no workload to design a network for"),
    ("libra-equal", "mesh(4,4)", "not explicit graphs"),
    ("libra", "RI(4)_SW(8)", "libra: the instance has no workload to design a network for"),
    ("libra-codesign", "4d", "only if every workload is described as a transformer"),
]


@pytest.mark.parametrize(("model", "instance", "reason"), UNSUPPORTED)
def test_what_is_unsupported_says_why(cwb: Run, model: str, instance: str, reason: str) -> None:
    """A method that does not support the instance exits with 7 and its reason; with --json there is one record."""
    result = cwb("solve", "-m", model, instance, "--json")
    assert result.status == 7
    assert len(result.err) == 1
    assert result.err[0].startswith("cwb: unsupported: ")
    assert reason in result.err[0]
    (line,) = result.out
    assert json.loads(line)["status"] == "unsupported"


@pytest.mark.parametrize(
    "words",
    [
        ("frobnicate",),
        ("list",),
        ("list", "nothing"),
        ("import",),
        ("import", "taccl"),
        ("import", "libra"),
        ("export",),
    ],
    ids=" ".join,
)
def test_wrong_commands_are_refused(cwb: Run, words: tuple[str, ...]) -> None:
    """An unknown or incomplete command is one line that says where to find help; ``refused`` asserts it."""
    result = cwb(*words)
    check_refusal(result, "--help')")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "status", "reason"),
    [
        (("solve", "-m", "libra", "bad.json", "--json"), 2, "bad.json: line 1, column 2: not JSON"),
        pytest.param(
            ("solve", "-m", "libra", "torus(4,4)"), 7, "no workload to design a network for", marks=pytest.mark.nightly
        ),
        pytest.param(
            ("solve", "-m", "libra", "4d", "-O", "constraints=B1 >= 600 GB/s; B2 >= 600 GB/s"),
            3,
            "'B2 >= 600 GB/s'",
            marks=pytest.mark.nightly,
        ),
    ],
    ids=["bad input", "unsupported", "infeasible"],
)
def test_a_real_process_does_the_same(tmp_path: Path, words: tuple[str, ...], status: int, reason: str) -> None:
    """The installed program gives the status to the shell, one line and no traceback."""
    (tmp_path / "bad.json").write_text("{")
    done = subprocess.run(
        [sys.executable, "-m", "cwb", *words], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == status, done.stderr
    assert done.stderr.startswith("cwb: ")
    assert reason in done.stderr
    assert done.stderr.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["bad.json"]


@pytest.mark.parametrize(
    "words",
    [
        ("show", "torus(160,160)"),
        ("formulate", "mcf/flow", "torus(160,160)", "--collective", "all_to_all"),
        ("solve", "-qm", "ring", "torus(160,160)", "--collective", "all_reduce"),
    ],
)
def test_commands_give_up_in_time(cwb: Run, words: tuple[str, ...]) -> None:
    """A large network that cannot be made in the time that is given is one line and exit status 4."""
    result = cwb(*words, "--time-limit", "1 ns")
    assert result.status == 4
    assert len(result.err) == 1
    assert "the time limit of 1e-09 s ran out" in result.err[0]
    assert words[0] == "solve" or not result.out


def test_options_of_a_solver_are_refused_where_there_is_none(cwb: Run) -> None:
    """A method that calls no solver takes none of its options."""
    check_refusal(
        cwb("solve", "-qm", "ring", "ring(4)", "--collective", "all_reduce", "-S", "presolve=off"), "uses no solver"
    )
