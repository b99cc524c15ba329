"""All-to-all of TE-CCL: reference rows, random networks from both sides, and networks beyond the paper, as tables.

``python benchmarks/teccl_alltoall.py [reference|random|scale]...`` (all three by default). Seconds are the CPU seconds
of the method, from the posed instance to its outcome; every schedule goes through the verifier, whose seconds are not
counted.
"""

from __future__ import annotations

import argparse
import csv
import random
import resource
import time
from fractions import Fraction
from pathlib import Path

from cwb import solvers
from cwb.core.answers import BoundOnly
from cwb.core.budget import Budget
from cwb.core.collective import Collective, Demand
from cwb.core.outcome import Outcome
from cwb.core.topology import Topology
from cwb.core.units import UnitKind, parse
from cwb.harness.clock import WallClock
from cwb.instances import load
from cwb.models.teccl.all_to_all_problem import BlockGrid, BlockProgram, Exchange, coarse, points_for, reduce
from cwb.models.teccl.bounds import best_cut
from cwb.models.teccl.formulations.all_to_all import build
from cwb.models.teccl.method import TECCL_ALL_TO_ALL
from cwb.models.teccl.options import AllToAllOptions
from cwb.models.teccl.solve_all_to_all import run
from cwb.schedules import verdict_of

ROWS = Path(__file__).parent.parent / "tests" / "reference" / "teccl-alltoall.csv"

#: Networks beyond the paper, with the bytes of the full buffer.
SCALE = [
    *((f"torus({n},{n},{n})", size) for n in (3, 4, 5, 6) for size in ("1 GB", "1 MB")),
    *((f"ndv2(chassis={n})", size) for n in (4, 8, 16) for size in ("1 GB", "1 MB")),
]


def solve_all_to_all(
    network: str | Topology, size: Fraction, options: dict[str, object], limit_s: float | None = None
) -> tuple[Outcome, float, str]:
    """Run the method on an all_to_all and verify it; return outcome, CPU seconds and the verifier's result."""
    instance = (
        load(network) if isinstance(network, str) else load("ring(3)").with_changes(network=network, name="random")
    )
    instance = instance.with_changes(demand=Demand(Collective.ALL_TO_ALL, size))
    chosen = AllToAllOptions.model_validate(options)
    instance = TECCL_ALL_TO_ALL.pose(instance, chosen)
    began = time.process_time()
    outcome = run(instance, solvers.get("highs"), Budget(clock=WallClock(limit_s)), chosen)
    seconds = time.process_time() - began
    if outcome.answer is None:
        return outcome, seconds, "no answer"
    verdict = verdict_of(instance, outcome.answer, outcome.certificate)
    checked = "bound recomputed" if isinstance(outcome.answer, BoundOnly) else "valid"
    word = verdict.violations[0] if verdict.violations else checked
    return outcome, seconds, word


