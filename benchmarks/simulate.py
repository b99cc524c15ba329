"""Seconds and peak memory of simulating large schedules.

    python benchmarks/simulate.py            # all cases
    python benchmarks/simulate.py --smoke    # the same on small networks, to see that it runs

Every case runs in a process of its own, so that its peak memory is its own; it is printed before the simulation (the
schedule alone) and after it. The schedules are made here: a direct all-to-all over the shortest paths of a
two-dimensional torus, first x then y; and a ring all-reduce over a Hamiltonian cycle of a three-dimensional torus.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
from fractions import Fraction
from time import perf_counter

import numpy as np
from cwb.core.collective import Collective, Demand
from cwb.core.instance import Instance
from cwb.core.schedule import Chunks, Sends, StepSchedule, sends_from_lists
from cwb.core.trace import SimulationMode
from cwb.instances import load
from cwb.schedules.simulate import simulate, utilization
from rich.console import Console
from rich.table import Table


def direct_all_to_all(side: int) -> tuple[Instance, StepSchedule]:
    """Every rank of a torus sends to every other one at once: ``n (n - 1)`` sends of several hops."""
    n = side * side
    instance = load(f"torus({side},{side})").with_changes(demand=Demand(Collective.ALL_TO_ALL, Fraction(n * 4096)))
    link = {ends: index for index, ends in enumerate(instance.network.link_ends)}

    def path(source: int, target: int) -> list[int]:
        here, found = source, []
        for stride in (1, side):
            while (
                steps := (target // stride - here // stride) % side
            ) and here // stride % side != target // stride % side:
                x = here // stride % side
                after = here + ((x + (1 if 2 * steps <= side else -1)) % side - x) * stride
                found.append(link[here, after])
                here = after
        return found

    source, target = (part.astype(np.int64) for part in np.divmod(np.arange(n * n), n))
    source, target = source[source != target], target[source != target]
    paths = [path(s, t) for s, t in zip(source.tolist(), target.tolist(), strict=True)]
    count = len(source)
    chunks = Chunks(
        np.ones(count, dtype=np.int64),
        Fraction(4096),
        tuple((r,) for r in range(n)),
        source,
        target,
        np.zeros(count, dtype=np.bool_),
    )
    sends = sends_from_lists(np.arange(count), source, target, False, paths)  # type: ignore[arg-type]
    return instance, StepSchedule(instance.sha256, chunks, sends, np.zeros(count, dtype=np.int64))


def hamiltonian_cycle(side: int) -> list[int]:
    """Order of the nodes of torus(side, side, side) in which each is a neighbour of the next; the side is even."""
    order = []
    for z in range(side):
        for y in range(side):
            row = [x + side * (y if z % 2 == 0 else side - 1 - y) + side * side * z for x in range(side)]
            order += row if (z * side + y) % 2 == 0 else row[::-1]
    return order


def ring_all_reduce(side: int) -> tuple[Instance, StepSchedule]:
    """Reduce-scatter, then all-gather along a ring through a torus: ``2 n (n - 1)`` sends in ``2 (n - 1)`` steps."""
    demand = Demand(Collective.ALL_REDUCE, Fraction(2**30))
    instance = load(f"torus({side},{side},{side})").with_changes(demand=demand)
    order = np.array(hamiltonian_cycle(side))
    n = len(order)
    link_of = {ends: index for index, ends in enumerate(instance.network.link_ends)}
    links = np.array([link_of[a, b] for a, b in zip(order.tolist(), np.roll(order, -1).tolist(), strict=True)])
    steps, position = 2 * (n - 1), np.arange(n)
    step = np.repeat(np.arange(steps), n)
    chunk = ((position - np.arange(steps)[:, None]) % n).ravel()
    everyone = (tuple(range(n)),)
    zeros = np.zeros(n, dtype=np.int64)
    chunks = Chunks(np.ones(n, dtype=np.int64), Fraction(2**30, n), everyone, zeros, zeros, np.ones(n, dtype=np.bool_))
    sends = Sends(
        chunk,
        np.tile(order, steps),
        np.tile(np.roll(order, -1), steps),
        step < n - 1,
        np.arange(len(step) + 1),
        np.tile(links, steps),
    )
    return instance, StepSchedule(instance.sha256, chunks, sends, step)


CASES = {"direct all-to-all": direct_all_to_all, "ring all-reduce": ring_all_reduce}


def measure(case: str, size: int, mode: SimulationMode) -> tuple[int, int, float, float, float, float, float]:
    """Make a schedule and simulate it.

    Returns
    -------
    tuple
        Sends, hops, peak MiB with the schedule alone, seconds to simulate, completion in seconds, seconds for 100 bins
        of utilization, peak MiB.
    """
    instance, schedule = CASES[case](size)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
    begin = perf_counter()
    trace = simulate(instance, schedule, mode)
    simulated = perf_counter() - begin
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
    begin = perf_counter()
    utilization(instance, schedule, trace)
    binned = perf_counter() - begin
    return len(schedule.sends), len(schedule.sends.path_links), before, simulated, trace.completion_s, binned, after


def main() -> None:
    """Run the cases and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--smoke", action="store_true", help="small networks only")
    smoke = parser.parse_args().smoke
    modes = [mode for mode in SimulationMode if mode is not SimulationMode.SHARES]  # that one is of trees alone
    cells = [("direct all-to-all", 4 if smoke else 16, mode) for mode in modes]
    cells += [
        ("ring all-reduce", 4 if smoke else 16, mode)
        for mode in modes
        if smoke or mode is not SimulationMode.FAIR_SHARE
    ]
    if not smoke:
        cells.append(("ring all-reduce", 8, SimulationMode.FAIR_SHARE))
    table = Table(title="simulations")
    for heading in (
        "case",
        "NPUs",
        "mode",
        "sends",
        "hops",
        "schedule MiB",
        "seconds",
        "completion ms",
        "binning s",
        "peak MiB",
    ):
        table.add_column(heading, justify="left" if heading in ("case", "mode") else "right")
    context = multiprocessing.get_context("spawn")
    for case, size, mode in cells:
        with context.Pool(1) as pool:
            sends, hops, before, seconds, completion, binned, after = pool.apply(measure, (case, size, mode))
        npus = size ** (2 if case.startswith("direct") else 3)
        numbers = (f"{before:,.0f}", f"{seconds:.2f}", f"{completion * 1e3:.4f}", f"{binned:.2f}", f"{after:,.0f}")
        table.add_row(case, f"{npus:,}", mode.value, f"{sends:,}", f"{hops:,}", *numbers)
    Console(width=160).print(table)


if __name__ == "__main__":
    main()
