"""Published numbers: where a paper prints them, what of cwb they are compared with, and what came of it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from .fields import Duration, Strict

#: What may stand before a number: an approximate one, or a claim that something is at most or at least so much.
_SIGNS = ("<=", ">=", "<", ">", "~")
_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]{1,3})?(/[0-9]+)?")

#: How far from an approximate number (``~5``) ours may be.
ABOUT = Fraction(1, 10)

Sign = Literal["", "<=", ">=", "<", ">", "~"]


@dataclass(frozen=True)
class Printed:
    """What stands in the paper.

    Parameters
    ----------
    text : str
        As printed: ``354.1``, ``15/166``, ``<= 0.02``, ``~5``, or a word.
    sign : str
        What the paper claims: the number itself, about so much, at most, at least.
    value : Fraction or None
        The number, exactly as printed; None for a word.
    half_unit : Fraction
        Half a unit of the last printed digit; zero for a fraction.
    """

    text: str
    sign: Sign
    value: Fraction | None
    half_unit: Fraction


def printed(text: str) -> Printed:
    """Read a printed number; a text that is none is a word."""
    sign = next((s for s in _SIGNS if text.startswith(s)), "")
    plain = text.removeprefix(sign).strip().replace(",", "")
    if not _NUMBER.fullmatch(plain):
        return Printed(text, "", None, Fraction(0))
    mantissa, _, exponent = plain.lower().partition("e")
    unit = Fraction(0)
    if "/" not in plain:
        digits = len(mantissa.partition(".")[2])
        unit = Fraction(10) ** ((int(exponent) if exponent else 0) - digits) / 2
    return Printed(text, sign, Fraction(plain), unit)  # type: ignore[arg-type]


def _as_text(value: object) -> object:
    """Take numbers too: an integer has no digits to lose; a float may have lost some."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


PrintedText = Annotated[str, BeforeValidator(_as_text), Field(min_length=1, max_length=200)]


class PublishedNetwork(Strict):
    """What the topology finder is asked, in place of a run of a method."""

    nodes: Annotated[int, Field(ge=2, le=10_000)]
    degree: Annotated[int, Field(ge=1, le=20)]
    network: str = Field(
        "best", description="Name that the finder gives it; or best, for the job; or bound, of them all."
    )
    alpha: str = "10 us"
    size: str = "1 MiB"
    bandwidth: Annotated[str, Field(description="Of all links out of a node together.")] = "100 Gb/s"
    bidirectional: bool = False
    circulants: bool = True
    rate: Annotated[bool, Field(description="Whether the rate of an all-to-all is computed, too.")] = False


class PublishedRun(Strict):
    """A run that a row's number comes from; what it does not say is the paper's default.

    With ``each`` it stands for as many runs as there are combinations of its lists, times the seeds. The names of the
    lists, and ``seed``, may be used in braces in the instance, the size and the options: ``gscale({skewness}, {seed})``.
    """

    instance: Annotated[
        str | None, Field(description="Name, expression or file; or one of the paper's own instances.")
    ] = None
    model: str | None = None
    collective: str | None = None
    size: str | None = None
    chunks: Annotated[int, Field(ge=1, le=10**9)] | None = None
    solver: str | None = None
    options: dict[str, Any] = Field(default_factory=dict)
    seeds: list[Annotated[int, Field(ge=0, le=2**31 - 1)]] = Field(default_factory=lambda: [0])
    find: Annotated[PublishedNetwork | None, Field(description="In place of instance and model.")] = None
    each: dict[str, Annotated[list[str | int | float], Field(min_length=1)]] = Field(default_factory=dict)
    time_limit: Duration | None = None
    slow: Annotated[bool, Field(description="Takes more than about ten seconds; left out by --quick.")] = False


class Quantity(Strict):
    """A number made from runs: a value of one run, or several quantities combined.

    Exactly one of ``run``, ``ratio``, ``difference``, ``mean``, ``geomean``, ``least``, ``largest`` and ``total`` is given.
    """

    run: str | None = Field(None, description="Name of a run.")
    value: str = Field(
        "objective",
        description="objective, bound, gap, status, seconds.NAME, size.NAME or metrics.NAME; of a table or a list .KEY or .INDEX.",
    )
    over: Literal["mean", "geomean", "least", "largest"] = Field(
        "mean", description="What is taken over the run's seeds and combinations."
    )
    ratio: tuple[Quantity, Quantity] | None = None
    difference: tuple[Quantity, Quantity] | None = None
    mean: list[Quantity] | None = None
    geomean: list[Quantity] | None = None
    least: list[Quantity] | None = None
    largest: list[Quantity] | None = None
    total: list[Quantity] | None = None
    times: PrintedText = Field("1", description="What it is multiplied by: a change of units, exactly.")

    @model_validator(mode="after")
    def _one(self) -> Quantity:
        given: list[object] = [self.run, self.ratio, self.difference]
        given += [self.mean, self.geomean, self.least, self.largest, self.total]
        if sum(part is not None for part in given) != 1:
            raise ValueError("expected exactly one of run, ratio, difference, mean, geomean, least, largest, total")
        if printed(self.times).value is None:
            raise ValueError(f"times is {self.times!r}; expected a number")
        return self

    @property
    def parts(self) -> tuple[Quantity, ...]:
        """The quantities that it is made of; none for a value of a run."""
        several = self.mean or self.geomean or self.least or self.largest or self.total
        return tuple(self.ratio or self.difference or several or ())

    def runs(self) -> tuple[str, ...]:
        """Names of all runs that it needs."""
        if self.run is not None:
            return (self.run,)
        return tuple(name for part in self.parts for name in part.runs())


