"""Field types for user input: quantities with units, one-line errors from pydantic's, and options in words."""

import re
from collections.abc import Callable, Iterable
from enum import Enum
from fractions import Fraction
from types import new_class
from typing import Annotated, Any, ClassVar, TypeVar, cast

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError, WithJsonSchema

from .errors import InputError, one_of, show_value
from .units import TIMES, UnitKind, amount, parse

ModelT = TypeVar("ModelT", bound=BaseModel)


class Strict(BaseModel):
    """Model that accepts only the fields it names; a field is described by ``description`` or a docstring below it."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        arbitrary_types_allowed=True,
        allow_inf_nan=False,
        defer_build=True,
        use_attribute_docstrings=True,
    )

    @classmethod
    def __pydantic_init_subclass__(cls, **_: Any) -> None:
        """Join the lines of docstrings of fields."""
        for field in cls.model_fields.values():
            field.description = " ".join(field.description.split()) if field.description else None


def select_options(options: type[ModelT], *names: str, **changes: tuple[Any, Any]) -> type[ModelT]:
    """Return an options class with only the named options, for a formulation that shares its method's.

    The others cannot be set and keep their defaults, so that code and rules for the whole class hold. Options with
    another type, default or description are passed as ``name=(type, Field)``.
    """
    own_names = {*names, *changes}
    constants = {name: field for name, field in options.model_fields.items() if name not in own_names}
    types = dict.fromkeys(constants, ClassVar[Any]) | {name: kind for name, (kind, _) in changes.items()}
    values = {name: field.get_default(call_default_factory=True) for name, field in constants.items()}
    values |= {name: field for name, (_, field) in changes.items()}
    about = {"__annotations__": types, "__module__": options.__module__, "__doc__": options.__doc__}
    no_source = {"model_config": ConfigDict(use_attribute_docstrings=False)}
    return cast(
        type[ModelT],
        new_class(options.__name__, (options,), exec_body=lambda body: body.update(values | about | no_source)),
    )


def _quantity(kind: UnitKind, *, positive: bool) -> tuple[BeforeValidator, WithJsonSchema]:

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


def run_validation(make: Callable[[], ModelT], names: Iterable[str] = ()) -> ModelT:
    """Run a pydantic validation; its first error becomes an InputError with JSON path, value and expected input.

    ``names`` are fields to suggest in place of an unknown one.
    """
    try:
        return make()
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = json_path(first["loc"])
        fields = list(names) if first["type"] == "extra_forbidden" else []
        hint = one_of(place or "", fields) if fields else ""
        raise InputError(_problem(first) + hint, place=place) from None


_ALTERNATIVE = re.compile(r"<\w+>\Z|(?:function-\w+|literal)\[.*\]\Z")


def json_path(location: tuple[Any, ...]) -> str | None:
    """Write a location as a JSON path: ``("links", 2, "bandwidth")`` is ``links[2].bandwidth``.

    Entries that pydantic adds for alternatives are left out: tags, written ``<object>``, and names of validators.
    """
    path = ""
    for step in location:
        if _ALTERNATIVE.match(str(step)):
            continue
        path += f"[{step}]" if isinstance(step, int) else f".{step[:60]}"
    return path.removeprefix(".") or None


def _problem(error: Any) -> str:
    value = show_value(error.get("input"))
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


def default_in_words(options: type[BaseModel], name: str) -> str:
    """Return an option's default as a user would write it, with its unit; empty if there is none."""
    default = options.model_fields[name].get_default(call_default_factory=True)
    if default is None or default in ((), [], ""):
        return ""
    if isinstance(default, bool):
        return str(default).lower()
    if isinstance(default, Enum):
        return str(default.value)
    if isinstance(default, Fraction):
        examples = options.model_json_schema()["properties"][name].get("examples", [""])
        return amount(default, _UNITS[examples[0]]) if examples[0] in _UNITS else str(default)
    return str(default)


#: Units in which defaults are written, by the examples that schemas give.
_UNITS = {UnitKind.RATE.example: ("GB/s", "Mb/s"), UnitKind.TIME.example: TIMES}
