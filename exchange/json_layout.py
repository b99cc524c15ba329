"""JSON for readers: indented, short values on one line, as in the instances of cwb."""

import json
from collections.abc import Mapping
from typing import Any

WIDTH = 120


def readable_json(data: Any) -> str:
    """Write plain data as JSON text that ends with a newline."""
    return _lay_out(data, indent=0, offset=0) + "\n"


def _lay_out(value: Any, *, indent: int, offset: int) -> str:
    """Lay out one value; ``offset``: the columns that its line has already, with room for a comma behind it."""
    line = json.dumps(value, ensure_ascii=False, allow_nan=False)
    if offset + len(line) <= WIDTH or not value or isinstance(value, str | int | float):
        return line
    heads, entries, brackets = [""] * len(value), value, "[]"
    if isinstance(value, Mapping):
        heads = [f"{json.dumps(key, ensure_ascii=False)}: " for key in value]
        entries, brackets = value.values(), "{}"
    inner = indent + 2
    rows = ",\n".join(
        " " * inner + head + _lay_out(entry, indent=inner, offset=inner + len(head) + 1)
        for head, entry in zip(heads, entries, strict=True)
    )
    return f"{brackets[0]}\n{rows}\n{' ' * indent}{brackets[1]}"
