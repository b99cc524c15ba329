"""``cwb calibrate`` and ``cwb advise`` on the command line: tables, pages, and what they refuse."""

from __future__ import annotations

import json
import os
import signal

import pytest
from cwb.cli.main import run as program
from nccl_tests_files import reference, table_text

GRAPHS = """<graphs version="1"><graph id="0" pattern="4" nchannels="2" speedintra="20" speedinter="12">
<channel><gpu dev="0"/><gpu dev="3"/><gpu dev="1"/><gpu dev="2"/></channel>
<channel><gpu dev="2"/><gpu dev="1"/><gpu dev="3"/><gpu dev="0"/></channel></graph></graphs>"""


RING = ("-O", "algorithm=ring", "-O", "rates=effective")


@pytest.fixture
def cwb(capsys):
    """Run a command in this process; give exit status, stdout and stderr."""

    def command(*words):
        with pytest.raises(SystemExit) as caught:
            program([str(word) for word in words])
        captured = capsys.readouterr()
        return int(caught.value.code or 0), captured.out, captured.err

    return command


@pytest.fixture
def results(tmp_path):
    """Return printed results of nccl-tests on two boxes of eight H100."""
    path = tmp_path / "results.txt"
    path.write_text(table_text(reference("h100-2x8-all_reduce"), ranks=16))
    return path


@pytest.mark.slow
def test_the_measuring_plan_names_programs_and_ranks(cwb):
    """``--plan`` prints a command for one box and one for all, without results; otherwise these are required."""
    status, out, _ = cwb("calibrate", "--plan", "--machine", "dgx_h100(boxes=2)", "--collective", "all_to_all")
    assert status == 0
    assert [line.split(" -b ")[0] for line in out.splitlines()] == [
        "mpirun -np 8 -N 8 build/alltoall_perf",
        "mpirun -np 16 -N 8 build/alltoall_perf",
    ]
    assert cwb("calibrate", "--plan", "--machine", "switch(4)")[1].count("\n") == 1
    status, _, err = cwb("calibrate", "--machine", "dgx_h100")
    assert (status, "--plan prints the commands" in err) == (2, True)


def test_a_machine_is_calibrated(cwb, results, tmp_path):
    """The fit is printed, and the machine that is written can be solved on."""
    made = tmp_path / "made.json"
    status, out, _ = cwb("calibrate", results, "--machine", "dgx_h100(boxes=2)", "-O", "algorithm=ring", "-o", made)
    assert status == 0
    assert "latency    12" in out
    assert "outliers   none" in out
    source = json.loads(made.read_text())["source"]
    assert "all_reduce of 16 ranks, nccl-tests in results.txt" in source
    status, out, _ = cwb("calibrate", results, "--machine", made, *RING, "--json")
    again = json.loads(out)
    assert again["rate_factor"] == pytest.approx(1, rel=0.03)
    assert again["latency_factor"] == pytest.approx(1, rel=0.03)


@pytest.mark.slow
def test_advice_has_every_column(cwb, results, tmp_path):
    """At every size there are NCCL's choice, its time, a ring, the best, a bound below them, and what was measured."""
    page = tmp_path / "advice.html"
    words = (
        "--collective",
        "all_reduce",
        "--sizes",
        "64KiB..64MiB",
        "--models",
        "ring, forestcoll k=1",
        "--chunks",
        "1",
        "-q",
    )
    status, out, _ = cwb(
        "advise", "dgx_h100(boxes=2)", *words, "--measured", results, "-o", page, "--links-limit", "300", "--json"
    )
    assert status == 0
    found = json.loads(out)
    assert [row["size_bytes"] for row in found["rows"]] == [2**k for k in range(16, 27)]
    for row in found["rows"]:
        assert row["bound_s"] <= row["best_s"] * (1 + 1e-9)
        assert row["best_s"] <= min(row["nccl_s"], row["ring_s"])
        assert row["times_nccl"] >= 1
        for gap, seconds in (("gap", row["best_s"]), ("nccl_gap", row["nccl_s"])):
            assert row[gap] == pytest.approx((seconds - row["bound_s"]) / seconds)
        assert row["measured_s"] > row["bound_s"]
        assert row["nccl"]["algorithm"] == row["nccl_schedule"]
    assert found["links"]
    assert 0 < found["links"][0]["gain"] <= 0.1 + 1e-9
    text = page.read_text()
    assert text.count("<table") == 4
    assert "proved bound" in text
    assert "<script src" not in text


