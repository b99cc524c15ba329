"""Random instances, as the data of instance files, so that every one of them can be written down and asked again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from random import Random
from typing import Any

Data = dict[str, Any]


COPIED = ("broadcast", "all_gather", "scatter", "gather", "all_to_all")


def rng(campaign: str, seed: int) -> Random:
    """Generator of a case."""
    return Random(f"{campaign}/{seed}")  # noqa: S311 (nothing is secret here)


def instance(
    names: Sequence[str],
    arcs: Sequence[tuple[str, str, str] | tuple[str, str, str, str]],
    kind: str,
    size: str,
    switches: Mapping[str, Mapping[str, Any]] | None = None,
    **collective: Any,
) -> Data:
    """Data of an instance of directed links."""
    switches = switches or {}
    nodes = [{"name": n, **({"kind": "switch", **switches[n]} if n in switches else {})} for n in names]
    links = [
        {"source": a[0], "target": a[1], "bandwidth": a[2], **({"latency": a[3]} if len(a) > 3 else {})} for a in arcs
    ]
    return {
        "schema": "cwb-instance/1",
        "name": "case",
        "network": {"nodes": nodes, "links": links},
        "collective": {"kind": kind, "size": size, **collective},
    }


def connected_pairs(random: Random, count: int, extra: int) -> list[tuple[int, int]]:
    """Pairs of a random tree and up to ``extra`` more."""
    pairs = [(random.randrange(i), i) for i in range(1, count)]
    rest = [(a, b) for b in range(count) for a in range(b) if (a, b) not in pairs]
    random.shuffle(rest)
    return pairs + rest[:extra]


def wan(random: Random, count: int, *, asymmetric: bool, unit: str = "MB/s") -> tuple[Data, dict[tuple[int, int], int]]:
    """A wide-area network with an all-reduce of 1 GB, and the rate of every directed link in its unit."""
    pairs = connected_pairs(random, count, random.randrange(4))
    rates: dict[tuple[int, int], int] = {}
    base = random.choice((1, 10, 10, 30))  # of all rates, so that a floor may lie between its multiples
    for a, b in pairs:
        rates[a, b] = random.randint(1, 9) * base
        rates[b, a] = random.randint(1, 9) * base if asymmetric else rates[a, b]
    arcs = [(str(a), str(b), f"{rate} {unit}") for (a, b), rate in rates.items()]
    return instance([str(i) for i in range(count)], arcs, "all_reduce", "1 GB"), rates


def directed_network(
    random: Random, count: int, *, kind: str, high: int = 6
) -> tuple[Data, dict[tuple[int, int], int]]:
    """A strongly connected network of directed links, some of them one-way, with rates in B/s."""
    order = list(range(count))
    random.shuffle(order)
    ends = {(order[i - 1], order[i]) for i in range(count)}
    for _ in range(random.randrange(2 * count)):
        a, b = random.sample(range(count), 2)
        ends.add((a, b))
    rates = {pair: random.randint(1, high) for pair in sorted(ends)}
    arcs = [(str(a), str(b), f"{rate} B/s") for (a, b), rate in rates.items()]
    return instance([str(i) for i in range(count)], arcs, kind, "12 B"), rates


def star(random: Random, count: int, *, kind: str, chunks: int = 1, high: int = 2) -> Data:
    """Ranks round a switch of any sort, with rates in B/s and chunks of 1 B."""
    sort: Data = {"multicast": random.random() < 0.5}
    if random.random() < 0.6:
        sort["buffer"] = "0 B"
    late = random.choice(("0 s", "0 s", "0.000001 s"))
    arcs = []
    for i in range(count):
        up, down = random.randint(1, high), random.randint(1, high)
        arcs += [(str(i), "s", f"{up} B/s", late), ("s", str(i), f"{down} B/s", late)]
    names = [*map(str, range(count)), "s"]
    return instance(names, arcs, kind, whole(kind, count, chunks), {"s": sort}, chunks=chunks)


def direct(
    random: Random,
    count: int,
    *,
    kind: str,
    chunks: int = 1,
    high: int = 2,
    latencies: Sequence[str] = ("0 s", "0 s", "1 s"),
) -> Data:
    """Ranks with links in both directions, with rates in B/s, chunks of 1 B, and latency now and then."""
    late = random.choice(latencies)
    arcs = []
    for a, b in connected_pairs(random, count, random.randrange(3)):
        rate = random.randint(1, high)
        arcs += [(str(a), str(b), f"{rate} B/s", late), (str(b), str(a), f"{rate} B/s", late)]
    return instance([*map(str, range(count))], arcs, kind, whole(kind, count, chunks), chunks=chunks)


def whole(kind: str, count: int, chunks: int) -> str:
    """Size at which every chunk has 1 B."""
    parts = 1 if kind in ("broadcast", "reduce") else count
    return f"{parts * chunks} B"


def exact(text: str) -> Fraction:
    """Read the number of a quantity whose unit is a base unit."""
    return Fraction(text.split(maxsplit=1)[0])
