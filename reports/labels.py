"""Labels of rows as text for readers, and their natural order."""

from __future__ import annotations

import re
from typing import Any

from .marks import MISSING
from .spec import Key, Label


def label_text(key: Key, label: Label) -> str:
    """Write a label for readers."""
    if label is None:
        return MISSING.text
    if isinstance(label, str):
        return key.display(label)
    if key.form:
        return key.form.show(label)
    return key.words(label) if key.words else repr(label)


def natural(label: Label) -> tuple[Any, ...]:
    """Sort key: numbers before text, and numbers inside text by their value (``gpt-3`` before ``gpt-20``)."""
    if label is None:
        return (2,)
    if not isinstance(label, str):
        return (0, label)
    parts: list[Any] = re.split(r"([0-9]+)", label)
    for i in range(1, len(parts), 2):  # what was split at stands at the odd places
        digits = parts[i].lstrip("0")
        parts[i] = (len(digits), digits)
    return (1, parts, label)
