"""Verbs give what the commands of the same names print and write."""

from __future__ import annotations

import json
import re
from pathlib import Path

import cwb
import pytest
from cwb.cli.main import run
from cwb.core.errors import InputError


@pytest.fixture
def command_output(capsys):
    """Run a command; give what it prints."""

    def command(*words: object) -> str:
        with pytest.raises(SystemExit):
            run([str(word) for word in words])
        return capsys.readouterr().out

    return command


@pytest.fixture(scope="module")
def schedule(tmp_path_factory) -> Path:
    """A schedule of an all-gather on a torus."""
    path = tmp_path_factory.mktemp("schedule") / "s.json"
    cwb.solve("torus(2,3)", "bfb", collective="all_gather", size="1 MiB", output=path)
    return path


def test_solve_writes_what_the_command_writes(command_output, tmp_path):
    """The answer's file is the same, and the record has the same numbers."""
    one, other = tmp_path / "one.json", tmp_path / "other.json"
    words = (
        "solve",
        "-q",
        "-m",
        "ring",
        "ring(4)",
        "--collective",
        "all_gather",
        "--size",
        "1 MiB",
        "-o",
        one,
        "--json",
    )
    record = json.loads(command_output(*words))
    found = cwb.solve(
        "ring(4)", "ring", collective="all_gather", size="1 MiB", output=other, append=tmp_path / "r.jsonl"
    )
    assert one.read_bytes() == other.read_bytes()
    assert found.to_json()["metrics"] == record["metrics"]
    assert json.loads((tmp_path / "r.jsonl").read_text())["answer"]["path"] == str(other)


def test_compare_runs_what_the_command_runs(command_output, tmp_path):
    """Options in place of a suite make the same runs, which are not repeated."""
    words = ("--models", "ring,direct", "--instances", "ring(3)", "--sizes", "1MiB", "-o", tmp_path)
    command_output("compare", *words, "-q")
    records = cwb.compare(models="ring,direct", instances="ring(3)", sizes="1MiB", output=tmp_path)
    lines = (tmp_path / "records.jsonl").read_text().splitlines()
    written = {json.loads(line)["key"]: json.loads(line) for line in lines}
    assert len(written) == len(records) == 2
    assert all(json.loads(json.dumps(record.to_json())) == written[record.key] for record in records)


@pytest.mark.parametrize(
    ("words", "verb"),
    [
        (
            ["resilience", "ring(4)", "--collective", "all_gather", "--kind", "link", "--without-link", "0:1"],
            lambda: cwb.resilience(cwb.load("ring(4)", without_link="0:1"), collective="all_gather", kind="link"),
        ),
        (
            ["resilience", "ring(4)", "--collective", "all_gather", "--slow", "1/2"],
            lambda: cwb.resilience("ring(4)", collective="all_gather", slow="1/2"),
        ),
        (
            ["find-topology", "--nodes", "6", "--degree", "2", "--all-to-all-limit", "0"],
            lambda: cwb.find_topology(nodes=6, degree=2, all_to_all_limit_s=0),
        ),
        (
            ["train", "torus(2,2)", "-w", "resnet-50", "-m", "ring", "-q"],
            lambda: cwb.train("torus(2,2)", workload="resnet-50", method={"all": "ring"}),
        ),
    ],
)
def test_verbs_give_what_commands_print(command_output, words, verb):
    """The same JSON comes from a verb and from its command."""
    found = verb()
    data = found if isinstance(found, dict) else found.to_json()
    assert json.loads(json.dumps(data)) == json.loads(command_output(*words, "--json"))


@pytest.mark.slow
def test_select_and_advise_give_what_commands_print(command_output, tmp_path):
    """The same choice and the same advice come from a verb and from its command; folders have the same programs."""
    few = ("--models", "ring", "--chunks", "1", "-q", "--json")
    asked = {"collective": "all_reduce", "models": "ring", "chunks": 1 * (1,)}
    words = ("select", "dgx_a100()", "--collective", "all_reduce", *few, "-o", tmp_path / "one")
    chosen = cwb.select("dgx_a100()", output=tmp_path / "other", **asked)
    assert chosen.to_json() == json.loads(command_output(*words))
    assert (tmp_path / "one" / "select.csv").read_bytes() == (tmp_path / "other" / "select.csv").read_bytes()
    words = ("advise", "dgx_a100()", "--collective", "all_reduce", "--sizes", "1MiB..1MiB", "--links-limit", "0", *few)
    found = cwb.advise("dgx_a100()", sizes="1MiB..1MiB", links_limit_s=0, **asked)
    assert json.loads(json.dumps(found.to_json())) == json.loads(command_output(*words))


def test_calibrate_gives_what_the_command_prints(command_output, tmp_path):
    """The same fit comes from the verb and from its command, and the same machine is written."""
    results = tmp_path / "results.txt"
    lines = [
        f"{2**k} {2**k // 4} float sum -1 {20 + 2**k / 1e5:.2f} 1 1 0 {20 + 2**k / 1e5:.2f} 1 1 0"
        for k in range(10, 31, 2)
    ]
    results.write_text("# Collective test starting: all_reduce_perf\n" + "\n".join(lines) + "\n")
    words = ("calibrate", results, "--machine", "dgx_h100()", "-o", tmp_path / "one.json", "--json")
    data = json.loads(command_output(*words))
    found = cwb.calibrate(results, "dgx_h100()", output=tmp_path / "other.json")
    assert json.loads(json.dumps(found.to_json())) == data
    assert (tmp_path / "one.json").read_bytes() == (tmp_path / "other.json").read_bytes()
    assert cwb.load(found.data).npus == 8


