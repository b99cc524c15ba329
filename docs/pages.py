"""The pages of the documentation, their fenced blocks, and the comparison of what they show with what is printed."""

from __future__ import annotations

import json
import math
import re
from itertools import zip_longest
from pathlib import Path

ROOT = Path(__file__).parents[1]
_FENCE = re.compile(
    r"^(?P<fence>`{3,}|:{3,})(?P<language>[^\n`]*)\n(?P<body>.*?)^(?P=fence)[ \t]*$", re.MULTILINE | re.DOTALL
)


def page_texts() -> dict[str, str]:
    """Return every page by its path from the root, as a reader of the repository or of the documentation reads it."""
    found = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "docs").rglob("*.ipynb")]
    names = sorted(path.relative_to(ROOT).as_posix() for path in found)
    hidden = ("docs/_build/", "docs/jupyter_execute/")
    return {n: _text(ROOT / n) for n in names if not n.startswith(hidden) and ".ipynb_checkpoints" not in n}


def _text(path: Path) -> str:
    """Return the text of a page; of a notebook that of its cells."""
    if path.suffix != ".ipynb":
        return path.read_text(encoding="utf-8")
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return "\n\n".join("".join(cell["source"]) for cell in cells)


def fenced_blocks(text: str, *languages: str) -> list[str]:
    """Return the fenced blocks of a page in some languages."""
    return [match["body"] for match in _FENCE.finditer(text) if match["language"].strip() in languages]


def same(shown: str, printed: str) -> bool:
    """Compare two lines, but for spaces and rules, the last digits of numbers, and seconds of the machine.

    Seconds have three decimals, and stand in a row or phrase of their own or in the last two columns of a table.
    """
    pairs = list(zip_longest(_words(shown), _words(printed), fillvalue=""))
    timed = len(pairs) if _OF_TIME.search(shown) else 2
    return all(
        a == b or _near(a, b) or (place >= len(pairs) - timed and _seconds(a) and _seconds(b))
        for place, (a, b) in enumerate(pairs)
    )


#: Rows and phrases of seconds.
_OF_TIME = re.compile(r"\bseconds\b|\((build|verify|solve|transfer|simulate)\b|^│ +│ +\d+\.\d{3}, ")


def _words(line: str) -> list[str]:
    """Split a line; rules of tables, of LaTeX too, and spaces depend on the widths of numbers."""
    return re.sub(r"[─━┌┬┐└┴┘├┼┤┏┳┓┡╇┩│┃|,&]|-{3,}|\\\\$", " ", line).split()


def _seconds(text: str) -> bool:
    """Check if a word may be a time of the machine."""
    return re.fullmatch(r"\(?\d+\.\d{3}\)?", text) is not None


def _near(shown: str, printed: str) -> bool:
    """Check if two words are numbers within solver tolerance; a gap of zero may print as rounding noise."""
    try:
        a, b = float(shown), float(printed)
    except ValueError:
        return False
    return math.isclose(a, b, rel_tol=1e-6, abs_tol=1e-9) or (min(a, b) <= 0 and abs(a - b) < 1e-4)
