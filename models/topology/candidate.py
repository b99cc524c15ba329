"""Candidates: networks that need not be built to know what an all-gather takes on them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, Flag, auto
from fractions import Fraction
from functools import reduce
from math import prod


class Traits(Flag):
    """What expansions ask of a network, and whether they keep it."""

    BIDIRECTIONAL = auto()  #: every link has one back
    SYMMETRIC = auto()  #: isomorphic to its own transpose
    REGULAR = auto()  #: no idle ports: the definition has no loops
    FACTOR = auto()  #: simple, regular, and its breadth-first all-gather is optimal in bandwidth (theorem 13)


class Made(Enum):
    """How a candidate is made of others."""

    BASE = "base"
    LINE_GRAPH = "line graph"
    DEGREE_EXPANSION = "degree expansion"
    POWER = "Cartesian power"
    PRODUCT = "Cartesian product"
    BOTH_DIRECTIONS = "both directions"
    PARALLEL = "parallel links"


@dataclass(frozen=True)
class Candidate:
    """A network with the values of its all-gather.

    Parameters
    ----------
    nodes, degree : int
        N and d.
    steps : int
        T_L in units of alpha.
    bandwidth : Fraction
        T_B in units of M/B.
    traits : Traits
        What holds of it.
    made : Made
        The last expansion.
    of : tuple of Candidate
        What it is made of.
    count : int
        How many times the expansion is applied: copies, dimensions, parallel links, or line graphs of line graphs.
    expression : str
        Generator expression of a base network.
    breadth_first : bool
        Whether the all-gather is the network's own breadth-first one, and not that of what it is made of, expanded.
    """

    nodes: int
    degree: int
    steps: int
    bandwidth: Fraction
    traits: Traits
    made: Made = Made.BASE
    of: tuple[Candidate, ...] = ()
    count: int = 1
    expression: str = ""
    breadth_first: bool = False

    @property
    def bidirectional(self) -> bool:
        """Whether every link has one back."""
        return Traits.BIDIRECTIONAL in self.traits

    def __str__(self) -> str:
        inner = str(self.of[0]) if self.of else ""
        closed = inner if self.of and self.of[0].made in (Made.BASE, Made.LINE_GRAPH) else f"({inner})"
        power = f"^{self.count}" if self.count > 1 else ""
        forms = {
            Made.BASE: self.expression,
            Made.LINE_GRAPH: f"L{power}({inner})",
            Made.DEGREE_EXPANSION: f"{closed} * {self.count}",
            Made.POWER: f"{closed}^□{self.count}",
            Made.PRODUCT: " □ ".join(
                name if times == 1 else f"{name}^□{times}" for name, times in Counter(map(str, self.of)).items()
            ),
            Made.BOTH_DIRECTIONS: f"{closed} ∪ its transpose",
            Made.PARALLEL: f"{self.count} × {closed}",
        }
        return forms[self.made]


def line_graph(of: Candidate) -> Candidate:
    """Theorems 7 and 10: one step more, and 1/N more bandwidth time."""
    traits = of.traits & (Traits.SYMMETRIC | Traits.REGULAR)
    again = of.made is Made.LINE_GRAPH
    return Candidate(
        of.degree * of.nodes,
        of.degree,
        of.steps + 1,
        of.bandwidth + Fraction(1, of.nodes),
        traits,
        Made.LINE_GRAPH,
        of.of if again else (of,),
        of.count + 1 if again else 1,
    )


def degree_expansion(of: Candidate, n: int) -> Candidate:
    """Theorem 11: one step more, and (n - 1)/(n N) more bandwidth time."""
    bandwidth = of.bandwidth + Fraction(n - 1, n * of.nodes)
    traits = of.traits & ~Traits.FACTOR
    return Candidate(n * of.nodes, n * of.degree, of.steps + 1, bandwidth, traits, Made.DEGREE_EXPANSION, (of,), n)


def power(of: Candidate, n: int) -> Candidate:
    """Theorem 12: n times the steps; as far from the optimum of bandwidth as before, in proportion."""
    nodes = of.nodes**n
    bandwidth = of.bandwidth * Fraction(of.nodes, of.nodes - 1) * Fraction(nodes - 1, nodes)
    traits = of.traits & ~Traits.FACTOR
    return Candidate(nodes, n * of.degree, n * of.steps, bandwidth, traits, Made.POWER, (of,), n)


def product(*of: Candidate) -> Candidate:
    """Theorem 13: the steps of all factors, and the optimum of bandwidth; every one must be a :attr:`Traits.FACTOR`."""
    flat = (part for one in of for part in (one.of if one.made is Made.PRODUCT else (one,)))
    factors = tuple(sorted(flat, key=lambda part: (part.nodes, part.degree, part.expression)))
    nodes = prod(part.nodes for part in factors)
    traits = Traits.FACTOR | Traits.REGULAR | Traits.SYMMETRIC | Traits.BIDIRECTIONAL
    for part in factors:
        traits &= part.traits
    return Candidate(
        nodes,
        sum(part.degree for part in factors),
        sum(part.steps for part in factors),
        Fraction(nodes - 1, nodes),
        traits,
        Made.PRODUCT,
        factors,
    )


def both_directions(of: Candidate) -> Candidate:
    """Appendix A.6: the transpose on as many ports again, at the same values; for what is isomorphic to its transpose."""
    traits = (of.traits | Traits.BIDIRECTIONAL) & ~Traits.FACTOR
    return Candidate(of.nodes, 2 * of.degree, of.steps, of.bandwidth, traits, Made.BOTH_DIRECTIONS, (of,))


def parallel(of: Candidate, k: int) -> Candidate:
    """Several links for every one, at the same values."""
    if of.made is Made.PARALLEL:
        return parallel(of.of[0], k * of.count)
    traits = of.traits & ~Traits.FACTOR
    return Candidate(of.nodes, k * of.degree, of.steps, of.bandwidth, traits, Made.PARALLEL, (of,), k)


def again(one: Candidate, *of: Candidate) -> Candidate:
    """Make a candidate as another one was made, of other parts."""
    if not of:
        return one
    first, count = of[0], one.count
    made: dict[Made, Callable[[], Candidate]] = {
        Made.LINE_GRAPH: lambda: reduce(lambda inner, _: line_graph(inner), range(count), first),
        Made.DEGREE_EXPANSION: lambda: degree_expansion(first, count),
        Made.POWER: lambda: power(first, count),
        Made.PRODUCT: lambda: product(*of),
        Made.BOTH_DIRECTIONS: lambda: both_directions(first),
        Made.PARALLEL: lambda: parallel(first, count),
    }
    return made[one.made]()
