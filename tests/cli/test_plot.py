"""``cwb plot`` of a schedule file."""

from __future__ import annotations

import json
import runpy
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from cwb.api.plots import PLOT_KINDS, TREE_KINDS
from cwb.cli.records import plot
from cwb.core.collective import Collective, Demand
from cwb.core.errors import ExitStatus, InputError
from cwb.core.option_names import SIMULATION_MODES as MODES
from cwb.core.trace import SimulationMode
from cwb.core.trees import TreeKind, TreePacking
from cwb.instances import load
from cwb.schedules.files import write_schedule
from draws import NIGHTLY

pytestmark = pytest.mark.slow  # plots are drawn

ROOT = Path(__file__).parents[2]
STARTS = {"svg": b"<?xml", "pdf": b"%PDF", "png": b"\x89PNG", "html": b"<!DOCTYPE html>"}


@pytest.fixture(scope="module")
def schedule(tmp_path_factory):
    """A direct all-gather on a star, which has a switch, as 'cwb solve -o' writes it."""
    from cwb.core.budget import Budget
    from cwb.harness.registry import get

    method = get("direct")
    instance = load("star(4)").with_changes(demand=Demand(Collective.ALL_GATHER, Fraction(2**20)))
    answer = method.run(instance, None, Budget(), method.options()).answer
    path = tmp_path_factory.mktemp("schedule") / "s.json"
    write_schedule(path, instance, answer, None, {"model": "direct"})
    return path


@pytest.fixture
def trees(tmp_path):
    """A broadcast down line(3), compressed."""
    instance = load("line(3)").with_changes(demand=Demand(Collective.BROADCAST, Fraction(2**20)))
    link = {ends: i for i, ends in enumerate(instance.network.link_ends)}
    columns = (np.array(column) for column in ([0], [1], [0, 2], [0, 1], [1, 2], [0, 1, 2], [link[0, 1], link[1, 2]]))
    root, units, offset, parent, child, path_offset, links = columns
    unit = Fraction(2**20)
    packing = TreePacking(instance.sha256, TreeKind.OUT, root, units, unit, offset, parent, child, path_offset, links)
    path = tmp_path / "t.json.gz"
    write_schedule(path, instance, packing)
    return path


