"""Text of files and people, written so that a terminal, a log or a table takes it for text and nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches

#: Controls, by which a terminal is told to do things; what turns the direction of text around or cannot be seen; halves
#: of surrogate pairs. Line feeds and tabs are in a class of their own.
_UNSAFE = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e007f"
)
_IN_LINES = re.compile(f"[{_UNSAFE}]")
_IN_A_LINE = re.compile(f"[\t\n{_UNSAFE}]")


def printable(text: str, *, lines: bool = False) -> str:
    r"""Write characters that are not to be seen as Python does: an escape is ``\x1b``.

    Parameters
    ----------
    text : str
        What may come from a file.
    lines : bool
        Whether it is more than one line: line feeds and tabs stay.
    """
    if text.isprintable():
        return text
    return (_IN_LINES if lines else _IN_A_LINE).sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """End of an error message: the known word that is nearest to one that was written, or nothing.

    Case, hyphens, underscores and spaces make no difference.
    """
    plain = {_letters(other): other for other in known}
    close = get_close_matches(_letters(word), plain, n=1)
    return f"; did you mean {plain[close[0]]!r}?" if close else ""


def one_of(word: str, known: Iterable[str]) -> str:
    """End of an error message: the known words, and the one that is nearest to one that was written."""
    known = list(known)
    return f"; expected one of {', '.join(known)}{did_you_mean(word, known)}"


def _letters(word: str) -> str:
    return re.sub(r"[-_ ]", "", word.lower())
