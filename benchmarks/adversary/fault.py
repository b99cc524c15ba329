"""Campaigns and the faults that they find."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

#: Comparisons of the case that runs, in the process that it runs in.
_NUMBERS: Counter[str] = Counter()


def count_comparisons(number: int = 1) -> None:
    """Count comparisons of an answer with an oracle."""
    _NUMBERS["comparisons"] += number


def take_comparisons() -> int:
    """Give the comparisons since the last call."""
    return _NUMBERS.pop("comparisons", 0)


@dataclass(frozen=True)
class Fault:
    """One false claim.

    Parameters
    ----------
    kind : str
        What is wrong, in a word or two; faults of one kind are counted together.
    question : str
        Command line or JSON that asks the question again.
    claimed : str
        What cwb said.
    known : str
        What the oracle has.
    defect : int or None
        Number of the defect in :data:`adversary.campaigns.known_defects.DEFECTS` whose class it is of.
    """

    kind: str
    question: str
    claimed: str
    known: str
    defect: int | None = None


@dataclass(frozen=True)
class Campaign:
    """Cases of one sort, each made of its seed alone.

    Parameters
    ----------
    name, oracle : str
        What it is called, and what answers are held against.
    case : callable
        Runs the case of a seed and gives the faults.
    smoke : sequence of int
        Seeds of the short run.
    cases : int
        Seeds of a run in full.
    cpu_s : int
        Processor seconds after which a case does not end.
    batch : int
        Cases that are handed to a process at once.
    endless : callable or None
        Gives, of a seed, the number of the defect that a case which does not end is of.
    """

    name: str
    oracle: str
    case: Callable[[int], Iterable[Fault]]
    smoke: Sequence[int]
    cases: int
    cpu_s: int = 60
    batch: int = 1
    endless: Callable[[int], int | None] | None = None
