"""Candidates: networks with the values of their all-gathers, known without building them.

Values of bases (tables 8 and 9 of the direct-connect paper) and of expansions (theorems 7 and 10 to 13) are formulas;
those of generalized Kautz graphs are stored or computed (docs/methods/topology-finder.md, "Base networks").
"""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import Enum, Flag, auto
from fractions import Fraction
from functools import cache, reduce
from importlib.resources import files
from itertools import count
from math import prod

import numpy as np

from ...algorithms.breadth_first.broadcast import Broadcast, graph_of
from ...core.schedule import Ints

#: Diameters of the distance-regular graphs of degree 4 in table 8, by number of nodes.
DISTANCE_REGULAR = {
    **{6: 2, 9: 2, 10: 3, 14: 3, 15: 3, 16: 4, 21: 3, 26: 3},
    **{32: 4, 35: 3, 45: 4, 70: 7, 80: 4, 189: 6, 728: 6},
}

#: Networks with an all-gather of their own, in ``special.json``: expression, nodes, degree, steps, isomorphic to the
#: transpose.
SPECIAL = (
    ("diamond()", 8, 2, 3, False),
    ("modified_de_bruijn(2, 3)", 8, 2, 4, True),
    ("modified_de_bruijn(2, 4)", 16, 2, 5, False),
    ("modified_de_bruijn(3, 2)", 9, 3, 3, False),
    ("modified_de_bruijn(4, 2)", 16, 4, 3, False),
)


class Traits(Flag):
    """Properties of a network that expansions require or preserve."""

    BIDIRECTIONAL = auto()  #: every link has one back
    SYMMETRIC = auto()  #: isomorphic to its own transpose
    REGULAR = auto()  #: no idle ports: the definition has no loops
    FACTOR = auto()  #: simple, regular, and its breadth-first all-gather is optimal in bandwidth (theorem 13)


class Construction(Enum):
    """Expansion that makes a candidate from others."""

    BASE = "base"
    LINE_GRAPH = "line graph"
    DEGREE_EXPANSION = "degree expansion"
    POWER = "Cartesian power"
    PRODUCT = "Cartesian product"
    BOTH_DIRECTIONS = "both directions"
    PARALLEL = "parallel links"


@dataclass(frozen=True)
class Candidate:
    """A network with the values of its all-gather."""

    nodes: int
    degree: int
    steps: int  #: T_L in units of alpha.
    bandwidth: Fraction  #: T_B in units of M/B.
    traits: Traits
    form: Construction = Construction.BASE  #: Last expansion of its construction.
    of: "tuple[Candidate, ...]" = ()  #: Candidates to which the expansion was applied.
    #: Number of times the expansion is applied: copies, dimensions, parallel links, or line graphs of line graphs.
    count: int = 1
    expression: str = ""
    #: True if the all-gather is the network's own breadth-first one instead of an expanded one.
    breadth_first: bool = False

    @property
    def bidirectional(self) -> bool:
        """True if every link has a reverse link."""
        return Traits.BIDIRECTIONAL in self.traits

    def __str__(self) -> str:
        inner = str(self.of[0]) if self.of else ""
        closed = inner if self.of and self.of[0].form in (Construction.BASE, Construction.LINE_GRAPH) else f"({inner})"
        power = f"^{self.count}" if self.count > 1 else ""
        forms = {
            Construction.BASE: self.expression,
            Construction.LINE_GRAPH: f"L{power}({inner})",
            Construction.DEGREE_EXPANSION: f"{closed} * {self.count}",
            Construction.POWER: f"{closed}^□{self.count}",
            Construction.PRODUCT: " □ ".join(
                name if times == 1 else f"{name}^□{times}" for name, times in Counter(map(str, self.of)).items()
            ),
            Construction.BOTH_DIRECTIONS: f"{closed} ∪ its transpose",
            Construction.PARALLEL: f"{self.count} × {closed}",
        }
        return forms[self.form]


def line_graph(of: Candidate) -> Candidate:
    """Return the line graph: one more step, and 1/N more bandwidth time (theorems 7 and 10)."""
    traits = of.traits & (Traits.SYMMETRIC | Traits.REGULAR)
    again = of.form is Construction.LINE_GRAPH
    base, count = (of.of, of.count + 1) if again else ((of,), 1)
    nodes, bandwidth = of.degree * of.nodes, of.bandwidth + Fraction(1, of.nodes)
    return Candidate(nodes, of.degree, of.steps + 1, bandwidth, traits, Construction.LINE_GRAPH, base, count)


