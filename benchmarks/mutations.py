"""Share of wrong schedules that the verifier catches: random single changes of correct schedules of many families.

    python benchmarks/mutations.py                  # 20 of each of 8 mutations on each of 19 families
    python benchmarks/mutations.py --each 200 --seed 7
    python benchmarks/mutations.py --compiled       # by the loops that check millions of sends

A change matters if a second, slow verifier (tests/schedules/verify/slow_replay.py: dictionaries and counters) finds the
schedule wrong. Every change that matters must be caught, and nothing else refused; exit status 1 otherwise.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path
from time import perf_counter

import numpy as np
from cwb.core import kernel
from cwb.schedules.verify import verify
from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "schedules" / "verify"))

from families import FAMILIES
from mutations import MUTATIONS
from slow_replay import is_valid


def main() -> int:
    """Mutate, verify twice, print the counts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--each", type=int, default=20, help="mutants of each kind per family")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--compiled", action="store_true", help="use compiled loops however few the sends are")
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
                wrong, caught = not is_valid(instance, mutant), not verify(instance, mutant).ok
                counts[family, mutation, f"{'wrong' if wrong else 'right'}, {'caught' if caught else 'accepted'}"] += 1
    return show(counts, refused, perf_counter() - began)


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
    console.print(f"originals refused: {', '.join(refused) or 'none'}")
    return 1 if missed or strict or refused else 0


if __name__ == "__main__":
    sys.exit(main())
