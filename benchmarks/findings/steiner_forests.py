"""All-reduces on trees that each choose the switches that add: the best rate by column generation, with a proof.

    python benchmarks/findings/steiner_forests.py -o docs/benchmarks/steiner-forests.csv
    python benchmarks/findings/steiner_forests.py --smoke

A tree joins all ranks and any switches that add and copy; other switches only forward. It loads both directions of its
links. Trees are priced exactly: for every set of such switches the cheapest spanning tree. At the end prices of links
are rounded to fractions, and an independent search of another kind, over sets of ranks, recomputes what they prove.
"""

from __future__ import annotations

import argparse
import csv
import heapq
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations, pairwise
from math import gcd, lcm
from pathlib import Path
from typing import Any

import numpy as np
import pyomo.environ as pyo
from cwb import solvers
from cwb.algorithms.forests.orbit_program import exact_weights
from cwb.core.budget import Budget
from cwb.core.collective import Collective, Demand
from cwb.core.instance import Instance
from cwb.core.solver import as_resolving_solver
from cwb.core.topology import Link, Node, NodeKind, Topology
from cwb.core.trees import TreePacking
from cwb.harness.run import Request, run
from cwb.heuristics.innetwork import TreeEdges, packing_of
from cwb.models.forestcoll.problem import adding_switches
from cwb.models.forestcoll.solve import busiest_s
from cwb.schedules.verify import verify
from rich.console import Console
from rich.table import Table

SIZE = Fraction(10**9)  #: Bytes of an all-reduce, so that a rate in GB/s is one over the seconds.
DENOMINATOR, PARTS = 2520, 2**30  #: Largest denominator of a rounded price, and parts of a rounded rate.

#: Two nodes of a tree, and the nodes of the path between them.
Edge = tuple[int, ...]


@dataclass(frozen=True)
class Machine:
    """Boxes of GPUs on an NVSwitch, with a leaf switch for each box, below one spine; rates in GB/s."""

    boxes: int
    per_box: int
    nvls: int  #: Boxes whose NVSwitch adds and copies.
    leaves: bool  #: True if leaf switches do.
    spine: bool
    nvlink: int = 2  #: Rate of a GPU's link to the NVSwitch.
    nic: int = 2  #: Rate of a GPU's link to the leaf.
    narrow: bool = False  #: True if a leaf's link to the spine is as fast as one NIC, not as all of them.

    @property
    def instance(self) -> Instance:
        """An all-reduce of 1 GB."""
        ranks = [[f"box{b}.gpu{g}" for g in range(self.per_box)] for b in range(self.boxes)]
        nodes = [Node(name) for box in ranks for name in box]
        nodes += [_switch(f"box{b}.nvswitch", b < self.nvls) for b in range(self.boxes)]
        nodes += [_switch(f"leaf{b}", self.leaves) for b in range(self.boxes)] + [_switch("spine", self.spine)]
        pairs = [(name, f"box{b}.nvswitch", self.nvlink) for b, box in enumerate(ranks) for name in box]
        pairs += [(name, f"leaf{b}", self.nic) for b, box in enumerate(ranks) for name in box]
        up = self.nic if self.narrow else self.nic * self.per_box
        pairs += [(f"leaf{b}", "spine", up) for b in range(self.boxes)]
        links = [Link(*ends, Fraction(rate * 10**9)) for a, b, rate in pairs for ends in ((a, b), (b, a))]
        demand = Demand(Collective.ALL_REDUCE, SIZE, 1, None)
        return Instance("mixture", Topology(tuple(nodes), tuple(links)), demand=demand)


def _switch(name: str, adds: bool) -> Node:
    return Node(name, NodeKind.SWITCH, adds, Fraction(0), adds)


