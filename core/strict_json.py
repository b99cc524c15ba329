"""Strict JSON: no duplicate keys, no NaN, bounded objects, and errors with line and column."""

import json
import re
from collections.abc import Callable
from typing import Any

from .errors import InputError, show_value

MAX_VALUES = 2**23  #: Values of a text: lists and objects take twenty times the memory of their two characters.
MAX_DIGITS = 99  #: Digits of an integer; one of more is no number for a computer.

_MANY_DIGITS = re.compile(rb"[0-9]{%d}" % (MAX_DIGITS + 1))
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")

#: By a key that files of other programs have: the kind of file, and the command that reads it.
_KINDS = {
    "gpus_per_node": "a TACCL topology, for cwb import taccl",
    "nnodes": "a TACCL sketch, for cwb import taccl --sketch",
    "TopologyParams": "an input file of TE-CCL, for cwb import teccl",
    "7-Flows": "a schedule of TE-CCL, for cwb import teccl --schedule",
    "traceEvents": "a Chrome trace, for Perfetto",
    "gpus": "an MSCCL++ execution plan, for cwb check",
}


def check_kind(data: object, *schemas: str) -> None:
    """Raise InputError that names the kind of a file of cwb or another program, unless it is a known one."""
    if not isinstance(data, dict) or "network" in data or data.get("schema") in schemas:
        return
    schema = re.fullmatch(r"cwb-(\w+)/1", str(data.get("schema")))
    kind = f"a cwb {schema[1]} file" if schema else next((kind for key, kind in _KINDS.items() if key in data), None)
    if kind:
        raise InputError(f"this is {kind}; expected {' or '.join(schemas)}")


def parse_json(
    raw: bytes, max_keys: int, max_values: int = MAX_VALUES, convert: Callable[[dict[str, Any]], Any] | None = None
) -> Any:
    """Parse a JSON text, whose size the caller bounds.

    More than ``max_keys`` keys of one object, or ``max_values`` values in all, are rejected before they cost memory.
    ``convert`` converts every object as soon as it is read.
    """
    if sum(map(raw.count, (b",", b"[", b"{"))) > max_values:
        raise InputError(f"more than {max_values:,} values")
    parse_int = _parse_short_integer if _MANY_DIGITS.search(raw) else None

    def build(pairs: list[tuple[str, Any]]) -> Any:
        members = object_from_pairs(max_keys, pairs)
        return members if convert is None else convert(members)

    try:
        value = json.loads(raw, parse_constant=reject_constant, parse_int=parse_int, object_pairs_hook=build)
        if _SURROGATE.search(raw):
            refuse_surrogates(value)
    except json.JSONDecodeError as error:
        raise InputError(f"not JSON: {error.msg.lower()}", place=f"line {error.lineno}, column {error.colno}") from None
    except UnicodeDecodeError:
        raise InputError("not JSON: not UTF-8 text") from None
    except RecursionError:
        raise InputError("not JSON that cwb reads: nested too deeply") from None
    return value


def object_from_pairs(max_keys: int, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Create an object from keys and values; reject duplicate or too many keys."""
    if len(pairs) > max_keys:
        raise InputError(f"an object has {len(pairs):,} keys; expected at most {max_keys:,}")
    result: dict[str, Any] = {}
    for key, value in pairs:
        if key in result:
            raise InputError(f"key {key[:60]!r} is given twice in one object; expected once")
        result[key] = value
    return result


def _parse_short_integer(text: str) -> int:
    if len(text.lstrip("-")) > MAX_DIGITS:
        raise InputError(f"an integer of {len(text.lstrip('-')):,} digits; expected at most {MAX_DIGITS}")
    return int(text)


def refuse_surrogates(value: Any) -> None:
    """Raise InputError for unpaired surrogates in texts, which cannot be written."""
    waiting = [value]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            waiting += [*part.keys(), *part.values()]
        elif isinstance(part, list | tuple):
            waiting += part
        elif isinstance(part, str) and re.search("[\ud800-\udfff]", part):
            raise InputError(f"{show_value(part)} has half of a surrogate pair, which is no character")


def reject_constant(name: str) -> Any:
    """Reject NaN and infinities."""
    raise InputError(f"{name} is not a number that JSON allows")
