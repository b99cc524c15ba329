"""Distance-regular graphs: Hamming graphs, and those of degree 4 in table 8 of the direct-connect paper.

In a distance-regular graph, how many neighbours of a node are at distance i - 1 from another one depends on their own
distance i alone. All-gathers by breadth-first broadcast reach the least time in them (theorem 18).
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations, product

from ...core.errors import InputError
from ...core.topology import Topology
from .building import BANDWIDTH, LATENCY, Rate, Time, both_ways, check_range, check_ranges, make_graph

_Edges = Iterator[tuple[int, int]]
_Vector = tuple[int, ...]
_MAX_DIGITS = 20  #: More digits than this make more nodes than there may be, even with two letters.


def hamming(length: int, letters: int, *, bandwidth: Rate = BANDWIDTH, latency: Time = LATENCY) -> Topology:
    """Hamming graph: words of the given length; neighbours differ in one letter. H(n, q) in the direct-connect paper.

    It is the Cartesian power of the complete graph of the letters; with two letters it is the hypercube.

    ``length``, ``letters``: letters of a word, which is the diameter, and number of different letters.
    """
    check_ranges(length=(length, 1, _MAX_DIGITS), letters=(letters, 2))
    links = letters**length * length * (letters - 1)
    return make_graph(letters**length, links, both_ways(_hamming(length, letters)), bandwidth, latency)


def _hamming(length: int, letters: int) -> _Edges:
    for stride in (letters**place for place in range(length)):
        for rank in range(letters**length):
            for more in range(1, letters - rank // stride % letters):
                yield rank, rank + more * stride


def distance_regular(d: int, n: int, *, bandwidth: Rate = BANDWIDTH, latency: Time = LATENCY) -> Topology:
    """Distance-regular graph of degree 4 and n nodes, of table 8 of the direct-connect paper: DistReg(4, n).

    =====  =================================================  =====  =================================================
    n      graph                                              n      graph
    =====  =================================================  =====  =================================================
    6      octahedron                                         32     points and lines of AG(2, 4) minus a parallel class
    9      Hamming graph H(2, 3), the Paley graph             35     odd graph O4
    10     K(5, 5) minus a perfect matching                   45     line graph of Tutte's 8-cage
    14     distance-3 graph of the Heawood graph              70     doubled odd graph D(O4)
    15     line graph of the Petersen graph                   80     points and lines of GQ(3, 3)
    16     hypercube of 4 dimensions                          189    line graph of Tutte's 12-cage
    21     line graph of the Heawood graph                    728    points and lines of GH(3, 3)
    26     points and lines of PG(2, 3)
    =====  =================================================  =====  =================================================

    ``d``: degree; only 4 is known.
    """
    check_range(d, "d", 4, 4)
    if n not in _TABLE_8:
        sizes = ", ".join(str(size) for size in _TABLE_8)
        raise InputError(f"no graph of {n:,} nodes in the table; expected one of {sizes}", place="n")
    return make_graph(n, 4 * n, both_ways(_TABLE_8[n]()), bandwidth, latency)


def _bipartite(flags: Sequence[tuple[int, int]]) -> _Edges:
    """Connect points with the lines they are on; the points have the lower ranks."""
    points = 1 + max(point for point, _ in flags)
    return ((point, points + line) for point, line in flags)


def _line_graph(edges: Sequence[tuple[int, int]]) -> _Edges:
    return ((i, j) for (i, one), (j, other) in combinations(enumerate(edges), 2) if set(one) & set(other))


def _incident(points: Sequence[object], lines: Sequence[frozenset[object]]) -> list[tuple[int, int]]:
    return [(p, q) for p, point in enumerate(points) for q, line in enumerate(lines) if point in line]


def _subsets(size: int, of: int) -> list[frozenset[int]]:
    return [frozenset(subset) for subset in combinations(range(of), size)]


def _projective(q: int, length: int) -> list[_Vector]:
    """Return the points of PG(length - 1, q): vectors whose first nonzero entry is 1."""
    vectors = product(range(q), repeat=length)
    return [v for v in vectors if next((entry for entry in v if entry), 0) == 1]


def _plane(q: int) -> list[tuple[int, int]]:
    """Return incident points and lines of PG(2, q); a line is a vector orthogonal to its points."""
    vectors = list(enumerate(_projective(q, 3)))
    return [(p, i) for p, v in vectors for i, w in vectors if sum(a * b for a, b in zip(v, w, strict=True)) % q == 0]


def _disjoint(size: int, of: int) -> list[tuple[int, int]]:
    """Connect the subsets of a size that have no element in common."""
    return [(i, j) for (i, v), (j, w) in combinations(enumerate(_subsets(size, of)), 2) if not v & w]


def _affine_minus_class() -> _Edges:
    """Connect points (x, y) over GF(4) with lines y = m x + b, without vertical lines."""

    def times(a: int, b: int) -> int:
        # Elements are polynomials over 0 and 1, as bits; x^2 = x + 1.
        plain = (a if b & 1 else 0) ^ (a << 1 if b & 2 else 0)
        return plain ^ (0b111 if plain & 4 else 0)

    return _bipartite([(4 * x + (times(m, x) ^ b), 4 * m + b) for x in range(4) for m in range(4) for b in range(4)])


def _tutte_8_cage() -> list[tuple[int, int]]:
    """Return incident pairs of six and partitions into pairs: points and lines of GQ(2, 2)."""
    pairs = _subsets(2, 6)
    triples = [frozenset(three) for three in combinations(pairs, 3) if len(frozenset().union(*three)) == 6]
    return _incident(pairs, [frozenset(three) for three in triples])


def _symplectic() -> _Edges:
    """Connect points of PG(3, 3) with totally isotropic lines of the symplectic form: GQ(3, 3)."""
    points = _projective(3, 4)
    lines = _lines(points, 3, lambda v, w: (v[0] * w[1] - v[1] * w[0] + v[2] * w[3] - v[3] * w[2]) % 3 == 0)
    return _bipartite(_incident(points, lines))


def _hexagon(q: int) -> list[tuple[int, int]]:
    """Points and lines of Tits' split Cayley hexagon GH(q, q).

    Its points are those of the quadric x0 x4 + x1 x5 + x2 x6 = x3^2 in PG(6, q); its lines are those on the quadric
    whose Pluecker coordinates obey six equations (J. Tits, 1959).
    """
    points = [v for v in _projective(q, 7) if (v[0] * v[4] + v[1] * v[5] + v[2] * v[6] - v[3] * v[3]) % q == 0]
    orthogonal = [(0, 4, 1), (4, 0, 1), (1, 5, 1), (5, 1, 1), (2, 6, 1), (6, 2, 1), (3, 3, -2)]
    equal = [(1, 2, 3, 4), (5, 4, 3, 2), (2, 0, 3, 5), (6, 5, 3, 0), (0, 1, 3, 6), (4, 6, 3, 1)]

    def on_a_line(v: _Vector, w: _Vector) -> bool:
        if sum(sign * v[a] * w[b] for a, b, sign in orthogonal) % q:
            return False
        return all((v[a] * w[b] - v[b] * w[a] - v[c] * w[d] + v[d] * w[c]) % q == 0 for a, b, c, d in equal)

    return _incident(points, _lines(points, q, on_a_line))


def _lines(points: Sequence[_Vector], q: int, is_joined: Callable[[_Vector, _Vector], bool]) -> list[frozenset[object]]:
    """Return the lines through all pairs of points that ``is_joined`` accepts."""
    lines: dict[frozenset[object], None] = {}
    for v, w in combinations(points, 2):
        if is_joined(v, w):
            between = (tuple((a + k * b) % q for a, b in zip(v, w, strict=True)) for k in range(1, q))
            lines[frozenset([v, w, *(_normal(point, q) for point in between)])] = None
    return list(lines)


def _normal(vector: _Vector, q: int) -> _Vector:
    first = next(entry for entry in vector if entry)
    inverse = pow(first, -1, q)
    return tuple(entry * inverse % q for entry in vector)


#: The edges of every graph of table 8, by its number of nodes.
_TABLE_8: dict[int, Callable[[], _Edges]] = {
    6: lambda: ((i, j) for i, j in combinations(range(6), 2) if i + j != 5),
    9: lambda: iter(sorted(_hamming(2, 3))),
    10: lambda: ((i, 5 + j) for i in range(5) for j in range(5) if i != j),
    14: lambda: _bipartite([pair for pair in product(range(7), range(7)) if pair not in _plane(2)]),
    15: lambda: _line_graph(_disjoint(2, 5)),
    16: lambda: iter(sorted(_hamming(4, 2))),
    21: lambda: _line_graph(list(_bipartite(_plane(2)))),
    26: lambda: _bipartite(_plane(3)),
    32: _affine_minus_class,
    35: lambda: iter(_disjoint(3, 7)),
    45: lambda: _line_graph(list(_bipartite(_tutte_8_cage()))),
    70: lambda: _bipartite(
        [(i, j) for i, v in enumerate(_subsets(3, 7)) for j, w in enumerate(_subsets(4, 7)) if v <= w]
    ),
    80: _symplectic,
    189: lambda: _line_graph(list(_bipartite(_hexagon(2)))),
    728: lambda: _bipartite(_hexagon(3)),
}
