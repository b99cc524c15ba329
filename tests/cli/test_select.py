"""``cwb select``: folders that a runtime loads, with the fastest schedule for every size."""

from __future__ import annotations

import csv
import json
import threading
from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest
from cwb.cli.main import run as program
from cwb.core.collective import Collective
from cwb.core.instance import Instance
from cwb.exchange.msccl.files import read_algorithm
from cwb.harness.request import Request
from cwb.harness.run import FinishedRun, run
from cwb.instances import load
from cwb.schedules.completion import completion_of
from cwb.schedules.files import read_schedule
from cwb.schedules.verify import verify
from cwb.studies import schedule_candidates as runs
from cwb.studies.predict import predict

Cwb = Callable[..., tuple[int, str, str]]

FEW = ("--models", "ring, dbt, shifted-ring, forestcoll k=1", "--chunks", "4", "--quiet")


@pytest.fixture
def cwb(capsys: pytest.CaptureFixture[str]) -> Cwb:
    """Run a command in this process; give exit status, stdout and stderr."""

    def command(*words: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as caught:
            program(list(words))
        captured = capsys.readouterr()
        return int(caught.value.code or 0), captured.out, captured.err

    return command


@pytest.mark.slow
def test_a_folder_is_ready_to_use(cwb: Cwb, tmp_path: Path) -> None:
    """Files follow each other without holes and overlaps, pass the check of folders, and have their schedules
    beside."""
    folder = tmp_path / "chosen"
    status, out, _ = cwb("select", "dgx_a100()", "--collective", "all_reduce", "-o", str(folder), *FEW)
    assert status == 0
    found = json.loads((folder / "select.json").read_text())
    assert len(found["ranges"]) == 3
    assert found["ranges"][0]["schedule"] == found["ranges"][2]["schedule"] == "forestcoll k=1"
    assert all(one["schedule"] in out for one in found["ranges"])
    ends = [(one["min_bytes"], one["max_bytes"]) for one in found["ranges"]]
    assert (ends[0][0], ends[-1][1]) == (2**10, 2**30)
    for one in found["ranges"]:
        for bound, seconds, gap in zip(one["bound_s"], one["seconds"], one["gap"], strict=True):
            assert 0 < bound <= seconds
            assert gap == pytest.approx(1 - bound / seconds)
    assert all(after[0] == before[1] + 1 for before, after in pairwise(ends))
    status, out, _ = cwb("check", str(folder / "algorithms"), "--dialect", "msccl", "--topology", "dgx_a100()")
    assert status == 0
    assert not {"hole", "overlap"} & set(out.split())
    loads = ElementTree.parse(folder / "msccl.conf").getroot()  # noqa: S314 (our own)
    assert loads.tag == "msccl_algos"
    for one, entry in zip(found["ranges"], loads, strict=True):
        program = read_algorithm(Path(entry.get("path", "")))
        assert (program.min_bytes, program.max_bytes) == (one["min_bytes"], one["max_bytes"] + 1)  # exclusive
        assert (entry.get("minbytes"), entry.get("maxbytes")) == (str(program.min_bytes), str(program.max_bytes))
        assert entry.get("proto") == program.proto
        read = read_schedule(folder / "schedules" / one["file"].replace(".xml", ".json"))
        assert verify(read.instance, read.answer).ok
        seconds = one["seconds"][1]
        again = completion_of(*runs.resize_schedule(read.instance, read.answer, Fraction(one["max_bytes"]))).seconds
        assert again == pytest.approx(seconds, rel=0.01)  # trees: pieces within a hundredth of the least
    assert b"<svg" in (folder / "select.svg").read_bytes()
    rows = list(csv.DictReader((folder / "select.csv").open()))
    assert [int(row["max_bytes"]) for row in rows] == [last for _, last in ends]
    assert len((folder / "select.md").read_text().splitlines()) == 2 + len(rows)


@pytest.mark.parametrize("dialect", ["msccl-executor", "rccl"])
def test_inclusive_dialects_and_both_placements(cwb: Cwb, tmp_path: Path, dialect: str) -> None:
    """An inclusive last size is written as such, and microsoft/msccl has no list."""
    folder = tmp_path / "chosen"
    asked = ["select", "ring(4)", "--collective", "all_gather", "--dialect", dialect, "--placement", "both"]
    status, _, _ = cwb(*asked, "-o", str(folder), "--models", "ring, direct", "--chunks", "1", "--quiet")
    assert status == 0
    found = json.loads((folder / "select.json").read_text())
    for one in found["ranges"]:
        assert read_algorithm(folder / "algorithms" / one["file"]).max_bytes == one["max_bytes"]
    assert not (folder / "msccl.conf").exists()


def test_nccl_has_its_algorithm_of_the_least_expected_time(cwb: Cwb, tmp_path: Path) -> None:
    """Files for the tuner and for a call's configuration have what NCCL is expected to do fastest, whatever was run."""
    folder = tmp_path / "chosen"
    asked = ["-o", str(folder), "--models", "ring", "--chunks", "1", "--quiet"]
    assert cwb("select", "dgx_h100", "--collective", "all_reduce", *asked)[0] == 0
    cells = [line.split(",") for line in (folder / "nccl_tuner.conf").read_text().splitlines()[1:]]
    assert (cells[0][1], cells[-1][2]) == ("1024", str(2**30))
    assert all(int(after[1]) == int(before[2]) + 1 for before, after in pairwise(cells))
    assert {(cell[0], *cell[5:]) for cell in cells} == {("allreduce", "0", "-1", "8")}
    for cell in cells:
        least = {
            name: predict("dgx_h100", collective="all_reduce", size=int(cell[2]), options={"algorithm": name}).seconds
            for name in ("ring", "tree", "nvls")
        }
        assert min(least, key=least.__getitem__) == cell[3]
    assert cells[-1][3:5] == ["nvls", "simple"]
    named = [line.split(",") for line in (folder / "nccl_selection.csv").read_text().splitlines()[1:]]
    assert [cell[3] for cell in named] == [f"{cell[3]}_{cell[4]}".upper() for cell in cells]
    asked[1] = str(tmp_path / "other")
    assert cwb("select", "complete(4)", "--collective", "all_to_all", *asked)[0] == 0
    assert not (tmp_path / "other" / "nccl_tuner.conf").exists()


def test_ucc_has_the_radix_that_is_never_slow(cwb: Cwb, tmp_path: Path) -> None:
    """A large broadcast wants few sends of a rank, a small one few rounds; without radices there is no file."""
    asked = ["--chunks", "1", "--models", "knomial k=2, knomial k=4, knomial k=8", "--quiet"]
    radices = []
    for name, sizes in (("small", ("1 KiB", "4 KiB")), ("large", ("1 GiB", "2 GiB"))):
        folder = tmp_path / name
        ends = ["--min-bytes", sizes[0], "--max-bytes", sizes[1], "-o", str(folder)]
        assert cwb("select", "switch(8)", "--collective", "broadcast", *asked, *ends)[0] == 0
        radices.append((folder / "ucc.env").read_text())
    lines = "UCC_TL_UCP_BCAST_KN_RADIX={}\nUCC_TL_UCP_TUNE=bcast:{}-{}:@knomial\n"
    assert radices == [lines.format(8, 2**10, 2**12), lines.format(4, 2**30, 2**31)]
    asked[3] = "knomial"
    assert cwb("select", "switch(8)", "--collective", "broadcast", *asked, "-o", str(tmp_path / "one"))[0] == 0
    assert not (tmp_path / "one" / "ucc.env").exists()


def test_no_more_files_than_are_loaded(cwb: Cwb, tmp_path: Path) -> None:
    """--files 1 gives one program for all sizes."""
    folder = tmp_path / "chosen"
    assert cwb("select", "ring(4)", "--collective", "all_reduce", "-o", str(folder), "--files", "1", *FEW)[0] == 0
    assert len(list((folder / "algorithms").iterdir())) == 1


def test_sizes_of_a_gather_are_those_of_a_part(cwb: Cwb, tmp_path: Path) -> None:
    """The runtimes count one rank's part of a gather, and so does the clock."""
    folder = tmp_path / "chosen"
    asked = ["select", "complete(4)", "--collective", "gather", "--dialect", "rccl", "--models", "direct, knomial"]
    assert cwb(*asked, "--max-bytes", "1 MiB", "-o", str(folder), "--quiet")[0] == 0
    found = json.loads((folder / "select.json").read_text())
    last = found["ranges"][-1]
    read = read_schedule(folder / "schedules" / last["file"].replace(".xml", ".json"))
    assert (
        completion_of(*runs.resize_schedule(read.instance, read.answer, Fraction(4 * 2**20))).seconds
        == last["seconds"][1]
    )


def test_what_was_run_before_ctrl_c_is_chosen_from(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once the stop is set, no further method is run, and what was found is there."""

    def run_and_stop(instance: Instance, request: Request, stop: threading.Event) -> FinishedRun:
        done = run(instance, request)
        stop.set()
        return done

    monkeypatch.setattr(runs, "run", run_and_stop)
    items = runs.items_of("ring, direct")
    choice = runs.Choice(load("ring(4)"), Collective.ALL_GATHER, 1024, 2**20, items, (1,))
    found = runs.candidates(choice)
    assert found.interrupted
    assert [one.label for one in found.pool] == ["ring"]
    assert "after 1 of 6 runs" in found.why_ended


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--models", "ring, rong"], "rong"),
        (["--models", "ring,, direct"], "a name is missing"),
        (["--models", "forestcoll k"], "no option"),
        (["--models", "forestcoll k=many"], "--models: forestcoll.k: 'many' is wrong"),
        (["--chunks", "0"], "whole numbers"),
        (["--min-bytes", "2 GiB"], "range of sizes"),
        (["--max-bytes", "1/3"], "--max-bytes"),
        (["--models", "libra"], "no schedule"),
        (["--dialect", "msccl", "--placement", "both", "--models", "ring"], "inplace"),
    ],
)
def test_bad_input_is_one_line(cwb: Cwb, tmp_path: Path, words: list[str], said: str) -> None:
    """Wrong input is reported in one line with exit status 2, and no folder is left."""
    folder = tmp_path / "chosen"
    status, _, err = cwb("select", "ring(4)", "--collective", "all_gather", "-o", str(folder), "--quiet", *words)
    assert status == 2
    assert said in err
    assert len(err.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_has_files_is_not_touched(cwb: Cwb, tmp_path: Path) -> None:
    """A folder with something in it is refused before anything is run."""
    (tmp_path / "mine").write_text("")
    status, _, err = cwb("select", "ring(4)", "--collective", "all_gather", "-o", str(tmp_path))
    assert (status, len(err.splitlines())) == (2, 1)
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_schedules_of_one_program_are_one(cwb: Cwb, tmp_path: Path) -> None:
    """Chunks that are sent alike are one chunk of a program, so that there are no two files with the same program."""
    folder = tmp_path / "chosen"
    asked = ["select", "hypercube(3)", "--collective", "reduce_scatter", "--models", "bfb", "--chunks", "1, 4"]
    assert cwb(*asked, "-o", str(folder), "--quiet")[0] == 0
    found = json.loads((folder / "select.json").read_text())
    assert len(found["ranges"]) == 1
    assert len(found["curves"]) == 1


def test_fabrics_are_compared_by_their_links(cwb: Cwb, tmp_path: Path) -> None:
    """A network of dimensions is taken as links, and orders of chunks as sends on them."""
    folder = tmp_path / "chosen"
    asked = ["select", "RI(4)_FC(2)", "--collective", "all_reduce", "--models", "themis", "--chunks", "2"]
    assert cwb(*asked, "-o", str(folder), "--quiet")[0] == 0
    found = json.loads((folder / "select.json").read_text())
    assert {one["model"] for one in found["ranges"]} == {"themis"}


def test_methods_that_cannot_make_it_are_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """A method for other machines is left out once, with the reason, before anything is run."""

    def record_and_run(instance: Instance, request: Request, stop: threading.Event) -> FinishedRun:
        ran.append(request.model)
        return run(instance, request, stop=stop)

    ran: list[str] = []
    monkeypatch.setattr(runs, "run", record_and_run)
    items = runs.items_of("swing, direct")
    found = runs.candidates(runs.Choice(load("complete(4)"), Collective.ALL_REDUCE, 1024, 1024, items, (1, 4)))
    assert ran == ["direct", "direct"]
    assert list(found.left_out) == ["swing"]
    assert "torus" in found.left_out["swing"]


def test_a_method_that_fails_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """A method that fails is reported and does not affect the schedules of the others."""

    def failing(instance: Instance, request: Request, stop: threading.Event) -> FinishedRun:
        if request.model == "direct":
            raise ZeroDivisionError("nought")
        return run(instance, request, stop=stop)

    monkeypatch.setattr(runs, "run", failing)
    items = runs.items_of("direct, ring")
    found = runs.candidates(runs.Choice(load("ring(4)"), Collective.ALL_GATHER, 1024, 2**20, items, (1,)))
    assert {one.label for one in found.pool} == {"ring"}
    assert found.left_out == {"direct": "internal error: ZeroDivisionError: nought"}
