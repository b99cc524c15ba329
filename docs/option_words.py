"""Options of methods and formulations in words, for tables of the pages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from cwb.core.fields import default_in_words
from cwb.core.units import UnitKind
from pydantic import BaseModel

_QUANTITIES = {kind.example: kind.label for kind in UnitKind}  #: What a quantity is, by its example.


class Option(NamedTuple):
    """Description of an option."""

    name: str  #: Name as written in ``-O name=value``.
    values: str  #: Allowed values, such as ``integer, 1 to 64``; alternatives in backquotes.
    default: str  #: Empty if the meaning describes the behaviour without the option.
    meaning: str


def describe_options(options: type[BaseModel]) -> Iterator[Option]:
    """Yield the options of a method or formulation, in their order."""
    schema = options.model_json_schema()
    for name, field in options.model_fields.items():
        values = _values(schema["properties"][name], schema.get("$defs", {}))
        yield Option(name, values, default_in_words(options, name), field.description or "")


def _values(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> str:
    """Describe the values that a JSON schema allows."""
    if "$ref" in schema:
        return _values(definitions[schema["$ref"].rpartition("/")[2]], definitions)
    if "anyOf" in schema:
        parts = (_values(part, definitions) for part in schema["anyOf"] if part.get("type") != "null")
        return ", ".join(dict.fromkeys(parts))
    if choices := schema.get("enum", [schema["const"]] if "const" in schema else []):
        return ", ".join(f"`{value}`" for value in choices)
    if examples := schema.get("examples"):
        return ", ".join(f"{_QUANTITIES[each]} such as `{each}`" for each in examples)
    return _by_type(schema, definitions)


def _by_type(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> str:
    match kind := schema.get("type"):
        case "array":
            items = schema.get("items") or schema.get("prefixItems", [{}])[0]
            return f"list of {_plural(_values(items, definitions))}"
        case "integer" | "number":
            return _range(schema, str(kind))
        case "boolean":
            return "`true`, `false`"
    return "text" if kind == "string" else "object"


def _range(schema: Mapping[str, Any], kind: str) -> str:
    least, most = schema.get("minimum"), schema.get("maximum")
    above, below = schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")
    words = []
    if least is not None and most is not None:
        words.append(f"{least:,g} to {most:,g}" if kind == "number" else f"{least:,} to {most:,}")
    elif least is not None:
        words.append(f"at least {least:,}")
    elif most is not None:
        words.append(f"at most {most:,}")
    words += [f"above {above:,}"] if above is not None else []
    words += [f"below {below:,}"] if below is not None else []
    return f"{kind}, {', '.join(words)}" if words else kind


def _plural(values: str) -> str:
    kind, such, rest = values.removeprefix("a ").partition(" such as ")
    if such or kind.startswith("list of "):
        return f"{kind}s{such}{rest}" if such else f"lists{values.removeprefix('list')}"
    kind, comma, rest = values.partition(",")
    return f"{kind}s{comma}{rest}" if kind in ("integer", "number", "text", "object") else values
