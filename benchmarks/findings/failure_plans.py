"""All-reduces on trees that are prepared for the loss of any one link: the fewest trees that change, with proofs.

    python benchmarks/findings/failure_plans.py
    python benchmarks/findings/failure_plans.py --smoke

Networks have no switches, and equal links in both directions; a failure takes both links between two ranks. Trees over
lost links have to change, the others stay (`cwb repair`). How few can change is a formula over partitions of the ranks,
computed in fractions; how fast the repaired trees are is a linear program over all spanning trees.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations, permutations, product
from typing import Any

import numpy as np
import pyomo.environ as pyo
from cwb import solvers
from cwb.benchmarks.findings.allreduce_halves import graphs, partitions
from cwb.benchmarks.findings.steiner_forests import PARTS, SIZE, Edge, packing, verified_rate
from cwb.core.budget import Budget
from cwb.core.collective import Collective, Demand
from cwb.core.instance import Instance
from cwb.core.solver import SolverOptions, Termination
from cwb.core.topology import Link, Node, Topology
from cwb.core.trees import TreePacking
from cwb.harness.run import Request, run
from cwb.instances import load
from cwb.instances.edits import Edit, edit_instance
from cwb.models.forestcoll.solve import busiest_s
from cwb.studies.repair import repair_schedule
from rich.console import Console
from rich.table import Table

#: Networks of cwb.
NETWORKS = ("ring(5)", "mesh(2,3)", "mesh(3,3)", "complete(5)", "hypercube(3)", "torus(3,3)", "dgx1()")
MOST_TREES = 400  #: Spanning trees up to which programs are solved.
TOLERANCE = 1e-6  #: Of values of programs, which a solver attests.

Pair = tuple[int, int]


@dataclass(frozen=True)
class Graph:
    """Ranks, and what a pair of them sends per second each way; the smaller rank first."""

    ranks: int
    rates: dict[Pair, Fraction]

    @cached_property
    def cuts(self) -> list[tuple[int, tuple[Pair, ...]]]:
        """Every partition that matters as its number of parts less one, and the pairs between parts."""
        found = {
            (max(parts), tuple(pair for pair in self.rates if parts[pair[0]] != parts[pair[1]]))
            for parts in partitions(self.ranks)
            if max(parts)
        }
        return sorted(found)

    @cached_property
    def seconds(self) -> Fraction:
        """Time of the best all-reduce of one unit, by the theorem of Tutte and Nash-Williams."""
        return max(Fraction(more) / sum(self.rates[pair] for pair in cut) for more, cut in self.cuts)

    @cached_property
    def trees(self) -> list[frozenset[Pair]]:
        """All spanning trees."""
        found = []
        for chosen in combinations(self.rates, self.ranks - 1):
            group = list(range(self.ranks))
            for a, b in chosen:
                if group[a] == group[b]:
                    break
                old = group[b]
                group = [group[a] if each == old else each for each in group]
            else:
                found.append(frozenset(chosen))
        return found

    def without(self, lost: Pair) -> Graph:
        """Return the graph after a failure."""
        return Graph(self.ranks, {pair: rate for pair, rate in self.rates.items() if pair != lost})

    def full(self, slack: Fraction) -> dict[Pair, Fraction]:
        """Return the share of the data that a pair can carry within the best time times ``slack``."""
        return {pair: slack * self.seconds * rate for pair, rate in self.rates.items()}


def least_share(graph: Graph, slack: Fraction) -> Fraction:
    """Return the least share of the data that changes in the worst failure, if the base takes ``slack`` times the best.

    A failure changes what the pair carries. So every pair carries at most the share C, and as much as it can. Trees for
    all data fit if and only if these limits sum to at least p - 1 between the parts of every partition into p parts.
    """
    full = graph.full(slack)
    worst = Fraction(0)
    for more, cut in graph.cuts:
        limits = sorted(full[pair] for pair in cut)
        for place in range(len(limits)):  # pairs before this place are full, the others carry C
            share = (more - sum(limits[:place], Fraction(0))) / (len(limits) - place)
            if share <= limits[place]:
                break
        else:
            raise ValueError("expected a slack of at least 1")
        worst = max(worst, share)
    return worst


def least_slack(graph: Graph) -> Fraction:
    """Return the least time of the base, over the best, at which the fewest data of any base change."""
    share = max(Fraction(more, len(cut)) for more, cut in graph.cuts)
    worst = Fraction(1)
    for more, cut in graph.cuts:
        full = sorted((graph.seconds * graph.rates[pair] for pair in cut), reverse=True)
        slack = Fraction(1)
        for place in range(len(full)):  # pairs before this place carry the share, the others are full
            left = more - place * share
            slack = left / sum(full[place:])
            if slack * full[place] <= share:
                break
        worst = max(worst, slack)
    return worst


def fewest_trees(graph: Graph, trees: int, slack: Fraction) -> int | None:
    """Return the fewest of so many equal trees that change in the worst failure; None if they do not fit."""
    full = {pair: int(trees * share) for pair, share in graph.full(slack).items()}
    fits = lambda most: all(  # noqa: E731
        sum(min(most, full[pair]) for pair in cut) >= trees * more for more, cut in graph.cuts
    )
    return next((most for most in range(1, trees + 1) if fits(most)), None)


#: Spanning trees with the share of the data that each carries.
Forest = dict[frozenset[Pair], float]


@dataclass(frozen=True)
class Plan:
    """Answer of a linear program: value, bound of the solver, the base, and the trees after each failure."""

    value: float
    bound: float
    base: Forest
    repairs: dict[Pair, Forest]


def plan(graph: Graph, slack: Fraction, *, share: Fraction | None = None, free: bool = False) -> Plan:
    """Solve for a base and its repairs after every failure, over all spanning trees.

    With a ``share``, at most that much of the data uses a pair, trees that lose no link stay, and the time after the
    worst failure is minimized, over the best one there. If ``free``, any tree may change, every repair is as fast as
    the best one, and the data that change are minimized. Trees of each repair are new ones, or those of the base.
    """
    m: Any = pyo.ConcreteModel("failure-plan")
    trees, failures = graph.trees, list(graph.rates)
    m.T, m.F = pyo.RangeSet(0, len(trees) - 1), pyo.RangeSet(0, len(failures) - 1)
    m.base = pyo.Var(m.T, domain=pyo.NonNegativeReals)
    m.value = pyo.Var(domain=pyo.NonNegativeReals)
    over = {pair: [t for t, tree in enumerate(trees) if pair in tree] for pair in failures}
    left = [[t for t, tree in enumerate(trees) if pair not in tree] for pair in failures]
    m.left = pyo.Set(initialize=[(f, t) for f in m.F for t in left[f]], dimen=2)
    m.fresh = pyo.Var(m.left, domain=pyo.NonNegativeReals)
    kept = m.base
    m.whole = pyo.Constraint(expr=pyo.quicksum(m.base.values()) == 1)
    full = graph.full(slack)
    m.base_load = pyo.Constraint(
        m.F,
        rule=lambda m, f: (
            pyo.quicksum(m.base[t] for t in over[failures[f]]) <= float(min(full[failures[f]], share or 1))
        ),
    )
    if free:
        m.kept = pyo.Var(m.left, domain=pyo.NonNegativeReals)
        m.keeps = pyo.Constraint(m.left, rule=lambda m, f, t: m.kept[f, t] <= m.base[t])
        m.changes = pyo.Constraint(m.F, rule=lambda m, f: pyo.quicksum(m.kept[f, t] for t in left[f]) >= 1 - m.value)
    keep = (lambda f, t: m.kept[f, t]) if free else (lambda f, t: kept[t])
    m.repaired = pyo.Constraint(m.F, rule=lambda m, f: pyo.quicksum(keep(f, t) + m.fresh[f, t] for t in left[f]) == 1)
    rooms = [graph.without(pair).full(Fraction(1)) for pair in failures]
    m.room = pyo.Constraint(
        [(f, e) for f in m.F for e in m.F if e != f],
        rule=lambda m, f, e: (
            pyo.quicksum(keep(f, t) + m.fresh[f, t] for t in over[failures[e]] if failures[f] not in trees[t])
            <= float(rooms[f][failures[e]]) * (1 if free else m.value)
        ),
    )
    m.least = pyo.Objective(expr=m.value)
    result = solvers.get().solve(m, Budget(), SolverOptions())
    assert result.termination is Termination.OPTIMAL and result.objective is not None
    base = {tree: m.base[t].value or 0.0 for t, tree in enumerate(trees)}
    repairs = {
        pair: {trees[t]: (m.kept[f, t].value if free else base[trees[t]]) + (m.fresh[f, t].value or 0) for t in left[f]}
        for f, pair in enumerate(failures)
    }
    return Plan(result.objective, result.bound or 0.0, base, repairs)


def whole_parts(forest: Forest) -> list[tuple[list[Edge], Fraction]]:
    """Return trees with shares that are rounded to parts, for the verifier."""
    rounded = ((sorted(tree), round(share * PARTS)) for tree, share in forest.items())
    return [(list[Edge](tree), Fraction(parts, PARTS)) for tree, parts in rounded if parts > 0]


def repair_by_plan(graph: Graph, found: Plan) -> tuple[float, float]:
    """Verify the trees after every failure; return the largest changed share, and the largest time over the best."""
    share = slower = 0.0
    assert verified_rate(instance_of(graph), whole_parts(found.base)) > 0
    for pair, forest in found.repairs.items():
        left = graph.without(pair)
        share = max(share, 1 - sum(min(found.base[tree], carried) for tree, carried in forest.items()))
        rate = verified_rate(instance_of(left), whole_parts(forest))
        slower = max(slower, float(1 / (rate * left.seconds)))
    return share, slower


def graph_of(topology: Topology) -> Graph:
    """Return the graph of a network without switches, with its rates in GB/s."""
    rates: dict[Pair, Fraction] = defaultdict(Fraction)
    for link, ends in zip(topology.links, topology.link_ends, strict=True):
        rates[ends] += link.bandwidth_Bps / 10**9
    assert not topology.switches and all(rates[b, a] == rate for (a, b), rate in list(rates.items()))
    return Graph(len(topology.ranks), {pair: rate for pair, rate in rates.items() if pair[0] < pair[1]})


def instance_of(graph: Graph) -> Instance:
    """Return an all-reduce of 1 GB on a graph."""
    ends = [(str(a), str(b), rate * 10**9) for pair, rate in graph.rates.items() for a, b in (pair, pair[::-1])]
    topology = Topology(tuple(Node(str(n)) for n in range(graph.ranks)), tuple(Link(*each) for each in ends))
    return Instance("graph", topology, demand=Demand(Collective.ALL_REDUCE, SIZE, 1, None))


def weighted_graphs(ranks: int, rates: tuple[int, ...] = (1, 2)) -> Iterator[Graph]:
    """Yield one of each class of graphs with these rates that stay connected after every failure."""
    for edges in graphs(ranks):
        if any(not Graph(ranks, dict.fromkeys(edges, Fraction(1))).without(pair).trees for pair in edges):
            continue
        place = {pair: i for i, pair in enumerate(edges)}
        images = ([(min(p[a], p[b]), max(p[a], p[b])) for a, b in edges] for p in permutations(range(ranks)))
        moves = [[place[pair] for pair in image] for image in images if set(image) == set(edges)]
        for chosen in product(rates, repeat=len(edges)):
            if all(tuple(chosen[i] for i in move) >= chosen for move in moves):
                yield Graph(ranks, dict(zip(edges, map(Fraction, chosen), strict=True)))


def repair_by_cwb(graph: Graph, instance: Instance, answer: TreePacking) -> tuple[float, float]:
    """Lose every pair of links in turn, and repair by cwb; return the largest changed share, and time over the best."""
    share, slower = 0.0, 0.0
    topology = instance.network
    assert isinstance(topology, Topology)
    tree_units = answer.units / answer.units.sum()
    for a, b in graph.rates:
        lost = {number for number, ends in enumerate(topology.link_ends) if set(ends) == {a, b}}
        changed = {int(t) for one in answer.passes for t in one.path_tree[np.isin(one.path_links, list(lost))]}
        share = max(share, float(tree_units[sorted(changed)].sum()))
        names = f"{topology.nodes[a].name}:{topology.nodes[b].name}"
        left = edit_instance(instance, [Edit("--without-link", names)])
        fixed = repair_schedule(instance, answer, left)
        assert fixed.report.ok and isinstance(fixed.answer, TreePacking)
        best = graph.without((a, b)).seconds * SIZE / 10**9
        slower = max(slower, float(busiest_s(fixed.instance, fixed.answer) / best))
    return share, slower


def machines(smoke: bool) -> Iterator[tuple[str, Graph]]:
    """Yield networks with their names."""
    for name in NETWORKS[:1] if smoke else NETWORKS:
        topology = load(name).network
        assert isinstance(topology, Topology)
        yield f"`{name}`", graph_of(topology)
    if smoke:
        return
    inside = {pair: Fraction(4) for box in (0, 3) for pair in combinations(range(box, box + 3), 2)}
    yield (
        "two triangles, rate 4, joined by 3 links of rate 1",
        Graph(6, inside | {(i, i + 3): Fraction(1) for i in range(3)}),
    )
    ring = {(i, i + 1): Fraction(2) for i in range(5)} | {(0, 5): Fraction(2), (0, 3): Fraction(1)}
    yield "ring of 6, rate 2, with one chord of rate 1", Graph(6, ring)


def row(name: str, graph: Graph) -> tuple[str, ...]:
    """Return what is proved of a network, and what programs and cwb find."""
    one = Fraction(1)
    share, counted = least_share(graph, one), least_share(graph, least_slack(graph))
    count = next((k for k in range(1, 65) if fewest_trees(graph, k, one)), None)
    cells = [name, str(Fraction(graph.ranks - 1, len(graph.rates))), str(counted), str(share), str(least_slack(graph))]
    cells.append(f"{fewest_trees(graph, count, one)} of {count}" if count else "-")
    instance = instance_of(graph)
    made = run(instance, Request("forestcoll-allreduce"))
    assert isinstance(made.answer, TreePacking)
    cells += [f"{each:.4f}" for each in repair_by_cwb(graph, instance, made.answer)]
    if len(graph.trees) <= MOST_TREES:
        kept, free = plan(graph, one, share=share), plan(graph, one, free=True)
        cells += [f"{repair_by_cwb(graph, instance, packing(instance, whole_parts(kept.base)))[1]:.4f}"]
        cells += [f"{each:.4f}" for found in (kept, free) for each in repair_by_plan(graph, found)]
    return (*cells, *["-"] * (13 - len(cells)))


def main() -> None:
    """Print what is proved of networks, and counts over all small ones."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--smoke", action="store_true", help="few networks")
    given = parser.parse_args()
    console = Console(width=200)
    headings = ("network", "(n-1)/m", "any base", "fastest base", "slack", "whole trees", "forestcoll", "repaired")
    table = Table(*headings, "plan, repaired", "changed", "its best", "free: changed", "its time", title_justify="left")
    for name, graph in machines(given.smoke):
        table.add_row(*row(name, graph))
    console.print(table)
    counts = Table(
        "ranks", "networks", "preparing costs time", "most", "data", "repair slower", "most", "more changes", "most"
    )
    for ranks in (3,) if given.smoke else (3, 4, 5):
        counts.add_row(str(ranks), *map(str, count_graphs(ranks)))
    console.print(counts)
    if given.smoke:
        return
    curve = Table("slack", "least share of `dgx1()` that changes")
    dgx = dict(machines(smoke=False))["`dgx1()`"]
    for slack in (Fraction(n, 16) for n in range(16, 26, 2)):
        curve.add_row(str(slack), str(least_share(dgx, slack)))
    console.print(curve)


def count_graphs(ranks: int) -> tuple[object, ...]:
    """Count graphs where the best base changes more data than another, and those whose repairs are not the fastest."""
    tried = costs = slower = more = 0
    slack, data, late, extra = Fraction(1), Fraction(1), 1.0, 1.0
    one = Fraction(1)
    for graph in weighted_graphs(ranks):
        tried += 1
        share, least = least_share(graph, one), least_slack(graph)
        costs += least > 1
        slack, data = max(slack, least), max(data, share / least_share(graph, least))
        kept, free = plan(graph, one, share=share), plan(graph, one, free=True)
        slower += kept.bound > 1 + TOLERANCE
        more += free.bound > float(share) + TOLERANCE
        late, extra = max(late, kept.value), max(extra, free.value / float(share))
    return tried, costs, slack, data, slower, f"{late:.4f}", more, f"{extra:.4f}"


if __name__ == "__main__":
    main()
