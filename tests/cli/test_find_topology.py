"""``cwb find-topology``: the published table, files that are checked again, plots, and bad input."""

from __future__ import annotations

import csv
import json
from fractions import Fraction
from pathlib import Path

import pytest
from click.testing import CliRunner
from cwb.cli.find_topology import _job, find_topology
from cwb.core.errors import InputError
from cwb.instances import load
from cwb.schedules.files import read_schedule
from cwb.schedules.verify import verify

pytestmark = pytest.mark.slow  # searches of large networks


def _run(*arguments):
    result = CliRunner().invoke(find_topology, arguments, catch_exceptions=False)
    assert result.exit_code in (0, 5)
    return result


def _found_networks(*arguments):
    return json.loads(_run(*arguments, "--json").stdout)


def test_table_4():
    """The frontier of 1,024 nodes of degree 4 has the published values and times; where a rate is told, it is the
    published one."""
    found = _found_networks("--nodes", "1024", "--degree", "4", "--no-circulants", "--no-schedule")
    with (Path(__file__).parents[1] / "reference" / "direct_connect.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["table"] == "4"]
    assert [row["T_L"] for row in found["frontier"]] == [int(row["T_L"]) for row in rows]
    for mine, row in zip(found["frontier"], rows, strict=True):
        assert Fraction(mine["T_B"]) == Fraction(row["T_B"])
        assert f"{mine['all_reduce_s'] * 1e6:.1f}" == row["all_reduce_us"]
        assert mine["diameter"] == int(row["diameter"])
        assert mine["all_to_all_rate_limit"] >= float(row["all_to_all"])
        if mine["all_to_all_rate"] is not None:
            assert f"{mine['all_to_all_rate']:.2e}" == f"{float(row['all_to_all']):.2e}"
            assert f"{mine['all_to_all_s'] * 1e6:.1f}" == row["all_to_all_us"]
    assert found["frontier"][-1]["all_to_all_rate"] is not None
    assert found["best"] == found["frontier"][1]["topology"]


@pytest.mark.parametrize(
    ("nodes", "rates"),
    [
        (32, ["5.71e-02", "5.26e-02"]),
        (64, ["2.17e-02", "2.21e-02", "1.87e-02"]),
        pytest.param(128, ["9.89e-03", "9.26e-03", "5.21e-03"], marks=pytest.mark.slow),
    ],
)
def test_all_to_all_rates(nodes, rates):
    """LP (3) gives the rates of table 7."""
    found = _found_networks(
        "--nodes", str(nodes), "--degree", "4", "--no-circulants", "--no-schedule", "--all-to-all-limit", "600"
    )
    assert [f"{row['all_to_all_rate']:.2e}" for row in found["frontier"]] == rates


def test_several_sizes_and_all_to_alls_choose_the_network():
    """Sizes count by their weights, and with all-to-alls alone the network with the highest rate is chosen."""
    options = ("--nodes", "64", "--degree", "4", "--no-circulants", "--no-schedule")
    found = _found_networks(*options, "--size", "1 KiB:3", "--size", "5 KiB", "--all-to-all-share", "1")
    assert (found["size_bytes"], found["all_to_all_share"]) == ("2048", "1")
    assert found["sizes"] == [{"size_bytes": "1024", "weight": "3"}, {"size_bytes": "5120", "weight": "1"}]
    assert "of 1 KiB (75 %), 5 KiB (25 %), alpha" in _job(found)
    best = max(found["frontier"], key=lambda row: row["all_to_all_rate"])
    assert (best["best"], best["average_s"]) == (True, pytest.approx(best["all_to_all_s"]))
    half = _found_networks(*options, "--size", "2 KiB", "--all-to-all-share", "1/2", "--all-to-all-limit", "0")
    first = half["frontier"][0]
    limit_s = 2048 / 64 / (100e9 / 8 / 4) / first["all_to_all_rate_limit"]
    assert first["average_s"] == pytest.approx((first["all_reduce_s"] + limit_s) / 2)


def test_files_can_be_used(tmp_path):
    """The network is an instance file, and the schedule one of that instance that the verifier finds right."""
    network, schedule = tmp_path / "best.json", tmp_path / "schedule.json.gz"
    found = _found_networks(
        "--nodes", "32", "--degree", "4", "-o", str(network), "--schedule", str(schedule), "--collective", "all_gather"
    )
    assert found["schedule"]["verified"]
    assert found["schedule"]["steps"] == 3
    instance = load(network)
    read = read_schedule(schedule)
    assert read.instance.sha256 == instance.sha256
    assert not verify(read.instance, read.answer).violations
    assert instance.network.links[0].bandwidth_Bps * 4 == Fraction(10**11, 8)


def test_table_and_picture(tmp_path):
    """The table shows names, fractions, times and what is best; the plot is written."""
    plot = tmp_path / "pareto.svg"
    shown = _run("--nodes", "32", "--degree", "4", "--plot", str(plot), "--all-to-all-limit", "0").stdout
    for text in (
        "L(complete_bipartite(4, 4)) *",
        "31/32",
        "227.8",
        "lower bound",
        "all_reduce: 6 steps",
        "verified",
        "<=",
    ):
        assert text in shown
    assert plot.read_bytes().startswith(b"<?xml")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--nodes", "4", "--degree", "4"], "--nodes: 4 nodes are too few for degree 4; expected at least 5"),
        (["--nodes", "7", "--degree", "3", "--bidirectional"], "an odd number of nodes of odd degree cannot be paired"),
        (["--nodes", "8", "--degree", "2", "--alpha", "3"], "--alpha: '3' has no unit"),
        (["--nodes", "8", "--degree", "2", "--size", "0 B"], "--size: '0 B' must be greater than zero"),
        (["--nodes", "8", "--degree", "2", "--bandwidth", "1 us"], "--bandwidth: '1 us' has an unknown unit 'us'"),
        (
            ["--nodes", "8", "--degree", "2", "-o", "/no/such/folder/x.json"],
            "/no/such/folder/x.json: its folder does not exist",
        ),
        (["--nodes", "8", "--degree", "2", "--plot", "x.jpg"], "x.jpg"),
        (["--nodes", "8", "--degree", "2", "--no-schedule", "--schedule", "x.json"], "there is no schedule to write"),
        (("--nodes", "8", "--degree", "2", "--size", "1 MiB:x"), "'x'; expected a number at least 0"),
        (
            ("--nodes", "8", "--degree", "2", "--size", "1 MiB:1e999999999"),
            "'1e999999999'; expected a number at least 0",
        ),
        (("--nodes", "8", "--degree", "2", "--size", "1 MiB:0"), "the weights of all sizes are 0"),
        (("--nodes", "8", "--degree", "2", "--all-to-all-share", "2"), "'2'; expected a number from 0 to 1"),
    ],
)
def test_bad_input(arguments, message):
    """Every mistake is one line that says what was given and what was expected."""
    with pytest.raises(InputError) as caught:
        CliRunner().invoke(find_topology, arguments, catch_exceptions=False)
    assert message in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


