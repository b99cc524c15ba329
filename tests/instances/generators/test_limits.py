"""The size of a network is known, and checked, before memory is taken for it."""

import tracemalloc

import pytest
from cwb.core.errors import InputError
from cwb.instances.expression import parse_expression
from cwb.instances.generators import building, describe

#: Networks whose closed form counts exactly the nodes and links that are made.
EXACT = [
    "line(7)",
    "ring(2)",
    "ring(7)",
    "ring(7, false)",
    "mesh(2, 3, 4)",
    "torus(2, 3, 4)",
    "hypercube(4)",
    "complete(6)",
    "complete_bipartite(3, 5)",
    "circulant(12, [1, 5, 6])",
    "directed_circulant(9, [1, 4, 7])",
    "optimal_circulant(12)",
    "modified_de_bruijn(3, 2)",
    "diamond()",
    "hamming(3, 4)",
    "distance_regular(4, 35)",
    "twisted_torus(5, 3, 2)",
    "twisted_hypercube(4)",
    "kautz(3, 3)",
    "generalized_kautz(4, 10)",
    "generalized_kautz(5, 9)",
    "de_bruijn(3, 2)",
    "random_regular(10, 3)",
    "random_regular(9, 6)",
    "star(5)",
    "fat_tree(6)",
    "dragonfly(5, 3)",
    "dragonfly(4, 3, 2)",
    "switch2d(3, 4)",
    "rfs3d(2, 3, 4)",
    "rfs3d(5, 3, 2)",
    "dgx_a100(3)",
    "mi250(2)",
    "mi250_8(3)",
    "amd(2)",
    "ndv2(4)",
    "amd(2, variant=repo)",
    "mesh(3, 4, joined_rows=true)",
    "internal1(1)",
    "internal1(3)",
    "internal2(3)",
    "dgx_a100(1)",
    "nvl72(1)",
    "nvl72(2, gpus=5, planes=3)",
    "rail(4, 3)",
    "rail(4, 3, missing_nics=2)",
    "pods(3, 2, 4, spines=5)",
    "pods(3, 2, 4, spines=5, missing_nics=4)",
    "three_tier(2, 3, 4, 2, aggregations=5, cores=6)",
    "three_tier(2, 3, 4, 2, aggregations=5, cores=6, missing_nics=1)",
    "mixed(3, 2)",
    "double_binary_tree(6)",
    "double_binary_tree(7)",
    "L(complete_bipartite(3, 3))",
    "line_graph(kautz(2, 1), times=3)",
    "product(ring(3), kautz(2, 2), complete(2))",
    "power(ring(4), 3)",
    "degree_expansion(ring(3, false), 3)",
    "parallel(ring(3), 4)",
    "both_directions(kautz(2, 2))",
    "L(power(ring(3), 2))",
    "dragonfly_plus(4, 3, 2, 5)",
    "dragonfly_plus(3, 2, 2, 1, global_links=5)",
    "mi300x(1)",
    "mi300x(3, rails=2)",
    "pcie(1)",
    "pcie(3, switches=1, per_switch=4)",
    "frontera(2)",
    "leonardo(1, 2)",
    "leonardo(3, 2)",
    "frontier(1, 1)",
    "frontier(3, 2)",
    "gscale()",
    "equinix_size()",
    "idn_size()",
    "random_wan(9, 20)",
]


@pytest.mark.parametrize("text", EXACT)
@pytest.mark.parametrize("limit", ["MOST_NODES", "MAX_LINKS"])
def test_the_closed_form_is_exact(text, limit, make, monkeypatch):
    """A limit of exactly the network's size admits it, and one less refuses it."""
    topology = make(text)
    size = len(topology.nodes) if limit == "MOST_NODES" else len(topology.links)
    monkeypatch.setattr(building, limit, size)
    assert make(text) == topology
    monkeypatch.setattr(building, limit, size - 1)
    with pytest.raises(InputError, match="are too many; expected at most"):
        make(text)


@pytest.mark.parametrize(
    "text",
    [
        "complete(5000)",
        "complete(1000000)",
        "ring(1000001)",
        f"ring({10**39})",
        "torus(1000, 2001)",
        f"torus({', '.join(['1000000'] * 19)})",
        f"torus({', '.join(['2'] * 2000)})",
        "mesh(2, 1)",
        "hypercube(20)",
        f"hypercube({10**39})",
        "complete_bipartite(4000, 4000)",
        f"circulant(1000000, {[*range(1, 1000)]})",
        f"directed_circulant(1000000, {[*range(1, 1000)]})",
        "optimal_circulant(1000001)",
        "hamming(20, 1000000)",
        "hamming(1, 1000000)",
        f"hamming(2, {10**39})",
        "twisted_torus(1000000, 3, 1)",
        f"twisted_torus({10**39}, {10**39}, 1)",
        "twisted_hypercube(20)",
        "kautz(1000, 3)",
        f"kautz(2, {10**39})",
        "kautz(999999, 1)",
        "generalized_kautz(999999, 1000000)",
        f"generalized_kautz({10**39}, {10**39 + 1})",
        "de_bruijn(2, 21)",
        f"de_bruijn({10**39}, 2)",
        "random_regular(1000000, 101)",
        "random_regular(1000000, 999998)",
        "star(1000001)",
        "fat_tree(200)",
        "fat_tree(1000000)",
        "dragonfly(1000, 1000, 1)",
        "dragonfly(1000, 500)",
        "dragonfly(2, 2, 1000000)",
        "switch2d(1500, 1500)",
        "rfs3d(100, 100, 100)",
        "rfs3d(2, 5000, 10)",
        "ndv2(1000000)",
        "dgx_a100(1000000)",
        "mi250(1000000)",
        "mi250_8(1000000)",
        "amd(1000000)",
        "nvl72(1000000)",
        "nvl72(20000, planes=18)",
        "rail(1000000)",
        "rail(2, 1000000)",
        "pods(1000000)",
        "pods(1000, 1000, 1000)",
        "pods(5000, 1, 2, spines=5000)",
        "three_tier(1000, 1000, 1000)",
        "three_tier(2, aggregations=1000000)",
        "three_tier(1000, 1, 1, 2, aggregations=100, cores=500)",
        "double_binary_tree(1000001)",
        "power(complete(1000), 3)",
        "power(complete(4), 10)",
        "product(complete(4000), complete(4000))",
        "product(power(ring(10), 6), power(ring(10), 6))",
        "L(complete(4000), 3)",
        f"L({'L(' * 10}kautz(9, 1){')' * 10})",
        "degree_expansion(complete(4000), 2)",
        f"parallel(complete(4000), {10**39})",
        "both_directions(complete(4000))",
        "dragonfly_plus(1000, 1000, 1000, 1)",
        "mi300x(1000000)",
        "pcie(1000000)",
        "frontera(1000000)",
        "mixed(1000000, 1)",
        "mixed(1, 1000000)",
    ],
)
def test_too_large_is_refused_without_building(text, make):
    """A network beyond the limits is refused while less than a megabyte was allocated."""
    describe(parse_expression(text).name)  # imports what the next call would import
    tracemalloc.start()
    try:
        with pytest.raises(InputError):
            make(text)
        assert tracemalloc.get_traced_memory()[1] < 10**6
    finally:
        tracemalloc.stop()