def test_advice_in_words(cwb, tmp_path):
    """The table and its sentences are printed; channels of a graph file are taken as they are."""
    path = tmp_path / "graphs.xml"
    path.write_text(GRAPHS)
    words = ("--collective", "all_gather", "--sizes", "1MiB..4MiB", "--models", "ring", "--links-limit", "0", "-q")
    status, out, err = cwb("advise", "complete(4)", *words, "--graphs", path, "-O", "per_box=4")
    assert status == 0, err
    assert "all_gather of 4 ranks, NCCL 2.30.7" in out
    assert "times as fast as NCCL's schedule" in out


@pytest.mark.slow
def test_advice_on_an_exchange(cwb):
    """An all-to-all has NCCL's sends without a predicted time, and the bound of the maximum concurrent flow."""
    words = ("--collective", "all_to_all", "--sizes", "64MiB..64MiB", "--models", "direct", "--chunks", "1", "-q")
    status, out, err = cwb("advise", "dgx_h100()", *words, "--links-limit", "0", "--json")
    assert status == 0, err
    (row,) = json.loads(out)["rows"]
    assert (row["nccl"]["algorithm"], row["nccl_schedule"], row["nccl_predicted_s"]) == ("send/recv", "send/recv", None)
    assert row["bound_s"] >= 2**26 * 7 / 8 / 450e9
    assert row["best_s"] <= row["nccl_s"]


@pytest.mark.parametrize("stopped", [False, True])
def test_a_ring_that_costs_what_that_of_nccl_does(cwb, monkeypatch, stopped):
    """A schedule that costs the same as another keeps its column; after Ctrl-C the rows are those of three sizes."""
    from cwb.studies import advice

    def candidates(*arguments):
        found = made(*arguments)
        found.interrupted = stopped
        return found

    made = advice.candidates
    monkeypatch.setattr(advice, "candidates", candidates)
    words = ("--sizes", "1KiB..1MiB", "--models", "ring", "--chunks", "1", "--links-limit", "0", "-q", "--json")
    status, out, _ = cwb("advise", "switch(2)", "--collective", "all_gather", *words)
    rows = json.loads(out)["rows"]
    assert status == (130 if stopped else 0)
    assert [row["size_bytes"] for row in rows] == [2**k for k in ((10, 16, 20) if stopped else range(10, 21, 2))]
    assert all(row["nccl_s"] for row in rows)
    assert stopped or all(row["ring_s"] for row in rows)


def test_ctrl_c_while_links_are_widened_counts(cwb, monkeypatch):
    """Stopped after all runs, the command says so with its exit status, and gives what it has."""
    from cwb.studies import advice

    def stop_and_analyse(instance, request, progress, stop):
        stop.set()
        return made(instance, request, progress, stop)

    made = advice.sensitivity
    monkeypatch.setattr(advice, "sensitivity", stop_and_analyse)
    words = ("--sizes", "1KiB..4KiB", "--models", "ring", "--chunks", "1", "-q", "--json")
    status, out, _ = cwb("advise", "switch(2)", "--collective", "all_gather", *words)
    assert (status, json.loads(out)["why_ended"]) == (130, "stopped after all runs")