def test_verbs_of_files_of_schedules(command_output, schedule, tmp_path):
    """Check, simulate and repair give the JSON of their commands."""
    assert cwb.check(schedule).to_json() == json.loads(command_output("check", schedule, "--json"))
    found = cwb.simulate(schedule, mode="cut-through", barrier=True)
    words = ("simulate", schedule, "--mode", "cut-through", "--barrier", "--json")
    assert found.to_json() == json.loads(command_output(*words))
    assert found.completion_s == found.to_json()["completion_time_s"]
    mended = cwb.repair(schedule, without_link="0:1", output=tmp_path / "new.json")
    assert mended.to_json() == json.loads(command_output("repair", schedule, "--without-link", "0:1", "--json"))
    assert cwb.check(tmp_path / "new.json").ok


def test_polish_shortens_as_the_command_does(command_output, tmp_path):
    """The same schedule is written by the verb and by its command."""
    source, one, other = (tmp_path / f"{name}.json" for name in ("s", "one", "other"))
    cwb.solve("ring(4)", "tacos", collective="all_gather", size="1 MiB", output=source, unwind=0)
    found = cwb.polish(source, output=one)
    assert command_output("polish", source, "-o", other).startswith(f"{other}: {found.after_s:.9g} s")
    assert one.read_bytes() == other.read_bytes()


@pytest.mark.parametrize("name", ["msccl", "mscclpp", "goal"])
def test_exports_are_those_of_commands(command_output, schedule, tmp_path, name):
    """A verb writes the file that its command writes; an algorithm comes back as a schedule."""
    one, other = tmp_path / "a.xml", tmp_path / "b" / "a.xml"
    other.parent.mkdir()
    command_output("export", name, schedule, "-o", one)
    assert getattr(cwb, f"export_{name}")(schedule, output=other).about
    assert one.read_bytes() == other.read_bytes()
    if name == "msccl":
        back = cwb.import_msccl(one, topology="torus(2,3)", size="1 MiB")
        assert cwb.verify(back.instance, back.schedule).ok


def test_imports_are_those_of_commands(command_output, tmp_path):
    """A verb gives the instance that its command writes."""
    file, one = tmp_path / "links.csv", tmp_path / "one.json"
    file.write_text("source,target,bandwidth\na,b,25 GB/s\nb,a,25 GB/s\n")
    command_output("import", "csv", file, "-o", one)
    made = cwb.import_csv(file)
    assert made.data == json.loads(one.read_text())
    assert made.instance.npus == 2


def test_tables_plots_and_reports_are_those_of_commands(command_output, tmp_path):
    """Verbs make the text and the files that their commands make."""
    for method in ("ring", "direct"):
        cwb.solve("ring(3)", method, collective="all_gather", size="1 MiB", append=tmp_path / "r.jsonl")
    records = tmp_path / "r.jsonl"
    assert cwb.table("sizes", records, where="model=ring", format="md") == command_output(
        "table", "sizes", records, "--where", "model=ring", "-f", "md"
    )
    cwb.plot("ring(4)", output=tmp_path / "one.svg")
    command_output("plot", "ring(4)", "-o", tmp_path / "other.svg")
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "other.svg").read_bytes()
    page = cwb.report(records, output=tmp_path / "one.html")
    command_output("report", records, "-o", tmp_path / "other.html")
    assert len(page.read_bytes()) == (tmp_path / "other.html").stat().st_size


def test_reproduce_gives_what_the_command_prints(command_output, monkeypatch):
    """The same rows come from the verb and from its command."""
    from cwb.core.paper_results import PublishedFile
    from cwb.studies import reproduce

    row = {"table": "Table 1", "row": "a", "section": "1", "printed": "1", "needs": "GPUs"}
    paper = PublishedFile.model_validate({"title": "t", "source": "s", "row": [row]})
    monkeypatch.setattr(reproduce, "load_paper", lambda name: paper)
    assert cwb.reproduce("t").to_json() == json.loads(command_output("reproduce", "t", "-q", "-f", "json"))


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: cwb.select("ring(4)", collective="all_gather", min_bytes="2 GiB"), "^min_bytes: "),
        (lambda: cwb.advise("ring(4)", run_limit_s="5"), "^run_limit_s: '5'; expected a number"),
        (lambda: cwb.resilience("ring(4)", kind="cable"), "^kind: 'cable' is unknown; expected one of link"),
        (
            lambda: cwb.find_topology(nodes=8, degree=2, no_schedule=True, schedule="s.json"),
            "^schedule: .* no_schedule=",
        ),
    ],
)
def test_errors_speak_of_keyword_arguments(call, told):
    """Errors of verbs name keyword arguments, not options."""
    with pytest.raises(InputError, match=told):
        call()


def test_predict_prints_what_the_verb_returns(command_output):
    """'--json' is the verb's result, and the text has its numbers."""
    words = ("predict", "dgx_a100(boxes=2)", "--collective", "all_reduce", "--size", "64 MiB", "-O", "version=2.27.3")
    found = json.loads(command_output(*words, "--json"))
    same = cwb.predict("dgx_a100(boxes=2)", collective="all_reduce", size=2**26, options={"version": "2.27.3"})
    assert found == same.to_json()
    assert f"{same.busbw_GBps:.4g} GB/s" in command_output(*words)


def test_the_played_bound_is_of_the_completion_time(tmp_path):
    """A page that plays a schedule has the bound of its simulation, not one of circuits that pay for latency."""
    run = cwb.solve("torus(4,4)", "tacos", collective="all_gather", size="1 MiB", output=tmp_path / "s.json")
    page = cwb.view(tmp_path / "s.json", output=tmp_path / "view.html").read_text()
    bound = float(re.search(r'"bound":([0-9.e-]+)', page)[1])
    assert bound == pytest.approx(cwb.simulate(tmp_path / "s.json").to_json()["lower_bound_s"])
    assert bound < run.bound
