"""Networks of the topology finder, as a paper's rows ask for them."""

from __future__ import annotations

from fractions import Fraction

import pytest
from cwb.core.errors import InputError
from cwb.core.paper_results import PublishedNetwork
from cwb.studies.topology_finder.assessment import run_finder
from cwb.studies.topology_finder.finder import nearest


def metrics(**wanted: object) -> dict:
    """Return the metrics of a network."""
    asked = PublishedNetwork.model_validate(wanted)
    return dict(run_finder(asked, asked.sizes[0]).metrics)


def test_a_network_is_found_by_its_name():
    """L(K_{4,4}) has the values and the rate of all-to-alls of table 7."""
    values = metrics(nodes=32, degree=4, network="L(complete_bipartite(4, 4))", rate=True)
    assert (values["T_L"], Fraction(values["T_B"]), values["diameter"]) == (3, 1, 3)
    assert values["all_to_all_rate"] == pytest.approx(0.0571, abs=5e-5)


def test_the_bound_is_that_of_table_4():
    """Moore and bandwidth optimality of 1,024 nodes, and the times at them."""
    values = metrics(nodes=1024, degree=4, network="bound")
    assert (values["T_L"], values["T_L_bidirectional"], values["T_B"]) == (5, 6, "1023/1024")
    assert values["all_reduce_s"] == pytest.approx(267.6e-6, abs=5e-8)
    assert values["all_to_all_s"] == pytest.approx(382.3e-6, abs=5e-8)


def test_a_base_network_that_others_beat_is_known_too():
    """The modified de Bruijn graph of 8 nodes is not on the frontier, where the diamond is."""
    assert metrics(nodes=8, degree=2, network="modified_de_bruijn(2, 3)")["T_L"] == 4
    assert metrics(nodes=8, degree=2)["T_L"] == 3


def test_an_unknown_network_is_told():
    """The message has the name, the size and the degree."""
    with pytest.raises(InputError, match=r"no 'L\(x\)' of 32 nodes and degree 4"):
        metrics(nodes=32, degree=4, network="L(x)")


@pytest.mark.parametrize(
    ("nodes", "degree", "both", "rings"),
    [(2, 1, True, [1]), (8, 2, False, [2, 4, 1]), (35, 4, True, [4, 12, 18]), (26, 4, False, [4, 16, 5])],
)
def test_as_many_nodes_are_near_as_can_be(nodes, degree, both, rings):
    """Rings of the Moore bound, in which the last one has what is left."""
    assert nearest(nodes, degree, bidirectional=both) == rings
