"""The register of topologies: every entry can be described, called by its name, and refuses bad arguments."""

import pytest
from cwb.core.errors import InputError
from cwb.core.topology import Topology
from cwb.instances import generators
from cwb.instances.expression import Expression, parse_expression
from cwb.instances.generators.binding import READERS, find_generator, hints
from draws import draws
from hypothesis import given, settings
from hypothesis import strategies as st

#: A small one of every topology.
SMALL = {
    "line": "line(3)",
    "path": "path(3)",
    "ring": "ring(3)",
    "mesh": "mesh(2, 3)",
    "grid": "grid(2, 2, 3)",
    "torus": "torus(3, 2)",
    "hypercube": "hypercube(3)",
    "complete": "complete(3)",
    "complete_bipartite": "complete_bipartite(1, 2)",
    "circulant": "circulant(8, [1, 4])",
    "optimal_circulant": "optimal_circulant(9)",
    "directed_circulant": "directed_circulant(5, [1, 2])",
    "kautz": "kautz(2, 2)",
    "generalized_kautz": "generalized_kautz(2, 5)",
    "de_bruijn": "de_bruijn(2, 3)",
    "modified_de_bruijn": "modified_de_bruijn(2, 3)",
    "diamond": "diamond()",
    "hamming": "hamming(2, 3)",
    "distance_regular": "distance_regular(4, 9)",
    "twisted_torus": "twisted_torus(4, 2, 2)",
    "twisted_hypercube": "twisted_hypercube(3)",
    "random_regular": "random_regular(6, 3)",
    "double_binary_tree": "double_binary_tree(5)",
    "line_graph": "line_graph(kautz(2, 1))",
    "l": "L(complete_bipartite(2, 2), times=2)",
    "product": "product(ring(3), kautz(2, 1), complete(2))",
    "power": "power(ring(3, false), 2)",
    "degree_expansion": "degree_expansion(ring(3, false), 2)",
    "parallel": "parallel(ring(3), 2)",
    "both_directions": "both_directions(kautz(2, 2))",
    "star": "star(3)",
    "switch": "switch(3)",
    "fat_tree": "fat_tree(4)",
    "dragonfly": "dragonfly(3, 2, 1)",
    "dragonfly_plus": "dragonfly_plus(3, 2, 2, 1)",
    "switch2d": "switch2d(2, 3)",
    "rfs3d": "rfs3d(3, 2, 2)",
    "fabric": 'fabric("RI(3)_SW(2)", bandwidth=["2 GB/s", "1 GB/s"])',
    "dgx1": "dgx1()",
    "ndv2": "ndv2(3)",
    "dgx2": "dgx2(2)",
    "dgx_a100": "dgx_a100(2)",
    "a100": "a100(2)",
    "dgx_h100": "dgx_h100(2)",
    "h100": "h100(2)",
    "dgx_h200": "dgx_h200(2)",
    "h200": "h200(2)",
    "dgx_b200": "dgx_b200(2)",
    "b200": "b200(2)",
    "nvl72": "nvl72(2, gpus=8)",
    "gb200": "gb200(2, gpus=8)",
    "mi250": "mi250(2)",
    "mi250_8": "mi250_8(2)",
    "amd": "amd(2)",
    "mi300x": "mi300x(2)",
    "mi325x": "mi325x(2)",
    "pcie": "pcie(2)",
    "internal1": "internal1(3)",
    "internal2": "internal2(2)",
    "rail": "rail(3, 2, missing_nics=2)",
    "pods": "pods(2, 2, 2, spines=3)",
    "three_tier": "three_tier(2, 2, 1, 2, aggregations=3, cores=2)",
    "mixed": "mixed(1, 1)",
    "frontera": "frontera(1)",
    "leonardo": "leonardo(2, 1)",
    "frontier": "frontier(2, 1)",
    "gscale": "gscale()",
    "equinix_size": "equinix_size(0.3, 1)",
    "idn_size": "idn_size(1, 2)",
    "random_wan": "random_wan(7, 12)",
}


def test_every_topology_is_tried():
    """The table above names every registered topology, once."""
    assert tuple(SMALL) == generators.names()


@pytest.mark.parametrize("name", SMALL)
def test_makes_a_strongly_connected_network(name, make, digraph):
    """Every topology is made from text, and every rank can reach every other one."""
    topology = make(SMALL[name])
    assert isinstance(topology, Topology)
    graph = digraph(topology)
    reach = {rank: _reached_nodes(graph, rank) for rank in topology.ranks}
    assert all(reached >= set(topology.ranks) for reached in reach.values())


def _reached_nodes(graph, start):
    seen, waiting = {start}, [start]
    while waiting:
        fresh = set(graph.successors(waiting.pop())) - seen
        seen |= fresh
        waiting += fresh
    return seen


@pytest.mark.parametrize("name", SMALL)
def test_is_described(name):
    """The description is the call with its defaults, and one line of documentation that ends in a full stop."""
    described = generators.describe(name)
    assert described.signature.startswith(f"{name}(")
    assert described.signature.endswith(")")
    assert described.summary.endswith(".")


