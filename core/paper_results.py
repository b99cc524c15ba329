"""Published numbers: their places in papers, the quantities they are compared with, and the outcome."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from .fields import Strict
from .training import TrainingOptions

#: What may stand before a number: an approximate one, or a claim that something is at most or at least so much.
_SIGNS = ("<=", ">=", "<", ">", "~")
_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]{1,3})?(/[0-9]+)?")

_TO = " to "  #: Between the ends of a range, as in ``70 to 85``.
ABOUT = Fraction(1, 10)  #: How far from an approximate number (``~5``) ours may be.

Sign = Literal["", "<=", ">=", "<", ">", "~"]


@dataclass(frozen=True)
class PrintedValue:
    """Number or word as printed in a paper."""

    text: str  #: As printed: ``354.1``, ``15/166``, ``<= 0.02``, ``~5``, a range as in ``70 to 85``, or a word.
    sign: Sign  #: Claim of the paper: the number itself, about so much, at most, at least.
    value: Fraction | None  #: The number, exactly as printed, or the lower end of a range; None for a word.
    half_unit: Fraction  #: Half a unit of the last printed digit, of a range's coarser end; zero for a fraction.
    most: Fraction | None = None

    @property
    def exact(self) -> bool:
        """True for one number, neither a range nor a claim about one."""
        return self.value is not None and self.most is None and not self.sign


def parse_printed(text: str) -> PrintedValue:
    """Parse a printed number or a range of two; any other text is a word."""
    ends = [parse_printed(part) for part in text.split(_TO)] if text.count(_TO) == 1 else []
    if ends and all(end.value is not None and not end.sign for end in ends):
        low, high = ends
        return PrintedValue(text, "", low.value, max(low.half_unit, high.half_unit), high.value)
    sign = next((s for s in _SIGNS if text.startswith(s)), "")
    plain = text.removeprefix(sign).strip().replace(",", "")
    if not _NUMBER.fullmatch(plain):
        return PrintedValue(text, "", None, Fraction(0))
    mantissa, _, exponent = plain.lower().partition("e")
    unit = Fraction(0)
    if "/" not in plain:
        digits = len(mantissa.partition(".")[2])
        unit = Fraction(10) ** ((int(exponent) if exponent else 0) - digits) / 2
    return PrintedValue(text, sign, Fraction(plain), unit)  # type: ignore[arg-type]


#: Numbers are read too: an integer has no digits to lose; a float may have lost some.
PrintedText = Annotated[
    str, BeforeValidator(lambda value: str(value) if type(value) is int else value), Field(min_length=1, max_length=200)
]


class PublishedNetwork(Strict):
    """Input of the topology finder, in place of a run of a method."""

    nodes: Annotated[int, Field(ge=2, le=10_000)] | list[Annotated[int, Field(ge=2, le=10_000)]]
    degree: Annotated[int, Field(ge=1, le=20)] | list[Annotated[int, Field(ge=1, le=20)]]
    network: str = "best"
    """Name that the finder gives it; or best, for the job; or bound, of them all; or all, the frontiers of every size
    up to so many nodes, at once."""
    alpha: str = "10 us"
    size: str = "1 MiB"
    bandwidth: Annotated[str, Field(description="Of all links out of a node together.")] = "100 Gb/s"
    bidirectional: bool = False
    circulants: bool = True
    rate: Annotated[bool, Field(description="True if the rate of an all-to-all is computed, too.")] = False

    @property
    def sizes(self) -> list[int]:
        """Numbers of nodes, each for a separate search."""
        return self.nodes if isinstance(self.nodes, list) else [self.nodes]

    @property
    def degrees(self) -> list[int]:
        """Degrees; several only if all networks are requested."""
        return self.degree if isinstance(self.degree, list) else [self.degree]

    @model_validator(mode="after")
    def _one_degree(self) -> PublishedNetwork:
        if self.network != "all" and len(self.degrees) != 1:
            raise ValueError(f"degree is {self.degree}; expected one, unless all networks are asked for")
        return self


class PublishedRun(Strict):
    """Run that a row's number comes from; the paper's defaults hold for all that it leaves out.

    With ``each`` it stands for as many runs as there are combinations of its lists, times the seeds. The names of
    the lists, and ``seed``, may be used in braces in the instance, the size, the chunks and the options:
    ``gscale({skewness}, {seed})``.
    """

    instance: str | None = None
    """Name, expression or file; or one of the paper's own instances."""
    model: str | None = None
    collective: str | None = None
    size: str | None = None
    chunks: Annotated[int, Field(ge=1, le=10**9)] | Annotated[str, Field(pattern=r"^\{[a-z]+\}$")] | None = None
    solver: str | None = None
    options: dict[str, Any] = Field(default_factory=dict)
    gap: Annotated[float | None, Field(ge=0, lt=1, description="Relative gap at which the search may stop.")] = None
    seeds: list[Annotated[int, Field(ge=0, le=2**31 - 1)]] = Field(default_factory=lambda: [0])
    pieces: Annotated[int | None, Field(ge=1, le=10**6)] = None
    """The answer's trees, each at its own rate, are simulated in so many chunks: metrics.simulated_s."""
    hold_latency: bool = False
    """The answer is simulated with links that are busy for the latency too: metrics.simulated_s."""
    find: Annotated[PublishedNetwork | None, Field(description="In place of instance and model.")] = None
    train: Annotated[TrainingOptions | None, Field(description="In place of a model.")] = None
    each: dict[str, Annotated[list[str | int | float], Field(min_length=1)]] = Field(default_factory=dict)
    slow: Annotated[bool, Field(description="Takes more than about ten seconds; left out by --quick.")] = False


