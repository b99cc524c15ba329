"""Links that are taken for stretches of whole ticks, and the first stretch in which several of them are free."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence


class Busy:
    """When links are taken."""

    def __init__(self) -> None:
        self._spans: dict[int, list[tuple[int, int]]] = {}

    def take(self, links: Sequence[int], begin: int, end: int) -> None:
        """Take links from a tick to another one; they must be free."""
        for link in links:
            insort(self._spans.setdefault(link, []), (begin, end))

    def give_back(self, links: Sequence[int], begin: int, end: int) -> None:
        """Undo :meth:`take`."""
        for link in links:
            self._spans[link].remove((begin, end))

    def earliest(self, links: Sequence[int], ready: int, ticks: int) -> int:
        """Give the first tick from ``ready`` on from which all links are free for so many ticks."""
        begin = ready
        while True:
            ends = [end for link in links if (end := self._clash(link, begin, begin + ticks)) is not None]
            if not ends:
                return begin
            begin = max(ends)

    def _clash(self, link: int, begin: int, end: int) -> int | None:
        """Give the end of the last span that overlaps the given one, if there is one."""
        spans = self._spans.get(link, [])
        index = bisect_left(spans, (end,)) - 1
        return spans[index][1] if index >= 0 and spans[index][1] > begin else None
