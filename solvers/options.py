"""Options by the solvers' own names: which there are, of which type and range, and what is said of wrong ones."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import inf, isnan

from ..core.errors import InputError
from ..core.text import did_you_mean

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
    r"^# (?P<words>.*)\n# \[type: (?P<kind>\w+),.*?(?:range: (?P<range>[\[{].*?[\]}]), )?default: .*\]\n(?P<name>\S+) =",
    re.MULTILINE,
)

_BOOLS = {"true": True, "on": True, "1": True, "false": False, "off": False, "0": False}


@dataclass(frozen=True)
class Offered:
    """One option of a solver.

    Parameters
    ----------
    kind : type
        bool, int, float or str.
    lower, upper : float
        Range of a number.
    letters : str
        What a single letter is one of; empty for any other text.
    words : str
        The solver's own description.
    """

    kind: type
    lower: float = -inf
    upper: float = inf
    letters: str = ""
    words: str = ""

    @property
    def expected(self) -> str:
        """What is taken, in words."""
        if self.kind is bool:
            return "true or false"
        if self.kind is str:
            return f"one of {', '.join(self.letters)}" if self.letters else self.words or "text"
        number = "a whole number" if self.kind is int else "a number"
        return f"{number} from {self.lower:g} to {self.upper:g}"

    def read(self, value: object) -> bool | int | float | str:
        """The value in the option's type; text is read, as from a command line.

        Raises
        ------
        ValueError
            If it is none of the type, or out of range.
        """
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


def read_options(text: str) -> dict[str, Offered]:
    """Options in a file that HiGHS or SCIP has written with their descriptions."""
    found: dict[str, Offered] = {}
    for entry in _ENTRY.finditer(text):
        kind, inside = _KINDS[entry["kind"]], (entry["range"] or "")[1:-1]
        if kind in (int, float) and inside:
            lower, upper = map(float, inside.split(","))
            found[entry["name"]] = Offered(kind, lower, upper, words=entry["words"])
        else:
            found[entry["name"]] = Offered(kind, letters=inside if kind is str else "", words=entry["words"])
    return found


def checked(title: str, name: str, value: object, offered: Mapping[str, Offered], *, what: str = "option") -> object:
    """The value of an option that a solver offers, in its type.

    Raises
    ------
    InputError
        If the solver has no such option, or does not take the value.
    """
    if name not in offered:
        raise unknown(title, name, offered, what=what)
    try:
        return offered[name].read(value)
    except (ValueError, OverflowError):
        raise not_taken(title, name, value, offered[name].expected, what=what) from None


def unknown(title: str, name: str, known: Iterable[str], *, what: str = "option") -> InputError:
    """What is said of an option that there is not."""
    return InputError(f"{title} has no {what} {name!r}{did_you_mean(name, known)}")


def not_taken(title: str, name: str, value: object, expected: str, *, what: str = "option") -> InputError:
    """What is said of a value that is not taken."""
    return InputError(f"{title} does not take {value!r} for its {what} {name}; expected {expected}")


def elsewhere(title: str, name: str, means: str, *, what: str = "option") -> InputError:
    """What is said of an option that cwb sets by other means."""
    return InputError(f"{title}'s {what} {name} is set by {means}, not by its own name")
