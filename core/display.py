"""Display of values as one short line, and as a small table in a notebook."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from .errors import show_value
from .text import markup, printable


class DisplayMixin:
    """Dataclass that shows a few facts, numbers and names, however large it is."""

    def _facts(self) -> Mapping[str, object]:
        """Return the fields to show by name; None is left out, long values are cut."""
        own: Any = self
        return {field.name: getattr(self, field.name) for field in fields(own)}

    def __repr__(self) -> str:
        facts = (f"{name}={show_value(value)}" for name, value in self._facts().items() if value is not None)
        return f"{type(self).__name__}({', '.join(facts)})"

    def _repr_html_(self) -> str:
        rows = (
            f"<tr><th>{name.replace('_', ' ')}</th><td>{_text(value)}</td></tr>"
            for name, value in self._facts().items()
            if value is not None
        )
        return f"<table><caption>{type(self).__name__}</caption><tbody>{''.join(rows)}</tbody></table>"


def _text(value: object) -> str:
    number = isinstance(value, int) and not isinstance(value, bool)
    text = f"{value:,}" if number else value if isinstance(value, str) else show_value(value)
    return markup(printable(text if len(text) <= 200 else f"{text[:199]}…"))
