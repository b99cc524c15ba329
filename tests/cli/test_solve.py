"""``cwb solve``: what it shows of an answer, what it leaves on stdout, and a load that takes too long."""

from __future__ import annotations

import ctypes
import json
import os
import re
import signal
import subprocess
import sys
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from cwb.cli.main import cwb, run
from cwb.cli.options import libraries_on_stderr
from cwb.cli.solve import print_end, solve
from cwb.core.errors import InputError
from cwb.harness.plan import Cell
from cwb.harness.request import Request
from cwb.harness.task import run_cell

FOREST = ("--model", "forestcoll", "a100(boxes=1)", "--collective", "all_gather", "--json", "-q")

TALKATIVE = """
import ctypes, sys
from cwb.cli.options import libraries_on_stderr
with libraries_on_stderr():
    ctypes.CDLL(None).printf(b"from C\\n")
    print("from Python", flush=True)
print("result")
"""


def solve_output(*words):
    done = CliRunner().invoke(cwb, ["solve", *words], standalone_mode=False)
    assert done.exception is None, done.exception
    return done.stdout


@pytest.mark.parametrize(
    ("network", "steps", "time"),
    [
        ("circulant(n=15, offsets=[1,4,5])", 2, "1"),
        ("generalized_kautz(d=4, n=200)", 4, "191/150"),
        ("complete_bipartite(4,4)", 2, "7/8"),
        ("torus(50,50)", 50, "2499/2500"),
    ],
)
def test_steps_and_bandwidth_time_without_a_size(network, steps, time):
    """A network and a collective are enough for T_L and T_B; a schedule that is too large to be made unasked does not
    matter."""
    record = json.loads(solve_output("--model", "bfb", network, "--collective", "all_gather", "--json"))
    assert (record["metrics"]["T_L"], record["metrics"]["T_B"], record["exit_status"]) == (steps, time, 0)


def test_metrics_alone_are_shown():
    """Without a schedule the summary has T_L, T_B and the bound, and says why there is no more."""
    shown = solve_output("--model", "bfb", "torus(50,50)", "--collective", "all_gather")
    for text in ("steps, T_L", "2499/2500 M/B", "proved bound", "metrics alone"):
        assert text in shown


def test_the_rate_of_an_all_to_all_is_shown():
    """The rate of every pair stands beside the time that it proves."""
    assert "0.25 links" in solve_output("--model", "all-to-all-mcf", "hypercube(3)", "--collective", "all_to_all")


def test_the_record_of_a_forest_holds_trees_and_cut():
    """The trees that are printed span all ranks from every root, and the certificate names the nodes of the cut."""
    record = json.loads(solve_output(*FOREST))
    forest = record["answer"]["forest"]
    assert record["status"] == "optimal"
    assert sorted(forest["root"]) == list(range(8))
    assert forest["edges"] == [7] * 8
    assert len(forest["path_links"]) == sum(forest["hops"])
    for tree, root in enumerate(forest["root"]):
        reached = {root}
        for edge in range(7 * tree, 7 * tree + 7):
            assert forest["parent"][edge] in reached
            reached.add(forest["child"][edge])
        assert reached == set(range(8))
    assert record["certificate"]["certificate"] == "cut"
    assert len(record["certificate"]["nodes"]) == 8


def test_a_forest_in_a_file_is_not_printed_too(tmp_path):
    """With -o the record names the file, and does not repeat the trees."""
    assert set(json.loads(solve_output(*FOREST, "-o", str(tmp_path / "forest.json")))["answer"]) == {"path", "sha256"}


def test_loading_counts_against_the_limit():
    """A network that cannot be loaded in the time given is a record with status limit, and exit status 4."""
    arguments = ["torus(300,300)", "--model", "ring", "--collective", "all_gather", "--time-limit", "1 ns", "--json"]
    result = CliRunner().invoke(solve, arguments, catch_exceptions=False, standalone_mode=False)
    record = json.loads(result.stdout)
    assert result.return_value == record["exit_status"] == 4
    assert (record["status"], record["instance"], record["collective"]) == ("limit", "torus(300,300)", "all_gather")
    assert record["limits"] == {"time_limit_s": 1e-9}
    assert set(record["seconds"]) == {"load", "total"}
    assert "the time limit of 1e-09 s ran out while loading the instance: 16,384 of 90,000 nodes" in record["message"]


def test_libraries_print_on_stderr():
    """Output of C and Python libraries during a run goes to stderr; stdout has only what is printed afterwards."""
    done = subprocess.run([sys.executable, "-c", TALKATIVE], capture_output=True, text=True, check=True)
    assert done.stdout == "result\n"
    assert "from C" in done.stderr
    assert "from Python" in done.stderr


