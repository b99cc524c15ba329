"""Findings in a file: rule, place, and whether it is a fault.

A rule is a function that yields, for every finding, a text and the numbers of the GPU, thread block and step that it is
about, as far as it is about one. A text that is a :class:`Note` is no fault.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Self, TypeVarTuple

KEPT = 5  #: Findings of a rule that are kept; the others are counted.
Found = Iterator[tuple[str, *tuple[int, ...]]]
Subject = TypeVarTuple("Subject")


class Note(str):
    """Text of a finding that is worth knowing, but no fault."""

    __slots__ = ()


@dataclass(frozen=True)
class Finding:
    """One thing that was found."""

    rule: str
    text: str
    place: str = ""  #: Where, such as ``gpu 0, tb 3, step 12``; empty for the file.

    @property
    def wrong(self) -> bool:
        """True if the file does not run, or does something else than it says."""
        return not isinstance(self.text, Note)

    def __str__(self) -> str:
        """Return it as one line."""
        head = self.rule if self.wrong else f"note ({self.rule})"
        return ": ".join(part for part in (head, self.place, self.text) if part)


@dataclass
class Findings:
    """Collects findings, the first ones of every rule."""

    first: list[Finding] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)

    @classmethod
    def by(cls, rules: Mapping[str, Callable[[*Subject], Found]], *subject: *Subject) -> Self:
        """Apply rules to a program."""
        findings = cls()
        for name, rule in rules.items():
            for text, *place in rule(*subject):
                findings.add(name, text, place_text(*place))
        return findings

    def add(self, rule: str, text: str, place: str = "") -> None:
        """Add a finding."""
        self.counts[rule] += 1
        if self.counts[rule] <= KEPT:
            self.first.append(Finding(rule, text, place))

    @property
    def wrong(self) -> list[Finding]:
        """Those that make the file wrong."""
        return [finding for finding in self.first if finding.wrong]


def first_fault(
    rules: Mapping[str, Callable[[*Subject], Found]], names: Iterable[str], *subject: *Subject
) -> Finding | None:
    """Return the first fault that some of the rules find."""
    for name in names:
        for text, *place in rules[name](*subject):
            if not isinstance(text, Note):
                return Finding(name, text, place_text(*place))
    return None


def place_text(*numbers: int) -> str:
    """Format a place in a program: numbers of a GPU, thread block and step."""
    return ", ".join(f"{what} {number}" for what, number in zip(("gpu", "tb", "step"), numbers, strict=False))
