"""Messages on wrong usage: one line with the place, the value and the expectation, and exit status 2."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from command_line import cwb

#: Files that are wrong in one way each.
FILES = {
    "cut.json": '{"network": ',
    "field.json": '{"network": "RI(4)", "colective": {}}',
    "twice.json": '{"network": "RI(4)", "network": "RI(8)"}',
    "negative.json": '{"network": {"nodes": [{"name": "a"}], '
    '"links": [{"source": "a", "target": "b", "bandwidth": "-3 GB/s"}]}}',
    "none.jsonl": "",
    "future.json": '{"schema": "cwb-schedule/9"}',
    "field.toml": '[[grid]]\ninstances = ["ring(4)"]\nmodels = ["ring"]\nsped = 3\n',
    "cut.toml": "[[grid]\n",
}

RING = "solve 'ring(4)' --model ring --collective all_reduce"

#: The words, and what the line has: place, value, what was expected (a nearest word where there is one).
WRONG = [
    # commands and their words
    ("slove 4d", "command", "'slove'", "did you mean 'solve'?"),
    ("--verbose", "--verbose", "--verbose", "expected one of --debug, --version, --help"),
    (f"{RING} --colective x", "--colective", "--colective", "did you mean '--collective'?"),
    (f"{RING} extra", "'extra'", "unexpected", "expected nothing after INSTANCE"),
    ("doctor extra", "'extra'", "unexpected", "expected options alone"),
    ("list modles", "WHAT", "'modles'", "did you mean 'models'?"),
    ("list", "WHAT", "missing", "expected one of models, formulations"),
    ("import ncll x", "command", "'ncll'", "did you mean 'nccl'?"),
    ("export", "COMMAND", "missing", "expected one of astra, chakra"),
    ("check", "FILE", "missing", "expected a file"),
    # solve: names
    ("solve --model ring", "INSTANCE", "missing", "expected a file, the name of a shipped instance"),
    ("solve 4d", "--model", "expected either", "--model or --formulation"),
    ("solve 4d --model rng", "--model", "'rng'", "did you mean 'ring'?"),
    ("solve 4d --formulation bfb/lpp", "--formulation", "'bfb/lpp'", "did you mean 'bfb/lp'?"),
    ("solve 4d --model libra --solver hihgs", "--solver", "'hihgs'", "did you mean 'highs'?"),
    (
        "solve 'ring(4)' --model ring --collective allreduce",
        "--collective",
        "'allreduce'",
        "did you mean 'all_reduce'?",
    ),
    ("solve 'ring(4)' --model ring --size 1MiB", "--collective", "missing", "expected one such as all_reduce"),
    ("solve 'experts(gpus=2, slots=2, loads=5)' --model expert-placement", "experts(", "loads=5", "expected a list"),
    # solve: options of the method and of the solver
    (
        "solve 4d --model libra -O 'total_bandwith=5 GB/s'",
        "-O: total_bandwith",
        "'5 GB/s'",
        "did you mean 'total_bandwidth'?",
    ),
    ("solve 4d --model libra -O total_bandwidth=5", "-O: total_bandwidth", "'5'", "such as '50 GB/s'"),
    ("solve 4d --model libra -O 'total_bandwidth=5 GBs'", "-O: total_bandwidth", "'GBs'", "such as '50 GB/s'"),
    ("solve 4d --model libra -O objective=speed", "-O: objective", "'speed'", "should be 'perf' or 'perf-per-cost'"),
    ("solve 4d --model libra -O gap", "-O", "'gap'", "expected name=value"),
    ("solve 4d --model libra -O =5", "-O", "'=5'", "expected name=value"),
    ("solve 4d --model libra -O gap=1 -O gap=2", "-O", "'gap'", "expected once"),
    ("solve 4d --model libra -S presolv=on", "-S", "'presolv'", "did you mean 'presolve'?"),
    ("solve 4d --model libra -S presolve", "-S", "'presolve'", "expected name=value"),
    # solve: numbers and quantities
    (f"{RING} --size 5", "--size", "'5'", "such as '1 GiB'"),
    (f"{RING} --size '1 GB/s'", "--size", "'1 GB/s'", "such as '1 GiB'"),
    (f"{RING} --size '-1 GiB'", "--size", "'-1 GiB'", "must not be negative"),
    (f"{RING} --chunks 0", "--chunks", "0", "expected a whole number of at least 1 and at most 1,000,000,000"),
    (f"{RING} --chunks two", "--chunks", "'two'", "expected a whole number of at least 1"),
    (f"{RING} --time-limit -3", "--time-limit", "'-3' must not be negative", "60 (seconds), '60 s' or '5 min'"),
    (f"{RING} --time-limit soon", "--time-limit", "'soon'", "60 (seconds), '60 s' or '5 min'"),
    (f"{RING} --time-limit 0", "--time-limit", "'0' must be greater than zero", "60 (seconds)"),
    (f"{RING} --gap 2", "--gap", "2.0", "expected a number of at least 0 and below 1"),
    (f"{RING} --gap nan", "--gap", "nan", "expected a number"),
    (f"{RING} --seed -1", "--seed", "-1", "expected a whole number of at least 0"),
    (f"{RING} --threads 0", "--threads", "0", "expected a whole number of at least 1 and at most 1,024"),
    (f"{RING} --pool 3", "--pool", "ring", "expected one of 'cwb list formulations'"),
    (f"{RING} --picture x.svg", "--picture", "--sensitivity", "expected together with"),
    (f"{RING} -o {'a' * 300}", "'aaaaaaaa", "...", "file name too long"),
    (f"{RING} -o no/where.json", "no/where.json", "folder", "expected a file in one that does"),
    # networks and files
    ("solve 'rong(4)' --model ring", "rong(4)", "'rong'", "did you mean 'ring'?"),
    ("solve 'ring(four)' --model ring", "n", "four", "expected an integer, such as 8"),
    ("solve 'ring()' --model ring", "ring()", "'n'", "expected ring(n, bidirectional=true"),
    (
        "solve 'ring(4, bandwith=5)' --model ring",
        "ring(4, bandwith=5)",
        "'bandwith'",
        "expected n, bidirectional, bandwidth",
    ),
    (
        "solve 'torus(99999,99999)' --model ring",
        "torus(99999,99999)",
        "9,999,800,001 nodes",
        "expected at most 2,000,000",
    ),
    ("solve 'RI(4)_XX(8)' --model libra", "dimension 2", "'XX(8)'", "expected RI(n), FC(n) or SW(n)"),
    ("solve h10 --model ring", "h10", "no such file", "did you mean 'h100'?"),
    ("solve none.json --model ring", "none.json", "none.json", "no such file"),
    ("solve . --model ring", ".", "is a directory", "expected a JSON file"),
    ("solve cut.json --model ring", "cut.json", "line 1, column 13", "expecting value"),
    ("solve field.json --model libra", "colective", "{}", "unknown field"),
    ("solve twice.json --model libra", "twice.json", "'network'", "expected once"),
    ("solve negative.json --model ring", "links[0].bandwidth", "'-3 GB/s'", "such as '50 GB/s'"),
    # comparisons
    ("compare", "SUITE", "expected SUITE", "or --models and --instances"),
    ("compare smok", "smok", "no such file", "did you mean 'smoke'?"),
    ("compare field.toml", "grid[0].sped", "3", "unknown field"),
    ("compare cut.toml", "cut.toml", "not TOML", "Expected ']]'"),
    ("compare smoke --retry some", "--retry", "'some'", "expected one of failed, limit, all"),
    ("compare smoke --jobs 0", "--jobs", "0", "expected a whole number of at least 1"),
    ("compare smoke --memory 4", "--memory", "'4'", "such as '1 GiB'"),
    ("compare smoke --grace -1", "--grace", "'-1' must not be negative", "60 (seconds)"),
    ("compare --models rng --instances 'ring(4)'", "--models", "'rng'", "did you mean 'ring'?"),
    ("compare --models ring --instances 'ring(4)' --sizes 1KiB..x", "--sizes", "'x'", "such as '1 GiB'"),
    # tables, plots, schedules
    ("table", "NAME", "missing", "expected one of libra-perf"),
    ("table sumary none.jsonl", "table", "'sumary'", "did you mean 'summary'?"),
    ("table summary nowhere", "nowhere", "no such file", "'cwb compare SUITE -o nowhere' makes one"),
    ("table summary none.jsonl --format odt", "--format", "'odt'", "expected one of latex, md, csv, text, html"),
    ("table summary none.jsonl -o x.doc", "x.doc", "suffix", "expected .tex, .md"),
    ("table summary none.jsonl --where modl=x", "--where", "'modl'", "did you mean 'model'?"),
    ("plot gap-tim none.jsonl -o x.svg", "plot", "'gap-tim'", "did you mean 'gap-time'?"),
    ("plot gap-time none.jsonl -o x.jpg", "x.jpg", "suffix", "expected .svg, .pdf, .png"),
    ("simulate future.json --mode fast", "--mode", "'fast'", "expected one of alpha-beta"),
    ("check future.json", "schema", "'cwb-schedule/9'", "expected one of cwb-schedule/1, cwb-placement/1"),
    ("repair future.json --without-node 3", "schema", "'cwb-schedule/9'", "expected one of cwb-schedule/1"),
    ("find-topology --nodes 64", "--degree", "missing", "expected a whole number"),
    ("find-topology --nodes x --degree 4", "--nodes", "'x'", "expected a whole number"),
    ("reproduce papr", "papr", "unknown paper", "expected one of bine, direct-connect"),
    ("show torsu", "torsu", "no such file", "did you mean 'torus'?"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wrong files."""
    made = tmp_path_factory.mktemp("wrong")
    for name, text in FILES.items():
        (made / name).write_text(text)
    return made


def test_there_are_enough() -> None:
    """Sixty wrong usages and more are tried, none of them twice."""
    assert len({words for words, *_ in WRONG}) == len(WRONG) >= 60


@pytest.mark.parametrize(("words", "place", "value", "expected"), WRONG, ids=[case[0] for case in WRONG])
def test_wrong_usage(
    words: str,
    place: str,
    value: str,
    expected: str,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """It is one line on stderr that has place, value and what was expected; stdout is empty, and nothing is written."""
    monkeypatch.chdir(folder)
    assert cwb(*shlex.split(words)) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith("cwb: error: ")
    for part in (place, value, expected):
        assert part in err
    assert {path.name for path in folder.iterdir()} == set(FILES)
