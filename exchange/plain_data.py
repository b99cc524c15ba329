"""JSON and YAML files as plain data, without aliases, deep nesting or duplicate keys, and checked values of them."""

from fractions import Fraction
from pathlib import Path
from typing import Any

import yaml

from ..core.errors import InputError, show_value
from ..core.files import read_text
from ..core.strict_json import parse_json

#: A parser in Python reads this much in a fraction of a second; configuration files are a thousand times smaller.
MAX_YAML_BYTES = 64 * 2**10
_MAX_YAML_DEPTH = 32
_MAX_KEYS = 10_000


def read_object(path: Path, max_bytes: int) -> dict[str, Any]:
    """Read a JSON object of at most so many bytes; the caller names the file in errors."""
    return to_object(parse_json(read_text(path, max_bytes).encode(), _MAX_KEYS))


def to_object(value: Any, place: str | None = None) -> dict[str, Any]:
    """Return a value that must be an object."""
    if not isinstance(value, dict):
        raise InputError(f"{show_value(value)}; expected an object", place=place)
    return value


def to_integer(value: Any, place: str, low: int, high: int = 10**6) -> int:
    """Return a value that must be an integer of a range."""
    if type(value) is not int or not low <= value <= high:
        raise InputError(f"{show_value(value)}; expected an integer from {low} to {high:,}", place=place)
    return value


def to_number(value: Any, place: str | None, most: float = 1e300) -> Fraction:
    """Return a value that must be a number, exactly; a float counts as its shortest decimal text."""
    if type(value) not in (int, float) or not 0 <= value <= most:
        raise InputError(f"{show_value(value)}; expected a number that is not negative", place=place)
    return Fraction(repr(value))


def read_yaml(path: Path) -> dict[str, Any]:
    """Read a YAML mapping of plain data; every scalar is the text that was written, so that decimals stay exact."""
    text = read_text(path, MAX_YAML_BYTES)
    try:
        node = yaml.compose(text, Loader=_PlainLoader)
        data = _plain(node)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"line {mark.line + 1}, column {mark.column + 1}" if mark else None
        raise InputError(f"not YAML: {error.problem or error.context}", place=place) from None
    except yaml.YAMLError as error:
        raise InputError(f"not YAML: {str(error).splitlines()[0]}") from None
    except RecursionError:
        raise InputError("not YAML that cwb reads: nested too deeply") from None
    if not isinstance(data, dict):
        raise InputError("expected a YAML mapping, such as 'Topology: [ Ring, Switch ]'")
    return data


class _PlainLoader(yaml.BaseLoader):
    """A loader that knows text, lists and mappings, and rejects aliases and deep nesting.

    A few lines of aliases can stand for gigabytes, and a few thousand brackets take minutes.
    """

    depth = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """Compose a node unless it is an alias, or too deep."""
        if self.check_event(yaml.AliasEvent):
            event = self.peek_event()  # type: ignore[no-untyped-call]
            raise InputError("an alias; expected plain data", place=f"line {event.start_mark.line + 1}")
        if self.depth == _MAX_YAML_DEPTH:
            raise InputError(f"not YAML that cwb reads: nested too deeply, beyond {_MAX_YAML_DEPTH} lists")
        self.depth += 1
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node


def _plain(node: yaml.Node | None) -> Any:
    if isinstance(node, yaml.ScalarNode):
        return node.value
    if isinstance(node, yaml.SequenceNode):
        return [_plain(entry) for entry in node.value]
    if not isinstance(node, yaml.MappingNode):
        return None
    data: dict[str, Any] = {}
    for key, value in node.value:
        place = f"line {key.start_mark.line + 1}"
        if not isinstance(key, yaml.ScalarNode):
            raise InputError("a key is not a text", place=place)
        if key.value in data:
            raise InputError(f"key {key.value[:60]!r} is given twice", place=place)
        data[key.value] = _plain(value)
    return data