def run(*arguments):
    result = CliRunner().invoke(plot, [str(a) for a in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


@pytest.mark.parametrize(
    ("kind", "form"),
    [
        pytest.param(kind, form, marks=() if form in often else pytest.mark.nightly)
        for kind, often in zip(PLOT_KINDS[:3], (("svg", "pdf"), ("svg", "png"), ("svg",)), strict=True)
        for form in ("svg", "pdf", "png")
    ],
)
def test_every_kind_in_every_format(kind, form, schedule, tmp_path):
    """Every plot of a schedule is written in the format of its suffix, twice the same (in the nightly run all formats),
    and nothing is left beside it."""
    for name in ("a", "b") if form == "svg" or NIGHTLY else ("a",):
        assert run(schedule, "--kind", kind, "-o", tmp_path / f"{name}.{form}").exit_code == 0
    content = (tmp_path / f"a.{form}").read_bytes()
    assert content.startswith(STARTS[form])
    written = sorted(tmp_path.iterdir())
    assert [path.name for path in written] == [f"{name}.{form}" for name in "ab"[: len(written)]]
    assert all(path.read_bytes() == content for path in written)


def test_the_default_is_a_heat_map_beside_the_file(schedule, trees):
    """Without options the heat map is written beside the file as SVG, compressed or not, and the name is printed."""
    for file, drawn in ((schedule, "s.svg"), (trees, "t.svg")):
        result = run(file)
        assert (result.exit_code, result.stdout) == (0, f"{file.parent / drawn}\n")
        beside = (file.parent / drawn).read_bytes()
        assert run(file, "--kind", "heatmap", "-o", file.parent / "again.svg").stdout == ""
        assert beside == (file.parent / "again.svg").read_bytes()


@pytest.mark.parametrize("kind", PLOT_KINDS)
def test_trees_have_every_picture(kind, trees, tmp_path):
    """A packing of trees has every plot."""
    assert run(trees, "--kind", kind, "-o", tmp_path / "x.svg").exit_code == 0


@pytest.mark.parametrize("kind", TREE_KINDS)
def test_trees_can_be_chosen(kind, trees, tmp_path):
    """The only tree is the first one, chosen or not."""
    assert run(trees, "--kind", kind, "--tree", 0, "-o", tmp_path / "a.svg").exit_code == 0
    assert (tmp_path / "a.svg").stat().st_size > 1000
    with pytest.raises(InputError, match=r"t\.json\.gz: there is no tree 1; expected one from 0 to 0"):
        run(trees, "--kind", kind, "--tree", 1, "-o", tmp_path / "b.svg")


def test_a_map_takes_coordinates(trees, tmp_path):
    """With longitudes and latitudes the sites are placed by them, and a site without is told."""
    places = tmp_path / "places.json"
    places.write_text('{"0": [-0.1, 51.5], "1": [2.3, 48.9], "2": [13.4, 52.5]}')
    assert run(trees, "--kind", "map", "--places", places, "-o", tmp_path / "a.svg").exit_code == 0
    assert run(trees, "--kind", "map", "-o", tmp_path / "b.svg").exit_code == 0
    assert (tmp_path / "a.svg").read_bytes() != (tmp_path / "b.svg").read_bytes()
    for text, problem in (
        ('{"0": [0, 0]}', "no coordinates of '1'"),
        ("[]", "expected an object"),
        ('{"0": [0, 99]}', "expected"),
    ):
        places.write_text(text)
        with pytest.raises(InputError, match=problem):
            run(trees, "--kind", "map", "--places", places, "-o", tmp_path / "c.svg")


@pytest.mark.parametrize("mode", ["alpha-beta", "fair-share", "cut-through"])
def test_the_page_in_every_mode(mode, schedule, tmp_path):
    """The interactive page is one file, in the simulation mode that was asked for, with the method in its title."""
    assert run(schedule, "--mode", mode, "-o", tmp_path / "x.html").exit_code == 0
    content = (tmp_path / "x.html").read_text()
    assert content.startswith("<!DOCTYPE html>")
    assert f'"mode":"{mode}"' in content
    assert "<title>direct all_gather of 1 MiB on star(4)</title>" in content
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("{s}", "-o", "{tmp}/x.jpg"), "x.jpg: unknown suffix; expected .svg, .pdf, .png, .html"),
        (("{s}", "-o", "{tmp}/no/x.svg"), "its folder does not exist"),
        (("{s}", "--kind", "trees", "-o", "{tmp}/x.svg"), "s.json: it has no trees"),
        (("{s}", "--kind", "network", "-o", "{tmp}/x.svg"), "s.json: it has no trees"),
        (("{s}", "--kind", "network", "--places", "{other}", "-o", "{tmp}/x.svg"), "--places: only for --kind map"),
        (("libra-speedup", "--places", "{other}", "-o", "{tmp}/x.svg"), "--places: only for the plot of a schedule"),
        (
            ("{s}", "--kind", "map", "--places", "{other}", "-o", "{tmp}/x.svg"),
            "other.json: schema: expected [longitude",
        ),
        (("{s}", "--kind", "map", "-o", "{tmp}/x.svg"), "s.json: it has no trees"),
        (("{s}", "--kind", "gantt", "--tree", "0", "-o", "{tmp}/x.svg"), "--tree: only for --kind trees, network, map"),
        (("libra-speedup", "--tree", "0", "-o", "{tmp}/x.svg"), "--tree: only for the plot of a schedule"),
        (("{s}", "--kind", "utilization", "-o", "{tmp}/x.html"), "the page shows heatmap and gantt"),
        (("{s}", "{s}", "-o", "{tmp}/x.svg"), "expected no records"),
        (("{tmp}/none.json", "-o", "{tmp}/x.svg"), "none.json: no such file"),
        (("{other}", "-o", "{tmp}/x.svg"), "other.json"),
        (("{cut}", "-o", "{tmp}/x.svg"), "cut.json"),
        (("libra-speedup", "--kind", "gantt", "-o", "{tmp}/x.svg"), "--kind: only for the plot of a schedule"),
        (("libra-speedup", "--mode", "fair-share", "-o", "{tmp}/x.svg"), "--mode: only for the plot of a schedule"),
    ],
)
def test_bad_input(arguments, problem, schedule, tmp_path):
    """A wrong suffix, folder, kind or file is an error of one line with exit status 2, and no plot is begun."""
    (tmp_path / "other.json").write_text(json.dumps({"schema": "something else"}))
    (tmp_path / "cut.json").write_bytes(schedule.read_bytes()[:-50])
    before = set(tmp_path.iterdir())
    places = {"s": schedule, "tmp": tmp_path, "other": tmp_path / "other.json", "cut": tmp_path / "cut.json"}
    with pytest.raises(InputError) as caught:
        run(*(argument.format(**places) for argument in arguments))
    assert caught.value.exit_status is ExitStatus.BAD_INPUT
    assert problem in str(caught.value)
    assert "\n" not in str(caught.value)
    assert set(tmp_path.iterdir()) == before