def degree_expansion(of: Candidate, n: int) -> Candidate:
    """Return the degree expansion: one more step, and (n - 1)/(n N) more bandwidth time (theorem 11)."""
    bandwidth = of.bandwidth + Fraction(n - 1, n * of.nodes)
    traits = of.traits & ~Traits.FACTOR
    return Candidate(
        n * of.nodes, n * of.degree, of.steps + 1, bandwidth, traits, Construction.DEGREE_EXPANSION, (of,), n
    )


def power(of: Candidate, n: int) -> Candidate:
    """Return the Cartesian power: n times the steps, the same ratio to optimal bandwidth (theorem 12)."""
    nodes = of.nodes**n
    bandwidth = of.bandwidth * Fraction(of.nodes, of.nodes - 1) * Fraction(nodes - 1, nodes)
    traits = of.traits & ~Traits.FACTOR
    return Candidate(nodes, n * of.degree, n * of.steps, bandwidth, traits, Construction.POWER, (of,), n)


def product(*of: Candidate) -> Candidate:
    """Return the product of :attr:`Traits.FACTOR` candidates: the sum of the steps, optimal bandwidth (theorem 13)."""
    flat = (part for one in of for part in (one.of if one.form is Construction.PRODUCT else (one,)))
    factors = tuple(sorted(flat, key=lambda part: (part.nodes, part.degree, part.expression)))
    nodes = prod(part.nodes for part in factors)
    traits = Traits.FACTOR | Traits.REGULAR | Traits.SYMMETRIC | Traits.BIDIRECTIONAL
    for part in factors:
        traits &= part.traits
    degree, steps = sum(part.degree for part in factors), sum(part.steps for part in factors)
    return Candidate(nodes, degree, steps, Fraction(nodes - 1, nodes), traits, Construction.PRODUCT, factors)


def both_directions(of: Candidate) -> Candidate:
    """Return the union with the transpose, on twice the ports at the same values (appendix A.6).

    The network must be isomorphic to its transpose.
    """
    traits = (of.traits | Traits.BIDIRECTIONAL) & ~Traits.FACTOR
    return Candidate(of.nodes, 2 * of.degree, of.steps, of.bandwidth, traits, Construction.BOTH_DIRECTIONS, (of,))


def parallel(of: Candidate, k: int) -> Candidate:
    """Return the network with every link multiplied, at the same values."""
    if of.form is Construction.PARALLEL:
        return parallel(of.of[0], k * of.count)
    traits = of.traits & ~Traits.FACTOR
    return Candidate(of.nodes, k * of.degree, of.steps, of.bandwidth, traits, Construction.PARALLEL, (of,), k)


def rebuild_candidate(one: Candidate, *of: Candidate) -> Candidate:
    """Apply the construction of a candidate to other candidates."""
    if not of:
        return one
    first, count = of[0], one.count
    builders: dict[Construction, Callable[[], Candidate]] = {
        Construction.LINE_GRAPH: lambda: reduce(lambda inner, _: line_graph(inner), range(count), first),
        Construction.DEGREE_EXPANSION: lambda: degree_expansion(first, count),
        Construction.POWER: lambda: power(first, count),
        Construction.PRODUCT: lambda: product(*of),
        Construction.BOTH_DIRECTIONS: lambda: both_directions(first),
        Construction.PARALLEL: lambda: parallel(first, count),
    }
    return builders[one.form]()


_ALL = Traits.BIDIRECTIONAL | Traits.SYMMETRIC | Traits.REGULAR | Traits.FACTOR
_ONE_WAY = _ALL & ~Traits.BIDIRECTIONAL


def bases(nodes: int, degree: int, *, circulants: bool = True, generalized: bool = True) -> Iterator[Candidate]:
    """Yield all base networks of a size and degree.

    With ``generalized``, they include Kautz and de Bruijn graphs whose all-gathers are not optimal in bandwidth.
    """
    for expression, steps, traits in _optimal(nodes, degree, circulants=circulants):
        yield _base(expression, nodes, degree, steps, Fraction(nodes - 1, nodes), traits)
    if generalized and degree >= 2:
        length = next((k for k in range(1, nodes) if degree**k >= nodes), 0)
        if degree**length == nodes:
            bandwidth = Fraction(degree * (nodes - 1), (degree - 1) * nodes)
            yield _base(f"de_bruijn({degree}, {length})", nodes, degree, length, bandwidth, Traits.SYMMETRIC)
        if nodes > degree + 1:
            steps, bandwidth = generalized_kautz(degree, nodes)
            traits = Traits(0) if nodes % (degree + 1) else Traits.REGULAR
            yield _base(f"generalized_kautz({degree}, {nodes})", nodes, degree, steps, bandwidth, traits)