@dataclass(frozen=True)
class Wires:
    """A network whose links all have one back, as undirected wires: two nodes, and the rate of one direction."""

    topology: Topology

    @cached_property
    def link(self) -> dict[tuple[int, int], int]:
        """Number of the link between two nodes."""
        return {ends: number for number, ends in enumerate(self.topology.link_ends)}

    @cached_property
    def rates(self) -> dict[tuple[int, int], Fraction]:
        """Rate in GB/s of every wire, the smaller node first."""
        links, topology = self.link, self.topology
        if len(links) < len(topology.links) or any((b, a) not in links for a, b in links):
            raise ValueError("expected one link in each direction between two nodes")
        rate = {ends: topology.links[number].bandwidth_Bps / 10**9 for ends, number in links.items()}
        if any(rate[b, a] != rate[a, b] for a, b in rate):
            raise ValueError("expected the same rate in both directions")
        return {(a, b): value for (a, b), value in rate.items() if a < b}

    @cached_property
    def joints(self) -> tuple[int, ...]:
        """Switches that a tree may choose."""
        return adding_switches(self.topology)

    @cached_property
    def ends(self) -> tuple[int, ...]:
        """Nodes of trees: ranks, then switches that add and copy."""
        return *self.topology.rank_nodes, *self.joints

    @cached_property
    def near(self) -> dict[int, list[int]]:
        """Neighbours of every node."""
        found: dict[int, list[int]] = {node: [] for node in range(len(self.topology.nodes))}
        for a, b in self.link:
            found[a].append(b)
        return found

    def loads(self, tree: Sequence[Edge]) -> Counter[tuple[int, int]]:
        """Count how often the edges of a tree use every wire."""
        return Counter((min(pair), max(pair)) for edge in tree for pair in pairwise(edge))


def cheapest_edges(wires: Wires, price: dict[tuple[int, int], Any]) -> dict[tuple[int, int], tuple[Any, Edge]]:
    """Return the cheapest path between every two nodes of trees, through switches that only forward."""
    found: dict[tuple[int, int], tuple[Any, Edge]] = {}
    for start in wires.ends:
        heap: list[tuple[Any, Edge]] = [(0, (start,))]
        seen: set[int] = set()
        while heap:
            cost, path = heapq.heappop(heap)
            node = path[-1]
            if node in seen:
                continue
            seen.add(node)
            if node in wires.ends and node != start:
                found[start, node] = cost, path
                continue
            for other in wires.near[node]:
                heapq.heappush(heap, (cost + price[min(node, other), max(node, other)], (*path, other)))
    return found


def cheap_trees(
    wires: Wires, price: dict[tuple[int, int], Any], sets: Iterable[tuple[int, ...]]
) -> Iterator[tuple[Any, tuple[int, ...], list[Edge]]]:
    """Yield the cheapest tree that spans the ranks and each set of switches, its cost first.

    Of all sets, the cheapest of them is a cheapest tree.
    """
    edges = cheapest_edges(wires, price)
    ranks = wires.topology.rank_nodes
    for chosen in sets:
        tree, cost = [], 0
        best: dict[int, tuple[Any, int]] = {node: (float("inf"), -1) for node in (*ranks[1:], *chosen)}
        last = ranks[0]
        while best:
            for node, (known, _) in best.items():
                if (last, node) in edges and edges[last, node][0] < known:
                    best[node] = edges[last, node][0], last
            last = min(best, key=lambda node: best[node][0])
            more, above = best.pop(last)
            if above < 0:
                break
            cost += more
            tree.append(edges[above, last][1])
        else:
            yield cost, chosen, _without_leaves(tree, set(chosen))


def _without_leaves(tree: list[Edge], switches: set[int]) -> list[Edge]:
    """Leave out switches that nothing hangs on."""
    while True:
        degree = Counter(node for edge in tree for node in (edge[0], edge[-1]))
        idle = {node for node in switches if degree[node] == 1}
        if not idle:
            return tree
        tree = [edge for edge in tree if not idle & {edge[0], edge[-1]}]


