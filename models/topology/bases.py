"""Base networks, tables 8 and 9 of the direct-connect paper, with the values of their all-gathers.

They are known by formula, but for generalized Kautz graphs, whose values are computed: those of degree 2, 4, 8 and 16
up to 2,000 nodes were computed once, by ``benchmarks/find_topology.py``, and are read from a file.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from functools import cache
from importlib.resources import files
from itertools import count

import numpy as np

from ...core.schedule import Ints
from ..common.breadth_first.broadcast import Broadcast
from ..common.breadth_first.graph import graph_of
from .candidate import Candidate, Traits, again

_ALL = Traits.BIDIRECTIONAL | Traits.SYMMETRIC | Traits.REGULAR | Traits.FACTOR
_ONE_WAY = _ALL & ~Traits.BIDIRECTIONAL

#: Diameters of the distance-regular graphs of degree 4 in table 8, by number of nodes.
DISTANCE_REGULAR = {
    **{6: 2, 9: 2, 10: 3, 14: 3, 15: 3, 16: 4, 21: 3, 26: 3},
    **{32: 4, 35: 3, 45: 4, 70: 7, 80: 4, 189: 6, 728: 6},
}

#: Networks with an all-gather of their own, in ``special.json``: expression, nodes, degree, steps, isomorphic to the transpose.
SPECIAL = (
    ("diamond()", 8, 2, 3, False),
    ("modified_de_bruijn(2, 3)", 8, 2, 4, True),
    ("modified_de_bruijn(2, 4)", 16, 2, 5, False),
    ("modified_de_bruijn(3, 2)", 9, 3, 3, False),
    ("modified_de_bruijn(4, 2)", 16, 4, 3, False),
)


def bases(nodes: int, degree: int, *, circulants: bool = True, generalized: bool = True) -> Iterator[Candidate]:
    """Give all base networks of a size and degree.

    Parameters
    ----------
    nodes, degree : int
        Size and degree.
    circulants : bool
        Whether the circulants of theorem 22 are among them.
    generalized : bool
        Whether generalized Kautz and de Bruijn graphs are: those whose all-gathers are not optimal in bandwidth.
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


def _optimal(n: int, d: int, *, circulants: bool) -> Iterator[tuple[str, int, Traits]]:
    """Give expression, steps and traits of the base networks whose all-gathers are optimal in bandwidth."""
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
    """Theorem 22: the smallest m with n <= 2 m (m + 1) + 1, the nodes within m steps on an unbounded grid."""
    return next(m for m in count(1) if 2 * m * (m + 1) + 1 >= n)


@cache
def generalized_kautz(d: int, n: int) -> tuple[int, Fraction]:
    """T_L and T_B of the breadth-first all-gather of a generalized Kautz graph; ``d`` is its nominal degree."""
    known = _table().get(str(d), [])
    if n - d - 1 < len(known):
        steps, bandwidth = known[n - d - 1]
        return steps, Fraction(bandwidth)
    found = Broadcast(graph_of(range(n), imase_itoh(d, n)))
    return found.steps, found.bandwidth(d)


def transposed(one: Candidate) -> Candidate:
    """Give the candidate whose all-gather, backwards, is the reduce-scatter of another one (corollary 1.1).

    Its values differ for generalized Kautz graphs alone, and what is made of them: all others are isomorphic to their
    transpose, or have an all-gather for it that is optimal, too.
    """
    if one.of:
        return again(one, *map(transposed, one.of))
    if not one.expression.startswith("generalized_kautz"):
        return one
    found = Broadcast(graph_of(range(one.nodes), imase_itoh(one.degree, one.nodes)[:, ::-1]))
    return replace(one, steps=found.steps, bandwidth=found.bandwidth(one.degree))


def imase_itoh(d: int, n: int) -> Ints:
    """Links of a generalized Kautz graph (definition 16), without loops."""
    source = np.repeat(np.arange(n), d)
    target = (-d * source - np.tile(np.arange(1, d + 1), n)) % n
    links: Ints = np.stack([source, target], axis=1)[source != target]
    return links


@cache
def _table() -> dict[str, list[tuple[int, str]]]:
    """Read the computed values: for every degree, steps and T_B from d + 1 nodes on."""
    text = files(__name__.rpartition(".")[0]).joinpath("generalized_kautz.json").read_text(encoding="utf-8")
    table: dict[str, list[tuple[int, str]]] = json.loads(text)
    return table
