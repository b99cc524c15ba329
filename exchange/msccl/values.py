"""Symbolic data: what a chunk in memory is the sum of.

A value is a number; contributions and sums of two values are values. Two values are the same multiset of contributions
if their fingerprints agree: the sum, modulo a prime, of a number for each contribution that is drawn at random, so that
different multisets agree with probability 2^-61. Which contributions a value has is found only where something is
wrong.
"""

from __future__ import annotations

from collections import Counter
from random import Random

_PRIME = 2**127 - 1

#: Contributions of a value that are counted for a message.
_MOST = 2**16


class Values:
    """All values of a run."""

    def __init__(self) -> None:
        self.fingerprint: list[int] = []
        self.left: list[int] = []
        self.right: list[int] = []
        self._number: dict[tuple[int, int], int] = {}
        self._random = Random(1).getrandbits  # noqa: S311 (nobody has to be kept from guessing)

    def contribution(self, rank: int, grain: int) -> int:
        """Return the initial value of a rank's input grain."""
        key = (rank, grain)
        found = self._number.get(key)
        if found is None:
            found = self._number[key] = len(self.fingerprint)
            self.fingerprint.append(self._random(126))
            self.left.append(~rank)
            self.right.append(grain)
        return found

    def sum(self, first: int, second: int) -> int:
        """Return the sum of two values."""
        self.fingerprint.append((self.fingerprint[first] + self.fingerprint[second]) % _PRIME)
        self.left.append(first)
        self.right.append(second)
        return len(self.fingerprint) - 1

    def of_all(self, ranks: int, grain: int) -> int:
        """Fingerprint of the sum of all ranks' grains of this place."""
        return sum(self.fingerprint[self.contribution(rank, grain)] for rank in range(ranks)) % _PRIME

    def contributions(self, value: int) -> Counter[tuple[int, int]]:
        """Count the contributions of a value; of a very large value only some."""
        found: Counter[tuple[int, int]] = Counter()
        rest = [value]
        while rest and found.total() < _MOST:
            some = rest.pop()
            if self.left[some] < 0:
                found[~self.left[some], self.right[some]] += 1
            else:
                rest += [self.left[some], self.right[some]]
        return found

    def any_contribution(self, value: int) -> tuple[int, int]:
        """Return one of the contributions of a value."""
        while self.left[value] >= 0:
            value = self.left[value]
        return ~self.left[value], self.right[value]

    def origin(self, value: int) -> tuple[int, int] | None:
        """Return the contribution that a value is a copy of; None for a sum."""
        return (~self.left[value], self.right[value]) if self.left[value] < 0 else None
