"""Random networks for ForestColl, from a seed or from hypothesis.

All have the same capacity in as out at every node and a way from every node to every other one, which is what the paper
asks for. The families:

``two-way``
    a random connected graph; every link has an equal one in the other direction
``one-way``
    a sum of directed cycles: the two directions between two nodes differ, or only one exists
``boxes``
    boxes of compute nodes with a switch each, all on one or two outer switches
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from random import Random

from hypothesis import strategies as st
from oracle import Network

LARGEST = 10**6


def random_network(rng: Random, family: str | None = None) -> Network:
    """Draw a network with 3 to 9 compute nodes and at most 14 nodes, of a family or of any."""
    draw = {"two-way": two_way, "one-way": one_way, "boxes": boxes}[family or rng.choice(FAMILIES)]
    return draw(rng, rng.choice((1, 4, 10, LARGEST)))


FAMILIES = ("two-way", "one-way", "boxes")


def two_way(rng: Random, largest: int) -> Network:
    """Draw a random tree over all nodes and further links, with equal capacities in both directions."""
    nodes, compute, switches = random_nodes(rng)
    capacity: Counter[tuple[int, int]] = Counter()
    order = rng.sample(nodes, len(nodes))
    pairs = [(order[i], order[rng.randrange(i)]) for i in range(1, len(order))]
    pairs += [tuple(rng.sample(nodes, 2)) for _ in range(rng.randint(0, 2 * len(nodes)))]
    for u, v in pairs:
        amount = rng.randint(1, largest)
        capacity[u, v] += amount
        capacity[v, u] += amount
    return Network(compute, switches, dict(capacity))


def one_way(rng: Random, largest: int) -> Network:
    """Draw directed cycles until every node is on one and all hang together."""
    nodes, compute, switches = random_nodes(rng)
    capacity: Counter[tuple[int, int]] = Counter()
    more, together = rng.randint(0, 3), {nodes[0]}
    while together != set(nodes) or more > 0:
        more -= together == set(nodes)
        cycle = rng.sample(nodes, rng.randint(2, len(nodes)))
        if not together & set(cycle):
            continue
        together |= set(cycle)
        amount = rng.randint(1, largest)
        for u, v in zip(cycle, cycle[1:] + cycle[:1], strict=True):
            capacity[u, v] += amount
    return Network(compute, switches, dict(capacity))


def random_nodes(rng: Random) -> tuple[list[int], tuple[int, ...], tuple[int, ...]]:
    """Draw 3 to 9 compute nodes and 0 to 4 switches, whose numbers are mixed."""
    nodes = list(range((count := rng.randint(3, 9)) + rng.randint(0, 4)))
    compute = sorted(rng.sample(nodes, count))
    return nodes, tuple(compute), tuple(v for v in nodes if v not in compute)


def boxes(rng: Random, largest: int) -> Network:
    """Draw boxes of equal nodes; a node may reach each outer switch itself, or its box's switch does."""
    count = rng.randint(2, 4)
    size, outer = rng.randint(2, 8 // count), rng.randint(1, 2)
    compute = tuple(range(count * size))
    inner_switches = tuple(range(len(compute), len(compute) + count))
    outer_switches = tuple(range(len(compute) + count, len(compute) + count + outer))
    inside, outside, between = (rng.randint(1, largest) for _ in range(3))
    nodes_go_out, direct, rails = rng.random() < 0.7, rng.random() < 0.3, rng.random() < 0.5
    capacity: dict[tuple[int, int], int] = {}

    def both(u: int, v: int, amount: int) -> None:
        capacity[u, v] = capacity[v, u] = amount

    for v in compute:
        box, place = divmod(v, size)
        both(v, inner_switches[box], inside)
        if nodes_go_out:
            for index, switch in enumerate(outer_switches):
                if not rails or place % outer == index:
                    both(v, switch, outside)
        if direct and place > 0:
            both(v - 1, v, between)
    if not nodes_go_out:
        for box in inner_switches:
            for switch in outer_switches:
                both(box, switch, outside)
    return Network(compute, inner_switches + outer_switches, capacity)


def random_cuts(rng: Random, network: Network) -> dict[tuple[int, int], int]:
    """Draw links to be cut into two parallel ones, with the capacity of the first, as `oracle.to_topology` takes
    them."""
    return {link: rng.randint(1, c - 1) for link, c in network.capacity.items() if c > 1 and rng.random() < 0.5}


def random_unit(rng: Random) -> Fraction:
    """Draw the bandwidth in B/s of one unit of capacity, whole or not."""
    return Fraction(rng.choice((1, 25 * 10**9, 10**9)), rng.choice((1, 3, 8)))


def networks(family: str | None = None) -> st.SearchStrategy[Network]:
    """Networks of a family or of any."""
    return st.randoms(use_true_random=False).map(lambda rng: random_network(rng, family))


def seeded_networks(count: int, seed: int = 0) -> list[Network]:
    """Draw the same networks every time, the families in turn."""
    rng = seeded_random(seed)
    return [random_network(rng, FAMILIES[i % len(FAMILIES)]) for i in range(count)]


def seeded_random(seed: int) -> Random:
    """A generator of the same numbers every time."""
    return Random(seed)  # noqa: S311