def test_networks_are_shown_without_a_schedule_where_time_is_up(monkeypatch, tmp_path):
    """Networks found in time are printed and written; a schedule that would take too long is reported as missing."""
    monkeypatch.setattr("cwb.core.budget.SEND_S", 1e9)
    words = ["--nodes", "16", "--degree", "4", "--time-limit", "1 h", "-o", str(tmp_path / "n.json")]
    result = CliRunner().invoke(find_topology, words, catch_exceptions=False, standalone_mode=False)
    assert result.return_value == 4
    assert "lower bound" in result.stdout
    assert result.stderr.endswith(" are left; there is no schedule\n")
    assert load(str(tmp_path / "n.json")).npus == 16


@pytest.mark.parametrize("degree", [3, 7])
def test_a_part_of_the_bandwidth_that_is_no_decimal_is_written_exactly(tmp_path, degree):
    """A third and a seventh of a node's bandwidth are in the instance file as fractions, and the schedule is one of
    that file."""
    network, schedule = tmp_path / "x.json", tmp_path / "s.json"
    arguments = ("--nodes", str(degree + 4), "--degree", str(degree), "--alpha", "1/3 us", "--no-circulants")
    assert _found_networks(*arguments, "-o", str(network), "--schedule", str(schedule))["schedule"]["verified"]
    instance = load(network)
    assert {link.bandwidth_Bps for link in instance.network.links} == {Fraction(10**11, 8 * degree)}
    assert {link.latency_s for link in instance.network.links} == {Fraction(1, 3 * 10**6)}
    assert read_schedule(schedule).instance.sha256 == instance.sha256
