"""The pages, and the fenced blocks in them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_FENCE = re.compile(
    r"^(?P<fence>`{3,}|:{3,})(?P<language>[^\n`]*)\n(?P<body>.*?)^(?P=fence)[ \t]*$", re.MULTILINE | re.DOTALL
)


def read(path: Path) -> str:
    """Text of a page; of a notebook its cells."""
    if path.suffix != ".ipynb":
        return path.read_text(encoding="utf-8")
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return "\n\n".join("".join(cell["source"]) for cell in cells)


@pytest.fixture(scope="session")
def root() -> Path:
    """Root of the repository."""
    return ROOT


@pytest.fixture(scope="session")
def pages() -> dict[str, str]:
    """Every page by its path from the root: what a reader of the repository or of the documentation reads."""
    found = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "docs").rglob("*.ipynb")]
    names = sorted(path.relative_to(ROOT).as_posix() for path in found)
    hidden = ("docs/_build/", "docs/jupyter_execute/")
    return {n: read(ROOT / n) for n in names if not n.startswith(hidden) and ".ipynb_checkpoints" not in n}


@pytest.fixture(scope="session")
def blocks(pages: dict[str, str]) -> Callable[..., list[tuple[str, str]]]:
    """(page, text) of the fenced blocks in a language."""

    def find(*languages: str) -> list[tuple[str, str]]:
        return [
            (name, match["body"])
            for name, text in pages.items()
            for match in _FENCE.finditer(text)
            if match["language"].strip() in languages
        ]

    return find
