"""CPU seconds in which the first-order search of all-to-all rates reaches gaps: ``python benchmarks/first_order.py``.

A gap is that of the flow's time over the bound that lengths of links prove. One row per network, in Markdown.
"""

from __future__ import annotations

import argparse
from fractions import Fraction
from time import process_time

from cwb.core.budget import Budget
from cwb.core.collective import Collective, Demand
from cwb.core.instance import Instance
from cwb.instances import load
from cwb.models.mcf.first_order import find_approximate_flow
from cwb.models.mcf.problem import Exchange, exchange_of

NETWORKS = (
    "generalized_kautz(2, 1000)",
    "generalized_kautz(4, 997)",
    "generalized_kautz(4, 1000)",
    "generalized_kautz(8, 1000)",
    "random_regular(1000, 4, seed=1)",
    "torus(32,32)",
    "mesh(30,30)",
    "fat_tree(16)",
)
GAPS = (0.05, 0.02, 0.01)


def exchange(network: str) -> Exchange:
    """Return the all-to-all on a network."""
    instance: Instance = load(network).with_changes(demand=Demand(Collective.ALL_TO_ALL, Fraction(1)))
    return exchange_of(instance)


def seconds_of(exchanged: Exchange) -> list[str]:
    """Return the CPU seconds to every gap, and the rounds, as texts."""
    begin, reached = process_time(), list[str]()

    def note(message: str) -> None:
        gap = float(message.partition("takes ")[2].partition("%")[0]) / 100
        reached.extend(f"{process_time() - begin:.1f}" for limit in GAPS[len(reached) :] if gap <= limit)

    near = find_approximate_flow(exchanged, Budget(gap=GAPS[-1], progress=note))
    return [*reached, *[""] * (len(GAPS) - len(reached)), str(near.rounds)]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", action="append", help="this network alone; may be repeated")
    networks = parser.parse_args().only or NETWORKS
    find_approximate_flow(exchange("ring(3)"), Budget())  # compiles
    print("| network | " + " | ".join(f"{gap:.1%}" for gap in GAPS) + " | rounds |")
    print("|---" * (len(GAPS) + 2) + "|")
    for network in networks:
        print(f"| `{network}` | " + " | ".join(seconds_of(exchange(network))) + " |", flush=True)


if __name__ == "__main__":
    main()
