"""Errors in one line: places, sources, values."""

from __future__ import annotations

from typing import Annotated, Literal

import pytest
from cwb.core.errors import InputError, locate_errors, show_value
from cwb.core.fields import Rate, Strict, json_path, run_validation
from pydantic import Discriminator, Field, Tag


def test_places_are_joined_from_the_outside_in() -> None:
    """A place inside another one is appended to it, list entries without a dot."""
    with pytest.raises(InputError) as caught, locate_errors("network", source="a.json"), locate_errors("dimensions"):
        raise InputError("is wrong", place="[2]")
    assert str(caught.value) == "a.json: network.dimensions[2]: is wrong"


def test_a_place_of_another_source_is_left_out() -> None:
    """An error in a workload file says the place in that file, not in the instance that uses it."""
    with (
        pytest.raises(InputError) as caught,
        locate_errors("workloads[0].use", source="a.json"),
        locate_errors(source="w.json"),
    ):
        raise InputError("is wrong", place="layers[3]")
    assert str(caught.value) == "w.json: layers[3]: is wrong"


@pytest.mark.parametrize(
    ("value", "text"),
    [("5", "'5'"), (None, "None"), (1.5, "1.5"), ([1, 2], "[1, 2]"), ({"a": 1}, "{'a': 1}")],
)
def test_short_values_are_shown_as_they_are(value: object, text: str) -> None:
    """A value that fits in a line is shown in full."""
    assert show_value(value) == text


def test_large_and_deep_values_are_cut() -> None:
    """Neither a long text, nor a huge number, nor a list nested beyond the recursion limit spoils the line."""
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    for value in ("x" * 10**7, list(range(10**6)), 10**4000, deep, {str(i): i for i in range(1000)}):
        assert len(show_value(value)) <= 60


class Inner(Strict):
    """A nested object."""

    rate: Rate


class Outer(Strict):
    """An object with everything that errors must name."""

    inner: list[Inner] = Field(default=[])
    choice: Rate | Literal["none"] | None = None
    count: int = Field(1, ge=1, strict=True)
    either: (
        Annotated[
            Annotated[str, Tag("<text>")] | Annotated[Inner, Tag("<object>")],
            Discriminator(lambda v: {str: "<text>", dict: "<object>"}.get(type(v), "<other>")),
        ]
        | None
    ) = None


@pytest.mark.parametrize(
    ("data", "line"),
    [
        ({"inner": [{"rate": "1 GB/s"}, {}]}, "inner[1].rate: missing, but required"),
        ({"inner": [{"rate": 5}]}, "inner[0].rate: 5 has no unit; expected a bandwidth"),
        ({"inner": [5]}, "inner[0]: 5 is wrong; expected an object"),
        ({"innner": 5}, "innner: unknown field (value 5)"),
        ({"choice": "500"}, "choice: '500' has no unit"),
        ({"count": 0}, "count: 0 is wrong; input should be greater than or equal to 1"),
        ({"count": True}, "count: True is wrong"),
        ({"either": {"rate": 1}}, "either.rate: 1 has no unit"),
        ({"either": 5}, "either: 5 is wrong; expected one of: text, object"),
        ([], "[] is wrong; expected an object"),
        ({"x" * 1000: 1}, "x" * 60 + ": unknown field"),
    ],
)
def test_what_pydantic_finds_becomes_one_line(data: object, line: str) -> None:
    """The first thing that is wrong is told with its JSON path, its value and what was expected, and no word of
    pydantic's machinery."""
    with pytest.raises(InputError) as caught:
        run_validation(lambda: Outer.model_validate(data))
    assert str(caught.value).startswith(line)
    assert "\n" not in str(caught.value)
    assert "function" not in str(caught.value)


def test_json_paths_read_like_json() -> None:
    """Keys are joined by dots, indices are in brackets, names of alternatives are left out."""
    assert json_path(("links", 2, "bandwidth")) == "links[2].bandwidth"
    assert json_path(("network", "<object>", "npus")) == "network.npus"
    assert json_path(()) is None


def test_long_sources_are_cut() -> None:
    """An expression of thousands of characters does not fill the terminal, a path stays whole."""
    assert len(str(InputError("is wrong", source="a" * 10_000))) < 1100
    assert str(InputError("is wrong", source="b" * 255)).startswith("b" * 255)