@pytest.mark.parametrize("name", SMALL)
def test_arguments_can_be_written(name):
    """Every parameter has a type that an expression can give, and is documented, if common to many by the package."""
    function = find_generator(name)
    assert set(hints(function).values()) <= set(READERS)
    common = generators.__doc__
    assert all(name in function.__doc__ or f"``{name}``" in common for name in hints(function))


def test_signatures_show_the_defaults():
    """The signature is written as an expression, so that it can be copied."""
    assert generators.describe("ring").signature == 'ring(n, bidirectional=true, bandwidth="50 GB/s", latency="0.5 us")'
    assert generators.describe("torus").signature == 'torus(sizes..., bandwidth="50 GB/s", latency="0.5 us")'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("rings(4)", "unknown topology 'rings'; did you mean 'ring'?"),
        ("dgx-1()", "unknown topology 'dgx_1'; did you mean 'dgx1'?"),
        ("xyz()", "unknown topology 'xyz'; expected one that 'cwb list topologies' names"),
        (
            "ring()",
            'missing argument \'n\'; expected ring(n, bidirectional=true, bandwidth="50 GB/s", latency="0.5 us")',
        ),
        ("ring(8, size=8)", "unknown argument 'size'; expected n, bidirectional, bandwidth, latency"),
        ("torus(2, sizes=2)", "unknown argument 'sizes'; expected bandwidth, latency"),
        ("ring(8, n=8)", "argument 'n' is given twice, without and with its name; expected it once"),
        ("dgx2(1, 2)", "2 arguments without a name; expected at most 1, as in dgx2(chassis=1, rates=nominal)"),
        ("gscale(true)", "skewness: true is no number; expected a number, such as 0.5"),
        ("ring(8.0)", "n: 8.0 is no integer; expected an integer, such as 8"),
        ("ring(true)", "n: true is no integer; expected an integer, such as 8"),
        ("ring(8, 1)", "bidirectional: 1 is no truth value; expected true or false"),
        ("ndv2(2, 4)", "variant: 4 is no text; expected text"),
        ("circulant(8, 1)", "offsets: 1 is no list; expected a list of integers, such as [1, 4]"),
        ("circulant(8, [1, x])", "offsets[1]: x is no integer; expected an integer, such as 8"),
        ("torus(4, [4])", "sizes[1]: [4] is no integer; expected an integer, such as 8"),
        (
            "ring(8, bandwidth=50)",
            "bandwidth: '50' has no unit; expected a bandwidth with its unit, such as '50 GB/s'",
        ),
        (
            'ring(8, bandwidth="0 GB/s")',
            "bandwidth: '0 GB/s' must be greater than zero; expected a bandwidth with its unit, such as '50 GB/s'",
        ),
        (
            'switch2d(outer_bandwidth="1 us")',
            "outer_bandwidth: '1 us' has an unknown unit 'us'; expected a bandwidth with its unit, such as '50 GB/s'",
        ),
        ("ring(8, latency=[])", "latency: '[]' is not a quantity; expected a time with its unit, such as '0.7 us'"),
    ],
)
def test_refuses(text, message, make):
    """A bad argument is refused in one line that says which, what was given and what was expected."""
    with pytest.raises(InputError) as caught:
        make(text)
    assert str(caught.value) == message


def test_long_values_are_cut(make):
    """A very long argument does not make a very long error line."""
    for text in (f"ring('{'a ' * 4000}')", f"ring(8, {'n' * 4000}=1)", f"{'n' * 4000}(8)", f"ndv2(1, {'n' * 4000})"):
        with pytest.raises(InputError) as caught:
            make(text)
        assert len(str(caught.value)) < 600


def test_quantities_are_exact(make):
    """Rates are decimal unless written GiB/s, and latencies stay fractions."""
    link = make('ring(3, bandwidth="25 GiB/s", latency="0.7 us")').links[0]
    assert link.bandwidth_Bps == 25 * 2**30
    assert link.latency_s * 10**7 == 7
    plain = make("ring(3)").links[0]
    assert (plain.bandwidth_Bps, plain.latency_s * 10**7) == (50 * 10**9, 5)


arguments = st.one_of(
    st.integers(-2, 5),
    st.just(10**30),
    st.booleans(),
    st.sampled_from(["repo", "50 GB/s", "1 us", "0 s"]),
    st.lists(st.integers(-1, 4), max_size=3).map(tuple),
    st.sampled_from(["ring(3)", "kautz(2, 1)", "star(2)", "complete(4000)"]).map(parse_expression),
)
keywords = st.sampled_from(sorted({name for topology in SMALL for name in hints(find_generator(topology))}))


@given(st.sampled_from(list(SMALL)), st.lists(arguments, max_size=4), st.dictionaries(keywords, arguments, max_size=3))
@settings(max_examples=draws(400))
def test_any_arguments_make_a_topology_or_are_refused(name, positional, given_by_name):
    """Random arguments raise nothing but an InputError of one line."""
    expression = parse_expression(str(Expression(name, tuple(positional), given_by_name)))
    try:
        topology = generators.generate(expression)
    except InputError as error:
        assert len(str(error).splitlines()) == 1
    else:
        assert len(topology.ranks) >= 2