def test_an_unknown_kind_is_a_usage_error(schedule):
    """A kind that does not exist is refused, with those that do."""
    result = run(schedule, "--kind", "pie")
    assert result.exit_code == 2
    assert "heatmap" in result.output


def test_the_modes_are_those_of_the_simulator():
    """Every mode of the simulator can be chosen, and the default is that of 'cwb simulate'."""
    assert set(MODES) == {mode.value for mode in SimulationMode}
    assert MODES[0] == SimulationMode.CONGESTION_AWARE.value


def test_figure_5_1(tmp_path, monkeypatch, capsys):
    """The script of figure 5.1 draws its sixteen heat maps, and the framed ones have the smallest loads of their
    networks."""
    script = str(ROOT / "benchmarks" / "figure_5_1.py")
    monkeypatch.setattr(sys, "argv", [script, "--smoke", str(tmp_path / "x.svg")])
    runpy.run_path(script, run_name="__main__")
    assert (tmp_path / "x.svg").read_bytes().startswith(b"<?xml")
    largest = {}
    for line in capsys.readouterr().out.splitlines():
        network, algorithm, load = line[:16].strip(), line[17:24].strip(), float(line.split(" max ")[1].split()[0])
        largest[network, algorithm] = load
    assert len(largest) == 16
    for network, algorithm in (("ring", "ring"), ("fully connected", "direct")):
        assert largest[network, algorithm] == min(load for (name, _), load in largest.items() if name == network)


def test_a_network(tmp_path):
    """An instance file is drawn beside it, an expression where -o says, with its changes."""
    file = tmp_path / "my-topology.json"
    ends = [{"source": "a", "target": "b", "bandwidth": "50 GB/s"}]
    file.write_text(
        json.dumps({"schema": "cwb-instance/1", "network": {"nodes": [{"name": "a"}, {"name": "b"}], "links": ends}})
    )
    assert run(file).stdout == f"{tmp_path / 'my-topology.svg'}\n"
    assert (tmp_path / "my-topology.svg").read_bytes().startswith(STARTS["svg"])
    for text in ("h100(2)", "RI(4)_SW(2)", "gscale"):
        out = tmp_path / "out.pdf"
        run(text, "-o", out, "--ranks", "0-3")
        assert out.read_bytes().startswith(STARTS["pdf"])
        out.unlink()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["torus(4,4)"], "-o: give the file to write: a .svg, .pdf or .png"),
        (["torus(4,4)", "--kind", "gantt", "-o", "t.svg"], "--kind: only for the plot of a schedule"),
        (["torus(4,4)", "-o", "t.txt"], "t.txt: unknown suffix"),
        (["trus(4,4)", "-o", "t.svg"], "unknown topology 'trus'; did you mean 'torus'?"),
        (["FC(100)_FC(1000)", "-o", "t.svg"], "100,000 nodes with 54,900,000 linked pairs; expected at most 640"),
        (["gap-time", "--ranks", "0-3"], "--ranks: only for the plot of a network"),
    ],
)
def test_a_network_that_is_refused(arguments, message):
    """A network that cannot be drawn is refused in one line."""
    with pytest.raises(InputError) as caught:
        run(*arguments)
    assert message in str(caught.value)
