"""Draw the questions that lead to a method: ``python docs/images/choose.py`` writes ``choose.svg`` beside itself."""

from __future__ import annotations

import argparse
from html import escape
from pathlib import Path

#: Questions from above to below; whose answer is yes is led to the methods beside it.
QUESTIONS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("Is the network|still to be designed?", "bandwidth of its dimensions", ("libra", "libra-codesign")),
    ("Is only a bound wanted,|and no schedule?", "no schedule can be faster", ("forestcoll-lp", "all-to-all-mcf")),
    ("Are the ranks sites of|a wide-area network?", "all-reduce on a few trees", ("mtree", "mtree-repair")),
    ("A reduce, or several|collectives at once?", "any collectives, any links", ("pccl",)),
    ("All-to-all, broadcast,|gather or scatter?", "proved; for many ranks", ("teccl", "pccl")),
    ("Is it a fabric of dimensions,|such as RI(4)_SW(32)?", "orders of chunks", ("themis", "blueconnect")),
    ("Is the data large, so that|only throughput counts?", "trees, the proved optimum", ("forestcoll",)),
    ("Is it an all-reduce or|a reduce-scatter?", "by levels; over any links", ("hierarchical", "pccl")),
    ("An all-gather of|a hundred ranks or fewer?", "schedule, proved in epochs", ("teccl",)),
    ("Direct links of|one bandwidth?", "fewest steps, fractions", ("bfb",)),
    ("Else: thousands of ranks,|any links", "schedule, proved at a bound", ("tacos",)),
)

#: Collectives with which a reader can come to each answer, and an instance of its kind.
CASES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("gpt-3-4d", ("",)),
    ("torus(4,4)", ("all_gather", "reduce_scatter", "all_reduce", "all_to_all")),
    ("gscale", ("all_reduce",)),
    ("torus(4,4)", ("reduce",)),
    ("torus(4,4)", ("all_to_all", "broadcast", "gather", "scatter")),
    ("RI(4)_FC(8)", ("all_gather", "reduce_scatter", "all_reduce")),
    ("dgx_h100(boxes=2)", ("all_gather", "reduce_scatter", "all_reduce")),
    ("dgx_h100(boxes=2)", ("all_reduce", "reduce_scatter")),
    ("dgx_h100(boxes=2)", ("all_gather",)),
    ("torus(4,4)", ("all_gather",)),
    ("mesh(16,16)", ("all_gather",)),
)
WIDTH, ROW, GAP, EDGE = 640, 62, 22, 8
LEFT, RIGHT = 285, 275


def svg() -> str:
    """The figure."""
    height = len(QUESTIONS) * (ROW + GAP) - GAP + 2 * EDGE
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img"'
        ' font-family="Helvetica, Arial, sans-serif" text-anchor="middle" fill="#1b2430">',
        "<title>Questions that lead to a method</title>",
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
        '<path d="M0,0 L8,4 L0,8 z" fill="#5b6776"/></marker></defs>',
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
    ]
    for index, question in enumerate(QUESTIONS):
        lines += row(EDGE + index * (ROW + GAP), *question, last=index == len(QUESTIONS) - 1)
    return "\n".join([*lines, "</svg>", ""])


def row(top: int, question: str, what: str, methods: tuple[str, ...], *, last: bool) -> list[str]:
    """A question, the methods that it leads to, and the way to the next one."""
    middle, right = top + ROW / 2, WIDTH - EDGE - RIGHT
    names = " · ".join(methods)
    lines = [box(EDGE, top, LEFT, "#e8edf3", 24 if last else 6)]
    lines += [text(EDGE + LEFT / 2, middle - 5 + 20 * i, part, 17) for i, part in enumerate(question.split("|"))]
    lines += [box(right, top, RIGHT, "#dfeee5", 6), text(right + RIGHT / 2, middle - 5, what, 15)]
    lines.append(text(right + RIGHT / 2, middle + 17, names, 17 if len(names) < 24 else 15, "bold"))
    lines.append(arrow(EDGE + LEFT, middle, right - 2, middle))
    if not last:
        lines.append(text((EDGE + LEFT + right) / 2, middle - 6, "yes", 14))
        lines.append(arrow(EDGE + LEFT / 2, top + ROW, EDGE + LEFT / 2, top + ROW + GAP - 2))
        lines.append(text(EDGE + LEFT / 2 + 16, top + ROW + 16, "no", 14))
    return lines


def box(left: float, top: float, width: float, colour: str, round_: int) -> str:
    """A box with a border."""
    place = f'x="{left:g}" y="{top:g}" width="{width:g}" height="{ROW}"'
    return f'<rect {place} rx="{round_}" fill="{colour}" stroke="#8793a3"/>'


def text(x: float, y: float, words: str, size: int, weight: str = "normal") -> str:
    """A line of text around a point."""
    return f'<text x="{x:g}" y="{y:g}" font-size="{size}" font-weight="{weight}">{escape(words)}</text>'


def arrow(x1: float, y1: float, x2: float, y2: float) -> str:
    """An arrow from one point to another."""
    ends = f'x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}"'
    return f'<line {ends} stroke="#5b6776" stroke-width="1.5" marker-end="url(#tip)"/>'


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__.partition("\n")[0]).parse_args()
    Path(__file__).with_suffix(".svg").write_text(svg(), encoding="utf-8")
