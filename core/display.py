"""How values of the vocabulary show themselves: in one short line, and as a small table in a notebook."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from html import escape
from typing import Any

from .errors import shown
from .text import printable


class Shown:
    """A dataclass with facts: numbers and names that say what it is, however large it is."""

    def _facts(self) -> Mapping[str, object]:
        """What is shown, by name, here the fields; what is None is left out, what is long is cut."""
        own: Any = self
        return {field.name: getattr(self, field.name) for field in fields(own)}

    def __repr__(self) -> str:
        facts = (f"{name}={shown(value)}" for name, value in self._facts().items() if value is not None)
        return f"{type(self).__name__}({', '.join(facts)})"

    def _repr_html_(self) -> str:
        rows = (
            f"<tr><th>{name.replace('_', ' ')}</th><td>{_text(value)}</td></tr>"
            for name, value in self._facts().items()
            if value is not None
        )
        return f"<table><caption>{type(self).__name__}</caption><tbody>{''.join(rows)}</tbody></table>"


def _text(value: object) -> str:
    """A value as text that is text in HTML too."""
    number = isinstance(value, int) and not isinstance(value, bool)
    text = f"{value:,}" if number else value if isinstance(value, str) else shown(value)
    return escape(printable(text if len(text) <= 200 else f"{text[:199]}…"))
