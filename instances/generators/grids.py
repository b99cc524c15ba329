"""Networks laid out on a grid: lines, rings, meshes, tori and hypercubes, and twisted ones of smaller diameter.

The first dimension is the innermost: in a grid of sizes (a, b, c), the node at (x, y, z) has rank x + a y + a b z.
"""

from collections.abc import Iterator
from math import prod

from ...core.errors import InputError
from ...core.topology import Topology
from ..schema import MAX_NODES
from .building import BANDWIDTH, LATENCY, Rate, Time, both_ways, check_range, check_ranges, make_graph

#: More dimensions than this cannot have two nodes each: log2 of the largest number of nodes.
MAX_DIMENSIONS = MAX_NODES.bit_length() - 1


def line(n: int, *, bandwidth: Rate = BANDWIDTH, latency: Time = LATENCY) -> Topology:
    """Line of n nodes, each connected with the next one in both directions."""
    return _grid((check_range(n, "n", 2),), wrap=False, bandwidth=bandwidth, latency=latency)


def ring(n: int, bidirectional: bool = True, *, bandwidth: Rate = BANDWIDTH, latency: Time = LATENCY) -> Topology:
    """Ring of n nodes; with ``bidirectional=false``, node i sends to i + 1 only.

    A ring of 2 has one link in each direction, whichever way it is asked for.
    """
    check_range(n, "n", 2)
    if bidirectional:
        return _grid((n,), wrap=True, bandwidth=bandwidth, latency=latency)
    onward = ((i, (i + 1) % n) for i in range(n))
    return make_graph(n, n, onward, bandwidth, latency)


def mesh(*sizes: int, joined_rows: bool = False, bandwidth: Rate = BANDWIDTH, latency: Time = LATENCY) -> Topology:
    """Mesh: nodes on a grid, connected with their neighbours, without wrap-around.

    TACOS calls the three-dimensional one ``Hypercube3D``.

    ``joined_rows``: whether the end of every row is also joined to the start of the next one, as in the code of TE-CCL
    (topologies/mesh.py), which takes nodes i and i + 1 for neighbours wherever they are; in two dimensions only.
    """
    if not joined_rows:
        return _grid(sizes, wrap=False, bandwidth=bandwidth, latency=latency)
    if len(sizes) != 2:
        raise InputError(f"{len(sizes)} dimensions; joined rows need two", place="sizes")
    width, rows = check_range(sizes[0], "sizes[0]", 2), check_range(sizes[1], "sizes[1]", 2)
    nodes = width * rows
    neighbours = ((i, j) for i in range(nodes) for j in (i + 1, i + width) if j < nodes)
    links = 2 * (nodes - 1 + nodes - width)
    return make_graph(nodes, links, both_ways(neighbours), bandwidth, latency)


def torus(*sizes: int, bandwidth: Rate = BANDWIDTH, latency: Time = LATENCY) -> Topology:
    """Torus: a mesh whose lines are closed to rings.

    In a dimension of size 2 the neighbour on the left is the one on the right: the two share one link in each
    direction, not two. So does the TACOS code; it makes torus(2, 2, 2) the mesh(2, 2, 2).
    """
    return _grid(sizes, wrap=True, bandwidth=bandwidth, latency=latency)


def hypercube(dim: int, *, bandwidth: Rate = BANDWIDTH, latency: Time = LATENCY) -> Topology:
    """Binary hypercube of 2^dim nodes; neighbours differ in one bit of their rank."""
    check_range(dim, "dim", 1, MAX_DIMENSIONS)
    return _grid((2,) * dim, wrap=False, bandwidth=bandwidth, latency=latency)


def _grid(sizes: tuple[int, ...], *, wrap: bool, bandwidth: Rate, latency: Time) -> Topology:
    if not 1 <= len(sizes) <= MAX_DIMENSIONS:
        raise InputError(f"{len(sizes)} dimensions; expected 1 to {MAX_DIMENSIONS} sizes", place="sizes")
    for index, size in enumerate(sizes):
        check_range(size, f"sizes[{index}]", 2)
    nodes = prod(sizes)
    pairs = sum(nodes if _closes(size, wrap) else nodes - nodes // size for size in sizes)
    edges = both_ways(_neighbours(sizes, wrap))
    return make_graph(nodes, 2 * pairs, edges, bandwidth, latency)


def _closes(size: int, wrap: bool) -> bool:
    """Return whether the lines of a dimension are closed by a further pair of links."""
    return wrap and size > 2


def _neighbours(sizes: tuple[int, ...], wrap: bool) -> Iterator[tuple[int, int]]:
    """Yield every pair of neighbours once, one dimension after the other."""
    stride = 1
    for size in sizes:
        for rank in range(prod(sizes)):
            if rank // stride % size < size - 1:
                yield rank, rank + stride
            elif _closes(size, wrap):
                yield rank, rank - stride * (size - 1)
        stride *= size


def twisted_torus(
    width: int, height: int, twist: int, *, bandwidth: Rate = BANDWIDTH, latency: Time = LATENCY
) -> Topology:
    """Twisted torus: a torus with shifted columns: (x, height - 1) is connected with (x + twist, 0).

    J. M. Camara, M. Moreto, E. Vallejo, R. Beivide, J. Miguel-Alonso, C. Martinez, J. Navaridas, "Twisted torus
    topologies for enhanced interconnection networks", 2010; theirs has width 2 a, height a and twist a. The node (x, y)
    has rank x + width y; every node has four neighbours.

    ``width``, ``height``, ``twist``: nodes in a row, a ring of its own; number of rows; nodes by which the columns are
    shifted where they end.
    """
    check_ranges(width=(width, 3), height=(height, 2), twist=(twist, 1, width - 1))
    nodes = width * height
    edges = both_ways(_rows_and_columns(width, height, twist))
    return make_graph(nodes, 4 * nodes, edges, bandwidth, latency)


def _rows_and_columns(width: int, height: int, twist: int) -> Iterator[tuple[int, int]]:
    for rank in range(width * height):
        x, y = rank % width, rank // width
        yield rank, (x + 1) % width + width * y
        yield rank, (rank + width if y < height - 1 else (x + twist) % width)


def twisted_hypercube(dim: int, *, bandwidth: Rate = BANDWIDTH, latency: Time = LATENCY) -> Topology:
    """Twisted hypercube: two opposite edges of one square of a hypercube are exchanged for its diagonals.

    A.-H. Esfahanian, L. M. Ni, B. E. Sagan, "The twisted n-cube with application to multiprocessing", 1991. Of the
    edges 0-1 and 2-3 come 0-3 and 1-2; the diameter falls to dim - 1.
    """
    check_range(dim, "dim", 3, MAX_NODES.bit_length() - 1)
    nodes = 2**dim
    pairs = ((rank, rank | 1 << bit) for bit in range(dim) for rank in range(nodes) if not rank >> bit & 1)
    swaps = {(0, 1): (0, 3), (2, 3): (2, 1)}
    edges = both_ways(swaps.get(pair, pair) for pair in pairs)
    return make_graph(nodes, nodes * dim, edges, bandwidth, latency)
