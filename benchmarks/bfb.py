"""Seconds and peak memory of breadth-first schedules, each in its own process (table 6 of the direct-connect paper).

    python benchmarks/bfb.py           # hypercubes of 4 to 1,024 nodes, n x n tori to 2,500
    python benchmarks/bfb.py --smoke   # the small ones

* bfb: T_B as a fraction, and a link for every piece of every shard that node 0 receives; the other nodes are its
  translations;
* any graph: the same of a copy with nodes and links shuffled, in which no translations are found, so that
  all nodes are balanced;
* bfb-lp: LP (1) of all nodes, built, solved by HiGHS and read, up to 300,000 variables;
* paper: what table 6 prints for the paper's own implementation, on another machine.

Seconds are of the processor; the peak is that of ``any graph``, beyond what the process has before. The times do not
include making the network.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
from collections.abc import Callable
from random import Random
from time import process_time

from cwb import solvers
from cwb.core.budget import Budget
from cwb.core.topology import Topology
from cwb.instances import load
from cwb.models.bfb.extract import Balance, read
from cwb.models.bfb.formulation import build_lp
from cwb.models.bfb.problem import choices_of
from cwb.models.bfb.solve import balance
from rich.console import Console
from rich.table import Table

#: Networks, and seconds that table 6 prints.
PAPER = {f"hypercube(dim={d})": text for d, text in zip(range(2, 7), ["< 0.01"] * 3 + ["0.03", "0.17"], strict=True)}
PAPER |= {f"hypercube(dim={d})": "" for d in (7, 8, 9)} | {"hypercube(dim=10)": "52.7"}
PAPER |= {f"torus({n},{n})": text for n, text in zip(range(2, 7), ["< 0.01"] * 3 + ["0.01", "0.03"], strict=True)}
PAPER |= {f"torus({n},{n})": "" for n in (10, 16, 25, 32)} | {"torus(50,50)": "61.1"}

SMOKE = ("hypercube(dim=4)", "torus(4,4)")

#: Variables beyond which the linear program is left out.
MAX_VARIABLES = 300_000


def network(name: str) -> Topology:
    """Make a network, with its columns of links."""
    found = load(name).network
    assert isinstance(found, Topology)
    assert found.link_ends
    return found


def shuffle_topology(topology: Topology) -> Topology:
    """The same network with nodes and links in another order."""
    source = Random(1)  # noqa: S311 (nothing is secret here)
    nodes, links = (tuple(source.sample(part, len(part))) for part in (topology.nodes, topology.links))
    found = Topology(nodes, links)
    assert found.link_ends
    return found


def peak_mib() -> float:
    """Most memory that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10


def values_and_splits(topology: Topology) -> tuple[Balance, float]:
    """Balance everything and give every piece a link; and the seconds that takes."""
    began = process_time()
    found = balance(topology)
    time, shares = found.time, found.split()
    seconds = process_time() - began
    assert shares.bandwidth_time() == time
    return found, seconds


def fast(name: str) -> list[str]:
    """Time the method as it is."""
    topology = network(name)
    found, seconds = values_and_splits(topology)
    return [str(len(topology.nodes)), str(found.steps), str(found.time), str(found.pieces), f"{seconds:.3f}"]


def general(name: str) -> list[str]:
    """Time it without translations."""
    topology = shuffle_topology(network(name))
    before = peak_mib()
    found = balance(topology)
    found.split()
    peak = peak_mib() - before
    return [f"{values_and_splits(topology)[1]:.3f}", f"{peak:,.0f}"]


def program(name: str) -> list[str]:
    """Time the linear program, and compare its T_B with that of theorem 19."""
    topology = network(name)
    found = balance(topology)
    distance = found.graph.distance
    to_orbit = sum(
        int((distance[near] < distance[own]).sum()) for own, near in zip(found.graph.own, found.graph.near, strict=True)
    )
    if to_orbit * len(topology.nodes) // len(found.graph.orbit) > MAX_VARIABLES:
        return ["-"]
    solver = solvers.get("highs")
    solver.installation()
    began = process_time()
    choices = choices_of(topology)
    model = build_lp(choices)
    solver.solve(model, Budget())
    solved = read(choices, model)
    seconds = process_time() - began
    assert solved.time == found.time
    return [f"{seconds:.2f}"]


def measure(name: str) -> list[str]:
    """Measure one network, each part in a process of its own."""
    row = [name]
    for part in (fast, general, program):
        row += alone(part, name)
    return [*row, PAPER[name]]


def alone(part: Callable[[str], list[str]], name: str) -> list[str]:
    """Run a part in a fresh process, once unmeasured on a small network, so that libraries are loaded."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        pool.apply(part, ("torus(3,3)",))
        return pool.apply(part, (name,))


def main() -> None:
    """Measure every network and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--smoke", action="store_true", help="small networks alone")
    names = SMOKE if parser.parse_args().smoke else tuple(PAPER)
    table = Table(title="generation of schedules, seconds", title_justify="left")
    headings = ("network", "N", "T_L", "T_B", "chunks", "bfb", "any graph", "peak MiB", "bfb-lp", "paper")
    for heading in headings:
        table.add_column(heading, justify="left" if heading == "network" else "right")
    for name in names:
        table.add_row(*measure(name))
    Console(width=140).print(table)


if __name__ == "__main__":
    main()
