"""The optimal all-gather throughput of the machines is the published one.

The time of an all-gather of M bytes on N ranks is at least M/N * 1/x*, where 1/x* is the largest |S n Vc| / B+(S) over
all sets S of nodes that do not contain every rank (ForestColl, section 3.1). It is found exactly here, by Newton's
method on max-flows, with nothing of cwb but the graph.
"""

import csv
from fractions import Fraction
from itertools import combinations
from math import lcm
from pathlib import Path
from random import Random

import networkx as nx
import numpy as np
import pytest
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import maximum_flow

REFERENCE = Path(__file__).parents[2] / "reference" / "forestcoll.csv"
with REFERENCE.open(encoding="utf-8", newline="") as file:
    ROWS = list(csv.DictReader(file))


def inverse_throughput(ranks, capacities):
    """Compute 1/x* of a graph given as {(source, target): capacity as Fraction}."""
    scale = lcm(*(capacity.denominator for capacity in capacities.values()))
    nodes = {node for pair in capacities for node in pair}
    best = max(ratio(nodes - {rank}, ranks, capacities) for rank in ranks)
    for sink in ranks:
        while True:
            # With 1/x = best, all ranks can send x to the sink at once unless a cut is worse than best. Every number
            # is multiplied by best's numerator and the scale, so that the flow is one of integers.
            graph = nx.DiGraph()
            for (a, b), capacity in capacities.items():
                graph.add_edge(a, b, capacity=int(capacity * scale) * best.numerator)
            for rank in ranks:
                graph.add_edge("source", rank, capacity=best.denominator * scale)
            value, (inside, _) = nx.minimum_cut(graph, "source", sink)
            if value == len(ranks) * best.denominator * scale:
                break
            best = ratio(inside - {"source"}, ranks, capacities)
    return best


def ratio(inside, ranks, capacities):
    """Compute |S n Vc| / B+(S) of one set."""
    leaving = sum(capacity for (a, b), capacity in capacities.items() if a in inside and b not in inside)
    return Fraction(len(inside & set(ranks))) / leaving


def capacities_GBps(topology):
    """Capacity of every pair of connected nodes in GB/s."""
    found = {}
    for link in topology.links:
        pair = (link.source, link.target)
        found[pair] = found.get(pair, 0) + link.bandwidth_Bps / 10**9
    return found


def test_the_oracle_agrees_with_all_cuts():
    """On small random graphs with switches, Newton's method finds the worst of all cuts."""
    random = Random(1)  # noqa: S311 (nothing is secret here)
    for _ in range(40):
        count = random.randint(3, 6)
        nodes = [f"n{i}" for i in range(count)]
        ranks = nodes[: random.randint(2, count)]
        capacities = {(nodes[i - 1], nodes[i]): Fraction(random.randint(1, 9), 2) for i in range(count)}
        for pair in random.sample([(a, b) for a in nodes for b in nodes if a != b], count):
            capacities[pair] = Fraction(random.randint(1, 9))
        subsets = [set(chosen) for size in range(1, count) for chosen in combinations(nodes, size)]
        cuts = [ratio(s, ranks, capacities) for s in subsets if not set(ranks) <= s]
        assert inverse_throughput(ranks, capacities) == max(cuts)


@pytest.mark.parametrize("row", ROWS, ids=[row["expression"] for row in ROWS])
def test_forestcoll(row, make):
    """The 1/x* and the algorithm bandwidth N x* of ForestColl's machines follow from the generated graph, exactly."""
    topology = make(row["expression"])
    assert len(topology.ranks) == int(row["gpus"])
    found = inverse_throughput(topology.ranks, capacities_GBps(topology))
    assert found == Fraction(row["inv_x"])
    assert float(len(topology.ranks) / found) == pytest.approx(float(row["algbw_GBps"]), abs=5e-5)


