"""Operations of the verifier by class of answer, and its findings: violations and warnings with their places.

The operations on answers by class are implemented beside the checks of each class.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import singledispatch
from typing import NamedTuple

from ...core.answers import Answer
from ...core.errors import InputError
from ...core.instance import Instance
from ...core.schedule import Bools, Ints, Schedule, StepSchedule
from ...core.trees import Forest, TreePacking
from .network import Network

KEPT = 10  #: Findings of one kind that are kept; all are counted.


@dataclass(frozen=True)
class Violation:
    """A single violation or warning."""

    #: A word to sort by: ``instance``, ``size``, ``range``, ``path``, ``capacity``, ``not-held``, ``not-a-sum``,
    #: ``order``, ``missing``, ``twice``, ``multicast``, ``buffer``, ``tree``, ``demand``; of warnings ``useless``.
    kind: str
    message: str
    rank: int | None = None
    chunk: int | None = None
    tree: int | None = None
    link: int | None = None
    step: int | None = None
    time_s: float | None = None

    def __str__(self) -> str:
        values = {"rank": self.rank, "chunk": self.chunk, "tree": self.tree, "link": self.link, "step": self.step}
        places = [f"{name} {value}" for name, value in values.items() if value is not None]
        if self.time_s is not None:
            places.append(f"at {self.time_s:.9g} s")
        return f"{self.kind}: {self.message}" + (f" ({', '.join(places)})" if places else "")


@dataclass(frozen=True)
class Report:
    """Result of the verifier."""

    violations: tuple[Violation, ...]
    warnings: tuple[Violation, ...]
    counts: Mapping[str, int]  #: Number of findings of each kind, including those not kept.

    @property
    def ok(self) -> bool:
        """True if there is no violation."""
        return not self.violations


@dataclass
class Findings:
    """Collector of violations and warnings."""

    violations: list[Violation] = field(default_factory=list)
    warnings: list[Violation] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)

    def add(self, violation: Violation) -> None:
        """Keep a violation, or only count it if there are enough of its kind."""
        self.counts[violation.kind] += 1
        if self.counts[violation.kind] <= KEPT:
            self.violations.append(violation)

    def add_each(self, kind: str, entries: Ints | Bools, make: Callable[[int], Violation]) -> bool:
        """Add a violation for every entry of an index or mask; return whether there is one."""
        index = entries.nonzero()[0] if entries.dtype == bool else entries
        if not len(index):
            return False
        self.violations += map(make, index[: max(0, KEPT - self.counts[kind])].tolist())
        self.counts[kind] += len(index)
        return True

    def warn_each(self, kind: str, index: Ints, make: Callable[[int], Violation]) -> None:
        """Add a warning for every entry of an index."""
        self.warnings += map(make, index[: max(0, KEPT - self.counts[kind])].tolist())
        if len(index):
            self.counts[kind] += len(index)

    def report(self) -> Report:
        """Return the findings, the earliest first; those without a time precede them."""

        def when(one: Violation) -> float:
            return -1.0 if one.time_s is None and one.step is None else one.time_s or one.step or 0

        violations, warnings = (tuple(sorted(each, key=when)) for each in (self.violations, self.warnings))
        return Report(violations, warnings, dict(self.counts))


class SendFindings(NamedTuple):
    """Findings at the sends of one schedule."""

    network: Network
    schedule: StepSchedule | Schedule
    findings: Findings

    def at(self, kind: str, text: str, send: int, link: int | None = None) -> Violation:
        """Return a violation at a send, on the first link of its path by default."""
        sends, schedule = self.schedule.sends, self.schedule
        link = int(sends.path_links[sends.path_offset[send]]) if link is None else link
        step = int(schedule.step[send]) if isinstance(schedule, StepSchedule) else None
        time_s = float(schedule.start_s[send]) if isinstance(schedule, Schedule) else None
        rank, chunk = self.network.rank(int(sends.source[send])), int(sends.chunk[send])
        return Violation(kind, text, rank=rank, chunk=chunk, link=link, step=step, time_s=time_s)

    def add(self, kind: str, text: str, send: int, link: int | None = None) -> None:
        """Add a violation at a send."""
        self.findings.add(self.at(kind, text, send, link))

    def add_each(self, kind: str, entries: Ints | Bools, text: str | Callable[[int], str]) -> bool:
        """Add a violation for every send of an index or mask; return whether there is one."""

        def make(send: int) -> Violation:
            return self.at(kind, text if isinstance(text, str) else text(send), send)

        return self.findings.add_each(kind, entries, make)


Whole = StepSchedule | Schedule | TreePacking  #: An answer that has all its sends or trees itself.


@singledispatch
def check_answer(answer: Answer, instance: Instance, network: Network, findings: Findings) -> None:
    """Add the violations of an answer to the findings; the answer belongs to the instance."""
    raise InputError("expected a schedule or trees", place="answer")


@singledispatch
def count_epochs(answer: Answer, instance: Instance) -> int | None:
    """Return the epochs up to the last arrival; None if the answer is not on a grid."""
    return None


def has_epochs(answer: Answer) -> bool:
    """Return whether answers of this class are on the instance's grid of epochs, if it has one."""
    return count_epochs.dispatch(type(answer)) is not count_epochs.dispatch(object)


@singledispatch
def write_out(answer: Answer, instance: Instance) -> Whole:
    """Expand an answer to all sends or trees that it represents."""
    raise InputError(f"{type(answer).__name__} has no sends; expected a schedule or a packing of trees")


@write_out.register
def _(answer: StepSchedule | Schedule | TreePacking, instance: Instance) -> Whole:
    return answer


#: Units on each link of every class of links of one kind, and the class of every link; shape (links,).
LinkUnits = tuple[list[int], Ints]


@singledispatch
def link_units(forest: Forest, network: Network) -> LinkUnits:
    """Return the units on all links, counting both directions of reduce-then-broadcast trees."""
    raise InputError("expected trees", place="answer")
