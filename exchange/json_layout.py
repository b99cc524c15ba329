"""JSON for readers: indented, short values on one line, as in the instances of cwb."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

WIDTH = 120
_INDENT = 2


def readable_json(data: Any) -> str:
    """Write plain data as JSON text that ends with a newline."""
    return _lay_out(data, indent=0, offset=0) + "\n"


def _lay_out(value: Any, *, indent: int, offset: int) -> str:
    """Lay out one value; ``offset``: the columns that its line has already, with room for a comma behind it."""
    line = json.dumps(value, ensure_ascii=False, allow_nan=False)
    if offset + len(line) <= WIDTH or not value or isinstance(value, str | int | float):
        return line
    inner = indent + _INDENT
    if isinstance(value, Mapping):
        heads = [f"{json.dumps(key, ensure_ascii=False)}: " for key in value]
        return _enclose("{}", heads, list(value.values()), inner)
    return _enclose("[]", [""] * len(value), value, inner)


def _enclose(brackets: str, heads: Sequence[str], values: Sequence[Any], indent: int) -> str:
    rows = ",\n".join(
        " " * indent + head + _lay_out(value, indent=indent, offset=indent + len(head) + 1)
        for head, value in zip(heads, values, strict=True)
    )
    return f"{brackets[0]}\n{rows}\n{' ' * (indent - _INDENT)}{brackets[1]}"