@pytest.mark.slow
def test_json_is_one_object(capfd):
    """``--json`` prints exactly one object on stdout for each solver, whatever the solver's library prints."""
    for solver in ("highs", "gurobi", "scip"):
        with pytest.raises(SystemExit) as ended:
            run(["solve", "-m", "libra", "4d", "-s", solver, "--json"])
        assert not ended.value.code
        ctypes.CDLL(None).fflush(None)
        printed = capfd.readouterr().out
        assert json.loads(printed)["solver"] == solver
        assert printed.count("\n") == 1


def test_it_can_be_nested(capfd):
    """Used twice, one in the other, it leaves stdout as it was."""
    with libraries_on_stderr(), libraries_on_stderr():
        pass
    print("here", flush=True)
    assert capfd.readouterr().out == "here\n"


def test_the_last_model_is_written(tmp_path):
    """``--write-model`` writes what the solver was handed, and says in one line where it was handed nothing."""
    path, none = tmp_path / "last.lp", tmp_path / "none.mps"
    asked = ("ring(4)", "--collective", "all_gather", "-q", "--write-model")
    result = CliRunner().invoke(
        solve, ["--formulation", "forestcoll/optimum", *asked, str(path)], standalone_mode=False
    )
    assert (result.return_value, path.read_text().count("\nst\n")) == (0, 1)
    result = CliRunner().invoke(solve, ["--model", "forestcoll", *asked, str(none)], standalone_mode=False)
    assert (result.return_value, none.exists()) == (0, False)
    assert result.stderr == f"cwb: {none} is not written: forestcoll has solved no model\n"


@pytest.mark.parametrize("solver", ["highs", "scip", "pyomo:glpk"])
def test_the_log_of_the_solver_can_be_watched(solver, capfd, require_solver):
    """``--log-file -`` writes the solver's log on stderr, and stdout has the record alone."""
    require_solver(solver)
    asked = ["solve", "--formulation", "mtree/selection", "ring(4)", "--collective", "all_reduce", "--json"]
    assert cwb.main([*asked, "--solver", solver, "--log-file", "-"], standalone_mode=False) == 0
    out, err = capfd.readouterr()
    assert json.loads(out)["status"] == "optimal"
    assert len(err.splitlines()) > 10


@pytest.mark.parametrize(
    ("changes", "kept"),
    [
        ({}, "there was nothing to keep yet"),
        ({"bound": 0.5}, "the bound 0.5 s is kept, and no answer"),
        ({"bound": 0.5, "objective": 2.0, "answer": {}}, "the best answer, 2 s, and the bound 0.5 s, kept"),
        ({"objective": 2.0, "answer": {}}, "the best answer, 2 s, kept"),
    ],
)
def test_what_is_kept_at_an_interrupt(changes: dict[str, Any], kept: str, capsys: pytest.CaptureFixture[str]) -> None:
    """After Ctrl-C one line says what the record has."""
    record = run_cell(Cell("ring(4)", Request("ring"), "all_reduce"))
    record = replace(record, bound=None, objective=None, answer=None)
    print_end(replace(record, **changes), interrupted=True)
    assert capsys.readouterr().err == f"cwb: interrupted: {kept}\n"


def test_numbers_on_a_card_have_the_units_of_people(capsys: pytest.CaptureFixture[str]) -> None:
    """Times are at least 1 of their unit, the size is as it was typed, a gap is in percent, and a reason is told
    once."""
    command = ["solve", "ring(4)", "--model", "ring", "--collective", "all_reduce", "--size", "1000 kB", "-q"]
    with pytest.raises(SystemExit):
        run(command)
    out, _ = capsys.readouterr()
    for text in ("all_reduce of 1000 kB", "18 µs", " %"):
        assert text in out
    assert "e-0" not in out
    with pytest.raises(SystemExit):
        run(["solve", "ring(5)", "--model", "rhd", "--collective", "all_gather", "-q"])
    out, err = capsys.readouterr()
    assert (out + err).count("not a power of two") == 1
    assert "all_gather of 1 GiB" in out


