"""Names and the order of nodes and links do not matter; trees are low."""

from __future__ import annotations

import oracle
import pytest
from cwb.core.topology import Topology
from cwb.instances import load
from networks import FAMILIES, random_cuts, random_network, random_unit, seeded_random
from posing import forest, max_height, pose, shuffle_topology


@pytest.mark.parametrize("expression", ["dgx_a100(boxes=2)", "mi250(boxes=1)", "mi250_8(boxes=2)", "torus(3,4)"])
def test_names_and_order_do_not_matter(expression):
    """With other names, and nodes and links in another order, the optimum, U and k are the same, and the forest is
    right."""
    topology = load(expression).network
    assert isinstance(topology, Topology)
    wanted = forest(pose(topology), repack=1).record
    for seed in range(3):
        for k in ("optimal", 2):
            record = forest(pose(shuffle_topology(topology, seeded_random(seed))), k=k, repack=1).record
            assert record.verified
            if k == "optimal":
                for key in ("inv_x", "k", "U", "smallest_k", "cut_bandwidth_GBps"):
                    assert record.metrics[key] == wanted.metrics[key]
                assert (record.status, record.gap) == ("optimal", 0.0)


def test_random_networks_by_other_names():
    """The same on random networks with parallel links."""
    rng = seeded_random(53)
    for i in range(15):
        network = random_network(rng, FAMILIES[i % 3])
        topology = oracle.to_topology(network, random_unit(rng), random_cuts(rng, network))
        first, second = (forest(pose(t), repack=0).record for t in (topology, shuffle_topology(topology, rng)))
        assert second.verified
        assert first.objective == second.objective
        assert [first.metrics[key] for key in ("inv_x", "k", "U")] == [
            second.metrics[key] for key in ("inv_x", "k", "U")
        ]


@pytest.mark.parametrize(
    ("expression", "height"),
    [
        ("dgx_a100(boxes=4)", 2),
        ("dgx_a100(boxes=8)", 2),
        ("dgx_a100(boxes=16)", 2),
        pytest.param("mi250(boxes=16)", 8, marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("seed", [None, 1])
def test_trees_are_low(expression, height, seed):
    """On large machines no tree is higher than stated, whatever the names and the order are."""
    topology = load(expression).network
    assert isinstance(topology, Topology)
    found = forest(pose(topology if seed is None else shuffle_topology(topology, seeded_random(seed))))
    assert (found.record.status, found.record.verified) == ("optimal", True)
    assert max_height(found.answer) == found.record.metrics["max_height"] <= height
