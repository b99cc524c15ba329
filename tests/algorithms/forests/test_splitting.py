"""Removal of switches: nobody loses a tree, and the log says truly what happened."""

from __future__ import annotations

import numpy as np
import pytest
from cwb.algorithms.forests.splitting import Unsplittable, remove_switches, split_pairwise
from cwb.algorithms.forests.symmetry import Pairs
from cwb.algorithms.graphs.maxflow import near_order
from draws import draws
from networks import FAMILIES, random_network, seeded_random
from oracle import Network, has_trees
from random_digraphs import as_dict, column, digraph, flags, is_rooted, with_trees

pytestmark = pytest.mark.slow  # random networks, checked by brute force


def replay(capacity, log):
    """Follow the log in a dict; a switch that has been split off is left out with what nobody took."""
    left = dict(capacity)
    for splits in log:
        w = splits.switch
        pairs = splits.pairs
        for u, t, amount in zip(pairs.source.tolist(), pairs.target.tolist(), pairs.amount.tolist(), strict=True):
            assert amount > 0
            for link in ((u, w), (w, t)):
                left[link] = left.get(link, 0) - amount
                assert left[link] >= 0, f"{link} has been split more often than it has capacity"
            if u != t:
                left[u, t] = left.get((u, t), 0) + amount
        left = {link: c for link, c in left.items() if w not in link}
    return {link: c for link, c in left.items() if c}


def check(network, demand, *, patterns):
    nodes = len(network.nodes)
    members = flags(nodes, network.compute)
    split = remove_switches(digraph(network.capacity, nodes), column(nodes, demand), members, patterns=patterns)
    left = as_dict(split.graph)
    assert all(members[u] and members[v] for u, v in left)
    replayed = replay(network.capacity, split.log)
    unreached = {link for link in replayed if not members[link[0]] and not members[link[1]]}
    assert {link: c for link, c in replayed.items() if link not in unreached} == left
    assert has_trees(left, demand)
    assert len({splits.switch for splits in split.log}) == len(split.log)
    return split


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("patterns", [True, False])
def test_nobody_loses_a_tree(family, patterns):
    """After all switches are gone, the trees that were demanded exist still, with equal and with random weights, and
    the log replays."""
    rng = seeded_random(7)
    counts = dict.fromkeys(("pattern", "pairwise", "refused"), 0)
    for _ in range(draws(30)):
        network, demand = with_trees(rng, random_network(rng, family))
        split = check(network, demand, patterns=patterns)
        counts = {key: counts[key] + split.counts[key] for key in counts}
    assert counts["pairwise"] > draws(10) if not patterns else counts["pattern"] > 0
    if not patterns:
        assert counts["pattern"] == counts["refused"] == 0


@pytest.mark.parametrize("factor", [2**40, 2**62, 2**70])
@pytest.mark.parametrize("patterns", [True, False])
def test_large_capacities(factor, patterns):
    """The same where capacities and demands need Python's integers; ``check`` asserts it."""
    rng = seeded_random(8)
    for i in range(9):
        network, demand = with_trees(rng, random_network(rng, FAMILIES[i % 3]))
        network = Network(network.compute, network.switches, {link: c * factor for link, c in network.capacity.items()})
        check(network, {v: d * factor for v, d in demand.items()}, patterns=patterns)


def test_some_compute_nodes_only_pass_on():
    """Ranks outside of a process group are split off like switches; ``check`` asserts it."""
    rng = seeded_random(9)
    for i in range(30):
        network = random_network(rng, FAMILIES[i % 3])
        group = tuple(sorted(rng.sample(network.compute, rng.randint(2, len(network.compute)))))
        others = tuple(v for v in network.nodes if v not in group)
        network, demand = with_trees(rng, Network(group, others, network.capacity))
        check(network, demand, patterns=rng.random() < 0.5)


@pytest.mark.parametrize("patterns", [True, False])
def test_switches_among_themselves(patterns):
    """Switches that nobody's data can reach are left out, one or several of them."""
    links = {(0, 1): 2, (1, 0): 2, (2, 3): 5, (3, 2): 5, (3, 4): 1, (4, 3): 1}
    split = check(Network((0, 1), (2, 3, 4), links), {0: 1, 1: 1}, patterns=patterns)
    assert as_dict(split.graph) == {(0, 1): 2, (1, 0): 2}


def test_a_switch_that_is_not_balanced_is_named():
    """If more enters a switch than leaves it, the switch is named instead of giving a wrong network."""
    links = {(0, 1): 2, (1, 0): 2, (0, 2): 3, (2, 1): 1}
    graph = digraph(links, 3)
    for patterns in (True, False):
        with pytest.raises(Unsplittable) as caught:
            remove_switches(graph, column(3, {0: 1, 1: 1}), flags(3, [0, 1]), patterns=patterns)
        assert caught.value.switch == 2


def test_one_switch_by_hand():
    """Of three pairs of nodes on a switch, the pairs that are preferred are taken as far as they leave the trees."""
    network = Network((0, 1, 2), (3,), {link: 2 for v in range(3) for link in ((v, 3), (3, v))})
    graph, demand = digraph(network.capacity, 4), column(4, dict.fromkeys(range(3), 1))
    wanted = Pairs(np.array([0, 1]), np.array([1, 0]), np.array([2, 2]))
    result = split_pairwise(graph, demand, near_order(graph, flags(4, range(3))), 3, wanted, lambda: False)
    assert result is not None
    after, done = result
    assert (done.source[0], done.target[0], done.amount[0]) == (0, 1, 2)
    left = as_dict(after)
    assert is_rooted(after, demand, np.arange(3))
    assert sum(left.values()) <= 6
    assert not any(3 in link for link in left)
