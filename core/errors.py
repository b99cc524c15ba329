"""What can go wrong, and the exit status that each kind of failure has."""

from __future__ import annotations

import reprlib
from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum

from .text import printable


class ExitStatus(IntEnum):
    """The documented exit statuses of the command line."""

    OK = 0
    FAILURE = 1
    BAD_INPUT = 2
    INFEASIBLE = 3
    LIMIT = 4
    VERIFICATION_FAILED = 5
    SOLVER_MISSING = 6
    UNSUPPORTED = 7


#: Characters of a source in an error line.
_LONGEST_SOURCE = 1000

_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxlong = _SHORT.maxother = 60


def shown(value: object) -> str:
    """Show a value in an error line, cut to a length that fits in one.

    Cheap for the largest value, safe for the deepest.
    """
    text = _SHORT.repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _cut(source: str) -> str:
    """A source for an error line: an expression of thousands of characters is cut, a path is not."""
    return source if len(source) <= _LONGEST_SOURCE else f"{source[: _LONGEST_SOURCE - 3]}..."


class CwbError(Exception):
    """An error that is shown to the user in one line, without a traceback."""

    exit_status: ExitStatus = ExitStatus.FAILURE


class InputError(CwbError):
    """Bad input, reported in one line with the source, the place in it, the value and what was expected.

    Parameters
    ----------
    problem : str
        What is wrong and what was expected instead.
    source : str, optional
        File name, option name or expression that the value came from.
    place : str, optional
        Place inside the source, as a JSON path such as ``network.dimensions[2].block``.
    """

    exit_status = ExitStatus.BAD_INPUT

    def __init__(self, problem: str, *, source: str | None = None, place: str | None = None) -> None:
        super().__init__(problem)
        self.problem = problem
        self.source = source
        self.place = place

    def at(self, *, source: str | None = None, place: str | None = None) -> InputError:
        """A copy that also says where the value came from; what is known already stays.

        An inner place is appended to the outer one: ``at(place="network")`` of an error at
        ``dimensions[0]`` is an error at ``network.dimensions[0]``. A place in another source is none in this one.
        """
        places = [p for p in (None if self.source else place, self.place) if p]
        return InputError(
            self.problem,
            source=self.source or source,
            place=".".join(places).replace(".[", "[") or None,
        )

    def __str__(self) -> str:
        source = self.source and _cut(self.source)
        return printable(": ".join(part for part in (source, self.place, self.problem) if part))


@contextmanager
def located(place: str | None = None, *, source: str | None = None) -> Iterator[None]:
    """Add the place or the source to every :class:`InputError` of the block."""
    try:
        yield
    except InputError as error:
        raise error.at(source=source, place=place) from None


class OutOfTime(CwbError):
    """The remaining time or memory of a run is not enough for its next step."""

    exit_status = ExitStatus.LIMIT


class SolverUnavailable(CwbError):
    """The solver is not installed, has no licence, or its licence is too small for the model."""

    exit_status = ExitStatus.SOLVER_MISSING


class Unsupported(CwbError):
    """A method does not support the instance, or a solver does not support the model; the message has the reason."""

    exit_status = ExitStatus.UNSUPPORTED
