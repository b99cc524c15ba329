"""Write what pages say of options, metrics, equations and runs: ``python docs/page_blocks.py``.

A block begins with ``<!-- KIND: NAMES -->`` and ends with ``<!-- end of KIND -->``; what is between is written here.
``tests/docs/test_generated.py`` compares.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from cwb.core.method import Metric
from cwb.harness import registry

DOCS = Path(__file__).parent
sys.path.append(str(DOCS))

from equations import declarations  # noqa: E402 (beside this file)
from option_words import describe_options  # noqa: E402
from runs import header  # noqa: E402
from verifier_metrics import GROUPS  # noqa: E402

#: What stands below the metrics of methods, on their pages.
BESIDE = "Records also have the [metrics of the verifier](../metrics.md).\n"

_BLOCK = re.compile(
    r"^<!-- (options|metrics|verified|equations|measured):? ?(.*?) -->\n.*?^<!-- end of \1 -->$", re.M | re.S
)


def options(names: list[str]) -> str:
    """The options of some methods or formulations, one row for those that are the same."""
    rows: dict[tuple[str, ...], list[str]] = {}
    for name in names:
        for option in describe_options(registry.get(name).options):
            default = f"`{option.default}`" if option.default else ""
            rows.setdefault((f"`{option.name}`", option.values, default, option.meaning), []).append(name)
    return table(("option", "values", "default", "meaning"), rows, names)


def metrics(names: list[str]) -> str:
    """The metrics of some methods."""
    rows: dict[tuple[str, ...], list[str]] = {}
    for name in names:
        for cells in described(registry.get(name).metrics.items()):
            rows.setdefault(cells, []).append(name)
    return f"{table(('metric', 'unit', 'meaning'), rows, names)}\n{BESIDE}"


def verifier_metrics(_: list[str]) -> str:
    """Return the metrics of the verifier, grouped by the kind of answer."""
    parts = []
    for heading, group in GROUPS.items():
        rows = {cells: [""] for cells in described(group.items())}
        parts.append(f"## {heading}\n\n{table(('metric', 'unit', 'meaning'), rows, [''])}")
    return "\n".join(parts)


def equations(names: list[str]) -> str:
    """The functions that declare a formulation, each with a row of its golden LP file."""
    (name,) = names
    rows = "".join(f"| `{function}` | {text} | {row} |\n" for function, text, row in declarations(name))
    return f"| function of `{name}` | what it declares | a row in its golden file |\n| --- | --- | --- |\n{rows}"


def measurements(names: list[str]) -> str:
    """Say when, where and by which commands the numbers of a page were made."""
    (page,) = names
    return header(page)


def described(entries: Iterable[tuple[str, Metric]]) -> Iterator[tuple[str, str, str]]:
    """Cells of metrics."""
    for name, metric in entries:
        yield f"`{name}`", metric.unit, metric.meaning


def table(headings: tuple[str, ...], rows: dict[tuple[str, ...], list[str]], names: list[str]) -> str:
    """A table in Markdown, with a column of whose a row is where it is not of all."""
    shared = all(of == names for of in rows.values())
    lines = [(*headings, *(() if shared else ("of",))), ("---",) * (len(headings) + (not shared))]
    for cells, of in rows.items():
        whose = "all" if of == names else ", ".join(f"`{name}`" for name in of)
        lines.append((*(cell.replace("|", "\\|") for cell in cells), *(() if shared else (whose,))))
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


KINDS = {
    "options": options,
    "metrics": metrics,
    "verified": verifier_metrics,
    "equations": equations,
    "measured": measurements,
}


def fill_page(page: str) -> str:
    """Return the page with its blocks as they are now."""

    def block(found: re.Match[str]) -> str:
        kind, names = found[1], found[2]
        head = f"<!-- {kind}: {names} -->" if names else f"<!-- {kind} -->"
        return f"{head}\n\n{KINDS[kind](names.split())}\n<!-- end of {kind} -->"

    return _BLOCK.sub(block, page)


def blocks(page: str) -> Iterator[tuple[str, list[str]]]:
    """Kinds and names of the blocks of a page."""
    for found in _BLOCK.finditer(page):
        yield found[1], found[2].split()


def pages() -> Iterator[Path]:
    """Pages that may have blocks."""
    yield from sorted(path for path in DOCS.rglob("*.md") if "_build" not in path.parts)


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__.partition("\n")[0]).parse_args()
    for path in pages():
        before = path.read_text(encoding="utf-8")
        if (after := fill_page(before)) != before:
            path.write_text(after, encoding="utf-8")
            print(path.relative_to(DOCS.parent))
