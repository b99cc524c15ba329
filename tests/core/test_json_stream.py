"""JSON with columns that are read apart is what it would be if it were read at once."""

from __future__ import annotations

import io
import json
import re
import threading

import numpy as np
import pytest
from cwb.core import json_stream
from cwb.core.budget import Budget, limited_by
from cwb.core.errors import InputError, OutOfTime
from cwb.core.json_stream import COLUMN, LazyColumn, read_stream
from cwb.core.strict_json import parse_json
from draws import draws
from hypothesis import example, given, settings
from hypothesis import strategies as st

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=12,
)


@st.composite
def texts(draw):
    """JSON texts in every layout, some of them with a character changed, left out or put in."""
    separators = draw(st.sampled_from([(",", ":"), (" , ", " : "), (",\n ", ":\t")]))
    text = json.dumps(draw(VALUES), separators=separators, ensure_ascii=draw(st.booleans()))
    if draw(st.booleans()):
        at = draw(st.integers(0, len(text)))
        text = (
            text[:at]
            + draw(st.sampled_from([*'[]{},:"0-.e \\', "", "null", "NaN", "\\ud800"]))
            + text[at + draw(st.integers(0, 1)) :]
        )
    return text


def plain(value):
    """Data with lists for columns and arrays."""
    if isinstance(value, LazyColumn):
        return plain(value.read())
    if isinstance(value, dict):
        return {key: plain(entry) for key, entry in value.items()}
    if isinstance(value, np.ndarray):
        return value.tolist()
    return [plain(entry) for entry in value] if isinstance(value, list) else value


def typed_text(read):
    """Return parsed JSON in a form that tells 1 from 1.0; None if it is refused."""
    try:
        return repr(plain(read()))
    except InputError:
        return None


@pytest.fixture
def in_crumbs(monkeypatch):
    """Every piece and column is a few bytes long."""
    monkeypatch.setattr(json_stream, "_PIECE", 3)
    monkeypatch.setattr(json_stream, "_TOKEN", re.compile(json_stream._TOKEN.pattern.replace(b"4096", b"3"), re.DOTALL))


@pytest.mark.usefixtures("in_crumbs")
@settings(max_examples=draws(150), deadline=None)
@given(texts())
@example("[[1],]")
@example("[1,2,3,4, ]")
@example("[1,2,3,4.5]")
@example("[1,2,3,4]5")
@example("[10000000000000000000000,2,3,4]")
@example("[" * 101 + "]" * 101)
def test_pieces_make_the_whole(text):
    """Whatever the text, it is read as at once, or refused as at once, but for lists that are nested very deeply."""
    raw = text.encode(errors="surrogatepass")
    whole = typed_text(lambda: parse_json(raw, 100))
    assert typed_text(lambda: read_stream(io.BytesIO(raw), 10**6, 100)) == (None if text.count("[") > 100 else whole)


@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": ")])
def test_columns_are_arrays(separators):
    """Long lists of integers or of floats are arrays, mixed and short ones lists; exact integers stay exact."""
    count = 3 * COLUMN
    data = {
        "i": list(range(-count, count)),
        "f": [0.5] * count,
        "m": [0.5, 1] * count,
        "b": [2**70] * count,
        "s": [1, 2],
    }
    found = read_stream(io.BytesIO(json.dumps(data, separators=separators).encode()), 10**7, 10)
    assert {name: len(found[name]) for name in found} == {name: len(data[name]) for name in data}
    found |= {name: column.read() for name, column in found.items() if isinstance(column, LazyColumn)}
    assert {name: getattr(column, "dtype", None) for name, column in found.items()} == {
        "i": np.int64,
        "f": np.float64,
        "m": None,
        "b": None,
        "s": None,
    }
    assert plain(found) == data


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"[" + b"1," * 10_000 + b"1]", "more than 1,000 numbers"),
        (b"[" + b"[]," * 1000 + b"1]", "more than 1,000 values"),
        (b"[" + b'"",' * 1001 + b"1]", "more than 1,000 texts"),
        (b"[" + rb'"\\",' * 1001 + b"1]", "more than 1,000 texts"),
        (b'["' + b"a" * 3_000_000 + b'"]', "a text of more than 65,536 bytes"),
        (b"[" + b"1" * 70_000 + b"]", "an integer of 70,000 digits"),
        (b" " * 5_000_000 + b"1", "more than 4,000,000 bytes of text"),
        (b"[\xff]", "not UTF-8"),
        (b'"' + b'\\"' * 30_000, "unterminated"),
        (b'"' + b'\\"' * 30_000 + b"\\", "unterminated"),
    ],
)
def test_what_is_too_much_is_refused(raw, message, monkeypatch):
    """Numbers, values, texts and bytes are counted before they are parsed."""
    monkeypatch.setattr(json_stream, "MAX_NUMBERS", 1000)
    monkeypatch.setattr(json_stream, "MAX_VALUES", 1000)
    with pytest.raises(InputError, match=message):
        read_stream(io.BytesIO(raw), 4_000_000, 10)


def test_numbers_of_inner_lists_are_few(monkeypatch):
    """Lists in lists are parsed at once, and have fewer numbers than columns may have."""
    monkeypatch.setattr(json_stream, "MAX_VALUES", 1000)
    with pytest.raises(InputError, match="more than 1,000 numbers in lists of lists"):
        read_stream(io.BytesIO(b'{"a": [[' + b"1," * 3000 + b"1]]}"), 10_000, 10)
    assert len(read_stream(io.BytesIO(b'{"a": [' + b"1," * 3000 + b"1]}"), 10_000, 10)["a"]) == 3001


def test_reading_can_be_stopped():
    """Between two pieces the budget is asked."""
    budget = Budget(stop=threading.Event())
    budget.stop.set()
    with limited_by(budget, "reading a file"), pytest.raises(OutOfTime, match="reading a schedule"):
        read_stream(io.BytesIO(b"[1]"), 100, 10, "reading a schedule")