def reference() -> None:
    """Every AllToAll row of the reference, with its own epoch and chunk."""
    print(
        "| topology | epoch | size | reference epochs | reference s | lower bound "
        "| epochs | status | proof | CPU s | verified |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    total = reference_total = 0.0
    for row in csv.DictReader(ROWS.open()):
        network = "ndv2(chassis=2, variant=repo)" if row["topology"] == "NDv2" else "dgx2(chassis=2)"
        ranks = len(load(network).network.ranks)
        options: dict[str, object] = {"epoch_duration": f"{float(row['epoch_duration_s']) * 1e9:.12g} ns"}
        part = Fraction(row["output_bytes"]) / (16 if row["topology"] == "NDv2" else 32)
        outcome, seconds, word = solve_all_to_all(network, part * ranks, options)
        told = outcome.metrics
        print(
            f"| {row['topology']} | {row['epoch']} | {row['size']} | {row['epochs']} | {float(row['solver_s']):.0f} "
            f"| {told['lower_bound_epochs']} | {told.get('epochs')} | {outcome.status.value} "
            f"| {told['bound_proof']} | {seconds:.1f} | {word} |",
            flush=True,
        )
        total, reference_total = total + seconds, reference_total + float(row["solver_s"])
    print(f"total {total:.1f} CPU s; reference {reference_total:,.0f} s\n")


def scale() -> None:
    """Networks beyond the paper."""
    print(
        "| network | size | ranks | flows | classes | lower bound "
        "| epochs | status | proof | CPU s | peak MB | verified |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|---|---|")
    for network, size in SCALE:
        outcome, seconds, word = solve_all_to_all(network, parse(size, UnitKind.SIZE), {"schedule": "never"}, 900)
        told = outcome.metrics
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        print(
            f"| {network} | {size} | {len(load(network).network.ranks)} "
            f"| {told.get('flows')} | {told.get('flow_classes')} "
            f"| {told['lower_bound_epochs']} | {told.get('epochs')} | {outcome.status.value} | {told['bound_proof']} "
            f"| {seconds:.1f} | {peak} | {word} |",
            flush=True,
        )
    print()


def both_sides(seeds: int = 40) -> None:
    """Print the shares delivered in K epochs on coarse grids of 6 blocks and on the grid of epochs."""
    print("| seed | nodes | links | K | relaxed | fine | restricted |")
    print("|---|---|---|---|---|---|---|")
    for seed in range(seeds):
        exchange = random_exchange(seed)
        epochs = max(best_cut(exchange)[0], 7) + seed % 3 - 1
        grids = (
            coarse(exchange, epochs, 6, "relax"),
            coarse(exchange, epochs, epochs, "restrict"),
            coarse(exchange, epochs, 6, "restrict"),
        )
        parts = [delivered_part(exchange, grid) for grid in grids]
        assert parts[0] >= parts[1] - 1e-7 >= parts[2] - 2e-7, seed
        print(
            f"| {seed} | {len(exchange.stores)} | {len(exchange.tails)} | {epochs} | "
            + " | ".join(f"{part:.4f}" for part in parts)
            + " |"
        )
    print()


def delivered_part(exchange: Exchange, grid: BlockGrid) -> float:
    """Part of everything that is delivered on a grid."""
    model = build(BlockProgram(exchange, grid, reduce(points_for(exchange, grid.side))))
    model.part.setub(None)
    return float(solvers.get("highs").solve(model, Budget()).objective or 0.0)


def random_exchange(seed: int) -> Exchange:
    """Ranks on a ring with chords, some of them behind switches that do not store; delays of 1 to 9 epochs."""
    draw = random.Random(seed)  # noqa: S311 (an experiment, not a secret)
    ranks, switches = draw.randint(4, 7), draw.randint(0, 2)
    ends = [(i, (i + 1) % ranks) for i in range(ranks)]
    ends += [(draw.randrange(ranks), draw.randrange(ranks)) for _ in range(ranks)]
    ends += [
        pair for s in range(switches) for r in draw.sample(range(ranks), 3) for pair in ((r, ranks + s), (ranks + s, r))
    ]
    if switches == 2:
        ends.append((ranks, ranks + 1))
    ends = sorted({(a, b) for a, b in ends if a != b})
    return Exchange(
        tuple(n < ranks for n in range(ranks + switches)),
        tuple(range(ranks)),
        tuple(a for a, _ in ends),
        tuple(b for _, b in ends),
        tuple(draw.choice((1, 1, 2, 3, 9)) for _ in ends),
        tuple(draw.choice((Fraction(1), Fraction(1, 2), Fraction(1, 4), Fraction(3))) for _ in ends),
    )


def main() -> None:
    """Print the tables that are asked for."""
    sections = {"reference": reference, "random": both_sides, "scale": scale}
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("sections", nargs="*", default=list(sections), metavar="SECTION", help=", ".join(sections))
    for name in parser.parse_args().sections:
        if name not in sections:
            parser.error(f"{name}: expected one of {', '.join(sections)}")
        sections[name]()


if __name__ == "__main__":
    main()
