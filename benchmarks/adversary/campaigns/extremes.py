"""Numbers and networks at the ends of what can be written: an answer or a reason, no error inside, no warning."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cwb.benchmarks.adversary import client, networks
from cwb.benchmarks.adversary.fault import Campaign, Fault
from cwb.benchmarks.adversary.networks import Data, instance, rng

#: Methods and what they schedule, with options that keep them short.
METHODS: tuple[tuple[str, Mapping[str, Any], tuple[str, ...]], ...] = (
    ("teccl", {}, ("all_gather", "broadcast", "all_to_all")),
    ("teccl", {"epoch": "slow"}, ("all_gather", "broadcast", "all_to_all")),
    ("teccl-milp", {"epoch": "slow"}, ("all_gather", "broadcast", "reduce")),
    ("teccl-lp", {"epoch": "slow"}, ("all_gather", "all_to_all")),
    ("teccl-astar", {"epoch": "slow"}, ("all_gather",)),
    ("teccl-all-to-all", {}, ("all_to_all",)),
    ("forestcoll", {}, ("all_gather", "all_reduce", "broadcast")),
    ("forestcoll-allreduce", {}, ("all_reduce",)),
    ("mtree", {}, ("all_reduce",)),
    ("gost", {"trees": 2}, ("all_reduce",)),
    ("wan-ring", {}, ("all_reduce",)),
    ("tacos", {"restarts": 2}, ("all_gather", "all_reduce")),
    ("pccl", {"steps": 50}, ("all_gather", "all_to_all")),
    ("sccl", {}, ("all_gather",)),
    ("ten-ilp", {}, ("all_gather", "broadcast")),
    ("bfb", {}, ("all_gather",)),
    ("bfb-heterogeneous", {}, ("all_gather",)),
    ("all-to-all-mcf", {}, ("all_to_all",)),
    ("multitree", {}, ("all_gather",)),
    ("blink", {}, ("broadcast", "all_reduce")),
    ("ring", {}, ("all_gather",)),
)

RATES = (
    "0.000000001 B/s",
    "1 B/s",
    "1 kB/s",
    "10 GB/s",
    "3 TB/s",
    "1000000000000000 B/s",
    "999999937 B/s",
    "1/999999893 B/s",
)
SIZES = ("1e-30 B", "1 B", "7 B", "1 MB", "1 GiB", "1e24 B")


def extreme(seed: int) -> list[Fault]:
    """A random method on a random network of extreme rates and sizes, not always connected."""
    random = rng("extremes", seed)
    name, options, kinds = random.choice(METHODS)
    count = random.choice((2, 3, 3, 4))
    pairs = networks.connected_pairs(random, count, random.randrange(3))
    if random.random() < 0.15:
        pairs = pairs[1:] or pairs
    late = random.choice(("0 s", "1 us", "1 s", "1e-15 s"))
    rates = random.choice((RATES, RATES, ("10 GB/s",), ("1 B/s", "1 TB/s")))
    arcs = []
    for a, b in pairs:
        rate = random.choice(rates)
        arcs.append((str(a), str(b), rate, late))
        if random.random() < 0.95:
            arcs.append((str(b), str(a), rate, late))
    data = instance([*map(str, range(count))], arcs, random.choice(kinds), random.choice(SIZES))
    return ask_method(data, name, options)


def ask_method(data: Data, name: str, options: Mapping[str, Any]) -> list[Fault]:
    """Ask, with five seconds to answer in."""
    return client.conduct(client.solve(data, name, time_limit_s=5, **options), 13)


CAMPAIGNS = (
    Campaign(
        "extremes", "conduct alone: no crash, no warning, exit status", extreme, range(20), 300, cpu_s=90, batch=8
    ),
)
