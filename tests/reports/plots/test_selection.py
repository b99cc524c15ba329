"""The plot and the tables of a selection: reproducible, whole, with every range."""

from __future__ import annotations

import csv
import io

import pytest
from cwb.reports.plots.look import look, to_bytes
from cwb.reports.plots.studies import draw_selection
from cwb.reports.studies import selection_csv, selection_markdown, selection_rows

pytestmark = pytest.mark.slow  # plots are drawn

SIZES = [2**k for k in range(10, 31)]
LONG = "a-method-with-a-name-that-nobody-reads option=value, 4 chunks, of 1,048,576 B"
FOUND = {
    "instance": "a machine | with a name that is much longer than any plot of a column's width is wide",
    "collective": "all_reduce",
    "ranks": 1024,
    "sizes": SIZES,
    "curves": [
        {"schedule": name, "seconds": [latency + size / rate for size in SIZES]}
        for name, latency, rate in (("direct", 1e-6, 1e9), (LONG, 1e-5, 1e11), ("ring", 1e-4, 1e10))
    ],
    "ranges": [
        {"min_bytes": low, "max_bytes": high, "schedule": name, "seconds": [1e-6, 1e-5], "algbw_GBps": [1.0, 2.5],
         "bound_s": [5e-7, 9e-6], "gap": [0.5, 0.1], "steps": 10, "file": f"all_reduce-{number}.xml"}
        for number, (low, high, name) in enumerate([(1024, 9090, "direct"), (9091, 2**30, LONG)], start=1)
    ],
    "crossovers": [9091],
}  # fmt: skip


def test_the_same_selection_makes_the_same_bytes():
    """Drawn twice, the file is the same."""
    with look():
        one, other = (to_bytes(draw_selection(FOUND), "svg") for _ in range(2))
    assert one == other


def test_nothing_is_cut():
    """Names, ticks and the legend lie inside of the plot; the crossover is a line, and every curve is there."""
    from matplotlib.text import Text

    with look():
        figure = draw_selection(FOUND)
        figure.canvas.draw()
        (axes,) = figure.axes
        frame = figure.bbox.padded(1.0)
        low, high = axes.get_xlim()
        ticks = [tick.label1 for tick in axes.xaxis.get_major_ticks() if not low <= tick.get_loc() <= high]
        for text in figure.findobj(Text):
            if text.get_visible() and text.get_text() and text not in ticks:
                box = text.get_window_extent()
                assert frame.x0 <= box.x0, text.get_text()
                assert box.x1 <= frame.x1, text.get_text()
    assert len(axes.lines) == len(FOUND["curves"]) + 1
    assert [line.get_xdata()[0] for line in axes.lines if len(line.get_xdata()) == 2] == [9091]


def test_tables_have_every_range():
    """Markdown and CSV have a row for each range; CSV has full numbers."""
    assert [row[:3] for row in selection_rows(FOUND)] == [
        ("1,024", "9,090", "direct"),
        ("9,091", "1,073,741,824", LONG),
    ]
    lines = selection_markdown(FOUND).splitlines()
    assert len(lines) == 4
    assert {line.count(" | ") for line in lines} == {9}
    assert selection_rows(FOUND)[0][5:9] == ("0.5", "9", "50", "10")
    (first, second) = csv.DictReader(io.StringIO(selection_csv(FOUND)))
    assert (first["max_bytes"], second["min_bytes"], second["last_GBps"]) == ("9090", "9091", "2.5")
