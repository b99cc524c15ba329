"""JSON read strictly: no duplicate keys, no NaN, bounded objects, and an error that names the line and column."""

from __future__ import annotations

import json
from typing import Any

from .errors import InputError


def parse_json(raw: bytes, max_keys: int) -> Any:
    """Read a JSON text.

    Parameters
    ----------
    raw : bytes
        The text; its size is for the caller to bound.
    max_keys : int
        Keys that one object may have: each that is wrong costs memory before the first is reported.

    Raises
    ------
    InputError
        If it is not such JSON.
    """

    def checked(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(pairs) > max_keys:
            raise InputError(f"an object has {len(pairs):,} keys; expected at most {max_keys:,}")
        result: dict[str, Any] = {}
        for key, value in pairs:
            if key in result:
                raise InputError(f"key {key[:60]!r} is given twice in one object")
            result[key] = value
        return result

    try:
        return json.loads(raw, parse_constant=_no_constant, object_pairs_hook=checked)
    except json.JSONDecodeError as error:
        raise InputError(f"not JSON: {error.msg.lower()}", place=f"line {error.lineno}, column {error.colno}") from None
    except UnicodeDecodeError:
        raise InputError("not JSON: not UTF-8 text") from None
    except RecursionError:
        raise InputError("not JSON that cwb reads: nested too deeply") from None
    except ValueError:
        raise InputError("not JSON that cwb reads: a number has thousands of digits") from None


def _no_constant(name: str) -> Any:
    raise InputError(f"{name} is not a number that JSON allows")