@pytest.mark.parametrize("when", ["1 of 6: nccl", "1 of 3: ring", "comparing"])
def test_the_first_ctrl_c_writes_what_is_there(tmp_path, when):
    """One SIGINT in the first run, a later one, or while sizes are compared: the advice is whole, with fewer sizes."""
    from cwb.studies.advice import advise

    def interrupt(message):
        if message.startswith(when) and not sent:
            sent.append(message)
            os.kill(os.getpid(), signal.SIGINT)

    sent, page = [], tmp_path / "advice.html"
    found = advise(
        "switch(2)",
        collective="all_gather",
        sizes="1KiB..64KiB*2",
        models="ring",
        chunks="1",
        links_limit_s=0,
        output=page,
        progress=interrupt,
    ).to_json()
    assert sent
    assert found["why_ended"].startswith("stopped")
    assert [row["size_bytes"] for row in found["rows"]] == [2**10, 2**13, 2**16]
    assert all(row["nccl_predicted_s"] and row["bound_s"] for row in found["rows"])
    assert "</html>" in page.read_text()


def test_another_version_is_compared_with(cwb):
    """A version that is not known takes the nearest one, and every row has its choice, its time and the ratio."""
    words = ("--sizes", "1MiB,3MiB,64MiB", "--models", "ring", "--chunks", "1", "--links-limit", "0", "-q", "--json")
    status, out, err = cwb("advise", "dgx_h100()", "--collective", "all_gather", "--against", "2.21.99", *words)
    assert status == 0, err
    found = json.loads(out)
    assert found["against"].startswith("2.21.99 (by the numbers of 2.2")
    assert [row["size_bytes"] for row in found["rows"]] == [2**20, 3 * 2**20, 2**26]
    for row in found["rows"]:
        assert row["against"].endswith(("ll", "ll128", "simple"))
        assert row["times_against"] == pytest.approx(row["nccl_predicted_s"] / row["against_s"])
        assert row["nccl_expected_s"] > row["nccl_predicted_s"]
        assert 0 < row["overhead"] < 1
    assert found["rows"][0]["overhead"] > found["rows"][2]["overhead"]


def test_rates_above_nominal_are_told(cwb, tmp_path):
    """A machine that is measured faster than its links allow is named with its suspects, with --json too."""
    path = tmp_path / "fast.txt"
    lines = [
        f"{2**k} {2**k // 4} float sum -1 {30 + 2**k / 33.6e3:.3f} 1 1 0 {30 + 2**k / 33.6e3:.3f} 1 1 0"
        for k in range(10, 27)
    ]
    path.write_text("# nThread 1 nGpus 4\n" + "\n".join(lines) + "\n")
    words = ("--machine", "switch(4)", "--collective", "all_reduce")
    for extra in ((), ("--json",)):
        status, _, err = cwb("calibrate", path, *words, *extra)
        assert status == 0, err
        assert "is measured 1.02 times as fast as its links are described. A box has" in err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (
            ("advise", "dgx_a100()", "--collective", "all_reduce", "--sizes", "1KiB..1GiB*1"),
            "expected a factor above 1",
        ),
        (("advise", "dgx_a100()", "--collective", "all_reduce", "--sizes", ","), "expected sizes"),
        (("advise", "dgx_a100()", "--collective", "all_reduce", "--against", "2.x"), "--against"),
        (("advise", "dgx_a100()", "--collective", "all_reduce", "--sizes", "2KiB..1KiB"), "expected a range"),
        (("advise", "dgx_a100()", "--collective", "all_reduce", "--measured", "RESULTS"), "16 ranks were measured"),
        (("advise", "dgx_a100()", "--collective", "all_gather", "--measured", "RESULTS"), "not of all_gather"),
        (("advise", "dgx_a100()", "--collective", "all_reduce", "-O", "version=9"), "-O: version"),
        (("calibrate", "RESULTS", "--machine", "dgx_a100()"), "16 ranks were measured"),
        (("calibrate", "NONE", "--machine", "dgx_a100()"), "expected --collective"),
    ],
)
def test_what_is_refused(cwb, results, tmp_path, words, told):
    """Wrong sizes, results of another machine or collective, and options that NCCL has not end with one line and status
    2."""
    unnamed = tmp_path / "unnamed.txt"
    unnamed.write_text("64 16 float none -1 7.5 0.1 0.1 0 7.6 0.1 0.1 0\n")
    files = {"RESULTS": results, "NONE": unnamed}
    status, out, err = cwb(*(files.get(word, word) for word in words))
    assert (status, out) == (2, "")
    assert told in err
    assert err.count("\n") == 1
