"""Formats of tables: one function each, from a finished table to text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from ..core.errors import InputError
from . import csv_, html_table, latex, markdown, text
from .table import Table

FORMATS: Mapping[str, Callable[[Table], str]] = {
    "latex": latex.render,
    "md": markdown.render,
    "csv": csv_.render,
    "text": text.render,
    "html": html_table.render,
}

_SUFFIXES = {".tex": "latex", ".md": "md", ".csv": "csv", ".txt": "text", ".html": "html"}


def format_of(path: Path) -> str:
    """Return the format of a file by its suffix."""
    if path.suffix.lower() not in _SUFFIXES:
        expected = ", ".join(_SUFFIXES)
        raise InputError(f"unknown suffix; expected {expected}, or give --format", source=str(path))
    return _SUFFIXES[path.suffix.lower()]
