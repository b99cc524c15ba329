"""Display of values as one short line, and as a small table in a notebook."""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, ClassVar

from .errors import show_value
from .text import escape_html, escape_unprintable


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


class AnswerMixin(DisplayMixin):
    """Answer of a method; a record holds its name and size alone, since it may have millions of sends."""

    name_in_records: ClassVar[str]

    def __init_subclass__(cls, name: str) -> None:
        cls.name_in_records = name

    @abstractmethod
    def _size(self) -> dict[str, Any]:
        """Return the counts, or the whole of a small answer, as plain data."""

    def to_json(self) -> dict[str, Any]:
        """Return the answer, or the size of a large one, as plain data for a record."""
        return {"answer": self.name_in_records, **self._size()}

    def _facts(self) -> Mapping[str, object]:
        return self._size()


def _text(value: object) -> str:
    number = isinstance(value, int) and not isinstance(value, bool)
    text = f"{value:,}" if number else value if isinstance(value, str) else show_value(value)
    return escape_html(escape_unprintable(text if len(text) <= 200 else f"{text[:199]}…"))
