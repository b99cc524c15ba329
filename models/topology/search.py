"""All networks that the expansions make of the bases, by their values alone: the best ones of every size and degree.

Every expansion multiplies the number of nodes or the degree, so that sizes are taken in ascending order and every network is
made once. What another one beats in both values, and in what it may be used for, is dropped on the way.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from .bases import bases
from .candidate import Candidate, Traits, both_directions, degree_expansion, line_graph, parallel, power, product

#: Networks of equal values that are kept.
TIES = 3

#: Where a candidate of a size and degree stands.
Cell = tuple[int, int]


class Closure:
    """The best networks of some sizes and degrees.

    Parameters
    ----------
    sizes : iterable of int
        Numbers of nodes. With a size, all its divisors are needed and taken.
    degrees : sequence of int
        Degrees that are asked for.
    circulants : bool
        Whether circulants of theorem 22 are among the bases.
    """

    def __init__(self, sizes: Iterable[int], degrees: Sequence[int], *, circulants: bool = True) -> None:
        asked = set(sizes)
        self.sizes = [n for n in range(2, max(asked) + 1) if any(size % n == 0 for size in asked)]
        self.degrees = degrees
        self.cells: dict[Cell, list[Candidate]] = defaultdict(list)
        self._known = frozenset(self.sizes)
        self._factors: dict[Cell, dict[bool, Candidate]] = defaultdict(dict)
        self._factor_cells: list[Cell] = []
        cells = [(nodes, degree) for nodes in self.sizes for degree in range(1, max(degrees) + 1)]
        for nodes, degree in cells:
            for base in bases(nodes, degree, circulants=circulants, generalized=self._leads(degree)):
                self._offer(base)
        for nodes, degree in cells:
            self._settle(nodes, degree)

    def frontier(self, nodes: int, degree: int, *, bidirectional: bool = False) -> list[Candidate]:
        """Give the networks that no other one of the closure beats by its values, by ascending steps; ties are together."""
        allowed = [c for c in self.cells.get((nodes, degree), ()) if c.bidirectional or not bidirectional]
        ordered = sorted(allowed, key=lambda c: (c.steps, c.bandwidth))
        best: list[Candidate] = []
        for one in ordered:
            if not best or one.bandwidth < best[-1].bandwidth or _tied(one, best[-1]):
                best.append(one)
        return best

    def _settle(self, nodes: int, degree: int) -> None:
        """Expand what is best in a cell, to which nothing comes any more."""
        for one in self.cells.get((nodes, degree), ()):
            self._expand(one)
        if (nodes, degree) in self._factors:
            self._multiply((nodes, degree))

    def _offer(self, new: Candidate) -> None:
        """Keep a candidate unless others are as good in everything."""
        cell = self.cells[new.nodes, new.degree]
        if new in cell:
            return
        ties = 0
        for old in cell:
            if old.steps <= new.steps and old.bandwidth <= new.bandwidth and not new.traits & ~old.traits:
                ties += 1
                if not _tied(old, new) or ties == TIES:
                    return
        cell[:] = [old for old in cell if _tied(old, new) or not _beats(new, old)]
        cell.append(new)
        if Traits.FACTOR in new.traits:
            best = self._factors[new.nodes, new.degree]
            for bidirectional in {False, new.bidirectional}:
                if bidirectional not in best or new.steps < best[bidirectional].steps:
                    best[bidirectional] = new

    def _expand(self, one: Candidate) -> None:
        """Apply every expansion that stays within the sizes and degrees."""
        nodes, degree, most = one.nodes, one.degree, max(self.degrees)
        if degree > 1 and Traits.REGULAR in one.traits and nodes * degree in self._known:
            self._offer(line_graph(one))
        for n in range(2, most // degree + 1):
            if not self._leads(n * degree):
                continue
            self._offer(parallel(one, n))
            if Traits.REGULAR in one.traits and n * nodes in self._known:
                self._offer(degree_expansion(one, n))
            if Traits.FACTOR not in one.traits and nodes**n in self._known:
                self._offer(power(one, n))
        if Traits.SYMMETRIC in one.traits and not one.bidirectional and 2 * degree <= most:
            self._offer(both_directions(one))

    def _leads(self, degree: int) -> bool:
        """Whether what is no factor may still reach a degree that is asked for."""
        return any(target % degree == 0 for target in self.degrees)

    def _multiply(self, cell: Cell) -> None:
        """Multiply the best factors of a cell with those of all cells before it, and with itself."""
        self._factor_cells.append(cell)
        nodes, degree = cell
        largest, most = self.sizes[-1], max(self.degrees)
        for other in self._factor_cells:
            if other[0] * nodes > largest:
                break
            if other[0] * nodes not in self._known or other[1] + degree > most:
                continue
            made = self._factors.get((other[0] * nodes, other[1] + degree), {})
            for bidirectional, one in self._factors[cell].items():
                two = self._factors[other].get(bidirectional)
                if two and (bidirectional not in made or one.steps + two.steps <= made[bidirectional].steps):
                    self._offer(product(one, two))


def _tied(one: Candidate, other: Candidate) -> bool:
    return one.steps == other.steps and one.bandwidth == other.bandwidth


def _beats(one: Candidate, other: Candidate) -> bool:
    return one.steps <= other.steps and one.bandwidth <= other.bandwidth and not other.traits & ~one.traits
