"""The diamond and the modified de Bruijn graphs have the properties that the paper states of them."""

import networkx as nx
import numpy as np
import pytest
from cwb.core.errors import InputError
from cwb.instances.generators.words import diamond, modified_de_bruijn
from scipy import sparse
from scipy.optimize import linprog


def _all_to_all(graph):
    """Solve LP (3): the rate at which all pairs can send at once over links of capacity 1."""
    links, n = list(graph.edges), len(graph)
    count = len(links)
    carried = sparse.hstack([sparse.csr_matrix((count, 1)), *[sparse.identity(count)] * n])
    balance = np.zeros((n, count))
    for e, (u, w) in enumerate(links):
        balance[w, e] -= 1
        balance[u, e] += 1
    kept = [sparse.csr_matrix(np.delete(balance, s, axis=0)) for s in range(n)]
    delivered = sparse.hstack([np.ones((n * (n - 1), 1)), sparse.block_diag(kept)])
    rows = sparse.vstack([carried, delivered])
    limit = np.concatenate([np.ones(count), np.zeros(n * (n - 1))])
    return -linprog(np.eye(1, rows.shape[1])[0] * -1, A_ub=rows, b_ub=limit, method="highs").fun


def test_diamond(simple):
    """Degree 2, diameter 3, not isomorphic to its reverse (table 9); the square's rate is 1.87e-2, that is f / 8 (table
    7)."""
    graph = simple(diamond())
    assert len(graph) == 8
    assert {degree for _, degree in [*graph.out_degree, *graph.in_degree]} == {2}
    assert nx.diameter(graph) == 3
    assert not nx.is_isomorphic(graph, graph.reverse())
    assert _all_to_all(graph) / 8 == pytest.approx(3 / 160)


@pytest.mark.parametrize(
    ("d", "diameter", "symmetric", "longest"), [(2, 3, True, 3), (2, 4, False, 4), (3, 2, False, 3), (4, 2, False, 3)]
)
def test_modified_de_bruijn(simple, d, diameter, symmetric, longest):
    """Only loops and opposite links of the de Bruijn graph went, for one cycle; degree and symmetry are those of table
    9."""
    graph = simple(modified_de_bruijn(d, diameter))
    n = d**diameter
    shifts = {(x, (d * x + a) % n) for x in range(n) for a in range(d)}
    kept = {(x, y) for x, y in shifts if (y, x) not in shifts}
    assert kept <= set(graph.edges)
    cycle = nx.DiGraph(set(graph.edges) - kept)
    assert len(list(nx.simple_cycles(cycle))) == 1
    assert set(cycle) == {x for x, y in shifts - kept}
    assert {degree for _, degree in [*graph.out_degree, *graph.in_degree]} == {d}
    assert nx.diameter(graph) == longest
    assert nx.is_isomorphic(graph, graph.reverse()) is symmetric


def test_published_rate(simple):
    """The square of (2, 4) has rate 2.94e-3, as in table 7, which is f / 16."""
    assert f"{_all_to_all(simple(modified_de_bruijn(2, 4))) / 16:.2e}" == "2.94e-03"


def test_refuses_unknown_cycles(make):
    """Other sizes are not known."""
    with pytest.raises(InputError, match=r"no cycle is known for \(2, 5\); expected one of \(2, 3\), \(2, 4\)"):
        make("modified_de_bruijn(2, 5)")