@dataclass(frozen=True)
class Solution:
    """The best trees with rates in GB/s, their exact rate, and what exact prices of wires prove."""

    rate: Fraction
    trees: list[tuple[list[Edge], Fraction]]
    bound: Fraction
    prices: dict[tuple[int, int], int]
    rounds: int


def solve(wires: Wires) -> Solution:
    """Find the best trees by column generation: trees that cost less than 1 at the prices of links are added.

    The program is the dual: prices of wires, at which every tree costs at least 1, of the least value of all wires. The
    dual values of its rows are the rates of trees.
    """
    model = pyo.ConcreteModel("steiner-cover")
    names = list(wires.rates)
    model.W = pyo.RangeSet(0, len(names) - 1)
    model.price = pyo.Var(model.W, domain=pyo.NonNegativeReals)
    model.tree_cost = pyo.Constraint(pyo.NonNegativeIntegers)
    value = pyo.quicksum(float(rate) * model.price[w] for w, rate in enumerate(wires.rates.values()))
    model.value = pyo.Objective(expr=value, sense=pyo.minimize)
    number = {name: w for w, name in enumerate(names)}
    trees: dict[frozenset[Edge], list[Edge]] = {}

    def add(tree: list[Edge]) -> Any:
        model.tree_cost.add(
            len(trees), pyo.quicksum(count * model.price[number[w]] for w, count in wires.loads(tree).items()) >= 1
        )
        trees[frozenset(tree)] = tree
        return model.tree_cost[len(trees) - 1]

    every = [some for count in range(len(wires.joints) + 1) for some in combinations(wires.joints, count)]
    add(min(cheap_trees(wires, {w: 1 / float(rate) for w, rate in wires.rates.items()}, every))[2])
    compiled = as_resolving_solver(solvers.get()).compile(model, Budget())
    useful: set[tuple[int, ...]] = set()  # sets whose trees were added: tried first
    rounds = 0
    while True:
        rounds += 1
        compiled.solve(Budget())
        price = {name: max(0.0, model.price[w].value or 0.0) for name, w in number.items()}
        fresh: dict[frozenset[Edge], list[Edge]] = {}
        for sets in (sorted(useful), every):
            for cost, chosen, tree in cheap_trees(wires, price, sets):
                if cost < 1 - 1e-7 and frozenset(tree) not in trees:
                    fresh[frozenset(tree)] = tree
                    useful.add(chosen)
            if fresh:
                break
        if not fresh:
            break
        for tree in list(fresh.values())[:64]:
            compiled.add_constraint(add(tree))
    rates = [max(0.0, compiled.dual(row)) for row in model.tree_cost.values()]
    prices = _round_prices(price)
    bound = proved_rate(wires, prices)
    kept = [(tree, rate) for tree, rate in zip(trees.values(), rates, strict=True) if rate > 1e-9]
    return Solution(*_exact_rates(wires, kept, bound), bound, prices, rounds)


def _exact_rates(
    wires: Wires, trees: list[tuple[list[Edge], float]], bound: Fraction
) -> tuple[Fraction, list[tuple[list[Edge], Fraction]]]:
    """Solve for rates that sum to the bound and fill the wires that are full; else round, and lower all to fit."""
    loads = [wires.loads(tree) for tree, _ in trees]
    uses = [[load[wire] for wire in wires.rates] for load in loads]
    filled = np.array([rate for _, rate in trees]) @ np.array(uses)
    full = [w for w, rate in enumerate(wires.rates.values()) if filled[w] > float(rate) - 1e-7]
    room = [rate / bound for rate in wires.rates.values()]
    shares = exact_weights(uses, [0] * len(trees), room, full)
    if shares is None:
        rounded = [Fraction(int(rate * PARTS), PARTS) for _, rate in trees]
        most = max(
            sum(rate * use[w] for rate, use in zip(rounded, uses, strict=True)) / limit
            for w, limit in enumerate(wires.rates.values())
        )
        shares = [rate / most / bound for rate in rounded]
    kept = [(tree, share * bound) for (tree, _), share in zip(trees, shares, strict=True) if share]
    return sum((rate for _, rate in kept), Fraction(0)), kept


