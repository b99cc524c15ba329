"""Execute the notebooks of the tutorials: ``python docs/notebooks.py`` stores what they print, ``--check`` compares it.

A notebook runs in an empty folder, with the commands of this Python's environment in reach.
Figures are not compared, and of text neither spaces nor seconds with three decimals nor the last digits of numbers.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from pages import same

if TYPE_CHECKING:
    import nbformat

FOLDER = Path(__file__).parent / "tutorials"
#: One cell takes at most this long.
SECONDS = 120
#: What switches bold and italic on and off.
_STYLE = re.compile(r"\x1b\[[0-9;]*m")


def execute_notebook(path: Path) -> nbformat.NotebookNode:
    """Run a notebook in a folder of its own; a cell that raises ends the program."""
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        client = NotebookClient(notebook, timeout=SECONDS, resources={"metadata": {"path": folder}})
        client.execute()
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        if cell.cell_type == "code":
            cell.outputs = merge_streams(cell.outputs)
            for output in cell.outputs:
                if output.output_type == "stream":
                    output.text = _STYLE.sub("", output.text)
    return notebook


def merge_streams(outputs: list[nbformat.NotebookNode]) -> list[nbformat.NotebookNode]:
    """Join the pieces in which a stream arrives."""
    kept: list[nbformat.NotebookNode] = []
    for output in outputs:
        last = kept[-1] if kept else None
        if last is not None and output.output_type == last.output_type == "stream" and output.name == last.name:
            last.text += output.text
        else:
            kept.append(output)
    return kept


def printed_lines(notebook: nbformat.NotebookNode) -> list[str]:
    """Return all lines of text that the cells print or show."""
    texts = [
        output.text if output.output_type == "stream" else output.get("data", {}).get("text/plain", "")
        for cell in notebook.cells
        for output in cell.get("outputs", [])
        if "image/png" not in output.get("data", {}) and "image/svg+xml" not in output.get("data", {})
    ]
    return [line for text in texts for line in text.splitlines()]


def differences(stored: list[str], now: list[str]) -> list[str]:
    """Return the lines in which two executions differ."""
    if len(stored) != len(now):
        return [f"{len(stored)} lines are stored, {len(now)} are printed"]
    return [f"stored: {a}\nprinted: {b}" for a, b in zip(stored, now, strict=True) if not same(a, b)]


def main(names: list[str], *, check: bool) -> int:
    """Store or compare; the exit status is 1 where something differs."""
    import nbformat

    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    os.environ.update({"COLUMNS": "80"})
    status = 0
    for path in sorted(FOLDER.glob("*.ipynb")):
        if names and path.stem not in names:
            continue
        notebook = execute_notebook(path)
        if not check:
            nbformat.write(notebook, path)
            continue
        for line in differences(printed_lines(nbformat.read(path, as_version=4)), printed_lines(notebook)):
            print(f"{path.name}: {line}", file=sys.stderr)
            status = 1
    return status


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", help="notebooks; by default all")
    parser.add_argument("--check", action="store_true", help="compare, with exit status 1 where something differs")
    asked = parser.parse_args()
    sys.exit(main(asked.names, check=asked.check))
