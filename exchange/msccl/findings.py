"""Findings in a file: rule, place, and whether it is a fault."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

#: Findings of a rule that are kept; the others are counted.
KEPT = 5


@dataclass(frozen=True)
class Finding:
    """One thing that was found.

    Parameters
    ----------
    rule : str
        Name of the rule, such as ``offset``.
    text : str
        What is wrong and what the runtime does then.
    place : str
        Where, such as ``gpu 0, tb 3, step 12``; empty for the file.
    wrong : bool
        Whether the file does not run, or does something else than it says; otherwise it is worth knowing.
    """

    rule: str
    text: str
    place: str = ""
    wrong: bool = True

    def __str__(self) -> str:
        """Return it as one line."""
        told = self.rule if self.wrong else f"note ({self.rule})"
        return ": ".join(part for part in (told, self.place, self.text) if part)


@dataclass
class Findings:
    """Collects findings, the first ones of every rule."""

    kept: list[Finding] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)

    def add(self, rule: str, text: str, place: str = "", *, wrong: bool = True) -> None:
        """Add a finding."""
        self.counts[rule] += 1
        if self.counts[rule] <= KEPT:
            self.kept.append(Finding(rule, text, place, wrong))

    @property
    def wrong(self) -> list[Finding]:
        """Those that make the file wrong."""
        return [finding for finding in self.kept if finding.wrong]

    def lines(self) -> list[str]:
        """Return all findings as lines, with the number of further ones of each rule."""
        more = [f"{rule}: {count - KEPT:,} more" for rule, count in self.counts.items() if count > KEPT]
        return [*map(str, self.kept), *more]


def place_text(gpu: int, block: int, position: int | None = None) -> str:
    """Format a place in a program."""
    return f"gpu {gpu}, tb {block}" + ("" if position is None else f", step {position}")
