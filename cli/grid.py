"""A suite that is written as options of ``cwb compare`` instead of a file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import click

from ..core.collective import CollectiveKind
from ..core.errors import CwbError, InputError
from .options import parse_options
from .streams import echo

if TYPE_CHECKING:
    from ..harness.suite_file import Suite

#: Asked of instances that ask for nothing themselves.
DEFAULT_COLLECTIVE = CollectiveKind.ALL_REDUCE.value

#: From one size to the next in a range without a factor.
_FACTOR = 4

#: Source of the suite in errors; that of the option takes its place.
_SOURCE = "--models"

_PLACE = re.compile(r"(?:grid\[[0-9]+\]\.?)?(?P<field>[a-z_]+)\b(?P<rest>.*)")


@dataclass(frozen=True)
class Asked:
    """The options, as they were written."""

    models: str | None = None
    instances: str | None = None
    collectives: str | None = None
    sizes: str | None = None
    solvers: str | None = None
    options: tuple[str, ...] = ()

    @property
    def given(self) -> list[str]:
        """Names of the options that were written."""
        names = [each.name for each in fields(self) if getattr(self, each.name) not in (None, ())]
        return ["-O" if name == "options" else f"--{name}" for name in names]

    @contextmanager
    def located(self) -> Iterator[None]:
        """Name the option in errors of the suite that is made of it."""
        try:
            yield
        except InputError as error:
            found = _PLACE.fullmatch(error.place or "") if error.source == _SOURCE else None
            if found is None:
                raise
            option = "-O" if found["field"] == "options" else f"--{found['field']}"
            place = re.sub(r"^\[[0-9]+\]", "", found["rest"]).lstrip(".")  # the value says which
            raise InputError(error.problem, source=option, place=place or None) from None


def suite_of(name: str | None, asked: Asked) -> Suite:
    """Make a suite of options.

    Raises
    ------
    InputError
        If something is missing or wrong; names the option.
    """
    if name is not None:
        raise InputError(f"not beside a suite, {name!r}; expected one of the two", source=asked.given[0])
    if not asked.models and not asked.instances:
        raise click.UsageError("expected SUITE, or --models and --instances")
    for option, text in (("--models", asked.models), ("--instances", asked.instances)):
        if not split(text or ""):
            raise InputError("missing or empty; expected names between commas", source=option)
    from ..core.errors import located
    from ..core.fields import validated
    from ..harness.plan import cells
    from ..harness.suite_file import Suite, SuiteFile

    grid: dict[str, Any] = {"models": split(asked.models or ""), "options": parse_options(asked.options)}
    if asked.solvers:
        grid["solvers"] = split(asked.solvers)
    if asked.sizes:
        grid["sizes"] = sizes(asked.sizes)
    instances = list(dict.fromkeys(split(asked.instances or "")))
    silent = [] if asked.collectives else [name for name in instances if _asks_nothing(name)]
    others = [name for name in instances if name not in silent]
    grids = [{**grid, "instances": silent, "collectives": [DEFAULT_COLLECTIVE]}] if silent else []
    own = {"collectives": split(asked.collectives)} if asked.collectives else {}
    grids += [{**grid, "instances": others, **own}] if others else []
    with located(source=_SOURCE):
        suite = Suite(_SOURCE, validated(lambda: SuiteFile.model_validate({"grid": grids})))
        cells(suite)
    if silent:
        echo(f"cwb: --collectives: {DEFAULT_COLLECTIVE} on {', '.join(silent)}, by default", err=True)
    return suite


def split(text: str) -> list[str]:
    """Names between commas; commas in brackets and quotation marks belong to a name."""
    parts, depth, quoted = [""], 0, ""
    for letter in text:
        if quoted:
            quoted = "" if letter == quoted else quoted
        elif letter in "\"'":
            quoted = letter
        else:
            depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and depth == 0 and not quoted:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts if part.strip()]


def sizes(text: str) -> list[str] | dict[str, Any]:
    """Sizes between commas, or a range such as ``1KiB..1GiB*32``."""
    first, dots, rest = text.partition("..")
    if not dots:
        return split(text)
    last, star, factor = rest.partition("*")
    if star and not factor.strip().isdigit():
        raise InputError(f"{text!r}: {factor!r} is no factor; expected one such as 1KiB..1GiB*32", source="--sizes")
    return {"from": first.strip(), "to": last.strip(), "factor": int(factor) if star else _FACTOR}


def _asks_nothing(spec: str) -> bool:
    """Whether an instance is a network alone; of what cannot be loaded the plan tells it."""
    from ..instances import load

    try:
        return load(spec).asks_nothing
    except CwbError:
        return False