COUNTS = ("ranks", "nodes", "links")  #: What is counted of a network.
_SOURCES = ("run", "network", "number")  #: Fields of quantities that combine no others, and of those that do.
COMBINED = ("ratio", "difference", "mean", "geomean", "least", "largest", "total")


class Quantity(Strict):
    """Number from runs: a value of one run, a count of a network, or a combination of quantities.

    Exactly one of ``run``, ``network``, ``number``, ``ratio``, ``difference``, ``mean``, ``geomean``, ``least``,
    ``largest`` and ``total`` is given.
    """

    run: str | None = Field(None, description="Name of a run.")
    value: str = "objective"
    """objective, bound, gap, status, seconds.NAME, size.NAME or metrics.NAME; of a table or a list .KEY or .INDEX."""
    over: Literal["mean", "geomean", "least", "largest", "total", "commonest"] = "mean"
    """Statistic over the run's seeds and combinations; commonest, of words too."""
    network: str | None = None
    """Name or expression of a network, whose ranks, nodes (with switches) or links are the value."""
    number: PrintedText | None = Field(None, description="A number that the paper states, such as a size, exactly.")
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
        if sum(getattr(self, name) is not None for name in (*_SOURCES, *COMBINED)) != 1:
            raise ValueError(f"expected exactly one of {', '.join((*_SOURCES, *COMBINED))}")
        if self.network is not None and self.value not in COUNTS:
            raise ValueError(f"value is {self.value!r}; expected one of {', '.join(COUNTS)} of a network")
        for name, text in (("times", self.times), ("number", self.number)):
            if text is not None and not parse_printed(text).exact:
                raise ValueError(f"{name} is {text!r}; expected a number")
        return self

    @property
    def parts(self) -> tuple[Quantity, ...]:
        """Quantities that it combines; none for a value of a run."""
        return next((tuple(parts) for name in COMBINED if (parts := getattr(self, name)) is not None), ())

    def runs(self) -> tuple[str, ...]:
        """Return the names of all runs that it needs."""
        if self.run is not None:
            return (self.run,)
        return tuple(name for part in self.parts for name in part.runs())

    @property
    def is_wall_time(self) -> bool:
        """True if it depends on computing time, which differs with machine and load."""
        return self.value.startswith("seconds.") or any(part.is_wall_time for part in self.parts)


class PublishedRow(Strict):
    """One printed number."""

    table: str  #: Table, figure or section: ``Table 3``, ``Figure 7``, ``Section 6.2``.
    #: ``row`` and ``column``: place in the table, in the paper's words.
    row: str
    column: str = ""
    section: str
    #: Page of the paper; the texts from which the numbers were taken have no page breaks.
    page: Annotated[int, Field(ge=1, le=10_000)] | None = None
    printed: PrintedText
    unit: str = ""
    ours: Quantity | None = None  #: Quantity that cwb computes; without it ``needs`` has the reason.
    #: Allowed difference of ours, such as ``2 %``; by default half a unit of the last printed digit.
    within: str | None = Field(None, pattern=r"^[0-9]+(\.[0-9]+)? %$")
    why: str = ""  #: Reason why ours differs, with the evidence; a difference without a reason is an open question.
    #: The number was measured on hardware, and ours is what a model of time predicts: its name in the file's
    #: ``models``.
    predicted: str = ""
    needs: str = ""  #: Requirement for checking it, such as ``GPUs``.

    @model_validator(mode="after")
    def _either(self) -> PublishedRow:
        if (self.ours is None) == (not self.needs):
            raise ValueError("expected either ours or needs")
        if self.predicted and self.ours is None:
            raise ValueError("expected ours where predicted says how it comes about")
        return self

    @property
    def place(self) -> str:
        """Place where it is printed, in one line."""
        return ", ".join(filter(None, (self.table, self.row, self.column)))

    @property
    def is_wall_time(self) -> bool:
        """True if it compares computing times."""
        return self.ours is not None and self.ours.is_wall_time


