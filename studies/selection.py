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
from .fastest_by_size import Span, fastest, limit_spans, sizes_between
from .schedule_candidates import Candidate, Candidates, Choice, distinct_candidates

SCHEMA = "cwb-select/1"

#: Files of a folder, where the runtime loads any number.
MOST_FILES = 8


@dataclass(frozen=True, eq=False)
class SelectedSchedule:
    """The program of the fastest schedule for a range of sizes."""

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
    """A program for every size.

    Parameters
    ----------
    ranges : tuple of Chosen
        Contiguous ranges of sizes, in ascending order.
    left_out : mapping of str to str
        Reasons of methods that are not among them.
    """

    choice: Choice
    dialect: Dialect
    ranges: tuple[SelectedSchedule, ...]
    candidates: tuple[Candidate, ...]
    left_out: Mapping[str, str]
    found: Candidates

    def tuner(self, protocol: str) -> str | None:
        """Return the file for NCCL's tuner with its best algorithms; None without candidates of NCCL."""
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

    def to_json(self) -> dict[str, Any]:
        """Return the output of ``cwb select --json``."""
        choice = self.choice
        sizes = sizes_between(choice.first, choice.last)
        return {
            "schema": SCHEMA,
            "instance": choice.instance.name,
            "collective": choice.kind.name,
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


def _range(one: SelectedSchedule) -> dict[str, Any]:
    """Return a range of sizes as plain data."""
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


def select_schedules(choice: Choice, found: Candidates, target: Target, most: int | None = None) -> Selection:
    """Choose, for every size, the fastest candidate whose program fits the runtime.

    Candidates with the same program, such as one with joined chunks and one without chunks, count as one.

    Parameters
    ----------
    found : Candidates
        All candidates; those that do not fit are left out.
    target : Target
        The runtime; sizes are those of the choice.
    most : int, optional
        Limit on the number of files; by default :data:`MOST_FILES`, or the limit of the runtime.
    """
    left_out, programs = dict(found.left_out), dict[Candidate, Algorithm]()
    some = distinct_candidates(found, choice)
    most = most or LOADED.get(target.dialect.name, MOST_FILES)
    while some:
        spans = limit_spans([one.seconds for one in some], choice.first, choice.last, most)
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
            return Selection(choice, target.dialect, ranges, tuple(some), left_out | found.left_out, found)
        joined = twins[0].join(twins[1])
        programs[joined] = programs[twins[0]]
        some[some.index(twins[0])] = joined
        some.remove(twins[1])
    why = "; ".join(f"{label}: {text}" for label, text in list((left_out | found.left_out).items())[:3])
    raise InputError(f"no schedule of {choice.kind.name} can be used" + (f" ({why}, ...)" if why else ""))


def _ranges(
    choice: Choice, dialect: Dialect, spans: list[tuple[Span, Candidate]], programs: Mapping[Candidate, Algorithm]
) -> Iterator[SelectedSchedule]:
    for number, (span, one) in enumerate(spans, start=1):
        name = f"{choice.kind.name}-{number}-{one.item.model}"
        yield SelectedSchedule(
            span.first, span.last, one, for_sizes(programs[one], name, span.first, span.last, dialect)
        )


def _fits(one: Candidate, target: Target, programs: dict[Candidate, Algorithm], left_out: dict[str, str]) -> bool:
    """Return True if the program of a candidate fits, and keep it; otherwise keep the reason."""
    if one not in programs:
        try:
            programs[one] = lower(flow_of(one.instance, one.answer), target)
        except InputError as error:
            left_out[one.label] = str(error)
            return False
    return True
