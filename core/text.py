"""Text from files and users, escaped for terminals, logs and tables."""

import html
import re

#: Controls, by which a terminal is told to do things; what turns the direction of text around or cannot be seen; halves
#: of surrogate pairs, and code points that are no characters. Line feeds and tabs are in a class of their own.
_UNSAFE = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff"
    "\ufeff\ufff9-\ufffb\ufffe\uffff"
    "\U000e0000-\U000e007f"
)
_IN_LINES = re.compile(f"[{_UNSAFE}]")
_IN_A_LINE = re.compile(f"[\t\n{_UNSAFE}]")


def escape_unprintable(text: str, *, lines: bool = False) -> str:
    r"""Escape unprintable characters as Python does, such as ``\x1b``; ``lines`` keeps line feeds and tabs."""
    if text.isprintable():
        return text
    return (_IN_LINES if lines else _IN_A_LINE).sub(lambda match: match[0].encode("unicode_escape").decode(), text)


def escape_html(text: object) -> str:
    """Escape text for HTML and SVG, attributes included; line feeds and tabs stay."""
    return html.escape(escape_unprintable(str(text), lines=True))
