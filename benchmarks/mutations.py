"""Share of wrong schedules that the verifier catches: random single changes of correct schedules of many families.

    python benchmarks/mutations.py                  # 20 of each of 8 mutations on each of 19 families
    python benchmarks/mutations.py --each 200 --seed 7
    python benchmarks/mutations.py --compiled       # by the loops that check millions of sends
    python benchmarks/mutations.py --run --each 8   # by execution with real data, as cwb run has it, in one process

A change matters if a second, slow verifier (tests/schedules/verify/slow_replay.py: dictionaries and counters) finds the
schedule wrong. Every change that matters must be caught, and nothing else refused; exit status 1 otherwise. Execution
must catch what makes data wrong; changes of the way alone, such as two sends on a link at once, are counted apart.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path
from time import perf_counter

import numpy as np
from cwb.core import kernel
from cwb.core.errors import InputError
from cwb.core.instance import Instance
from cwb.harness.execution.program import lower
from cwb.schedules.verify import verify
from cwb.schedules.verify.answers import Whole
from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "schedules" / "verify"))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "harness" / "execution"))

from families import FAMILIES
from in_memory import play
from mutations import MUTATIONS
from slow_replay import is_valid

#: Violations with which data may be right all the same.
WAYS = frozenset({"not-a-sum", "capacity", "buffer", "multicast", "tree"})


def main() -> int:
    """Mutate, verify twice, print the counts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--each", type=int, default=20, help="mutants of each kind per family")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--compiled", action="store_true", help="use compiled loops however few the sends are")
    parser.add_argument("--run", action="store_true", help="execute the schedules instead of verifying them")
    options = parser.parse_args()
    if options.compiled:
        kernel.WORTH_CODE = kernel.WORTH_COMPILER = 1
    began = perf_counter()
    counts: Counter[tuple[str, str, str]] = Counter()
    refused: list[str] = []
    for number, (family, make) in enumerate(FAMILIES.items()):
        instance, answer = make()
        if not verify(instance, answer).ok:
            refused.append(family)
        for kind, (mutation, change) in enumerate(MUTATIONS.items()):
            random = np.random.default_rng([options.seed, number, kind])
            for _ in range(options.each):
                mutant = change(instance, answer, random)
                wrong, report = "right" if is_valid(instance, mutant) else "wrong", verify(instance, mutant)
                caught = has_wrong_data(instance, mutant) if options.run else not report.ok
                if options.run and not report.ok and {each.kind for each in report.violations} <= WAYS:
                    wrong = "way"
                counts[family, mutation, f"{wrong}, {'caught' if caught else 'accepted'}"] += 1
    return show(counts, refused, perf_counter() - began)


def has_wrong_data(instance: Instance, answer: Whole) -> bool:
    """Execute a schedule; return whether it is refused, or some rank's data is wrong."""
    try:
        return any(play(lower(instance, answer, itemsize=8)))
    except InputError:
        return True


def show(counts: Counter[tuple[str, str, str]], refused: list[str], seconds: float) -> int:
    """Print caught / wrong for every family and mutation, and whether all is as it should be."""

    def total(outcome: str, family: str | None = None, mutation: str | None = None) -> int:
        return sum(
            n for (f, m, o), n in counts.items() if o == outcome and family in (None, f) and mutation in (None, m)
        )

    table = Table(title="caught / changes that matter", title_justify="left")
    table.add_column("family")
    for mutation in (*MUTATIONS, "all"):
        table.add_column(mutation, justify="right")
    for family in (*FAMILIES, "all"):
        cells: list[str] = []
        for mutation in (*MUTATIONS, "all"):
            where = (None if family == "all" else family, None if mutation == "all" else mutation)
            caught = total("wrong, caught", *where)
            cells.append(f"{caught} / {caught + total('wrong, accepted', *where)}")
        if family == "all":
            table.add_section()
        table.add_row(family, *cells)
    console = Console(width=140)
    console.print(table)
    missed, harmless = total("wrong, accepted"), total("right, accepted")
    strict = total("right, caught")
    console.print(f"{counts.total()} mutants of {len(FAMILIES)} families in {seconds:.1f} s")
    console.print(f"missed: {missed}; harmless and accepted: {harmless}; harmless but refused: {strict}")
    if any(ways := [total(f"way, {outcome}") for outcome in ("caught", "accepted")]):
        console.print(f"of the way alone: {ways[0]} caught, {ways[1]} accepted")
    console.print(f"originals refused: {', '.join(refused) or 'none'}")
    return 1 if missed or strict or refused else 0


if __name__ == "__main__":
    sys.exit(main())