def _base(expression: str, nodes: int, degree: int, steps: int, bandwidth: Fraction, traits: Traits) -> Candidate:
    return Candidate(nodes, degree, steps, bandwidth, traits, expression=expression)


def circulant(expression: str, nodes: int, degree: int, steps: int, bandwidth: Fraction, *, two_way: bool) -> Candidate:
    """Make a candidate of a circulant, isomorphic to its transpose by x -> -x, with computed values."""
    traits = _ALL if two_way else _ONE_WAY
    optimal = bandwidth == Fraction(nodes - 1, nodes)
    return _base(expression, nodes, degree, steps, bandwidth, traits if optimal else traits & ~Traits.FACTOR)


def _optimal(n: int, d: int, *, circulants: bool) -> Iterator[tuple[str, int, Traits]]:
    """Yield expression, steps and traits of base networks with bandwidth-optimal all-gathers."""
    if n == d + 1:
        yield f"complete({n})", 1, _ALL
    if n == 2 * d and d >= 2:
        yield f"complete_bipartite({d}, {d})", 2, _ALL
    if d == 1 and n >= 3:
        yield f"ring({n}, false)", n - 1, _ONE_WAY
    if d == 2 and n >= 4:
        yield f"ring({n})", n // 2, _ALL
    if n == d + 2 and d >= 2:
        yield f"directed_circulant({n}, {list(range(1, n - 1))})", 2, _ONE_WAY
    if d == 4 and n in DISTANCE_REGULAR:
        yield f"distance_regular(4, {n})", DISTANCE_REGULAR[n], _ALL
    if (n, d) == (8, 3):
        yield "twisted_hypercube(3)", 2, _ALL
    for expression, nodes, degree, steps, symmetric in SPECIAL:
        if (nodes, degree) == (n, d):
            yield expression, steps, Traits.REGULAR | (Traits.SYMMETRIC if symmetric else Traits(0))
    if circulants and d == 4 and n >= 7:
        yield f"optimal_circulant({n})", circulant_diameter(n), _ALL


def circulant_diameter(n: int) -> int:
    """Return the smallest m with n <= 2 m (m + 1) + 1 (theorem 22).

    The right-hand side counts the nodes within m steps on an unbounded grid.
    """
    return next(m for m in count(1) if 2 * m * (m + 1) + 1 >= n)


@cache
def generalized_kautz(d: int, n: int) -> tuple[int, Fraction]:
    """Return T_L and T_B of the breadth-first all-gather of a generalized Kautz graph of nominal degree ``d``."""
    rows = _table().get(str(d), [])
    if n - d - 1 < len(rows):
        steps, bandwidth = rows[n - d - 1]
        return steps, Fraction(bandwidth)
    broadcast = Broadcast(graph_of(range(n), imase_itoh(d, n)))
    return broadcast.steps, broadcast.bandwidth(d)


def transpose_candidate(one: Candidate) -> Candidate:
    """Return the candidate whose all-gather, reversed, is the reduce-scatter of another one (corollary 1.1).

    Values differ only for generalized Kautz graphs and networks made from them: all others are isomorphic to their
    transpose, or have an optimal all-gather for it, too.
    """
    if one.of:
        return rebuild_candidate(one, *map(transpose_candidate, one.of))
    if not one.expression.startswith("generalized_kautz"):
        return one
    broadcast = Broadcast(graph_of(range(one.nodes), imase_itoh(one.degree, one.nodes)[:, ::-1]))
    return replace(one, steps=broadcast.steps, bandwidth=broadcast.bandwidth(one.degree))


def imase_itoh(d: int, n: int) -> Ints:
    """Return the links of a generalized Kautz graph (definition 16), without loops."""
    source = np.repeat(np.arange(n), d)
    target = (-d * source - np.tile(np.arange(1, d + 1), n)) % n
    links: Ints = np.stack([source, target], axis=1)[source != target]
    return links


@cache
def _table() -> dict[str, list[tuple[int, str]]]:
    """Return the stored T_L and T_B of generalized Kautz graphs, by degree, from d + 1 nodes on."""
    text = files(__name__.rpartition(".")[0]).joinpath("generalized_kautz.json").read_text(encoding="utf-8")
    table: dict[str, list[tuple[int, str]]] = json.loads(text)
    return table
