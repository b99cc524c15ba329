"""Try to fool cwb: random questions held against oracles of its own, and forged schedules and certificates.

    python benchmarks/adversary.py                            # every campaign, its number of cases
    python benchmarks/adversary.py --minutes 60               # as much of it as fits
    python benchmarks/adversary.py --smoke                    # fixed seeds, a few minutes
    python benchmarks/adversary.py --campaign known           # the defects that were found once
    python benchmarks/adversary.py --campaign directions --seed 17 --cases 1
    python benchmarks/adversary.py --list

Every case is made of its campaign and seed alone. A fault is a line: campaign, seed, what was asked, claimed and known.
At the end stand a table of the campaigns and, of old defects, which seeds found them again. Exit status 1 if there is a
fault.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from adversary.campaigns import CAMPAIGNS
from adversary.campaigns.known_defects import DEFECTS
from adversary.fault import Fault
from adversary.pool import batches, run

#: Faults of one kind and campaign that are printed.
SHOWN = 5


def main() -> int:
    """Run campaigns and print what they find."""
    options = _options()
    if options.list:
        for campaign in CAMPAIGNS.values():
            print(f"{campaign.name:16} {campaign.cases:7} cases; {campaign.oracle}")
        return 0
    deadline = time.monotonic() + 60 * options.minutes
    seconds: Counter[str] = Counter()
    cases: Counter[str] = Counter()
    comparisons: Counter[str] = Counter()
    faults: dict[str, list[tuple[int, Fault]]] = defaultdict(list)
    for done in run(CAMPAIGNS, _tasks(options), options.processes, deadline):
        cases[done.campaign] += 1
        comparisons[done.campaign] += done.comparisons
        seconds[done.campaign] += done.seconds
        for fault in done.faults:
            faults[done.campaign].append((done.seed, fault))
            if sum(other.kind == fault.kind for _, other in faults[done.campaign]) <= options.shown:
                print(_line(done.campaign, done.seed, fault), flush=True)
    _show(cases, comparisons, faults, seconds)
    return 1 if any(faults.values()) else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--campaign", action="append", choices=list(CAMPAIGNS), help="Only this one; may be repeated.")
    parser.add_argument("--seed", type=int, default=0, help="The first seed.")
    parser.add_argument("--cases", type=int, help="Seeds of every campaign; by default its own number.")
    parser.add_argument("--minutes", type=float, default=24 * 60, help="No case is begun later.")
    parser.add_argument("--smoke", action="store_true", help="A few fixed seeds of every campaign.")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--shown", type=int, default=SHOWN, help="Faults of a kind that are printed.")
    parser.add_argument("--list", action="store_true", help="List the campaigns.")
    return parser.parse_args()


def _tasks(options: argparse.Namespace) -> Iterator[tuple[str, list[int]]]:
    """Batches of the campaigns in turn, so that a run that is cut short has tried something of each."""
    queues = []
    for name in options.campaign or CAMPAIGNS:
        campaign = CAMPAIGNS[name]
        if options.smoke:
            seeds = list(campaign.smoke)
        elif name == "known":
            seeds = list(range(options.seed, options.seed + (options.cases or campaign.cases)))
        else:
            seeds = list(
                range(options.seed, options.seed + (campaign.cases if options.cases is None else options.cases))
            )
        queues.append(batches(campaign, seeds))
    while queues:
        for queue in list(queues):
            task = next(queue, None)
            if task is None:
                queues.remove(queue)
            else:
                yield task


def _line(campaign: str, seed: int, fault: Fault) -> str:
    return f"{campaign} {seed}: {fault.kind}: {fault.question}: claimed {fault.claimed}; known {fault.known}"


def _show(
    cases: Counter[str],
    comparisons: Counter[str],
    faults: dict[str, list[tuple[int, Fault]]],
    seconds: Counter[str],
) -> None:
    """Print the table of campaigns, and that of old defects."""
    print("\n| campaign | oracle | cases | comparisons | faults | processor seconds |\n|---|---|---|---|---|---|")
    for name in cases:
        wrong = len({seed for seed, _ in faults[name]})
        numbers = f"{cases[name]:,} | {comparisons[name]:,} | {wrong:,} | {seconds[name]:,.0f}"
        print(f"| `{name}` | {CAMPAIGNS[name].oracle} | {numbers} |")
    wrong = sum(len({seed for seed, _ in found}) for found in faults.values())
    print(f"| all | | {cases.total():,} | {comparisons.total():,} | {wrong:,} | {sum(seconds.values()):,.0f} |")
    found: dict[int, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for name, some in faults.items():
        for seed, fault in some:
            if fault.defect is not None and seed not in found[fault.defect][name]:
                found[fault.defect][name].append(seed)
    if found:
        print("\n| | defect | found by campaign: seeds |\n|---|---|---|")
    for number in sorted(found):
        text = "; ".join(f"`{name}`: {_seeds(seeds)}" for name, seeds in found[number].items())
        print(f"| {number} | {DEFECTS[number]} | {text} |")


def _seeds(seeds: list[int]) -> str:
    more = f" and {len(seeds) - 4:,} more" if len(seeds) > 4 else ""
    return ", ".join(map(str, sorted(seeds)[:4])) + more


if __name__ == "__main__":
    sys.exit(main())
