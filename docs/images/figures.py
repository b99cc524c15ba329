"""Draw the figures that explain concepts: ``python docs/images/figures.py`` writes their SVG files beside itself."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from html import escape
from pathlib import Path

import cwb

INK, LINE, PALE = "#1b2430", "#5b6776", "#8793a3"
#: Fills: neutral, data in, result, second series.
GREY, GREEN, VIOLET, SAND = "#e8edf3", "#dfeee5", "#ece4f1", "#f3ecdf"


def picture(title: str, width: int, height: int, lines: Iterable[str]) -> str:
    """An SVG file with a white ground and tips for arrows."""
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img"'
        f' font-family="Helvetica, Arial, sans-serif" text-anchor="middle" fill="{INK}">',
        f"<title>{escape(title)}</title>",
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
        f'<path d="M0,0 L8,4 L0,8 z" fill="{LINE}"/></marker></defs>',
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
    )
    return "\n".join([*head, *lines, "</svg>", ""])


def box(left: float, top: float, width: float, height: float, fill: str, round_: int = 5) -> str:
    """A rectangle."""
    place = f'x="{left:g}" y="{top:g}" width="{width:g}" height="{height:g}"'
    return f'<rect {place} rx="{round_}" fill="{fill}" stroke="{PALE}"/>'


def text(x: float, y: float, words: str, size: int = 14, *, bold: bool = False, anchor: str = "middle") -> str:
    """A line of text."""
    weight = ' font-weight="bold"' if bold else ""
    return f'<text x="{x:g}" y="{y:g}" font-size="{size}" text-anchor="{anchor}"{weight}>{escape(words)}</text>'


def line(x1: float, y1: float, x2: float, y2: float, *, tip: bool = False, dashed: bool = False) -> str:
    """A line, or an arrow."""
    more = ' marker-end="url(#tip)"' if tip else ""
    more += ' stroke-dasharray="5 4"' if dashed else ""
    return f'<line x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}" stroke="{LINE}" stroke-width="1.4"{more}/>'


def node(x: float, y: float, name: str, fill: str = GREY) -> list[str]:
    """A round node with its name."""
    return [f'<circle cx="{x:g}" cy="{y:g}" r="19" fill="{fill}" stroke="{PALE}"/>', text(x, y + 5, name, 15)]


def labelled_box(left: float, top: float, width: float, fill: str, name: str, *more: str) -> list[str]:
    """A box with a bold first line."""
    rows = [text(left + width / 2, top + 25, name, 15, bold=True)]
    rows += [text(left + width / 2, top + 45 + 17 * i, words, 12) for i, words in enumerate(more)]
    return [box(left, top, width, 74, fill), *rows]


def pipeline() -> str:
    """From an instance to tables."""
    steps = (
        (GREY, "instance", "network, collective,", "or training workload"),
        (GREEN, "method", "a model and a solver,", "or an algorithm"),
        (GREEN, "solution", "schedule or design,", "with a certificate"),
        (VIOLET, "verifier", "replays, simulates,", "recomputes the bound"),
        (GREY, "record", "status, time, bound,", "gap, seconds"),
        (SAND, "reports", "tables, plots,", "one HTML page"),
    )
    lines: list[str] = []
    for i, (fill, name, *more) in enumerate(steps):
        lines += labelled_box(8 + 160 * i, 12, 140, fill, name, *more)
        if i:
            lines.append(line(160 * i - 10, 49, 160 * i + 5, 49, tip=True))
    lines.append(f'<path d="M78,86 V112 H558 V90" fill="none" stroke="{LINE}" marker-end="url(#tip)"/>')
    lines.append(text(318, 130, "the verifier reads the instance itself, and shares no code with the method", 13))
    return picture("From an instance to tables", 960, 142, lines)


def cut() -> str:
    """The data that must leave a set of nodes."""
    places = {"a": (70, 60), "b": (70, 170), "c": (210, 60), "d": (210, 170), "e": (400, 115)}
    lines = [
        f'<ellipse cx="140" cy="115" rx="132" ry="104" fill="{GREEN}" stroke="{PALE}" stroke-dasharray="5 4"/>',
        text(140, 28, "X", 16, bold=True),
    ]
    for a, b in (("a", "b"), ("a", "c"), ("c", "d"), ("b", "d"), ("c", "e"), ("d", "e")):
        (x1, y1), (x2, y2) = places[a], places[b]
        lines.append(line(x1, y1, x2, y2))
    lines += [text(312, 74, "25 GB/s"), text(312, 170, "25 GB/s")]
    for name, (x, y) in places.items():
        lines += node(x, y, name, "#ffffff")
    lines += [
        text(600, 88, "In an all-gather of 1 GB, rank e needs", 15),
        text(600, 110, "the shards of the four ranks in X: 0.8 GB.", 15),
        text(600, 138, "50 GB/s leave X, so that no schedule", 15),
        text(600, 160, "takes less than 16 ms.", 15),
    ]
    return picture("A cut that proves a bound", 760, 232, lines)


def timing() -> str:
    """The same schedule in four models of time, as the simulator computes them."""
    run = cwb.solve(
        "line(3, bandwidth='10 GB/s', latency='2 us')", "direct", collective="broadcast", size="120 kB", chunks=2
    )
    lines = [text(380, 22, "Two chunks of 60 kB from rank 0 to ranks 1 and 2; 10 GB/s and 2 µs for each link", 15)]
    top = 44.0
    for mode in ("congestion-aware", "cut-through", "fair-share", "alpha-beta"):
        trace = cwb.simulate(run, mode=mode)
        sends = run.schedule.sends
        hops = zip(sends.path_links, trace.hop_start_s * 1e6, trace.hop_end_s * 1e6, strict=True)
        lines += strip(top, mode, trace.completion_s * 1e6, list(hops))
        top += 86
    lines += axis(top, 36)
    return picture("Four models of time", 780, int(top + 42), lines)


#: Pixels for a microsecond, and where time 0 is.
_SCALE, _ZERO = 14.0, 235.0


def strip(top: float, mode: str, done: float, hops: list[tuple[int, float, float]]) -> Iterator[str]:
    """Two rows of bars: when both links are occupied."""
    yield text(12, top + 30, mode, 15, bold=True, anchor="start")
    rows = {link: row for row, link in enumerate(sorted({int(link) for link, _, _ in hops}))}
    for row, name in enumerate(("link 0 → 1", "link 1 → 2")):
        yield text(_ZERO - 8, top + 19 + 32 * row, name, 12, anchor="end")
    together: dict[tuple[int, float], int] = {}
    for index, (link, start, end) in enumerate(hops):
        row = rows[int(link)]
        place = together[row, start] = together.get((row, start), -1) + 1
        same = sum(1 for other, begin, _ in hops if rows[int(other)] == row and begin == start)
        tall = 26 / same
        fill = (GREEN, SAND)[index in (1, 4, 5)]
        yield box(_ZERO + _SCALE * start, top + 2 + 32 * row + tall * place, _SCALE * (end - start), tall, fill, 2)
    x = _ZERO + _SCALE * done
    yield line(x, top, x, top + 62, dashed=True)
    yield text(x + 4, top + 74, f"{done:g} µs", 12)


def axis(top: float, last: int) -> Iterator[str]:
    """Ticks of the time."""
    yield line(_ZERO, top + 6, _ZERO + _SCALE * last, top + 6, tip=True)
    for tick in range(0, last, 6):
        x = _ZERO + _SCALE * tick
        yield line(x, top + 2, x, top + 10)
        yield text(x, top + 26, f"{tick} µs", 12)


def epochs() -> str:
    """A schedule on a grid of epochs: an all-gather on a ring of four, both ways round."""
    lines = [text(390, 22, "An all-gather on ring(4): which shard each link carries in each epoch", 15)]
    left, top, wide, tall = 120, 66, 200, 30
    for epoch in range(2):
        lines.append(text(left + wide * (epoch + 0.5), top - 10, f"epoch {epoch}", 14, bold=True))
    for rank in range(4):
        for way, step in enumerate((1, -1)):
            y = top + tall * (2 * rank + way)
            lines.append(text(left - 10, y + 20, f"{rank} → {(rank + step) % 4}", 13, anchor="end"))
            for epoch in range(2):
                shard = (rank - step * epoch) % 4
                carries = epoch == 0 or way == 0
                lines.append(
                    box(left + wide * epoch, y, wide, tall, (GREEN, GREY, SAND, VIOLET)[shard], 0)
                    if carries
                    else box(left + wide * epoch, y, wide, tall, "#ffffff", 0)
                )
                if carries:
                    lines.append(text(left + wide * (epoch + 0.5), y + 20, f"shard {shard}", 13))
    lines += [
        text(660, 130, "In epoch 0 every rank sends its", 13),
        text(660, 150, "own shard to both neighbours.", 13),
        text(660, 180, "In epoch 1 the shard from the left", 13),
        text(660, 200, "moves on, and every rank has all.", 13),
    ]
    return picture("A grid of epochs", 780, top + 8 * tall + 16, lines)


def fabric() -> str:
    """The notation of fabrics, block by block."""
    lines = [text(390, 26, "RI(4)_FC(3)_SW(2): 24 NPUs", 17, bold=True)]
    for pod in range(2):
        left = 30 + 370 * pod
        lines.append(box(left, 120, 350, 212, "#ffffff", 8))
        lines.append(line(left + 175, 120, 390, 84))
        centres = [(left + 62, 200), (left + 288, 200), (left + 175, 284)]
        lines += [line(*centres[a], *centres[b]) for a, b in ((0, 1), (1, 2), (0, 2))]
        for x, y in centres:
            lines += ring(x, y)
    lines += [box(330, 50, 120, 34, VIOLET), text(390, 72, "switch", 14)]
    lines += [
        text(
            390,
            356,
            "RI(4): rings of four NPUs · FC(3): three rings, all pairs connected · SW(2): two of these on a switch",
            13,
        ),
        text(390, 376, "every NPU has links in each dimension; the first dimension is the innermost", 13),
    ]
    return picture("The notation of fabrics", 780, 388, lines)


def ring(x: float, y: float) -> list[str]:
    """Four NPUs on a ring."""
    lines = [f'<circle cx="{x:g}" cy="{y:g}" r="38" fill="{GREEN}" stroke="{PALE}"/>']
    lines += [
        f'<circle cx="{x + dx:g}" cy="{y + dy:g}" r="9" fill="#ffffff" stroke="{LINE}"/>'
        for dx, dy in ((0, -38), (38, 0), (0, 38), (-38, 0))
    ]
    return lines


FIGURES = {"pipeline": pipeline, "cut": cut, "timing": timing, "epochs": epochs, "fabric": fabric}

if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__.partition("\n")[0]).parse_args()
    for name, draw in FIGURES.items():
        Path(__file__).with_name(f"{name}.svg").write_text(draw(), encoding="utf-8")