class EmulatedFigure(Strict):
    """Figure whose methods are measured on an emulated network."""

    table: str
    runs: list[str] = Field(min_length=1)  #: One method each; ``pieces`` of a run are those of each tree.
    scale: Annotated[str, Field(pattern=r"^1/[1-9][0-9]{0,5}$", description="Factor of the rates of all links.")]
    repeat: Annotated[int, Field(ge=1, le=1000)] = 3


class PublishedFile(Strict):
    """All compared numbers of one paper.

    ``instances`` are those that only its rows need, as in instance files; ``models`` describe in words the models
    of time that predict measured numbers.
    """

    title: str
    source: str
    note: str = ""
    models: dict[str, str] = Field(default_factory=dict)
    instances: dict[str, dict[str, Any]] = Field(default_factory=dict)
    default: PublishedRun = Field(default_factory=PublishedRun)
    runs: dict[str, PublishedRun] = Field(default_factory=dict)
    emulated: EmulatedFigure | None = None
    row: list[PublishedRow] = Field(min_length=1, max_length=10_000)

    @model_validator(mode="after")
    def _check_references(self) -> PublishedFile:
        for index, row in enumerate(self.row):
            for name in row.ours.runs() if row.ours else ():
                if name not in self.runs:
                    raise ValueError(f"row {index} ({row.table}, {row.row}) needs the run {name!r}, which is not there")
            if row.predicted and row.predicted not in self.models:
                raise ValueError(f"row {index} ({row.table}, {row.row}) names no model of time: {row.predicted!r}")
        return self


class Agreement(StrEnum):
    """Verdict of the comparison of a printed number with ours."""

    REPRODUCED = "reproduced"
    DIFFERS = "differs"
    PREDICTED = "predicted"
    WALL_TIME = "wall time"
    UNCHECKED = "cannot be checked here"
    NOT_RUN = "not run"
    FAILED = "failed"


@dataclass(frozen=True)
class Finding:
    """Printed number beside ours."""

    row: PublishedRow
    agreement: Agreement
    ours: float | str | None = None
    #: Ours over the printed number, less one; of a range, over its nearer end, and 0 inside.
    difference: float | None = None
    reason: str = ""  #: Reason why it differs, cannot be checked, or failed; or the model of time that predicts it.

    @property
    def is_explained(self) -> bool:
        """True if no question is open: neither failed nor different without a reason; always for wall times."""
        if self.row.is_wall_time:
            return True
        return self.agreement is not Agreement.FAILED and (self.agreement is not Agreement.DIFFERS or bool(self.reason))


def compare_row(row: PublishedRow, ours: float | str, model: str = "") -> Finding:
    """Compare a printed number with ours; words are compared as words.

    Computing times and predictions are set beside the printed number and not assessed: their verdict does not depend on
    the values.
    """
    paper = parse_printed(row.printed)
    difference: float | None = None
    if paper.value is None or isinstance(ours, str):
        same = str(ours) == row.printed
    else:
        value = Fraction(ours)
        same = _agree(paper, paper.value, value, row.within)
        near = paper.value if paper.most is None else min(max(paper.value, value), paper.most)
        is_inside = paper.most is not None and near == value
        difference = 0.0 if is_inside else None if near == 0 else float(value / near - 1)
    if row.is_wall_time:
        return Finding(row, Agreement.WALL_TIME, ours, difference)
    if row.predicted:
        return Finding(row, Agreement.PREDICTED, ours, difference, " ".join(filter(None, (model, row.why))))
    if same:
        return Finding(row, Agreement.REPRODUCED, ours, difference)
    return Finding(row, Agreement.DIFFERS, ours, difference, row.why)


def _agree(paper: PrintedValue, value: Fraction, ours: Fraction, within: str | None) -> bool:
    part = Fraction(within.removesuffix(" %")) / 100 if within else None
    most = value if paper.most is None else paper.most
    room = paper.half_unit if part is None else part * abs(value)
    if paper.sign == "~":
        room = max(room, ABOUT * abs(value))
    low, high = value - room, most + room
    claims = {"<": ours < high, "<=": ours <= high, ">": ours > low, ">=": ours >= low}
    return claims.get(paper.sign, low <= ours <= high)
