"""Options by the solvers' own names: types, ranges and error messages; and the solvers' infinity.

:data:`KNOWN_SOLVERS` has what Pyomo itself does not tell of solvers that it drives.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf, isnan
from pathlib import Path

from ..core.errors import InputError, did_you_mean

#: Smallest bound that HiGHS, Gurobi and SCIP take for infinite; larger ones become infinite here, for all alike.
INFINITY = 1e20

#: Types as HiGHS and SCIP write them into files of options.
_KINDS: Mapping[str, type] = {
    "bool": bool,
    **dict.fromkeys(("integer", "int", "longint"), int),
    **dict.fromkeys(("double", "real"), float),
    **dict.fromkeys(("char", "string"), str),
}

_ENTRY = re.compile(
    r"^# (?P<words>.*)\n# \[type: (?P<kind>\w+),.*?(?:range: (?P<range>[\[{].*?[\]}]), )?default: .*\]\n(?P<name>\S+) "
    r"=",
    re.MULTILINE,
)

_BOOLS = {"true": True, "on": True, "1": True, "false": False, "off": False, "0": False}


@dataclass(frozen=True)
class NativeOption:
    """One option of a solver; ``letters`` are the values of a single-letter option, empty for any other text."""

    kind: type
    lower: float = -inf
    upper: float = inf
    letters: str = ""
    description: str = ""

    @property
    def allowed_values(self) -> str:
        """Allowed values, in words."""
        if self.kind is bool:
            return "true or false"
        if self.kind is str:
            return f"one of {', '.join(self.letters)}" if self.letters else self.description or "text"
        number = "a whole number" if self.kind is int else "a number"
        return f"{number} from {self.lower:g} to {self.upper:g}"

    def read(self, value: object) -> bool | int | float | str:
        """Convert a value, or text from a command line, to the option's type, or raise ValueError."""
        if self.kind is str:
            text = value if isinstance(value, str) else str(value) if isinstance(value, int | float) else ""
            is_letter = len(text) == 1 and text in self.letters
            if isinstance(value, bool) or not text or (self.letters and not is_letter):
                raise ValueError(value)
            return text
        if self.kind is bool:
            word = str(value).lower()
            if isinstance(value, float) or word not in _BOOLS:
                raise ValueError(value)
            return _BOOLS[word]
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise ValueError(value)
        number = self.kind(value)
        is_other = not isinstance(value, str) and number != value
        if is_other or isnan(number) or not self.lower <= number <= self.upper:
            raise ValueError(value)
        return int(number) if self.kind is int else float(number)


def read_options(text: str) -> dict[str, NativeOption]:
    """Read options with descriptions from a file written by HiGHS or SCIP."""
    table: dict[str, NativeOption] = {}
    for entry in _ENTRY.finditer(text):
        kind, inside = _KINDS[entry["kind"]], (entry["range"] or "")[1:-1]
        if kind in (int, float) and inside:
            lower, upper = map(float, inside.split(","))
            table[entry["name"]] = NativeOption(kind, lower, upper, description=entry["words"])
        else:
            table[entry["name"]] = NativeOption(kind, letters=inside if kind is str else "", description=entry["words"])
    return table


def check_option(
    title: str, name: str, value: object, choices: Mapping[str, NativeOption], *, what: str = "option"
) -> object:
    """Convert the value of a solver's option to its type."""
    if name not in choices:
        raise unknown_option_error(title, name, choices, what=what)
    try:
        return choices[name].read(value)
    except (ValueError, OverflowError):
        raise rejected_value_error(title, name, value, choices[name].allowed_values, what=what) from None


def unknown_option_error(title: str, name: str, names: Iterable[str], *, what: str = "option") -> InputError:
    """Return the error for an option that does not exist."""
    return InputError(f"{title} has no {what} {name!r}{did_you_mean(name, names)}")


def rejected_value_error(title: str, name: str, value: object, expected: str, *, what: str = "option") -> InputError:
    """Return the error for a value that is not accepted."""
    return InputError(f"{title} does not accept {value!r} for its {what} {name}; expected {expected}")


@dataclass(frozen=True)
class KnownSolver:
    """Option names of one solver, and its way to stop.

    ``gap``, ``node_limit``, ``threads``, ``seed`` and ``tolerance`` are its own names of these options, and
    ``increment`` is that of the least improvement of a solution over the last one; empty if there is none, or none is
    known. ``program`` is empty if it is not known to be one. ``always`` are options of every solve of a MIP,
    ``options`` all that may be given by their own names; None if they cannot be checked. A time limit may be a fraction
    of a second if it ``takes_fractions``; it ``stops_on_interrupt`` if it writes its best result after a SIGINT;
    ``digits`` is the relative error of the numbers it writes. What is ``is_first_order`` may solve linear programs by a
    first-order method, whose "optimal" proves no bound.
    """

    program: str = ""
    gap: str = ""
    node_limit: str = ""
    threads: str = ""
    seed: str = ""
    tolerance: str = ""
    always: Mapping[str, object] = field(default_factory=dict)
    increment: str = ""
    takes_fractions: bool = False
    stops_on_interrupt: bool = False
    digits: float = 1e-7
    is_first_order: bool = False
    options: Sequence[str] | None = None

    @property
    def reserved_options(self) -> Mapping[str, str]:
        """Options that are set by other means, with these means."""
        pairs = {
            self.gap: "rel_gap",
            self.node_limit: "node_limit",
            self.threads: "the budget's threads (--threads)",
            self.seed: "the budget's seed (--seed)",
            self.tolerance: "feasibility_tolerance",
        }
        return {name: means for name, means in pairs.items() if name}


#: By the name in Pyomo's ``SolverFactory``.
KNOWN_SOLVERS: Mapping[str, KnownSolver] = {
    name: KnownSolver(**table)
    for name, table in json.loads(Path(__file__).with_name("known_solvers.json").read_text()).items()
}


def known_solver(name: str) -> KnownSolver:
    """Return the known properties of a solver; empty ones for most."""
    return KNOWN_SOLVERS.get(name, KnownSolver())
