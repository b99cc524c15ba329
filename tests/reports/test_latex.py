"""LaTeX: escapes, widths of columns, and that TeX takes every table."""

from __future__ import annotations

import csv
import io
import math
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cwb.core.record import RunRecord
from cwb.core.text import escape_unprintable
from cwb.reports.formats import FORMATS
from cwb.reports.latex import escape, render, standalone
from cwb.reports.table import build
from cwb.reports.tables import TABLES, get
from hypothesis import given
from hypothesis import strategies as st

pytestmark = pytest.mark.slow  # TeX is run

Make = Callable[..., RunRecord]
Compile = Callable[[str], str]

HOSTILE = (
    '50%_&#~^\\{}$ [*] <a|b> "q" `x\' ?`!` -- --- ,, '
    "\\\\ \\end{tabular} % \n\t é Ångström ñ ß Ω 模型 \u202e \x00 µ × \N{SNOWMAN} ı ȷ ĳ"
)


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("a_b", r"a\_b"),
        ("50%", r"50\%"),
        ("R&D #1", r"R\&D \#1"),
        ("~x^2", r"\textasciitilde{}x\textasciicircum{}2"),
        ("{a}$", r"\{a\}\$"),
        ("\\", r"\textbackslash{}"),
        ("[1]*", "{[}1{]}{*}"),
        ("a--b---c", "a-{}-b-{}-{}-c"),
        ("naïve Çé", r"na\"{\i}ve \c{C}\'{e}"),
        ("模", "U+6A21"),
        ("a\nb", "a b"),
    ],
)
def test_escape(text: str, escaped: str) -> None:
    """Every character that TeX minds is written so that it is printed."""
    assert escape(text) == escaped


def drop_escaped(text: str) -> str:
    """Drop escaped characters, so that what is left has a meaning in TeX."""
    return re.sub(r"\\[\\{}$&#%_]", "", text)


def assert_sound(text: str) -> None:
    """Check that nothing is a comment, every brace has its pair, and all rows have the same number of cells."""
    bare = drop_escaped(text)
    assert "%" not in bare
    assert "#" not in bare
    depth = 0
    for character in bare:
        depth += {"{": 1, "}": -1}.get(character, 0)
        assert depth >= 0
    assert depth == 0
    assert bare.isascii()


records = st.builds(
    dict,
    instance=st.text(max_size=30),
    objective=st.sampled_from(["perf", "perf-per-cost"]),
    total=st.sampled_from([None, 1, 100, 12345678901234567890]),
    status=st.sampled_from(["optimal", "feasible", "limit", "infeasible", "unsupported", "error", "strange"]),
    solver=st.one_of(st.none(), st.text(max_size=8)),
    verified=st.sampled_from([True, False, None]),
    gap=st.one_of(st.none(), st.floats(), st.integers()),
    metrics=st.dictionaries(
        st.sampled_from(["speedup", "network_cost_usd", "perf_per_cost_gain", "bandwidth_GBps", "workload_time_s"]),
        st.one_of(st.none(), st.floats(), st.integers(), st.text(max_size=5), st.lists(st.floats(), max_size=3)),
    ),
    seconds=st.dictionaries(st.sampled_from(["build", "solve"]), st.floats()),
)


@given(data=st.lists(records, min_size=1, max_size=6))
def test_random_records_are_sound(data: list[dict[str, Any]], make_record: Make) -> None:
    """Whatever the records hold, LaTeX has no bare % and balanced braces, and every row has all its cells."""
    table = build(get("libra-perf"), [make_record(**fields) for fields in data])
    text = render(table)
    assert_sound(text)
    width = len(table.header_columns)
    for line in drop_escaped(text).splitlines():
        # Cells with their spans; rules and the frame have none.
        if line.endswith(r"\\") or " & " in line:
            spans = sum(int(n) - 1 for n in re.findall(r"\\multicolumn\{(\d+)\}", line))
            assert line.count("&") + 1 + spans == width, line


@given(data=st.lists(records, min_size=1, max_size=6))
def test_random_records_read_back(data: list[dict[str, Any]], make_record: Make) -> None:
    """Whatever the records hold, CSV reads back to the same labels, printable, and numbers, and Markdown keeps its
    columns."""
    table = build(get("libra-perf"), [make_record(**fields) for fields in data])
    header, *rows = csv.reader(io.StringIO(FORMATS["csv"](table), newline=""))
    assert len(rows) == len(table.rows)
    for line, row in zip(rows, table.rows, strict=True):
        assert len(line) == len(header)
        label = escape_unprintable(row.labels[0])
        assert line[0] == (f"'{label}" if label.startswith(("=", "+", "-", "@")) else label)
        numbers = [cell.value for group in row.cells for cell in group if cell.value is not None]
        read = [
            float(text)
            for name, text in zip(header, line, strict=True)
            if name.startswith("perf") and "status" not in name
        ]
        assert [value for value in read if not math.isnan(value)] == numbers
    lines = [line for line in FORMATS["md"](table).splitlines() if line.startswith("|")]
    assert len(lines) == 2 + len(table.rows) + len(table.footers)
    assert len({re.sub(r"\\.", "", line).count("|") for line in lines}) == 1
    assert FORMATS["text"](table).endswith("\n")


@pytest.fixture
def compile_document(tmp_path: Path, require_program: Callable[..., str]) -> Compile:
    """Compile a document, which fails on an error, and give what TeX prints."""
    pdflatex = require_program("pdflatex")

    def run_latex(document: str) -> str:
        (tmp_path / "table.tex").write_text(document)
        command = [pdflatex, "-interaction=nonstopmode", "-halt-on-error", "-no-shell-escape", "table.tex"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=120, check=False)
        printed = done.stdout.decode(errors="replace")
        assert done.returncode == 0, printed[-3000:]
        assert (tmp_path / "table.pdf").read_bytes().startswith(b"%PDF")
        return printed

    return run_latex


@pytest.mark.parametrize("name", TABLES)
def test_compiles(name: str, wide: list[RunRecord], compile_document: Compile) -> None:
    """Every registered table compiles and fits its paper."""
    assert "Overfull" not in compile_document(standalone(build(get(name), wide)))


def test_long_tables_go_over_pages(
    make_record: Make, make_metrics: Callable[..., Any], compile_document: Compile
) -> None:
    """A table of more lines than a page has is a longtable on pages of A4's height, with its heading on each."""
    records = [make_record(f"n{i}-4d", total=100, metrics=make_metrics(i + 1.0, 2.0, 3.0)) for i in range(150)]
    document = standalone(build(get("summary"), records))
    assert "paperheight=297mm" in document
    assert document.count(r"\toprule") == 2
    said = compile_document(document)
    assert "Overfull" not in said
    assert re.search(r"table\.pdf \([3-5] pages", said)


def test_hostile_names_compile(make_record: Make, make_metrics: Callable[..., Any], compile_document: Compile) -> None:
    """Names with every character that TeX minds, and numbers of every size, compile as well.

    ``compile_document`` fails otherwise.
    """
    records = [
        make_record(f"{HOSTILE}{index}-4d", total=index + 1, metrics=make_metrics(value, value, value), gap=value)
        for index, value in enumerate((0.0, -1.5, 1e-300, 1e300, 123456.789, -4e-12))
    ]
    records += [make_record(chr(code) + "x-4d") for code in range(32, 127)]
    compile_document(standalone(build(get("libra-perf"), records)))