def _round_prices(price: dict[tuple[int, int], float]) -> dict[tuple[int, int], int]:
    """Round prices to fractions, and scale these to integers; all prices of at least 0 prove a bound."""
    rounded = {wire: Fraction(value).limit_denominator(DENOMINATOR) for wire, value in price.items()}
    scale = lcm(*(value.denominator for value in rounded.values()))
    if scale * max(rounded.values()) < 2**40:
        return {wire: int(value * scale) for wire, value in rounded.items()}
    return {wire: int(value * 2**40) for wire, value in price.items()}


def proved_rate(wires: Wires, price: dict[tuple[int, int], int]) -> Fraction:
    """Compute the rate in GB/s that no trees exceed: the value of all wires over the cost of a cheapest tree.

    The tree is found by the recursion of Dreyfus and Wagner over sets of ranks, which shares no code with the search
    for columns: the least cost of joining a set of ranks to a node.
    """
    nodes, ends = len(wires.topology.nodes), wires.ends
    far = np.full((nodes, nodes), 2**60, dtype=np.int64)
    np.fill_diagonal(far, 0)
    for (a, b), cost in price.items():
        far[a, b] = far[b, a] = cost
    for via in [*(set(range(nodes)) - set(ends)), *ends]:  # in the end also through nodes of trees
        far = np.minimum(far, far[:, via, None] + far[None, via, :])
    far = far[np.ix_(ends, ends)]
    terminals = len(wires.topology.rank_nodes) - 1  # the last rank is the root
    least = np.full((1 << terminals, len(ends)), 2**60, dtype=np.int64)
    for rank in range(terminals):
        least[1 << rank] = far[rank]
    for chosen in range(1, 1 << terminals):
        if chosen & (chosen - 1):
            parts = np.zeros(1, dtype=np.int64)
            rest = chosen & (chosen - 1)  # the lowest rank stays on the other side
            while rest:
                parts = np.concatenate([parts, parts | (rest & -rest)])
                rest &= rest - 1
            parts = parts[1:]
            joined = (least[parts] + least[chosen ^ parts]).min(axis=0)
            least[chosen] = (far + joined[None, :]).min(axis=1)
    cheapest = int(least[-1, terminals])
    full = sum((rate * price[wire] for wire, rate in wires.rates.items()), Fraction(0))
    return full / cheapest


