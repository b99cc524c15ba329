"""The JSON that importers write."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

import pytest
from cwb.exchange.json_layout import WIDTH, readable_json
from cwb.instances.loader import shipped_instances
from draws import draws
from hypothesis import given, settings
from hypothesis import strategies as st

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
JSON = st.recursive(
    SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=20), inner), max_leaves=30
)


@settings(max_examples=draws(40))
@given(JSON)
def test_the_layout_changes_nothing(data: Any) -> None:
    """Whatever is written is read back as it was, in the same order of keys."""
    assert json.dumps(json.loads(readable_json(data))) == json.dumps(data)


@pytest.mark.parametrize("name", shipped_instances())
def test_shipped_instances_have_this_layout(name: str) -> None:
    """Imported instances look like those that come with cwb: laying one of these out again changes no character."""
    text = (files("cwb.instances") / f"{name}.json").read_text(encoding="utf-8")
    assert readable_json(json.loads(text)) == text


def test_what_fits_is_on_one_line() -> None:
    """A short object stays on a line; a long one is broken, and its parts are tried again."""
    assert readable_json({"a": [1, 2], "b": {}}) == '{"a": [1, 2], "b": {}}\n'
    long = {"first": ["x" * 60], "second": ["y" * 60]}
    assert readable_json(long) == f'{{\n  "first": ["{"x" * 60}"],\n  "second": ["{"y" * 60}"]\n}}\n'
    assert max(map(len, readable_json({"a": [long] * 3}).splitlines())) <= WIDTH


def test_nan_is_refused() -> None:
    """NaN is no JSON."""
    with pytest.raises(ValueError, match="not JSON compliant"):
        readable_json([float("nan")])
