"""Text of files is printed as text."""

from __future__ import annotations

import pytest
from cwb.core.text import escape_unprintable


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("München, 東京, µs, 🙂", "München, 東京, µs, 🙂"),
        ("\x1b]0;title\x07", r"\x1b]0;title\x07"),
        ("a\r\x9b31mb\x7f", r"a\r\x9b31mb\x7f"),
        ("\u202egnp.exe\u200b\ud800", r"\u202egnp.exe\u200b\ud800"),
        ("a\n\tb", r"a\n\tb"),
    ],
)
def test_what_is_not_to_be_seen_is_written_out(text, shown):
    """Controls, turned text, invisible characters and halves of pairs are escaped; everything else stays."""
    assert escape_unprintable(text) == shown


def test_lines_stay():
    """Of several lines line feeds and tabs stay, and nothing else that a terminal obeys."""
    assert escape_unprintable("a\n\tb\x1b[2J\r", lines=True) == "a\n\tb\\x1b[2J\\r"
