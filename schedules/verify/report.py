"""Findings of the verifier: violations and warnings, each with its place and time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ...core.schedule import Bools, Ints

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
        named = {"rank": self.rank, "chunk": self.chunk, "tree": self.tree, "link": self.link, "step": self.step}
        places = [f"{name} {value}" for name, value in named.items() if value is not None]
        if self.time_s is not None:
            places.append(f"at {self.time_s:.9g} s")
        return f"{self.kind}: {self.message}" + (f" ({', '.join(places)})" if places else "")


AtSend = Callable[[str, str, int], Violation]  #: Makes a violation of a kind and text, placed at a send.


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

    def add_each(self, kind: str, found: Ints | Bools, make: Callable[[int], Violation]) -> bool:
        """Add a violation for every entry of an index or mask; return whether there is one."""
        index = found.nonzero()[0] if found.dtype == bool else found
        if not len(index):
            return False
        for item in index[: max(0, KEPT - self.counts[kind])].tolist():
            self.violations.append(make(item))
        self.counts[kind] += len(index)
        return True

    def warn_each(self, kind: str, index: Ints, make: Callable[[int], Violation]) -> None:
        """Add a warning for every entry of an index."""
        for item in index[: max(0, KEPT - self.counts[kind])].tolist():
            self.warnings.append(make(item))
        if len(index):
            self.counts[kind] += len(index)

    def report(self) -> Report:
        """Return the findings, the earliest first; those without a time precede them."""

        def when(violation: Violation) -> float:
            return (
                -1.0 if violation.time_s is None and violation.step is None else violation.time_s or violation.step or 0
            )

        return Report(
            tuple(sorted(self.violations, key=when)), tuple(sorted(self.warnings, key=when)), dict(self.counts)
        )
