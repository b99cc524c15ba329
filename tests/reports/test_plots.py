"""Plots: valid files, the same bytes twice, everything inside the plot."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from cwb.core.errors import InputError
from cwb.core.record import RunRecord
from cwb.reports.plots import PLOTS, get, plot_format
from cwb.reports.plots.look import COLUMN_IN, look, short
from draws import NIGHTLY

pytestmark = pytest.mark.slow  # plots are drawn

Make = Callable[..., RunRecord]
FORMATS = ("svg", "pdf", "png")


#: The plots of the records that all tests share, drawn once.
_DRAWN: dict[str, bytes] = {}


def svg_of(name: str, wide: list[RunRecord]) -> bytes:
    if name not in _DRAWN:
        _DRAWN[name] = get(name)(wide, "svg")
    return _DRAWN[name]


#: Plots that are drawn as PDF and PNG, and in another process, in every run; the others are at night.
OFTEN = ("bandwidth", "gap-profile", "libra-speedup")


@pytest.mark.parametrize(
    ("name", "form"),
    [
        pytest.param(name, form, marks=() if form == "svg" or name in OFTEN else pytest.mark.nightly)
        for name in PLOTS
        for form in FORMATS
    ],
)
def test_valid_and_reproducible(name: str, form: str, wide: list[RunRecord]) -> None:
    """Every plot is a valid file of each format, and drawing it again gives the same bytes.

    Of SVG :func:`test_the_same_in_another_process` shows the latter. By day the plots of ``OFTEN`` are drawn in all
    formats and in another process, and one of PDF twice; at night all are.
    """
    content = svg_of(name, wide) if form == "svg" else get(name)(wide, form)
    if form != "svg" and (NIGHTLY or (form == "pdf" and name == "bandwidth")):
        assert content == get(name)(wide, form)
    if form == "svg":
        assert b"<!ENTITY" not in content  # so that parsing it is safe
        root = ElementTree.fromstring(content)  # noqa: S314
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        assert b"<dc:date>" not in content
        assert b"<image" not in content  # drawn, not dots
    elif form == "pdf":
        assert content.startswith(b"%PDF-")
        assert content.rstrip().endswith(b"%%EOF")
        assert b"/CreationDate" not in content
        assert b"/Subtype /Type3" not in content
    else:
        assert content.startswith(b"\x89PNG\r\n\x1a\n")
        assert content.endswith(b"IEND\xaeB`\x82")


#: Draws named plots of the records beside it.
DRAW = """
import sys
from pathlib import Path
from cwb.reports.plots import get
from cwb.reports.records import load_records
records = load_records([Path("records.jsonl")])
for name in sys.argv[1:]:
    Path(f"{name}.svg").write_bytes(get(name)(records, "svg"))
"""


def test_the_same_in_another_process(wide: list[RunRecord], tmp_path: Path) -> None:
    """Another process with another hash seed and the user's own settings draws the same bytes."""
    from cwb.core.record import append_record

    for record in wide:
        append_record(tmp_path / "records.jsonl", record)
    (tmp_path / "matplotlibrc").write_text("font.size: 30\naxes.facecolor: red\nsavefig.dpi: 10\n")
    names = PLOTS if NIGHTLY else OFTEN
    command = [sys.executable, "-c", DRAW, *names]
    subprocess.run(command, cwd=tmp_path, check=True, timeout=300, env={"PYTHONHASHSEED": "7", "HOME": str(tmp_path)})
    for name in names:
        assert (tmp_path / f"{name}.svg").read_bytes() == svg_of(name, wide), name


def draw(name: str, records: list[RunRecord]) -> Any:
    module, attribute = PLOTS[name][0].split(":")
    return getattr(import_module(f"cwb.reports.plots.{module}"), attribute)(records)


def ticks_out_of_view(figure: Any) -> Iterator[Any]:
    """Labels that an axis holds for ticks beyond its ends and does not draw."""
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            low, high = sorted(axis.get_view_interval())
            yield from (tick.label1 for tick in axis.get_major_ticks() if not low <= tick.get_loc() <= high)


@pytest.mark.parametrize("name", PLOTS)
def test_nothing_is_cut(name: str, wide: list[RunRecord], make_record: Make) -> None:
    """All text lies inside the plot, with long names, failures and many workloads as well."""
    long = "a_workload_with_a_name_that_nobody_would_want_to_read-4d-and-its-constraints"
    assert_nothing_is_cut(name, [*wide, make_record(long), *(make_record(f"workload-{i}-3d") for i in range(9))])


