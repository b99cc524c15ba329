"""Errors, with the exit status of each kind."""

import re
import reprlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from enum import IntEnum
from typing import Literal

from .text import escape_unprintable


class ExitStatus(IntEnum):
    """Documented exit statuses of the command line."""

    OK = 0
    FAILURE = 1
    BAD_INPUT = 2
    INFEASIBLE = 3
    LIMIT = 4
    VERIFICATION_FAILED = 5
    SOLVER_MISSING = 6
    UNSUPPORTED = 7


_LONGEST_SOURCE = 1000  #: Characters of a source in an error line.

_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxlong = _SHORT.maxother = 60


def show_value(value: object) -> str:
    """Return a value cut to fit in an error line; fast for the largest value, safe for the deepest."""
    text = _SHORT.repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


class CwbError(Exception):
    """Error that the user sees as one line, without a traceback."""

    exit_status: ExitStatus = ExitStatus.FAILURE


class InputError(CwbError):
    """Bad input, reported in one line with source, place, value and expectation.

    The source is a file, an option or an expression, the place a JSON path in it, such as
    ``network.dimensions[2].block``.
    """

    exit_status = ExitStatus.BAD_INPUT

    def __init__(self, problem: str, *, source: str | None = None, place: str | None = None) -> None:
        super().__init__(problem)
        self.problem = problem
        self.source = source
        self.place = place

    def at(self, *, source: str | None = None, place: str | None = None) -> "InputError":
        """Return a copy with the value's source and place added; known ones stay.

        An inner place is appended to the outer one: ``at(place="network")`` of an error at ``dimensions[0]`` is an
        error at ``network.dimensions[0]``. A place in another source is not added.
        """
        places = [p for p in (None if self.source else place, self.place) if p]
        return InputError(self.problem, source=self.source or source, place=".".join(places).replace(".[", "[") or None)

    def __str__(self) -> str:
        source = self.source
        if source and len(source) > _LONGEST_SOURCE:  # an expression of thousands of characters, but never a path
            source = f"{source[: _LONGEST_SOURCE - 3]}..."
        return escape_unprintable(": ".join(part for part in (source, self.place, self.problem) if part))


@contextmanager
def locate_errors(place: str | None = None, *, source: str | None = None) -> Iterator[None]:
    """Add the place or the source to every :class:`InputError` of the block."""
    try:
        yield
    except InputError as error:
        raise error.at(source=source, place=place) from None


@contextmanager
def locate_os_errors(problem: str, source: str | None = None) -> Iterator[None]:
    """Turn an :class:`OSError` of the block into an :class:`InputError` with the system's reason, else ``problem``."""
    try:
        yield
    except OSError as error:
        raise InputError((error.strerror or problem).lower(), source=source) from None


class OutOfTime(CwbError):
    """Too little time or memory left for a run's next step."""

    exit_status = ExitStatus.LIMIT


class SolverUnavailable(CwbError):
    """Solver that is not installed, has no licence, or a licence too small for the model."""

    exit_status = ExitStatus.SOLVER_MISSING


class Unsupported(CwbError):
    """Instance that a method, or model that a solver, does not support; the message has the reason."""

    exit_status = ExitStatus.UNSUPPORTED


#: Property of an instance that a method refuses; ``other`` for plug-ins that return a text alone.
RefusalCode = Literal["network", "collective", "ranks", "data", "timing", "size", "workload", "other"]


@dataclass(frozen=True)
class Refusal:
    """Reason why a method does not support an instance."""

    code: RefusalCode
    text: str  #: For users; no program reads it.

    def __str__(self) -> str:
        return self.text


NO_COLLECTIVE = Refusal(
    "collective", "the instance has no collective to schedule; name one, such as --collective all_reduce"
)


def did_you_mean(word: str, words: Iterable[str]) -> str:
    """Return the end of an error message with the nearest known word, if any.

    Case, hyphens, underscores and spaces make no difference.
    """
    plain = {_letters(other): other for other in words}
    close = get_close_matches(_letters(word), plain, n=1)
    return f"; did you mean {plain[close[0]]!r}?" if close else ""


def one_of(word: str, words: Iterable[str]) -> str:
    """Return the end of an error message with all known words and the nearest one."""
    words = list(words)
    return f"; expected one of {', '.join(words)}{did_you_mean(word, words)}"


def _letters(word: str) -> str:
    return re.sub(r"[-_ ]", "", word.lower())
