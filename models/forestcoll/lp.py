"""The optimum of ForestColl by linear programs, and exactly: a cut read off dual values, and flows that attain it.

A program's value is a float. But its dual values name a set of nodes S, whose ratio ``|S & V_c| / B+(S)`` is an exact bound on 1/x*
(theorem 1), and exact integer flows show that it is attained. Newton's method on such cuts takes the place of the paper's
bisection (algorithms 1 and 3): 1/x only ever grows, so that a sink that was served stays served.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise

from ...core.budget import Budget
from ...core.errors import InputError, Unsupported
from ...core.solver import Capability, ModelSize, ResolvingSolver, Solver, SolverOptions, SolverResult, Termination
from .exact_flow import violated_cut
from .formulation import build_concurrent, build_max_flow
from .scaled import ScaledNetwork

#: Dual values that differ by less are the same one.
_SAME = 1e-7


@dataclass(frozen=True)
class Trees:
    """What forests of k trees a rank need (section 4.5), or those of any k together (section 4.2).

    Parameters
    ----------
    network : ScaledNetwork
        The network.
    k : int or None
        Trees of every rank, in whole units of bandwidth y; None is the limit of large k.
    """

    network: ScaledNetwork
    k: int | None = None

    def needed(self, cut: frozenset[int]) -> Fraction:
        """Give the smallest U at which a cut passes what must leave it.

        Without k that is ``|S & V_c| / B+(S)``, for k = 1 trees in the limit. With k it is the smallest U with
        ``sum_e floor(U b_e) >= k |S & V_c|``: below it the cut is in the way of every forest.

        Raises
        ------
        InputError
            If no link leaves the set.
        """
        net = self.network
        ends = zip(net.tail, net.head, net.capacity, strict=True)
        leaving = [c for a, b, c in ends if a in cut and b not in cut]
        count = sum(rank in cut for rank in net.ranks)
        if not leaving:
            raise InputError("data must leave some nodes, but no link does", place="network.links")
        U = Fraction(count * (self.k or 1), sum(leaving))
        if self.k is not None:
            while sum(U * c // 1 for c in leaving) < self.k * count:
                U = min(Fraction(U * c // 1 + 1, c) for c in leaving)
        return U

    def capacities(self, U: Fraction) -> tuple[list[int], int]:
        """Give what links carry at U and what ranks send, as integers."""
        if self.k is None:
            return [c * U.numerator for c in self.network.capacity], U.denominator
        return [int(U * c // 1) for c in self.network.capacity], self.k

    def violated(self, U: Fraction) -> frozenset[int] | None:
        """Give a cut that is in the way at U, by exact flows; None if there is none."""
        capacity, sent = self.capacities(U)
        supply = [-1] * self.network.nodes
        for rank in self.network.ranks:
            supply[rank] = sent
        return violated_cut(self.network.nodes, self.network.tail, self.network.head, capacity, supply)


@dataclass
class Found:
    """What a search has found.

    Parameters
    ----------
    U : Fraction
        1/x* (without k) or U* (with k), in units of the network: a lower bound, since the cut needs it.
    cut : frozenset of int
        The nodes that need it.
    attained : bool
        Whether exact flows have shown that no cut needs more.
    reports : list of SolverResult
        Every solve.
    size : ModelSize
        Of the program.
    hidden : int
        Cuts that the solver's tolerance has hidden, and exact flows have shown.
    """

    U: Fraction
    cut: frozenset[int]
    attained: bool = False
    reports: list[SolverResult] = field(default_factory=list)
    size: ModelSize = field(default_factory=ModelSize)
    hidden: int = 0

    def take(self, trees: Trees, cut: frozenset[int]) -> bool:
        """Raise U to what a cut needs; tell whether it needed more."""
        if not any(rank in cut for rank in trees.network.ranks):
            return False
        needed = trees.needed(cut)
        if more := needed > self.U:
            self.U, self.cut = needed, cut
        return more


def first_bound(trees: Trees) -> Found:
    """Start with all nodes but the rank into which the fewest bytes a second come (the bound l of algorithms 1 and 3)."""
    net = trees.network
    entering = dict.fromkeys(net.ranks, 0)
    for b, c in zip(net.head, net.capacity, strict=True):
        if b in entering:
            entering[b] += c
    slowest = min(net.ranks, key=lambda rank: entering[rank])
    cut = frozenset(range(net.nodes)) - {slowest}
    return Found(trees.needed(cut), cut)


def search(trees: Trees, solver: Solver, budget: Budget) -> Found:
    """Find U by a maximum flow to every rank, solved again from the last basis with other bounds (algorithms 1 and 3)."""
    network = trees.network
    found = first_bound(trees)
    with budget.clock.phase("build"):
        model = build_max_flow(network)
    compiled = compiler(solver).compile(model, budget, SolverOptions())
    found.size = compiled.size
    (column,) = model.T
    links = tuple(model.flow[column, e] for e in model.E)
    rows = {v: model.balance[column, v] for v in model.V if (column, v) in model.balance}
    last = column
    for sink in network.ranks:
        compiled.set_constraint_bounds([rows[last]], [0], [0])
        compiled.set_constraint_bounds([rows[sink]], [0], [float("inf")])
        last = sink
        while not budget.exhausted:
            capacity, sent = trees.capacities(found.U)
            room = [min(c / sent, len(network.ranks)) for c in capacity]
            compiled.set_variable_bounds(links, [0] * len(links), room)
            result = compiled.solve(budget)
            found.reports.append(result)
            if result.termination is not Termination.OPTIMAL:
                return found
            cut = frozenset(v for v, row in rows.items() if v != sink and compiled.dual(row) > 0.5)
            if not found.take(trees, cut):
                break
    return settle(trees, found, budget)


def concurrent(trees: Trees, solver: Solver, budget: Budget) -> Found:
    """Find 1/x* by one program with all flows, whose dual values are lengths that name the cut."""
    found = first_bound(trees)
    with budget.clock.phase("build"):
        model = build_concurrent(trees.network)
    compiled = compiler(solver).compile(model, budget, SolverOptions())
    found.size = compiled.size
    result = compiled.solve(budget)
    found.reports.append(result)
    if result.termination is not Termination.OPTIMAL:
        return found
    for sink in model.T:
        potential = {v: abs(compiled.dual(model.balance[sink, v])) for v in model.V if (sink, v) in model.balance}
        for cut in level_sets(potential, sink):
            found.take(trees, cut)
    return settle(trees, found, budget)


def level_sets(potential: dict[int, float], sink: int) -> Iterator[frozenset[int]]:
    """Give the sets of nodes whose dual value lies above the sink's and each gap; one of them is tight."""
    levels = sorted(set(potential.values()))
    for low, high in pairwise(levels):
        if high - low > _SAME * levels[-1] and low >= potential[sink]:
            yield frozenset(v for v, value in potential.items() if value > low)


def settle(trees: Trees, found: Found, budget: Budget) -> Found:
    """Show by exact flows that U is attained; cuts that the solver's tolerance has hidden raise it."""
    with budget.clock.phase("verify"):
        while not budget.exhausted:
            cut = trees.violated(found.U)
            if cut is None:
                found.attained = True
                break
            found.hidden += found.take(trees, cut)
    return found


def compiler(solver: Solver) -> ResolvingSolver:
    """Give the solver as one that keeps models and tells dual values.

    Raises
    ------
    Unsupported
        If it does not.
    """
    if isinstance(solver, ResolvingSolver) and Capability.RESOLVE | Capability.DUALS in solver.capabilities:
        return solver
    raise Unsupported(f"{solver.name} does not keep a linear model between solves and tell its dual values")
