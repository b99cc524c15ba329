"""Field types for what users write: quantities as strings with units, and one-line errors out of pydantic's."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError, WithJsonSchema

from .errors import InputError, shown
from .text import one_of
from .units import UnitKind, parse

ModelT = TypeVar("ModelT", bound=BaseModel)


class Strict(BaseModel):
    """A model that accepts only the fields it names."""

    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True, allow_inf_nan=False)


def _quantity(kind: UnitKind, *, positive: bool) -> tuple[BeforeValidator, WithJsonSchema]:
    """Validator of a quantity and what the JSON schema says of it."""

    def validate(value: object) -> Fraction:
        if isinstance(value, Fraction):
            return value
        try:
            return parse(value, kind, allow_zero=not positive)
        except InputError as error:
            raise ValueError(error.problem) from None

    units = "|".join(re.escape(unit) for unit in sorted(kind.units))
    pattern = rf"^\s*\+?([0-9]+/[0-9]+|([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{{1,3}})?)\s*({units})\s*$"
    return BeforeValidator(validate), WithJsonSchema({"type": "string", "pattern": pattern, "examples": [kind.example]})


Size = Annotated[Fraction, *_quantity(UnitKind.SIZE, positive=False)]
Rate = Annotated[Fraction, *_quantity(UnitKind.RATE, positive=True)]
Duration = Annotated[Fraction, *_quantity(UnitKind.TIME, positive=False)]
Money = Annotated[Fraction, *_quantity(UnitKind.MONEY, positive=True)]
Price = Annotated[Fraction, *_quantity(UnitKind.PRICE, positive=False)]
Speed = Annotated[Fraction, *_quantity(UnitKind.SPEED, positive=True)]


def validated(make: Callable[[], ModelT], known: Iterable[str] = ()) -> ModelT:
    """Run a pydantic validation.

    Parameters
    ----------
    make : callable
        Builds the model, such as ``lambda: InstanceFile.model_validate(data)``.
    known : iterable of str
        Fields to suggest for one that is unknown.

    Raises
    ------
    InputError
        For the first thing that is wrong: its JSON path, the value, and what was expected.
    """
    try:
        return make()
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = json_path(first["loc"])
        hint = _expected(place or "", list(known)) if first["type"] == "extra_forbidden" else ""
        raise InputError(_problem(first) + hint, place=place) from None


def _expected(name: str, known: list[str]) -> str:
    """Fields that there are, where they are known, and the nearest one."""
    return one_of(name, known) if known else ""


_ALTERNATIVE = re.compile(r"<\w+>\Z|(?:function-\w+|literal)\[.*\]\Z")


def json_path(location: tuple[Any, ...]) -> str | None:
    """Write a location as a JSON path: ``("links", 2, "bandwidth")`` is ``links[2].bandwidth``.

    What pydantic says of alternatives is no part of the path: tags, written ``<object>``, and the names of validators.
    """
    path = ""
    for step in location:
        if _ALTERNATIVE.match(str(step)):
            continue
        path += f"[{step}]" if isinstance(step, int) else f".{step[:60]}"
    return path.removeprefix(".") or None


def _problem(error: Any) -> str:
    """Return what one pydantic error means, with the value."""
    value = shown(error.get("input"))
    match error["type"]:
        case "value_error":
            return str(error["ctx"]["error"])
        case "missing":
            return "missing, but required"
        case "extra_forbidden":
            return f"unknown field (value {value})"
        case "model_type" | "dict_type":
            return f"{value} is wrong; expected an object"
        case "union_tag_invalid":
            tags = [tag.strip(" '<>") for tag in error["ctx"]["expected_tags"].split(",")]
            return f"{value} is wrong; expected one of: {', '.join(tags)}"
        case _:
            message = error["msg"]
            return f"{value} is wrong; {message[0].lower()}{message[1:]}"
