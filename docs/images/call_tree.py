"""Draw the calls of ``cwb solve`` from the command to one constraint and on to the printed result.

``python docs/images/call_tree.py`` traces a run and writes ``call_tree.svg`` beside itself, or the file that it names.
"""

from __future__ import annotations

import argparse
import inspect
import sys
from collections.abc import Callable, Iterator
from functools import cache
from html import escape
from pathlib import Path
from types import CodeType, FrameType

ROOT = Path(__file__).parents[2]

#: TE-CCL's constructions would prove this answer without a model.
COMMAND = 'cwb solve --model teccl-milp "ring(3)" --collective all_gather -O start=none'
ARGUMENTS = ["solve", "--model", "teccl-milp", "ring(3)", "--collective", "all_gather", "-O", "start=none", "--quiet"]

#: A call is drawn, with all that lead to it, where one of these begins.
STOPS = {
    ("instances/loader.py", "load"): "the instance",
    ("harness/registry.py", "get"): "the method",
    ("models/teccl/index_sets.py", "index_sets"): "its sets and parameters",
    ("models/teccl/formulations/milp.py", "flow_conservation"): "the equation",
    ("solvers/matrix.py", "compile_matrix"): "rows for HiGHS",
    ("models/teccl/extract.py", "sends_of_model"): "the schedule",
    ("schedules/__init__.py", "verdict_of"): "replayed, bound recomputed",
    ("harness/run.py", "_record"): "the record",
    ("cli/display.py", "summary_table"): "printed",
}

_ROW, _INDENT, _WIDTH = 22, 16, 900

#: File and function of a call.
Call = tuple[str, str]


def trace_calls() -> tuple[list[tuple[tuple[Call, ...], str]], int]:
    """Run the command; return the chain of calls to every stop with its label, and the number of files with calls."""
    from cwb.cli.main import run

    chains: dict[Call, tuple[Call, ...]] = {}
    files: set[str] = set()

    @cache
    def place_of(code: CodeType) -> Call | None:
        path = Path(code.co_filename)
        if not code.co_flags & inspect.CO_OPTIMIZED or not path.is_relative_to(ROOT) or path == Path(__file__):
            return None  # the body of a module or class, a library
        inside = path.relative_to(ROOT)
        return None if inside.parts[0].startswith(".") else (inside.as_posix(), code.co_qualname)

    def place(frame: FrameType) -> Call | None:
        return place_of(frame.f_code)

    def trace(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and (call := place(frame)) is not None:
            files.add(call[0])
            if call in STOPS and call not in chains:
                chains[call] = tuple(_callers(frame, place))

    sys.setprofile(trace)
    try:
        run(ARGUMENTS)
    except SystemExit:
        pass
    finally:
        sys.setprofile(None)
    return [(chain, STOPS[call]) for call, chain in chains.items()], len(files)


def _callers(frame: FrameType, place: Callable[[FrameType], Call | None]) -> Iterator[Call]:
    """Yield the calls that lead to a frame, the first one first; wrappers and generators are left out."""
    calls: list[Call] = []
    at: FrameType | None = frame
    while at is not None:
        call = place(at)
        if call is not None and "<locals>" not in call[1]:
            calls.append(call)
        at = at.f_back
    return reversed(calls)


def rows(chains: list[tuple[tuple[Call, ...], str]]) -> Iterator[tuple[int, Call, str]]:
    """Yield depth, call and label of every call, those that two chains share only once."""
    before: tuple[Call, ...] = ()
    for chain, label in chains:
        shared = 0
        while shared < min(len(before), len(chain) - 1) and before[shared] == chain[shared]:
            shared += 1
        for depth in range(shared, len(chain)):
            yield depth, chain[depth], label if depth == len(chain) - 1 else ""
        before = chain


def svg(chains: list[tuple[tuple[Call, ...], str]]) -> str:
    """Return the figure: a row for each call, indented by its depth."""
    drawn = list(rows(chains))
    height = _ROW * (len(drawn) + 2)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img"'
        ' font-family="Menlo, Consolas, monospace" font-size="13" fill="#1b2430">',
        "<title>Calls from the command to a constraint, to the verifier and to the printed result</title>",
        f'<rect width="{_WIDTH}" height="{height}" fill="#ffffff"/>',
        f'<text x="12" y="{_ROW}" font-weight="bold">$ {escape(COMMAND)}</text>',
    ]
    for number, (depth, (path, name), label) in enumerate(drawn):
        y, x = _ROW * (number + 2), 12 + _INDENT * depth
        if label:
            lines.append(f'<rect x="6" y="{y - 15}" width="{_WIDTH - 12}" height="{_ROW - 2}" rx="4" fill="#dfeee5"/>')
        lines.append(f'<text x="{x}" y="{y}">{escape(name)}</text>')
        lines.append(f'<text x="460" y="{y}" fill="#5a6675">{escape(path)}</text>')
        if label:
            style = 'text-anchor="end" font-style="italic"'
            lines.append(f'<text x="{_WIDTH - 14}" y="{y}" {style}>{escape(label)}</text>')
    return "\n".join([*lines, "</svg>", ""])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("file", nargs="?", type=Path, default=Path(__file__).with_suffix(".svg"))
    target = parser.parse_args().file
    found, files = trace_calls()
    target.write_text(svg(found), encoding="utf-8")
    for chain, label in found:
        print(f"{len(chain):3} calls to {chain[-1][1]} ({label})")
    print(f"{files} files have functions that were called")