@pytest.mark.parametrize("rails", [1, 2, 8])
def test_rails_do_not_matter_for_a100(rails, make):
    """The NVSwitch joins the rails, so that their number leaves the throughput of two boxes as it is."""
    topology = make(f"dgx_a100(2, rails={rails})")
    assert inverse_throughput(topology.ranks, capacities_GBps(topology)) == Fraction(3, 65)


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("nvl72(1, gpus=5)", "nvl72(1, gpus=5, planes=18)"),
        ("nvl72(2, gpus=4)", "nvl72(2, gpus=4, planes=18)"),
        ("nvl72(3, gpus=4, rails=2)", "nvl72(3, gpus=4, rails=2, planes=3)"),
    ],
)
def test_planes_do_not_matter(text, other, make):
    """One NVLink switch for all chips of a rack has the throughput of the chips as they are built."""
    one, many = make(text), make(other)
    assert inverse_throughput(one.ranks, capacities_GBps(one)) == inverse_throughput(many.ranks, capacities_GBps(many))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("nvl72(1, gpus=6)", Fraction(5, 900)),  # into a GPU
        ("nvl72(3, gpus=4)", Fraction(8, 200)),  # into a rack of four NICs
        ("rail(4, 4)", Fraction(12, 100)),  # into a box of four NICs
        ("rail(4, 4, missing_nics=1)", Fraction(12, 75)),  # into the box with three
        ("pods(2, 2, 2, spines=2, oversubscription=1)", Fraction(6, 50)),  # into a box of two NICs
        ("pods(2, 2, 2, spines=3, oversubscription=2)", Fraction(6, 50)),  # the same: into a pod it is 4/50
        ("pods(2, 2, 2, spines=3, oversubscription=4)", Fraction(4, 25)),  # into a pod of 100 GB/s over 4
        ("three_tier(2, 2, 1, 2, aggregations=2, cores=3)", Fraction(6, 50)),  # into a box
        ("three_tier(2, 2, 1, 2, 2, 2, oversubscription=2)", Fraction(6, 25)),  # into a leaf
        ("three_tier(2, 2, 1, 2, 2, 2, 2, core_oversubscription=4)", Fraction(8, 25)),  # into a pod: 4/(100/8)
        ("mixed(1, 1)", Fraction(16, 200)),  # into the A100 box
        ("mixed(2, 1)", Fraction(24, 200)),  # the same
    ],
)
def test_clusters_by_hand(text, expected, make):
    """The best all-gather of a small cluster is bound by the cut that one finds by hand."""
    topology = make(text)
    assert inverse_throughput(topology.ranks, capacities_GBps(topology)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("rail(32, 8)", Fraction(248, 200)),
        ("rail(8, 8, missing_nics=1)", Fraction(56, 175)),
        ("pods(4, 4, oversubscription=1)", Fraction(120, 200)),
        ("pods(4, 4, missing_nics=1)", Fraction(120, 175)),
        ("pods(8, 4, oversubscription=4)", Fraction(248, 200)),
        ("three_tier()", Fraction(252, 100)),
        ("mixed(16, 8)", Fraction(248, 200)),
    ],
)
def test_large_clusters_are_bound_by_their_first_box(text, expected, make):
    """The cut around box 0 has the ratio worked out by hand, and a flow to every GPU shows that no cut is worse."""
    topology = make(text)
    capacities = {pair: Fraction(rate) for pair, rate in capacities_GBps(topology).items()}
    names = [node.name for node in topology.nodes]
    others = {name for name in names if not name.startswith("box0.")}
    assert ratio(others, topology.ranks, capacities) == expected
    number = {name: index for index, name in enumerate(names)}
    scale = lcm(*(capacity.denominator for capacity in capacities.values()))
    edges = {(number[a], number[b]): int(c * scale * expected.numerator) for (a, b), c in capacities.items()}
    edges |= {(len(names), number[rank]): scale * expected.denominator for rank in topology.ranks}
    rows, columns = zip(*edges, strict=True)
    flows = csr_matrix((np.array([*edges.values()], dtype=np.int32), (rows, columns)), shape=(len(names) + 1,) * 2)
    wanted = len(topology.ranks) * scale * expected.denominator
    assert all(maximum_flow(flows, len(names), number[rank]).flow_value == wanted for rank in topology.ranks)


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("dgx1()", Fraction("5.833")),
        ("ndv2(2)", Fraction(40)),
        ("ndv2(4)", Fraction(60)),
        ("dgx2(2)", Fraction("7.75")),
        ("amd(2)", Fraction("2.885")),
    ],
)
def test_te_ccl(text, milliseconds, make):
    """An all-gather of 1 GB takes at least the fluid time known of TE-CCL's machines (7.75 ms is also its schedule)."""
    topology = make(text)
    found = inverse_throughput(topology.ranks, capacities_GBps(topology)) / len(topology.ranks) * 1000
    assert round(found, 3) == milliseconds


def test_switch2d_is_bound_by_the_outer_dimension(make):
    """Of the 8 x 4 system of TACOS, 24 chunks must enter each group of 8 over 8 ports of 25 GiB/s."""
    topology = make("switch2d()")
    capacities = {pair: rate * 10**9 / 2**30 for pair, rate in capacities_GBps(topology).items()}
    assert inverse_throughput(topology.ranks, capacities) == Fraction(24, 200)
