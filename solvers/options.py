"""Options by the solvers' own names: types, ranges and error messages."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import inf, isnan

from ..core.errors import InputError, did_you_mean

#: Types as HiGHS and SCIP write them into files of options.
_KINDS: Mapping[str, type] = {
    "bool": bool,
    "integer": int,
    "int": int,
    "longint": int,
    "double": float,
    "real": float,
    "char": str,
    "string": str,
}

_ENTRY = re.compile(
    r"^# (?P<words>.*)\n# \[type: (?P<kind>\w+),.*?(?:range: (?P<range>[\[{].*?[\]}]), )?default: .*\]\n(?P<name>\S+) "
    r"=",
    re.MULTILINE,
)

_BOOLS = {"true": True, "on": True, "1": True, "false": False, "off": False, "0": False}


@dataclass(frozen=True)
class NativeOption:
    """One option of a solver.

    Parameters
    ----------
    letters : str
        Allowed values of a single-letter option; empty for any other text.
    """

    kind: type
    lower: float = -inf
    upper: float = inf
    letters: str = ""
    words: str = ""

    @property
    def allowed_values(self) -> str:
        """Allowed values, in words."""
        if self.kind is bool:
            return "true or false"
        if self.kind is str:
            return f"one of {', '.join(self.letters)}" if self.letters else self.words or "text"
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
    found: dict[str, NativeOption] = {}
    for entry in _ENTRY.finditer(text):
        kind, inside = _KINDS[entry["kind"]], (entry["range"] or "")[1:-1]
        if kind in (int, float) and inside:
            lower, upper = map(float, inside.split(","))
            found[entry["name"]] = NativeOption(kind, lower, upper, words=entry["words"])
        else:
            found[entry["name"]] = NativeOption(kind, letters=inside if kind is str else "", words=entry["words"])
    return found


def check_option(
    title: str, name: str, value: object, offered: Mapping[str, NativeOption], *, what: str = "option"
) -> object:
    """Convert the value of a solver's option to its type."""
    if name not in offered:
        raise unknown_option_error(title, name, offered, what=what)
    try:
        return offered[name].read(value)
    except (ValueError, OverflowError):
        raise rejected_value_error(title, name, value, offered[name].allowed_values, what=what) from None


def unknown_option_error(title: str, name: str, known: Iterable[str], *, what: str = "option") -> InputError:
    """Return the error for an option that does not exist."""
    return InputError(f"{title} has no {what} {name!r}{did_you_mean(name, known)}")


def rejected_value_error(title: str, name: str, value: object, expected: str, *, what: str = "option") -> InputError:
    """Return the error for a value that is not accepted."""
    return InputError(f"{title} does not accept {value!r} for its {what} {name}; expected {expected}")


def other_means_error(title: str, name: str, means: str, *, what: str = "option") -> InputError:
    """Return the error for an option that cwb sets by other means."""
    return InputError(f"{title}'s {what} {name} is set by {means}, not directly")