@pytest.mark.parametrize("name", sorted(set(PLOTS) - {"scaling", "libra-speedup", "libra-allocation"}))
def test_nothing_is_cut_of_little(name: str, make_run: Make) -> None:
    """All text lies inside the plot of a handful of runs, and every axis has at least two ticks with a number."""
    told = [{"objective": 4e-5, "of": "method", "seconds": 0.002}]
    records = [
        make_run(model, t, bytes_=b, history=told)
        for model, t in (("ring", 3e-5), ("bfb", 2e-5))
        for b in (1024.0, 2.0**20)
    ]
    figure = assert_nothing_is_cut(
        name, [*records, make_run("bfb", 2e-5, instance="torus(4,4)", seconds={"solve": 0.05})]
    )
    beyond = set(ticks_out_of_view(figure))
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            labels = [tick.label1 for tick in axis.get_major_ticks()]
            assert (
                sum(bool(label.get_text()) and label not in beyond for label in labels) >= 2
                or axes.get_label() == "<colorbar>"
            )


def assert_nothing_is_cut(name: str, records: list[RunRecord]) -> Any:
    """Draw, check that all text lies inside, and give the figure."""
    from matplotlib.text import Text

    with look():
        figure = draw(name, records)
        renderer = figure.canvas.get_renderer()
        figure.canvas.draw()
        frame = figure.bbox.padded(1.0)
        beyond = set(ticks_out_of_view(figure))
        shown = [text for text in figure.findobj(Text) if text.get_visible() and text.get_text() and text not in beyond]
        assert len(shown) > 10
        for text in shown:
            box = text.get_window_extent(renderer)
            assert frame.x0 <= box.x0 and box.x1 <= frame.x1, text.get_text()
            assert frame.y0 <= box.y0 and box.y1 <= frame.y1, text.get_text()
    return figure


def test_the_paper_fits_a_column(make_record: Make) -> None:
    """Both plots of the paper's five workloads are as wide as a column."""
    workloads = ("gpt-3", "msft-1t", "turing-nlg", "resnet-50", "dlrm")
    records = [make_record(f"{name}-4d", objective) for name in workloads for objective in ("perf", "perf-per-cost")]
    for name in ("libra-allocation", "libra-speedup"):
        with look():
            assert draw(name, records).get_figwidth() == pytest.approx(COLUMN_IN)


def test_allocation_shows_shares_and_marks(make_record: Make) -> None:
    """The bars are EqualBW's and the record's shares from bottom to top; a run without an answer shows its mark."""
    records = [make_record(), make_record(objective="perf-per-cost", status="limit", metrics={})]
    with look():
        (axes,) = draw("libra-allocation", records).axes
    heights = [bar.get_height() for bar in axes.patches]
    assert heights[:4] == [0.25] * 4
    assert heights[4:] == pytest.approx([0.6769, 0.16922, 0.11632, 0.03756])
    assert "t.o." in [text.get_text() for text in axes.texts]


def test_allocation_takes_the_largest_budget(make_record: Make) -> None:
    """Each network is one panel, at the largest budget that has an allocation."""
    records = [make_record(total=100), make_record(total=300), make_record(total=900, status="limit", metrics={})]
    with look():
        (axes,) = draw("libra-allocation", records).axes
    assert axes.get_title(loc="left") == "4D, 300 GB/s per NPU"


def test_speedup_lines(make_record: Make, make_metrics: Callable[..., Any]) -> None:
    """A line goes through the speedups in the order of the budgets, and runs without one are counted."""
    records = [make_record(total=total, metrics=make_metrics(1 + 1 / total)) for total in (500, 100)]
    records.append(make_record(total=700, status="limit", metrics={}))
    with look():
        figure = draw("libra-speedup", records)
    (axes,) = figure.axes
    assert axes.lines[0].get_xydata().tolist() == [[100.0, 1.01], [500.0, 1.002]]
    assert figure.get_suptitle() == "1 of 3 runs have no speedup"


@pytest.mark.parametrize("name", PLOTS)
def test_no_record_fits(name: str, make_record: Make) -> None:
    """Records without what is drawn are an error that says what is expected."""
    with pytest.raises(InputError, match=r"none of 1 records fits; expected \w+"):
        get(name)([make_record(metrics={}, status="limit", objective=None)], "svg")


def test_names_and_suffixes() -> None:
    """An unknown plot or suffix is an error that lists the known ones."""
    with pytest.raises(
        InputError, match=r"expected one of libra-allocation, libra-speedup.*; did you mean 'libra-speedup'"
    ):
        get("libra-speedups")
    with pytest.raises(InputError, match=r"x.jpeg: unknown suffix; expected .svg, .pdf, .png"):
        plot_format(Path("x.jpeg"))
    assert plot_format(Path("a.b/X.PDF")) == "pdf"


def test_short() -> None:
    """A long name keeps its two ends and is no longer than asked for."""
    assert short("gpt-3") == "gpt-3"
    assert len(short("x" * 100)) <= 28
    assert short("begin" + "x" * 100 + "end").startswith("begin")
    assert short("begin" + "x" * 100 + "end").endswith("end")
