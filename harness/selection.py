"""The best of several schedules for every size, as programs of a runtime."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from ..core.errors import InputError
from ..exchange.msccl.dialects import Dialect
from ..exchange.msccl.flow import flow_of
from ..exchange.msccl.folder import LOADED, for_sizes
from ..exchange.msccl.lower import Target, lower
from ..exchange.msccl.program import Algorithm
from ..exchange.nccl_tuner import algorithm_of, tuner_text
from ..schedules.completion import OF_FORESTS, OF_SCHEDULES
from .fastest import Span, at_most, fastest, sizes_between
from .select import Candidate, Candidates, Choice, different

SCHEMA = "cwb-select/1"

#: Files of a folder, where the runtime loads any number.
MOST_FILES = 8


@dataclass(frozen=True, eq=False)
class Chosen:
    """A schedule that is the fastest in a range of sizes, both ends included, and its program.

    Parameters
    ----------
    first, last : int
        Sizes in bytes.
    candidate : Candidate
        The schedule.
    algorithm : Algorithm
        The program, for these sizes.
    """

    first: int
    last: int
    candidate: Candidate
    algorithm: Algorithm

    @property
    def file(self) -> str:
        """Name of the program's file."""
        return f"{self.algorithm.name}.xml"


@dataclass(frozen=True, eq=False)
class Selection:
    """What was chosen.

    Parameters
    ----------
    choice : Choice
        What was asked.
    dialect : Dialect
        The runtime.
    ranges : tuple of Chosen
        By size, without holes.
    candidates : tuple of Candidate
        Among which: those with a cost of their own.
    left_out : mapping of str to str
        What is not among them, and why.
    """

    choice: Choice
    dialect: Dialect
    ranges: tuple[Chosen, ...]
    candidates: tuple[Candidate, ...]
    left_out: Mapping[str, str]

    def tuner(self, protocol: str) -> str | None:
        """The file for NCCL's tuner, with the best of NCCL's own algorithms; None if none of them is a candidate."""
        choice = self.choice
        known = [(one, algorithm_of(choice.kind, one.item.model)) for one in self.candidates]
        some = [(one, name) for one, name in known if name is not None]
        if not some:
            return None
        found: list[tuple[int, int, str]] = []
        for span in fastest([one.seconds for one, _ in some], choice.first, choice.last):
            name = some[span.curve][1]
            if found and found[-1][2] == name:
                found[-1] = found[-1][0], span.last, name
            else:
                found.append((span.first, span.last, name))
        return tuner_text(choice.kind, found, choice.ranks, protocol)

    def plain(self) -> dict[str, Any]:
        """All of it as plain data, for files and plots."""
        choice = self.choice
        sizes = sizes_between(choice.first, choice.last)
        return {
            "schema": SCHEMA,
            "instance": choice.instance.name,
            "collective": choice.kind.value,
            "ranks": choice.ranks,
            "dialect": self.dialect.name,
            "min_bytes": choice.first,
            "max_bytes": choice.last,
            "clock": [OF_SCHEDULES, OF_FORESTS],
            "ranges": [_range(one) for one in self.ranges],
            "crossovers": [one.first for one in self.ranges[1:]],
            "sizes": sizes,
            "curves": [
                {"schedule": one.label, "seconds": [one.seconds(size) for size in sizes]} for one in self.candidates
            ],
            "left_out": dict(self.left_out),
        }


def _range(one: Chosen) -> dict[str, Any]:
    """A range of sizes as plain data."""
    made = one.candidate
    seconds = [made.seconds(size) for size in (one.first, one.last)]
    return {
        "min_bytes": one.first,
        "max_bytes": one.last,
        "schedule": made.label,
        "model": made.item.model,
        "options": dict(made.item.options),
        "chunks": made.chunks,
        "file": one.file,
        "seconds": seconds,
        "algbw_GBps": [
            size * made.unit / time / 1e9 for size, time in zip((one.first, one.last), seconds, strict=True)
        ],
        "steps": one.algorithm.steps,
    }


def selected(choice: Choice, found: Candidates, target: Target, most: int | None = None) -> Selection:
    """Choose the fastest candidate for every size whose program fits the runtime.

    Candidates of the same program, such as one whose chunks are joined and one without chunks, count as one.

    Parameters
    ----------
    choice : Choice
        What was asked.
    found : Candidates
        What there is; what does not fit is left out.
    target : Target
        The runtime; sizes are those of the choice.
    most : int, optional
        Files at most; by default :data:`MOST_FILES`, or what the runtime loads.

    Raises
    ------
    InputError
        If nothing is left.
    """
    left_out, programs = dict(found.left_out), dict[Candidate, Algorithm]()
    some = different(found, choice)
    most = most or LOADED.get(target.dialect.name, MOST_FILES)
    while some:
        spans = at_most([one.seconds for one in some], choice.first, choice.last, most)
        winners = [some[curve] for curve in dict.fromkeys(span.curve for span in spans)]
        misfit = next((one for one in winners if not _fits(one, target, programs, left_out)), None)
        if misfit is not None:
            some.remove(misfit)
            continue
        twins = next(
            (pair for pair in combinations(winners, 2) if len({programs[one].gpus for one in pair}) == 1), None
        )
        if twins is None:
            ranges = tuple(_ranges(choice, target.dialect, [(span, some[span.curve]) for span in spans], programs))
            return Selection(choice, target.dialect, ranges, tuple(some), left_out | found.left_out)
        joined = twins[0].joined(twins[1])
        programs[joined] = programs[twins[0]]
        some[some.index(twins[0])] = joined
        some.remove(twins[1])
    why = "; ".join(f"{label}: {text}" for label, text in list((left_out | found.left_out).items())[:3])
    raise InputError(f"no schedule of {choice.kind.value} can be used" + (f" ({why}, ...)" if why else ""))


def _ranges(
    choice: Choice, dialect: Dialect, spans: list[tuple[Span, Candidate]], programs: Mapping[Candidate, Algorithm]
) -> Iterator[Chosen]:
    """The program of each range of sizes."""
    for number, (span, one) in enumerate(spans, start=1):
        name = f"{choice.kind.value}-{number}-{one.item.model}"
        yield Chosen(span.first, span.last, one, for_sizes(programs[one], name, span.first, span.last, dialect))


def _fits(one: Candidate, target: Target, programs: dict[Candidate, Algorithm], left_out: dict[str, str]) -> bool:
    """Make the program of a candidate, unless it is there; what does not fit is told."""
    if one not in programs:
        try:
            programs[one] = lower(flow_of(one.instance, one.answer), target)
        except InputError as error:
            left_out[one.label] = str(error)
            return False
    return True
