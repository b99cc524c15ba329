"""Distance-regular graphs: networkx finds the intersection arrays of the literature in every one of them."""

import networkx as nx
import pytest
from cwb.core.errors import InputError
from cwb.instances.generators.distance_regular import distance_regular, hamming

#: Intersection arrays by number of nodes (distanceregular.org), and the diameters that table 8 gives.
ARRAYS = {
    6: ([4, 1], [1, 4], 2),
    9: ([4, 2], [1, 2], 2),
    10: ([4, 3, 1], [1, 3, 4], 3),
    14: ([4, 3, 2], [1, 2, 4], 3),
    15: ([4, 2, 1], [1, 1, 4], 3),
    16: ([4, 3, 2, 1], [1, 2, 3, 4], 4),
    21: ([4, 2, 2], [1, 1, 2], 3),
    26: ([4, 3, 3], [1, 1, 4], 3),
    32: ([4, 3, 3, 1], [1, 1, 3, 4], 4),
    35: ([4, 3, 3], [1, 1, 2], 3),
    45: ([4, 2, 2, 2], [1, 1, 1, 2], 4),
    70: ([4, 3, 3, 2, 2, 1, 1], [1, 1, 2, 2, 3, 3, 4], 7),
    80: ([4, 3, 3, 3], [1, 1, 1, 4], 4),
    189: ([4, 2, 2, 2, 2, 2], [1, 1, 1, 1, 1, 2], 6),
    728: ([4, 3, 3, 3, 3, 3], [1, 1, 1, 1, 1, 4], 6),
}


@pytest.mark.parametrize("n", ARRAYS)
def test_intersection_array(to_undirected, n):
    """The graph is distance-regular with the intersection array and diameter of the named one."""
    graph = to_undirected(distance_regular(4, n))
    down, up, diameter = ARRAYS[n]
    assert len(graph) == n
    assert nx.intersection_array(graph) == (down, up)
    assert len(down) == diameter


@pytest.mark.parametrize(("length", "letters"), [(1, 5), (2, 3), (3, 2), (2, 4), (3, 3)])
def test_hamming_is_a_power_of_the_complete_graph(to_undirected, length, letters):
    """H(n, q) is the n-fold Cartesian product of the complete graph of q nodes; its diameter is n."""
    product = nx.complete_graph(letters)
    for _ in range(length - 1):
        product = nx.cartesian_product(product, nx.complete_graph(letters))
    graph = to_undirected(hamming(length, letters))
    assert nx.is_isomorphic(graph, product)
    assert nx.diameter(graph) == length


def test_refuses_other_sizes(make):
    """Only the graphs of the table are known."""
    with pytest.raises(InputError, match=r"n: no graph of 33 nodes in the table; expected one of 6, 9, 10, 14"):
        make("distance_regular(4, 33)")
    with pytest.raises(InputError, match="d: 3 is out of range; expected an integer from 4 to 4"):
        make("distance_regular(3, 8)")
