"""Suites given as options of ``cwb compare`` instead of a file."""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from typing import Any

from ..core.budget import ignore
from ..core.collective import Collective
from ..core.errors import CwbError, InputError, locate_errors
from ..core.fields import run_validation
from ..core.option_names import WrongUse
from ..core.units import UnitKind, parse
from ..harness.plan import cells
from ..harness.suite_file import Suite, SuiteFile
from ..harness.task import Limits
from ..instances import load

DEFAULT_COLLECTIVE = Collective.ALL_REDUCE.name  #: Asked of instances that ask for nothing themselves.
_FACTOR = 4  #: From one size to the next in a range without a factor.
_SOURCE = "--models"  #: Source of the suite in errors; that of the option takes its place.

_PLACE = re.compile(r"(?:grid\[[0-9]+\]\.?)?(?P<field>[a-z_]+)\b(?P<rest>.*)")


@dataclass(frozen=True)
class GridOptions:
    """The options as the user wrote them."""

    models: str | None = None
    instances: str | None = None
    collectives: str | None = None
    sizes: str | None = None
    solvers: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def given_options(self) -> list[str]:
        """Names of the options that are set."""
        names = [each.name for each in fields(self) if getattr(self, each.name) not in (None, {})]
        return ["-O" if name == "options" else f"--{name}" for name in names]

    @contextmanager
    def locate_option_errors(self) -> Iterator[None]:
        """Name the option in errors of the suite made from it."""
        try:
            yield
        except InputError as error:
            match = _PLACE.fullmatch(error.place or "") if error.source == _SOURCE else None
            if match is None:
                raise
            option = "-O" if match["field"] == "options" else f"--{match['field']}"
            place = re.sub(r"^\[[0-9]+\]", "", match["rest"]).lstrip(".")  # the value says which
            raise InputError(error.problem, source=option, place=place or None) from None


def suite_of(name: object, options: GridOptions, notice: Callable[[str], None] = ignore) -> Suite:
    """Make a suite from options; notices name collectives chosen by default."""
    if name is not None:
        raise InputError(
            f"not allowed with a suite, {str(name)!r}; expected one of the two", source=options.given_options[0]
        )
    if not options.models and not options.instances:
        raise WrongUse("expected SUITE, or --models and --instances")
    for option, text in (("--models", options.models), ("--instances", options.instances)):
        if not split(text or ""):
            raise InputError("missing or empty; expected names between commas", source=option)
    grid: dict[str, Any] = {"models": split(options.models or ""), "options": dict(options.options)}
    if options.solvers:
        grid["solvers"] = split(options.solvers)
    if options.sizes:
        grid["sizes"] = sizes(options.sizes)
    instances = list(dict.fromkeys(split(options.instances or "")))
    unasked = [] if options.collectives else [name for name in instances if _asks_nothing(name)]
    others = [name for name in instances if name not in unasked]
    grids = [{**grid, "instances": unasked, "collectives": [DEFAULT_COLLECTIVE]}] if unasked else []
    own = {"collectives": split(options.collectives)} if options.collectives else {}
    grids += [{**grid, "instances": others, **own}] if others else []
    with locate_errors(source=_SOURCE):
        suite = Suite(_SOURCE, run_validation(lambda: SuiteFile.model_validate({"grid": grids})))
        cells(suite)
    if unasked:
        notice(f"--collectives: {DEFAULT_COLLECTIVE} on {', '.join(unasked)}, by default")
    return suite


def split(text: str) -> list[str]:
    """Split at commas outside brackets and quotation marks."""
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
    """Parse comma-separated sizes, or a range such as ``1KiB..1GiB*32``."""
    first, dots, rest = text.partition("..")
    if not dots:
        return split(text)
    last, star, factor = rest.partition("*")
    if star and not factor.strip().isdigit():
        raise InputError(f"{text!r}: {factor!r} is not a factor; expected one such as 1KiB..1GiB*32", source="--sizes")
    return {"from": first.strip(), "to": last.strip(), "factor": int(factor) if star else _FACTOR}


def _asks_nothing(spec: str) -> bool:
    """Return True if an instance has only a network; False if it cannot be loaded, which the plan reports."""
    try:
        return load(spec).is_network_only
    except CwbError:
        return False


def limits_of(time_limit_s: float | None, grace_s: float, memory: str | None) -> Limits:
    """Return the limits of every run of a comparison."""
    most = None if memory is None else int(parse(memory, UnitKind.SIZE, allow_zero=False, source="--memory"))
    return Limits(time_limit_s, most, grace_s)
