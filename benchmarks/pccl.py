"""PCCL: all-to-alls on grids, process groups on the 8x8 mesh, figure 6.13, and large grids, all verified.

    python benchmarks/pccl.py                  # everything but the large grids
    python benchmarks/pccl.py --part large     # 512 and 1,000 NPUs: some minutes and 8 GiB
    python benchmarks/pccl.py --smoke          # the smallest case of every part

* meshes: all-to-all on full grids beside `direct`, and `teccl-lp` on the smallest, over the bound that is proved;
* groups: `direct` over `pccl` for process groups of a mesh (figures 6.14 to 6.17), with the bound of the maximum
  concurrent flow;
* example: figure 6.13, two groups on the 3x3 mesh;
* large: seconds of the processor to synthesize, verify and simulate.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import pairwise
from resource import RUSAGE_SELF, getrusage
from time import process_time

from cwb import solvers
from cwb.core.budget import Budget
from cwb.core.collective import Collective, Demand
from cwb.core.instance import Instance
from cwb.harness.run import FinishedRun, Request, run
from cwb.heuristics.pccl.method import METHOD
from cwb.instances import load
from cwb.schedules.simulate import simulate, utilization
from cwb.schedules.verify import verify
from rich.console import Console
from rich.table import Table

#: A chunk takes a second on a link, so that seconds are steps.
LINK = "bandwidth='1 MB/s', latency='0 us'"
CHUNK = 10**6


def mesh(sides: Sequence[int], groups: Sequence[tuple[int, ...]], chunks: int = 1) -> Instance:
    """All-to-alls of process groups on a mesh, in chunks of a second."""
    demands = [Demand(Collective.ALL_TO_ALL, Fraction(len(ranks) * chunks * CHUNK), chunks, ranks) for ranks in groups]
    network = load(f"mesh({', '.join(map(str, sides))}, {LINK})")
    return network.with_changes(demand=demands[0], also=tuple(demands[1:]))


def solve_verified(instance: Instance, model: str, **options: object) -> FinishedRun:
    """Run a method; its answer must be right."""
    found = run(instance, Request(model, options=options))
    assert found.record.verified, (found.record.violations, found.record.message)
    return found


def busy(found: FinishedRun) -> float:
    """Mean utilization of all links until the end."""
    trace = simulate(found.instance, found.answer)
    return float(utilization(found.instance, found.answer, trace, 1)[1].mean())


def direct_seconds(instance: Instance) -> tuple[float, float]:
    """Time and mean utilization of ``direct`` over shortest ways, all groups at once."""
    from cwb.algorithms.schedules.compose import merge

    parts = [solve_verified(instance.with_single_demand(demand), "direct").answer for demand in instance.demands]
    whole = merge(instance.sha256, parts)
    trace = simulate(instance, whole)
    return trace.completion_s, float(utilization(instance, whole, trace, 1)[1].mean())


def meshes(*, smoke: bool) -> None:
    """Print all-to-alls on full grids."""
    table = Table(
        "grid", "bound", "pccl", "status", "direct", "teccl-lp", "CPU s", title="All-to-all: seconds are steps"
    )
    sizes = [(k, k) for k in range(3, 11)] + [(3, 3, 3), (4, 4, 4), (5, 5, 5), (6, 6, 6)]
    for sides in sizes[:1] if smoke else sizes:
        instance = mesh(sides, [tuple(range(_count(sides)))])
        begin = process_time()
        found = solve_verified(instance, "pccl")
        seconds = process_time() - begin
        record = found.record
        exact = solve_verified(instance, "teccl-lp").record.objective if _count(sides) <= 16 and not smoke else None
        row = [f"{record.bound:g}", f"{record.objective:g}", record.status, f"{direct_seconds(instance)[0]:g}"]
        table.add_row("x".join(map(str, sides)), *row, "" if exact is None else f"{exact:.4g}", f"{seconds:.2f}")
    Console(width=140).print(table)


def _count(sides: Sequence[int]) -> int:
    nodes = 1
    for side in sides:
        nodes *= side
    return nodes


def groups(*, smoke: bool) -> None:
    """Print process groups on square meshes: how much faster than ``direct``, and how busy the links are."""
    table = Table("mesh", "groups", "chunks", "bound", "pccl", "direct", "speedup", "busy", "busy, direct")
    rows: list[tuple[str, int, list[tuple[int, ...]], int]] = []
    for k in (3,) if smoke else (5, 6, 7, 8):
        rows.append(("row 0", k, [tuple(range(k))], 8))
    if not smoke:
        row = [tuple(range(8 * r, 8 * r + 8)) for r in range(8)]
        rows += [("rows 0, 4", 8, [row[0], row[4]], 8), ("rows 0, 1", 8, row[:2], 8), ("rows 0 to 3", 8, row[:4], 8)]
        rows += [("all rows", 8, row, 8), ("top half", 8, [tuple(range(32))], 2), ("whole", 8, [tuple(range(64))], 1)]
    for name, k, members, chunks in rows:
        instance = mesh((k, k), members, chunks)
        found = solve_verified(instance, "pccl", bound="flow")
        seconds, share = direct_seconds(instance)
        record = found.record
        numbers = [f"{record.bound:.4g}", f"{record.objective:g}", f"{seconds:g}", f"{seconds / record.objective:.2f}"]
        table.add_row(f"{k}x{k}", name, str(chunks), *numbers, f"{busy(found):.0%}", f"{share:.0%}")
    Console(width=140).print(table)


def example(*, smoke: bool) -> None:
    """Print figure 6.13: ranks 0 to 2 exchange data, 0 twice as much, and 6 to 8 gather two chunks."""
    del smoke
    base = mesh((3, 3), [(0, 1, 2)])
    twice = [Demand(Collective.POINT_TO_POINT, Fraction(CHUNK), ranks=(0, other)) for other in (1, 2)]
    gather = Demand(Collective.ALL_GATHER, Fraction(6 * CHUNK), 2, (6, 7, 8))
    found = solve_verified(base.with_changes(also=(*twice, gather)), "pccl", bound="flow")
    record, answer = found.record, found.answer
    outside = sum(1 for node in answer.sends.source.tolist() if node in (3, 4, 5))
    Console().print(
        f"Figure 6.13: {record.objective:g} s, at least {record.bound:g} s, {outside} sends by ranks 3 to 5"
    )


def large(*, smoke: bool) -> None:
    """Print the seconds that large all-to-alls take, of chunks of a second, and of 1 GiB in all with latency."""
    headings = ("grid", "latency", "NPUs", "sends", "time / bound", "status", "synthesis", "MiB", "verify", "simulate")
    table = Table(*headings, title="CPU seconds; MiB are the peak of the process after the synthesis")
    sizes = [(4, 4, 4)] if smoke else [(16, 16), (8, 8, 8), (10, 10, 10)]
    for sides, late in [(sides, late) for sides in sizes for late in (False, True)]:
        instance = mesh(sides, [tuple(range(_count(sides)))])
        if late:
            whole = Demand(Collective.ALL_TO_ALL, Fraction(2**30))
            network = load(f"mesh({', '.join(map(str, sides))}, bandwidth='50 GB/s', latency='0.5 us')")
            instance = network.with_changes(demand=whole)
        options = METHOD.options.model_validate({"bound": "cut"})
        times = [process_time()]
        outcome = METHOD.run(instance, solvers.get("highs"), Budget(), options)
        times.append(process_time())
        peak = f"{getrusage(RUSAGE_SELF).ru_maxrss / 2**10:,.0f}"
        assert not verify(instance, outcome.answer).violations
        times.append(process_time())
        trace = simulate(instance, outcome.answer)
        times.append(process_time())
        spent = [f"{b - a:.1f}" for a, b in pairwise(times)]
        ratio = f"{trace.completion_s / outcome.bound:.4f}"
        what = ["x".join(map(str, sides)), "0.5 us" if late else "none", str(_count(sides))]
        numbers = [f"{len(outcome.answer.sends):,}", ratio, outcome.status.value]
        table.add_row(*what, *numbers, spent[0], peak, *spent[1:])
    Console(width=140).print(table)


PARTS: dict[str, Callable[..., None]] = {"meshes": meshes, "groups": groups, "example": example, "large": large}


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=PARTS)
    parser.add_argument("--smoke", action="store_true", help="only the smallest case of every part")
    given = parser.parse_args()
    for name, part in PARTS.items():
        if given.part == name or (given.part is None and (given.smoke or name != "large")):
            part(smoke=given.smoke)


if __name__ == "__main__":
    main()