class PublishedRow(Strict):
    """One printed number.

    Parameters
    ----------
    table : str
        ``Table 3``, ``Figure 7``, ``Section 6.2``.
    row, column : str
        Where in it, in the paper's words.
    section : str
        Section of the paper that has it.
    page : int, optional
        Page of the paper; the texts from which the numbers were taken have no page breaks.
    printed : str
        The number as printed.
    unit : str
        Its unit.
    ours : Quantity, optional
        What cwb computes; without it ``needs`` says why not.
    within : str, optional
        How far ours may be from it, such as ``2 %``; by default half a unit of the last printed digit.
    why : str
        Why ours differs, with the evidence; a difference without a reason is an open question.
    needs : str
        What would be needed to check it, such as ``GPUs``.
    """

    table: str
    row: str
    column: str = ""
    section: str
    page: Annotated[int, Field(ge=1, le=10_000)] | None = None
    printed: PrintedText
    unit: str = ""
    ours: Quantity | None = None
    within: str | None = Field(None, pattern=r"^[0-9]+(\.[0-9]+)? %$")
    why: str = ""
    needs: str = ""

    @model_validator(mode="after")
    def _either(self) -> PublishedRow:
        if (self.ours is None) == (not self.needs):
            raise ValueError("expected either ours or needs")
        return self


class PublishedFile(Strict):
    """All that one paper prints and that is compared; ``instances`` are those that only its rows need, as in instance files."""

    title: str
    source: str
    note: str = ""
    instances: dict[str, dict[str, Any]] = Field(default_factory=dict)
    default: PublishedRun = Field(default_factory=PublishedRun)
    runs: dict[str, PublishedRun] = Field(default_factory=dict)
    row: list[PublishedRow] = Field(min_length=1, max_length=10_000)

    @model_validator(mode="after")
    def _known(self) -> PublishedFile:
        for index, row in enumerate(self.row):
            for name in row.ours.runs() if row.ours else ():
                if name not in self.runs:
                    raise ValueError(f"row {index} ({row.table}, {row.row}) needs the run {name!r}, which is not there")
        return self


class Agreement(StrEnum):
    """What came of comparing a printed number with ours."""

    REPRODUCED = "reproduced"
    DIFFERS = "differs"
    UNCHECKED = "cannot be checked here"
    NOT_RUN = "not run"
    FAILED = "failed"


@dataclass(frozen=True)
class Finding:
    """A printed number beside ours.

    Parameters
    ----------
    row : PublishedRow
        What is printed, and where.
    agreement : Agreement
        The verdict.
    ours : float, str or None
        What cwb computed.
    difference : float or None
        Ours over the printed number, less one.
    reason : str
        Why it differs, cannot be checked, or failed.
    """

    row: PublishedRow
    agreement: Agreement
    ours: float | str | None = None
    difference: float | None = None
    reason: str = ""

    @property
    def explained(self) -> bool:
        """Whether nothing is left to ask: reproduced, or there is a reason."""
        return self.agreement is not Agreement.FAILED and (self.agreement is not Agreement.DIFFERS or bool(self.reason))


def compared(row: PublishedRow, ours: float | str) -> Finding:
    """Compare a printed number with ours; words are compared as words."""
    paper = printed(row.printed)
    if paper.value is None or isinstance(ours, str):
        same = str(ours) == row.printed
        return Finding(row, Agreement.REPRODUCED if same else Agreement.DIFFERS, ours, None, "" if same else row.why)
    found = Fraction(ours)
    difference = None if paper.value == 0 else float(found / paper.value - 1)
    if _agree(paper, paper.value, found, row.within):
        return Finding(row, Agreement.REPRODUCED, ours, difference)
    return Finding(row, Agreement.DIFFERS, ours, difference, row.why)


def _agree(paper: Printed, value: Fraction, ours: Fraction, within: str | None) -> bool:
    part = Fraction(within.removesuffix(" %")) / 100 if within else None
    room = paper.half_unit if part is None else part * abs(value)
    if paper.sign == "~":
        room = max(room, ABOUT * abs(value))
    above, below = ours <= value + room, ours >= value - room
    if paper.sign in ("<=", "<"):
        return above
    if paper.sign in (">=", ">"):
        return below
    return above and below
