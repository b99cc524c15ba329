"""All-reduce by trees over wide-area networks: floors of rates, limits on trees and heights, directions that differ."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from cwb.benchmarks.adversary import client, trees
from cwb.benchmarks.adversary.fault import Campaign, Fault
from cwb.benchmarks.adversary.networks import Data, rng, wan

#: Bytes of the all-reduce of :func:`adversary.networks.wan`.
SIZE = 10**9

#: Bytes per second of the units of rates.
UNITS = {"MB/s": 10**6, "Mb/s": 125_000, "GB/s": 10**9, "Gb/s": 125_000_000, "B/s": 1}

#: Methods that make trees over wide-area networks, with options that keep them short.
METHODS: Mapping[str, Mapping[str, Any]] = {
    "mtree": {},
    "gost": {"trees": 3, "min_rate": "1 kB/s"},  # its own floor is a link of these networks
    "topoadopt": {"trees": 2, "moves": 20},
    "blink-wan": {"steps": 50},
    "single-tree": {},
    "wan-ring": {},
    "plink": {},
    "psld": {},
}


def check_limited_trees(
    data: Data,
    rates: trees.Rates,
    unit: str,
    *,
    defect: int | None,
    trees_most: int | None = None,
    height: int | None = None,
    floor: int = 0,
    **options: Any,
) -> list[Fault]:
    """Ask ``mtree`` for trees of limited number, height and rate, and hold it against a program over all trees."""
    asked = dict(options)
    if trees_most is not None:
        asked["trees"] = trees_most
    if height is not None:
        asked["height"] = height
    if floor:
        asked["min_rate"] = f"{floor} {unit}"
    count = len(data["network"]["nodes"])
    solved = client.solve(data, "mtree", **asked)
    found = client.conduct(solved, defect)
    rate = trees.plan(count, rates, most=trees_most, high=height, floor=floor)
    best = None if rate is None else Fraction(SIZE) / (rate * UNITS[unit])
    if best is not None:
        found += client.claims(solved, best, "trees, all of them tried", defect)
    return found


def floors(seed: int) -> list[Fault]:
    """Random networks of three or four sites, with a floor most of the time, and K and H now and then."""
    random = rng("floors", seed)
    data, rates = wan(random, random.choice((3, 3, 4)), asymmetric=False, unit="Mb/s")
    if seed % 8 == 0:
        return check_limited_trees(data, rates, "Mb/s", defect=1) + check_recomputation(
            data, 4, **random.choice(({}, {"height": 1}, {"trees": 2}))
        )
    floor = random.choice((0, *range(1, max(rates.values()) + 1)))
    most = random.choice((None, None, 1, 2, 3))
    height = random.choice((None, None, 1, 2))
    return check_limited_trees(data, rates, "Mb/s", defect=1, trees_most=most, height=height, floor=floor)


def check_recomputation(data: Data, defect: int, **options: Any) -> list[Fault]:
    """Check the bound of ``mtree`` against its certificate, unless the record attributes it to the solver."""
    solved = client.solve(data, "mtree", **options)
    if solved.record is None or solved.record.bound is None or solved.answer is None:
        return []
    verdict, crash = client.verdict(solved.instance, solved.answer, solved.certificate)
    if crash or verdict is None:
        return [Fault("internal error", solved.question, str(crash), "a verdict", defect)]
    if verdict.bound is None and getattr(solved.record, "proof", None) != "attested":
        text = f"bound {solved.record.bound!r}, certificate {type(solved.certificate).__name__}"
        return [
            Fault(
                "bound that nobody recomputes", solved.question, text, "a certificate, or a word on whose it is", defect
            )
        ]
    return []


def directions(seed: int) -> list[Fault]:
    """Solve random networks with unequal directions by every method, against trees of directed links."""
    random = rng("directions", seed)
    count = random.choice((2, 3, 3, 3, 4))
    data, rates = wan(random, count, asymmetric=True)
    rate = trees.all_reduce_by_pairs(count, rates)
    names = [*METHODS]
    chosen = names if seed == 0 else random.sample(names, 2)
    return [fault for name in chosen for fault in asymmetric(data, rate, name, 3 if name == "mtree" else 16)]


def asymmetric(data: Data, rate: float | None, name: str, defect: int, unit: str = "MB/s") -> list[Fault]:
    """Ask a method, and hold it against a rate that trees of directed links reach."""
    solved = client.solve(data, name, **METHODS[name])
    found = client.conduct(solved, defect)
    if rate is not None:
        found += client.claims(solved, SIZE / (rate * UNITS[unit]), "in-trees and out-trees", defect)
    return found


def check_rescaling(seed: int) -> list[Fault]:
    """Ask the same in another unit: sizes and rates times a number, so that the time is the same."""
    random = rng("rescaled", seed)
    data, _ = wan(random, 3, asymmetric=False, unit="MB/s")
    name = random.choice(("mtree", "wan-ring", "single-tree", "forestcoll-allreduce", "forestcoll"))
    first = client.solve(data, name)
    scale = random.choice((3, 7, 1000, 10**6, 999_983))
    other = {**data, "collective": {**data["collective"], "size": f"{SIZE * scale} B"}}
    links = [
        {**link, "bandwidth": f"{int(link['bandwidth'].split()[0]) * 10**6 * scale} B/s"}
        for link in data["network"]["links"]
    ]
    other["network"] = {**data["network"], "links": links}
    second = client.solve(other, name)
    found = client.conduct(first) + client.conduct(second)
    if first.has_answer and second.has_answer:
        for what in ("status", "objective", "bound"):
            a, b = getattr(first.record, what), getattr(second.record, what)
            same = a == b if a is None or b is None or isinstance(a, str) else abs(a - b) <= 1e-7 * abs(a)
            if not same:
                found.append(
                    Fault("depends on the unit", second.question, f"{what} {b!r}", f"{a!r} in another unit", None)
                )
    return found


CAMPAIGNS = (
    Campaign(
        "floors", "program over all spanning trees", floors, range(12), 400, cpu_s=60, batch=8, endless=lambda _: 2
    ),
    Campaign("directions", "program over all arborescences", directions, range(8), 500, cpu_s=120, batch=8),
    Campaign("rescaled", "the same question in another unit", check_rescaling, range(6), 150, cpu_s=120, batch=8),
)
