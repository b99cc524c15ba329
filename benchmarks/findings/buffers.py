"""TE-CCL's conjecture that storing never helps: all small networks, by exact search, and the smallest that disprove it.

    python benchmarks/findings/buffers.py                 # about four minutes of one core
    python benchmarks/findings/buffers.py --seconds 60    # of one core at most, for each family
    python benchmarks/findings/buffers.py --smoke

Networks are counted without those that differ by the names of ranks. A kind of link is a pair: epochs from start to
arrival, and epochs from a start to the next one. (1, 1) is a fast link without latency, (2, 2) a link of half the
speed; a latency of one epoch makes them (2, 1) and (3, 2).
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, permutations, product
from pathlib import Path

from cwb.benchmarks.findings import exact_epochs, exact_paths, fluid
from cwb.benchmarks.findings.exact_epochs import Net, TooManyStatesError
from cwb.harness.run import Request, run
from cwb.instances import load
from rich.console import Console
from rich.table import Table

#: States after which a network counts as undecided.
STATES = 20_000

FAST, SLOW, FAST_LATE, SLOW_LATE = (1, 1), (2, 2), (2, 1), (3, 2)

Kind = tuple[int, int]

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Family:
    """Networks of one number of ranks and some kinds of links."""

    ranks: int
    kinds: tuple[Kind, ...]
    collective: str
    two_way: bool = False
    part: float = 1.0  #: Of the seconds for a family.


FAMILIES = (
    Family(3, (FAST, SLOW, FAST_LATE, SLOW_LATE), "all_gather"),
    Family(3, (FAST, SLOW, FAST_LATE, SLOW_LATE), "all_to_all"),
    *(Family(4, (kind,), name) for name in ("all_gather", "all_to_all") for kind in (FAST, FAST_LATE, (3, 1))),
    Family(4, (FAST, SLOW), "all_gather"),
    *(Family(n, (FAST,), name, two_way=True) for name in ("all_gather", "all_to_all") for n in (4, 5)),
    Family(5, (FAST,), "all_gather", part=0.3),
    Family(4, (FAST, SLOW), "all_to_all", part=0.3),
)

#: Two instances that disprove the conjecture.
EXAMPLES = {
    "ring of 3, all_to_all": "unequal_ring.json",
    "4 ranks, all_gather": "equal_links.json",
}


@dataclass
class Tally:
    """Counts of a family, and networks on which storing helps: epochs with and without, and the network."""

    tried: int = 0
    undecided: int = 0
    ended: bool = True
    found: list[tuple[int, int, Net]] | None = None


def digraphs(ranks: int, *, two_way: bool) -> Iterator[list[tuple[int, int]]]:
    """Yield one of each class of strongly connected digraphs, those of few links first."""
    pairs = [(a, b) for a in range(ranks) for b in range(ranks) if a < b or (a > b and not two_way)]
    place = {pair: i for i, pair in enumerate(pairs)}
    if two_way:
        place |= {(b, a): i for (a, b), i in place.items()}
    moves = [[place[p[a], p[b]] for a, b in pairs] for p in permutations(range(ranks))]
    seen = bytearray(1 << len(pairs))
    for size in range(ranks - 1 if two_way else ranks, len(pairs) + 1):
        for chosen in combinations(range(len(pairs)), size):
            if seen[sum(1 << i for i in chosen)]:
                continue
            for move in moves:
                seen[sum(1 << move[i] for i in chosen)] = 1
            ends = [pairs[i] for i in chosen]
            ends += [(b, a) for a, b in ends] if two_way else []
            if Net(ranks, tuple((a, b, 1, 1) for a, b in ends)).is_connected:
                yield ends


def networks(family: Family) -> Iterator[Net]:
    """Yield one of each class of networks of a family."""
    for ends in digraphs(family.ranks, two_way=family.two_way):
        own = [p for p in permutations(range(family.ranks)) if {(p[a], p[b]) for a, b in ends} == set(ends)]
        moves = [[ends.index((p[a], p[b])) for a, b in ends] for p in own]
        for chosen in product(range(len(family.kinds)), repeat=len(ends)):
            if all(tuple(chosen[i] for i in move) >= chosen for move in moves):
                yield Net(family.ranks, tuple((*e, *family.kinds[k]) for e, k in zip(ends, chosen, strict=True)))


def fewest(net: Net, collective: str, states: int) -> tuple[int, int]:
    """Return the fewest epochs of ranks that store, and of ranks that pass on."""
    if collective == "all_to_all":
        stored = exact_paths.fewest_epochs(net, passing=False, states=states)
        return stored, exact_paths.fewest_epochs(net, passing=True, first=stored, states=states)
    stored, _ = exact_epochs.fewest(net, collective, passing=False, states=states)
    return stored, exact_epochs.fewest(net, collective, passing=True, first=stored, states=states)[0]


def enumerate_family(family: Family, seconds: float, states: int = STATES) -> Tally:
    """Try all networks of a family, as far as the seconds of one core allow."""
    tally, begin = Tally(found=[]), time.process_time()
    assert tally.found is not None
    for net in networks(family):
        if time.process_time() - begin > seconds:
            tally.ended = False
            break
        tally.tried += 1
        try:
            stored, passed = fewest(net, family.collective, states)
        except TooManyStatesError:
            tally.undecided += 1
            continue
        if passed > stored:
            tally.found.append((stored, passed, net))
    return tally


def compare_shares(seconds: float, horizons: tuple[int, ...] = (5, 7)) -> tuple[int, int, int]:
    """Count programs for divisible all-to-alls on 3 ranks: all, those where storing delivers more, those unproved."""
    tried, better, unproved, begin = 0, 0, 0, time.process_time()
    for net in networks(Family(3, (FAST, SLOW, FAST_LATE, SLOW_LATE), "all_to_all")):
        # Divisible data crosses a link of any speed within its epoch and the latency.
        links = tuple((a, b, 1 + delay - window, Fraction(1, window)) for a, b, delay, window in net.links)
        for epochs in horizons:
            if time.process_time() - begin > seconds:
                return tried, better, unproved
            flow = fluid.Flow(3, links)
            stored, passed = (fluid.share(flow, epochs, passing=passing) for passing in (False, True))
            tried += 1
            unproved += stored is None or passed is None
            better += stored is not None and passed is not None and stored > passed
    return tried, better, unproved


def describe(net: Net) -> str:
    """Write the links of a network with what differs from fast links without latency."""
    return ", ".join(f"{a}→{b}" + ("" if (d, w) == FAST else f" ({d},{w})") for a, b, d, w in net.links)


def ask_cwb(console: Console) -> None:
    """Solve the examples by cwb, whose verifier checks the schedules."""
    table = Table(title="examples by teccl-milp", title_justify="left")
    for heading in ("network", "ranks", "epochs", "status", "verified"):
        table.add_column(heading)
    for name, file in EXAMPLES.items():
        for relays in ("store", "pass"):
            record = run(load(str(HERE / file)), Request("teccl-milp", options={"relays": relays})).record
            table.add_row(name, relays, f"{record.metrics['epochs']:g}", str(record.status), str(record.verified))
    console.print(table)


def main() -> None:
    """Enumerate, and print counts and the smallest networks on which storing helps."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seconds", type=float, default=70, help="of one core at most, for each family")
    parser.add_argument("--smoke", action="store_true", help="only what ends in seconds")
    given = parser.parse_args()
    seconds = 0.5 if given.smoke else given.seconds
    console = Console(width=160)
    counts = Table(title="networks on which whole chunks take fewer epochs if ranks store", title_justify="left")
    smallest = Table(title="smallest, and the one that loses most", title_justify="left")
    for table, headings in (
        (counts, ("ranks", "links", "collective", "networks", "storing helps", "undecided", "whole", "seconds")),
        (smallest, ("collective", "stored", "passed", "links")),
    ):
        for heading in headings:
            table.add_column(heading)
    for family in FAMILIES:
        begin = time.process_time()
        tally = enumerate_family(family, seconds * family.part, STATES // 100 if given.smoke else STATES)
        found = tally.found or []
        kinds = ("two-way, " if family.two_way else "") + " ".join(f"({d},{w})" for d, w in family.kinds)
        row = (str(family.ranks), kinds, family.collective, f"{tally.tried:,}", f"{len(found):,}")
        ended = "yes" if tally.ended else "no"
        row = (*row, f"{tally.undecided:,}", ended, f"{time.process_time() - begin:.0f}")
        print(*row, sep="; ", flush=True)
        counts.add_row(*row)
        if found:
            few = min(found, key=lambda row: (len(row[2].links), row[0]))
            worst = max(found, key=lambda row: (row[1] / row[0], -len(row[2].links)))
            for stored, passed, net in dict.fromkeys((few, worst)):
                smallest.add_row(family.collective, str(stored), str(passed), describe(net))
    tried, better, unproved = compare_shares(0.3 * seconds)
    console.print(counts, smallest)
    console.print(
        f"divisible all-to-alls on 3 ranks: {tried:,} programs, storing delivers more in {better}; "
        f"{unproved} without an exact proof"
    )
    ask_cwb(console)


if __name__ == "__main__":
    main()