def packing(instance: Instance, trees: Sequence[tuple[Iterable[Edge], Fraction]]) -> TreePacking:
    """Return trees with rates in cwb's form, for the verifier; every link has one back."""
    topology, demand = instance.network, instance.demand
    assert isinstance(topology, Topology) and demand is not None
    link = {ends: number for number, ends in enumerate(topology.link_ends)}
    place = {node: number for number, node in enumerate(topology.tree_nodes)}
    every = [edge for tree, _ in trees for edge in tree]
    edges = sorted({edge if place[edge[0]] < place[edge[-1]] else edge[::-1] for edge in every})
    paths = [[link[pair] for pair in pairwise(edge)] for edge in edges]
    backs = [[link[pair] for pair in pairwise(edge[::-1])] for edge in edges]
    columns = (
        np.array([place[edge[0]] for edge in edges]),
        np.array([place[edge[-1]] for edge in edges]),
        np.cumsum([0, *map(len, paths)]),
        np.array([number for path in paths for number in path]),
        np.array([number for path in backs for number in path]),
    )
    counts = len(topology.ranks), len(topology.nodes)
    form = TreeEdges(*counts, *columns, np.zeros(len(topology.links)), np.zeros(counts[1], dtype=np.int64))
    at = {edge: number for number, edge in enumerate(edges)} | {edge[::-1]: number for number, edge in enumerate(edges)}
    scale = lcm(*(rate.denominator for _, rate in trees))
    common = gcd(*(int(rate * scale) for _, rate in trees))
    units = Counter({tuple(sorted(at[edge] for edge in tree)): int(rate * scale) // common for tree, rate in trees})
    return packing_of(form, units, instance.sha256, demand.size_bytes)


def verified_rate(instance: Instance, trees: Sequence[tuple[Iterable[Edge], Fraction]]) -> Fraction:
    """Pass trees to the verifier, and return their rate in GB/s as it is recomputed."""
    made = packing(instance, trees)
    report = verify(instance, made)
    assert report.ok, report.violations[:1]
    return SIZE / 10**9 / busiest_s(instance, made)


def machines(smoke: bool) -> Iterator[Machine]:
    """Yield the mixtures."""
    shapes = ((2, 2), (2, 3), (2, 4), (3, 2), (3, 3), (4, 2), (3, 4), (4, 3), (4, 4))
    for boxes, per_box in shapes[:1] if smoke else shapes:
        for nvlink in (2, 8):
            for narrow in (False, True):
                for nvls in (boxes, 1, 0):
                    for leaves, spine in ((False, False), (False, True), (True, False), (True, True)):
                        if nvls or leaves or spine:
                            yield Machine(boxes, per_box, nvls, leaves, spine, nvlink=nvlink, narrow=narrow)


def row(machine: Machine) -> dict[str, Any]:
    """Return forestcoll's rate and status, and the best trees with their bound."""
    instance = machine.instance
    record = run(instance, Request("forestcoll-allreduce")).record
    assert record.verified and record.objective and record.bound
    wires = Wires(instance.network)  # type: ignore[arg-type]
    solution = solve(wires)
    assert solution.rate <= solution.bound and verified_rate(instance, solution.trees) == solution.rate
    nearest = lambda seconds: Fraction(1 / seconds).limit_denominator(1000)  # noqa: E731
    return {
        "boxes": machine.boxes,
        "per_box": machine.per_box,
        "nvlink": machine.nvlink,
        "uplink": machine.nic * (1 if machine.narrow else machine.per_box),
        "nvls_boxes": machine.nvls,
        "sharp_leaves": int(machine.leaves),
        "sharp_spine": int(machine.spine),
        "forestcoll": nearest(record.objective),
        "status": str(record.status),
        "bound_of_all": nearest(record.bound),
        "columns": solution.rate,
        "bound_of_trees": solution.bound,
        "trees": len(solution.trees),
        "rounds": solution.rounds,
    }


def main() -> None:
    """Write the table of all mixtures, and print those that forestcoll does not prove, and counts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--smoke", action="store_true", help="two boxes of two GPUs only")
    parser.add_argument("-o", "--output", type=Path)
    given = parser.parse_args()
    rows = []
    for machine in machines(given.smoke):
        rows.append(row(machine))
        print(*rows[-1].values(), sep=",", flush=True)
    if given.output:
        with given.output.open("w", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
    open_rows = [each for each in rows if each["status"] != "optimal"]
    table = Table(*rows[0], title="mixtures that forestcoll does not prove", title_justify="left")
    for each in open_rows:
        table.add_row(*map(str, each.values()))
    console = Console(width=200)
    console.print(table)
    counts = {
        "mixtures": len(rows),
        "proved by forestcoll": len(rows) - len(open_rows),
        "open": len(open_rows),
        "columns meet their bound": sum(each["columns"] == each["bound_of_trees"] for each in rows),
        "open, columns are faster": sum(each["columns"] > each["forestcoll"] for each in open_rows),
        "open, columns meet the bound of all schedules": sum(e["columns"] == e["bound_of_all"] for e in open_rows),
    }
    for name, count in counts.items():
        console.print(f"{name}: {count}")


if __name__ == "__main__":
    main()
