"""JSON is bounded in its values, its digits and its characters."""

from __future__ import annotations

import pytest
from cwb.core.errors import InputError
from cwb.core.strict_json import parse_json


def test_plain_data_is_read():
    """Lists, objects, numbers, pairs of surrogates and escaped backslashes are read as JSON says."""
    assert parse_json(b'[1, -2.5, {"a": "\\ud83d\\ude00"}, "\\\\ud800", 1e400]', 1) == [
        1,
        -2.5,
        {"a": "\U0001f600"},
        "\\ud800",
        float("inf"),
    ]


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"[" + b"[]," * 100 + b"[]]", "more than 100 values"),
        (b"[-" + b"1" * 100 + b"]", "an integer of 100 digits; expected at most 99"),
        (b'{"a": ["\\ud800"]}', "half of a surrogate pair"),
        (b'{"\\udfff": 1}', "half of a surrogate pair"),
        (b"[NaN]", "NaN is not a number that JSON allows"),
    ],
)
def test_what_is_refused(raw, message):
    """Values that need much memory, and invalid numbers or characters, are refused with the reason."""
    with pytest.raises(InputError, match=message):
        parse_json(raw, 10, max_values=100)