def test_ctrl_c_while_the_file_is_written_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first Ctrl-C after the run lets the file and the record be written."""
    module = import_module("cwb.studies.solve")
    real = module.write_answer

    def slow(*arguments: Any) -> Any:
        os.kill(os.getpid(), signal.SIGINT)
        return real(*arguments)

    monkeypatch.setattr(module, "write_answer", slow)
    words = ["-qm", "ring", "ring(4)", "--collective", "all_reduce", "-o", "s.json", "--append", "r.jsonl"]
    monkeypatch.chdir(tmp_path)
    assert CliRunner().invoke(solve, words, standalone_mode=False).return_value == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["r.jsonl", "s.json"]


SENSITIVE = ("solve", "--model", "forestcoll", "--collective", "all_gather", "--size", "1 GB", "--sensitivity", "-q")


def test_directions_that_differ_have_a_sensitivity(reference):
    """Both directions of a link change in proportion: 2/3 s of a link of 10 and 1 GB/s lose 1/15 s for each GB/s."""
    file = str(reference / "defects3" / "sens_asym.json")
    record = json.loads(solve_output(*SENSITIVE[1:], file, "--json"))
    (first,) = (entry for entry in record["sensitivity"]["entries"] if entry["name"] == "a - b")
    assert first["up"]["slope_s_per_GBps"] == pytest.approx(-1 / 15)
    assert first["down"]["slope_s_per_GBps"] == pytest.approx(-1 / 15)


INTERNAL = "error: --sensitivity: internal error: KeyError: 'inside' (--debug shows where)"


@pytest.mark.parametrize(
    ("error", "status", "line"),
    [
        (InputError("no such thing"), 2, "error: no such thing"),
        (KeyError("inside"), 1, INTERNAL),
        (KeyboardInterrupt(), 130, "interrupted; what the run has found is kept"),
    ],
)
@pytest.mark.parametrize("place", ["cwb.studies.sensitivity.sensitivity", "cwb.reports.plots.write_plot"])
def test_a_study_that_fails_never_costs_the_answer(monkeypatch, tmp_path, error, status, line, place):
    """The answer is written, recorded and printed, whatever a study or its picture raises; one line names the error."""

    def fails(*_):
        raise error

    monkeypatch.setattr(place, fails)
    schedule, records = tmp_path / "s.json", tmp_path / "r.jsonl"
    words = [*SENSITIVE, "ring(4)", "-o", str(schedule), "--append", str(records), "--picture", str(tmp_path / "p.svg")]
    done = CliRunner().invoke(cwb, words, standalone_mode=False)
    record = json.loads(records.read_text())
    assert record["status"] == "optimal"
    assert (record["sensitivity"] is None) == place.endswith("sensitivity")
    assert schedule.stat().st_size > 0
    assert (done.return_value, done.stderr) == (status, f"cwb: {line}\n")
    assert "optimal" in done.stdout
    debugged = CliRunner().invoke(cwb, ["--debug", *words], standalone_mode=False)
    assert debugged.exception is (error if isinstance(error, Exception) else None)
    assert "optimal" in debugged.stdout


@pytest.mark.parametrize("method", ["ring", "forestcoll"])
def test_a_machine_has_its_effective_time_first(method):
    """The time at effective rates is that of --rates effective, before the nominal one; other networks have one."""
    words = ("--model", method, "--collective", "all_gather", "--size", "1 MiB", "-q")
    both = re.findall(
        r"time at effective rates +│ +(\S+ \S+).*\n.*busbw.*\n.*completion time", solve_output(*words, "dgx_a100()")
    )
    alone = solve_output(*words, "dgx_a100()", "--rates", "effective")
    assert both == re.findall(r"completion time +│ +(\S+ \S+)", alone)
    assert "effective rates" not in alone
    assert "effective rates" not in solve_output(*words, "ring(4)")


def test_messages_of_several_sizes_have_an_effective_time_without_bus_bandwidth():
    """A v-form, which has no bus bandwidth, is solved on a machine, and its time at effective rates printed."""
    printed = solve_output("--model", "ring", "--collective", "all_gather_v(skew=1, seed=2)", "dgx_a100()")
    assert re.search(r"time at effective rates +│ +[\d.]+ ms │\n. busbw at effective rates +│ +n/a", printed)


def test_the_best_answers_are_a_table():
    """The best different answers are listed below the summary, each with the model's and the verifier's objective."""
    words = ("--formulation", "mtree/selection", "ring(6)", "--collective", "all_reduce", "--pool", "2")
    shown = CliRunner().invoke(cwb, ["solve", *words], standalone_mode=False).output.partition("\npool ")[2]
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in shown.splitlines() if line.startswith("│")]
    assert [row[0] for row in rows] == ["1", "2"]
    assert [row[3] for row in rows] == ["yes", "yes"]
    assert float(rows[0][1]) > float(rows[1][1])
    assert float(rows[0][2]) < float(rows[1][2])
    assert rows[0][4].endswith(" edges")
